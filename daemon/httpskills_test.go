package daemon_test

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/daemon/health"
	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/logtest"
	"github.com/agentd/agentd/rpc"
)

// withService is a fleet whose callee has a skill that is a web service.
func withService(service string) map[string]string {
	all := files()
	all["callee/agent.yaml"] = "name: callee\nskills: {score: {http: {" + service + "}}}\n"
	all["callee/capabilities.yaml"] = `
version: 1
agent: agent://callee
transports: [{kind: memory, topics: {requests: agents.callee.requests}}]
capabilities:
  - name: score
    inputSchema: {type: object, properties: {n: {type: integer}}, required: [n]}
    outputSchema: {type: object, properties: {score: {type: integer}}, required: [score]}
`
	return all
}

func score(t *testing.T, f *daemon.Fleet) (*rpc.Result, error) {
	t.Helper()
	return client(t, f, "caller").RequestAgent(t.Context(), rpc.Request{To: "agent://callee", Capability: "score", Payload: json.RawMessage(`{"n":1}`), IdempotencyKey: "k"})
}

// A service serves calls under the contract of its capability, and what it asks of its callers
// reaches them.
func TestHTTPSkill(t *testing.T) {
	t.Parallel()
	answer := atomic.Pointer[func(http.ResponseWriter)]{}
	say := func(f func(http.ResponseWriter)) { answer.Store(&f) }
	seen := make(chan http.Header, 16)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		seen <- r.Header
		w.Header().Set("Content-Type", "application/json")
		(*answer.Load())(w)
	}))
	defer server.Close()
	f := startFleet(t, load(t, withService("url: '"+server.URL+"/score'")))
	defer stop(t, f)

	say(func(w http.ResponseWriter) { _, _ = io.WriteString(w, `{"score":7}`) })
	result, err := score(t, f)
	if err != nil || string(result.Response) != `{"score":7}` {
		t.Fatalf("%+v, %v", result, err)
	}
	h := <-seen
	if h.Get("Agentd-Caller") != "agent://caller" || h.Get("Agentd-Correlation-Id") != result.CorrelationID || h.Get("Agentd-Idempotency-Key") != "k" ||
		!strings.Contains(h.Get("Traceparent"), result.TraceID) || h.Get("Agentd-Deadline") == "" {
		t.Errorf("the service knows %v", h)
	}
	ask := func() *rpc.Error {
		t.Helper()
		_, err := client(t, f, "caller").RequestAgent(t.Context(), rpc.Request{To: "agent://callee", Capability: "score", Payload: json.RawMessage(`{"n":1}`)})
		failed := (*rpc.Error)(nil)
		if !errors.As(err, &failed) {
			t.Fatalf("%v", err)
		}
		return failed
	}
	say(func(w http.ResponseWriter) { _, _ = io.WriteString(w, `{"score":"seven"}`) })
	if e := ask(); e.Code != rpc.CodeSchemaViolation || e.Side != rpc.SideResponse {
		t.Errorf("an answer of another form: %v", e)
	}
	say(func(w http.ResponseWriter) {
		w.Header().Set("Retry-After", "9")
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	if e := ask(); e.Code != rpc.CodeHandlerError || !e.Retryable || e.RetryAfter() != 9*time.Second {
		t.Errorf("a service that asks to wait: %v, %s", e, e.RetryAfter())
	}
	say(func(w http.ResponseWriter) {
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = io.WriteString(w, `{"error":{"message":"no such item"}}`)
	})
	if e := ask(); e.Message != "no such item" || e.Retryable {
		t.Errorf("an error for the caller: %v", e)
	}
	say(func(w http.ResponseWriter) { panic(http.ErrAbortHandler) })
	if e := ask(); e.Retryable || !strings.Contains(e.Message, "was lost while it served the call") {
		t.Errorf("a service that breaks off: %v", e)
	}
}

// An agent whose service cannot be reached says so from its start, in one line, and is ready again
// without a call or a restart when the service is there.
func TestHTTPSkillAway(t *testing.T) {
	t.Parallel()
	address, listen := reserved(t)
	cfg := load(t, withService("url: 'http://"+address+"/score'"))
	log := &logtest.Lines{}
	cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
	f := startFleet(t, cfg)
	defer stop(t, f)
	d, _ := f.Daemon("callee")
	eventually.Holds(t, "the agent says that it is not ready", func() bool { return d.Ready() != nil })
	if c := d.Status().Conditions; len(c) != 1 || c[0].Kind != health.HTTPSkill || c[0].Subject != "score" || c[0].Code != "away" || !strings.Contains(c[0].Cause, "refuse") {
		t.Errorf("%+v", c)
	}
	if _, err := score(t, f); rpc.CodeOf(err) != rpc.CodeHandlerError || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("%v", err)
	}
	const begins, ends = `msg="calls of the skill score fail: its service cannot be reached"`, `msg="over: calls of the skill score fail`
	l := listen()
	server := &http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: time.Minute}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) })
	defer serving.Wait()
	defer server.Close()
	eventually.Succeeds(t, "the agent is ready", d.Ready)
	if text := log.String(); strings.Count(text, begins) != 1 || strings.Count(text, ends) != 1 || len(d.Status().Conditions) != 0 {
		t.Errorf("the log has\n%s", text)
	}
}

// reserved returns an address that refuses connections until listen is called. Nobody else can
// take it meanwhile: it is bound.
func reserved(t *testing.T) (address string, listen func() net.Listener) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	syscall.CloseOnExec(fd)
	socket := os.NewFile(uintptr(fd), "reserved")
	t.Cleanup(func() { _ = socket.Close() })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port), func() net.Listener {
		t.Helper()
		if err := syscall.Listen(fd, 16); err != nil {
			t.Fatal(err)
		}
		l, err := net.FileListener(socket)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
}

// A reload that changes nothing about a service keeps its connections, one that changes it makes
// others, and one with a service that cannot be is refused.
func TestHTTPSkillReload(t *testing.T) {
	t.Parallel()
	requests := make(chan *http.Request, 16)
	serve := func(answer string) *httptest.Server {
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			requests <- r
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"score":`+answer+`}`)
		}))
		server.StartTLS()
		t.Cleanup(server.Close)
		return server
	}
	first, second := serve("1"), serve("2")
	dir := t.TempDir()
	token, ca := filepath.Join(dir, "token"), filepath.Join(dir, "ca.pem")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(token, "one")
	write(ca, certificatePEM(first))
	all := withService("url: '" + first.URL + "', tls: {ca: " + ca + "}, credentials: [{scheme: Bearer, secret: 'file:" + token + "'}]")
	cfg := load(t, all)
	f := startFleet(t, cfg)
	defer stop(t, f)
	d, _ := f.Daemon("callee")
	ask := func(answer, token string) (from string) {
		t.Helper()
		result, err := client(t, f, "caller").RequestAgent(t.Context(), rpc.Request{To: "agent://callee", Capability: "score", Payload: json.RawMessage(`{"n":1}`)})
		if err != nil || string(result.Response) != answer {
			t.Fatalf("%+v, %v", result, err)
		}
		r := <-requests
		if r.Header.Get("Authorization") != "Bearer "+token {
			t.Errorf("with %v", r.Header)
		}
		return r.RemoteAddr
	}
	reload := func() {
		t.Helper()
		if err := d.Reload(); err != nil {
			t.Fatal(err)
		}
	}
	connection := ask(`{"score":1}`, "one")
	rewrite(t, cfg, "callee/agent.yaml", all["callee/agent.yaml"]+"description: the same service\n")
	reload()
	if again := ask(`{"score":1}`, "one"); again != connection {
		t.Error("the connection was not kept")
	}
	write(token, "two")
	reload()
	if again := ask(`{"score":1}`, "two"); again == connection {
		t.Error("the connection has outlived its token")
	}
	rewrite(t, cfg, "callee/agent.yaml", strings.Replace(all["callee/agent.yaml"], first.URL, second.URL, 1))
	reload()
	ask(`{"score":2}`, "two")
	if err := os.Remove(token); err != nil {
		t.Fatal(err)
	}
	if err := d.Reload(); err == nil || !strings.Contains(err.Error(), "agent.yaml:2") || !strings.Contains(err.Error(), "token") {
		t.Errorf("without its token: %v", err)
	}
	ask(`{"score":2}`, "two")
}

// certificatePEM is what a server shows, for a file of authorities.
func certificatePEM(s *httptest.Server) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}
