package checkpoint

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
)

// The bytes of a cosignature, made by hand from c2sp.org/tlog-cosignature:
// key id, time, and a signature over "cosignature/v1", the time and the note.
func TestCosignatureIsTheDocumentedOne(t *testing.T) {
	t.Parallel()
	key := newKey(t, "witness.example")
	c := Checkpoint{Origin: "log.example/1", Size: 7, Root: sha256.Sum256([]byte("root"))}
	signed, err := Sign(c, key.Cosigner(time.Unix(1679315147, 0)))
	if err != nil {
		t.Fatal(err)
	}
	line := strings.TrimPrefix(strings.TrimSuffix(string(signed), "\n"), c.Text()+"\n— witness.example ")
	raw, err := base64.StdEncoding.DecodeString(line)
	if err != nil || len(raw) != 4+8+64 {
		t.Fatalf("%q: %d bytes, %v", signed, len(raw), err)
	}
	vkey := strings.SplitN(key.CosignatureVerifier(), "+", 3)
	public, err := base64.StdEncoding.DecodeString(vkey[len(vkey)-1])
	if err != nil || public[0] != 4 {
		t.Fatalf("%v, %v", vkey, err)
	}
	id := sha256.Sum256(append([]byte("witness.example\n"), public...))
	if string(raw[:4]) != string(id[:4]) || fmt.Sprintf("%x", id[:4]) != vkey[1] || fmt.Sprintf("%x", raw[4:12]) != "00000000641850cb" {
		t.Errorf("key id and time: %x, want %x", raw[:12], id[:4])
	}
	if !ed25519.Verify(public[1:], []byte("cosignature/v1\ntime 1679315147\n"+c.Text()), raw[12:]) {
		t.Error("the signature is over something else")
	}
}

func TestCosignatureRefusals(t *testing.T) {
	t.Parallel()
	key := newKey(t, "witness.example")
	logKey := newKey(t, "log.example/1")
	c := Checkpoint{Origin: "log.example/1", Size: 7, Root: sha256.Sum256([]byte("root"))}
	own := sign(t, c, logKey)
	cosigned, err := Sign(c, key.Cosigner(time.Unix(1679315147, 0)))
	if err != nil {
		t.Fatal(err)
	}
	both, err := Merge(own, cosigned)
	if err != nil {
		t.Fatal(err)
	}
	keys := keySet(t, logKey, key)
	got, err := Open(both, keys)
	if err != nil || got.CosignedAt.Unix() != 1679315147 || got.Key != logKey.Verifier() {
		t.Fatalf("%+v, %v", got, err)
	}
	// The time is signed too.
	line := string(cosigned[len(c.Text())+1:])
	raw, _ := base64.StdEncoding.DecodeString(strings.Fields(line)[2])
	raw[11]++
	moved := strings.Replace(string(both), strings.Fields(line)[2], base64.StdEncoding.EncodeToString(raw), 1)
	if _, err := Open([]byte(moved), keys); !errors.Is(err, ErrSignature) {
		t.Errorf("with another time: %v", err)
	}
	// A log's key that co-signs is not a log that signs.
	self, err := Sign(c, logKey.Cosigner(time.Unix(1679315147, 0)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(self, keys); !errors.Is(err, ErrUntrusted) {
		t.Errorf("co-signed by its own key only: %v", err)
	}
	if _, err := Sign(c, key.Cosigner(time.Time{})); err == nil {
		t.Error("a cosignature before 1970")
	}
	for _, text := range []string{
		"", "+", "w+00000000+" + strings.SplitN(key.CosignatureVerifier(), "+", 3)[2], "a b" + key.CosignatureVerifier(),
		strings.Replace(key.CosignatureVerifier(), "witness", "w1tness", 1), key.CosignatureVerifier()[:50],
	} {
		if _, err := NewKeys(text); err == nil {
			t.Errorf("%q is a key", text)
		}
	}
	var _ note.Verifier = &cosignatureVerifier{}
}
