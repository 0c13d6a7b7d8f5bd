package auditchain

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/proof"
)

func prove(t testing.TB, r *Reader, seq int64, options ProveOptions) []byte {
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

func TestEveryRecordCanBeProven(t *testing.T) {
	l := openLog(t, Options{Now: steppedClock(), CheckpointRecords: 170})
	fill(t, l, 520)
	if _, err := l.Redact(context.Background(), Filter{Since: entryTime(t, l, 100), Until: entryTime(t, l, 103)}, "r"); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Prune(context.Background(), entryTime(t, l, 40), "r"); err != nil {
		t.Fatal(err)
	}
	keys := publicKeys(t, l)
	for seq := int64(40); seq <= 522; seq += 1 + seq%7 {
		p, err := proof.Parse(prove(t, l.Reader, seq, ProveOptions{}))
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
	_, err := l.Prove(context.Background(), 39, ProveOptions{})
	wantCode(t, err, CodeNotFound)
	seq := appendRecord(t, l, violation(1))
	_, err = l.Prove(context.Background(), seq, ProveOptions{})
	wantCode(t, err, CodeInvalid)
	if _, err := l.Checkpoint(context.Background()); err != nil {
		t.Fatal(err)
	}
	prove(t, l.Reader, seq, ProveOptions{})
}

func TestProofShowsNothingElse(t *testing.T) {
	l := openLog(t, Options{})
	appendRecord(t, l, Record{Kind: KindRPCCall, Body: json.RawMessage(`{"note":"neighbour"}`)})
	appendRecord(t, l, Record{Kind: KindRPCCall, Body: json.RawMessage(`{"note":"subject"}`)})
	if _, err := l.Checkpoint(context.Background()); err != nil {
		t.Fatal(err)
	}
	whole, bare := prove(t, l.Reader, 2, ProveOptions{}), prove(t, l.Reader, 2, ProveOptions{WithoutContent: true})
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
	l := openLog(t, Options{Now: steppedClock()})
	fill(t, l, 9)
	if _, err := l.Checkpoint(context.Background()); err != nil {
		t.Fatal(err)
	}
	keys := publicKeys(t, l)
	text := prove(t, l.Reader, 5, ProveOptions{})
	other, _ := newLogKey("other")
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

func TestFromCheckpoint(t *testing.T) {
	l := openLog(t, Options{Now: steppedClock(), CheckpointInterval: time.Hour})
	fill(t, l, 300)
	closeLog(t, l)
	l = openAt(t, l.Path(), Options{CheckpointInterval: time.Hour})
	fill(t, l, 20)
	report := verify(t, l.Reader, VerifyOptions{FromCheckpoint: true})
	wantIntact(t, report, 20)
	if report.First != 301 || report.Last != 320 || report.Signed != 300 || report.Unsigned() != 20 {
		t.Errorf("%+v", report)
	}
	closeLog(t, l)
	report = verifyPath(t, l.Path(), VerifyOptions{FromCheckpoint: true})
	if !report.OK() || report.Records != 0 || report.First != 0 || report.Last != 320 || report.Signed != 320 {
		t.Errorf("%+v", report)
	}
	// The tree is still held against the signature.
	s := &scene{t: t, path: l.Path()}
	s.sql(`UPDATE records SET hash = zeroblob(32) WHERE seq = 310`)
	report = verifyPath(t, l.Path(), VerifyOptions{FromCheckpoint: true})
	if report.OK() || report.Faults[0].Class != FaultRewritten {
		t.Errorf("%+v", report)
	}
}

func publicKeys(t testing.TB, l *Log) *checkpoint.Keys {
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
