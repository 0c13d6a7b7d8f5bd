package action

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"
)

// An Invocation asks for one execution, by the names of the ARAL standard.
type Invocation struct {
	// CapabilityID is the id of an action, or its name.
	CapabilityID string `json:"capability_id"`
	// Parameters are the action's. Absent ones are those of a call without arguments.
	Parameters json.RawMessage `json:"parameters,omitempty"`
	// TraceID ends up in records and logs. It may be "".
	TraceID string `json:"trace_id,omitempty"`
	// TimeoutMS ends the execution earlier than the action's own limit. 0 leaves that.
	TimeoutMS int64 `json:"timeout_ms,omitempty"`
}

// maxTraceID bounds what a caller can put into every line of the log.
const maxTraceID = 128

// ParseInvocation reads an invocation from its JSON. A member that no invocation has is
// an error.
func ParseInvocation(data []byte) (Invocation, error) {
	var inv Invocation
	if err := strict(data, &inv); err != nil {
		return Invocation{}, fmt.Errorf("invocation: %w", err)
	}
	return inv, inv.check()
}

func (inv *Invocation) check() error {
	switch {
	case inv.CapabilityID == "":
		return errors.New("invocation: capability_id is missing: the id or the name of an action")
	case inv.TimeoutMS < 0:
		return errors.New("invocation: timeout_ms is a number of milliseconds above 0")
	case len(inv.TraceID) > maxTraceID:
		return fmt.Errorf("invocation: trace_id has more than %d bytes", maxTraceID)
	}
	return nil
}

// An Outcome is a result by the names of the ARAL standard.
type Outcome struct {
	Success bool `json:"success"`
	// Result is what the action returned. It is nil without success.
	Result json.RawMessage `json:"result,omitempty"`
	// Error is why there is no success.
	Error *Error `json:"error,omitempty"`
	// ExecutionTimeMS is rounded up.
	ExecutionTimeMS int64 `json:"execution_time_ms"`
	// CostEstimate is what the action declares, for executions that ran.
	CostEstimate map[string]float64 `json:"cost_estimate,omitempty"`
}

// Invoke is [Registry.Execute] in the words of the ARAL standard. It always has an
// outcome: a refusal is one.
func (r *Registry) Invoke(ctx context.Context, inv Invocation, c Context) Outcome {
	started := time.Now()
	if err := inv.check(); err != nil {
		return Outcome{Error: Errorf(InvalidArguments, "%s", err)}
	}
	if inv.TimeoutMS > 0 {
		limited, cancel := context.WithTimeout(ctx, time.Duration(min(inv.TimeoutMS, math.MaxInt32))*time.Millisecond)
		defer cancel()
		ctx = limited
	}
	if c.TraceID == "" {
		c.TraceID = inv.TraceID
	}
	id := r.resolve(inv.CapabilityID)
	result, refusal := r.Execute(ctx, id, inv.Parameters, c)
	out := Outcome{Success: result.Success, Result: result.Data, Error: result.Error, ExecutionTimeMS: milliseconds(time.Since(started))}
	if out.Error != nil && out.Error.Code == Timeout && inv.TimeoutMS > 0 && out.ExecutionTimeMS >= inv.TimeoutMS {
		out.Error = Errorf(Timeout, "Request exceeded timeout of %dms", inv.TimeoutMS).Because(out.Error)
	}
	if a, ok := r.Get(id); ok && refusal == nil {
		out.CostEstimate = a.Cost
	}
	return out
}

// resolve returns the id of the action that an id or a name means. An id wins.
func (r *Registry) resolve(name string) string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.all[name] != nil {
		return name
	}
	for _, id := range r.order {
		if r.all[id].action.Name == name {
			return id
		}
	}
	return name
}

// milliseconds rounds up: an execution that took any time took one.
func milliseconds(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}
