package control_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/agentd/agentd/daemon/control"
)

// face echoes streams, and serves HTTP nowhere.
type face struct {
	fail  error
	opts  chan control.MCPOptions
	ended chan struct{}
	held  chan bool // receives true when a server is opened, and false when it is released
}

func (f *face) MCPStream(o control.MCPOptions) (func(context.Context, io.ReadWriteCloser) error, error) {
	if f.fail != nil {
		return nil, f.fail
	}
	f.opts <- o
	return func(_ context.Context, s io.ReadWriteCloser) error {
		_, err := io.Copy(s, s)
		return errors.Join(err, s.Close())
	}, nil
}

func (f *face) MCPListen(_ context.Context, o control.MCPListenOptions) (*control.MCPListening, func(), error) {
	if f.fail != nil {
		return nil, nil, f.fail
	}
	f.opts <- o.MCPOptions
	f.held <- true
	return &control.MCPListening{URL: "http://" + o.Address + "/mcp", Token: "t"}, func() { f.held <- false }, nil
}

func (f *face) MCPEnded() <-chan struct{} { return f.ended }

func newFace() *face {
	return &face{opts: make(chan control.MCPOptions, 4), ended: make(chan struct{}), held: make(chan bool, 4)}
}

// A stream carries what both sides write, beginning with what came with the request, until
// the client ends it.
func TestMCPStream(t *testing.T) {
	f := newFace()
	client, _ := serve(t, control.Agent{MCP: f, Ready: func() error { return nil }})
	want := control.MCPOptions{Client: "a b&c", Names: "bare", Profile: "gemini"}
	s, err := client.MCPStream(t.Context(), want)
	if err != nil {
		t.Fatal(err)
	}
	if got := <-f.opts; got != want {
		t.Errorf("options %+v", got)
	}
	text := strings.Repeat("a line of the protocol\n", 10_000)
	go func() {
		_, _ = io.WriteString(s, text)
		_ = s.CloseWrite()
	}()
	got, err := io.ReadAll(s)
	if err != nil || string(got) != text {
		t.Errorf("%d bytes came back of %d, %v", len(got), len(text), err)
	}
	_ = s.Close()
}

// A server is there for as long as the request: until its client goes, or the agent ends.
func TestMCPListen(t *testing.T) {
	f := newFace()
	client, _ := serve(t, control.Agent{MCP: f, Ready: func() error { return nil }})
	open := func() io.ReadCloser {
		at, hold, err := client.MCPListen(t.Context(), control.MCPListenOptions{Address: "127.0.0.1:7", MCPOptions: control.MCPOptions{Client: "a"}})
		if err != nil || at != (control.MCPListening{URL: "http://127.0.0.1:7/mcp", Token: "t"}) || (<-f.opts).Client != "a" || !<-f.held {
			t.Fatalf("%+v, %v", at, err)
		}
		return hold
	}
	_ = open().Close()
	if <-f.held {
		t.Error("it was not released when the client went")
	}
	hold := open()
	close(f.ended)
	if rest, err := io.ReadAll(hold); err != nil || strings.TrimSpace(string(rest)) != "" {
		t.Errorf("%q, %v", rest, err)
	}
	if <-f.held {
		t.Error("it was not released when the agent ended")
	}
	_ = hold.Close()
}

// What cannot be served is said before the stream begins.
func TestMCPRefusals(t *testing.T) {
	for _, test := range []struct {
		agent  control.Agent
		status int
		code   string
	}{
		{control.Agent{}, http.StatusNotFound, "EAGENTRPC_INVALID_REQUEST"},
		{control.Agent{MCP: &face{fail: fmt.Errorf("wrapped: %w", control.ErrNotReady)}}, http.StatusServiceUnavailable, "not-ready"},
		{control.Agent{MCP: &face{fail: errors.New("no client a")}}, http.StatusBadRequest, "mcp"},
	} {
		client, _ := serve(t, test.agent)
		_, err := client.MCPStream(t.Context(), control.MCPOptions{})
		_, _, lerr := client.MCPListen(t.Context(), control.MCPListenOptions{})
		for _, err := range []error{err, lerr} {
			var refused *control.RefusedError
			if !errors.As(err, &refused) || refused.HTTPStatus != test.status || refused.Code != test.code {
				t.Errorf("%v, want %d %s", err, test.status, test.code)
			}
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	client, _ := serve(t, control.Agent{MCP: newFace()})
	if _, err := client.MCPStream(ended, control.MCPOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
	var absent *control.NotRunningError
	if _, err := control.NewClient(t.TempDir()+"/none.sock").MCPStream(t.Context(), control.MCPOptions{}); !errors.As(err, &absent) {
		t.Errorf("no socket: %v", err)
	}
}
