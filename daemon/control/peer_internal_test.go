package control

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/agentd/agentd/auditchain"
)

// A name service that does not answer holds up the request that needs a name, and no
// other: each of these is a connection of its own.
func TestSlowNameServiceHoldsNobodyElseUp(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "ctl") // t.TempDir is too long for the path of a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	asked, answer := make(chan uint32, 8), make(chan struct{})
	nameOf := func(uid uint32) string {
		asked <- uid
		<-answer
		return "ada"
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/plain", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "plain") })
	mux.HandleFunc("/named", func(w http.ResponseWriter, r *http.Request) {
		who := auditchain.ActorOf(r.Context())
		_, _ = io.WriteString(w, who.User+", "+userFrom(r.Context()))
	})
	s, err := listen(t.Context(), filepath.Join(dir, "a.sock"), mux, slog.New(slog.DiscardHandler), nameOf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Shutdown(context.Background()) })
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", s.Path())
	}}}
	get := func(path string) string {
		resp, err := client.Get("http://agentd" + path)
		if err != nil {
			return err.Error()
		}
		defer func() { _ = resp.Body.Close() }()
		body, _ := io.ReadAll(resp.Body)
		return string(body)
	}
	if got := get("/plain"); got != "plain" || len(asked) > 0 {
		t.Errorf("%s, after %d questions to the name service", got, len(asked))
	}
	named := make(chan string, 1)
	go func() { named <- get("/named") }()
	uid := <-asked
	if got := get("/plain"); got != "plain" {
		t.Errorf("while a name is looked up: %s", got)
	}
	close(answer)
	if got, want := <-named, "ada, ada (uid:"; len(got) < len(want) || got[:len(want)] != want || int64(uid) != int64(os.Getuid()) {
		t.Errorf("%s, asked for user %d", got, uid)
	}
	if len(asked) > 0 {
		t.Error("the name of one connection is looked up twice")
	}
}
