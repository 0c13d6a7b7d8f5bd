package sdk_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentd/agentd/skill/sdk"
)

type greeting struct {
	Name  string `json:"name"`
	Times int    `json:"times"`
}

type greeted struct {
	Text string `json:"text"`
}

func greet(_ context.Context, in greeting) (greeted, error) {
	return greeted{Text: strings.Repeat("<"+in.Name+">", max(in.Times, 1))}, nil
}

// TestMain lets the test binary stand in for a skill: with childEnv set it is one.
func TestMain(m *testing.M) {
	switch name := os.Getenv(childEnv); name {
	case "":
		os.Exit(m.Run())
	case "greet":
		sdk.Main(greet)
	case "chatty":
		sdk.Main(func(ctx context.Context, in greeting) (greeted, error) {
			fmt.Println("a forgotten print")
			return greet(ctx, in)
		})
	case "shapes":
		serveShapes()
	case "wait":
		sdk.Main(func(ctx context.Context, _ greeting) (greeted, error) {
			fmt.Fprintln(os.Stderr, "ready")
			<-ctx.Done()
			return greeted{}, ctx.Err()
		})
	case "deaf":
		sdk.Main(func(ctx context.Context, _ greeting) (greeted, error) {
			fmt.Fprintln(os.Stderr, "ready")
			<-ctx.Done()
			fmt.Fprintln(os.Stderr, "first signal")
			select {}
		})
	case "nested":
		sdk.Main(func(ctx context.Context, in greeting) (greeted, error) {
			result, err := sdk.RequestAgent(ctx, sdk.Request{To: "agent://greeter", Capability: "greet", Payload: in})
			if err != nil {
				return greeted{}, err
			}
			var out greeted
			return out, result.Decode(&out)
		})
	default:
		fmt.Fprintln(os.Stderr, "no such skill:", name)
		os.Exit(2)
	}
}

const childEnv = "SDK_TEST_SKILL"

// child returns the command that runs the named skill of TestMain.
func child(t *testing.T, name, stdin string, env ...string) (cmd *exec.Cmd, stdout, stderr *bytes.Buffer) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	stdout, stderr = new(bytes.Buffer), new(bytes.Buffer)
	cmd = exec.CommandContext(ctx, exe)
	// A program built with the race detector would linger for a second.
	cmd.Env = append(append(os.Environ(), childEnv+"="+name, "GORACE=atexit_sleep_ms=0"), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), stdout, stderr
	return cmd, stdout, stderr
}

// run calls sdk.Run with fn and an environment of vars.
func run[In, Out any](t *testing.T, stdin string, vars map[string]string, fn func(context.Context, In) (Out, error)) (code int, stdout, stderr string) {
	t.Helper()
	var out, log bytes.Buffer
	code = sdk.Run(t.Context(), strings.NewReader(stdin), &out, &log, func(name string) string { return vars[name] }, fn)
	return code, out.String(), log.String()
}

func TestRunPayload(t *testing.T) {
	tests := []struct {
		name, stdin string
		code        int
		stdout      string
	}{
		{"result", `{"name":"Ada","times":2}`, 0, `{"text":"<Ada><Ada>"}`},
		{"empty stdin", ``, 0, `{"text":"<>"}`},
		{"null", ` null `, 0, `{"text":"<>"}`},
		{"white space around", "\n {\"name\":\"Ada\"} \n", 0, `{"text":"<Ada>"}`},
		{"unknown member", `{"nmae":"Ada"}`, 1,
			`{"error":{"message":"the payload does not fit the skill: unknown member \"nmae\"","retryable":false}}`},
		{"wrong type", `{"name":"Ada","times":"twice"}`, 1,
			`{"error":{"message":"the payload does not fit the skill: a string is not allowed at /times","retryable":false}}`},
		{"no value in the message", `{"times":1.5}`, 1,
			`{"error":{"message":"the payload does not fit the skill: a number is not allowed at /times","retryable":false}}`},
		{"not JSON", `{name}`, 1,
			`{"error":{"message":"the payload does not fit the skill: invalid JSON at byte 2","retryable":false}}`},
		{"cut", `{"name":`, 1,
			`{"error":{"message":"the payload does not fit the skill: the JSON ends too early","retryable":false}}`},
		{"two values", `{} {}`, 1,
			`{"error":{"message":"the payload does not fit the skill: more than one JSON value","retryable":false}}`},
		{"garbage after", `{} ]`, 1,
			`{"error":{"message":"the payload does not fit the skill: more than one JSON value","retryable":false}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			code, stdout, stderr := run(t, tt.stdin, nil, greet)
			if code != tt.code || strings.TrimSuffix(stdout, "\n") != tt.stdout {
				t.Errorf("got exit %d, stdout %s\nwant exit %d, stdout %s", code, stdout, tt.code, tt.stdout)
			}
			if (stderr == "") != (tt.code == 0) {
				t.Errorf("stderr = %q with exit %d", stderr, code)
			}
		})
	}
}

func TestRunErrors(t *testing.T) {
	secret := errors.New("open /etc/private: permission denied")
	nested := func(retryable bool) error {
		return &sdk.CallError{To: "agent://b", Capability: "c", Result: &sdk.Result{
			Status: sdk.StatusError, Error: &sdk.ResultError{Code: "EAGENTRPC_BUSY", Message: "far detail", Retryable: retryable}}}
	}
	tests := []struct {
		name   string
		err    error
		code   int
		stdout string
		log    string
	}{
		{"internal", secret, 1, "", "permission denied"},
		{"public", sdk.Fail("no such ticket"), 1,
			`{"error":{"message":"no such ticket","retryable":false}}`, "no such ticket"},
		{"public format", sdk.Failf("no ticket %d", 7), 1,
			`{"error":{"message":"no ticket 7","retryable":false}}`, "no ticket 7"},
		{"public, wrapped", fmt.Errorf("look up: %w", sdk.Fail("no such ticket")), 1,
			`{"error":{"message":"no such ticket","retryable":false}}`, "look up: no such ticket"},
		{"public with private cause", &sdk.PublicError{Message: "try later", Retryable: true, Cause: secret}, 75,
			`{"error":{"message":"try later","retryable":true}}`, "permission denied"},
		{"cancelled", fmt.Errorf("wait: %w", context.Canceled), 75, "", "wait: context canceled"},
		{"deadline", context.DeadlineExceeded, 75, "", "deadline exceeded"},
		{"nested call, retryable", nested(true), 75, "", "agent://b/c: error (EAGENTRPC_BUSY: far detail)"},
		{"nested call, final", nested(false), 1, "", "far detail"},
		{"the author's word counts", &sdk.PublicError{Message: "gone", Cause: nested(true)}, 1,
			`{"error":{"message":"gone","retryable":false}}`, "far detail"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			code, stdout, stderr := run(t, `{}`, nil, func(context.Context, greeting) (greeted, error) {
				return greeted{Text: "must not appear"}, tt.err
			})
			if code != tt.code || strings.TrimSuffix(stdout, "\n") != tt.stdout {
				t.Errorf("got exit %d, stdout %q\nwant exit %d, stdout %q", code, stdout, tt.code, tt.stdout)
			}
			if !strings.Contains(stderr, tt.log) {
				t.Errorf("stderr = %q, want it to hold %q", stderr, tt.log)
			}
		})
	}
}

func TestRunUnencodableResult(t *testing.T) {
	code, stdout, stderr := run(t, `{}`, nil, func(context.Context, greeting) (any, error) {
		return map[string]any{"fine": 1, "broken": func() {}}, nil
	})
	if code != sdk.ExitFailed || stdout != "" || !strings.Contains(stderr, "encode the result") {
		t.Errorf("got exit %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

type brokenPipe struct{}

func (brokenPipe) Read([]byte) (int, error)  { return 0, io.ErrClosedPipe }
func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestRunBrokenStreams(t *testing.T) {
	var log bytes.Buffer
	none := func(string) string { return "" }
	if code := sdk.Run(t.Context(), brokenPipe{}, io.Discard, &log, none, greet); code != sdk.ExitFailed {
		t.Errorf("unreadable stdin: exit %d", code)
	}
	if code := sdk.Run(t.Context(), strings.NewReader(`{}`), brokenPipe{}, &log, none, greet); code != sdk.ExitFailed {
		t.Errorf("unwritable stdout: exit %d", code)
	}
	if got := log.String(); strings.Count(got, "skill failed:") != 2 {
		t.Errorf("stderr = %q, want both failures", got)
	}
}

func TestRunEnvironment(t *testing.T) {
	deadline := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	vars := map[string]string{
		sdk.EnvURL: "http://127.0.0.1:1", sdk.EnvSocket: "/run/a.sock", sdk.EnvCall: "token", sdk.EnvFleetRoot: "/fleet", sdk.EnvAgent: "agent://a",
		sdk.EnvCapability: "greet", sdk.EnvDeadline: strconv.FormatInt(deadline.UnixMilli(), 10),
		sdk.EnvCaller: "agent://desk", sdk.EnvCallerProven: "true", sdk.EnvMessageID: "m", sdk.EnvCorrelationID: "c", sdk.EnvSessionID: "s", sdk.EnvTenantID: "t",
		sdk.EnvIdempotencyKey: "k", sdk.EnvTraceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", sdk.EnvTracestate: "v=1", sdk.EnvHops: "2",
	}
	var got sdk.Environment
	var until time.Time
	code, _, stderr := run(t, `{}`, vars, func(ctx context.Context, in greeting) (greeted, error) {
		got = sdk.EnvironmentFrom(ctx)
		until, _ = ctx.Deadline()
		return greet(ctx, in)
	})
	want := sdk.Environment{
		URL: "http://127.0.0.1:1", Socket: "/run/a.sock", Call: "token", Deadline: deadline, FleetRoot: "/fleet", Agent: "agent://a", Capability: "greet",
		Caller: "agent://desk", CallerProven: true, MessageID: "m", CorrelationID: "c", SessionID: "s", TenantID: "t", IdempotencyKey: "k",
		Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", Tracestate: "v=1", Hops: 2,
	}
	if code != 0 || got != want || !until.Equal(deadline) {
		t.Errorf("exit %d (%s), environment %+v, deadline %s\nwant %+v", code, stderr, got, until, want)
	}
}

func TestRunRefusesBadNumbers(t *testing.T) {
	for i, text := range []string{"soon", "-5", "0", "1e12", "99999999999999999999"} {
		name := []string{sdk.EnvDeadline, sdk.EnvHops}[i%2]
		called := false
		code, stdout, stderr := run(t, `{}`, map[string]string{name: text}, func(context.Context, greeting) (greeted, error) {
			called = true
			return greeted{}, nil
		})
		if code != sdk.ExitFailed || called || stdout != "" || !strings.Contains(stderr, name) {
			t.Errorf("%q: exit %d, called %t, stdout %q, stderr %q", text, code, called, stdout, stderr)
		}
	}
}

func TestEnvironmentFromPlainContext(t *testing.T) {
	if env := sdk.EnvironmentFrom(t.Context()); env != (sdk.Environment{}) {
		t.Errorf("got %+v, want the zero Environment", env)
	}
}

func TestMainProcess(t *testing.T) {
	t.Run("result", func(t *testing.T) {
		cmd, stdout, stderr := child(t, "greet", `{"name":"Ada"}`)
		if err := cmd.Run(); err != nil || stdout.String() != "{\"text\":\"<Ada>\"}\n" || stderr.Len() != 0 {
			t.Errorf("%v, stdout %q, stderr %q", err, stdout, stderr)
		}
	})
	t.Run("a print lands in the log", func(t *testing.T) {
		cmd, stdout, stderr := child(t, "chatty", `{"name":"Ada"}`)
		if err := cmd.Run(); err != nil || stdout.String() != "{\"text\":\"<Ada>\"}\n" || stderr.String() != "a forgotten print\n" {
			t.Errorf("%v, stdout %q, stderr %q", err, stdout, stderr)
		}
	})
	t.Run("deadline in the past", func(t *testing.T) {
		cmd, stdout, stderr := child(t, "wait", `{}`, sdk.EnvDeadline+"=1")
		if code := exitCode(t, cmd.Run()); code != sdk.ExitRetryable || stdout.Len() != 0 {
			t.Errorf("exit %d, stdout %q, stderr %q", code, stdout, stderr)
		}
	})
}

func TestMainSignals(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(sig.String(), func(t *testing.T) {
			cmd, lines := startChild(t, "wait")
			expectLine(t, lines, "ready")
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			expectLine(t, lines, "skill failed: context canceled")
			if code := exitCode(t, cmd.Wait()); code != sdk.ExitRetryable {
				t.Errorf("exit %d, want %d", code, sdk.ExitRetryable)
			}
		})
	}
	t.Run("a second signal ends a deaf skill", func(t *testing.T) {
		cmd, lines := startChild(t, "deaf")
		expectLine(t, lines, "ready")
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		expectLine(t, lines, "first signal")
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		// The handler is removed just after the context ends; repeat until it is.
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case err := <-ended:
				var exit *exec.ExitError
				if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
					t.Errorf("ended with %v, want death by SIGTERM", err)
				}
				return
			case <-tick.C:
				_ = cmd.Process.Signal(syscall.SIGTERM)
			}
		}
	})
}

// startChild starts the named skill and returns its log.
func startChild(t *testing.T, name string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd, _, _ := child(t, name, `{}`)
	cmd.Stderr = nil
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(log)
}

func expectLine(t *testing.T, lines *bufio.Scanner, want string) {
	t.Helper()
	if !lines.Scan() || lines.Text() != want {
		t.Fatalf("the skill logged %q (%v), want %q", lines.Text(), lines.Err(), want)
	}
}

func exitCode(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case !errors.As(err, &exit):
		t.Fatal(err)
	}
	return exit.ExitCode()
}

// FuzzRunPayload: whatever the payload is, stdout holds exactly one JSON value,
// and it is a failure exactly when the exit code says so.
func FuzzRunPayload(f *testing.F) {
	for _, seed := range []string{``, `null`, `{"name":"a"}`, `{"name":1}`, `[1]`, `{} {}`, `{"name":"\ud800"}`, "\xff", `{"a":`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		var stdout, stderr bytes.Buffer
		code := sdk.Run(t.Context(), bytes.NewReader(payload), &stdout, &stderr, func(string) string { return "" },
			func(context.Context, greeting) (greeted, error) { return greeted{Text: "ok"}, nil })
		var body struct {
			Text  string
			Error struct{ Message string }
		}
		if err := json.Unmarshal(stdout.Bytes(), &body); err != nil {
			t.Fatalf("stdout %q: %v", &stdout, err)
		}
		if ok := body.Text == "ok"; ok != (code == 0) || ok == (body.Error.Message != "") {
			t.Fatalf("exit %d with stdout %q", code, &stdout)
		}
	})
}
