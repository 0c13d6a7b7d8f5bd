package callee_test

import (
	"context"
	"encoding/json"
	"errors"
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

func withService(s callee.Service) rpctest.Option {
	return func(_ *caller.Config, ic *callee.Config) {
		ic.Checks.Tenants, ic.Services = rpctest.Tenant("acme"), map[string]callee.Service{"verify": s}
	}
}

// A service answers on its own topic, under its own name, within its own deadline.
// Its caller learns only that it failed, not why.
func TestService(t *testing.T) {
	const secret = "the disk is full"
	for _, test := range []struct {
		name   string
		change func(*envelope.Envelope)
		code   string // "-" for no answer
	}{
		{"served", func(*envelope.Envelope) {}, ""},
		{"fails", func(e *envelope.Envelope) { e.Payload = json.RawMessage(`"fail"`) }, "HANDLER_ERROR"},
		{"another name", func(e *envelope.Envelope) { e.Capability = "review-pr" }, "-"},
		{"an event", func(e *envelope.Envelope) { e.Kind = envelope.Event }, "-"},
		{"of no tenant", func(e *envelope.Envelope) { e.TenantID = "" }, ""},
		{"of a tenant that is no name", func(e *envelope.Envelope) { e.TenantID = "a/b" }, "EAGENTRPC_INVALID_REQUEST"},
		{"another agent", func(e *envelope.Envelope) { e.To = "agent://other" }, "EAGENTRPC_MISADDRESSED"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), withService(
					func(ctx context.Context, from envelope.Address, request json.RawMessage) (json.RawMessage, error) {
						if d, ok := ctx.Deadline(); !ok || time.Until(d) != 30*time.Second || from != "agent://foreign" {
							t.Errorf("called by %s until %s", from, d)
						}
						if string(request) == `"fail"` {
							return nil, errors.New(secret)
						}
						return request, nil
					}))
				f := rpctest.NewForeignCaller(t, w)
				e := f.Request()
				e.Capability, e.TenantID, e.Payload = "agentd.verify", "acme", json.RawMessage(`[1]`)
				test.change(e)
				w.Publish(t, rpctest.Topic+".verify", e)
				synctest.Wait()
				if test.code == "-" {
					if len(f.Replies) != 0 {
						t.Error("it was answered")
					}
					return
				}
				if len(f.Replies) != 1 {
					t.Fatalf("%d replies", len(f.Replies))
				}
				reply := <-f.Replies
				if got := rpctest.ReplyCode(t, reply); got != test.code || strings.Contains(string(reply.Payload), secret) {
					t.Errorf("reply %s, want code %q", reply.Payload, test.code)
				}
				if test.code == "" && string(reply.Payload) != `{"ok":true,"data":[1]}` {
					t.Errorf("reply %s", reply.Payload)
				}
				if w.Inbox.InFlight() != 0 {
					t.Errorf("%d requests in flight", w.Inbox.InFlight())
				}
			})
		})
	}
}

// A request to a service counts among those that run, and Shutdown waits for it.
func TestServiceCountsAsRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		finish := make(chan struct{})
		w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer), withService(
			func(context.Context, envelope.Address, json.RawMessage) (json.RawMessage, error) {
				<-finish
				return json.RawMessage(`1`), nil
			}))
		f := rpctest.NewForeignCaller(t, w)
		e := f.Request()
		e.Capability, e.TenantID = "agentd.verify", "acme"
		w.Publish(t, rpctest.Topic+".verify", e)
		synctest.Wait()
		stopped := make(chan error, 1)
		go func() { stopped <- w.Inbox.Shutdown(t.Context()) }()
		synctest.Wait()
		if w.Inbox.InFlight() != 1 || len(stopped) != 0 {
			t.Errorf("%d in flight, stopped: %v", w.Inbox.InFlight(), len(stopped) == 1)
		}
		close(finish)
		err := <-stopped
		synctest.Wait()
		if err != nil || len(f.Replies) != 1 {
			t.Errorf("%v, %d replies", err, len(f.Replies))
		}
	})
}

// The published contract is that which the inbox serves now.
func TestPublishedCapabilities(t *testing.T) {
	w := rpctest.NewWorld(t, rpctest.Answers(rpctest.ValidAnswer))
	f := rpctest.NewForeignCaller(t, w)
	ask := func(change func(*envelope.Envelope)) *envelope.Envelope {
		e := f.Request()
		e.Capability = "agentd.capabilities"
		change(e)
		w.Publish(t, rpctest.Topic+".capabilities", e)
		return rpctest.Wait(t, f.Replies)
	}
	same := func(*envelope.Envelope) {}
	if got := string(ask(same).Payload); !strings.Contains(got, `"loose"`) || !strings.Contains(got, `"review-pr"`) {
		t.Errorf("published %s", got)
	}
	less := rpctest.Document(t, strings.TrimSuffix(rpctest.Contract, "  - name: loose\n"))
	if err := w.Inbox.SetContract(less, map[string]rpc.Handler{"review-pr": rpctest.Answers(`1`)}); err != nil {
		t.Fatal(err)
	}
	if got := string(ask(same).Payload); strings.Contains(got, `"loose"`) {
		t.Errorf("published %s after a reload", got)
	}
	if code := rpctest.ReplyCode(t, ask(func(e *envelope.Envelope) { e.To = "agent://other" })); code != "EAGENTRPC_MISADDRESSED" {
		t.Errorf("code %q", code)
	}
	// After an error everything is as it was.
	if err := w.Inbox.SetContract(rpctest.Document(t, rpctest.Contract), nil); err == nil || !strings.Contains(err.Error(), `"loose"`) {
		t.Errorf("a contract without handlers: %v", err)
	}
	if got := string(ask(same).Payload); strings.Contains(got, `"loose"`) {
		t.Errorf("published %s after a failed reload", got)
	}
}
