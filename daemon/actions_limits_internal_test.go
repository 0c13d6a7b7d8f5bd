package daemon

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/rpc"
)

// opened opens the built-in actions of an agent desk with this file, without the agent.
func opened(t *testing.T, agent string) (*Daemon, *fleet.Fleet, *actionSet) {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"fleet.yaml":      "version: 1\nname: f\nagents: [{id: desk, path: ./desk}]\nenvironments: {default: {}}\n",
		"desk/agent.yaml": "name: desk\n" + agent,
		"desk/a.txt":      "hello",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := fleet.Load(root, LoadOptions())
	if err != nil {
		t.Fatal(err)
	}
	m, _ := f.Member("desk")
	d := &Daemon{log: slog.New(slog.DiscardHandler)}
	set, err := d.openActions(f, m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(set.retire)
	return d, f, set
}

// calls calls a skill of the set so many times, and returns how many of them succeed.
func (s *actionSet) calls(t *testing.T, d *Daemon, skill, tenant string, n int) (succeeded int) {
	t.Helper()
	for range n {
		inv := &rpc.Invocation{From: "agent://caller", TenantID: tenant, Payload: json.RawMessage(`{"path":"a.txt"}`)}
		_, err := actionSkill{d, s, skill}.Handle(t.Context(), inv)
		switch {
		case err == nil:
			succeeded++
		case !strings.Contains(err.Error(), "rate_limit_exceeded"):
			t.Fatal(err)
		}
	}
	return succeeded
}

// A call may take as long as its caller and its capability allow: the default of package
// action does not end it earlier. What an entry says itself does.
func TestTimeoutOfABuiltInAction(t *testing.T) {
	_, _, set := opened(t, "skills: {notes: {action: file-read, config: {dir: .}}}\n"+
		"layers: {capabilities: {actions: [{id: file-read, config: {dir: .}, timeoutMs: 5000}]}}\n")
	for skill, want := range map[string]time.Duration{"notes": rpc.MaxTimeout, "file-read": 5 * time.Second} {
		a, ok := set.builtIn[skill].registry.Get("file-read")
		if got := time.Duration(a.TimeoutMS) * time.Millisecond; !ok || got != want {
			t.Errorf("%s may take %s, want %s", skill, got, want)
		}
	}
}

// The limit of an entry holds as it is written, with its burst.
func TestLimitOfABuiltInAction(t *testing.T) {
	d, _, set := opened(t, "layers: {capabilities: {actions: [{id: file-read, config: {dir: .}, rateLimit: {requests: 1, window: 1h, burst: 3}}]}}\n")
	if n := set.calls(t, d, "file-read", "", 5); n != 3 {
		t.Errorf("%d of 5 calls with a burst of 3", n)
	}
	if n := set.calls(t, d, "file-read", "acme", 1); n != 1 {
		t.Error("a tenant shares the limit of others")
	}
}

// Two skills that are the same action have a limit each, and a reload refills none.
func TestLimitsOfSkillsThatAreOneAction(t *testing.T) {
	d, f, set := opened(t, "skills: {notes: {action: file-read, config: {dir: .}}}\n"+
		"layers: {capabilities: {actions: [{id: file-read, config: {dir: .}, rateLimit: {requests: 2, window: 1h}}]}}\n")
	if n := set.calls(t, d, "file-read", "", 3); n != 2 {
		t.Errorf("%d of 3 calls under a limit of 2", n)
	}
	if n := set.calls(t, d, "notes", "", 10); n != 10 {
		t.Errorf("%d of 10 calls of the skill whose limit is the default", n)
	}
	again, err := d.openActions(f, set.member)
	if err != nil {
		t.Fatal(err)
	}
	defer again.retire()
	if n := again.calls(t, d, "file-read", "", 1); n != 0 {
		t.Error("the other skill, or a reload, has refilled the limit")
	}
}
