package prove_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/internal/audittest"
	"github.com/agentd/agentd/auditchain/proof"
)

func TestEveryRecordCanBeProven(t *testing.T) {
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{Now: audittest.SteppedClock(), CheckpointRecords: 170})
	audittest.Fill(t, l, 520)
	if _, err := l.Redact(context.Background(), auditchain.Filter{Since: audittest.Get(t, l.Reader, 100).Time, Until: audittest.Get(t, l.Reader, 103).Time}, "r"); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Prune(context.Background(), audittest.Get(t, l.Reader, 40).Time, "r"); err != nil {
		t.Fatal(err)
	}
	keys := publicKeys(t, l)
	for seq := int64(40); seq <= 522; seq += 1 + seq%7 {
		p, err := proof.Parse(proofFile(t, l.Reader, seq, auditchain.ProveOptions{}))
		if err != nil {
			t.Fatal(err)
		}
		result, err := p.Verify(keys)
		if err != nil {
			t.Fatalf("record %d: %v", seq, err)
		}
		e, err := l.Get(context.Background(), seq)
		if err != nil || result.Hash != e.Hash || result.Origin != l.Origin() || result.Time != e.Time || result.ContentShown == e.Erased() {
			t.Fatalf("record %d: %+v, %v", seq, result, err)
		}
	}
	_, err := l.Prove(context.Background(), 39, auditchain.ProveOptions{})
	audittest.WantCode(t, err, auditchain.CodeNotFound)
	audittest.Append(t, l, audittest.Violation(1)) // signed at once, after a pruning
	seq := audittest.Append(t, l, audittest.Violation(2))
	_, err = l.Prove(context.Background(), seq, auditchain.ProveOptions{})
	audittest.WantCode(t, err, auditchain.CodeInvalid)
	if _, err := l.Checkpoint(context.Background()); err != nil {
		t.Fatal(err)
	}
	proofFile(t, l.Reader, seq, auditchain.ProveOptions{})
}

func TestProofShowsNothingElse(t *testing.T) {
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{})
	audittest.Append(t, l, auditchain.Record{Kind: auditchain.KindRPCCall, Body: json.RawMessage(`{"note":"neighbour"}`)})
	audittest.Append(t, l, auditchain.Record{Kind: auditchain.KindRPCCall, Body: json.RawMessage(`{"note":"subject"}`)})
	if _, err := l.Checkpoint(context.Background()); err != nil {
		t.Fatal(err)
	}
	whole, bare := proofFile(t, l.Reader, 2, auditchain.ProveOptions{}), proofFile(t, l.Reader, 2, auditchain.ProveOptions{WithoutContent: true})
	if bytes.Contains(whole, []byte("neighbour")) || !bytes.Contains(whole, []byte("subject")) || bytes.Contains(bare, []byte("subject")) {
		t.Errorf("%s\n%s", whole, bare)
	}
	keys := publicKeys(t, l)
	p, err := proof.Parse(bare)
	if err != nil {
		t.Fatal(err)
	}
	if result, err := p.Verify(keys); err != nil || result.ContentShown {
		t.Errorf("%+v, %v", result, err)
	}
}

func TestChangedProofsAreRefused(t *testing.T) {
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{Now: audittest.SteppedClock()})
	audittest.Fill(t, l, 9)
	if _, err := l.Checkpoint(context.Background()); err != nil {
		t.Fatal(err)
	}
	keys := publicKeys(t, l)
	text := proofFile(t, l.Reader, 5, auditchain.ProveOptions{})
	other, _ := checkpoint.GenerateKey("agentd.audit/other/1")
	for name, change := range map[string]func(p *proof.Proof){
		"seq":             func(p *proof.Proof) { p.Record.Seq = 6 },
		"seq beyond":      func(p *proof.Proof) { p.Record.Seq = 10 },
		"seq zero":        func(p *proof.Proof) { p.Record.Seq = 0 },
		"time":            func(p *proof.Proof) { p.Record.TS++ },
		"tenant":          func(p *proof.Proof) { p.Record.Tenant = "other" },
		"kind":            func(p *proof.Proof) { p.Record.Kind = "rpc_call" },
		"digest":          func(p *proof.Proof) { p.Record.Digest[3] ^= 1 },
		"body":            func(p *proof.Proof) { p.Record.Content.Body = json.RawMessage(`{}`) },
		"broken body":     func(p *proof.Proof) { p.Record.Content.Body = json.RawMessage(`{`) },
		"salt":            func(p *proof.Proof) { p.Record.Content.Salt[0] ^= 1 },
		"peer":            func(p *proof.Proof) { p.Record.Content.Peer += "x" },
		"session to side": func(p *proof.Proof) { c := p.Record.Content; c.Side, c.Session = c.Session, c.Side },
		"previous":        func(p *proof.Proof) { p.Previous[0] ^= 1 },
		"path":            func(p *proof.Proof) { p.Path[1][0] ^= 1 },
		"path short":      func(p *proof.Proof) { p.Path = p.Path[1:] },
		"path long":       func(p *proof.Proof) { p.Path = append(p.Path, p.Path[0]) },
		"path none":       func(p *proof.Proof) { p.Path = nil },
		"checkpoint":      func(p *proof.Proof) { p.Checkpoint = "nothing" },
		"signed by another": func(p *proof.Proof) {
			c, _ := checkpoint.Parse(p.Checkpoint)
			note, _ := checkpoint.Sign(checkpoint.Checkpoint{Origin: other.Name(), Size: c.Size, Root: c.Root}, other.Signer())
			p.Checkpoint = string(note)
		},
	} {
		p, err := proof.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		change(p)
		_, err = p.Verify(keys)
		if !errors.Is(err, proof.ErrFalse) && !errors.Is(err, proof.ErrMalformed) && !errors.Is(err, checkpoint.ErrUntrusted) && !errors.Is(err, checkpoint.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func proofFile(t testing.TB, r *auditchain.Reader, seq int64, options auditchain.ProveOptions) []byte {
	t.Helper()
	p, err := r.Prove(context.Background(), seq, options)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func publicKeys(t testing.TB, l *auditchain.Log) *checkpoint.Keys {
	t.Helper()
	texts, err := l.PublicKeys()
	if err != nil {
		t.Fatal(err)
	}
	keys, err := checkpoint.NewKeys(texts...)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}
