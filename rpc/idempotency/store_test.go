package idempotency_test

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/idempotency"
)

func open(t testing.TB, path string, o idempotency.Options) *idempotency.Store {
	t.Helper()
	s, err := idempotency.Open(context.Background(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// memoryDir is a directory that needs no disk, where the system has one. A store waits
// for the disk at every step; what it remembers does not depend on that.
func memoryDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "idempotency-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func digest(s string) [sha256.Size]byte { return sha256.Sum256([]byte(s)) }

func request(key string) callee.KeyedRequest {
	return callee.KeyedRequest{From: "agent://a", TenantID: "t", Capability: "pay", Key: key}
}

// A request whose time is over while it is written down is either there or not: with an
// error it is not, since its caller will repeat it.
func TestBeginIsWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(memoryDir(t), "idempotency.db"), idempotency.Options{})
	defer func() { _ = s.Close() }()
	refused := 0
	for i := range 3000 {
		key := fmt.Sprint(i)
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%150)*time.Microsecond)
		_, err := s.Begin(ctx, request(key), digest("x"), false)
		cancel()
		if err == nil {
			continue
		}
		refused++
		if prior, err := s.Begin(t.Context(), request(key), digest("x"), false); err != nil || prior.State != callee.PriorNone {
			t.Fatalf("the first try of %s was refused, and the second finds %+v, %v", key, prior, err)
		}
	}
	if refused == 0 {
		t.Error("nothing was refused")
	}
}

func TestAnswerOutlivesTheProcess(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state", "idempotency.db")
	s := open(t, path, idempotency.Options{})
	for _, key := range []string{"done", "begun"} {
		if prior, err := s.Begin(t.Context(), request(key), digest("x"), false); err != nil || prior.State != callee.PriorNone {
			t.Fatalf("%s: %+v, %v", key, prior, err)
		}
	}
	const reply = `{"ok":true,"data":{"n":  1}}` // to the byte
	if err := s.Finish(t.Context(), request("done"), json.RawMessage(reply)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, path, idempotency.Options{})
	defer func() { _ = s.Close() }()
	prior, err := s.Begin(t.Context(), request("done"), digest("y"), false)
	if err != nil || prior.State != callee.PriorDone || string(prior.Reply) != reply || prior.Digest != digest("x") {
		t.Errorf("%+v, %v", prior, err)
	}
	if prior, err = s.Begin(t.Context(), request("begun"), digest("x"), false); err != nil || prior.State != callee.PriorBegun {
		t.Errorf("%+v, %v", prior, err)
	}
	for _, other := range []callee.KeyedRequest{
		{From: "agent://b", TenantID: "t", Capability: "pay", Key: "done"}, {From: "agent://a", Capability: "pay", Key: "done"},
		{From: "agent://a", TenantID: "t", Capability: "refund", Key: "done"}, request("DONE"),
	} {
		if prior, err := s.Begin(t.Context(), other, digest("x"), false); err != nil || prior.State != callee.PriorNone {
			t.Errorf("%+v is taken for another: %+v, %v", other, prior, err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v: answers are for their owner alone", info.Mode(), err)
	}
}

// The store does what a map would, with what has expired left out. One file serves all
// cases, each with keys of its own: opening one is most of the time that a case takes.
func TestAgainstAMap(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_800_000_000_000)
	path := filepath.Join(memoryDir(t), "db")
	options := idempotency.Options{TTL: time.Minute, Now: func() time.Time { return now }}
	s := open(t, path, options)
	defer func() { _ = s.Close() }()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		request := func(key string) callee.KeyedRequest { return request(fmt.Sprint(n, key)) }
		type entry struct {
			prior   callee.Prior
			expires time.Time
		}
		model := map[string]*entry{}
		ctx := context.Background()
		key := rapid.SampledFrom([]string{"a", "b", "c"})
		t.Repeat(map[string]func(*rapid.T){
			"begin": func(t *rapid.T) {
				k, d := key.Draw(t, "key"), digest(rapid.SampledFrom([]string{"x", "y"}).Draw(t, "payload"))
				want := callee.Prior{}
				if e := model[k]; e != nil && now.Before(e.expires) {
					want = e.prior
				} else {
					model[k] = &entry{callee.Prior{State: callee.PriorBegun, Digest: d}, now.Add(time.Minute)}
				}
				got, err := s.Begin(ctx, request(k), d, false)
				if err != nil || got.State != want.State || got.Digest != want.Digest || string(got.Reply) != string(want.Reply) {
					t.Fatalf("%s: got %+v, %v, want %+v", k, got, err, want)
				}
			},
			"finish": func(t *rapid.T) {
				k, reply := key.Draw(t, "key"), json.RawMessage(rapid.SampledFrom([]string{"1", "2"}).Draw(t, "reply"))
				if e := model[k]; e == nil || !now.Before(e.expires) || e.prior.State != callee.PriorBegun {
					return
				}
				model[k].prior.State, model[k].prior.Reply = callee.PriorDone, reply
				if err := s.Finish(ctx, request(k), reply); err != nil {
					t.Fatal(err)
				}
			},
			"forget": func(t *rapid.T) {
				k := key.Draw(t, "key")
				if e := model[k]; e != nil && e.prior.State == callee.PriorBegun {
					delete(model, k)
				}
				if err := s.Forget(ctx, request(k)); err != nil {
					t.Fatal(err)
				}
			},
			"time passes": func(t *rapid.T) { now = now.Add(time.Duration(rapid.IntRange(1, 40).Draw(t, "s")) * time.Second) },
			"restart": func(t *rapid.T) {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				var err error
				if s, err = idempotency.Open(ctx, path, options); err != nil {
					t.Fatal(err)
				}
			},
		})
	})
}

func TestFilesThatAreNoStore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	damaged := filepath.Join(dir, "damaged")
	if err := os.WriteFile(damaged, []byte(strings.Repeat("not a database ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	newer := filepath.Join(dir, "newer")
	db, err := sql.Open("sqlite", newer)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("PRAGMA user_version = 9"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{damaged: "move the file away", newer: "its format is 9", filepath.Join(damaged, "below"): "idempotency: "} {
		if s, err := idempotency.Open(t.Context(), path, idempotency.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v %v", path, s, err)
		}
	}
	// A start that is cut short says nothing of damage.
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := idempotency.Open(ended, filepath.Join(dir, "sound"), idempotency.Options{}); !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "move the file") {
		t.Errorf("cancelled: %v", err)
	}
}

func Example() {
	dir, _ := os.MkdirTemp("", "idempotency")
	defer func() { _ = os.RemoveAll(dir) }()
	ctx := context.Background()
	s, err := idempotency.Open(ctx, filepath.Join(dir, "idempotency.db"), idempotency.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = s.Close() }()
	r := callee.KeyedRequest{From: "agent://concierge", Capability: "pay", Key: "order-17"}
	payload := sha256.Sum256([]byte(`{"cents":100}`))
	first, _ := s.Begin(ctx, r, payload, false)
	_ = s.Finish(ctx, r, json.RawMessage(`{"ok":true,"data":{"receipt":1}}`))
	again, _ := s.Begin(ctx, r, payload, false)
	fmt.Println(first.State == callee.PriorNone, string(again.Reply))
	// Output: true {"ok":true,"data":{"receipt":1}}
}

// What a keyed call costs more than one without a key.
func BenchmarkRequest(b *testing.B) {
	s := open(b, filepath.Join(b.TempDir(), "idempotency.db"), idempotency.Options{})
	for i := 0; b.Loop(); i++ {
		r := request(fmt.Sprint(i))
		if prior, err := s.Begin(b.Context(), r, digest("x"), false); err != nil || prior.State != callee.PriorNone {
			b.Fatal(prior, err)
		}
		if err := s.Finish(b.Context(), r, json.RawMessage(`1`)); err != nil {
			b.Fatal(err)
		}
	}
}
