package daemon_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/rpc"
	rpccallee "github.com/agentd/agentd/rpc/callee"
)

// A rawMCP is a client of 2026-07-28 that has tasks, which the library's does not.
type rawMCP struct {
	t     *testing.T
	conn  net.Conn
	lines *bufio.Reader
}

func rawMCPClient(t *testing.T, d *daemon.Daemon) *rawMCP {
	t.Helper()
	ours, theirs := net.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- d.ServeMCP(context.Background(), control.MCPOptions{Client: "a"}, theirs) }()
	t.Cleanup(func() { _ = ours.Close(); <-ended })
	return &rawMCP{t, ours, bufio.NewReader(ours)}
}

// ask returns the result of a request.
func (r *rawMCP) ask(method, params string) (result map[string]any) {
	r.t.Helper()
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"raw","version":"1"},` +
		`"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`
	if _, err := fmt.Fprintf(r.conn, `{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s,%s}}`+"\n", method, params, meta); err != nil {
		r.t.Fatal(err)
	}
	line, err := r.lines.ReadBytes('\n')
	var answer struct {
		Result map[string]any
		Error  any
	}
	if err == nil {
		err = json.Unmarshal(line, &answer)
	}
	if err != nil || answer.Result == nil {
		r.t.Fatalf("%s: %v, %s", method, err, line)
	}
	return answer.Result
}

// A task that is cancelled is cancelled for good: its skill is ended, also that of a callee which
// was away, and the calls beside it go on.
func TestMCPTasksAreCancelled(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "jetstream {}")
	cfg := load(t, durableFiles(server.URL()))
	var running atomic.Int32
	started := make(chan struct{}, 8)
	cfg.Handlers = handle(func(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		if string(inv.Payload) == `{"n":2}` {
			return inv.Payload, nil
		}
		running.Add(1)
		defer running.Add(-1)
		started <- struct{}{}
		<-ctx.Done()
		if cause := context.Cause(ctx); !errors.Is(cause, rpccallee.ErrCallerCancelled) {
			t.Errorf("a skill was ended because of %v", cause)
		}
		return nil, ctx.Err()
	})
	callee, caller := startAgent(t, cfg, "callee"), startAgent(t, cfg, "caller")
	r := rawMCPClient(t, caller)
	call := func(args string) string {
		task, _ := r.ask("tools/call", `"name":"callee__go","arguments":`+args)["taskId"].(string)
		return `"taskId":"` + task + `"`
	}
	runs := call(`{"n":1}`)
	<-started
	r.ask("tasks/cancel", runs)
	if got := r.ask("tasks/get", runs); got["status"] != "cancelled" {
		t.Errorf("one that ran: %v", got)
	}
	eventually.Holds(t, "its skill is ended", func() bool { return running.Load() == 0 })

	if err := callee.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	queued, other := call(`{"n":1}`), call(`{"n":2}`)
	r.ask("tasks/cancel", queued)
	if got := r.ask("tasks/get", queued); got["status"] != "cancelled" {
		t.Errorf("one in the queue: %v", got)
	}
	startAgent(t, cfg, "callee")
	eventually.Holds(t, "the other is answered", func() bool { return r.ask("tasks/get", other)["status"] == "completed" })
	eventually.Holds(t, "nothing runs", func() bool { return running.Load() == 0 })
	if got := r.ask("tasks/get", queued); got["status"] != "cancelled" {
		t.Errorf("after the callee came back: %v", got)
	}
}
