package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/skill/worker"
)

// A caller notes the requests that it gets.
type caller struct {
	mu       sync.Mutex
	contexts []context.Context
	requests []rpc.Request
}

func (c *caller) RequestAgent(ctx context.Context, r rpc.Request) (*rpc.Result, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.contexts, c.requests = append(c.contexts, ctx), append(c.requests, r)
	return &rpc.Result{Status: rpc.StatusOK, CorrelationID: "nested", Response: json.RawMessage(`{"got": 1}`)}, nil
}

// A nested call is part of the call that the worker serves: it has its context, and ends with
// it.
func TestNestedCall(t *testing.T) {
	var c caller
	p, _ := pool(t, "rogue", func(cfg *worker.Config) { cfg.Caller = &c })
	type key struct{}
	ctx := context.WithValue(t.Context(), key{}, "the call's")
	out, err := call(ctx, p, "nested", `{"to":"agent://b","capability":"x","payload":[1],"timeoutMs":5}`)
	if err != nil {
		t.Fatal(err)
	}
	var got struct{ Result rpc.Result }
	if err := json.Unmarshal([]byte(out), &got); err != nil || got.Result.CorrelationID != "nested" || string(got.Result.Response) != `{"got":1}` {
		t.Errorf("%s, %v", out, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.requests) != 1 || c.requests[0].To != "agent://b" || c.requests[0].Timeout.Milliseconds() != 5 || c.contexts[0].Value(key{}) != "the call's" {
		t.Errorf("%+v", c.requests)
	}
	<-c.contexts[0].Done()
}

// A worker makes calls in the name of those that it serves, and in no other.
func TestRequestsThatAreRefused(t *testing.T) {
	var c caller
	p, _ := pool(t, "rogue", func(cfg *worker.Config) { cfg.Caller = &c })
	for capability, test := range map[string]struct {
		payload string
		code    int
	}{
		"foreign": {"null", -32001}, "unmethod": {"null", -32601},
		"nested": {`{"to":"agent://b","capability":"x","sudo":true}`, -32602},
	} {
		var got struct{ Error struct{ Code int } }
		if err := json.Unmarshal([]byte(mustCall(t, p, capability, test.payload)), &got); err != nil || got.Error.Code != test.code {
			t.Errorf("%s: %+v, %v", capability, got, err)
		}
	}
	if len(c.requests) != 0 || p.Status().Restarts != 0 {
		t.Errorf("%d calls were made, %+v", len(c.requests), p.Status())
	}
}

// A reporter notes progress.
type reporter struct{ values chan string }

func (r reporter) Report(value json.RawMessage) error {
	r.values <- string(value)
	return nil
}

// Progress reaches the caller of its call, before the answer, and what a later version of the
// protocol says is passed over.
func TestProgress(t *testing.T) {
	p, _ := pool(t, "rogue", nil)
	r := reporter{make(chan string, 8)}
	if _, err := p.Handle(t.Context(), &rpc.Invocation{Capability: "progress", Reporter: r}); err != nil {
		t.Fatal(err)
	}
	if len(r.values) != 1 || <-r.values != `{"done":1}` {
		t.Error("the progress is lost")
	}
}

// Progress that is too long is lost, which the log says once for a call.
func TestProgressThatIsLost(t *testing.T) {
	p, log := pool(t, "rogue", nil)
	r := reporter{make(chan string, 8)}
	if _, err := p.Handle(t.Context(), &rpc.Invocation{Capability: "progress-big", Reporter: r}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(log.String(), "the progress of a call is lost"); n != 1 || len(r.values) != 0 {
		t.Errorf("%d lines and %d events:\n%s", n, len(r.values), log)
	}
}

// A report of what a model used counts for its call alone. One that is none, or names no call of the
// worker, is refused: the log says so once for a process, and of a call once for that.
func TestModelUsage(t *testing.T) {
	used := make(chan string, 8)
	p, log := pool(t, "rogue", func(cfg *worker.Config) {
		cfg.ModelUsage = func(inv *rpc.Invocation, u *rpc.ModelUsage) {
			used <- fmt.Sprintf("%s: %s %d", inv.CorrelationID, u.Model, u.InputTokens)
		}
	})
	for _, id := range []string{"c-1", "c-2"} {
		if _, err := p.Handle(t.Context(), &rpc.Invocation{Capability: "model-usage", CorrelationID: id}); err != nil {
			t.Fatal(err)
		}
		if len(used) != 1 || <-used != id+": m 7" {
			t.Errorf("the usage of %s is lost, or that of others counted", id)
		}
	}
	text := log.String()
	if n := strings.Count(text, "a report of a model's usage is refused"); n != 3 {
		t.Errorf("%d lines:\n%s", n, text)
	}
	if !strings.Contains(text, "its params are not {id, usage}") || !strings.Contains(text, "model of a model's usage is not 1 to 128") {
		t.Errorf("the log does not say why:\n%s", text)
	}
}
