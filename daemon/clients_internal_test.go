package daemon

import (
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/agentd/agentd/daemon/internal/clientapi"
	"github.com/agentd/agentd/mcpbridge/mcphttp"
)

// A server that a reload opens while the agent stops does not outlive it, whether the reload puts it
// in force or gives it up.
func TestNoServerAfterTheStop(t *testing.T) {
	f := &controlFace{d: &Daemon{log: slog.New(slog.DiscardHandler)}}
	f.ctx, f.cut = t.Context(), func() {}
	listen := func() *clientapi.Server {
		t.Helper()
		token := mcphttp.Token{Client: "batch", Secret: strings.Repeat("0123456789abcdef", 4)}
		s, err := clientapi.Listen(t.Context(), "127.0.0.1:0", f, clientapi.Settings{Tokens: []mcphttp.Token{token}, MaxBodyBytes: 1}, f.d.log)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first, used, abandoned := listen(), listen(), listen()
	f.put(first, "first")
	if _, urls := f.status(); len(urls) != 1 || urls[0] != first.URL() {
		t.Errorf("served at %v", urls)
	}
	if err := f.close(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.put(used, "used")
	f.closeLater(abandoned)
	if _, urls := f.status(); urls != nil {
		t.Errorf("still served at %v", urls)
	}
	for name, s := range map[string]*clientapi.Server{"the first": first, "that of a reload": used, "that of a reload that is given up": abandoned} {
		if conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL(), "http://")); err == nil {
			conn.Close()
			t.Errorf("%s takes connections", name)
		}
	}
}
