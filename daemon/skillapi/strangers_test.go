package skillapi_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentd/agentd/daemon/skillapi"
	"github.com/agentd/agentd/rpc"
)

func TestMain(m *testing.M) {
	if url := os.Getenv("SKILLAPI_TEST_URL"); url != "" {
		// This program, started again as another user.
		_, err := skillapi.NewClient(url, os.Getenv("SKILLAPI_TEST_CALL")).RequestAgent(context.Background(), rpc.Request{To: "agent://b", Capability: "x"})
		fmt.Println(err)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// dial connects without a word.
func dial(t *testing.T, s *skillapi.Server) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// However many connect and say nothing, or half a header, skills are served.
func TestStrangersKeepNoSkillOut(t *testing.T) {
	t.Parallel()
	s, _ := serve(t, echo, nil)
	token := running(t, s, &rpc.Invocation{CorrelationID: "c-1"})
	first := dial(t, s)
	if _, err := io.WriteString(first, "POST /v1/request HTTP/1.1\r\nHost: x\r\nAgentd-"); err != nil {
		t.Fatal(err)
	}
	const rounds, each = 40, 256 // 10,240 connections
	for range rounds {
		for range each {
			conn, err := net.Dial("tcp", s.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			if tcp, ok := conn.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0) // no port of this host stays taken
			}
			_ = conn.Close()
		}
		if got := send(t, "POST", s.URL()+"/v1/request", call, withToken(token)); got.status != http.StatusOK {
			t.Fatalf("status %d: %s", got.status, got.body)
		}
	}
	for range 2 * each {
		dial(t, s)
	}
	if got := send(t, "POST", s.URL()+"/v1/request", call, withToken(token)); got.status != http.StatusOK {
		t.Fatalf("status %d: %s", got.status, got.body)
	}
}

// Whoever has a token holds no more connections with it than there may be strangers, but for those
// whose requests are served: what is refused, or answered, does not wait for the rest of its body.
func TestAnsweredRequestsHoldFewConnections(t *testing.T) {
	t.Parallel()
	const most = 256
	for name, asks := range map[string]string{"refused": "/v1/agent/status", "answered": "/v1/results/c-1?timeoutMs=1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := serve(t, nil, func(context.Context, string) *rpc.Result { return &rpc.Result{} })
			token := running(t, s, &rpc.Invocation{})
			ask := func() (net.Conn, *bufio.Reader) {
				conn := dial(t, s)
				if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nAgentd-Call: %s\r\nContent-Length: 10\r\n\r\n", asks, s.Addr(), token); err != nil {
					t.Fatal(err)
				}
				in := bufio.NewReader(conn)
				if line, err := in.ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 ") {
					t.Fatalf("%q, %v", line, err)
				}
				return conn, in
			}
			first, rest := ask()
			for range most {
				ask()
			}
			if err := first.SetReadDeadline(time.Now().Add(patience / 2)); err != nil { // half of what a body may take
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, rest); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("the first connection is still open")
			}
		})
	}
}

// A skill's requests count as a stranger's only until they have named their call.
func TestRequestsInProgressAreNotCut(t *testing.T) {
	t.Parallel()
	began, end := make(chan struct{}), make(chan struct{})
	s, _ := serve(t, func(ctx context.Context, r rpc.Request) (*rpc.Result, error) {
		close(began)
		<-end
		return echo(ctx, r)
	}, nil)
	token := running(t, s, &rpc.Invocation{})
	answered := make(chan reply, 1)
	go func() { answered <- send(t, "POST", s.URL()+"/v1/request", call, withToken(token)) }()
	<-began
	last := dial(t, s)
	for range 300 {
		last = dial(t, s)
	}
	// The server has taken all of them when it answers the last.
	if _, err := io.WriteString(last, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(last).ReadString('\n'); err != nil || !strings.Contains(line, "403") {
		t.Fatalf("%q, %v", line, err)
	}
	close(end)
	if got := <-answered; got.status != http.StatusOK {
		t.Errorf("status %d: %s", got.status, got.body)
	}
}

// A header that is too long, and one that never ends, are none of a skill's. The body of
// a refused request is not read.
func TestHostileHeaders(t *testing.T) {
	t.Parallel()
	s, _ := serve(t, nil, nil)
	token := running(t, s, &rpc.Invocation{})
	got := send(t, "POST", s.URL()+"/v1/request", call, func(r *http.Request) {
		withToken(token)(r)
		r.Header.Set("X-Long", strings.Repeat("x", 32<<10))
	})
	if got.status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("status %d", got.status)
	}
	conn := dial(t, s)
	if _, err := io.WriteString(conn, "POST /v1/request HTTP/1.1\r\nHost: "+s.Addr().String()+"\r\nContent-Length: 1000000\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || resp.StatusCode != http.StatusForbidden || !resp.Close {
		t.Errorf("a body that does not come: %+v, %v", resp, err)
	}
}

// A body that is still on its way when its call ends is waited for no longer.
func TestBodiesEndWithTheirCall(t *testing.T) {
	t.Parallel()
	s, _ := serve(t, nil, nil)
	token, release := s.Register(t.Context())
	conn := dial(t, s)
	head := fmt.Sprintf("POST /v1/request HTTP/1.1\r\nHost: %s\r\nAgentd-Call: %s\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n", s.Addr(), token)
	if _, err := io.WriteString(conn, head); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	if line, err := in.ReadString('\n'); err != nil || !strings.Contains(line, "100") { // the server reads
		t.Fatalf("%q, %v", line, err)
	}
	release()
	if rest, err := io.ReadAll(in); err != nil || !strings.Contains(string(rest), "\r\n\r\n") || strings.Contains(string(rest), "200 OK") {
		t.Errorf("%q, %v", rest, err)
	}
}

// Shutdown waits for no stranger, for requests as long as it may, and then cuts them.
func TestShutdown(t *testing.T) {
	t.Parallel()
	began, ended := make(chan struct{}), make(chan struct{})
	s, err := skillapi.Listen(t.Context(), skillapi.Config{
		Caller: caller(func(ctx context.Context, _ rpc.Request) (*rpc.Result, error) {
			close(began)
			<-ctx.Done()
			close(ended)
			return &rpc.Result{}, nil
		}),
		MaxPayloadBytes: func() int { return 1 }, Logger: quiet(),
	})
	if err != nil {
		t.Fatal(err)
	}
	dial(t, s)
	c := skillapi.NewClient(s.URL(), running(t, s, &rpc.Invocation{}))
	cut := make(chan error, 1)
	go func() {
		_, err := c.RequestAgent(t.Context(), rpc.Request{To: "agent://b", Capability: "x"})
		cut <- err
	}()
	<-began
	now, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Shutdown(now); err == nil || !strings.Contains(err.Error(), "cut short") {
		t.Errorf("shutdown: %v", err)
	}
	if err := <-cut; err == nil {
		t.Error("the request that was cut short has a result")
	}
	<-ended
	if _, err := c.Progress(t.Context(), []byte(`1`)); err == nil || !strings.Contains(err.Error(), "the skill's call has ended") {
		t.Errorf("after the shutdown: %v", err)
	}
}

// Another user of the host is cut off before it has said anything, with a valid token too.
func TestOtherUsers(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		t.Skip("only Linux says whose a connection is, and only root can start a program as another user")
	}
	s, lines := serve(t, echo, nil)
	token := running(t, s, &rpc.Invocation{})
	as := func(uid uint32) string { return asUser(t, s, token, uid) }
	if got := as(0); got != "<nil>" {
		t.Errorf("this user: %s", got)
	}
	if got := as(12345); got == "<nil>" {
		t.Error("another user made a call")
	}
	if text := lines.String(); !strings.Contains(text, "another user of this host connects") {
		t.Errorf("the log says %q", text)
	}
}

// asUser makes a call as a user, and returns its error.
func asUser(t *testing.T, s *skillapi.Server, token string, uid uint32) string {
	t.Helper()
	cmd := exec.Command("/proc/self/exe") // the file itself may stand in a folder that only root can enter
	cmd.Env = []string{"SKILLAPI_TEST_URL=" + s.URL(), "SKILLAPI_TEST_CALL=" + token, "GORACE=atexit_sleep_ms=0"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// The users that skills run as are served, each with the tokens of its own calls, and
// nobody else. What an earlier call runs as is served until that call ends.
func TestUsersOfSkills(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		t.Skip("only Linux says whose a connection is, and only root can start a program as another user")
	}
	const one, two, early, other = 12345, 12346, 12347, 12348
	s, _ := serve(t, echo, nil)
	ctx := rpc.WithInvocation(t.Context(), &rpc.Invocation{})
	earlyToken, release := s.As(early).Register(ctx)
	s.SetUsers(one, two)
	oneToken, releaseOne := s.As(one).Register(ctx)
	defer releaseOne()
	twoToken, releaseTwo := s.As(two).Register(ctx)
	defer releaseTwo()
	const served, refused, cut = "served", "refused", "cut off"
	answer := func(err string) string {
		switch {
		case err == "<nil>":
			return served
		case strings.Contains(err, "has ended, or never existed"):
			return refused
		}
		return cut // the system's words differ
	}
	for _, test := range []struct {
		name, token string
		user        uint32
		want        string
	}{
		{"a skill", oneToken, one, served},
		{"a skill of another user", twoToken, two, served},
		{"a skill with a token of another's", oneToken, two, refused},
		{"a skill of before", earlyToken, early, served},
		{"agentd's own user, as which no skill runs", oneToken, 0, cut},
		{"any other", oneToken, other, cut},
	} {
		if got := answer(asUser(t, s, test.token, test.user)); got != test.want {
			t.Errorf("%s: %s", test.name, got)
		}
	}
	release()
	release() // which is nothing
	if got := answer(asUser(t, s, earlyToken, early)); got != cut {
		t.Errorf("a skill of before, after its call: %s", got)
	}
}
