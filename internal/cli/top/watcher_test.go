package top

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/daemon/control"
)

// What is said of an agent that has not answered yet tells one that runs here, and cannot say what
// it does, from one that does not run here.
func TestUnanswered(t *testing.T) {
	t.Parallel()
	folder, err := os.MkdirTemp("", "top") // paths of sockets are short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	older := filepath.Join(folder, "older.sock")
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", older)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.NotFoundHandler()} // as versions without activity answer
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })

	for _, tt := range []struct {
		name, socket, state, says string
		named, elsewhere          bool
	}{
		{"of an older version", older, stateUnreachable, "older version", false, false},
		{"none", filepath.Join(folder, "none.sock"), stateDown, "does not run", false, true},
		{"none, asked for", filepath.Join(folder, "none.sock"), stateDown, "does not run", true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := &source{id: "desk", client: control.NewClient(tt.socket), named: tt.named}
			t.Cleanup(s.client.Close)
			if a := s.ask(t.Context()); a.State != tt.state || !strings.Contains(a.Error, tt.says) || a.elsewhere != tt.elsewhere {
				t.Errorf("%s, %q, elsewhere: %t", a.State, a.Error, a.elsewhere)
			}
		})
	}
}
