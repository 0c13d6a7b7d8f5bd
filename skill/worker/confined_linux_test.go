package worker_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/agentd/agentd/internal/descendants"
	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/procmark"
	"github.com/agentd/agentd/internal/proctree"
	"github.com/agentd/agentd/skill/sandbox"
	"github.com/agentd/agentd/skill/worker"
)

// tokens gives every call the same token.
type tokens struct{}

func (tokens) Register(context.Context) (string, func()) { return "token-of-the-call", func() {} }

// A worker is confined as a process is: it sees no variable that nobody has named, has a
// temporary folder of its own, is marked, and leaves nothing running.
func TestBoundaries(t *testing.T) {
	if missing := sandbox.Available().Missing(); len(missing) > 0 {
		t.Skipf("this kernel cannot hold a program to its policy: %v", missing)
	}
	t.Setenv("WORKER_SECRET", "hunter2")
	calls := filepath.Join(t.TempDir(), "calls")
	folders, err := sandbox.OpenFolders(calls)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(folders.Close)
	family, err := descendants.NewFamily(false)
	if err != nil {
		t.Fatal(err)
	}
	member := family.Member()
	p, log := pool(t, "rogue", func(c *worker.Config) {
		c.Program.Calls, c.Program.Descendants = tokens{}, member
		c.Program.Sandbox = &sandbox.Sandbox{Policy: sandbox.Default(filepath.Dir(os.Args[0])), Marks: member.Marks(), Folders: folders}
	})
	var got struct{ Token, Home, Worker, Secret string }
	if err := json.Unmarshal([]byte(mustCall(t, p, "params", "null")), &got); err != nil {
		t.Fatal(err)
	}
	if got.Token != "token-of-the-call" || !strings.HasPrefix(got.Home, calls) || got.Worker != "1" || got.Secret != "" {
		t.Errorf("%+v", got)
	}
	pid, _ := strconv.Atoi(mustCall(t, p, "pid", "null"))
	if mark, err := procmark.Of(pid); err != nil || !member.Marks().Made(mark) || member.CallOf(mark) != "the worker models" {
		t.Errorf("its mark is %v, %v", mark, err)
	}

	// It forks into a session of its own, hands on its pipes, and ends.
	_, _ = call(t.Context(), p, "fork", "null") // the answer may come before the end, or not
	eventually.Holds(t, "a restart", func() bool { return p.Status().Restarts == 1 && p.Status().Serving == 1 })
	mustCall(t, p, "echo", "1")
	_, after, _ := strings.Cut(log.String(), "forked ")
	number, _, _ := strings.Cut(after, "\"")
	forked, err := strconv.Atoi(number)
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	if left, err := proctree.Read(forked); err == nil && !left.Zombie {
		t.Errorf("process %d outlived its worker", forked)
	}
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(calls); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}
