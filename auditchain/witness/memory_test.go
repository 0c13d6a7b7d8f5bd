package witness_test

import (
	"errors"
	"os"
	"testing"

	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/witness"
)

// A witness whose folder was set back, emptied or edited goes on from what it remembers:
// it co-signs nothing that contradicts that.
func TestRecall(t *testing.T) {
	t.Parallel()
	logs := t.TempDir()
	own := openLog(t, logs, "witness")
	l := openLog(t, logs, "owner")
	grow(t, l, 3)
	older := t.TempDir()
	folder := t.TempDir()
	server := serve(t, own, folder)
	if err := cosign(t, remote(server, "agent://owner", l), l); err != nil {
		t.Fatal(err)
	}
	copyFolder(t, folder, older)
	grow(t, l, 3)
	if err := cosign(t, remote(server, "agent://owner", l), l); err != nil {
		t.Fatal(err)
	}
	m, due, err := server.Unremembered(t.Context(), "agent://owner", 64)
	if err != nil || !due || m.Origin == "" {
		t.Fatalf("a new log: %+v, %v, %v", m, due, err)
	}
	server.Remembered(m)
	if _, due, err := server.Unremembered(t.Context(), "agent://owner", 1); due || err != nil {
		t.Errorf("a log that has not grown is due: %v, %v", due, err)
	}

	for name, at := range map[string]string{"an older state": older, "no state": t.TempDir()} {
		set := serve(t, own, at)
		if edited, err := set.Recall(t.Context(), m); !edited || err != nil {
			t.Errorf("%s: %v, %v", name, edited, err)
		}
		note, err := set.Latest(t.Context(), m.Origin)
		if err != nil || string(note) != m.Checkpoint {
			t.Errorf("%s: the witness goes on from %q, %v", name, note, err)
		}
		// A log that forgot its last three records, and then wrote others.
		other := openLog(t, t.TempDir(), "owner")
		grow(t, other, 9)
		if err := cosign(t, remote(set, "agent://owner", other), other); !errors.Is(err, checkpoint.ErrInconsistent) {
			t.Errorf("%s: another log of the agent: %v", name, err)
		}
		// The folder has it again, so that the next start finds nothing to say.
		if edited, err := serve(t, own, at).Recall(t.Context(), m); edited || err != nil {
			t.Errorf("%s, again: %v, %v", name, edited, err)
		}
		grow(t, l, 1)
		if err := cosign(t, remote(set, "agent://owner", l), l); err != nil {
			t.Errorf("%s: the log itself, grown: %v", name, err)
		}
	}
}

// Files that are set back while the witness runs change nothing for it.
func TestSetBackWhileRunning(t *testing.T) {
	t.Parallel()
	logs, folder, older := t.TempDir(), t.TempDir(), t.TempDir()
	own, l := openLog(t, logs, "witness"), openLog(t, logs, "owner")
	server := serve(t, own, folder)
	grow(t, l, 1)
	if err := cosign(t, remote(server, "agent://owner", l), l); err != nil {
		t.Fatal(err)
	}
	copyFolder(t, folder, older)
	newest := grow(t, l, 1)
	if err := cosign(t, remote(server, "agent://owner", l), l); err != nil {
		t.Fatal(err)
	}
	now, err := checkpoint.Parse(string(newest))
	if err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{older, t.TempDir()} {
		if err := os.RemoveAll(folder); err != nil {
			t.Fatal(err)
		}
		copyFolder(t, from, folder)
		note, err := server.Latest(t.Context(), now.Origin)
		if c, perr := checkpoint.Parse(string(note)); err != nil || perr != nil || c.Size != now.Size {
			t.Errorf("%q, %v", note, err)
		}
	}
}

// A memory that this witness has not signed, or of no sense, is none.
func TestFalseMemories(t *testing.T) {
	t.Parallel()
	logs := t.TempDir()
	own, l := openLog(t, logs, "witness"), openLog(t, logs, "owner")
	signed := string(grow(t, l, 1))
	c, err := checkpoint.Parse(signed)
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]witness.Memory{
		"not signed by the witness": {Owner: "a", Origin: c.Origin, Keys: []string{"k"}, Checkpoint: signed},
		"of another log":            {Owner: "a", Origin: "other", Keys: []string{"k"}, Checkpoint: signed},
		"without a key":             {Owner: "a", Origin: c.Origin, Checkpoint: signed},
		"no checkpoint":             {Owner: "a", Origin: c.Origin, Keys: []string{"k"}},
	} {
		if _, err := serve(t, own, t.TempDir()).Recall(t.Context(), m); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func copyFolder(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}
