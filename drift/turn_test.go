package drift_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/agentd/agentd/drift"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/schema"
)

func turnWorld(t testing.TB) *world {
	doc := contract(t, f(narrow, ""))
	return newWorld(t, doc, doc, drift.Options{})
}

func attempt(payload string) rpc.Request {
	return rpc.Request{To: calleeAddr, Capability: "f", Payload: json.RawMessage(payload)}
}

func TestTurnRepairs(t *testing.T) {
	w := turnWorld(t)
	turn := drift.NewTurn(w.client, drift.AgentRunLimits{})
	res, fix, err := turn.Call(t.Context(), attempt(`{"a":"x"}`))
	if res != nil || fix == nil || err != nil {
		t.Fatalf("%v, %v, %v", res, fix, err)
	}
	if fix.Left != 0 || !strings.Contains(fix.Text, "/a: expected type integer but got string") || fix.Result.Status != rpc.StatusSchemaViolation {
		t.Errorf("correction %+v", fix)
	}
	res, fix, err = turn.Call(t.Context(), attempt(`{"a":1}`))
	if err != nil || fix != nil || res.Status != rpc.StatusOK || w.ran.Load() != 1 {
		t.Errorf("%v, %v, %v, ran %d", res, fix, err, w.ran.Load())
	}
}

// The budget is the turn's, not a call's: fresh calls do not reset it.
func TestTurnExhausted(t *testing.T) {
	for _, test := range []struct {
		name    string
		limits  drift.AgentRunLimits
		repairs int
	}{
		{"by default one repair", drift.AgentRunLimits{}, 1},
		{"three repairs", drift.AgentRunLimits{MaxToolArgumentRepairs: 3}, 3},
		{"no repairs", drift.AgentRunLimits{MaxToolArgumentRepairs: -1}, 0},
		{"round trips run out first", drift.AgentRunLimits{MaxToolArgumentRepairs: 10, MaxProviderRoundTrips: 3}, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := turnWorld(t)
			turn := drift.NewTurn(w.client, test.limits)
			for i := range test.repairs {
				if _, fix, err := turn.Call(t.Context(), attempt(`{"a":-1}`)); fix == nil || err != nil {
					t.Fatalf("repair %d: %v, %v", i, fix, err)
				}
			}
			_, fix, err := turn.Call(t.Context(), attempt(`{}`))
			var exhausted *drift.ToolArgumentRepairExhausted
			if fix != nil || !errors.As(err, &exhausted) || exhausted.Repairs != test.repairs || exhausted.Last == nil {
				t.Fatalf("%v, %v", fix, err)
			}
			if _, _, err := turn.Call(t.Context(), attempt(`{"a":1}`)); !errors.As(err, &exhausted) {
				t.Errorf("an exhausted turn goes on: %v", err)
			}
			if w.ran.Load() != 0 {
				t.Errorf("%d skills ran", w.ran.Load())
			}
		})
	}
}

func TestTurnRoundTrips(t *testing.T) {
	turn := drift.NewTurn(turnWorld(t).client, drift.AgentRunLimits{MaxProviderRoundTrips: 2})
	if err := turn.RoundTrip(); err != nil {
		t.Error(err)
	}
	if err := turn.RoundTrip(); err == nil {
		t.Error("a third round trip of two")
	}
	if _, fix, err := turn.Call(t.Context(), attempt(`{}`)); fix != nil || err == nil {
		t.Errorf("a repair without a round trip left: %v, %v", fix, err)
	}
}

// Failures that the model cannot mend come back as results.
func TestTurnLeavesOtherFailuresAlone(t *testing.T) {
	w := turnWorld(t)
	turn := drift.NewTurn(w.client, drift.AgentRunLimits{})
	res, fix, err := turn.Call(t.Context(), rpc.Request{To: "agent://nobody", Capability: "f", Payload: json.RawMessage(`{}`)})
	if err != nil || fix != nil || res.Error.Code != rpc.CodeNoPeer {
		t.Errorf("%v, %v, %v", res, fix, err)
	}
	if _, fix, _ := turn.Call(t.Context(), attempt(`{"a":`)); fix == nil || !strings.Contains(fix.Text, "not JSON") {
		t.Errorf("malformed arguments: %+v", fix)
	}
}

// A response that fails its schema comes after the skill has run. Sent back for
// correction, it would run a second time.
func TestTurnDoesNotRepeatASkillThatRan(t *testing.T) {
	for name, r := range map[string]*rpc.Result{
		"a response violation": {Status: rpc.StatusSchemaViolation, SchemaSide: rpc.SideResponse, Error: &rpc.Error{Code: rpc.CodeSchemaViolation, Side: rpc.SideResponse}},
		"a failed skill":       {Status: rpc.StatusError, Error: &rpc.Error{Code: rpc.CodeHandlerError}},
		"a timeout":            {Status: rpc.StatusError, Error: &rpc.Error{Code: rpc.CodeTimeout}},
		"no side said":         {Status: rpc.StatusSchemaViolation, Error: &rpc.Error{Code: rpc.CodeSchemaViolation}},
		"success":              {Status: rpc.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			turn := drift.NewTurn(callerFunc(func(context.Context, rpc.Request) (*rpc.Result, error) { calls++; return r, nil }), drift.AgentRunLimits{})
			for range 3 { // nor is any of the turn's corrections used up
				if got, fix, err := turn.Call(t.Context(), attempt(`{}`)); got != r || fix != nil || err != nil {
					t.Errorf("%v, %v, %v", got, fix, err)
				}
			}
			if calls != 3 {
				t.Errorf("%d calls", calls)
			}
		})
	}
}

// A call that could not be made at all has no result to correct.
func TestTurnWithoutAResult(t *testing.T) {
	broken := errors.New("no client")
	turn := drift.NewTurn(callerFunc(func(context.Context, rpc.Request) (*rpc.Result, error) { return nil, broken }), drift.AgentRunLimits{})
	if got, fix, err := turn.Call(t.Context(), attempt(`{}`)); got != nil || fix != nil || !errors.Is(err, broken) {
		t.Errorf("%v, %v, %v", got, fix, err)
	}
}

// The numbers that a model's loop is bounded by, when nobody sets them.
func TestTurnDefaults(t *testing.T) {
	turn := drift.NewTurn(nil, drift.AgentRunLimits{})
	asked := 1 // a turn begins with a question
	for turn.RoundTrip() == nil {
		asked++
	}
	if asked != 8 {
		t.Errorf("the model may be asked %d times", asked)
	}
	refused := &rpc.Result{Status: rpc.StatusSchemaViolation, SchemaSide: rpc.SideRequest, Error: &rpc.Error{Message: "no"}}
	turn = drift.NewTurn(callerFunc(func(context.Context, rpc.Request) (*rpc.Result, error) { return refused, nil }),
		drift.AgentRunLimits{MaxToolArgumentRepairs: 3, MaxProviderRoundTrips: 4})
	for left := 2; left >= 0; left-- {
		if _, fix, err := turn.Call(t.Context(), attempt(`{}`)); fix == nil || fix.Left != left || fix.Result != refused {
			t.Fatalf("%+v, %v, want %d left", fix, err, left)
		}
	}
	_, _, err := turn.Call(t.Context(), attempt(`{}`))
	var exhausted *drift.ToolArgumentRepairExhausted
	if !errors.As(err, &exhausted) || exhausted.Repairs != 3 || exhausted.RoundTrips != 4 || exhausted.Last != refused {
		t.Errorf("%+v", err)
	}
}

// What a model reads: every violation with its place, and what to do.
func TestFeedback(t *testing.T) {
	for _, test := range []struct {
		result *rpc.Result
		want   string
	}{
		{&rpc.Result{Violations: []schema.Violation{{Path: "", Message: "expected an object"}, {Path: "/a/0", Message: "too small"}}, Error: &rpc.Error{Message: "not shown"}},
			"- the arguments: expected an object\n- /a/0: too small\n"},
		{&rpc.Result{Error: &rpc.Error{Message: "the payload is not JSON"}}, "- the payload is not JSON\n"},
		{&rpc.Result{}, ""},
	} {
		want := "The call to review was not made: its arguments do not match the input schema.\n" + test.want + "Correct the arguments and call it again."
		if got := drift.Feedback("review", test.result); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

// No arguments count as {} for the check, and travel as they are.
func TestNoArguments(t *testing.T) {
	doc := contract(t, f(`{type: object, properties: {a: {type: integer}}}`, ""))
	w := newWorld(t, doc, doc, drift.Options{})
	for _, payload := range []string{"", "null"} {
		res, err := w.call(payload)
		if err != nil {
			t.Errorf("%q: %v %v", payload, res, err)
		}
	}
	strict := contract(t, f(narrow, ""))
	w = newWorld(t, strict, strict, drift.Options{})
	if res, err := w.call("null"); err == nil || len(res.Violations) != 1 || res.Violations[0].Path != "/a" {
		t.Errorf("%+v, %v", res, err)
	}
}

func ExampleTurn() {
	// refuses stands for an agent that does not accept the arguments.
	refuses := callerFunc(func(_ context.Context, r rpc.Request) (*rpc.Result, error) {
		e := &rpc.Error{Code: rpc.CodeSchemaViolation, Message: "no", Side: rpc.SideRequest}
		return &rpc.Result{Status: rpc.StatusSchemaViolation, SchemaSide: rpc.SideRequest, Error: e}, e
	})
	turn := drift.NewTurn(refuses, drift.AgentRunLimits{MaxToolArgumentRepairs: 1})
	for range 2 {
		_, correction, err := turn.Call(context.Background(), rpc.Request{Capability: "review-pr"})
		if correction != nil {
			fmt.Println(strings.Split(correction.Text, "\n")[0])
		}
		if err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// The call to review-pr was not made: its arguments do not match the input schema.
	// the arguments still fail their schema after 1 repairs and 2 round trips: no
}

type callerFunc func(context.Context, rpc.Request) (*rpc.Result, error)

func (f callerFunc) RequestAgent(ctx context.Context, r rpc.Request) (*rpc.Result, error) {
	return f(ctx, r)
}
