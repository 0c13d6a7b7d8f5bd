package control_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/rpc"
)

// A caller answers calls as a function says.
type caller func(ctx context.Context, r rpc.Request) (*rpc.Result, error)

func (c caller) RequestAgent(ctx context.Context, r rpc.Request) (*rpc.Result, error) {
	return c(ctx, r)
}

func ok(r rpc.Request) *rpc.Result {
	return &rpc.Result{Status: rpc.StatusOK, CorrelationID: "c-1", Response: r.Payload}
}

// socketPath is short enough for a Unix socket, whatever the test is called.
func socketPath(t *testing.T) string {
	dir, err := os.MkdirTemp("", "ctl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "run", "a.sock")
}

func serve(t *testing.T, a control.Agent) (*control.Client, *control.Server) {
	t.Helper()
	s, err := control.Listen(t.Context(), socketPath(t), control.NewHandler(a), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	c := control.NewClient(s.Path())
	t.Cleanup(func() {
		c.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if _, err := os.Lstat(s.Path()); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the socket outlives its server: %v", err)
		}
	})
	return c, s
}

func TestRequest(t *testing.T) {
	var got rpc.Request
	c, s := serve(t, control.Agent{Caller: caller(func(_ context.Context, r rpc.Request) (*rpc.Result, error) {
		got = r
		return ok(r), nil
	})})
	want := rpc.Request{
		To: "agent://b", Capability: "x", Payload: json.RawMessage(`{"a":[1.0]}`), Timeout: time.Second,
		Mode: rpc.ModeSync, IdempotencyKey: "k", SessionID: "s", TenantID: "acme",
	}
	res, err := c.RequestAgent(t.Context(), want)
	if err != nil || res.Status != rpc.StatusOK || string(res.Response) != `{"a":[1.0]}` {
		t.Fatalf("%+v, %v", res, err)
	}
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("the call is %+v, want %+v", got, want)
	}
	for path, mode := range map[string]os.FileMode{s.Path(): 0o600, filepath.Dir(s.Path()): 0o700} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s has mode %v, want %v (%v)", path, info.Mode(), mode, err)
		}
	}
}

func TestFailedCallIsAResult(t *testing.T) {
	c, _ := serve(t, control.Agent{Caller: caller(func(_ context.Context, r rpc.Request) (*rpc.Result, error) {
		e := &rpc.Error{Code: rpc.CodeNoPeer, Message: "m", DetectedBy: "agent://a"}
		return &rpc.Result{Status: rpc.StatusError, CorrelationID: "c", Error: e}, e
	})})
	res, err := c.RequestAgent(t.Context(), rpc.Request{To: "agent://b", Capability: "x"})
	if err != nil || res.Status != rpc.StatusError || res.Error.Code != rpc.CodeNoPeer {
		t.Errorf("%+v, %v", res, err)
	}
}

func TestMalformedRequestsMakeNoCall(t *testing.T) {
	_, s := serve(t, control.Agent{Caller: caller(func(context.Context, rpc.Request) (*rpc.Result, error) {
		t.Error("a call was made")
		return nil, errors.New("called")
	})})
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", s.Path())
	}}}
	for _, test := range []struct {
		name, method, path string
		body               []byte
		header             string
		status             int
		says               string
	}{
		{"not JSON", "POST", "/v1/request", []byte(`{"to"`), "", 400, "EAGENTRPC_INVALID_REQUEST"},
		{"unknown key", "POST", "/v1/request", []byte(`{"capabilty":"x"}`), "", 400, "capabilty"},
		{"wrong type", "POST", "/v1/request", []byte(`{"timeoutMs":"soon"}`), "", 400, ": timeoutMs: must be a whole number, not string\"}}"},
		{"half a millisecond", "POST", "/v1/request", []byte(`{"timeoutMs":0.5}`), "", 400, ": timeoutMs: must be a whole number, not 0.5\"}}"},
		{"number as agent", "POST", "/v1/request", []byte(`{"to":7}`), "", 400, ": to: must be a string, not number\"}}"},
		{"no object", "POST", "/v1/request", []byte(`[1]`), "", 400, ": the body: must be an object, not array\"}}"},
		{"member twice", "POST", "/v1/request", []byte(`{"to":"a","\u0074o":"b","payload":{}}`), "", 400, "duplicate"},
		{"no body", "POST", "/v1/request", nil, "", 400, "the body is empty"},
		{"too large", "POST", "/v1/request", bytes.Repeat([]byte(" "), control.MaxRequestBytes+1), "", 413, "larger than 32768 KiB"},
		{"a skill's", "POST", "/v1/request", []byte(`{"to":"b","capability":"x"}`), "token", 403, "a skill's requests, with the header Agentd-Call, go to $AGENTD_URL"},
		{"no capabilities", "GET", "/v1/agent/capabilities", nil, "", 404, "offers no capabilities"},
		{"unknown path", "GET", "/v2/request", nil, "", 404, `{"error":{"code":"not-found","message":"this API has no path \"/v2/request\""}}`},
		{"wrong method", "GET", "/v1/request", nil, "", 405, `{"error":{"code":"method-not-allowed","message":"/v1/request takes POST, not GET"}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), test.method, "http://agentd"+test.path, bytes.NewReader(test.body))
			if err != nil {
				t.Fatal(err)
			}
			if test.header != "" {
				req.Header.Set("Agentd-Call", test.header)
			}
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			var body bytes.Buffer
			if _, err := body.ReadFrom(resp.Body); err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode != test.status || !strings.Contains(body.String(), test.says) {
				t.Errorf("status %d, body %s; want %d and %q", resp.StatusCode, &body, test.status, test.says)
			}
		})
	}
}

// A client that goes away cancels its call.
func TestClientGoneCancelsTheCall(t *testing.T) {
	started, cancelled := make(chan struct{}), make(chan struct{})
	c, _ := serve(t, control.Agent{Caller: caller(func(ctx context.Context, r rpc.Request) (*rpc.Result, error) {
		close(started)
		<-ctx.Done()
		close(cancelled)
		return ok(r), nil
	})})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-started; cancel() }()
	if _, err := c.RequestAgent(ctx, rpc.Request{To: "agent://b", Capability: "x"}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	select {
	case <-cancelled:
	case <-time.After(20 * time.Second):
		t.Error("the call goes on without its client")
	}
}

func TestReadyAndCapabilities(t *testing.T) {
	ready := errors.New("starting")
	c, _ := serve(t, control.Agent{
		Ready:        func() error { return ready },
		Capabilities: func() ([]byte, error) { return []byte(`{"capabilities_version":"1.0"}`), nil },
	})
	if err := c.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "starting") {
		t.Errorf("not ready: %v", err)
	}
	ready = nil
	if err := c.Ready(t.Context()); err != nil {
		t.Errorf("ready: %v", err)
	}
	if data, err := c.Capabilities(t.Context()); err != nil || string(data) != `{"capabilities_version":"1.0"}`+"\n" {
		t.Errorf("capabilities %q, %v", data, err)
	}
}

func TestNobodyServes(t *testing.T) {
	for name, prepare := range map[string]func(path string){
		"no socket": func(string) {},
		"stale socket": func(path string) {
			l := listenRaw(t, path)
			l.SetUnlinkOnClose(false)
			_ = l.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := socketPath(t)
			prepare(path)
			var gone *control.NotRunningError
			if err := control.NewClient(path).Ready(t.Context()); !errors.As(err, &gone) || !strings.Contains(err.Error(), "agentd fleet run") {
				t.Errorf("error %v", err)
			}
		})
	}
}

func listenRaw(t *testing.T, path string) *net.UnixListener {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestListen(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	shutdown := func(s *control.Server) {
		if err := s.Shutdown(context.Background()); err != nil {
			t.Errorf("shutdown: %v", err)
		}
	}
	t.Run("replaces a stale socket", func(t *testing.T) {
		path := socketPath(t)
		l := listenRaw(t, path)
		l.SetUnlinkOnClose(false)
		_ = l.Close()
		s, err := control.Listen(t.Context(), path, http.NotFoundHandler(), log)
		if err != nil {
			t.Fatal(err)
		}
		shutdown(s)
	})
	t.Run("refuses a live socket", func(t *testing.T) {
		path := socketPath(t)
		s, err := control.Listen(t.Context(), path, http.NotFoundHandler(), log)
		if err != nil {
			t.Fatal(err)
		}
		defer shutdown(s)
		if _, err := control.Listen(t.Context(), path, http.NotFoundHandler(), log); err == nil || !strings.Contains(err.Error(), "another agentd") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("refuses a file in the way", func(t *testing.T) {
		path := socketPath(t)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("mine"), 0o600)); err != nil {
			t.Fatal(err)
		}
		if _, err := control.Listen(t.Context(), path, http.NotFoundHandler(), log); err == nil || !strings.Contains(err.Error(), "no socket") {
			t.Errorf("error %v", err)
		}
		if data, _ := os.ReadFile(path); string(data) != "mine" {
			t.Error("the file was touched")
		}
	})
	t.Run("refuses a long path", func(t *testing.T) {
		if _, err := control.Listen(t.Context(), "/tmp/"+strings.Repeat("x", 200), http.NotFoundHandler(), log); err == nil || !strings.Contains(err.Error(), "XDG_RUNTIME_DIR") {
			t.Errorf("error %v", err)
		}
	})
}

func Example() {
	dir, err := os.MkdirTemp("", "agentd")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	echo := caller(func(_ context.Context, r rpc.Request) (*rpc.Result, error) { return ok(r), nil })
	server, err := control.Listen(context.Background(), filepath.Join(dir, "a.sock"), control.NewHandler(control.Agent{Caller: echo}), slog.New(slog.DiscardHandler))
	if err != nil {
		panic(err)
	}
	defer server.Shutdown(context.Background())

	client := control.NewClient(server.Path())
	defer client.Close()
	result, err := client.RequestAgent(context.Background(), rpc.Request{
		To: "agent://echo", Capability: "echo", Payload: json.RawMessage(`"hello"`),
	})
	fmt.Println(result.Status, string(result.Response), err)
	// Output: ok "hello" <nil>
}

// A program that is traced has its calls join the trace: by the header that such
// programs send, or by what the request itself says, which goes before it.
func TestRequestJoinsTrace(t *testing.T) {
	const id, parent = "0af7651916cd43dd8448eb211c80319c", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	var got rpc.Request
	_, s := serve(t, control.Agent{Caller: caller(func(_ context.Context, r rpc.Request) (*rpc.Result, error) {
		got = r
		return ok(r), nil
	})})
	web := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", s.Path())
	}}}
	defer web.CloseIdleConnections()
	for _, test := range []struct {
		header, body string
		status       int
		trace        string
	}{
		{parent, `{"to":"agent://b","capability":"x"}`, http.StatusOK, id},
		{"nonsense", `{"to":"agent://b","capability":"x"}`, http.StatusOK, ""},
		{"", `{"to":"agent://b","capability_id":"x","parameters":1,"trace_id":"0af76519-16cd-43dd-8448-eb211c80319c"}`, http.StatusOK, id},
		{parent, `{"to":"agent://b","capability":"x","traceId":"11111111111111111111111111111111"}`, http.StatusOK, strings.Repeat("1", 32)},
		{parent, `{"to":"agent://b","capability":"x","traceId":"mine"}`, http.StatusBadRequest, ""},
	} {
		got = rpc.Request{}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://agentd/v1/request", strings.NewReader(test.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("traceparent", test.header)
		resp, err := web.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != test.status || rpc.TraceID(got.Traceparent) != test.trace {
			t.Errorf("%s with %q: status %d, trace %q", test.body, test.header, resp.StatusCode, got.Traceparent)
		}
	}
}
