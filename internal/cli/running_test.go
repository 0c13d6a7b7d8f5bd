package cli_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/daemon/skillapi"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/cli/clitest"
)

func TestNobodyRuns(t *testing.T) {
	env := clitest.New(t, clitest.Office)
	use := func(string, *control.Client) error { t.Error("used an agent that does not run"); return nil }
	if err := env.EachRunning(t.Context(), "", use); err == nil || !strings.Contains(err.Error(), "no agent of this fleet is running") {
		t.Errorf("%v", err)
	}
	if _, err := env.Socket(t.Context(), cli.Caller{}); err == nil || !strings.Contains(err.Error(), "start it with `agentd fleet run`") {
		t.Errorf("%v", err)
	}
	noFleet := clitest.New(t, "")
	if err := noFleet.EachRunning(t.Context(), "", use); err == nil {
		t.Error("found agents without a fleet")
	}
	if _, err := noFleet.Socket(t.Context(), cli.Caller{}); err == nil {
		t.Error("found a socket without a fleet")
	}
}

func TestEachRunning(t *testing.T) {
	env := clitest.New(t, clitest.Office)
	env.Start(t)
	visit := func(agent string, fail error) (ids []string, err error) {
		err = env.EachRunning(t.Context(), agent, func(id string, client *control.Client) error {
			ids = append(ids, id)
			return errors.Join(client.Ready(context.Background()), fail)
		})
		return ids, err
	}
	if ids, err := visit("", nil); err != nil || !slices.Equal(ids, []string{"clerk", "desk"}) {
		t.Errorf("%v, %v", ids, err)
	}
	if ids, err := visit("desk", nil); err != nil || !slices.Equal(ids, []string{"desk"}) {
		t.Errorf("%v, %v", ids, err)
	}
	own := errors.New("not today")
	if ids, err := visit("", own); len(ids) != 1 || !errors.Is(err, own) || !strings.HasPrefix(err.Error(), "clerk: ") {
		t.Errorf("%v, %v; want to stop at the first error, which names the agent", ids, err)
	}
	if ids, err := visit("agent://desk", nil); err != nil || !slices.Equal(ids, []string{"desk"}) {
		t.Errorf("by its address: %v, %v", ids, err)
	}
	if _, err := visit("dsek", nil); clitest.Code(err) != cli.ExitUsage || err.Error() != `--agent: the fleet office has no agent "dsek"; it has clerk, desk; did you mean "desk"?` {
		t.Errorf("%v", err)
	}
}

// Explicit flags win over the environment, and that over the only agent.
func TestSocket(t *testing.T) {
	env := clitest.New(t, clitest.Office)
	fleet := env.Start(t)
	desk, _ := fleet.Daemon("desk")
	_, err := env.Socket(t.Context(), cli.Caller{})
	if clitest.Code(err) != cli.ExitUsage || !strings.Contains(err.Error(), "--as clerk, --as desk") {
		t.Errorf("two agents: %v", err)
	}
	env.Vars["AGENTD_SOCKET"] = "/env.sock"
	for _, test := range []struct {
		caller cli.Caller
		want   string
	}{
		{cli.Caller{}, "/env.sock"},
		{cli.Caller{Agent: "desk"}, desk.Socket()},
		{cli.Caller{Agent: "desk", Socket: "/mine.sock"}, "/mine.sock"},
		{cli.Caller{Socket: "/mine.sock"}, "/mine.sock"},
	} {
		if got, err := env.Socket(t.Context(), test.caller); err != nil || got != test.want {
			t.Errorf("%+v: %s, %v; want %s", test.caller, got, err, test.want)
		}
	}
}

// Inside a skill calls are part of its own, and never an operator's by mistake.
func TestCallsOfASkill(t *testing.T) {
	env := clitest.New(t, clitest.Office)
	env.Vars["AGENTD_SOCKET"] = "/env.sock"
	operators := func(c cli.Caller) {
		t.Helper()
		calls, err := env.Calls(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		defer calls.Close()
		if _, ok := calls.(*control.Client); !ok {
			t.Errorf("%+v: %T", c, calls)
		}
	}
	operators(cli.Caller{})
	if _, err := env.SkillAPI(); err == nil || !strings.Contains(err.Error(), "AGENTD_URL is not set") {
		t.Errorf("outside of a skill: %v", err)
	}
	env.Vars["AGENTD_URL"] = "http://127.0.0.1:1"
	if _, err := env.Calls(t.Context(), cli.Caller{}); err == nil || !strings.Contains(err.Error(), "AGENTD_CALL is not") {
		t.Errorf("without a token: %v", err)
	}
	env.Vars["AGENTD_CALL"] = "token"
	calls, err := env.Calls(t.Context(), cli.Caller{})
	if err != nil {
		t.Fatal(err)
	}
	defer calls.Close()
	if _, ok := calls.(*skillapi.Client); !ok {
		t.Errorf("inside a skill: %T", calls)
	}
	operators(cli.Caller{Socket: "/mine.sock"})
}
