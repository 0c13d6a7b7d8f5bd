package rpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/identity"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/transport"
)

// telling offers capabilities whose skills tell of their progress.
func telling(t testing.TB) option {
	return func(cc *caller.Config, ic *callee.Config) {
		ic.Contract = document(t, strings.ReplaceAll(contract, "- name: ", "- progress: true\n    name: "))
	}
}

// counts tells the numbers from 1, and answers.
func counts(n int) rpc.Handler {
	return rpc.HandlerFunc(func(ctx context.Context, _ *rpc.Invocation) (json.RawMessage, error) {
		for i := range n {
			if err := rpc.Progress(ctx, json.RawMessage(strconv.Itoa(i+1))); err != nil {
				return nil, err
			}
		}
		return json.RawMessage(goodAnswer), nil
	})
}

// hearing keeps what a call hears. Nothing locks it: all is heard on the
// goroutine of the call.
func hearing(r rpc.Request) (rpc.Request, *[]rpc.ProgressEvent) {
	heard := &[]rpc.ProgressEvent{}
	r.OnProgress = func(e rpc.ProgressEvent) { *heard = append(*heard, e) }
	return r, heard
}

func TestProgressComesInOrderBeforeTheReply(t *testing.T) {
	both, kept := proven(t)
	w := newWorld(t, counts(20), telling(t), both)
	for range 20 {
		r, heard := hearing(request())
		wantStatus(t, w.call(t, t.Context(), r), rpc.StatusOK, 0)
		if len(*heard) != 20 {
			t.Fatalf("heard %v", *heard)
		}
		for i, e := range *heard {
			if want := (rpc.ProgressEvent{Seq: i + 1, Attempt: 1, Value: json.RawMessage(strconv.Itoa(i + 1))}); !reflect.DeepEqual(e, want) {
				t.Errorf("heard %+v, want %+v", e, want)
			}
		}
	}
	if got := kept.reasons(); got != "" || w.client.Stale() != 0 {
		t.Errorf("refused %q, ignored %d", got, w.client.Stale())
	}
}

// Who does not ask sees nothing new on the wire, and a capability that does not say so
// tells nothing.
func TestProgressOnlyWhereBothEndsWantIt(t *testing.T) {
	for _, test := range []struct {
		name        string
		offered     bool
		asked       string
		wantsAnyone bool
	}{
		{"both", true, "accept", true},
		{"nobody asks", true, "", false},
		{"another word", true, "1", false},
		{"not offered", false, "accept", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			wants := make(chan bool, 1)
			h := rpc.HandlerFunc(func(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
				wants <- inv.WantsProgress()
				return counts(1).Handle(ctx, inv)
			})
			options := []option{}
			if test.offered {
				options = append(options, telling(t))
			}
			w := newWorld(t, h, options...)
			f := newForeignCaller(t, w)
			e := f.request()
			if test.asked != "" {
				e.Headers = envelope.Headers{{Key: envelope.HeaderProgress, Value: test.asked}}
			}
			publish(t, w, topic, e)
			if got := wait(t, wants); got != test.wantsAnyone {
				t.Errorf("WantsProgress is %v", got)
			}
			first := wait(t, f.replies)
			if test.wantsAnyone {
				seq, _ := first.Headers.Get(envelope.HeaderProgress)
				if first.Kind != envelope.Event || seq != "1" || first.CausedBy != "m-1" || first.CorrelationID != "c-1" ||
					first.From != calleeAddr || first.To != "agent://foreign" || string(first.Payload) != "1" {
					t.Errorf("the event is %+v %s", first, first.Payload)
				}
				first = wait(t, f.replies)
			}
			if first.Kind != envelope.Response {
				t.Errorf("a %s came, and not the reply", first.Kind)
			}
		})
	}
}

// A skill that tells too much is not held up: what is over the bounds is lost, and
// the caller sees where.
func TestTooMuchProgressLeavesGaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const told = 3 * rpc.ProgressPerSecond
		h := rpc.HandlerFunc(func(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
			start := time.Now()
			if _, err := counts(told).Handle(ctx, inv); err != nil {
				return nil, err
			}
			if time.Since(start) != 0 {
				return nil, errors.New("progress held the skill up")
			}
			time.Sleep(time.Second)
			return json.RawMessage(goodAnswer), rpc.Progress(ctx, json.RawMessage(`"last"`))
		})
		w := newWorld(t, h, telling(t))
		r, heard := hearing(request())
		wantStatus(t, w.call(t, t.Context(), r), rpc.StatusOK, 0)
		all := *heard
		if len(all) != rpc.ProgressPerSecond+1 {
			t.Fatalf("heard %d events, want a second's worth and the last", len(all))
		}
		for i := 1; i < len(all); i++ {
			if all[i].Seq <= all[i-1].Seq {
				t.Errorf("event %d came after %d", all[i].Seq, all[i-1].Seq)
			}
		}
		if last := all[len(all)-1]; last.Seq != told+1 || string(last.Value) != `"last"` {
			t.Errorf("the last is %+v", last)
		}
	})
}

func TestProgressRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		value string
		want  rpc.Code
	}{
		"no JSON":        {`{"a":`, rpc.CodeInvalidPayload},
		"nothing":        {``, rpc.CodeInvalidPayload},
		"too large":      {`"` + strings.Repeat("x", rpc.MaxProgressBytes) + `"`, rpc.CodePayloadTooLarge},
		"as large as is": {`"` + strings.Repeat("x", rpc.MaxProgressBytes-2) + `"`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			told := make(chan error, 1)
			h := rpc.HandlerFunc(func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
				told <- inv.Progress(json.RawMessage(test.value))
				return json.RawMessage(goodAnswer), nil
			})
			w := newWorld(t, h, telling(t))
			r, heard := hearing(request())
			wantStatus(t, w.call(t, t.Context(), r), rpc.StatusOK, 0)
			if err := wait(t, told); rpc.CodeOf(err) != test.want || (err == nil) != (len(*heard) == 1) {
				t.Errorf("told %v, heard %d", err, len(*heard))
			}
		})
	}
	if err := rpc.Progress(t.Context(), json.RawMessage("1")); rpc.CodeOf(err) != rpc.CodeInvalidRequest {
		t.Errorf("outside a call: %v", err)
	}
}

// Progress after the end of a call is refused, and reaches nobody.
func TestLateProgressIsRefused(t *testing.T) {
	kept := make(chan context.Context, 1)
	h := rpc.HandlerFunc(func(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		kept <- ctx
		return counts(1).Handle(ctx, inv)
	})
	w := newWorld(t, h, telling(t))
	r, heard := hearing(request())
	wantStatus(t, w.call(t, t.Context(), r), rpc.StatusOK, 0)
	if err := rpc.Progress(wait(t, kept), json.RawMessage("2")); rpc.CodeOf(err) != rpc.CodeInvalidRequest {
		t.Errorf("late progress: %v", err)
	}
	if len(*heard) != 1 {
		t.Errorf("heard %v", *heard)
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
							return json.RawMessage(goodAnswer), nil
						case <-ctx.Done():
							return nil, ctx.Err()
						case <-tick:
							_ = inv.Progress(json.RawMessage(`{}`))
						}
					}
				})
				w := newWorld(t, h, telling(t))
				r := request()
				r.IdleTimeout, r.Timeout = test.idle, test.timeout
				start := time.Now()
				res := w.call(t, t.Context(), r)
				if took := time.Since(start); took != test.took {
					t.Errorf("took %s, want %s", took, test.took)
				}
				if !test.timesOut {
					wantStatus(t, res, rpc.StatusOK, 0)
					return
				}
				wantStatus(t, res, rpc.StatusTimeout, 0) // at the deadline either end may be first
				if cause := wait(t, ended); !errors.Is(cause, callee.ErrCallerCancelled) && !errors.Is(cause, context.DeadlineExceeded) {
					t.Errorf("the skill ended because of %v", cause)
				}
			})
		})
	}
}

func TestProgressIsForCallsThatAreWaitedFor(t *testing.T) {
	w := newWorld(t, counts(1), telling(t))
	for _, mode := range []rpc.Mode{rpc.ModeAsync, rpc.ModeFireAndForget} {
		r, _ := hearing(request())
		r.Mode = mode
		wantStatus(t, w.call(t, t.Context(), r), rpc.StatusError, rpc.CodeInvalidRequest)
	}
	r := request()
	r.IdleTimeout = -1
	wantStatus(t, w.call(t, t.Context(), r), rpc.StatusError, rpc.CodeInvalidRequest)
}

// Whoever learns a reply topic can publish there: progress must pass what a
// reply must.
func TestForgedProgressIsIgnored(t *testing.T) {
	good := keyring(t, calleeAddr, callerAddr)
	for _, test := range []struct {
		name   string
		change func(*envelope.Envelope)
		sign   *identity.Keyring
		proof  string
	}{
		{"from another agent", func(e *envelope.Envelope) { e.From = "agent://mallory" }, nil, ""},
		{"to another agent", func(e *envelope.Envelope) { e.To = "agent://mallory" }, keyring(t, calleeAddr, "agent://mallory"), ""},
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
			both, kept := proven(t)
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
				return json.RawMessage(goodAnswer), nil
			})
			w := newWorld(t, h, telling(t), both)
			seen := w.tap(t)
			r := request()
			heard := make(chan rpc.ProgressEvent, 10)
			r.OnProgress = func(e rpc.ProgressEvent) { heard <- e }
			results := make(chan *rpc.Result, 1)
			go func() { res, _ := w.client.RequestAgent(t.Context(), r); results <- res }()
			req := wait(t, seen)
			wait(t, told)
			wait(t, heard)
			_, replyTopic, _ := strings.Cut(req.ReplyTo, "://")
			e := &envelope.Envelope{
				Kind: envelope.Event, MessageID: "f-1", CorrelationID: req.CorrelationID, CausedBy: req.MessageID,
				From: calleeAddr, To: callerAddr, Capability: req.Capability, Payload: json.RawMessage(`"forged"`),
				Headers: envelope.Headers{{Key: envelope.HeaderProgress, Value: "2"}},
			}
			test.change(e)
			send(t, w, replyTopic, e, test.sign)
			close(goOn)
			wantStatus(t, wait(t, results), rpc.StatusOK, 0)
			if len(heard) != 0 || w.client.Stale() != 1 {
				t.Errorf("heard %d more, ignored %d", len(heard), w.client.Stale())
			}
			if got := kept.reasons(); got != test.proof {
				t.Errorf("refused %q, want %q", got, test.proof)
			}
		})
	}
}

// A reader that is slower than the skill loses the newest events, and holds up
// nobody else's calls.
func TestSlowReaderLosesProgress(t *testing.T) {
	w := newWorld(t, counts(1), telling(t))
	r := request()
	blocked, goOn := make(chan struct{}), make(chan struct{})
	r.OnProgress = func(rpc.ProgressEvent) { close(blocked); <-goOn }
	done := make(chan *rpc.Result, 1)
	go func() { res, _ := w.client.RequestAgent(t.Context(), r); done <- res }()
	wait(t, blocked)
	for range 10 {
		wantStatus(t, w.call(t, t.Context(), request()), rpc.StatusOK, 0)
	}
	close(goOn)
	wantStatus(t, wait(t, done), rpc.StatusOK, 0)
}

// Every attempt has progress of its own.
func TestProgressOfAttempts(t *testing.T) {
	ran := 0
	h := rpc.HandlerFunc(func(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		ran++
		if _, err := counts(2).Handle(ctx, inv); err != nil || ran > 1 {
			return json.RawMessage(goodAnswer), err
		}
		return nil, &rpc.SkillError{Message: "not yet", Retryable: true}
	})
	w := newWorld(t, h, telling(t), func(cc *caller.Config, _ *callee.Config) {
		peers := cc.Peers.(rpc.Peers)
		p := peers[calleeAddr]
		p.Contract = document(t, strings.Replace(contract, "timeoutMs: 5000",
			"timeoutMs: 5000\n    retryPolicy: {maxAttempts: 2, initialDelayMs: 1, retryOn: [handler_error]}\n    idempotent: true", 1))
		peers[calleeAddr] = p
	})
	r, heard := hearing(request())
	wantStatus(t, w.call(t, t.Context(), r), rpc.StatusOK, 0)
	var got []string
	for _, e := range *heard {
		got = append(got, fmt.Sprintf("%d/%d", e.Attempt, e.Seq))
	}
	if want := "1/1 1/2 2/1 2/2"; strings.Join(got, " ") != want {
		t.Errorf("heard %s, want %s", got, want)
	}
}

// A broker that takes nothing does not hold up the reply for long.
type stuck struct{ transport.Transport }

func (s stuck) Publish(ctx context.Context, m transport.Message) error {
	e, err := envelope.Decode(m.Data)
	if err == nil && e.Kind == envelope.Event {
		<-ctx.Done()
		return ctx.Err()
	}
	return s.Transport.Publish(ctx, m)
}

func TestReplyWaitsForProgressOnlySoLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, counts(3), telling(t))
		if err := w.inbox.Listen(stuck{w.calleeConn}, topic+"2"); err != nil {
			t.Fatal(err)
		}
		f := newForeignCaller(t, w)
		e := f.request()
		e.Headers = envelope.Headers{{Key: envelope.HeaderProgress, Value: "accept"}}
		start := time.Now()
		publish(t, w, topic+"2", e)
		if reply := wait(t, f.replies); reply.Kind != envelope.Response || time.Since(start) != time.Second {
			t.Errorf("a %s came after %s", reply.Kind, time.Since(start))
		}
	})
}
