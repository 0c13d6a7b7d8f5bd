package daemon

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/mcpbridge/mcphttp"
)

// A call of a client that does not end, such as one that waits for a person, leaves time
// for what else ends when the agent stops.
func TestMCPLeavesTimeToStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newMCPFace(&Daemon{})
		f.pending["a"] = 1
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begun := time.Now()
		f.finish(ctx)
		if took := time.Since(begun); took != time.Minute/2 {
			t.Errorf("it waited for %s", took)
		}
		f.stop()
		f.running.Wait()
	})
}

// A server for MCP clients that a reload opens while the agent stops does not outlive it, whether
// the reload puts it in force or gives it up.
func TestNoMCPServerAfterTheStop(t *testing.T) {
	f := newMCPFace(&Daemon{log: slog.New(slog.DiscardHandler)})
	v := mcpView{fleet: &fleet.Fleet{}, member: &fleet.Member{Agent: &fleet.AgentFile{}}}
	open := func() *mcpServer {
		t.Helper()
		s := f.permanent("127.0.0.1:0")
		s.auth = func(mcpView) (mcphttp.Auth, error) { return mcphttp.Auth{Anonymous: "anyone"}, nil }
		if err := s.open(t.Context(), v); err != nil {
			t.Fatal(err)
		}
		return s
	}
	first, used, abandoned := open(), open(), open()
	f.keep(first, first.opened)
	if urls := f.urls(); len(urls) != 1 || urls[0] != first.url() {
		t.Errorf("served at %v", urls)
	}
	if err := f.close(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.keep(used, used.opened)
	f.closeLater(abandoned)
	if urls := f.urls(); urls != nil {
		t.Errorf("still served at %v", urls)
	}
	for name, s := range map[string]*mcpServer{"the first": first, "that of a reload": used, "that of a reload that is given up": abandoned} {
		if conn, err := net.Dial("tcp", s.listener.Addr().String()); err == nil {
			_ = conn.Close()
			t.Errorf("%s takes connections", name)
		}
	}
}
