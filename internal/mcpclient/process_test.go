package mcpclient_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/internal/logtest"
	"github.com/agentd/agentd/internal/mcpclient"
)

func call(t *testing.T, c *mcpclient.Client, tool, args string) (*mcpclient.Result, *mcpclient.Error) {
	t.Helper()
	r, err := c.Call(t.Context(), mcpclient.Request{Tool: tool, Arguments: json.RawMessage(args)})
	var e *mcpclient.Error
	if err != nil && !errors.As(err, &e) {
		t.Fatalf("%v is no error of the package", err)
	}
	return r, e
}

// mustCall calls until the server is there again.
func mustCall(t *testing.T, c *mcpclient.Client, tool, args string) *mcpclient.Result {
	t.Helper()
	for {
		r, e := call(t, c, tool, args)
		switch {
		case e == nil:
			return r
		case e.Code != mcpclient.Away && e.Code != mcpclient.Broken:
			t.Fatalf("%s: %v", e.Code, e)
		case t.Context().Err() != nil:
			t.Fatal(t.Context().Err())
		}
	}
}

// Each era is found, also with servers that hang or exit on the question for the other.
func TestEras(t *testing.T) {
	for name, era := range map[string]string{
		"library": mcpclient.Era2026, "old": mcpclient.Era2025, "mute": mcpclient.Era2025, "dies": mcpclient.Era2025, "greets": mcpclient.Era2026,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := command(t, name)
			if name == "mute" {
				o.Limits.ProbeTimeout = 200 * time.Millisecond
			}
			l, err := mcpclient.List(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if l.Era != era || l.Implementation == "" || len(l.Tools) == 0 {
				t.Errorf("the listing is %+v", l)
			}
		})
	}
}

// Results are the bytes of the server: no number is rounded, and none is written otherwise.
func TestExact(t *testing.T) {
	for _, name := range []string{"library", "old"} {
		o := command(t, name)
		pin(t, &o)
		c := start(t, o)
		if name == "library" {
			const args = `{"n":9007199254740993,"f":1.0,"e":1E400}`
			r, e := call(t, c, "echo", args)
			if e != nil || string(r.Structured) != args || len(r.Content) != 1 {
				t.Errorf("%+v, %v", r, e)
			}
			continue
		}
		r, e := call(t, c, "t", `{}`)
		if e != nil || !strings.HasPrefix(string(r.Structured), `{"n":9007199254740993,"f":1.0,"id":`) {
			t.Errorf("%+v, %v", r, e)
		}
		if !strings.Contains(string(o.Pinned[0].InputSchema), "9007199254740993") {
			t.Errorf("the contract is %s", o.Pinned[0].InputSchema)
		}
	}
}

// Whatever a server answers, each call has one outcome, and the next one works.
func TestOneOutcome(t *testing.T) {
	o := command(t, "answers")
	pin(t, &o)
	c := start(t, o)
	for _, row := range []struct {
		args string
		code mcpclient.Code
		sent bool
	}{
		{"unknown", "", false},
		{"twice", "", false},
		{"garbage", "", false},
		{"wrong", mcpclient.BadAnswer, true},
		{"double", mcpclient.BadAnswer, true},
		{"error", mcpclient.Refused, true},
		{"large", mcpclient.Broken, true},
	} {
		r, e := call(t, c, "t", fmt.Sprintf(`{"do":%q}`, row.args))
		switch {
		case row.code == "" && (e != nil || r == nil):
			t.Errorf("%s: %v", row.args, e)
		case row.code != "" && (e == nil || e.Code != row.code || e.Sent != row.sent || e.Retryable):
			t.Errorf("%s: %+v", row.args, e)
		}
		mustCall(t, c, "t", `{}`)
	}
}

// A server that exits in the middle of a hundred calls: those that it has answered have
// their results, the others one error each, and it is started again.
func TestExitWithinCalls(t *testing.T) {
	o := command(t, "answers")
	pin(t, &o)
	c := start(t, o)
	mustCall(t, c, "t", `{}`)
	var mu sync.Mutex
	outcomes := map[mcpclient.Code]int{}
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			_, e := call(t, c, "t", `{"do":"hundred"}`)
			mu.Lock()
			defer mu.Unlock()
			if e == nil {
				outcomes[""]++
			} else if outcomes[e.Code]++; !e.Sent || e.Retryable {
				t.Errorf("%+v", e)
			}
		})
	}
	all.Wait()
	if outcomes[""] == 0 || outcomes[mcpclient.Broken] < 50 || outcomes[""]+outcomes[mcpclient.Broken] != 100 {
		t.Errorf("the outcomes are %v", outcomes)
	}
	mustCall(t, c, "t", `{}`)
}

// A call that broke may be repeated where the contract says so.
func TestRetryable(t *testing.T) {
	o := command(t, "library")
	pin(t, &o)
	c := start(t, o)
	for tool, retryable := range map[string]bool{"exit": false, "exit-twice": true} {
		mustCall(t, c, "echo", `{}`)
		if _, e := call(t, c, tool, `{}`); e == nil || e.Code != mcpclient.Broken || !e.Sent || e.Retryable != retryable {
			t.Errorf("%s: %+v", tool, e)
		}
	}
}

// A server that is away says why, and is not waited for.
func TestAway(t *testing.T) {
	o := command(t, "fails")
	o.Pinned = []mcpclient.Contract{{Name: "t", InputSchema: json.RawMessage(objectSchema)}}
	o.Limits.MinBackoff, o.Limits.MaxBackoff = time.Hour, time.Hour
	log := &logtest.Lines{}
	o.Logger = log.Logger()
	c := start(t, o)
	_, e := call(t, c, "t", `{}`)
	if e == nil || e.Code != mcpclient.Away || e.Sent || !e.Retryable {
		t.Fatalf("%+v", e)
	}
	if cause := c.State().Cause; !strings.Contains(cause, "exit status 7") || !strings.Contains(cause, "no database") {
		t.Errorf("the cause is %q", cause)
	}
	if n := log.Count("an MCP server is away"); n != 1 {
		t.Errorf("%d lines", n)
	}
}

// Calls do not wait for a further attempt to reach a server that was not reached.
func TestAwayDuringAnAttempt(t *testing.T) {
	o := command(t, "library")
	pin(t, &o)
	env, attempts := o.Command.Env, 0
	trying, hold := make(chan struct{}), make(chan struct{})
	o.Command.Env = func() ([]string, error) {
		switch attempts++; attempts {
		case 1:
			return nil, errors.New("not yet")
		case 2:
			close(trying)
			<-hold
		}
		return env()
	}
	c := start(t, o)
	<-trying
	if _, e := call(t, c, "echo", `{}`); e == nil || e.Code != mcpclient.Away || !e.Retryable {
		t.Errorf("%+v", e)
	}
	close(hold)
	mustCall(t, c, "echo", `{}`)
}

// What a start needs may be missing, and come later: no restart of anything is needed.
func TestSecretComesLater(t *testing.T) {
	o := command(t, "library")
	pin(t, &o)
	env := o.Command.Env
	var there atomic.Bool
	o.Command.Env = func() ([]string, error) {
		if !there.Load() {
			return nil, errors.New("environment variable TOKEN is not set")
		}
		return env()
	}
	c := start(t, o)
	if _, e := call(t, c, "echo", `{}`); e == nil || e.Code != mcpclient.Away || strings.Contains(e.Message, "TOKEN") {
		t.Errorf("%+v", e)
	}
	waitFor(t, func() bool { return strings.Contains(c.State().Cause, "TOKEN is not set") })
	there.Store(true)
	mustCall(t, c, "echo", `{}`)
	o.Command.Args = []string{"/no/such/program"}
	if _, err := mcpclient.List(t.Context(), o); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// The server sees no variable of this process but a few, and those that are named.
func TestEnvironment(t *testing.T) {
	t.Setenv("SECRET_TOKEN", "hunter2")
	o := command(t, "library")
	pin(t, &o)
	r, e := call(t, start(t, o), "env", `{}`)
	if e != nil {
		t.Fatal(e)
	}
	var env []string
	if err := json.Unmarshal(r.Structured, &env); err != nil {
		t.Fatal(err)
	}
	for _, kv := range env {
		switch name, _, _ := strings.Cut(kv, "="); name {
		case "PATH", "LANG", "HOME", "TMPDIR", "MCP_TEST_SERVER", "GORACE":
		default:
			t.Errorf("the server sees %s", name)
		}
	}
}

// A server is offered nothing, and gets nothing that it asks for.
func TestRequestsOfServers(t *testing.T) {
	o := command(t, "library")
	o.Era = mcpclient.Era2025
	pin(t, &o)
	log := &logtest.Lines{}
	o.Logger = log.Logger()
	r, e := call(t, start(t, o), "asks", `{}`)
	if e != nil || r.Content[0].(*mcp.TextContent).Text != "true true true" {
		t.Errorf("%+v, %v", r, e)
	}
	o.Era = mcpclient.Era2026
	if _, e := call(t, start(t, o), "needs", `{}`); e == nil || e.Code != mcpclient.NeedsInput {
		t.Errorf("%+v", e)
	}
	o.Roots, o.Era = []string{"file:///srv"}, mcpclient.Era2025
	if r, e := call(t, start(t, o), "asks", `{}`); e != nil || r.Content[0].(*mcp.TextContent).Text != "true false true" {
		t.Errorf("%+v, %v", r, e)
	}
	if log.Count("asks for what it may not have") == 0 {
		t.Error("the log does not say it")
	}
}

// Floods end the connection, and not this process.
func TestFloods(t *testing.T) {
	o := command(t, "questions")
	pin(t, &o)
	c := start(t, o)
	if _, e := call(t, c, "t", `{}`); e == nil || e.Code != mcpclient.Broken {
		t.Errorf("%+v", e)
	}
	o = command(t, "nonsense")
	if _, err := mcpclient.List(t.Context(), o); err == nil || !strings.Contains(err.Error(), "is not the protocol") {
		t.Errorf("%v", err)
	}
	o = command(t, "chatter")
	log := &logtest.Lines{}
	o.Logger = log.Logger()
	if _, err := mcpclient.List(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if n := log.Count("wrote to standard error"); n != 100 {
		t.Errorf("%d lines are in the log", n)
	}
	if log.Count("more to standard error than the log takes") != 1 {
		t.Error("the log does not say what is left out")
	}
}

// A server that never answers is given up in both eras.
func TestSilent(t *testing.T) {
	o := command(t, "silent")
	o.Limits.StartTimeout, o.Limits.ProbeTimeout = 100*time.Millisecond, 100*time.Millisecond
	if _, err := mcpclient.List(t.Context(), o); err == nil || !strings.Contains(err.Error(), "did not answer in time") {
		t.Errorf("%v", err)
	}
}

// Close ends a call that runs, and a program that does not end by itself.
func TestClose(t *testing.T) {
	o := command(t, "library")
	pin(t, &o)
	c := start(t, o)
	mustCall(t, c, "echo", `{}`)
	done := make(chan *mcpclient.Error, 1)
	go func() {
		_, e := call(t, c, "hang", `{}`)
		done <- e
	}()
	waitFor(t, func() bool { return c.Pending() == 1 })
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if e := <-done; e == nil || e.Code != mcpclient.Broken && e.Code != mcpclient.Away {
		t.Errorf("%+v", e)
	}
	if _, e := call(t, c, "echo", `{}`); e == nil || e.Code != mcpclient.Away {
		t.Errorf("%+v", e)
	}
	for _, program := range []string{"stubborn", "deserter"} {
		if _, err := mcpclient.List(t.Context(), command(t, program)); err != nil {
			t.Fatal(err)
		}
	}
}

// Calls are bounded in number, in a minute, and in time.
func TestLimits(t *testing.T) {
	o := command(t, "library")
	pin(t, &o)
	o.Limits.Pending = 1
	c := start(t, o)
	mustCall(t, c, "echo", `{}`)
	done := make(chan *mcpclient.Error, 1)
	go func() {
		_, err := c.Call(t.Context(), mcpclient.Request{Tool: "hang", Timeout: 300 * time.Millisecond})
		done <- err.(*mcpclient.Error)
	}()
	waitFor(t, func() bool { return c.Pending() == 1 })
	if _, e := call(t, c, "echo", `{}`); e == nil || e.Code != mcpclient.Busy || !e.Retryable || e.Sent {
		t.Errorf("%+v", e)
	}
	if e := <-done; e.Code != mcpclient.TimedOut || e.Retryable || !e.Sent {
		t.Errorf("%+v", e)
	}
	if _, e := call(t, c, "nobody", `{}`); e == nil || e.Code != mcpclient.NoTool {
		t.Errorf("%+v", e)
	}
	o.Limits.PerMinute = 2
	c = start(t, o)
	for range 2 {
		mustCall(t, c, "echo", `{}`)
	}
	if _, e := call(t, c, "echo", `{}`); e == nil || e.Code != mcpclient.Busy || !e.Retryable {
		t.Errorf("%+v", e)
	}
}

func TestProgressAndFailures(t *testing.T) {
	o := command(t, "library")
	pin(t, &o)
	c := start(t, o)
	got := make(chan mcpclient.Progress, 8)
	_, err := c.Call(t.Context(), mcpclient.Request{Tool: "progress", Progress: func(p mcpclient.Progress) { got <- p }})
	if err != nil {
		t.Fatal(err)
	}
	select { // the library may hand it over after the result
	case p := <-got:
		if p != (mcpclient.Progress{Done: 1, Total: 2, Message: "half"}) {
			t.Errorf("%+v", p)
		}
	default:
	}
	r, e := call(t, c, "fails", `{}`)
	if e != nil || !r.IsError || r.Content[0].(*mcp.TextContent).Text != "no such city" {
		t.Errorf("%+v, %v", r, e)
	}
}

// Close does not wait for what is being found out about a tool.
func TestCloseEndsAJudgement(t *testing.T) {
	o := command(t, "library")
	pin(t, &o)
	log, judging := &logtest.Lines{}, make(chan struct{}, 1)
	o.Logger = log.Logger()
	o.Judge = func(ctx context.Context, _ mcpclient.Contract, _ *mcpclient.Contract) ([]mcpclient.Change, bool) {
		select {
		case judging <- struct{}{}:
		default:
		}
		<-ctx.Done()
		return []mcpclient.Change{{Part: "inputSchema", Note: "it was not decided"}}, true
	}
	c := start(t, o)
	<-judging
	if err := c.Close(); err != nil || log.Count("is refused") != 0 {
		t.Errorf("%v, %s", err, log.String())
	}
}
