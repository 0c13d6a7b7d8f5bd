package skill_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/skill"
	"github.com/agentd/agentd/skill/sandbox"
)

// The test binary is also the programs that the tests run.
func TestMain(m *testing.M) {
	if sandbox.IsHelper(os.Args) {
		os.Exit(sandbox.Main(os.Args))
	}
	if program := os.Getenv("SKILL_TEST_PROGRAM"); program != "" {
		programs()[program]()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func programs() map[string]func() {
	return map[string]func(){
		"echo": func() {
			_, _ = io.Copy(os.Stdout, os.Stdin)
			fmt.Println()
		},
		"env": func() {
			env := map[string]string{}
			for _, kv := range os.Environ() {
				name, value, _ := strings.Cut(kv, "=")
				env[name] = value
			}
			_ = json.NewEncoder(os.Stdout).Encode(env)
		},
		"garbage":  func() { fmt.Print(`{"verdict": `) },
		"two":      func() { fmt.Print(`{} {}`) },
		"silent":   func() {},
		"exit3":    func() { fmt.Fprintln(os.Stderr, "db password is hunter2"); os.Exit(3) },
		"tempfail": func() { os.Exit(75) },
		"says":     func() { fmt.Print(`{"error":{"message":"no such pull request","retryable":true}}`); os.Exit(1) },
		"killed":   func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL); sleepForever() },
		"flood": func() {
			line := strings.Repeat("x", 1<<16)
			for { // until somebody stops it
				if _, err := io.WriteString(os.Stdout, line); err != nil {
					os.Exit(1)
				}
			}
		},
		"chatter": func() {
			for range 4096 {
				fmt.Fprintln(os.Stderr, strings.Repeat("y", 4096))
			}
			fmt.Print(`"done"`)
		},
		"hang": func() { fmt.Fprintln(os.Stderr, "started"); sleepForever() },
		"stubborn": func() {
			signal.Ignore(syscall.SIGTERM)
			fmt.Fprintln(os.Stderr, "started")
			sleepForever()
		},
		"clean": func() {
			term := make(chan os.Signal, 1)
			signal.Notify(term, syscall.SIGTERM)
			fmt.Fprintln(os.Stderr, "started")
			<-term
			fmt.Fprintln(os.Stderr, "cleaned up")
			os.Exit(1)
		},
		"child": func() { // leaves a process behind that holds its pipes
			pid, err := syscall.ForkExec("/proc/self/exe", []string{"x"}, &syscall.ProcAttr{
				Env: []string{"SKILL_TEST_PROGRAM=hang"}, Files: []uintptr{0, 1, 2},
			})
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			fmt.Print(pid)
		},
	}
}

// sleepForever is more than an empty select, which the runtime takes for a deadlock.
func sleepForever() { time.Sleep(time.Hour) }

// lines collects a program's standard error.
type lines struct {
	mu    sync.Mutex
	text  strings.Builder
	watch map[string]chan struct{}
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	for word, seen := range l.watch {
		if strings.Contains(string(p), word) {
			close(seen)
			delete(l.watch, word)
		}
	}
	return len(p), nil
}

// saw is closed when word has been written.
func (l *lines) saw(word string) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.watch == nil {
		l.watch = map[string]chan struct{}{}
	}
	seen := make(chan struct{})
	l.watch[word] = seen
	return seen
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func program(name string) (*skill.Process, *lines) {
	log := &lines{}
	return &skill.Process{
		Command: []string{os.Args[0]},
		// A program built with the race detector would linger for a second.
		Env:    []string{"SKILL_TEST_PROGRAM=" + name, "GORACE=atexit_sleep_ms=0"},
		Logger: slog.New(slog.NewTextHandler(log, nil)), KillGrace: 10 * time.Second, MaxOutputBytes: 1 << 20,
	}, log
}

func invocation(payload string) *rpc.Invocation {
	return &rpc.Invocation{
		Capability: "review-pr", Payload: json.RawMessage(payload), CorrelationID: "c-1",
		Deadline: time.UnixMilli(1_800_000_000_000),
	}
}

func TestProcessAnswers(t *testing.T) {
	p, _ := program("echo")
	const payload = `{"b":1.0,"a":[1,2]}`
	out, err := p.Handle(t.Context(), invocation(payload))
	if err != nil || string(out) != payload {
		t.Errorf("got %s, %v", out, err)
	}
}

func TestProcessFailures(t *testing.T) {
	for _, test := range []struct {
		program   string
		code      rpc.Code
		says      string
		retryable bool
	}{
		{"garbage", rpc.CodeBadSkillOutput, "the skill's output is not one JSON value", false},
		{"two", rpc.CodeBadSkillOutput, "the skill's output is not one JSON value", false},
		{"silent", rpc.CodeBadSkillOutput, "the skill exited with status 0 and wrote no answer", false},
		{"flood", rpc.CodeBadSkillOutput, "the skill wrote more than 1048576 bytes and was stopped", false},
		{"exit3", 0, "the skill exited with status 3", false},
		{"tempfail", 0, "the skill exited with status 75", true},
		{"says", 0, "no such pull request", true},
		{"killed", 0, "the skill was stopped by a signal (killed)", false},
	} {
		t.Run(test.program, func(t *testing.T) {
			p, log := program(test.program)
			out, err := p.Handle(t.Context(), invocation(`{}`))
			var public *rpc.SkillError
			if !errors.As(err, &public) {
				t.Fatalf("got %s and %v, want a *rpc.SkillError", out, err)
			}
			if public.Message != test.says || public.Code != test.code || public.Retryable != test.retryable || public.Lost != (test.program == "killed") {
				t.Errorf("got %q, code %v, retryable %v, lost %v", public.Message, public.Code, public.Retryable, public.Lost)
			}
			if test.program == "exit3" && (!strings.Contains(log.String(), "hunter2") || !strings.Contains(log.String(), "correlationId=c-1")) {
				t.Errorf("standard error is not in the log: %s", log)
			}
		})
	}
}

func TestProcessThatDoesNotExist(t *testing.T) {
	p := &skill.Process{Command: []string{"/no/such/program"}}
	_, err := p.Handle(t.Context(), invocation(`{}`))
	var public *rpc.SkillError
	if !errors.As(err, &public) || strings.Contains(public.Message, "/no/such") || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, public message %q", err, public.Message)
	}
	if _, err := (&skill.Process{}).Handle(t.Context(), invocation(`{}`)); err == nil {
		t.Error("a process without a command runs")
	}
}

// A call that ends before its program can start has not failed by the program's fault:
// the callee says what ended it.
func TestProcessOfAnEndedCallDoesNotStart(t *testing.T) {
	ended := errors.New("ended")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(ended)
	var public *rpc.SkillError
	_, err := (&skill.Process{Command: []string{"true"}}).Handle(ctx, invocation(`{}`))
	if !errors.Is(err, ended) || errors.As(err, &public) {
		t.Errorf("got %v", err)
	}
}

func TestProcessIsStoppedWithItsCall(t *testing.T) {
	gone := errors.New("caller gone")
	for _, name := range []string{"hang", "clean", "stubborn"} {
		t.Run(name, func(t *testing.T) {
			p, log := program(name)
			if name == "stubborn" {
				p.KillGrace = 50 * time.Millisecond
			}
			started := log.saw("started")
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			done := make(chan error, 1)
			go func() { _, err := p.Handle(ctx, invocation(`{}`)); done <- err }()
			select {
			case <-started:
			case <-time.After(20 * time.Second):
				t.Fatal("the program never started")
			}
			cancel(gone)
			select {
			case err := <-done:
				if !errors.Is(err, gone) {
					t.Errorf("error %v, want the context's cause", err)
				}
			case <-time.After(20 * time.Second):
				t.Fatal("the program outlived its call")
			}
			if name == "clean" && !strings.Contains(log.String(), "cleaned up") {
				t.Errorf("the program had no time to clean up: %s", log)
			}
		})
	}
}

// A program that leaves children behind neither blocks the call nor leaks them.
func TestProcessGroupGoesWithTheProgram(t *testing.T) {
	p, _ := program("child")
	p.KillGrace = 50 * time.Millisecond
	out, err := p.Handle(t.Context(), invocation(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(out))
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); alive(pid); {
		if time.Now().After(deadline) {
			t.Fatalf("process %d is still running", pid)
		}
	}
}

// alive reports whether a process runs; a zombie does not.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

func TestProcessEnvironment(t *testing.T) {
	t.Setenv("SECRET_TOKEN", "hunter2")
	t.Setenv("GOTEST_A", "1")
	t.Setenv("EXACT", "2")
	t.Setenv("EXACT_NOT", "3")
	p, _ := program("env")
	p.InheritEnv = []string{"GOTEST_*", "EXACT"}
	p.Env = append(p.Env, "OWN=4")
	calls := &callsRecorder{}
	p.Calls = calls
	out, err := p.Handle(t.Context(), invocation(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	var env map[string]string
	if err := json.Unmarshal(out, &env); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"SECRET_TOKEN": "", "EXACT_NOT": "", "GOTEST_A": "1", "EXACT": "2", "OWN": "4", "PATH": os.Getenv("PATH"),
		"AGENTD_CALL": "token", "AGENTD_CAPABILITY": "review-pr", "AGENTD_DEADLINE": "1800000000000",
		"AGENTD_CALLER": "", "AGENTD_CORRELATION_ID": "c-1", "AGENTD_HOPS": "1",
	} {
		if env[name] != want {
			t.Errorf("%s is %q, want %q", name, env[name], want)
		}
	}
	if calls.open != 0 || calls.registered != 1 {
		t.Errorf("registered %d times, %d left open", calls.registered, calls.open)
	}
}

type callsRecorder struct{ registered, open int }

func (c *callsRecorder) Register(context.Context) (string, func()) {
	c.registered++
	c.open++
	return "token", func() { c.open-- }
}

func TestStandardErrorIsBounded(t *testing.T) {
	p, log := program("chatter")
	out, err := p.Handle(t.Context(), invocation(`{}`))
	if err != nil || string(out) != `"done"` {
		t.Fatalf("got %s, %v", out, err)
	}
	if n := len(log.String()); n > 512<<10 || !strings.Contains(log.String(), "omittedLines=4032 omittedBytes=16515072") {
		t.Errorf("%d bytes of log for 16 MiB of standard error", n)
	}
}

func TestFunc(t *testing.T) {
	type in struct{ A, B int }
	add := skill.Func(func(_ context.Context, v in) (map[string]int, error) {
		if v.A < 0 {
			return nil, &rpc.SkillError{Message: "negative"}
		}
		return map[string]int{"sum": v.A + v.B}, nil
	})
	out, err := add.Handle(t.Context(), invocation(`{"a":1,"b":2}`))
	if err != nil || string(out) != `{"sum":3}` {
		t.Errorf("got %s, %v", out, err)
	}
	if _, err := add.Handle(t.Context(), invocation(`{"a":-1}`)); err == nil || err.Error() != "negative" {
		t.Errorf("error %v", err)
	}
	if _, err := add.Handle(t.Context(), invocation(`[]`)); err == nil {
		t.Error("a list fits a struct")
	}
	for _, absent := range []string{"", "null", " null\n"} {
		if out, err := add.Handle(t.Context(), invocation(absent)); err != nil || string(out) != `{"sum":0}` {
			t.Errorf("%q: %s, %v", absent, out, err)
		}
	}
	bad := skill.Func(func(context.Context, any) (chan int, error) { return nil, nil })
	if _, err := bad.Handle(t.Context(), invocation(`{}`)); err == nil {
		t.Error("a channel is an answer")
	}
}

func ExampleFunc() {
	greet := skill.Func(func(_ context.Context, in struct{ Name string }) (string, error) {
		return "Hello " + in.Name, nil
	})
	out, err := greet.Handle(context.Background(), &rpc.Invocation{Payload: json.RawMessage(`{"name":"Ada"}`)})
	fmt.Println(string(out), err)
	// Output: "Hello Ada" <nil>
}
