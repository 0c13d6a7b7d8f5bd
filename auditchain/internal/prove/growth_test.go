package prove_test

import (
	"context"
	"errors"
	"testing"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/internal/audittest"
	"github.com/agentd/agentd/auditchain/internal/prove"
	"github.com/agentd/agentd/auditchain/internal/store"
	"github.com/agentd/agentd/auditchain/proof"
	"golang.org/x/mod/sumdb/tlog"
)

func openReader(t *testing.T, path string) *store.Reader {
	t.Helper()
	r, err := store.OpenReader(context.Background(), path, store.SQLite)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// Each proof of growth convinces package tlog, with roots computed by RFC 6962's
// own definition.
func TestGrowth(t *testing.T) {
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{})
	audittest.Fill(t, l, 530)
	var leaves [][]byte
	for _, e := range audittest.Collect(t, l.Reader, auditchain.Filter{}) {
		leaves = append(leaves, e.Hash[:])
	}
	db := openReader(t, l.Path())
	root := func(size int64) tlog.Hash { return tlog.Hash(audittest.TreeHash(leaves[:size])) }
	for _, now := range []int64{2, 3, 8, 256, 257, 512, 530} {
		for _, old := range []int64{1, 2, 7, 255, 256, 500, 529} {
			if old >= now {
				continue
			}
			p, err := prove.Growth(t.Context(), &db.DB, old, now)
			if err == nil {
				err = tlog.CheckTree(p, now, root(now), old, root(old))
			}
			if err != nil {
				t.Errorf("from %d to %d: %v", old, now, err)
			}
		}
	}
	for _, sizes := range [][2]int64{{0, 5}, {5, 5}, {6, 5}} {
		if p, err := prove.Growth(t.Context(), &db.DB, sizes[0], sizes[1]); p != nil || err != nil {
			t.Errorf("from %d to %d: %v, %v", sizes[0], sizes[1], p, err)
		}
	}
	_, err := prove.Growth(t.Context(), &db.DB, 5, 531)
	audittest.WantCode(t, err, auditchain.CodeTampered)
}

// The rotations of a log lead from its first key to its newest, one step each.
func TestRotations(t *testing.T) {
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{})
	if all, err := l.Rotations(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("before a rotation: %v, %v", all, err)
	}
	for range 3 {
		audittest.Fill(t, l, 5)
		if _, err := l.RotateKey(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	audittest.Fill(t, l, 5)
	keys := audittest.PublicKeys(t, l.Reader)
	all, err := l.Rotations(t.Context())
	if err != nil || len(all) != 3 || len(keys) != 4 {
		t.Fatalf("%d rotations of %d keys, %v", len(all), len(keys), err)
	}
	for i, p := range all {
		trusted, err := checkpoint.NewKeys(keys[i])
		if err != nil {
			t.Fatal(err)
		}
		result, err := p.Verify(trusted)
		if err != nil || result.Key != keys[i] || result.Size != int64(6*(i+1)) || p.Record.Seq != result.Size || !result.ContentShown {
			t.Errorf("rotation %d: %+v, %v", i, result, err)
		}
		if p.Record.Content == nil || p.Record.Kind != string(auditchain.KindCheckpoint) {
			t.Errorf("rotation %d proves %+v", i, p.Record)
		}
	}
}

func TestUnprovable(t *testing.T) {
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{})
	_, err := l.Prove(t.Context(), 1, auditchain.ProveOptions{})
	audittest.WantCode(t, err, auditchain.CodeNotFound) // an empty log
	for i := range 3 {
		audittest.Append(t, l, audittest.Violation(i))
	}
	_, err = l.Prove(t.Context(), 3, auditchain.ProveOptions{})
	audittest.WantCode(t, err, auditchain.CodeInvalid) // no checkpoint yet
	audittest.Close(t, l)
	for _, seq := range []int64{-1, 0, 4} {
		_, err := audittest.OpenReader(t, l.Path()).Prove(t.Context(), seq, auditchain.ProveOptions{})
		audittest.WantCode(t, err, auditchain.CodeNotFound)
	}
	for name, sql := range map[string]string{
		"a checkpoint that is none": `UPDATE checkpoints SET note = 'x'`,
		"a neighbour removed":       `DELETE FROM records WHERE seq = 1`,
	} {
		s := audittest.SceneAt(t, audittest.CopyLog(t, l.Path()))
		s.SQL(sql)
		_, err := audittest.OpenReader(t, s.Path).Prove(t.Context(), 2, auditchain.ProveOptions{})
		if auditchain.CodeOf(err) != auditchain.CodeTampered {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := audittest.OpenReader(t, l.Path())
	if _, err := r.Prove(ctx, 2, auditchain.ProveOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := r.Rotations(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// The first record chains to the hash of the log's first key.
func TestFirstRecord(t *testing.T) {
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{})
	audittest.Fill(t, l, 2)
	if _, err := l.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	db := openReader(t, l.Path())
	first, err := prove.Record(t.Context(), &db.DB, 1, true)
	if err != nil || first.Previous != db.Identity.Genesis() || first.Format != proof.Format {
		t.Errorf("%+v, %v", first, err)
	}
	second, err := prove.Record(t.Context(), &db.DB, 2, false)
	if err != nil || second.Previous != audittest.Get(t, l.Reader, 1).Hash || second.Record.Content != nil || len(second.Path) != 1 {
		t.Errorf("%+v, %v", second, err)
	}
}
