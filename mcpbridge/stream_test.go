package mcpbridge_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentd/agentd/mcpbridge"
	"github.com/agentd/agentd/rpc"
)

// A raw client writes what it likes.
type raw struct {
	t      testing.TB
	conn   net.Conn
	lines  *bufio.Scanner
	served chan error
}

func dial(t testing.TB, b *mcpbridge.Bridge, c mcpbridge.Client) *raw {
	t.Helper()
	ours, theirs := net.Pipe()
	r := &raw{t: t, conn: theirs, lines: bufio.NewScanner(theirs), served: make(chan error, 1)}
	r.lines.Buffer(nil, 8<<20)
	go func() { r.served <- b.ServeStream(context.WithoutCancel(t.Context()), c, ours) }()
	t.Cleanup(func() { _ = theirs.Close() })
	return r
}

func (r *raw) write(line string) {
	r.t.Helper()
	if _, err := io.WriteString(r.conn, line+"\n"); err != nil {
		r.t.Fatal(err)
	}
}

func (r *raw) read() map[string]any {
	r.t.Helper()
	if !r.lines.Scan() {
		r.t.Fatal("the stream has ended:", r.lines.Err())
	}
	var m map[string]any
	if err := json.Unmarshal(r.lines.Bytes(), &m); err != nil {
		r.t.Fatal(err)
	}
	return m
}

// request is a request of the newer revision.
func request(id, method, params, capabilities string) string {
	if params != "" {
		params += ","
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":{%s"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":%s}}}`, id, method, params, capabilities)
}

func (r *raw) ask(id, method, params, capabilities string) map[string]any {
	r.t.Helper()
	r.write(request(id, method, params, capabilities))
	return r.read()
}

func errorCode(m map[string]any) float64 {
	e, _ := m["error"].(map[string]any)
	code, _ := e["code"].(float64)
	return code
}

// A mute client takes nothing that is written to it.
type mute struct {
	io.Reader
	writing chan struct{} // receives when something is written
	closed  chan struct{}
	once    sync.Once
}

func (m *mute) Write([]byte) (int, error) {
	m.writing <- struct{}{}
	<-m.closed
	return 0, io.ErrClosedPipe
}

func (m *mute) Close() error {
	m.once.Do(func() { close(m.closed) })
	return nil
}

// A client that does not take the answer to a faulty request holds up nobody but itself:
// the wait for its calls has an end.
func TestDrainDoesNotWaitForReaders(t *testing.T) {
	begun := make(chan struct{})
	a := &agent{call: func(ctx context.Context, _ rpc.Request) (*rpc.Result, error) {
		close(begun)
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	a.offer(peer(t, "librarian", search)...)
	b := open(t, a, mcpbridge.Options{})
	reader, writer := io.Pipe()
	m := &mute{Reader: reader, writing: make(chan struct{}, 16), closed: make(chan struct{})}
	served := make(chan error, 1)
	go func() { served <- b.ServeStream(context.WithoutCancel(t.Context()), desk, m) }()
	line := request(`1`, "tools/call", `"name":"librarian__search","arguments":{"title":"Dune"}`, "{}") + "\n"
	if _, err := io.WriteString(writer, line); err != nil {
		t.Fatal(err)
	}
	<-begun
	if _, err := io.WriteString(writer, line); err != nil { // the id is in use
		t.Fatal(err)
	}
	<-m.writing
	over, cancel := context.WithCancel(t.Context())
	cancel()
	drained := make(chan struct{})
	go func() {
		b.Drain(over)
		close(drained)
	}()
	select {
	case <-drained:
	case <-time.After(30 * time.Second):
		t.Error("drain waits for a client that does not read")
	}
	_ = m.Close()
	_ = writer.Close()
	<-served
	<-drained
}

// Lines that are no messages are answered, and the session goes on.
func TestStreamSurvivesWhatIsNoMessage(t *testing.T) {
	b := open(t, &agent{}, mcpbridge.Options{MaxFrameBytes: 1 << 10})
	r := dial(t, b, desk)
	for _, c := range []struct {
		line string
		code float64
	}{
		{`{"jsonrpc":`, -32700},
		{`nonsense`, -32700},
		{`[]`, -32600},
		{`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, -32600},
		{`{"jsonrpc":"1.0","id":1,"method":"ping"}`, -32600},
		{`{"jsonrpc":"2.0","id":{},"method":"ping"}`, -32600},
		{`7`, -32600},
		{`{"x":"` + strings.Repeat("x", 1<<20) + `"}`, -32600},
	} {
		r.write(c.line)
		if got := r.read(); errorCode(got) != c.code || got["id"] != nil {
			t.Errorf("%.40s: %v", c.line, got)
		}
	}
	// The line is not kept, so that it is not even looked at.
	r.write(request("1", "tools/list", `"x":"`+strings.Repeat("x", 1<<20)+`"`, "{}"))
	if got := r.read(); errorCode(got) != -32600 || got["id"] != nil || !strings.Contains(fmt.Sprint(got["error"]), "too long") {
		t.Errorf("a long request: %v", got)
	}
	r.write("\r") // an empty line is nothing
	if got := r.ask("1", "tools/list", "", "{}"); got["result"] == nil {
		t.Errorf("the session is lost: %v", got)
	}
	b.LimitFrames(1 << 11) // as after a reload
	if got := r.ask("2", "tools/list", `"x":"`+strings.Repeat("x", 1<<10)+`"`, "{}"); got["result"] == nil {
		t.Errorf("under the new bound: %v", got)
	}
	_ = r.conn.Close()
	if err := <-r.served; err != nil {
		t.Error(err)
	}
}

// A repeated id leaves the first request alone, and floods are refused one by one.
func TestStreamBoundsRequests(t *testing.T) {
	begun, free := make(chan struct{}, 1), make(chan struct{})
	a := &agent{call: func(ctx context.Context, _ rpc.Request) (*rpc.Result, error) {
		begun <- struct{}{}
		select {
		case <-free:
		case <-ctx.Done():
		}
		return &rpc.Result{Status: rpc.StatusOK, Response: json.RawMessage(`{}`)}, nil
	}}
	a.offer(peer(t, "librarian", search)...)
	r := dial(t, open(t, a, mcpbridge.Options{MaxPending: 2, MaxSessionPending: 1}), desk)
	const params = `"name":"librarian__search","arguments":{"title":"Dune"}`
	r.write(request(`1`, "tools/call", params, "{}"))
	<-begun
	if got := r.ask(`1`, "tools/call", params, "{}"); errorCode(got) != -32600 || got["id"] != nil {
		t.Errorf("an id that is in use: %v", got)
	}
	got := r.ask(`2`, "tools/call", params, "{}")
	if result, _ := got["result"].(map[string]any); result["isError"] != true || !strings.Contains(fmt.Sprint(result["content"]), "EAGENTRPC_BUSY") {
		t.Errorf("a call too many: %v", got)
	}
	close(free)
	if got := r.read(); got["id"] != 1.0 || got["result"] == nil {
		t.Errorf("the first call: %v", got)
	}
}

// The end of the stream ends the calls, and ServeStream waits for them.
func TestStreamEnds(t *testing.T) {
	for name, end := range map[string]func(r *raw, b *mcpbridge.Bridge, cancel func()){
		"by its client": func(r *raw, _ *mcpbridge.Bridge, _ func()) { _ = r.conn.Close() },
		"by its bridge": func(r *raw, b *mcpbridge.Bridge, _ func()) {
			if err := b.Close(context.Background()); err != nil {
				r.t.Error(err)
			}
		},
		"by its context": func(_ *raw, _ *mcpbridge.Bridge, cancel func()) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			begun, ended := make(chan struct{}), make(chan error, 1)
			a := &agent{call: func(ctx context.Context, _ rpc.Request) (*rpc.Result, error) {
				close(begun)
				<-ctx.Done()
				ended <- ctx.Err()
				e := rpc.NewError(rpc.CodeCancelled, ctx.Err(), "cancelled")
				return &rpc.Result{Status: rpc.StatusAbandoned, Error: e}, e
			}}
			a.offer(peer(t, "librarian", search)...)
			b := open(t, a, mcpbridge.Options{})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ours, theirs := net.Pipe()
			r := &raw{t: t, conn: theirs, lines: bufio.NewScanner(theirs), served: make(chan error, 1)}
			go func() { r.served <- b.ServeStream(ctx, desk, ours) }()
			r.write(request(`1`, "tools/call", `"name":"librarian__search","arguments":{"title":"Dune"}`, "{}"))
			<-begun
			end(r, b, cancel)
			if err := <-r.served; err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			select {
			case <-ended:
			default:
				t.Error("the call went on")
			}
		})
	}
}
