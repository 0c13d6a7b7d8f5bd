package mcpclient_test

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/internal/logtest"
	"github.com/agentd/agentd/internal/mcpclient"
	"github.com/agentd/agentd/internal/netguard"
)

const token = "s3cret/t0ken+of the test"

// web serves a handler by HTTPS, to those who know the token.
func web(t *testing.T, h http.Handler) (*httptest.Server, mcpclient.Options) {
	t.Helper()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Key") != token {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	}))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	host := strings.TrimPrefix(srv.URL, "https://")
	o := command(t, "web")
	o.Command = nil
	o.URL = &mcpclient.Endpoint{URL: srv.URL + "/mcp", Policy: func() (netguard.Policy, error) {
		return netguard.Policy{
			Hosts: []string{host}, RootCAs: roots, AllowAddresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
			Credentials: []netguard.Credential{{Host: host, Header: "X-Key", Value: token}},
		}, nil
	}}
	return srv, o
}

func streamable(s *mcp.Server, era string) http.Handler {
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: era == mcpclient.Era2026, PropagateRequestCancellation: true})
}

// Both eras by HTTPS: exact results, refused requests, changed contracts.
func TestHTTP(t *testing.T) {
	for _, era := range []string{mcpclient.Era2025, mcpclient.Era2026} {
		t.Run(era, func(t *testing.T) {
			s := library()
			_, o := web(t, streamable(s, era))
			pin(t, &o)
			c := start(t, o)
			const args = `{"n":9007199254740993,"f":1.0}`
			if r := mustCall(t, c, "echo", args); string(r.Structured) != args {
				t.Errorf("the result is %s", r.Structured)
			}
			if s := c.State(); s.Era != era {
				t.Errorf("the era is %s", s.Era)
			}
			mustCall(t, c, "change", `{"description": "poisoned"}`)
			waitFor(t, func() bool { return len(c.State().Deviations) == 1 })
			if _, e := call(t, c, "echo", `{}`); e == nil || e.Code != mcpclient.Changed {
				t.Errorf("%+v", e)
			}
			mustCall(t, c, "change", `{"description": "Says what it is told."}`)
			waitFor(t, func() bool { return len(c.State().Deviations) == 0 })
			_, err := c.Call(t.Context(), mcpclient.Request{Tool: "hang", Timeout: 50 * time.Millisecond})
			if err == nil || err.(*mcpclient.Error).Code != mcpclient.TimedOut {
				t.Errorf("%v", err)
			}
			// A secret that the server repeats does not come back.
			echoed, _ := json.Marshal(map[string]string{"key": token})
			if r := mustCall(t, c, "echo", string(echoed)); strings.Contains(string(r.Raw), "s3cret") || !strings.Contains(string(r.Structured), "redacted") {
				t.Errorf("the result is %s", r.Raw)
			}
		})
	}
}

// A server that was restarted knows the session no more: the client connects anew.
func TestSessionGone(t *testing.T) {
	var handler atomic.Pointer[http.Handler]
	renew := func() { h := streamable(library(), mcpclient.Era2025); handler.Store(&h) }
	renew()
	_, o := web(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*handler.Load()).ServeHTTP(w, r) }))
	pin(t, &o)
	c := start(t, o)
	mustCall(t, c, "echo", `{}`)
	renew()
	mustCall(t, c, "echo", `{}`)
}

// A server that is down answers nothing, and is found again.
func TestServerDown(t *testing.T) {
	var down atomic.Bool
	inner := streamable(library(), mcpclient.Era2026)
	srv, o := web(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			panic(http.ErrAbortHandler)
		}
		inner.ServeHTTP(w, r)
	}))
	said := &logtest.Lines{}
	o.Logger = said.Logger()
	pin(t, &o)
	c := start(t, o)
	mustCall(t, c, "echo", `{}`)
	down.Store(true)
	srv.CloseClientConnections()
	waitFor(t, func() bool {
		_, e := call(t, c, "echo", `{}`)
		return e != nil && e.Code == mcpclient.Away
	})
	down.Store(false)
	mustCall(t, c, "echo", `{}`)
	if said.Count("is away") != 1 || said.Count("is back") != 1 {
		t.Errorf("the log is %s", said.String())
	}
}

// What the rules of package netguard refuse is not reached.
func TestGuard(t *testing.T) {
	var reached atomic.Bool
	srv, o := web(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached.Store(true)
		http.Redirect(w, r, "http://169.254.169.254/latest/meta-data", http.StatusTemporaryRedirect)
	}))
	if _, err := mcpclient.List(t.Context(), o); err == nil || !reached.Load() {
		t.Errorf("a redirect was followed: %v", err)
	}
	reached.Store(false)
	policy := o.URL.Policy
	o.URL.Policy = func() (netguard.Policy, error) {
		p, err := policy()
		p.AllowAddresses = nil
		return p, err
	}
	if _, err := mcpclient.List(t.Context(), o); err == nil || !strings.Contains(err.Error(), "public") || reached.Load() {
		t.Errorf("%v", err)
	}
	o.URL.Policy = func() (netguard.Policy, error) {
		p, err := policy()
		p.RootCAs = nil
		return p, err
	}
	if _, err := mcpclient.List(t.Context(), o); err == nil || !strings.Contains(err.Error(), "certificate") || reached.Load() {
		t.Errorf("%v", err)
	}
	o.URL.Policy, o.URL.URL = policy, strings.Replace(srv.URL, "https", "http", 1)
	if _, err := mcpclient.List(t.Context(), o); err == nil || !strings.Contains(err.Error(), "https only") || reached.Load() {
		t.Errorf("%v", err)
	}
}

// hostile answers calls by hand, in the newer era.
func hostile(answer func(w http.ResponseWriter, id json.RawMessage)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if json.Unmarshal(data, &m) != nil || m.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		reply := func(result string) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
		}
		switch m.Method {
		case "server/discover":
			reply(`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}`)
		case "tools/list":
			reply(`{"resultType":"complete","tools":[{"name":"t","inputSchema":{"type":"object"}}],"ttlMs":0,"cacheScope":"private"}`)
		default:
			answer(w, m.ID)
		}
	})
}

func TestHostileAnswersByHTTP(t *testing.T) {
	stream := func(w http.ResponseWriter) { w.Header().Set("Content-Type", "text/event-stream") }
	good := func(id string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"result":{"content":[],"structuredContent":{"id":` + id + `}}}`
	}
	for name, row := range map[string]struct {
		answer func(w http.ResponseWriter, id json.RawMessage)
		code   mcpclient.Code
	}{
		"large body": {func(w http.ResponseWriter, _ json.RawMessage) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `"`+strings.Repeat("x", 2<<20))
		}, mcpclient.BadAnswer},
		"large event": {func(w http.ResponseWriter, _ json.RawMessage) {
			stream(w)
			_, _ = io.WriteString(w, "data: "+strings.Repeat("x", 2<<20))
		}, mcpclient.BadAnswer},
		"stream without end": {func(w http.ResponseWriter, _ json.RawMessage) {
			stream(w)
			for line := ": " + strings.Repeat("x", 1000) + "\n\n"; ; {
				if _, err := io.WriteString(w, line); err != nil {
					return
				}
			}
		}, mcpclient.BadAnswer},
		"unknown ids": {func(w http.ResponseWriter, id json.RawMessage) {
			stream(w)
			for _, id := range []string{"4711", `"x"`, string(id), string(id)} {
				fmt.Fprintf(w, "data: %s\n\n", good(id))
			}
		}, ""},
		"an error page": {func(w http.ResponseWriter, _ json.RawMessage) { http.Error(w, "<html>", http.StatusBadGateway) }, mcpclient.Broken},
		"no answer":     {func(w http.ResponseWriter, _ json.RawMessage) { stream(w) }, mcpclient.Broken},
		"an error": {func(w http.ResponseWriter, id json.RawMessage) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"no %s"}}`, id, token)
		}, mcpclient.Refused},
	} {
		t.Run(name, func(t *testing.T) {
			_, o := web(t, hostile(row.answer))
			o.Limits.MessageBytes = 1 << 20
			pin(t, &o)
			c := start(t, o)
			r, e := call(t, c, "t", `{}`)
			switch {
			case row.code == "" && (e != nil || !strings.Contains(string(r.Structured), `"id"`)):
				t.Errorf("%+v", e)
			case row.code != "" && (e == nil || e.Code != row.code || !e.Sent || e.Retryable || strings.Contains(e.Message, "s3cret")):
				t.Errorf("%+v", e)
			}
		})
	}
}

// A list that has no end, or names a tool twice, is no list.
func TestHostileLists(t *testing.T) {
	for name, row := range map[string]struct{ tools, next, want string }{
		"endless":  {``, `"again"`, "pages"},
		"twice":    {`{"name":"t","inputSchema":{"type":"object"}},{"name":"t","inputSchema":{"type":"object"}}`, `""`, "twice"},
		"spelling": {`{"name":"t","description":"good","description":"evil","inputSchema":{"type":"object"}}`, `""`, "duplicate key"},
		"schema":   {`{"name":"t"}`, `""`, "no input schema"},
	} {
		t.Run(name, func(t *testing.T) {
			inner := hostile(nil)
			_, o := web(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Mcp-Method") != "tools/list" {
					inner.ServeHTTP(w, r)
					return
				}
				var m struct{ ID json.RawMessage }
				_ = json.NewDecoder(r.Body).Decode(&m)
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","tools":[%s],"nextCursor":%s,"ttlMs":0,"cacheScope":"private"}}`, m.ID, row.tools, row.next)
			}))
			o.Era = mcpclient.Era2026
			if _, err := mcpclient.List(t.Context(), o); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

// A server that takes connections and says nothing is given up.
func TestMuteByHTTP(t *testing.T) {
	_, o := web(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then the server sees the client go
		<-r.Context().Done()
	}))
	o.Limits.StartTimeout = 100 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := mcpclient.List(ctx, o); err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "in time") {
		t.Errorf("%v", err)
	}
}

// lister serves one tool with the description, and lets its list be kept for an hour. Everything
// else is inner's.
func lister(description func() string, lists *atomic.Int64, inner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Method") != "tools/list" {
			inner.ServeHTTP(w, r)
			return
		}
		lists.Add(1)
		var m struct{ ID json.RawMessage }
		_ = json.NewDecoder(r.Body).Decode(&m)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","tools":[{"name":"t","description":%q,"inputSchema":{"type":"object"}}],"ttlMs":3600000,"cacheScope":"private"}}`, m.ID, description())
	})
}

// A server does not say how long it is not looked at.
func TestListsAreNotKept(t *testing.T) {
	var lists atomic.Int64
	var poisoned atomic.Bool
	_, o := web(t, lister(func() string {
		if poisoned.Load() {
			return "poisoned"
		}
		return "good"
	}, &lists, hostile(nil)))
	o.Era, o.Limits.Relist = mcpclient.Era2026, 10*time.Millisecond
	pin(t, &o)
	c := start(t, o)
	waitFor(t, func() bool { return c.State().Connected })
	poisoned.Store(true)
	waitFor(t, func() bool { return len(c.State().Deviations) == 1 })
	poisoned.Store(false)
	waitFor(t, func() bool { return len(c.State().Deviations) == 0 })
}

// A call whose headers are refused goes out once more, after the list that they come from was
// read again.
func TestHeadersThatAreRefused(t *testing.T) {
	for name, always := range map[string]bool{"once": false, "always": true} {
		t.Run(name, func(t *testing.T) {
			var lists, calls, listed atomic.Int64
			_, o := web(t, lister(func() string { return "" }, &lists, hostile(func(w http.ResponseWriter, id json.RawMessage) {
				w.Header().Set("Content-Type", "application/json")
				if calls.Add(1) > 1 && !always {
					fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","content":[]}}`, id)
					return
				}
				listed.CompareAndSwap(0, lists.Load())
				w.WriteHeader(http.StatusBadRequest)
				fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32020,"message":"header mismatch"}}`, id)
			})))
			o.Era = mcpclient.Era2026
			pin(t, &o)
			c := start(t, o)
			_, e := call(t, c, "t", `{}`)
			if always && (e == nil || e.Code != mcpclient.Refused) || !always && e != nil {
				t.Errorf("%+v", e)
			}
			if calls.Load() != 2 || lists.Load() <= listed.Load() {
				t.Errorf("%d calls, and %d lists after %d", calls.Load(), lists.Load(), listed.Load())
			}
		})
	}
}

// What a server asks is under way until it has taken the answer, and there is a bound of that.
func TestAnswersThatAreNotTaken(t *testing.T) {
	arrived, stop := make(chan struct{}), make(chan struct{})
	inner := hostile(func(w http.ResponseWriter, id json.RawMessage) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 200 {
			fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"ping\"}\n\n", 1000+i)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-arrived:
			case <-stop:
				return
			}
		}
		fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"resultType\":\"complete\",\"content\":[]}}\n\n", id)
	})
	_, o := web(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(data)))
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if json.Unmarshal(data, &m) != nil || m.ID == nil || m.Method != "" {
			inner.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{")
		_ = http.NewResponseController(w).Flush()
		select {
		case arrived <- struct{}{}:
		case <-stop:
		}
		<-stop
	}))
	o.Era = mcpclient.Era2026
	pin(t, &o)
	c := start(t, o)
	_, e := call(t, c, "t", `{}`)
	close(stop)
	if e == nil || !strings.Contains(e.Message, "asks more than is answered") {
		t.Errorf("%+v", e)
	}
}
