package call

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/output"
	"github.com/agentd/agentd/rpc"
)

// A Call is one `agentd request`.
type Call struct {
	Caller cli.Caller
	// To is the address of the peer, or its id alone.
	To         string
	Capability string
	// Payload is JSON, @file or "-". Nil is null.
	Payload *string
	// Mode is sync, async or fire-and-forget.
	Mode           string
	IdempotencyKey string
	Session        string
	Tenant         string
	// Traceparent is the W3C trace context to continue. "" means that of the
	// environment variable TRACEPARENT, if it has one.
	Traceparent string
	// Timeout is 0 for the capability's own. IdleTimeout is 0 for none.
	Timeout, IdleTimeout time.Duration
	// Progress prints the skill's progress to standard error.
	Progress bool
}

// Request makes the call, and prints the result. What the callee or the schemas
// object to is in the result: only a call that could not be made at all, for
// example because no agent runs, has another error than [cli.ExitCall].
func Request(ctx context.Context, env *cli.Env, c Call) error {
	payload := json.RawMessage("null")
	if c.Payload != nil {
		var err error
		if payload, err = env.Payload(*c.Payload); err != nil {
			return err
		}
	}
	calls, err := env.Calls(ctx, c.Caller)
	if err != nil {
		return err
	}
	defer calls.Close()
	request := rpc.Request{
		To: envelope.AddressFor(c.To), Capability: c.Capability, Payload: payload, Timeout: c.Timeout, IdleTimeout: c.IdleTimeout,
		Mode: rpc.Mode(c.Mode), IdempotencyKey: c.IdempotencyKey, SessionID: c.Session, TenantID: c.Tenant,
		Traceparent: c.Traceparent,
	}
	// Programs that were not started by a traced one may have anything there.
	if inherited := env.Getenv("TRACEPARENT"); c.Traceparent == "" && rpc.TraceID(inherited) != "" {
		request.Traceparent, request.Tracestate = inherited, env.Getenv("TRACESTATE")
	}
	if c.Progress {
		request.OnProgress = func(e rpc.ProgressEvent) { writeProgress(env, e) }
	}
	result, err := calls.RequestAgent(ctx, request)
	if err != nil {
		return err
	}
	return writeResult(env, result)
}

// Await waits for the answer to an asynchronous call, and prints the result.
func Await(ctx context.Context, env *cli.Env, caller cli.Caller, correlationID string, timeout time.Duration) error {
	if timeout < time.Millisecond || timeout > time.Hour {
		return cli.Usage("--timeout: must be from 1ms to 1h")
	}
	calls, err := env.Calls(ctx, caller)
	if err != nil {
		return err
	}
	defer calls.Close()
	result, err := calls.Await(ctx, correlationID, timeout)
	if err != nil {
		return err
	}
	return writeResult(env, result)
}

// writeResult prints a result. The exit status tells scripts whether it is ok.
func writeResult(env *cli.Env, result *rpc.Result) error {
	if err := env.WriteJSON(result); err != nil {
		return err
	}
	if result.Status != rpc.StatusOK {
		return &cli.ExitError{Code: cli.ExitCall}
	}
	return nil
}

// Progress reports the progress of the call that the surrounding skill serves.
func Progress(ctx context.Context, env *cli.Env, payload string) error {
	client, err := env.SkillAPI()
	if err != nil {
		return err
	}
	defer client.Close()
	value, err := env.Payload(payload)
	if err != nil {
		return err
	}
	_, err = client.Progress(ctx, value)
	return err
}

// writeProgress prints one event to standard error, so that standard output
// carries the result alone. A failed write does not fail the call.
func writeProgress(env *cli.Env, e rpc.ProgressEvent) {
	if env.Format == output.Table {
		fmt.Fprintf(env.Stderr, "progress %d: %s\n", e.Seq, output.Printable(string(e.Value)))
		return
	}
	_ = output.WriteJSON(env.Stderr, output.JSONL, e)
}
