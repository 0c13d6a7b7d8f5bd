package skillapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentd/agentd/daemon/skillapi"
	"github.com/agentd/agentd/internal/logtest"
	"github.com/agentd/agentd/rpc"
)

// patience bounds what happens at once on a machine that is not overloaded.
const patience = 60 * time.Second

// A caller answers calls as a function says.
type caller func(ctx context.Context, r rpc.Request) (*rpc.Result, error)

func (c caller) RequestAgent(ctx context.Context, r rpc.Request) (*rpc.Result, error) {
	return c(ctx, r)
}

// echo answers with the call that a request is nested in, and with its payload.
func echo(ctx context.Context, r rpc.Request) (*rpc.Result, error) {
	return &rpc.Result{Status: rpc.StatusOK, CorrelationID: rpc.InvocationFrom(ctx).CorrelationID, Response: r.Payload}, nil
}

// results answers as a function does.
type results func(ctx context.Context, id string) *rpc.Result

func (f results) Await(ctx context.Context, id string) *rpc.Result { return f(ctx, id) }

// serve runs a server until the test ends. A nil function is one that the test does not
// expect to be called.
func serve(t *testing.T, call caller, await results) (*skillapi.Server, *logtest.Lines) {
	t.Helper()
	if call == nil {
		call = func(_ context.Context, r rpc.Request) (*rpc.Result, error) {
			t.Errorf("a call was made: %+v", r)
			return nil, errors.New("called")
		}
	}
	if await == nil {
		await = func(_ context.Context, id string) *rpc.Result {
			t.Errorf("the result %q was waited for", id)
			return &rpc.Result{}
		}
	}
	lines := &logtest.Lines{}
	s, err := skillapi.Listen(t.Context(), skillapi.Config{
		Caller: call, Results: await, MaxPayloadBytes: func() int { return 1 << 10 }, Logger: slog.New(slog.NewTextHandler(lines, nil)),
		ModelUsage: func(inv *rpc.Invocation, u *rpc.ModelUsage) {
			_, _ = fmt.Fprintf(lines, "%s has used %+v\n", inv.CorrelationID, *u)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
	})
	return s, lines
}

// quiet is a log that nobody reads.
func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// running registers a call that runs until the test ends.
func running(t *testing.T, s *skillapi.Server, inv *rpc.Invocation) (token string) {
	t.Helper()
	token, release := s.Register(rpc.WithInvocation(t.Context(), inv))
	t.Cleanup(release)
	return token
}

// A reply is an HTTP response with its body read.
type reply struct {
	status int
	header http.Header
	body   string
	closes bool // the server closes the connection
}

// send makes one HTTP request, as a program in any language does.
func send(t *testing.T, method, url, body string, change func(*http.Request)) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(req)
	}
	client := &http.Client{
		Transport:     &http.Transport{DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Header, string(text), resp.Close}
}

// fault decodes the body of a response other than 200.
func (r reply) fault(t *testing.T) (code, message string) {
	t.Helper()
	var body struct {
		Error *struct{ Code, Message string }
	}
	if err := json.Unmarshal([]byte(r.body), &body); err != nil || body.Error == nil || body.Error.Message == "" {
		t.Fatalf("status %d: the body %q is not {error: {code, message}}: %v", r.status, r.body, err)
	}
	return body.Error.Code, body.Error.Message
}

func withToken(token string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Agentd-Call", token) }
}

const call = `{"to":"agent://b","capability":"x","payload":1}`

// What a skill may ask for, and in whose name.
func TestASkillAsks(t *testing.T) {
	t.Parallel()
	s, _ := serve(t, echo, func(ctx context.Context, id string) *rpc.Result {
		return &rpc.Result{Status: rpc.StatusOK, CorrelationID: id, Response: json.RawMessage(`"` + rpc.InvocationFrom(ctx).TenantID + `"`)}
	})
	for _, id := range []string{"c-1", "c-2"} {
		c := skillapi.NewClient(s.URL(), running(t, s, &rpc.Invocation{CorrelationID: id, TenantID: "tenant-of-" + id}))
		res, err := c.RequestAgent(t.Context(), rpc.Request{To: "agent://b", Capability: "x", Payload: json.RawMessage(`{"a":"<&>"}`)})
		if err != nil || res.CorrelationID != id || string(res.Response) != `{"a":"<&>"}` {
			t.Errorf("%s: %+v, %v", id, res, err)
		}
		res, err = c.Await(t.Context(), "a/b c", time.Minute)
		if err != nil || res.CorrelationID != "a/b c" || string(res.Response) != `"tenant-of-`+id+`"` {
			t.Errorf("%s: %+v, %v", id, res, err)
		}
		if wanted, err := c.Progress(t.Context(), json.RawMessage(`{"done":1}`)); wanted || err != nil {
			t.Errorf("%s: progress that nobody asked for: %v, %v", id, wanted, err)
		}
		c.Close()
	}
}

// Each of these is refused, with words that say what to do, and reaches nothing.
func TestRefusals(t *testing.T) {
	t.Parallel()
	s, _ := serve(t, nil, nil)
	other, _ := serve(t, nil, nil) // that of another agent in the process
	token := running(t, s, &rpc.Invocation{CorrelationID: "c-1"})
	ended, release := s.Register(t.Context())
	release()
	release() // a second time changes nothing
	port := s.URL()[strings.LastIndex(s.URL(), ":"):]
	host := func(name string) func(*http.Request) {
		return func(r *http.Request) { r.Host = name; r.Header.Set("Agentd-Call", token) }
	}
	const invalid, ends = "EAGENTRPC_INVALID_REQUEST", "has ended, or never existed"
	for name, test := range map[string]struct {
		change     func(*http.Request)
		code, says string
	}{
		"no token":              {nil, invalid, ends},
		"an empty token":        {withToken(""), invalid, ends},
		"a guessed token":       {withToken("AAAAAAAAAAAAAAAAAAAAAAAAAA"), invalid, ends},
		"another case":          {withToken(strings.ToLower(token)), invalid, ends},
		"two tokens":            {withToken(token + ", " + token), invalid, ends},
		"a call that has ended": {withToken(ended), invalid, ends},
		"another agent's call":  {withToken(running(t, other, &rpc.Invocation{})), invalid, ends},
		"a page's origin":       {func(r *http.Request) { withToken(token)(r); r.Header.Set("Origin", s.URL()) }, invalid, "no page in a browser"},
		"an origin of nobody":   {func(r *http.Request) { withToken(token)(r); r.Header.Set("Origin", "null") }, invalid, "no page in a browser"},
		"a name that was bound": {host("attacker.example" + port), invalid, "use $AGENTD_URL as it is"},
		"localhost":             {host("localhost" + port), invalid, "use $AGENTD_URL as it is"},
		"another port":          {host("127.0.0.1:1"), invalid, "use $AGENTD_URL as it is"},
		"no port":               {host("127.0.0.1"), invalid, "use $AGENTD_URL as it is"},
	} {
		for _, ask := range []struct{ method, path string }{
			{"POST", "/v1/request"}, {"POST", "/v1/agent/progress"}, {"POST", "/v1/agent/model-usage"}, {"GET", "/v1/results/x?timeoutMs=1000"}, {"GET", "/v1/approvals"}, {"OPTIONS", "/v1/request"},
		} {
			got := send(t, ask.method, s.URL()+ask.path, call, test.change)
			code, message := got.fault(t)
			if got.status != http.StatusForbidden || code != test.code || !strings.Contains(message, test.says) || !got.closes {
				t.Errorf("%s, %s %s: status %d, closes %v, %s", name, ask.method, ask.path, got.status, got.closes, got.body)
			}
			for header := range got.header {
				if strings.HasPrefix(header, "Access-Control-") {
					t.Errorf("%s: the response lets pages read it: %s", name, header)
				}
			}
		}
	}
}

// An operator's verbs are not there for a skill, in no spelling, and its own only by
// their own methods. The log has one line for a call that tries, and few for many that try the same.
func TestOperatorsVerbs(t *testing.T) {
	t.Parallel()
	s, lines := serve(t, nil, nil)
	token := running(t, s, &rpc.Invocation{Capability: "review", CorrelationID: "c-7"})
	for _, ask := range []string{
		"GET /v1/approvals", "POST /v1/approvals/a-1", "POST /v1/audit/redact", "POST /v1/audit/prune", "POST /v1/audit/rotate-key",
		"POST /v1/audit/witnessed", "GET /v1/dlq", "DELETE /v1/dlq/1", "POST /v1/dlq/1/redrive", "GET /v1/agent/status", "GET /v1/agent/capabilities",
		"POST /v1/peers/verify", "POST /v1/breakers/reset", "GET /healthz", "GET /readyz", "GET /", "GET /debug/pprof/",
		"GET /v1/request", "PUT /v1/request", "POST /v1/request/", "POST //v1/request", "POST /v1/../v1/request", "POST /v1/results/x", "GET /v1/results/", "GET /v1/agent/progress",
	} {
		method, path, _ := strings.Cut(ask, " ")
		got := send(t, method, s.URL()+path, `{"approve":true}`, withToken(token))
		if code, message := got.fault(t); got.status != http.StatusForbidden || code != skillapi.CodeNotAnOperator || !strings.Contains(message, "it may POST to /v1/request") {
			t.Errorf("%s: status %d, %s", ask, got.status, got.body)
		}
	}
	if text := lines.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "correlationId=c-7") || !strings.Contains(text, "/v1/approvals") {
		t.Errorf("the log says\n%s", text)
	}
	for i := range 100 {
		token := running(t, s, &rpc.Invocation{Capability: "review", CorrelationID: fmt.Sprint("n-", i)})
		send(t, "POST", s.URL()+"/v1/agent/newer", `{}`, withToken(token))
	}
	if text := lines.String(); strings.Count(text, "/v1/agent/newer") != 7 || !strings.Contains(text, "calls=64") {
		t.Errorf("of a hundred calls that ask for the same, the log says\n%s", text)
	}
}

func TestMalformedRequests(t *testing.T) {
	t.Parallel()
	s, _ := serve(t, nil, nil)
	token := running(t, s, &rpc.Invocation{})
	for _, test := range []struct {
		name, method, path, body string
		status                   int
		code                     rpc.Code
	}{
		{"no JSON", "POST", "/v1/request", `{"to"`, 400, rpc.CodeInvalidRequest},
		{"nothing", "POST", "/v1/request", ``, 400, rpc.CodeInvalidRequest},
		{"unknown member", "POST", "/v1/request", `{"capabilty":"x"}`, 400, rpc.CodeInvalidRequest},
		{"too large", "POST", "/v1/request", strings.Repeat(" ", 80<<10), 413, rpc.CodePayloadTooLarge},
		{"a usage without a model", "POST", "/v1/agent/model-usage", `{"provider":"p"}`, 400, rpc.CodeInvalidPayload},
		{"a usage that is too large", "POST", "/v1/agent/model-usage", strings.Repeat(" ", 2*rpc.MaxModelUsageBytes), 413, rpc.CodePayloadTooLarge},
		{"no JSON", "POST", "/v1/agent/progress", `{"a"`, 400, rpc.CodeInvalidPayload},
		{"nothing", "POST", "/v1/agent/progress", ``, 400, rpc.CodeInvalidPayload},
		{"too large", "POST", "/v1/agent/progress", `"` + strings.Repeat("x", rpc.MaxProgressBytes) + `"`, 400, rpc.CodePayloadTooLarge},
		{"far too large", "POST", "/v1/agent/progress", strings.Repeat(" ", 4*rpc.MaxProgressBytes), 413, rpc.CodePayloadTooLarge},
		{"no timeout", "GET", "/v1/results/x", ``, 400, rpc.CodeInvalidRequest},
		{"a timeout of a day", "GET", "/v1/results/x?timeoutMs=86400000", ``, 400, rpc.CodeInvalidRequest},
	} {
		got := send(t, test.method, s.URL()+test.path, test.body, withToken(token))
		if code, _ := got.fault(t); got.status != test.status || code != test.code.String() {
			t.Errorf("%s %s: status %d, %s", test.path, test.name, got.status, got.body)
		}
	}
}

// A request ends with the call that it is part of, and with its client.
func TestRequestsEndWithTheirCall(t *testing.T) {
	t.Parallel()
	began := make(chan string, 2)
	s, _ := serve(t, func(ctx context.Context, r rpc.Request) (*rpc.Result, error) {
		began <- "call"
		<-ctx.Done()
		return &rpc.Result{Status: rpc.StatusAbandoned, CorrelationID: fmt.Sprint(context.Cause(ctx))}, nil
	}, func(ctx context.Context, _ string) *rpc.Result {
		began <- "wait"
		<-ctx.Done()
		return &rpc.Result{Status: rpc.StatusTimeout, CorrelationID: fmt.Sprint(context.Cause(ctx))}
	})
	gone := errors.New("the caller has left")
	for name, test := range map[string]struct {
		end  func(cancel context.CancelCauseFunc, release func())
		want string
	}{
		"it answers":      {func(_ context.CancelCauseFunc, release func()) { release() }, "the call that this one is nested in has ended"},
		"it is cancelled": {func(cancel context.CancelCauseFunc, _ func()) { cancel(gone) }, gone.Error()},
	} {
		ctx, cancel := context.WithCancelCause(rpc.WithInvocation(t.Context(), &rpc.Invocation{}))
		token, release := s.Register(ctx)
		c := skillapi.NewClient(s.URL(), token)
		ended := make(chan *rpc.Result, 2)
		for _, ask := range []func() (*rpc.Result, error){
			func() (*rpc.Result, error) {
				return c.RequestAgent(t.Context(), rpc.Request{To: "agent://b", Capability: "x"})
			},
			func() (*rpc.Result, error) { return c.Await(t.Context(), "id", time.Hour) },
		} {
			go func() {
				res, err := ask()
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
				ended <- res
			}()
			<-began
		}
		test.end(cancel, release)
		for range 2 {
			if res := <-ended; res == nil || res.CorrelationID != test.want {
				t.Errorf("%s: %+v", name, res)
			}
		}
		release()
		cancel(nil)
	}
}

// Who leaves ends the call that it made.
func TestLeavingEndsTheNestedCall(t *testing.T) {
	t.Parallel()
	began, ended := make(chan struct{}), make(chan error, 1)
	s, _ := serve(t, func(ctx context.Context, r rpc.Request) (*rpc.Result, error) {
		close(began)
		<-ctx.Done()
		ended <- ctx.Err()
		return &rpc.Result{}, nil
	}, nil)
	c := skillapi.NewClient(s.URL(), running(t, s, &rpc.Invocation{}))
	ctx, leave := context.WithCancel(t.Context())
	go func() { <-began; leave() }()
	if _, err := c.RequestAgent(ctx, rpc.Request{To: "agent://b", Capability: "x"}); !errors.Is(err, context.Canceled) {
		t.Errorf("the client got %v", err)
	}
	select {
	case err := <-ended:
		if err == nil {
			t.Error("the call did not end")
		}
	case <-time.After(patience):
		t.Error("the call goes on without its client")
	}
}

// Progress of a nested call arrives while it runs, beside that of others.
func TestNestedStreams(t *testing.T) {
	t.Parallel()
	const streams = 20
	heard := make([]chan struct{}, streams) // closed when the client has the first event
	for i := range heard {
		heard[i] = make(chan struct{})
	}
	s, _ := serve(t, func(ctx context.Context, r rpc.Request) (*rpc.Result, error) {
		var i int
		if err := json.Unmarshal(r.Payload, &i); err != nil {
			return nil, err
		}
		r.OnProgress(rpc.ProgressEvent{Seq: 1, Attempt: 1, Value: json.RawMessage(fmt.Sprint(i))})
		for _, other := range heard { // until all have heard theirs, which shows that none waits for another
			select {
			case <-other:
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
		r.OnProgress(rpc.ProgressEvent{Seq: 2, Attempt: 1, Value: json.RawMessage(`"<&>"`)})
		return &rpc.Result{Status: rpc.StatusOK, Response: r.Payload}, nil
	}, nil)
	c := skillapi.NewClient(s.URL(), running(t, s, &rpc.Invocation{}))
	var all sync.WaitGroup
	for i := range streams {
		all.Go(func() {
			var events []string
			res, err := c.RequestAgent(t.Context(), rpc.Request{To: "agent://b", Capability: "x", Payload: json.RawMessage(fmt.Sprint(i)), OnProgress: func(e rpc.ProgressEvent) {
				if events = append(events, string(e.Value)); len(events) == 1 {
					close(heard[i])
				}
			}})
			if want := []string{fmt.Sprint(i), `"<&>"`}; err != nil || string(res.Response) != want[0] || !slices.Equal(events, want) {
				t.Errorf("stream %d: %+v, %q, %v", i, res, events, err)
			}
		})
	}
	all.Wait()
	// What is refused is refused as without a stream.
	_, err := skillapi.NewClient(s.URL(), "no-such-call").RequestAgent(t.Context(), rpc.Request{To: "agent://b", Capability: "x", OnProgress: func(rpc.ProgressEvent) {}})
	if refused, ok := errors.AsType[*skillapi.RefusedError](err); !ok || refused.HTTPStatus != http.StatusForbidden {
		t.Errorf("a stream within no call: %v", err)
	}
}

// One call has so many requests at a time; those of another are not among them.
func TestRequestsOfOneCallAreBounded(t *testing.T) {
	t.Parallel()
	began, end := make(chan struct{}), make(chan struct{})
	s, _ := serve(t, func(ctx context.Context, r rpc.Request) (*rpc.Result, error) {
		if string(r.Payload) != "1" {
			return echo(ctx, r)
		}
		began <- struct{}{}
		<-end
		return echo(ctx, r)
	}, nil)
	greedy, other := running(t, s, &rpc.Invocation{}), running(t, s, &rpc.Invocation{})
	var all sync.WaitGroup
	for range skillapi.MaxRequests {
		all.Go(func() {
			if got := send(t, "POST", s.URL()+"/v1/request", call, withToken(greedy)); got.status != http.StatusOK {
				t.Errorf("status %d: %s", got.status, got.body)
			}
		})
		<-began
	}
	got := send(t, "POST", s.URL()+"/v1/request", call, withToken(greedy))
	if code, message := got.fault(t); got.status != http.StatusTooManyRequests || code != rpc.CodeBusy.String() || !strings.Contains(message, "64 requests in progress") {
		t.Errorf("one more than allowed: status %d, %s", got.status, got.body)
	}
	if got := send(t, "POST", s.URL()+"/v1/agent/progress", `1`, withToken(greedy)); got.status != http.StatusOK {
		t.Errorf("progress beside them: status %d, %s", got.status, got.body)
	}
	if got := send(t, "POST", s.URL()+"/v1/request", `{"to":"b","capability":"x","payload":2}`, withToken(other)); got.status != http.StatusOK {
		t.Errorf("another call's request: status %d, %s", got.status, got.body)
	}
	close(end)
	all.Wait()
	if got := send(t, "POST", s.URL()+"/v1/request", `{"to":"b","capability":"x","payload":2}`, withToken(greedy)); got.status != http.StatusOK {
		t.Errorf("when they have ended: status %d, %s", got.status, got.body)
	}
}

// One nested call is a connection, with the question whose it is, and a request.
func BenchmarkRequest(b *testing.B) {
	s, err := skillapi.Listen(b.Context(), skillapi.Config{Caller: caller(echo), MaxPayloadBytes: func() int { return 1 << 10 }, Logger: quiet()})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Shutdown(context.Background())
	token, release := s.Register(rpc.WithInvocation(b.Context(), &rpc.Invocation{}))
	defer release()
	c := skillapi.NewClient(s.URL(), token)
	for b.Loop() {
		if _, err := c.RequestAgent(b.Context(), rpc.Request{To: "agent://b", Capability: "x"}); err != nil {
			b.Fatal(err)
		}
	}
}

// A call may report what models have used, so often and no oftener.
func TestModelUsage(t *testing.T) {
	s, lines := serve(t, nil, nil)
	token := running(t, s, &rpc.Invocation{CorrelationID: "c-1"})
	post := func() reply {
		return send(t, "POST", s.URL()+"/v1/agent/model-usage", `{"provider":"p","model":"m","inputTokens":7}`, withToken(token))
	}
	for range rpc.MaxModelUsages {
		if got := post(); got.status != http.StatusOK || got.body != `{"taken":true}`+"\n" {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
	if got := post(); got.status != http.StatusTooManyRequests {
		t.Errorf("%d %s", got.status, got.body)
	}
	if n := strings.Count(lines.String(), "c-1 has used {Provider:p Model:m Operation:chat InputTokens:7 "); n != rpc.MaxModelUsages {
		t.Errorf("%d reports", n)
	}
}
