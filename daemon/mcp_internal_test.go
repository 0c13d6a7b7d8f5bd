package daemon

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/eventually"
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

// Strangers do not use up the descriptors of the process by connections to a server for MCP clients.
func TestMCPConnectionsAreBounded(t *testing.T) {
	f := newMCPFace(&Daemon{log: slog.New(slog.DiscardHandler)})
	s := f.permanent("127.0.0.1:0")
	s.auth = func(mcpView) (mcphttp.Auth, error) { return mcphttp.Auth{Anonymous: "anyone"}, nil }
	if err := s.open(t.Context(), mcpView{fleet: &fleet.Fleet{}, member: &fleet.Member{Agent: &fleet.AgentFile{}}}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(s.Close(t.Context()), f.close(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", s.listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	var all []net.Conn
	for range maxMCPConnections {
		all = append(all, dial())
	}
	last := dial()
	_ = last.SetReadDeadline(time.Now().Add(5 * time.Second)) // half of what a header may take
	if _, err := last.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("one connection more than there may be: %v", err)
	}
	for _, conn := range append(all, last) {
		_ = conn.Close()
	}
	eventually.Holds(t, "a client is served again", func() bool {
		resp, err := http.Get(s.url())
		if err == nil {
			_ = resp.Body.Close()
		}
		return err == nil
	})
}
