package drift

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/agentd/agentd/rpc"
)

// AgentRunLimits bound one turn of an agent whose arguments come from a model.
type AgentRunLimits struct {
	// MaxToolArgumentRepairs is how many times a turn may return arguments to the
	// model for correction, over all of its calls. Default 1; negative means never.
	MaxToolArgumentRepairs int
	// MaxProviderRoundTrips is how many times the model may be asked in a turn,
	// corrections included. Default 8.
	MaxProviderRoundTrips int
}

// A Caller makes calls. The Client of package rpc/caller is one.
type Caller interface {
	RequestAgent(ctx context.Context, r rpc.Request) (*rpc.Result, error)
}

// A Turn is one turn of an agent: the calls between a user's message and the answer
// to it. It is not safe for concurrent use.
type Turn struct {
	caller     Caller
	limits     AgentRunLimits
	repairs    int
	roundTrips int
	exhausted  error
}

// NewTurn starts a turn, in which the model has been asked once already.
func NewTurn(caller Caller, limits AgentRunLimits) *Turn {
	if limits.MaxToolArgumentRepairs == 0 {
		limits.MaxToolArgumentRepairs = 1
	}
	if limits.MaxProviderRoundTrips <= 0 {
		limits.MaxProviderRoundTrips = 8
	}
	return &Turn{caller: caller, limits: limits, roundTrips: 1}
}

// ToolArgumentRepairExhausted reports that the arguments of a turn kept failing their
// schema until its limits were reached. No skill has run with them.
//
//nolint:errname // the specification's name
type ToolArgumentRepairExhausted struct {
	// Repairs is how many corrections the turn has used.
	Repairs int
	// RoundTrips is how many times the model has been asked.
	RoundTrips int
	// Last is the result of the last attempt.
	Last *rpc.Result
}

func (e *ToolArgumentRepairExhausted) Error() string {
	return fmt.Sprintf("the arguments still fail their schema after %d repairs and %d round trips: %s",
		e.Repairs, e.RoundTrips, e.Last.Error.Message)
}

// A Correction is feedback for a model whose arguments failed their schema before
// any skill ran. Return it as the result of the tool call, and pass the model's
// next attempt to [Turn.Call].
type Correction struct {
	// Text tells the model what is wrong, where, and what is expected.
	Text string
	// Result is that of the refused call.
	Result *rpc.Result
	// Left is how many more corrections the turn may use.
	Left int
}

// Call makes a call with a model's arguments. Exactly one of its results is set: the
// result of the call, whatever its status; a correction, when the arguments
// failed their schema and the limits allow another attempt; or an error, such as a
// [*ToolArgumentRepairExhausted], after which the turn makes no more calls. The
// arguments are sent unchanged.
func (t *Turn) Call(ctx context.Context, r rpc.Request) (*rpc.Result, *Correction, error) {
	if t.exhausted != nil {
		return nil, nil, t.exhausted
	}
	result, err := t.caller.RequestAgent(ctx, r)
	if result == nil {
		return nil, nil, err
	}
	if !correctable(result) {
		return result, nil, nil
	}
	if t.repairs >= t.limits.MaxToolArgumentRepairs || t.roundTrips >= t.limits.MaxProviderRoundTrips {
		t.exhausted = &ToolArgumentRepairExhausted{Repairs: t.repairs, RoundTrips: t.roundTrips, Last: result}
		return nil, nil, t.exhausted
	}
	t.repairs++
	t.roundTrips++
	return nil, &Correction{
		Text: Feedback(r.Capability, result), Result: result, Left: max(0, t.limits.MaxToolArgumentRepairs-t.repairs),
	}, nil
}

// RoundTrip counts one more question to the model. It fails when the turn has none
// left.
func (t *Turn) RoundTrip() error {
	if t.roundTrips >= t.limits.MaxProviderRoundTrips {
		return errors.New("drift: the turn has no round trips left")
	}
	t.roundTrips++
	return nil
}

// correctable reports whether the model can correct the call: its own arguments
// failed, at either end, and no skill has run. A response that fails its schema is
// not correctable: the skill has run by then, and another attempt would run it a
// second time.
func correctable(r *rpc.Result) bool {
	return r.Status == rpc.StatusSchemaViolation && r.SchemaSide == rpc.SideRequest ||
		r.Error != nil && r.Error.Code == rpc.CodeInvalidPayload
}

// Feedback describes to a model what is wrong with the arguments of a refused call.
func Feedback(capability string, r *rpc.Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The call to %s was not made: its arguments do not match the input schema.\n", capability)
	if len(r.Violations) == 0 && r.Error != nil {
		fmt.Fprintf(&b, "- %s\n", r.Error.Message)
	}
	for _, v := range r.Violations {
		where := "the arguments"
		if v.Path != "" {
			where = v.Path
		}
		fmt.Fprintf(&b, "- %s: %s\n", where, v.Message)
	}
	b.WriteString("Correct the arguments and call it again.")
	return b.String()
}
