package witness_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/witness"
)

// openLog opens, or creates, the log of an agent in a folder.
func openLog(t *testing.T, folder, name string) *auditchain.Log {
	t.Helper()
	l, err := auditchain.Open(t.Context(), filepath.Join(folder, name+".db"), auditchain.Options{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// grow appends n records and signs them.
func grow(t *testing.T, l *auditchain.Log, n int) []byte {
	t.Helper()
	for i := range n {
		_, err := l.Append(t.Context(), auditchain.Record{Kind: auditchain.KindLifecycle, Body: fmt.Appendf(nil, `{"event":"e%d"}`, i)})
		if err != nil {
			t.Fatal(err)
		}
	}
	signed, err := l.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// serve makes the owner of a log a witness that keeps its state in folder.
func serve(t *testing.T, l *auditchain.Log, folder string) *witness.Server {
	t.Helper()
	registry, err := witness.OpenRegistry(folder)
	if err != nil {
		t.Fatal(err)
	}
	store, err := checkpoint.NewFolderStore(folder)
	if err != nil {
		t.Fatal(err)
	}
	return witness.NewServer(l.Keeper(store, registry.Keys), registry)
}

// remote is the witness as owner's log l sees it.
func remote(server *witness.Server, owner string, l *auditchain.Log) *witness.Remote {
	ask := func(ctx context.Context, q []byte) ([]byte, error) {
		a, _ := server.Answer(ctx, owner, q) // the error is in the answer
		return a, nil
	}
	return witness.NewRemote("agent://witness", ask, l)
}

// cosign shows the log's newest state, with the proof of growth that it needs.
func cosign(t *testing.T, w *witness.Remote, l *auditchain.Log) error {
	t.Helper()
	_, err := l.ShowTo(t.Context(), w)
	return err
}

func TestWitnessFollowsOneLogOfEachAgent(t *testing.T) {
	t.Parallel()
	folder, kept := t.TempDir(), filepath.Join(t.TempDir(), "witness")
	own, log := openLog(t, folder, "witness"), openLog(t, folder, "a")
	server := serve(t, own, kept)
	w := remote(server, "agent://a", log)
	grow(t, log, 3)
	if err := cosign(t, w, log); err != nil {
		t.Fatalf("the first state: %v", err)
	}
	grow(t, log, 700)
	if err := cosign(t, w, log); err != nil {
		t.Fatalf("grown: %v", err)
	}
	note, err := w.Latest(t.Context(), log.Origin())
	if err != nil || !strings.Contains(string(note), "\n703\n") || !strings.Contains(string(note), "— "+own.Origin()+" ") {
		t.Errorf("the witness keeps %q, %v", note, err)
	}

	another := openLog(t, t.TempDir(), "a")
	grow(t, another, 800)
	if err := cosign(t, remote(server, "agent://a", another), another); !errors.Is(err, checkpoint.ErrInconsistent) {
		t.Errorf("another log of the same agent: %v", err)
	}
	if err := cosign(t, remote(server, "agent://b", log), log); !errors.Is(err, checkpoint.ErrInconsistent) {
		t.Errorf("the log of another agent: %v", err)
	}
	if err := cosign(t, remote(server, "agent://b", another), another); err != nil {
		t.Errorf("another agent's log: %v", err)
	}

	// What the witness knows outlives it.
	server = serve(t, own, kept)
	third := openLog(t, t.TempDir(), "a")
	grow(t, third, 1)
	if err := cosign(t, remote(server, "agent://a", third), third); !errors.Is(err, checkpoint.ErrInconsistent) {
		t.Errorf("another log, after the witness was started again: %v", err)
	}
	if err := cosign(t, remote(server, "agent://a", log), log); err != nil {
		t.Errorf("the same log, after the witness was started again: %v", err)
	}
}

func TestTrustFollowsRotations(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	own, log := openLog(t, folder, "witness"), openLog(t, folder, "a")
	server := serve(t, own, t.TempDir())
	w := remote(server, "agent://a", log)
	grow(t, log, 2)
	if err := cosign(t, w, log); err != nil {
		t.Fatal(err)
	}
	for range 3 { // several since the witness was asked last
		if _, err := log.RotateKey(t.Context()); err != nil {
			t.Fatal(err)
		}
		grow(t, log, 1)
	}
	if err := cosign(t, w, log); err != nil {
		t.Errorf("after three rotations: %v", err)
	}

	// A key that nothing introduces: the log's key was lost and replaced.
	path := log.Path()
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path + ".key"); err != nil {
		t.Fatal(err)
	}
	log, err := auditchain.Open(t.Context(), path, auditchain.Options{ReplaceLostKey: true})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	grow(t, log, 1)
	if err := cosign(t, remote(server, "agent://a", log), log); !errors.Is(err, checkpoint.ErrUntrusted) {
		t.Errorf("with a key that nobody vouches for: %v", err)
	}
}

func TestAnswersToNonsense(t *testing.T) {
	t.Parallel()
	server := serve(t, openLog(t, t.TempDir(), "witness"), t.TempDir())
	keys := `"` + strings.Repeat(`x","`, 300) + `"`
	for _, q := range []string{
		"", "{}", "null", `{"op":"other"}`, `{"op":"latest","extra":1}`, `{"op":"latest","op":"cosign"}`, `{"op":"latest"} 1`,
		`{"op":"cosign","checkpoint":"x"}`, `{"op":"cosign","old":-1}`, `{"op":"cosign","keys":[` + keys + `]}`,
		`{"op":"latest","origin":"` + strings.Repeat("a", witness.MaxRequestBytes) + `"}`,
	} {
		a, err := server.Answer(t.Context(), "agent://a", []byte(q))
		var got struct{ Outcome, Message string }
		if err == nil || json.Unmarshal(a, &got) != nil || got.Outcome != "malformed" || got.Message == "" {
			t.Errorf("%.60q: %s, %v", q, a, err)
		}
	}
	a, err := server.Answer(t.Context(), "agent://a", []byte(`{"op":"latest","origin":"unknown"}`))
	if err != nil || string(a) != `{"outcome":"ok"}` {
		t.Errorf("a log that is not known: %s, %v", a, err)
	}
}

func TestAnswersThatARemoteRefuses(t *testing.T) {
	t.Parallel()
	for _, reply := range []string{"", "x", "{}", `{"outcome":"fine"}`, `{"outcome":"ok","extra":1}`, `{"outcome":"malformed"}`, `{"outcome":"failed","message":"m"}`} {
		w := witness.NewRemote("w", func(context.Context, []byte) ([]byte, error) { return []byte(reply), nil }, nil)
		if note, err := w.Latest(t.Context(), "o"); err == nil || !errors.Is(err, witness.ErrMalformed) && !errors.Is(err, witness.ErrRefused) {
			t.Errorf("%q: %q, %v", reply, note, err)
		}
	}
	down := errors.New("down")
	w := witness.NewRemote("w", func(context.Context, []byte) ([]byte, error) { return nil, down }, nil)
	if _, err := w.Latest(t.Context(), "o"); !errors.Is(err, down) {
		t.Error(err)
	}
	if _, err := w.Cosign(t.Context(), nil, 0, nil); err == nil {
		t.Error("a witness without a log co-signs")
	}
}

// A witness that cannot read what it knew must not begin anew: whoever damaged
// the file would get a rewritten log co-signed.
func TestDamagedRegistryIsRefused(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	own, log := openLog(t, t.TempDir(), "witness"), openLog(t, t.TempDir(), "a")
	grow(t, log, 1)
	if err := cosign(t, remote(serve(t, own, folder), "agent://a", log), log); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.log.json"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, damaged := range []string{"", "{", `{"owner":"agent://b"` + string(text[strings.IndexByte(string(text), ','):]), `{"owner":"agent://a","origin":"o","keys":[]}`} {
		if err := os.WriteFile(files[0], []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := witness.OpenRegistry(folder); err == nil || !strings.Contains(err.Error(), files[0]) {
			t.Errorf("%q: %v", damaged, err)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"op":"latest","origin":"o"}`))
	f.Add([]byte(`{"op":"cosign","checkpoint":"o\n1\nAAAA\n\n— o AAAA\n","old":1,"proof":["AAAA"],"keys":["k"],"rotations":[{}]}`))
	folder := f.TempDir()
	registry, err := witness.OpenRegistry(folder)
	if err != nil {
		f.Fatal(err)
	}
	store, err := checkpoint.NewFolderStore(folder)
	if err != nil {
		f.Fatal(err)
	}
	key, err := checkpoint.GenerateKey("w")
	if err != nil {
		f.Fatal(err)
	}
	server := witness.NewServer(checkpoint.NewKeeper(func() *checkpoint.Key { return key }, store, registry.Keys), registry)
	f.Fuzz(func(t *testing.T, q []byte) {
		a, _ := server.Answer(context.Background(), "agent://a", q)
		if !json.Valid(a) {
			t.Fatalf("answered %q", a)
		}
		w := witness.NewRemote("w", func(context.Context, []byte) ([]byte, error) { return q, nil }, nil)
		_, _ = w.Latest(context.Background(), "o")
	})
}
