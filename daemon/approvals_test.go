package daemon_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/rpc"
)

func startAsking(t *testing.T, timeoutMs string) (daemon.Config, *daemon.Fleet, *control.Client) {
	t.Helper()
	all := files()
	all["caller/agent.yaml"] += "permissions: {ask: ['RequestAgent:**']}\nsecurity: {approvalTimeoutMs: " + timeoutMs + "}\n"
	cfg := load(t, all)
	cfg.Handlers = handle(echo)
	f := startFleet(t, cfg)
	t.Cleanup(func() { stop(t, f) })
	d, _ := f.Daemon("caller")
	c := control.NewClient(d.Socket())
	t.Cleanup(c.Close)
	return cfg, f, c
}

// waiting waits until n calls wait for approval.
func waiting(t *testing.T, c *control.Client, n int) (all []control.Approval) {
	t.Helper()
	eventually.Holds(t, fmt.Sprint(n, " calls wait"), func() bool {
		var err error
		if all, err = c.Approvals(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		return len(all) == n
	})
	return all
}

// The caller learns of the wait by the name under which it is decided.
func TestWaitIsAnnounced(t *testing.T) {
	_, f, c := startAsking(t, "60000")
	waits, done := make(chan rpc.ApprovalWait, 1), make(chan error, 1)
	go func() {
		_, err := client(t, f, "caller").RequestAgent(t.Context(), rpc.Request{
			To: "agent://callee", Capability: "go", Payload: json.RawMessage(`{"n":1}`), OnWait: func(w rpc.ApprovalWait) { waits <- w },
		})
		done <- err
	}()
	wait := <-waits
	if shown := waiting(t, c, 1)[0]; shown.ID != wait.ID || !shown.Until.Equal(wait.Until) {
		t.Errorf("the caller was told of %+v, and %s waits until %s", wait, shown.ID, shown.Until)
	}
	if err := c.Decide(t.Context(), wait.ID, control.Decision{Approve: true}); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// However many decide about one call at once, one decision counts, and it is the
// one that is recorded.
func TestOneDecisionCounts(t *testing.T) {
	cfg, f, c := startAsking(t, "60000")
	done := make(chan error, 1)
	go func() { _, err := goCall(t, f); done <- err }()
	id := waiting(t, c, 1)[0].ID
	var wg sync.WaitGroup
	var mu sync.Mutex
	var counted []bool
	for i := range 8 {
		wg.Go(func() {
			approve := i%2 == 0
			err := c.Decide(t.Context(), id, control.Decision{Approve: approve})
			if _, late := errors.AsType[*control.NoApprovalError](err); late {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			counted = append(counted, approve)
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	err := <-done
	if len(counted) != 1 || counted[0] != (err == nil) {
		t.Errorf("decisions %v, the call ended with %v", counted, err)
	}
	got := ofKind(t, cfg, "caller", auditchain.KindApproval)
	want := map[bool]string{true: "approve", false: "deny"}[counted[0]]
	if len(got) != 1 || got[0]["decision"] != want || got[0]["approver"] == "" || got[0]["approvalId"] != id {
		t.Errorf("records %v, want %s", got, want)
	}
}

func TestNobodyDecides(t *testing.T) {
	cfg, f, c := startAsking(t, "20")
	if _, err := goCall(t, f); rpc.CodeOf(err) != rpc.CodeDenied {
		t.Errorf("nobody decided: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d, _ := f.Daemon("caller")
	_, err := d.Client().RequestAgent(ctx, rpc.Request{To: "agent://callee", Capability: "go", Payload: json.RawMessage(`{"n":1}`)})
	if rpc.CodeOf(err) != rpc.CodeCancelled {
		t.Errorf("the caller gave up: %v", err)
	}
	waiting(t, c, 0)
	var decisions []any
	for _, body := range ofKind(t, cfg, "caller", auditchain.KindApproval) {
		decisions = append(decisions, body["decision"])
	}
	if len(decisions) != 2 || decisions[0] != "expire" || decisions[1] != "cancel" {
		t.Errorf("recorded %v", decisions)
	}
	if err := c.Decide(t.Context(), "00000000", control.Decision{Approve: true}); !errors.As(err, new(*control.NoApprovalError)) {
		t.Errorf("a decision about nothing: %v", err)
	}
}

// More calls than a person can look at are denied at once.
func TestTooManyWait(t *testing.T) {
	const most = 256
	cfg, f, c := startAsking(t, "60000")
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	d, _ := f.Daemon("caller")
	for range most {
		wg.Go(func() {
			_, _ = d.Client().RequestAgent(ctx, rpc.Request{To: "agent://callee", Capability: "go", Payload: json.RawMessage(`{"n":1}`)})
		})
	}
	waiting(t, c, most)
	if _, err := goCall(t, f); rpc.CodeOf(err) != rpc.CodeDenied {
		t.Errorf("one more: %v", err)
	}
	cancel()
	wg.Wait()
	n := map[any]int{}
	for _, body := range ofKind(t, cfg, "caller", auditchain.KindApproval) {
		n[body["decision"]]++
	}
	if n["overflow"] != 1 || n["cancel"] != most {
		t.Errorf("recorded %v", n)
	}
}
