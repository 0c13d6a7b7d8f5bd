package publish_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/internal/audittest"
	"golang.org/x/mod/sumdb/tlog"
)

// A hostileWitness answers with whatever it likes.
type hostileWitness struct {
	name   string
	answer func(signed []byte) []byte
}

func (w hostileWitness) Name() string { return w.name }

func (w hostileWitness) Latest(context.Context, string) ([]byte, error) { return nil, nil }

func (w hostileWitness) Cosign(_ context.Context, signed []byte, _ int64, _ tlog.TreeProof) ([]byte, error) {
	return w.answer(signed), nil
}

func TestHostileWitnessesDoNoHarm(t *testing.T) {
	t.Parallel()
	key, err := checkpoint.GenerateKey("witness.example")
	if err != nil {
		t.Fatal(err)
	}
	answers := map[string]func([]byte) []byte{
		"garbage":          func([]byte) []byte { return []byte("hello") },
		"nothing":          func([]byte) []byte { return nil },
		"broken line":      func(n []byte) []byte { return append(n, "— x y\n"...) },
		"endless":          func(n []byte) []byte { return append(n, strings.Repeat("— x AAAAAAAA\n", 10_000)...) },
		"another state":    func(n []byte) []byte { return bytes.Replace(n, []byte("\n1\n"), []byte("\n2\n"), 1) },
		"the log's own":    func(n []byte) []byte { return append(n, falseSignature(n)...) },
		"no signature":     func(n []byte) []byte { return n[:bytes.Index(n, []byte("\n\n"))+2] },
		"an echo":          func(n []byte) []byte { return n },
		"an honest answer": func(n []byte) []byte { return cosignedBy(t, key, n) },
	}
	var witnesses []checkpoint.Witness
	for name, answer := range answers {
		witnesses = append(witnesses, hostileWitness{name, func(n []byte) []byte { return answer(bytes.Clone(n)) }})
	}
	outcomes := newOutcomes()
	l := audittest.Open(t, auditchain.Options{Witnesses: witnesses, OnWitness: outcomes.add})
	audittest.Append(t, l, audittest.Violation(1))
	audittest.Close(t, l)
	for name := range answers {
		// The log's own signature, once or twice, is nobody's witness.
		if err := outcomes.of(t, name); err == nil != (name == "an honest answer") {
			t.Errorf("%s: %v", name, err)
		}
	}
	audittest.WantIntact(t, audittest.VerifyPath(t, l.Path(), auditchain.VerifyOptions{}), 1)
	audittest.OpenAt(t, l.Path(), auditchain.Options{})
}

// cosignedBy adds the signature of a witness to a note.
func cosignedBy(t *testing.T, key *checkpoint.Key, note []byte) []byte {
	c, err := checkpoint.Parse(string(note))
	if err != nil {
		t.Error(err)
		return nil
	}
	own, err := checkpoint.Sign(c, key.Cosigner(time.Now()))
	if err != nil {
		t.Error(err)
		return nil
	}
	cosigned, err := checkpoint.Merge(note, own)
	if err != nil {
		t.Error(err)
	}
	return cosigned
}

// falseSignature is the signature line of a note with a letter changed.
func falseSignature(note []byte) []byte {
	line := bytes.Clone(note[bytes.Index(note, []byte("— ")):])
	if at := len(line) - 10; line[at] == 'A' {
		line[at] = 'B'
	} else {
		line[at] = 'A'
	}
	return line
}
