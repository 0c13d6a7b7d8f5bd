package daemon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/daemon/skillapi"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/logtest"
	"github.com/agentd/agentd/rpc"
)

// A skill's process knows its agent by the environment, whatever agent.yaml sets, and
// nothing of the control socket.
func TestEnvironmentOfASkill(t *testing.T) {
	t.Setenv("AGENTD_SOCKET", "/run/outer.sock")
	t.Setenv("AGENTD_URL", "http://127.0.0.1:1")
	all := files()
	all["callee/agent.yaml"] = "name: callee\nskills: {cat: {process: {command: [sh, -c, " +
		"'printf ''[\"%s\",\"%s\",\"%s\",\"%s\",\"%s\"]'' \"$AGENTD_SOCKET\" \"$AGENTD_AGENT\" \"$AGENTD_FLEET_ROOT\" \"$OWN\" \"$AGENTD_URL\"'], " +
		"inheritEnv: [AGENTD_*], env: {AGENTD_AGENT: agent://other, OWN: mine}}}}\n"
	cfg := withGo(load(t, all))
	f := startFleet(t, cfg)
	defer stop(t, f)
	result, err := client(t, f, "caller").RequestAgent(t.Context(), rpc.Request{To: "agent://callee", Capability: "cat"})
	if err != nil {
		t.Fatal(err)
	}
	var got [5]string
	if err := json.Unmarshal(result.Response, &got); err != nil {
		t.Fatal(err)
	}
	if want := [4]string{"", "agent://callee", cfg.Fleet.Root, "mine"}; [4]string(got[:4]) != want {
		t.Errorf("the skill has %q, want %q", got, want)
	}
	if !strings.HasPrefix(got[4], "http://127.0.0.1:") && !strings.HasPrefix(got[4], "http://[::1]:") || got[4] == "http://127.0.0.1:1" {
		t.Errorf("AGENTD_URL is %q", got[4])
	}
}

// hangingSkills is a fleet of two agents whose skill says its URL and token on standard
// error and hangs, and one that calls them.
func hangingSkills() map[string]string {
	all := files()
	all["fleet.yaml"] = strings.Replace(all["fleet.yaml"], "{id: callee,", "{id: other, path: ./other}, {id: callee,", 1)
	all["rpc-peers.yaml"] += "  - agent: agent://other\n    transports: [{kind: memory, topics: {requests: agents.other.requests}}]\n"
	for _, id := range []string{"callee", "other"} {
		all[id+"/agent.yaml"] = "name: " + id + "\ntenants: [default, acme, globex]\nskills:\n" +
			"  hang: {process: {command: [sh, -c, 'echo \"access $AGENTD_URL $AGENTD_CALL\" >&2; exec sleep 600']}}\n" +
			"  tenant: {process: {command: [sh, -c, 'echo \"\\\"$AGENTD_TENANT_ID/$AGENTD_CALLER/$AGENTD_HOPS\\\"\"']}}\n"
		all[id+"/capabilities.yaml"] = "version: 1\nagent: agent://" + id + "\ntransports: [{kind: memory, topics: {requests: agents." + id + ".requests}}]\n" +
			"capabilities: [{name: hang}, {name: tenant}]\n"
	}
	return all
}

// An access is what a skill's process may ask its agent with.
type access struct{ url, token string }

// accessLines is a log that picks up what the skills of hangingSkills say.
type accessLines chan access

func (l accessLines) Write(line []byte) (int, error) {
	if _, after, ok := bytes.Cut(line, []byte("access ")); ok {
		if words := strings.Fields(strings.TrimRight(string(after), "\"\n ")); len(words) >= 2 {
			l <- access{words[0], strings.Trim(words[1], `"`)}
		}
	}
	return len(line), nil
}

// The token of a running call is good at the agent that serves the call, until it ends:
// not at another agent of the process, and not as another tenant.
func TestTokensOfTwoAgents(t *testing.T) {
	t.Parallel()
	heard := make(accessLines, 2)
	var logged logtest.Lines
	cfg := load(t, hangingSkills())
	cfg.Logger = slog.New(slog.NewTextHandler(io.MultiWriter(heard, &logged), nil))
	f := startFleet(t, cfg)
	defer stop(t, f)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begin := func(agent, tenant string) (access, <-chan error) {
		ended := make(chan error, 1)
		go func() {
			_, err := client(t, f, "caller").RequestAgent(ctx, rpc.Request{To: envelope.AddressOf(agent), Capability: "hang", TenantID: tenant, Timeout: time.Minute})
			ended <- err
		}()
		select {
		case a := <-heard:
			return a, ended
		case err := <-ended:
			t.Fatalf("%s: %v", agent, err)
		case <-time.After(time.Minute):
			t.Fatal("the skill did not begin")
		}
		return access{}, nil
	}
	one, oneEnded := begin("callee", "acme")
	two, twoEnded := begin("other", "")
	if one.url == two.url {
		t.Errorf("two agents have one URL, %s", one.url)
	}
	progress := func(url, token string) error {
		_, err := skillapi.NewClient(url, token).Progress(t.Context(), json.RawMessage(`1`))
		return err
	}
	refused := func(err error) bool {
		r, ok := errors.AsType[*skillapi.RefusedError](err)
		return ok && r.HTTPStatus == 403
	}
	if err := errors.Join(progress(one.url, one.token), progress(two.url, two.token)); err != nil {
		t.Errorf("each at its own agent: %v", err)
	}
	if a, b := progress(one.url, two.token), progress(two.url, one.token); !refused(a) || !refused(b) {
		t.Errorf("each at the other agent: %v, %v", a, b)
	}
	nested := skillapi.NewClient(one.url, one.token)
	result, err := nested.RequestAgent(t.Context(), rpc.Request{To: "agent://other", Capability: "tenant"})
	if err != nil || string(result.Response) != `"acme/agent://callee/2"` {
		t.Errorf("a nested call: %+v, %v", result, err)
	}
	result, err = nested.RequestAgent(t.Context(), rpc.Request{To: "agent://other", Capability: "tenant", TenantID: "globex"})
	if err != nil || result.Error == nil || result.Error.Code != rpc.CodeTenantMismatch {
		t.Errorf("a nested call for another tenant: %+v, %v", result, err)
	}
	if result, err = nested.Await(t.Context(), "no-such-id", time.Minute); err != nil || result.Status == rpc.StatusOK {
		t.Errorf("the result of a call that was never made: %+v, %v", result, err)
	}
	select {
	case err := <-oneEnded:
		t.Fatalf("the call of the token has ended: %v\n%s", err, &logged)
	default:
	}
	cancel()
	<-oneEnded
	<-twoEnded
	// The caller is done before the callee has stopped the process.
	for _, a := range []access{one, two} {
		for deadline := time.Now().Add(time.Minute); !refused(progress(a.url, a.token)); {
			if time.Now().After(deadline) {
				t.Fatal("the token outlives its call")
			}
		}
	}
}

// A reload may bring the first skill that is a process, and the API with it.
func TestReloadBringsAProcess(t *testing.T) {
	t.Parallel()
	all := files()
	all["callee/agent.yaml"] = "name: callee\n"
	cfg := withGo(load(t, all))
	cfg.Handlers["cat"] = rpc.HandlerFunc(echo)
	d, err := daemon.StartFleet(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer stop(t, d)
	callee, _ := d.Daemon("callee")
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(cfg.Fleet.Root, "callee", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("agent.yaml", "name: callee\nskills: {url: {process: {command: [sh, -c, 'echo \"\\\"$AGENTD_URL\\\"\"']}}}\n")
	write("capabilities.yaml", all["callee/capabilities.yaml"]+"  - name: url\n")
	if err := callee.Reload(); err != nil {
		t.Fatal(err)
	}
	other, _ := d.Daemon("caller")
	if err := other.Reload(); err != nil {
		t.Fatal(err)
	}
	result, err := client(t, d, "caller").RequestAgent(t.Context(), rpc.Request{To: "agent://callee", Capability: "url"})
	if err != nil || !strings.HasPrefix(string(result.Response), `"http://`) {
		t.Errorf("%+v, %v", result, err)
	}
}

// A program that cannot confine skills runs none as another user's, and says where that is
// asked for.
func TestAnotherUserTakesConfinement(t *testing.T) {
	t.Parallel()
	all := files()
	all["callee/agent.yaml"] = "name: callee\nskills: {cat: {process: {command: [cat]}, sandbox: {user: nobody}}}\n"
	cfg := withGo(load(t, all))
	cfg.Confines = false
	f, err := daemon.StartFleet(t.Context(), cfg)
	if err == nil {
		stop(t, f)
	}
	if err == nil || !strings.Contains(err.Error(), "callee/agent.yaml:2:") || !strings.Contains(err.Error(), "cannot run as the user nobody") {
		t.Errorf("%v", err)
	}
}
