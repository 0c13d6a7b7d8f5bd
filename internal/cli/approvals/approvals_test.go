package approvals

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/cli/call"
	"github.com/agentd/agentd/internal/cli/clitest"
	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/output"
)

// waits calls the capability that asks a person first, and returns the id of the
// waiting call and the end of the command.
func waits(t *testing.T, env *clitest.Env) (id string, caller *clitest.Env, ended <-chan error) {
	t.Helper()
	own := *env
	own.Out, own.Err = &clitest.Buffer{}, &clitest.Buffer{}
	own.Stdout, own.Stderr = own.Out, own.Err
	payload := `{"name":"Ada"}`
	before := waitingCalls(t, env)
	done := make(chan error, 1)
	go func() {
		done <- call.Request(t.Context(), &own.Env, call.Call{
			Caller: cli.Caller{Agent: "desk"}, To: "clerk", Capability: "sign", Payload: &payload, Timeout: time.Minute,
		})
	}()
	var waiting []waitingCall
	eventually.Succeeds(t, "the call waits", func() error {
		if waiting = waitingCalls(t, env); len(waiting) > len(before) {
			return nil
		}
		return fmt.Errorf("the command prints %s", own.Out)
	})
	return waiting[len(waiting)-1].ID, &own, done // the newest is last
}

// waitingCalls returns the calls that wait, the oldest first.
func waitingCalls(t *testing.T, env *clitest.Env) (waiting []waitingCall) {
	t.Helper()
	env.Reset()
	env.Format = output.JSON
	if err := List(t.Context(), &env.Env, "", false); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(env.Out.String()), &waiting); err != nil {
		t.Fatal(err)
	}
	return waiting
}

// An approved call goes on, a denied one ends with the reason; either way nothing
// waits any more, and a second decision is refused.
func TestDecide(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, clitest.Office)
	env.Start(t)
	for _, approve := range []bool{true, false} {
		id, caller, ended := waits(t, env)
		env.Reset()
		env.Format = output.JSONL
		if err := Decide(t.Context(), &env.Env, Decision{ID: id, Approve: approve, Reason: "ticket 12"}); err != nil {
			t.Fatal(err)
		}
		var got struct {
			ID, Agent string
			Approved  bool
		}
		if err := json.Unmarshal([]byte(env.Out.String()), &got); err != nil || got.ID != id || got.Agent != "desk" || got.Approved != approve {
			t.Errorf("%v: %s", err, env.Out)
		}
		err := <-ended
		switch {
		case approve && (err != nil || !strings.Contains(caller.Out.String(), `"name": "Ada"`)):
			t.Errorf("approved: %v, %s", err, caller.Out)
		case !approve && (clitest.Code(err) != cli.ExitCall || !strings.Contains(caller.Out.String(), "ticket 12")):
			t.Errorf("denied: %v, %s", err, caller.Out)
		}
		err = Decide(t.Context(), &env.Env, Decision{ID: id, Approve: approve})
		if _, ok := errors.AsType[*control.NoApprovalError](err); !ok {
			t.Errorf("a second decision: %v", err)
		}
	}
	env.Reset()
	if err := List(t.Context(), &env.Env, "", true); err != nil || env.Out.String() != "" {
		t.Errorf("%v: %s", err, env.Out)
	}
	env.Format = output.JSON
	if err := List(t.Context(), &env.Env, "", true); err != nil || env.Out.String() != "[]\n" {
		t.Errorf("%v: %s", err, env.Out)
	}
}

// Payloads are shown on demand only: a list on a screen is read by more eyes.
func TestListShowsPayloadOnDemand(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, clitest.Office)
	env.Start(t)
	id, _, ended := waits(t, env)
	for _, payload := range []bool{false, true} {
		for _, format := range []output.Format{output.Table, output.JSON} {
			env.Reset()
			env.Format = format
			if err := List(t.Context(), &env.Env, "desk", payload); err != nil {
				t.Fatal(err)
			}
			if got := env.Out.String(); strings.Contains(got, "Ada") != payload || !strings.Contains(got, id) || !strings.Contains(got, "agent://clerk") {
				t.Errorf("payload %t, %s: %s", payload, format, got)
			}
		}
	}
	env.Reset()
	env.Format = output.Table
	if err := Decide(t.Context(), &env.Env, Decision{ID: id, Agent: "clerk"}); err == nil {
		t.Error("another agent decided")
	}
	// The beginning of an id will do, while it is that of one call only.
	_, _, second := waits(t, env)
	if err := Decide(t.Context(), &env.Env, Decision{ID: id[:4]}); clitest.Code(err) != cli.ExitUsage || !strings.Contains(err.Error(), "2 waiting calls begin with") || !strings.Contains(err.Error(), id) {
		t.Errorf("an ambiguous id: %v", err)
	}
	if err := Decide(t.Context(), &env.Env, Decision{}); clitest.Code(err) != cli.ExitUsage {
		t.Errorf("no id: %v", err)
	}
	env.Reset()
	env.Format = output.Table
	if err := Decide(t.Context(), &env.Env, Decision{ID: id[:35], Agent: "agent://desk"}); err != nil || env.Out.String() != "desk: the decision about "+id+" is recorded: deny\n" {
		t.Errorf("%v: %s", err, env.Out)
	}
	<-ended
	env.Reset()
	if err := Decide(t.Context(), &env.Env, Decision{ID: "0"}); err != nil {
		t.Error(err)
	}
	<-second
}

func TestNobodyRuns(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, clitest.Office)
	for name, err := range map[string]error{
		"list":   List(t.Context(), &env.Env, "", false),
		"decide": Decide(t.Context(), &env.Env, Decision{ID: "x"}),
		"named":  List(t.Context(), &env.Env, "desk", false),
	} {
		if clitest.Code(err) != cli.ExitFailed {
			t.Errorf("%s: %v", name, err)
		}
	}
}
