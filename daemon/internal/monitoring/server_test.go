package monitoring

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/daemon/metrics"
	"github.com/agentd/agentd/internal/tlstest"
)

// An agent is as ready as its test says.
type agent struct {
	fault  atomic.Pointer[string]
	locked chan struct{} // nil for locks that open
}

func (a *agent) get() Agent {
	ready := func() error {
		if why := a.fault.Load(); why != nil {
			return errors.New(*why)
		}
		return nil
	}
	return Agent{
		Metrics: metrics.Agent{
			ID: "a", Calls: metrics.NewCalls(), Audit: &metrics.Audit{}, Ready: ready,
			Status: func() (control.Status, bool) { return control.Status{Warnings: []string{"look at this"}}, true },
		},
		Alive: func() {
			if a.locked != nil {
				<-a.locked
			}
		},
	}
}

func of(a Agent) Process { return Process{Agents: []Agent{a}} }

func listen(t *testing.T, address string, s Settings, a *agent) *Server {
	t.Helper()
	m, err := Listen(t.Context(), address, s, slog.New(slog.DiscardHandler), of(a.get()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return m
}

// ask sends a request with headers, as name: value, and returns status and body.
func ask(t *testing.T, c *http.Client, url string, headers ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			r.Host = value
		}
		r.Header.Add(name, value)
	}
	response, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// The probes say what their names say: a start that is over, an agent that is not ready and lives.
func TestProbes(t *testing.T) {
	a := &agent{}
	why := "no broker\nno disk"
	a.fault.Store(&why)
	m := listen(t, "127.0.0.1:0", Settings{}, a)
	want := func(path string, status int, body string, headers ...string) {
		t.Helper()
		if got, text := ask(t, http.DefaultClient, m.URL()+path, headers...); got != status || text != body {
			t.Errorf("%s: %d %q, want %d %q", path, got, text, status, body)
		}
	}
	want("/livez", 200, "ok\n")
	want("/startupz", 503, "starting\n")
	want("/readyz", 503, "not ready\na: no broker\na: no disk\n")
	want("/readyz", 503, `{"ready":false,"agents":[{"agent":"a","ready":false,"reasons":["no broker","no disk"],"warnings":["look at this"]}]}`+"\n", "Accept: application/json")
	a.fault.Store(nil)
	want("/readyz", 200, "ok\n")
	want("/readyz?verbose", 200, "ok\na: ready\na: warning: look at this\n")
	a.fault.Store(&why)
	want("/startupz", 200, "ok\n") // for good
	want("/debug/pprof/", 404, "404 page not found\n")
	if status, text := ask(t, http.DefaultClient, m.URL()+"/metrics"); status != 200 || !strings.Contains(text, `agentd_ready{agent="a"} 0`) || !strings.Contains(text, "go_goroutines ") {
		t.Errorf("%d %s", status, text)
	}
}

// An agent whose locks stay shut does not live, and each probe says so within its time. They leave
// one goroutine, not one each.
func TestDeadlockIsNoLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &agent{locked: make(chan struct{})}
		p := &probes{agents: []Agent{a.get()}}
		for range 100 {
			start := time.Now()
			w := &recorded{header: http.Header{}}
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "/livez", nil)
			p.live(w, r)
			if w.status != 503 || !strings.Contains(w.body.String(), "deadlocked: the agent a ") || time.Since(start) != aliveTimeout {
				t.Fatalf("%d %s after %s", w.status, &w.body, time.Since(start))
			}
		}
		looking := p.look(0)
		close(a.locked)
		<-looking
		w := &recorded{header: http.Header{}}
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "/livez", nil)
		if p.live(w, r); w.status != 200 {
			t.Errorf("%d after the locks have opened", w.status)
		}
	})
}

type recorded struct {
	header http.Header
	status int
	body   strings.Builder
}

func (r *recorded) Header() http.Header         { return r.header }
func (r *recorded) WriteHeader(status int)      { r.status = status }
func (r *recorded) Write(p []byte) (int, error) { return r.body.Write(p) }

// A web page learns nothing: neither one that asks by its own name, which resolves to this machine
// (DNS rebinding), nor one that asks across origins.
func TestPagesAreRefused(t *testing.T) {
	m := listen(t, "127.0.0.1:0", Settings{Hosts: []string{"metrics.example.com", "other.example.com:1"}}, &agent{})
	_, port, _ := net.SplitHostPort(m.listener.Addr().String())
	for _, c := range []struct {
		status int
		header string
	}{
		{200, "Host: 127.0.0.1:" + port}, {200, "Host: localhost:" + port}, {200, "Host: [::1]:" + port}, {200, "Host: 10.0.0.7"},
		{200, "Host: METRICS.example.com:" + port}, {200, "Sec-Fetch-Site: none"},
		{403, "Host: other.example.com:" + port}, {403, "Host: evil.example"}, {403, "Host: localhost.evil.example:" + port}, {403, "Host: 127.0.0.1.evil.example"},
		{403, "Origin: http://evil.example"}, {403, "Sec-Fetch-Site: cross-site"}, {403, "Sec-Fetch-Site: same-site"},
	} {
		for _, path := range []string{"/metrics", "/readyz", "/livez"} {
			if status, _ := ask(t, http.DefaultClient, m.URL()+path, c.header); status != c.status {
				t.Errorf("%s with %s: %d", path, c.header, status)
			}
		}
	}
	response, err := http.Post(m.URL()+"/metrics", "text/plain", nil)
	if err != nil || response.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("%v, %v", response, err)
	}
	_ = response.Body.Close()
}

// With a token, metrics and profiles take it. The probes do not.
func TestToken(t *testing.T) {
	m := listen(t, "127.0.0.1:0", Settings{Token: "s3cret", Profiles: true}, &agent{})
	for _, c := range []struct {
		path, token string
		status      int
	}{
		{"/metrics", "", 401}, {"/metrics", "Bearer wrong", 401}, {"/metrics", "Basic s3cret", 401}, {"/metrics", "Bearer s3cret", 200}, {"/metrics", "bearer s3cret", 200},
		{"/debug/pprof/", "", 401}, {"/debug/pprof/", "Bearer s3cret", 200}, {"/debug/pprof/cmdline", "Bearer s3cret", 200},
		{"/livez", "", 200}, {"/readyz", "", 200}, {"/startupz", "Bearer wrong", 200},
	} {
		if status, _ := ask(t, http.DefaultClient, m.URL()+c.path, "Authorization: "+c.token); status != c.status {
			t.Errorf("%s with %q: %d, want %d", c.path, c.token, status, c.status)
		}
	}
	if status, _ := ask(t, http.DefaultClient, m.URL()+"/metrics", "Authorization: Bearer s3cret", "Authorization: Bearer wrong"); status != 401 {
		t.Errorf("two tokens: %d", status)
	}
	// A reload swaps it.
	use, err := m.Prepare(Settings{Token: "next"})
	if err != nil {
		t.Fatal(err)
	}
	use()
	if status, _ := ask(t, http.DefaultClient, m.URL()+"/metrics", "Authorization: Bearer s3cret"); status != 401 {
		t.Errorf("the token of before: %d", status)
	}
	if status, _ := ask(t, http.DefaultClient, m.URL()+"/debug/pprof/", "Authorization: Bearer next"); status != 404 {
		t.Errorf("profiles that are off: %d", status)
	}
}

// An address that others reach takes TLS or an explicit word, and a token for profiles. There
// strangers get a verdict without its causes.
func TestBeyondThisMachine(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	for _, s := range []Settings{{}, {Insecure: true, Profiles: true}} {
		if m, err := Listen(t.Context(), "0.0.0.0:0", s, log, of((&agent{}).get())); err == nil {
			_ = m.Close(t.Context())
			t.Errorf("served with %+v", s)
		} else if !strings.Contains(err.Error(), "in agent.yaml") {
			t.Error(err)
		}
	}
	a := &agent{}
	why := "the disk /srv/secret is full"
	a.fault.Store(&why)
	m := listen(t, "0.0.0.0:0", Settings{Certificate: tlstest.Certificate(t), Token: "s3cret", Hosts: []string{"agents.example.com"}}, a)
	if !strings.HasPrefix(m.URL(), "https://") {
		t.Error(m.URL())
	}
	_, port, _ := net.SplitHostPort(m.listener.Addr().String())
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	url := "https://" + outside(t) + ":" + port
	if status, text := ask(t, client, url+"/readyz"); status != 503 || text != "not ready\n" {
		t.Errorf("a stranger gets %d %q", status, text)
	}
	if status, text := ask(t, client, url+"/readyz", "Authorization: Bearer s3cret"); status != 503 || !strings.Contains(text, why) {
		t.Errorf("who has the token gets %d %q", status, text)
	}
	if status, _ := ask(t, client, url+"/livez", "Host: localhost"); status != 403 {
		t.Errorf("localhost from elsewhere: %d", status)
	}
}

// outside is an address of this machine that is no loopback address.
func outside(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if ip, ok := a.(*net.IPNet); ok && !ip.IP.IsLoopback() && ip.IP.To4() != nil {
			return ip.IP.String()
		}
	}
	t.Skip("this machine has no address that others reach")
	return ""
}

// However often strangers ask, the broker is asked once a second, and answers who is still there.
func TestBrokerIsAskedSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, asked := (&agent{}).get(), 0
		a.Metrics.Live = func(ctx context.Context) metrics.Live {
			if asked++; ctx.Err() != nil {
				return metrics.Live{}
			}
			return metrics.Live{Queue: &metrics.Queue{Dead: uint64(asked)}}
		}
		p := &probes{agents: []Agent{a}}
		gone, leave := context.WithCancel(t.Context())
		leave()
		for _, ctx := range []context.Context{gone, t.Context(), t.Context()} {
			if v := p.judge(ctx, true); len(v.Agents[0].Warnings) != 2 || !strings.HasPrefix(v.Agents[0].Warnings[1], "1 dead letter: a request that was not served") {
				t.Errorf("%q", v.Agents[0].Warnings)
			}
		}
		time.Sleep(liveTimeout)
		if v := p.judge(t.Context(), true); asked != 2 || !strings.HasPrefix(v.Agents[0].Warnings[1], "2 dead letters") {
			t.Errorf("asked %d times: %q", asked, v.Agents[0].Warnings)
		}
	})
}

// A request that takes its time does not hold up the stop of an agent.
func TestCloseCutsOff(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	defer close(answer)
	a := (&agent{}).get()
	a.Metrics.Ready = func() error {
		close(asked)
		<-answer
		return nil
	}
	m, err := Listen(t.Context(), "127.0.0.1:0", Settings{}, slog.New(slog.DiscardHandler), of(a))
	if err != nil {
		t.Fatal(err)
	}
	cut := make(chan struct{})
	go func() {
		if response, err := http.Get(m.URL() + "/readyz"); err == nil {
			_ = response.Body.Close()
			t.Errorf("answered with %d", response.StatusCode)
		}
		close(cut)
	}()
	<-asked
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := m.Close(ctx); err != nil || ctx.Err() != nil {
		t.Errorf("closed with %v, after %v", err, ctx.Err())
	}
	<-cut
}

// A port that is taken is an error that names it. Connections are bounded, and freed.
func TestListening(t *testing.T) {
	m := listen(t, "127.0.0.1:0", Settings{}, &agent{})
	_, err := Listen(t.Context(), m.listener.Addr().String(), Settings{}, slog.New(slog.DiscardHandler), of((&agent{}).get()))
	if err == nil || !strings.Contains(err.Error(), m.listener.Addr().String()) || !strings.Contains(err.Error(), "address already in use") {
		t.Error(err)
	}
	var open []net.Conn
	for range maxConnections + 10 {
		c, err := net.Dial("tcp", m.listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
	}
	last := open[len(open)-1]
	_ = last.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := last.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "reset") {
		t.Errorf("one connection too many: %v", err)
	}
	for _, c := range open {
		_ = c.Close()
	}
}
