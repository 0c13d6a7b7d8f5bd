package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/loadgen"
	"github.com/agentd/agentd/internal/progress"
	"github.com/agentd/agentd/rpc"
)

// DefaultRate is the rate of a run that names neither a rate nor callers, a second. It
// disturbs nobody.
const DefaultRate = 10

const (
	// mostInFlight bounds the calls of a rate that run at once. More would measure how the
	// caller's agent copes with them.
	mostInFlight = 256
	// mostCallers, mostRate and leastRate bound what may be asked for.
	mostCallers = 4096
	mostRate    = 100_000
	leastRate   = 1.0 / 3600
	// longest bounds a run.
	longest = 24 * time.Hour
)

// A Request is one `agentd bench`.
type Request struct {
	Caller cli.Caller
	// Target is <peer>/<capability>; the peer is an address or an id.
	Target string
	// Payload is JSON, @file or "-". Nil is a sample of the capability's inputSchema.
	Payload *string
	// Rate is such as 500/s; "" is DefaultRate, unless there is a Concurrency.
	Rate string
	// Concurrency is the number of callers of a closed loop, 0 for a rate.
	Concurrency int
	// For is how long calls begin, after those of Warmup.
	For, Warmup time.Duration
	// Timeout is 0 for the capability's own.
	Timeout time.Duration
	Tenant  string
}

// A bench is a request that has been checked.
type bench struct {
	env        *cli.Env
	calls      cli.Calls
	peer       envelope.Address
	capability string
	payload    json.RawMessage
	sampled    bool
	rate       float64
	request    Request
	gone       atomic.Pointer[control.NotRunningError]
}

// Run makes the calls and prints the report. The error has [cli.ExitCall] when a call has
// not ended with ok, or could not be made in time; it is that of ctx when the run was cut
// short, after what was measured until then is printed.
func Run(ctx context.Context, env *cli.Env, r Request) error {
	b, err := prepare(env, r)
	if err != nil {
		return err
	}
	if b.calls, err = env.Calls(ctx, r.Caller); err != nil {
		return err
	}
	defer b.calls.Close()
	if err := b.try(ctx); err != nil {
		return err
	}
	report := b.measure(ctx)
	if err := b.write(report); err != nil {
		return err
	}
	switch gone := b.gone.Load(); {
	case gone != nil:
		return gone
	case ctx.Err() != nil:
		return ctx.Err()
	case report.OK() < report.Calls || report.Unsent > 0:
		return &cli.ExitError{Code: cli.ExitCall}
	}
	return nil
}

// prepare checks the request, and finds the payload.
func prepare(env *cli.Env, r Request) (*bench, error) {
	peer, capability, ok := strings.Cut(strings.TrimPrefix(r.Target, string(envelope.AddressOf(""))), "/")
	switch {
	case !ok || peer == "" || capability == "":
		return nil, cli.Usage("%q: must be <peer>/<capability>", r.Target)
	case r.Rate != "" && r.Concurrency != 0:
		return nil, cli.Usage("--rate and --concurrency: choose one: callers who wait for each other keep no rate")
	case r.Concurrency < 0 || r.Concurrency > mostCallers:
		return nil, cli.Usage("--concurrency: must be from 1 to %d", mostCallers)
	case r.For <= 0 || r.For > longest:
		return nil, cli.Usage("--for: must be longer than 0 and at most %s", longest)
	case r.Warmup < 0 || r.Warmup > longest:
		return nil, cli.Usage("--warmup: must be from 0 to %s", longest)
	}
	b := &bench{env: env, request: r, peer: envelope.AddressOf(peer), capability: capability}
	if r.Concurrency == 0 {
		var err error
		if b.rate, err = parseRate(r.Rate); err != nil {
			return nil, err
		}
	}
	var err error
	if r.Payload != nil {
		b.payload, err = env.Payload(*r.Payload)
	} else {
		b.sampled = true
		b.payload, err = b.sample()
	}
	return b, err
}

// try makes one call. A mistake, such as a capability that does not exist, ends the run
// with the reason, instead of a report about some thousand refusals. What may pass, such
// as a rate limit, is what a run is to show.
func (b *bench) try(ctx context.Context) error {
	result, err := b.calls.RequestAgent(ctx, b.call())
	switch {
	case err != nil:
		return err
	case result.Status == rpc.StatusOK || result.Error != nil && result.Error.Retryable || result.Status == rpc.StatusTimeout:
		return nil
	}
	hint := ""
	if b.sampled && result.Status == rpc.StatusSchemaViolation {
		hint = "; the payload is a sample of the schema, give one with --payload"
	}
	return &cli.ExitError{Code: cli.ExitCall, Err: fmt.Errorf("the first call ended with %s: %w%s", result.Status, result.Error, hint)}
}

func (b *bench) call() rpc.Request {
	return rpc.Request{To: b.peer, Capability: b.capability, Payload: b.payload, Timeout: b.request.Timeout, TenantID: b.request.Tenant}
}

// measure makes the calls of the warm-up and then those that count.
func (b *bench) measure(ctx context.Context) *loadgen.Report {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sleep, release := loadgen.PreciseSleep()
	defer release()
	o := loadgen.Options{Rate: b.rate, Concurrency: b.request.Concurrency, For: b.request.Warmup, Sleep: sleep}
	if b.rate > 0 {
		o.Concurrency = mostInFlight
	}
	one := func(ctx context.Context) loadgen.Outcome {
		result, err := b.calls.RequestAgent(ctx, b.call())
		if gone, ok := errors.AsType[*control.NotRunningError](err); ok {
			b.gone.CompareAndSwap(nil, gone)
			cancel() // nothing comes of more calls
		}
		return outcomeOf(result, err)
	}
	if o.For > 0 {
		loadgen.Run(ctx, one, o)
	}
	o.For = b.request.For
	line := progress.New(b.env.Stderr, b.env.Getenv, "calling "+string(b.peer)+"/"+b.capability, "calls")
	defer line.End()
	total := int64(b.rate * o.For.Seconds()) // 0 is unknown
	o.Progress = func(p loadgen.Progress) { line.Set(p.Calls, total) }
	return loadgen.Run(ctx, one, o)
}

// outcomeOf names what became of a call.
func outcomeOf(result *rpc.Result, err error) loadgen.Outcome {
	switch refused, is := errors.AsType[*control.RefusedError](err); {
	case is: // by the control API: no call was made
		return loadgen.Outcome{Status: "refused", Code: refused.Code}
	case err != nil:
		return loadgen.Outcome{Status: "failed", Code: "connection"}
	case result.Status == rpc.StatusOK:
		return loadgen.Outcome{}
	case result.Error == nil:
		return loadgen.Outcome{Status: string(result.Status)}
	}
	return loadgen.Outcome{Status: string(result.Status), Code: result.Error.CodeText(), RetryAfter: result.Error.RetryAfter()}
}
