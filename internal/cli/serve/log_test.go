package serve

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/internal/cli/clitest"
)

// logged returns the records of standard error, and fails for a line that is none.
func logged(t *testing.T, env *clitest.Env) (all []map[string]any) {
	t.Helper()
	for line := range strings.Lines(env.Err.String()) {
		var record map[string]any
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Errorf("a line that is no JSON: %s", line)
		}
		all = append(all, record)
	}
	return all
}

// has returns whether one of the records has these members.
func has(records []map[string]any, want map[string]any) bool {
	for _, r := range records {
		found := true
		for key, value := range want {
			found = found && r[key] == value
		}
		if found {
			return true
		}
	}
	return false
}

// With --log-format json everything on standard error is JSON: the start, reloads,
// faults of reloads, and the end. One record says that the agents are ready.
func TestEveryLineIsJSON(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, clitest.Office)
	env.LogFormat = "json"
	stop := start(t, func(ctx context.Context) error { return Fleet(ctx, &env.Env, true) })
	waitFor(t, env, `"msg":"ready"`)
	good, err := os.ReadFile(filepath.Join(env.Dir, "clerk", "capabilities.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	env.Write(t, "clerk/capabilities.yaml", "capabilties: []\n")
	waitFor(t, env, "the agents go on with the files that they have")
	env.Write(t, "clerk/capabilities.yaml", string(good))
	waitFor(t, env, `"msg":"reloaded"`)
	if err := stop(); err != nil {
		t.Error(err)
	}
	records := logged(t, env)
	for _, want := range []map[string]any{
		{"level": "INFO", "msg": "ready", "fleet": "office", "agents": 2.0},
		{"level": "INFO", "msg": "started", "agent": "clerk"},
		{"level": "ERROR", "msg": "not reloaded: the agents go on with the files that they have"},
		{"level": "INFO", "msg": "reloaded", "agent": "clerk"},
		{"level": "INFO", "msg": "stopped", "agent": "desk"},
	} {
		if !has(records, want) {
			t.Errorf("no %v in %s", want, env.Err)
		}
	}
}

// A file that is written while the agents start is loaded, although nobody watched it
// yet.
func TestChangeDuringTheStart(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, clitest.Office)
	f := env.Start(t)
	before := time.Now().Add(-time.Hour)
	for _, d := range f.Daemons {
		for _, file := range d.Files() {
			_ = os.Chtimes(file, before, before) // some do not exist
		}
	}
	d := []*daemon.Daemon{f.Daemons[0]}
	if changedSince(before, d) {
		t.Error("no file was written")
	}
	env.Write(t, "clerk/agent.yaml", "name: clerk\n")
	if !changedSince(before, d) {
		t.Error("a file was written")
	}
}
