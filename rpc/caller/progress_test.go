package caller_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/identity"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/rpc/internal/rpctest"
)

func TestProgressIsForCallsThatAreWaitedFor(t *testing.T) {
	w := rpctest.NewWorld(t, rpctest.Counts(1), rpctest.WithProgress(t))
	for _, mode := range []rpc.Mode{rpc.ModeAsync, rpc.ModeFireAndForget} {
		r, _ := rpctest.Listening(rpctest.Request())
		r.Mode = mode
		rpctest.WantStatus(t, w.Call(t, r), rpc.StatusError, rpc.CodeInvalidRequest)
	}
	r := rpctest.Request()
	r.IdleTimeout = -1
	rpctest.WantStatus(t, w.Call(t, r), rpc.StatusError, rpc.CodeInvalidRequest)
}

// Whoever learns a reply topic can publish there: progress must pass what a
// reply must.
func TestForgedProgressIsIgnored(t *testing.T) {
	good := rpctest.Keyring(t, rpctest.Reviewer, rpctest.Concierge)
	for _, test := range []struct {
		name   string
		change func(*envelope.Envelope)
		sign   *identity.Keyring
		proof  string
	}{
		{"from another agent", func(e *envelope.Envelope) { e.From = "agent://mallory" }, nil, ""},
		{"to another agent", func(e *envelope.Envelope) { e.To = "agent://mallory" }, rpctest.Keyring(t, rpctest.Reviewer, "agent://mallory"), ""},
		{"of another call", func(e *envelope.Envelope) { e.CorrelationID = "c-9" }, good, ""},
		{"of another request", func(e *envelope.Envelope) { e.CausedBy = "m-9" }, good, ""},
		{"of no request", func(e *envelope.Envelope) { e.CausedBy = "" }, good, ""},
		{"of another tenant", func(e *envelope.Envelope) { e.TenantID = "acme" }, good, ""},
		{"without a number", func(e *envelope.Envelope) { e.Headers = nil }, good, ""},
		{"with a bad number", func(e *envelope.Envelope) { e.Headers[0].Value = "-1" }, good, ""},
		{"a number again", func(e *envelope.Envelope) { e.Headers[0].Value = "1" }, good, ""},
		{"too large", func(e *envelope.Envelope) {
			e.Payload = json.RawMessage(`"` + strings.Repeat("x", rpc.MaxProgressBytes) + `"`)
		}, good, ""},
		{"without a proof", func(*envelope.Envelope) {}, nil, "caller missing-auth"},
	} {
		t.Run(test.name, func(t *testing.T) {
			both, kept := rpctest.Proven(t)
			told, goOn := make(chan struct{}), make(chan struct{})
			h := rpc.HandlerFunc(func(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
				if err := inv.Progress(json.RawMessage(`"real"`)); err != nil {
					return nil, err
				}
				close(told)
				select {
				case <-goOn:
				case <-ctx.Done():
				}
				return json.RawMessage(rpctest.ValidAnswer), nil
			})
			w := rpctest.NewWorld(t, h, rpctest.WithProgress(t), both)
			seen := w.Tap(t)
			r := rpctest.Request()
			heard := make(chan rpc.ProgressEvent, 10)
			r.OnProgress = func(e rpc.ProgressEvent) { heard <- e }
			results := make(chan *rpc.Result, 1)
			go func() { res, _ := w.Client.RequestAgent(t.Context(), r); results <- res }()
			req := rpctest.Wait(t, seen)
			rpctest.Wait(t, told)
			rpctest.Wait(t, heard)
			_, replyTopic, _ := strings.Cut(req.ReplyTo, "://")
			e := &envelope.Envelope{
				Kind: envelope.Event, MessageID: "f-1", CorrelationID: req.CorrelationID, CausedBy: req.MessageID,
				From: rpctest.Reviewer, To: rpctest.Concierge, Capability: req.Capability, Payload: json.RawMessage(`"forged"`),
				Headers: envelope.Headers{{Key: envelope.HeaderProgress, Value: "2"}},
			}
			test.change(e)
			w.PublishSigned(t, replyTopic, e, test.sign)
			close(goOn)
			rpctest.WantStatus(t, rpctest.Wait(t, results), rpc.StatusOK, 0)
			if len(heard) != 0 || w.Client.Stale() != 1 {
				t.Errorf("heard %d more, ignored %d", len(heard), w.Client.Stale())
			}
			if got := kept.Proofs(); got != test.proof {
				t.Errorf("refused %q, want %q", got, test.proof)
			}
		})
	}
}

// A reader that is slower than the skill loses the newest events, and holds up
// nobody else's calls.
func TestSlowReaderLosesProgress(t *testing.T) {
	w := rpctest.NewWorld(t, rpctest.Counts(1), rpctest.WithProgress(t))
	r := rpctest.Request()
	blocked, goOn := make(chan struct{}), make(chan struct{})
	r.OnProgress = func(rpc.ProgressEvent) { close(blocked); <-goOn }
	done := make(chan *rpc.Result, 1)
	go func() { res, _ := w.Client.RequestAgent(t.Context(), r); done <- res }()
	rpctest.Wait(t, blocked)
	for range 10 {
		rpctest.WantStatus(t, w.Call(t, rpctest.Request()), rpc.StatusOK, 0)
	}
	close(goOn)
	rpctest.WantStatus(t, rpctest.Wait(t, done), rpc.StatusOK, 0)
}

// Every attempt has progress of its own.
func TestProgressOfAttempts(t *testing.T) {
	ran := 0
	h := rpc.HandlerFunc(func(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		ran++
		if _, err := rpctest.Counts(2).Handle(ctx, inv); err != nil || ran > 1 {
			return json.RawMessage(rpctest.ValidAnswer), err
		}
		return nil, &rpc.SkillError{Message: "not yet", Retryable: true}
	})
	w := rpctest.NewWorld(t, h, rpctest.WithProgress(t), func(cc *caller.Config, _ *callee.Config) {
		peers := cc.Peers.(rpc.Peers)
		p := peers[rpctest.Reviewer]
		p.Contract = rpctest.Document(t, strings.Replace(rpctest.Contract, "timeoutMs: 5000",
			"timeoutMs: 5000\n    retryPolicy: {maxAttempts: 2, initialDelayMs: 1, retryOn: [handler_error]}\n    idempotent: true", 1))
		peers[rpctest.Reviewer] = p
	})
	r, heard := rpctest.Listening(rpctest.Request())
	rpctest.WantStatus(t, w.Call(t, r), rpc.StatusOK, 0)
	var got []string
	for _, e := range *heard {
		got = append(got, fmt.Sprintf("%d/%d", e.Attempt, e.Seq))
	}
	if want := "1/1 1/2 2/1 2/2"; strings.Join(got, " ") != want {
		t.Errorf("heard %s, want %s", got, want)
	}
}

// Progress extends the idle timeout, and never the call's own.
func TestIdleTimeout(t *testing.T) {
	for _, test := range []struct {
		name          string
		every         time.Duration // of progress; 0 tells none
		idle, timeout time.Duration
		works         time.Duration
		timesOut      bool
		took          time.Duration
	}{
		{"silent for too long", 0, time.Second, 10 * time.Second, 3 * time.Second, true, time.Second},
		{"silent, and quick", 0, 5 * time.Second, 10 * time.Second, 3 * time.Second, false, 3 * time.Second},
		{"progress keeps it alive", 700 * time.Millisecond, time.Second, 10 * time.Second, 3 * time.Second, false, 3 * time.Second},
		{"never past the deadline", 700 * time.Millisecond, time.Second, 2 * time.Second, 30 * time.Second, true, 2 * time.Second},
		{"no idle timeout", 0, 0, 10 * time.Second, 3 * time.Second, false, 3 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ended := make(chan error, 1)
				h := rpc.HandlerFunc(func(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
					defer func() { ended <- context.Cause(ctx) }()
					done, tick := time.After(test.works), (<-chan time.Time)(nil)
					if test.every > 0 {
						ticker := time.NewTicker(test.every)
						defer ticker.Stop()
						tick = ticker.C
					}
					for {
						select {
						case <-done:
							return json.RawMessage(rpctest.ValidAnswer), nil
						case <-ctx.Done():
							return nil, ctx.Err()
						case <-tick:
							_ = inv.Progress(json.RawMessage(`{}`))
						}
					}
				})
				w := rpctest.NewWorld(t, h, rpctest.WithProgress(t))
				r := rpctest.Request()
				r.IdleTimeout, r.Timeout = test.idle, test.timeout
				start := time.Now()
				res := w.Call(t, r)
				if took := time.Since(start); took != test.took {
					t.Errorf("took %s, want %s", took, test.took)
				}
				if !test.timesOut {
					rpctest.WantStatus(t, res, rpc.StatusOK, 0)
					return
				}
				rpctest.WantStatus(t, res, rpc.StatusTimeout, 0) // at the deadline either end may be first
				if cause := rpctest.Wait(t, ended); !errors.Is(cause, callee.ErrCallerCancelled) && !errors.Is(cause, context.DeadlineExceeded) {
					t.Errorf("the skill ended because of %v", cause)
				}
			})
		})
	}
}
