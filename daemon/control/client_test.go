package control_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
)

// methods calls each method of a client once.
func methods() map[string]func(context.Context, *control.Client) error {
	request := rpc.Request{To: "agent://b", Capability: "x"}
	streamed := request
	streamed.OnProgress = func(rpc.ProgressEvent) {}
	type client = *control.Client
	return map[string]func(context.Context, client) error{
		"RequestAgent": func(ctx context.Context, c client) error { _, err := c.RequestAgent(ctx, request); return err },
		"a stream":     func(ctx context.Context, c client) error { _, err := c.RequestAgent(ctx, streamed); return err },
		"Capabilities": func(ctx context.Context, c client) error { _, err := c.Capabilities(ctx); return err },
		"Ready":        func(ctx context.Context, c client) error { return c.Ready(ctx) },
		"Status":       func(ctx context.Context, c client) error { _, err := c.Status(ctx); return err },
		"VerifyPeers":  func(ctx context.Context, c client) error { _, err := c.VerifyPeers(ctx, nil); return err },
		"Approvals":    func(ctx context.Context, c client) error { _, err := c.Approvals(ctx, true); return err },
		"Decide":       func(ctx context.Context, c client) error { return c.Decide(ctx, "a", control.Decision{Approve: true}) },
		"Await":        func(ctx context.Context, c client) error { _, err := c.Await(ctx, "c", time.Second); return err },
		"MCPStream": func(ctx context.Context, c client) error {
			_, err := c.MCPStream(ctx, control.MCPOptions{})
			return err
		},
		"MCPListen": func(ctx context.Context, c client) error {
			_, _, err := c.MCPListen(ctx, control.MCPListenOptions{})
			return err
		},
		"Letters": func(ctx context.Context, c client) error { _, err := c.Letters(ctx); return err },
		"Letter":  func(ctx context.Context, c client) error { _, err := c.Letter(ctx, 1); return err },
		"Redrive": func(ctx context.Context, c client) error { _, err := c.Redrive(ctx, 1); return err },
		"Drop":    func(ctx context.Context, c client) error { _, err := c.Drop(ctx, 1); return err },
		"Redact": func(ctx context.Context, c client) error {
			_, err := c.Redact(ctx, auditchain.Filter{}, "r")
			return err
		},
		"Prune":     func(ctx context.Context, c client) error { _, err := c.Prune(ctx, moment, "r"); return err },
		"RotateKey": func(ctx context.Context, c client) error { _, err := c.RotateKey(ctx); return err },
		"Witnessed": func(ctx context.Context, c client) error { _, err := c.Witnessed(ctx, "agent://w", "o"); return err },
	}
}

// serveRaw serves a handler of the test's own, as a foreign program would.
func serveRaw(t *testing.T, h http.HandlerFunc) *control.Client {
	t.Helper()
	s, err := control.Listen(t.Context(), socketPath(t), h, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	c := control.NewClient(s.Path())
	t.Cleanup(func() {
		c.Close()
		if err := s.Shutdown(context.Background()); err != nil {
			t.Errorf("shutdown: %v", err)
		}
	})
	return c
}

// Every method tells an agent that does not run from one that rejects a call.
func TestClientOfADeadAgent(t *testing.T) {
	t.Parallel()
	path := socketPath(t)
	c := control.NewClient(path)
	defer c.Close()
	for name, call := range methods() {
		gone, ok := errors.AsType[*control.NotRunningError](call(t.Context(), c))
		if !ok || gone.Socket != path || !errors.Is(gone, os.ErrNotExist) {
			t.Errorf("%s: %v", name, gone)
		}
	}
}

// The agent of another user is there, and who may not reach it is told whom to be.
func TestClientOfAnotherUsersAgent(t *testing.T) {
	t.Parallel()
	if os.Getuid() == 0 {
		t.Skip("root may connect everywhere")
	}
	path := socketPath(t)
	s, err := control.Listen(t.Context(), path, http.NotFoundHandler(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Dir(path)
	if err := os.Chmod(folder, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(os.Chmod(folder, 0o700), s.Shutdown(context.Background())); err != nil {
			t.Error(err)
		}
	})
	c := control.NewClient(path)
	defer c.Close()
	if err := c.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "run this as the user that agentd runs as") {
		t.Errorf("ready: %v", err)
	}
	if running, err := (daemon.Paths{Runtime: folder}).Running(t.Context()); err == nil || !strings.Contains(err.Error(), "run this as the user that agentd runs as") {
		t.Errorf("running %v, %v", running, err)
	}
}

func TestClientWithACancelledContext(t *testing.T) {
	t.Parallel()
	c, _ := serve(t, whole(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, call := range methods() {
		if err := call(ctx, c); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A program on the socket that is no agentd is reported as one, never as a result.
func TestClientOfAForeignServer(t *testing.T) {
	t.Parallel()
	html := serveRaw(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") })
	teapot := serveRaw(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "short and stout", http.StatusTeapot) })
	for name, call := range methods() {
		if name != "Ready" && name != "Capabilities" { // which have no body to decode, or pass it on
			if err := call(t.Context(), html); err == nil || !strings.HasPrefix(err.Error(), "control: ") {
				t.Errorf("%s, a page: %v", name, err)
			}
		}
		refused, ok := errors.AsType[*control.RefusedError](call(t.Context(), teapot))
		if !ok || refused.HTTPStatus != http.StatusTeapot || refused.Code != "http" || refused.Error() != "http: 418 I'm a teapot" {
			t.Errorf("%s, a teapot: %v", name, refused)
		}
	}
}

// A stream without a result is an error, not a call without a response.
func TestStreamCutShort(t *testing.T) {
	t.Parallel()
	const event, result = `{"progress":{"seq":1,"attempt":1,"value":7}}` + "\n", `{"result":{"status":"ok","correlationId":"c","latencyMs":1}}` + "\n"
	for name, test := range map[string]struct {
		body   string
		events int
		fault  string
	}{
		"nothing":          {"", 0, "ended before its result"},
		"progress only":    {event, 1, "ended before its result"},
		"half a line":      {event + event[:20], 1, "ended before its result"},
		"a line of text":   {event + "oops\n" + result, 1, "invalid character"},
		"whole":            {event + event + result, 2, ""},
		"empty object":     {"{}\n" + result, 0, ""},
		"after the result": {result + event, 0, ""},
	} {
		c := serveRaw(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, test.body) })
		events := 0
		r := rpc.Request{To: "agent://b", Capability: "x", OnProgress: func(rpc.ProgressEvent) { events++ }}
		res, err := c.RequestAgent(t.Context(), r)
		if events != test.events || (err == nil) != (test.fault == "") || err != nil && !strings.Contains(err.Error(), test.fault) {
			t.Errorf("%s: %d events, %v; want %d and %q", name, events, err, test.events, test.fault)
		}
		if err == nil && res.CorrelationID != "c" {
			t.Errorf("%s: %+v", name, res)
		}
	}
}

// Only a client that accepts lines of JSON gets them.
func TestAcceptedStreams(t *testing.T) {
	t.Parallel()
	_, s := serve(t, control.Agent{Caller: tells()})
	const stream = "application/x-ndjson"
	for accept, want := range map[string]string{
		"":                          "application/json",
		"*/*":                       "application/json",
		"application/json":          "application/json",
		"application/x-ndjson2":     "application/json",
		stream:                      stream,
		"Application/X-NDJSON":      stream,
		stream + ";q=0.9":           stream,
		"text/html , " + stream:     stream,
		"application/json;x=ndjson": "application/json",
	} {
		got := send(t, s, http.MethodPost, "/v1/request", `{"to":"agent://b","capability":"x","payload":[1,2]}`, http.Header{"Accept": {accept}})
		lines := strings.Count(got.body, "\n")
		if got.header.Get("Content-Type") != want || want == stream && lines != 3 || want != stream && lines != 1 {
			t.Errorf("Accept %q: %s, %q", accept, got.header.Get("Content-Type"), got.body)
		}
	}
}

// A client that stops waiting for a result frees the connection in the agent.
func TestAwaitEndsWithItsClient(t *testing.T) {
	t.Parallel()
	q := &queue{waiting: make(chan string, 1), ended: make(chan error, 1)}
	c, _ := serve(t, control.Agent{Durable: q})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := c.Await(ctx, "a/b c", time.Hour)
		done <- err
	}()
	if id := <-q.waiting; id != "a/b c" {
		t.Errorf("waits for %q", id)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("the client got %v", err)
	}
	if err := <-q.ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the wait ended with %v", err)
	}
}

// Asking peers and witnesses ends when the client leaves: nothing depends on it.
func TestQuestionsEndWithTheirClient(t *testing.T) {
	t.Parallel()
	asked, ended := make(chan struct{}, 1), make(chan error, 1)
	wait := func(ctx context.Context) {
		asked <- struct{}{}
		<-ctx.Done()
		ended <- ctx.Err()
	}
	c, _ := serve(t, control.Agent{
		VerifyPeers: func(ctx context.Context, _ []envelope.Address) []control.PeerStatus { wait(ctx); return nil },
		Witnesses: witnesses(func(ctx context.Context, _ envelope.Address, _ string) ([]byte, error) {
			wait(ctx)
			return nil, ctx.Err()
		}),
	})
	for _, name := range []string{"VerifyPeers", "Witnessed"} {
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-asked; cancel() }()
		if err := methods()[name](ctx, c); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: the client got %v", name, err)
		}
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: ended with %v", name, err)
		}
	}
}

func TestDeadLettersOfAClient(t *testing.T) {
	t.Parallel()
	a := whole(t)
	q := a.Durable.(*queue)
	c, _ := serve(t, a)
	letters, err := c.Letters(t.Context())
	if err != nil || len(letters) != 3 || letters[0].Body != nil || !letters[0].Time.Equal(moment) || letters[0].Reason != "expired" {
		t.Fatalf("%+v, %v", letters, err)
	}
	one, err := c.Letter(t.Context(), 1)
	if err != nil || string(one.Body) != "{}" || one.Attempts != 3 {
		t.Errorf("%+v, %v", one, err)
	}
	redriven, err := c.Redrive(t.Context(), 1)
	if err != nil || redriven.Number != 1 {
		t.Errorf("%+v, %v", redriven, err)
	}
	dropped, err := c.Drop(t.Context(), 2)
	if err != nil || dropped.Number != 2 {
		t.Errorf("%+v, %v", dropped, err)
	}
	_, err = c.Drop(t.Context(), 2)
	if refused, ok := errors.AsType[*control.RefusedError](err); !ok || refused.HTTPStatus != http.StatusConflict || !strings.Contains(refused.Message, "no dead letter 2") {
		t.Errorf("dropped twice: %v", err)
	}
	user := fmt.Sprintf("uid:%d", os.Getuid())
	if len(q.by) != 2 || !strings.HasPrefix(q.by[0], "redrive by ") || !strings.HasPrefix(q.by[1], "drop by ") || !strings.Contains(q.by[0], user) || !strings.Contains(q.by[1], user) {
		t.Errorf("attributed to %q", q.by)
	}
}

func TestStatusOfAClient(t *testing.T) {
	t.Parallel()
	c, _ := serve(t, whole(t))
	s, err := c.Status(t.Context())
	if err != nil || s.Agent != "agent://a" || s.Fleet != "f" || s.PID != 7 || !s.Started.Equal(moment) || !s.Ready || !slices.Equal(s.Transports, []string{"nats"}) {
		t.Errorf("%+v, %v", s, err)
	}
	peers, err := c.VerifyPeers(t.Context(), []envelope.Address{"agent://b", "agent://c"})
	if err != nil || len(peers) != 2 || peers[1].Peer != "agent://c" || peers[1].State != control.PeerReachable {
		t.Errorf("%+v, %v", peers, err)
	}
	note, err := c.Witnessed(t.Context(), "", "o")
	if err != nil || string(note) != " holds o" {
		t.Errorf("%q, %v", note, err)
	}
	empty, _ := serve(t, control.Agent{Witnesses: witnesses(func(context.Context, envelope.Address, string) ([]byte, error) { return nil, nil })})
	if note, err := empty.Witnessed(t.Context(), "agent://w", "o"); note != nil || err != nil {
		t.Errorf("a witness that holds nothing: %q, %v", note, err)
	}
}

// A client whose agent ends in the middle of a request learns what that means for the request.
func TestClientOfAnAgentThatEnds(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]http.HandlerFunc{
		"before it answers": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"within its answer": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, "{")
			panic(http.ErrAbortHandler)
		},
	} {
		_, err := serveRaw(t, handler).RequestAgent(t.Context(), rpc.Request{To: "agent://b", Capability: "x"})
		if err == nil || !strings.Contains(err.Error(), "may have been done or not") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Shutdown waits for requests, but not for ever.
func TestShutdownCutsRequestsShort(t *testing.T) {
	t.Parallel()
	q := &queue{waiting: make(chan string, 1), ended: make(chan error, 1)}
	s, err := control.Listen(t.Context(), socketPath(t), control.NewHandler(control.Agent{Durable: q}), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	c := control.NewClient(s.Path())
	defer c.Close()
	done := make(chan error, 1)
	go func() {
		_, err := c.Await(context.Background(), "c", time.Hour)
		done <- err
	}()
	<-q.waiting
	if !control.Answers(t.Context(), s.Path()) {
		t.Error("a socket that is served does not answer")
	}
	now, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Shutdown(now); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "cut short") {
		t.Errorf("shutdown: %v", err)
	}
	if err := <-done; err == nil {
		t.Error("the request that was cut short has a result")
	}
	if err := <-q.ended; err == nil {
		t.Error("the handler goes on after the shutdown")
	}
	if control.Answers(t.Context(), s.Path()) {
		t.Error("the socket answers after the shutdown")
	}
}

// In a folder of somebody else, that user could replace the socket.
func TestListenInAFolderOfAnother(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can give a folder away")
	}
	path := socketPath(t)
	for _, folder := range []string{filepath.Dir(path), filepath.Dir(filepath.Dir(path))} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.Chown(folder, 12345, -1)); err != nil {
			t.Fatal(err)
		}
		_, err := control.Listen(t.Context(), path, http.NotFoundHandler(), slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), folder+" belongs to another user") {
			t.Errorf("%s: %v", folder, err)
		}
		if err := os.Chown(folder, 0, -1); err != nil {
			t.Fatal(err)
		}
	}
}
