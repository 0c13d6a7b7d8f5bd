package auditchain_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/internal/audittest"
	"pgregory.net/rapid"
)

// A second implementation of everything that is hashed and signed, written
// from the documentation, slowly, without the code under test. It reads the
// database by hand.

func naiveField(b *bytes.Buffer, field []byte) {
	binary.Write(b, binary.BigEndian, uint32(len(field)))
	b.Write(field)
}

type naiveRow struct {
	seq, ts                                      int64
	tenant, kind                                 string
	peer, capability, side, correlation, session sql.NullString
	body, salt, digest, hash                     []byte
}

func (r *naiveRow) contentDigest() [32]byte {
	var b bytes.Buffer
	b.WriteString("agentd audit content v1\n")
	naiveField(&b, r.salt)
	for _, column := range []sql.NullString{r.peer, r.capability, r.side, r.correlation, r.session} {
		if !column.Valid {
			b.WriteByte(0)
			continue
		}
		b.WriteByte(1)
		naiveField(&b, []byte(column.String))
	}
	naiveField(&b, r.body)
	return sha256.Sum256(b.Bytes())
}

func (r *naiveRow) recordHash(previous []byte) [32]byte {
	var b bytes.Buffer
	b.WriteByte(0)
	b.WriteString("agentd audit record v1\n")
	binary.Write(&b, binary.BigEndian, r.seq)
	binary.Write(&b, binary.BigEndian, r.ts)
	naiveField(&b, []byte(r.tenant))
	naiveField(&b, []byte(r.kind))
	b.Write(r.digest)
	b.Write(previous)
	return sha256.Sum256(b.Bytes())
}

// naiveCheckNote checks a checkpoint's only signature with nothing but the
// standard library.
func naiveCheckNote(t *rapid.T, note, verifierKey, origin string, size int, root []byte) {
	text, signatures, ok := strings.Cut(note, "\n\n")
	if want := fmt.Sprintf("%s\n%d\n%s", origin, size, base64.StdEncoding.EncodeToString(root)); !ok || text != want {
		t.Fatalf("the note says %q, want %q", text, want)
	}
	keyFields := strings.SplitN(verifierKey, "+", 3)
	public, err := base64.StdEncoding.DecodeString(keyFields[2])
	if err != nil || public[0] != 1 {
		t.Fatalf("verifier key %q", verifierKey)
	}
	signature, err := base64.StdEncoding.DecodeString(strings.TrimSpace(strings.TrimPrefix(signatures, "— "+origin+" ")))
	if err != nil || fmt.Sprintf("%x", signature[:4]) != keyFields[1] {
		t.Fatalf("signature line %q", signatures)
	}
	if !ed25519.Verify(public[1:], []byte(text+"\n"), signature[4:]) {
		t.Fatal("the signature is false")
	}
}

func naiveRows(t *rapid.T, db *sql.DB) (rows []naiveRow) {
	result, err := db.Query(`SELECT seq, ts, tenant, kind, peer, capability, side, correlation, session, body, salt, digest, hash FROM records ORDER BY seq`)
	if err != nil {
		t.Fatal(err)
	}
	defer result.Close()
	for result.Next() {
		var r naiveRow
		if err := result.Scan(&r.seq, &r.ts, &r.tenant, &r.kind, &r.peer, &r.capability, &r.side, &r.correlation, &r.session,
			&r.body, &r.salt, &r.digest, &r.hash); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r)
	}
	return rows
}

func TestSecondImplementationAgrees(t *testing.T) {
	t.Parallel()
	outer := t
	word := rapid.StringMatching(`[a-zé😀 _%"\\-]{0,12}`)
	rapid.Check(t, func(t *rapid.T) {
		l := audittest.Open(outer, auditchain.Options{Name: "naive"})
		defer l.Close()
		db := audittest.SceneAt(outer, l.Path()).DB()
		defer db.Close()
		n := rapid.IntRange(1, 8).Draw(t, "records")
		for i := range n {
			body, _ := json.Marshal(map[string]any{"peerId": word.Draw(t, "peer"), "x": rapid.Float64().Draw(t, "x"), "i": i})
			audittest.Append(outer, l, auditchain.Record{Kind: auditchain.KindRPCCall, Tenant: word.Draw(t, "tenant"), Session: word.Draw(t, "session"), Body: body})
		}
		if rapid.IntRange(0, 14).Draw(t, "many") == 0 {
			audittest.Fill(outer, l, 520) // over two stored tree nodes
			n += 520
		}
		note, err := l.Checkpoint(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		public, err := l.PublicKeys()
		if err != nil {
			t.Fatal(err)
		}
		genesis := sha256.Sum256([]byte("agentd audit genesis v1\n" + public[0]))
		previous := genesis[:]
		var leaves [][]byte
		for i, r := range naiveRows(t, db) {
			digest := r.contentDigest()
			hash := r.recordHash(previous)
			if r.seq != int64(i+1) || !bytes.Equal(digest[:], r.digest) || !bytes.Equal(hash[:], r.hash) {
				t.Fatalf("record %d differs", r.seq)
			}
			previous = r.hash
			leaves = append(leaves, r.hash)
		}
		if len(leaves) != n {
			t.Fatalf("%d records of %d", len(leaves), n)
		}
		naiveCheckNote(t, string(note), public[0], l.Origin(), n, audittest.TreeHash(leaves))

		seq := rapid.Int64Range(1, int64(n)).Draw(t, "proven")
		p, err := l.Prove(context.Background(), seq, auditchain.ProveOptions{})
		if err != nil {
			t.Fatal(err)
		}
		path := audittest.AuditPath(int(seq-1), leaves)
		if len(path) != len(p.Path) {
			t.Fatalf("a path of %d hashes, want %d", len(p.Path), len(path))
		}
		for i := range path {
			if !bytes.Equal(path[i], p.Path[i][:]) {
				t.Fatalf("hash %d of the path of record %d differs", i, seq)
			}
		}
	})
}
