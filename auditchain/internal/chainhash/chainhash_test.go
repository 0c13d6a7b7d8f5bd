package chainhash

import (
	"encoding/hex"
	"testing"

	"golang.org/x/mod/sumdb/tlog"
)

// The values were computed from the documented forms by another program, in
// another language.
func TestVectors(t *testing.T) {
	t.Parallel()
	salt := []byte("0123456789abcdef")
	content := Content[string]{Peer: "agent://p", Side: "request", Body: `{"a":1}`}
	var scratch []byte
	digest := Digest(&scratch, salt, &content)
	genesis := Genesis("log+00000000+key")
	header := Header[string]{Seq: 1, Time: 1790000000000, Tenant: "acme", Kind: "rpc_call", Digest: digest}
	record := Record(&scratch, genesis, &header)
	for name, test := range map[string]struct {
		got  tlog.Hash
		want string
	}{
		"genesis": {genesis, "a4b81d49273a5c2e6cc57c714cca6e0dcb18be2eba9cfd389cf122438deec779"},
		"digest":  {digest, "973e45346bc2c593a84836b149832c4fc7aff0db234067a9f5c7cd799c433c47"},
		"record":  {record, "66391985083e64014d874b25e78741bfbc37b10e251f8248c54a06809a59e495"},
	} {
		if got := hex.EncodeToString(test.got[:]); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
	bytes := Content[[]byte]{Peer: []byte("agent://p"), Side: []byte("request"), Body: []byte(content.Body)}
	if Digest(&scratch, salt, &bytes) != digest {
		t.Error("bytes and strings give different digests")
	}
}

// No two contents share a form: text cannot move from one column to another,
// nor into the body.
func TestContentsDiffer(t *testing.T) {
	t.Parallel()
	seen := map[tlog.Hash]Content[string]{}
	var scratch []byte
	for _, c := range []Content[string]{
		{}, {Peer: "x"}, {Capability: "x"}, {Side: "x"}, {Correlation: "x"}, {Session: "x"}, {Body: "x"},
		{Peer: "xy"}, {Peer: "x", Capability: "y"}, {Session: "x", Body: "y"}, {Session: "xy"}, {Body: "xy"},
	} {
		for _, salt := range []string{"", "s", "x"} {
			digest := Digest(&scratch, []byte(salt), &c)
			if other, ok := seen[digest]; ok {
				t.Errorf("%+v and %+v share a digest", c, other)
			}
			seen[digest] = c
		}
	}
}
