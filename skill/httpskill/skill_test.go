package httpskill_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentd/agentd/internal/netguard"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/skill/httpskill"
)

// loopback lets tests reach servers of their own.
func loopback() []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")} }

// serve returns a skill whose service is h, after adjust has changed its configuration.
func serve(t *testing.T, h http.HandlerFunc, adjust func(*httpskill.Config)) *httpskill.Skill {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of requests that are broken off
	server.Start()
	t.Cleanup(server.Close)
	return at(t, server.URL, adjust)
}

// at returns a skill whose service has a URL.
func at(t *testing.T, address string, adjust func(*httpskill.Config)) *httpskill.Skill {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	cfg := httpskill.Config{URL: address, Agent: "agent://callee", Policy: netguard.Policy{Hosts: []string{u.Host}, AllowAddresses: loopback()}}
	if adjust != nil {
		adjust(&cfg)
	}
	s, err := httpskill.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func call(ctx context.Context, s *httpskill.Skill) (json.RawMessage, error) {
	return s.Handle(ctx, &rpc.Invocation{From: "agent://caller", Capability: "score", Payload: json.RawMessage(`{"n":1}`)})
}

func answerWith(status int, media, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", media)
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// Each status and body leads to one outcome, and no body of a failed service reaches the caller
// that is not written for it.
func TestOutcomes(t *testing.T) {
	const private = `{"error":{"message":"password of the database: s3cret","retryable":true}}`
	for name, test := range map[string]struct {
		service   http.HandlerFunc
		answer    string
		message   string
		code      rpc.Code
		retryable bool
		retryIn   time.Duration
	}{
		"an answer":             {service: answerWith(200, "application/json; charset=utf-8", " [1.0e400]\n"), answer: "[1.0e400]"},
		"created":               {service: answerWith(201, "application/vnd.score+json", "1"), answer: "1"},
		"nothing to say":        {service: answerWith(204, "", ""), answer: "null"},
		"an empty answer":       {service: answerWith(200, "application/json", ""), message: "status 200 and no body", code: rpc.CodeBadSkillOutput},
		"a page":                {service: answerWith(200, "text/html", "<html>s3cret"), message: `the type "text/html", and not application/json`, code: rpc.CodeBadSkillOutput},
		"JSON that is no JSON":  {service: answerWith(200, "text/plain", "1"), message: `"text/plain"`, code: rpc.CodeBadSkillOutput},
		"garbage":               {service: answerWith(200, "application/json", "{\"a\":1} s3cret"), message: "not one JSON value", code: rpc.CodeBadSkillOutput},
		"a duplicate member":    {service: answerWith(200, "application/json", `{"a":1,"a":2}`), message: "not one JSON value", code: rpc.CodeBadSkillOutput},
		"a deep answer":         {service: answerWith(200, "application/json", strings.Repeat("[", 600)+strings.Repeat("]", 600)), message: "not one JSON value", code: rpc.CodeBadSkillOutput},
		"too long an answer":    {service: answerWith(200, "application/json", `"`+strings.Repeat("x", 2000)+`"`), message: "more than 1000 bytes", code: rpc.CodeBadSkillOutput},
		"a packed bomb":         {service: answerWith(200, "application/json", "x", "Content-Encoding", "br"), message: "compressed in a way", code: rpc.CodeBadSkillOutput},
		"an error for callers":  {service: answerWith(422, "application/json", `{"error":{"message":"no such item"}}`), message: "no such item"},
		"one that may pass":     {service: answerWith(409, "application/json", `{"error":{"message":"locked","retryable":true}}`), message: "locked", retryable: true},
		"an error of its own":   {service: answerWith(404, "application/json", `{"detail":"s3cret"}`), message: "failed with status 404"},
		"an error as text":      {service: answerWith(400, "text/plain", private), message: "failed with status 400"},
		"not permitted":         {service: answerWith(401, "text/html", "s3cret"), message: "failed with status 401"},
		"busy":                  {service: answerWith(429, "text/plain", "s3cret", "Retry-After", "7"), message: "failed with status 429", retryable: true, retryIn: 7 * time.Second},
		"busy, and says so":     {service: answerWith(429, "application/json", `{"error":{"message":"slow down"}}`, "Retry-After", "soon"), message: "slow down", retryable: true},
		"away for a while":      {service: answerWith(503, "text/html", "s3cret", "Retry-After", "Fri, 31 Dec 1999 23:59:59 GMT"), message: "failed with status 503", retryable: true},
		"away for ever":         {service: answerWith(503, "text/html", "s3cret", "Retry-After", "4294967295"), message: "failed with status 503", retryable: true, retryIn: rpc.MaxTimeout},
		"a fault":               {service: answerWith(500, "application/json", private), message: "failed with status 500"},
		"a gateway":             {service: answerWith(502, "application/json", private), message: "failed with status 502"},
		"a redirect":            {service: answerWith(307, "application/json", `"s3cret"`, "Location", "http://169.254.169.254/latest/meta-data"), message: "redirect (status 307), which is not followed"},
		"a redirect, elsewhere": {service: answerWith(302, "application/json", `1`, "Location", "/other"), message: "redirect (status 302)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int64
			s := serve(t, func(w http.ResponseWriter, r *http.Request) { requests.Add(1); test.service(w, r) },
				func(c *httpskill.Config) { c.MaxResponseBytes = 1000 })
			if strings.HasPrefix(name, "a deep") {
				s = serve(t, test.service, nil)
			}
			answer, err := call(t.Context(), s)
			if test.message == "" {
				if err != nil || string(answer) != test.answer {
					t.Fatalf("%s, %v", answer, err)
				}
				return
			}
			var failed *rpc.SkillError
			if !errors.As(err, &failed) || !strings.Contains(failed.Message, test.message) || failed.Code != test.code ||
				failed.Retryable != test.retryable || failed.RetryIn != test.retryIn {
				t.Fatalf("%+v", err)
			}
			if strings.Contains(failed.Message, "s3cret") {
				t.Errorf("the caller reads %q", failed.Message)
			}
			if requests.Load() > 1 {
				t.Errorf("%d requests", requests.Load())
			}
		})
	}
}

// The service knows what a program would know, besides the headers of the configuration, and
// calls share connections.
func TestRequests(t *testing.T) {
	var connections atomic.Int64
	got := make(chan *http.Request, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		got <- r
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "1")
	}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	s := at(t, server.URL+"/score?v=2", func(c *httpskill.Config) {
		c.Method, c.Header = "PUT", map[string]string{"X-Team": "data"}
	})
	deadline := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	inv := &rpc.Invocation{
		From: "agent://caller", Proven: true, Capability: "score", Payload: json.RawMessage(`{"n":12345678901234567890}`), MessageID: "m", CorrelationID: "c",
		TenantID: "acme", SessionID: "s", Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", IdempotencyKey: "k", Hops: 2, Deadline: deadline,
	}
	for range 3 {
		if _, err := s.Handle(t.Context(), inv); err != nil {
			t.Fatal(err)
		}
		r := <-got
		body, _ := io.ReadAll(r.Body)
		if string(body) != string(inv.Payload) || r.Method != "PUT" || r.URL.String() != "/score?v=2" {
			t.Errorf("%s %s: %s", r.Method, r.URL, body)
		}
		for name, want := range map[string]string{
			"Content-Type": "application/json", "X-Team": "data", "Agentd-Caller": "agent://caller", "Agentd-Caller-Proven": "true", "Agentd-Agent": "agent://callee",
			"Agentd-Capability": "score", "Agentd-Message-Id": "m", "Agentd-Correlation-Id": "c", "Agentd-Tenant-Id": "acme", "Agentd-Session-Id": "s",
			"Traceparent": inv.Traceparent, "Agentd-Idempotency-Key": "k", "Agentd-Hops": "2", "Agentd-Deadline": fmt.Sprint(deadline.UnixMilli()),
		} {
			if r.Header.Get(name) != want {
				t.Errorf("%s: %q", name, r.Header.Get(name))
			}
		}
	}
	if connections.Load() != 1 {
		t.Errorf("%d connections", connections.Load())
	}
	if _, err := s.Handle(t.Context(), &rpc.Invocation{From: "agent://caller", Capability: "score"}); err != nil {
		t.Fatal(err)
	}
	if body, _ := io.ReadAll((<-got).Body); string(body) != "null" {
		t.Errorf("a call without arguments: %s", body)
	}
	_, err := s.Handle(t.Context(), &rpc.Invocation{From: "agent://caller", Capability: "score", IdempotencyKey: "a\r\nX: y"})
	if failed := (*rpc.SkillError)(nil); !errors.As(err, &failed) || !strings.Contains(failed.Message, `"Agentd-Idempotency-Key" has control characters`) {
		t.Errorf("a key with a line break: %v", err)
	}
}

// A service that remembers answers by the header Idempotency-Key, as many do, recognises a call that
// is repeated, and gives nobody the answer to another caller or tenant that uses the same key.
func TestIdempotencyKeys(t *testing.T) {
	got := make(chan string, 1)
	h := func(w http.ResponseWriter, r *http.Request) {
		got <- r.Header.Get("Idempotency-Key")
		answerWith(200, "application/json", "1")(w, r)
	}
	first, second := serve(t, h, nil), serve(t, h, func(c *httpskill.Config) { c.Agent = "agent://other" })
	key := func(s *httpskill.Skill, adjust func(*rpc.Invocation)) string {
		t.Helper()
		inv := rpc.Invocation{From: "agent://caller", TenantID: "acme", Capability: "score", MessageID: "m", IdempotencyKey: "k"}
		adjust(&inv)
		if _, err := s.Handle(t.Context(), &inv); err != nil {
			t.Fatal(err)
		}
		return <-got
	}
	own := key(first, func(*rpc.Invocation) {})
	if again := key(first, func(inv *rpc.Invocation) { inv.MessageID, inv.SessionID = "n", "s" }); again != own || own == "" {
		t.Errorf("a call has the key %q, and its repetition %q", own, again)
	}
	if none := key(first, func(inv *rpc.Invocation) { inv.IdempotencyKey = "" }); none != "" {
		t.Errorf("a call without a key has %q", none)
	}
	seen := map[string]string{own: "the call"}
	for name, other := range map[string]string{
		"another caller":              key(first, func(inv *rpc.Invocation) { inv.From = "agent://mallory" }),
		"another tenant":              key(first, func(inv *rpc.Invocation) { inv.TenantID = "globex" }),
		"no tenant":                   key(first, func(inv *rpc.Invocation) { inv.TenantID = "" }),
		"another capability":          key(first, func(inv *rpc.Invocation) { inv.Capability = "rank" }),
		"another key":                 key(first, func(inv *rpc.Invocation) { inv.IdempotencyKey = "k2" }),
		"one with a space":            key(first, func(inv *rpc.Invocation) { inv.IdempotencyKey = "k " }),
		"what reads the same in line": key(first, func(inv *rpc.Invocation) { inv.TenantID, inv.Capability = "acmes", "core" }),
		"another agent":               key(second, func(*rpc.Invocation) {}),
	} {
		if same, ok := seen[other]; ok {
			t.Errorf("%s and %s have the same key", name, same)
		}
		seen[other] = name
	}
}

// raw is a service that reads a request and then does something with the connection.
func raw(t *testing.T, then func(net.Conn)) (address string, requests *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	requests = &atomic.Int64{}
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				defer conn.Close()
				for seen := []byte{}; !bytes.Contains(seen, []byte(`{"n":1}`)); {
					b := make([]byte, 4096)
					n, err := conn.Read(b)
					if err != nil {
						return
					}
					seen = append(seen, b[:n]...)
				}
				requests.Add(1)
				then(conn)
			})
		}
	})
	t.Cleanup(func() { l.Close(); conns.Wait() })
	return "http://" + l.Addr().String(), requests
}

// Answers that have no end are cut off: by their bytes, or by the time of the call.
func TestEndlessAnswers(t *testing.T) {
	const slow = time.Second // in which the service must have the request
	t.Run("a body", func(t *testing.T) {
		t.Parallel()
		address, _ := raw(t, func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
			for _, err := io.WriteString(c, "4\r\n    \r\n"); err == nil; _, err = io.WriteString(c, "4\r\n    \r\n") {
			}
		})
		_, err := call(t.Context(), at(t, address, func(c *httpskill.Config) { c.MaxResponseBytes = 10_000 }))
		if failed := (*rpc.SkillError)(nil); !errors.As(err, &failed) || failed.Code != rpc.CodeBadSkillOutput || failed.Retryable {
			t.Errorf("%v", err)
		}
	})
	t.Run("headers", func(t *testing.T) {
		t.Parallel()
		address, _ := raw(t, func(c net.Conn) {
			_, err := io.WriteString(c, "HTTP/1.1 200 OK\r\n")
			for err == nil {
				_, err = io.WriteString(c, "X: y\r\n")
			}
		})
		if _, err := call(t.Context(), at(t, address, nil)); err == nil {
			t.Error("they were taken")
		}
	})
	t.Run("a slow one", func(t *testing.T) {
		t.Parallel()
		address, _ := raw(t, func(c net.Conn) {
			_, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n\"")
			for err == nil {
				_, err = io.WriteString(c, "x")
				time.Sleep(5 * time.Millisecond)
			}
		})
		_, err := call(t.Context(), at(t, address, func(c *httpskill.Config) { c.Timeout = slow }))
		if failed := (*rpc.SkillError)(nil); !errors.As(err, &failed) || !strings.Contains(failed.Message, "did not answer within 1s") || failed.Retryable {
			t.Errorf("%v", err)
		}
	})
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		gone := make(chan struct{})
		address, _ := raw(t, func(c net.Conn) {
			_, _ = c.Read(make([]byte, 1)) // until agentd closes the request
			close(gone)
		})
		ctx, cancel := context.WithTimeout(t.Context(), slow)
		defer cancel()
		if _, err := call(ctx, at(t, address, nil)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		<-gone
	})
}

// When a call is cancelled, the service sees that its request is closed.
func TestCancellation(t *testing.T) {
	began, ended := make(chan struct{}), make(chan struct{})
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		close(began)
		<-r.Context().Done()
		close(ended)
	}, nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the caller has left")
	go func() { <-began; cancel(gone) }()
	if _, err := call(ctx, s); !errors.Is(err, gone) {
		t.Errorf("%v", err)
	}
	<-ended
}

// A request that the service may have begun is not sent again, and its failure does not call for
// it: also not where it has an idempotency key, with which net/http would.
func TestBrokenOffIsNotRepeated(t *testing.T) {
	for _, key := range []string{"", "k"} {
		address, requests := raw(t, func(net.Conn) {}) // closes the connection without a word
		s := at(t, address, nil)
		_, err := s.Handle(t.Context(), &rpc.Invocation{From: "agent://caller", Payload: json.RawMessage(`{"n":1}`), IdempotencyKey: key})
		if failed := (*rpc.SkillError)(nil); !errors.As(err, &failed) || failed.Retryable || !failed.Lost || !strings.Contains(failed.Message, "lost while it served") {
			t.Errorf("key %q: %v", key, err)
		}
		if requests.Load() != 1 {
			t.Errorf("key %q: %d requests", key, requests.Load())
		}
	}
}

// The same on a connection that has served calls before, where net/http repeats requests.
func TestBrokenOffOnAKeptConnection(t *testing.T) {
	var requests atomic.Int64
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if requests.Add(1) > 1 {
			panic(http.ErrAbortHandler)
		}
		answerWith(200, "application/json", "1")(w, r)
	}, nil)
	inv := &rpc.Invocation{From: "agent://caller", Payload: json.RawMessage(`{"n":1}`), IdempotencyKey: "k"}
	if _, err := s.Handle(t.Context(), inv); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Handle(t.Context(), inv); err == nil || requests.Load() != 2 {
		t.Errorf("%v, after %d requests", err, requests.Load())
	}
}

// A service that cannot be reached is reported, and the call may be repeated: nothing was begun.
func TestUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := "http://" + l.Addr().String()
	l.Close()
	var reports []error
	s := at(t, address, func(c *httpskill.Config) { c.Reached = func(err error) { reports = append(reports, err) } })
	_, err = call(t.Context(), s)
	if failed := (*rpc.SkillError)(nil); !errors.As(err, &failed) || !failed.Retryable || failed.Message != "the skill's service cannot be reached" {
		t.Errorf("%v", err)
	}
	if err := s.Reach(t.Context()); err == nil || len(reports) != 1 || !strings.Contains(reports[0].Error(), "refuse") {
		t.Errorf("%v, %v", err, reports)
	}
}

// A name that leads to a private address leads nowhere. The address is judged on the socket, so
// that a name may lead elsewhere with each look-up: package netguard has the tests.
func TestNameOfAPrivateAddress(t *testing.T) {
	var connections atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connections.Add(1)
		answerWith(200, "application/json", "1")(w, r)
	}))
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	allowed := loopback()
	s := at(t, "http://localhost:"+port, func(c *httpskill.Config) { c.Policy.AllowAddresses = nil })
	_, err := call(t.Context(), s)
	if failed := (*rpc.SkillError)(nil); !errors.As(err, &failed) || failed.Retryable || !strings.Contains(failed.Error(), "not on the public internet") ||
		strings.Contains(failed.Message, "public") || connections.Load() != 0 {
		t.Errorf("%v, %d connections", err, connections.Load())
	}
	// The same name with the range that the file lists.
	s = at(t, "http://localhost:"+port, func(c *httpskill.Config) { c.Policy.AllowAddresses = allowed })
	if _, err := call(t.Context(), s); err != nil {
		t.Error(err)
	}
}

// A service proves itself by the authority and name of the configuration, and agentd by its
// certificate.
func TestTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answerWith(200, "application/json", fmt.Sprint(len(r.TLS.PeerCertificates)))(w, r)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	own := &server.TLS.Certificates[0]
	for name, test := range map[string]struct {
		adjust func(*httpskill.Config)
		ok     bool
	}{
		"all is well":          {func(c *httpskill.Config) {}, true},
		"another name":         {func(c *httpskill.Config) { c.Policy.ServerName = "example.com" }, true},
		"a wrong name":         {func(c *httpskill.Config) { c.Policy.ServerName = "wrong.test" }, false},
		"another authority":    {func(c *httpskill.Config) { c.Policy.RootCAs = nil }, false},
		"no certificate of it": {func(c *httpskill.Config) { c.Policy.Certificate = nil }, false},
	} {
		s := at(t, server.URL, func(c *httpskill.Config) {
			c.Policy.RootCAs, c.Policy.Certificate = roots, own
			test.adjust(c)
		})
		answer, err := call(t.Context(), s)
		if (err == nil) != test.ok || test.ok && string(answer) != "1" {
			t.Errorf("%s: %s, %v", name, answer, err)
		}
		if err := s.Reach(t.Context()); name != "no certificate of it" && (err == nil) != test.ok {
			t.Errorf("%s: reach: %v", name, err)
		}
	}
}
