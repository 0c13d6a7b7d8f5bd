package mcphttp_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/mcpbridge/mcphttp"
)

// What makes servers may forget that of a client which sends its request slowly. Its session is one of
// the server that there is once the request has come: another server would not be told of changes.
func TestServerForgottenDuringABody(t *testing.T) {
	e := serve(t, nil)
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(e.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r := initialize(deskToken)
	if _, err := fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
		"Accept: application/json, text/event-stream\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", conn.RemoteAddr(), deskToken, len(r.body)); err != nil {
		t.Fatal(err)
	}
	from := bufio.NewReader(conn)
	line, err := from.ReadString('\n') // it comes when the handler begins to read the body
	if err != nil || !strings.Contains(line, "100 Continue") {
		t.Fatal(line, err)
	}
	if _, err := from.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	now := e.tools.make("desk")
	e.tools.mu.Lock()
	e.tools.servers["desk"] = now
	e.tools.mu.Unlock()
	if _, err := conn.Write([]byte(r.body)); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(from, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	id := resp.Header.Get("Mcp-Session-Id")
	for s := range now.Sessions() {
		if s.ID() == id {
			return
		}
	}
	t.Errorf("status %d: the session %q is none of the server that there is", resp.StatusCode, id)
}

// A client for whom there is no server may ask as often as it likes: the log says when that began, and
// when it has ended.
func TestClientWithoutServerIsLoggedOnce(t *testing.T) {
	var broken atomic.Bool
	e := serve(t, func(c *mcphttp.Config) {
		inner := c.Server
		c.Server = func(client string) (*mcp.Server, error) {
			if broken.Load() {
				return nil, errors.New("two tools have one name")
			}
			return inner(client)
		}
	})
	for range 2 {
		broken.Store(true)
		for range 5 {
			wants(t, e.do(modernCall(deskToken, "whoami", "{}")), http.StatusServiceUnavailable, "nothing can be served")
		}
		broken.Store(false)
		for range 5 {
			wants(t, e.do(modernCall(deskToken, "whoami", "{}")), http.StatusOK, "desk")
		}
	}
	log := e.log.String()
	if begun, ended := strings.Count(log, "two tools have one name"), strings.Count(log, "an MCP server for a client again"); begun != 2 || ended != 2 {
		t.Errorf("the log says %d times that it began and %d times that it ended, not 2:\n%s", begun, ended, log)
	}
}
