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

// Anybody who learns a reply topic can publish there, so progress must pass the checks
// of a reply: without proofs the binding to the call still holds.
func TestForgedProgressIsIgnored(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*envelope.Envelope)
		proof  bool // both ends demand proofs
	}{
		{"from another agent", func(e *envelope.Envelope) { e.From = "agent://mallory" }, false},
		{"to another agent", func(e *envelope.Envelope) { e.To = "agent://mallory" }, false},
		{"of another call", func(e *envelope.Envelope) { e.CorrelationID = "c-9" }, false},
		{"of another request", func(e *envelope.Envelope) { e.CausedBy = "m-9" }, false},
		{"of no request", func(e *envelope.Envelope) { e.CausedBy = "" }, false},
		{"of another tenant", func(e *envelope.Envelope) { e.TenantID = "other" }, false},
		{"of no tenant", func(e *envelope.Envelope) { e.TenantID = "" }, false},
		{"without a number", func(e *envelope.Envelope) { e.Headers = nil }, false},
		{"with number 0", func(e *envelope.Envelope) { e.Headers[0].Value = "0" }, false},
		{"with a bad number", func(e *envelope.Envelope) { e.Headers[0].Value = "-1" }, false},
		{"a number again", func(e *envelope.Envelope) { e.Headers[0].Value = "1" }, false},
		{"too large", func(e *envelope.Envelope) {
			e.Payload = json.RawMessage(`"` + strings.Repeat("x", rpc.MaxProgressBytes-1) + `"`)
		}, false},
		{"without a proof", func(*envelope.Envelope) {}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				goOn := make(chan struct{})
				h := rpc.HandlerFunc(func(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
					if err := inv.Progress(json.RawMessage(`"real"`)); err != nil {
						return nil, err
					}
					<-goOn
					return json.RawMessage(rpctest.ValidAnswer), nil
				})
				options := []rpctest.Option{rpctest.WithProgress(t), func(cc *caller.Config, _ *callee.Config) { cc.TenantID = "acme" }}
				proven, kept := rpctest.Proven(t)
				if test.proof {
					options = append(options, proven)
				}
				w := rpctest.NewWorld(t, h, options...)
				seen := w.Tap(t)
				r := rpctest.Request()
				events := make(chan rpc.ProgressEvent, 10)
				r.OnProgress = func(e rpc.ProgressEvent) { events <- e }
				done := w.Start(t.Context(), r)
				synctest.Wait()
				request := <-seen
				if len(events) != 1 {
					t.Fatalf("%d events arrived, want the real one", len(events))
				}
				_, replyTopic, _ := strings.Cut(request.ReplyTo, "://")
				e := rpctest.Reply(request)
				e.Kind, e.Payload = envelope.Event, json.RawMessage(`"forged"`)
				e.Headers = envelope.Headers{{Key: envelope.HeaderProgress, Value: "2"}}
				test.change(e)
				w.Publish(t, replyTopic, e)
				synctest.Wait()
				if len(events) != 1 || w.Client.Stale() != 1 {
					t.Errorf("%d events arrived, %d were ignored", len(events), w.Client.Stale())
				}
				close(goOn)
				rpctest.WantStatus(t, <-done, rpc.StatusOK, 0)
				if got := kept.Proofs(); test.proof != (got == "caller missing-auth") {
					t.Errorf("recorded %q", got)
				}
			})
		})
	}
}

// The forged events of TestForgedProgressIsIgnored each differ in one thing from one
// that arrives.
func TestProgressByHandArrives(t *testing.T) {
	w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer))
	w.TakeOver(t, func(request *envelope.Envelope, send func(*envelope.Envelope)) {
		for _, payload := range []json.RawMessage{json.RawMessage(`"` + strings.Repeat("x", rpc.MaxProgressBytes-2) + `"`), nil} {
			e := rpctest.Reply(request)
			e.Kind, e.Payload = envelope.Event, payload
			e.Headers = envelope.Headers{{Key: envelope.HeaderProgress, Value: map[bool]string{true: "2", false: "1"}[payload == nil]}}
			send(e)
		}
		send(rpctest.Reply(request))
	})
	r, events := rpctest.Listening(rpctest.Request())
	rpctest.WantStatus(t, w.Call(t, r), rpc.StatusOK, 0)
	if all := *events; len(all) != 2 || len(all[0].Value) != rpc.MaxProgressBytes || all[1].Seq != 2 || string(all[1].Value) != "null" {
		t.Errorf("%d events arrived", len(all))
	}
	// A call that did not ask for progress drops it.
	rpctest.WantStatus(t, w.Call(t, rpctest.Request()), rpc.StatusOK, 0)
	if w.Client.Stale() != 2 {
		t.Errorf("%d events were ignored, want 2", w.Client.Stale())
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
		{"never past the deadline", 700 * time.Millisecond, time.Second, 2 * time.Second, 30 * time.Second, true, 2*time.Second - 50*time.Millisecond}, // the callee reports it
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
