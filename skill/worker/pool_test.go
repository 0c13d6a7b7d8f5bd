package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/skill"
	"github.com/agentd/agentd/skill/worker"
)

// A logbook keeps log lines while others write.
type logbook struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logbook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// pool returns a pool of a kind of rogue, that is closed with the test.
func pool(t testing.TB, kind string, change func(*worker.Config)) (*worker.Pool, *logbook) {
	t.Helper()
	log := &logbook{}
	cfg := worker.Config{
		Name: "models", Agent: "agent://a", MaxPayloadBytes: 1 << 20,
		Program: &skill.Process{
			Command: []string{os.Args[0]}, Env: []string{"WORKER_TEST=" + kind, "GOMAXPROCS=1", "GORACE=atexit_sleep_ms=0"}, MaxOutputBytes: 1 << 20, KillGrace: 250 * time.Millisecond,
		},
		Capabilities: []worker.Capability{{Name: "echo"}, {Name: "pid"}},
		Logger:       slog.New(slog.NewTextHandler(log, nil)),
	}
	if change != nil {
		change(&cfg)
	}
	cfg.Program.Logger = cfg.Logger
	p, err := worker.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := p.Close(ctx); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return p, log
}

// patient lets a worker take long to end what it does end, on a busy machine.
func patient(c *worker.Config) { c.Program.KillGrace = 30 * time.Second }

func call(ctx context.Context, p *worker.Pool, capability, payload string) (string, error) {
	out, err := p.Handle(ctx, &rpc.Invocation{From: "agent://b", Capability: capability, CorrelationID: "c-1", Payload: json.RawMessage(payload)})
	return string(out), err
}

func mustCall(t testing.TB, p *worker.Pool, capability, payload string) string {
	t.Helper()
	out, err := call(t.Context(), p, capability, payload)
	if err != nil {
		t.Fatalf("%s: %v", capability, err)
	}
	return out
}

// One process serves many calls, and several at once, whatever their payloads look like.
func TestCallsShareAProcess(t *testing.T) {
	p, _ := pool(t, "rogue", nil)
	if s := p.Status(); s.Begun || s.Serving != 0 {
		t.Errorf("before the first call: %+v", s)
	}
	pid := mustCall(t, p, "pid", "null")
	for payload, want := range map[string]string{
		`{"a":1}`: `{"a":1}`, "{\n \"a\":\r\n 1}": `{"a":1}`, `"\u2028\n<>&"`: `"\u2028\n\u003c\u003e\u0026"`, ``: `null`, `9007199254740993`: `9007199254740993`,
	} {
		if got := mustCall(t, p, "echo", payload); got != want {
			t.Errorf("%q: %s, want %s", payload, got, want)
		}
	}
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			want := fmt.Sprintf(`"%d-%s"`, i, strings.Repeat("x", i*100))
			if got, err := call(t.Context(), p, "echo", want); err != nil || got != want {
				t.Errorf("%d: %.20s, %v", i, got, err)
			}
		})
	}
	all.Wait()
	if again := mustCall(t, p, "pid", "null"); again != pid {
		t.Errorf("served by %s and %s", pid, again)
	}
	if s := p.Status(); s.Serving != 1 || s.Restarts != 0 || s.Running != 0 || s.Waiting != 0 {
		t.Errorf("%+v", s)
	}
}

// What a worker says of a failure reaches the caller if it is meant for the caller.
func TestFailures(t *testing.T) {
	p, _ := pool(t, "rogue", nil)
	var public *rpc.SkillError
	if _, err := call(t.Context(), p, "fails", "null"); !errors.As(err, &public) || public.Message != "no such pull request" || !public.Retryable {
		t.Errorf("%v", err)
	}
	if _, err := call(t.Context(), p, "bug", "null"); err == nil || errors.As(err, &public) || !strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%v", err)
	}
	public = nil
	if _, err := call(t.Context(), p, "strange", "null"); !errors.As(err, &public) || public.Code != rpc.CodeBadSkillOutput {
		t.Errorf("%v", err)
	}
	if s := p.Status(); s.Restarts != 0 {
		t.Errorf("a failed call replaced the worker: %+v", s)
	}
}

// Whatever a worker does to the protocol, it is replaced, the log says why, the caller learns
// nothing of its text, and the next call is served.
func TestFaultsReplaceTheWorker(t *testing.T) {
	t.Parallel()
	for capability, want := range map[string]struct{ log, caller string }{
		"crash":   {"exit status 7", "exit status 7"},
		"killed":  {"signal: killed", "signal: killed"},
		"garbage": {"a line that is no message", "a line that is no message"},
		"batch":   {"it is no JSON object", "no JSON object"},
		"twice":   {"answered request 2 again", ""},
		"unknown": {"a request that it was not sent", "was not sent"},
		"late":    {"progress of a call that it does not serve", "does not serve"},
		"long":    {"a line of more than", "a line of more than"},
		"flood":   {"is no message", "is no message"},
		"asks":    {"bytes unread that it had asked for", "bytes unread"},
		"closes":  {"closed its standard input or output", "closed its standard"},
	} {
		t.Run(capability, func(t *testing.T) {
			t.Parallel()
			p, log := pool(t, "rogue", func(c *worker.Config) { c.WriteTimeout = time.Minute })
			_, err := call(t.Context(), p, capability, "null")
			if want.caller != "" {
				var public *rpc.SkillError
				if !errors.As(err, &public) || public.Retryable || !strings.Contains(public.Message, want.caller) || strings.Contains(public.Message, "hunter2") {
					t.Errorf("the caller gets %v", err)
				}
			}
			eventually.Holds(t, "a restart", func() bool { return p.Status().Restarts == 1 && p.Status().Serving == 1 })
			if got := mustCall(t, p, "echo", `"again"`); got != `"again"` {
				t.Error(got)
			}
			if !strings.Contains(log.String(), want.log) {
				t.Errorf("the log has no %q:\n%s", want.log, log)
			}
		})
	}
}

// A cancelled call ends as soon as the worker ends it, and the worker stays. One that does
// not end it in time is replaced, even if it ignores SIGTERM and has left its process group.
func TestCancel(t *testing.T) {
	t.Parallel()
	cancelled := func(t *testing.T, p *worker.Pool, capability string) error {
		t.Helper()
		begun := filepath.Join(t.TempDir(), "begun")
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			eventually.Holds(t, "the call", func() bool { return exists(begun) })
			cancel(errors.New("the caller has left"))
		}()
		name, _ := json.Marshal(begun)
		_, err := call(ctx, p, capability, string(name))
		return err
	}
	t.Run("wait", func(t *testing.T) {
		t.Parallel()
		p, _ := pool(t, "rogue", patient)
		pid := mustCall(t, p, "pid", "null")
		if err := cancelled(t, p, "wait"); err == nil || !strings.Contains(err.Error(), "the caller has left") {
			t.Error(err)
		}
		if again := mustCall(t, p, "pid", "null"); again != pid || p.Status().Restarts != 0 {
			t.Errorf("%s, %s, %+v", pid, again, p.Status())
		}
	})
	for _, capability := range []string{"hang", "stubborn", "deserter"} {
		t.Run(capability, func(t *testing.T) {
			t.Parallel()
			p, log := pool(t, "rogue", nil)
			pid := mustCall(t, p, "pid", "null")
			if err := cancelled(t, p, capability); err == nil || !strings.Contains(err.Error(), "the caller has left") {
				t.Error(err)
			}
			if again := mustCall(t, p, "pid", "null"); again == pid {
				t.Error("it was not replaced")
			}
			if !strings.Contains(log.String(), "has not ended a cancelled call within 250ms") {
				t.Error(log)
			}
		})
	}
}

// A crash ends the calls of its own process, and not those of another.
func TestCrashFailsItsOwnCallsOnly(t *testing.T) {
	p, _ := pool(t, "serial", func(c *worker.Config) { c.Instances = 2 })
	if err := p.Serving(t.Context()); err != nil {
		t.Fatal(err)
	}
	release := filepath.Join(t.TempDir(), "release")
	name, _ := json.Marshal(release)
	held := make(chan error, 1)
	go func() {
		_, err := call(t.Context(), p, "until", string(name))
		held <- err
	}()
	eventually.Holds(t, "the call", func() bool { return p.Status().Running == 1 })
	if _, err := call(t.Context(), p, "crash", "null"); err == nil {
		t.Error("the call that crashes has an answer")
	}
	if err := os.WriteFile(release, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-held; err != nil {
		t.Errorf("the call of the other instance: %v", err)
	}
}

// A call that the worker cannot have read is given to the next instance.
func TestCallThatHasNotBegunIsServedByAnother(t *testing.T) {
	if pending(os.Stdin) < 0 {
		t.Skip("this system does not say what is in a pipe")
	}
	first := filepath.Join(t.TempDir(), "first")
	p, log := pool(t, "rogue", func(c *worker.Config) {
		c.Program.Env = append(c.Program.Env, "WORKER_FIRST="+first, "WORKER_FIRST_KIND=leaves")
	})
	// Longer than what a reader takes at once.
	want := `"` + strings.Repeat("x", 4096) + `"`
	if got, err := call(t.Context(), p, "echo", want); err != nil || got != want {
		t.Errorf("%.20s, %v\n%s", got, err, log)
	}
	if s := p.Status(); s.Restarts != 1 || !strings.Contains(log.String(), "exit status 4") {
		t.Errorf("%+v\n%s", s, log)
	}
}

// A call of which only the line feed was not read may have begun: it is not repeated.
func TestCallThatMayHaveBegunIsNotRepeated(t *testing.T) {
	if pending(os.Stdin) < 0 {
		t.Skip("this system does not say what is in a pipe")
	}
	first := filepath.Join(t.TempDir(), "first")
	p, log := pool(t, "rogue", func(c *worker.Config) {
		c.Program.Env = append(c.Program.Env, "WORKER_FIRST="+first, "WORKER_FIRST_KIND=leaves-feed")
	})
	var public *rpc.SkillError
	if got, err := call(t.Context(), p, "echo", "1"); !errors.As(err, &public) || public.Retryable || !strings.Contains(public.Message, "exit status 4") {
		t.Errorf("%s, %v\n%s", got, err, log)
	}
}

// A worker is replaced after so many calls, so long a time and so much memory, and serves
// until the next one does.
func TestRecycling(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*worker.Config)
		call   string
		log    string
	}{
		"calls":  {func(c *worker.Config) { c.MaxCalls = 3 }, "pid", "has served 3 calls"},
		"age":    {func(c *worker.Config) { c.MaxAge = 300 * time.Millisecond }, "pid", "older than 300ms"},
		"memory": {func(c *worker.Config) { c.MaxMemoryBytes = 48 << 20 }, "grow", "bytes of memory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, log := pool(t, "rogue", test.change)
			first := mustCall(t, p, test.call, "null")
			eventually.Holds(t, "another process", func() bool { return mustCall(t, p, "pid", "null") != first })
			if s := p.Status(); s.Restarts != 0 || s.Recycled == 0 || !strings.Contains(log.String(), test.log) {
				t.Errorf("%+v\n%s", s, log)
			}
		})
	}
}

// A process that has no calls ends, and calls bring it back. That is no fault, and no call
// fails for it.
func TestIdleProcessesEnd(t *testing.T) {
	p, log := pool(t, "good", func(c *worker.Config) { patient(c); c.IdleTimeout, c.Instances = 20*time.Millisecond, 2 })
	asleep := func(n int) {
		t.Helper()
		eventually.Holds(t, "processes end", func() bool { s := p.Status(); return s.Asleep == n && s.Serving == 2-n })
	}
	first := mustCall(t, p, "pid", `{}`)
	asleep(2)
	if again := mustCall(t, p, "pid", `{}`); again == first {
		t.Errorf("the process %s that has ended serves", first)
	}
	for range 5 { // also while they are about to end
		var calls sync.WaitGroup
		for range 20 {
			calls.Go(func() {
				if _, err := call(t.Context(), p, "echo", `1`); err != nil {
					t.Error(err)
				}
			})
		}
		calls.Wait()
	}
	asleep(2)
	if s := p.Status(); s.Restarts != 0 || s.Recycled != 0 || s.Down != nil {
		t.Errorf("status %+v, log\n%s", s, log)
	}
	if err := p.Serving(t.Context()); err != nil {
		t.Errorf("those that wait for calls are not ready: %v", err)
	}
}

// Some stay, if they should, for longer than others take to end several times.
func TestIdleProcessStays(t *testing.T) {
	idle := func(c *worker.Config) { patient(c); c.IdleTimeout = 20 * time.Millisecond }
	stays, _ := pool(t, "good", func(c *worker.Config) { idle(c); c.Staying = 1 })
	others, _ := pool(t, "good", idle)
	first := mustCall(t, stays, "pid", `{}`)
	for range 3 {
		mustCall(t, others, "pid", `{}`)
		eventually.Holds(t, "the others end", func() bool { return others.Status().Asleep == 1 })
	}
	if again := mustCall(t, stays, "pid", `{}`); again != first || stays.Status().Asleep != 0 {
		t.Errorf("the process %s has ended, and %s serves", first, again)
	}
}

// Calls fail at once, as ones that may succeed later, while no worker starts; who asks is told
// when that begins and when it ends.
func TestDownAndBack(t *testing.T) {
	t.Parallel()
	changes := make(chan error, 16)
	program := filepath.Join(t.TempDir(), "worker")
	p, log := pool(t, "rogue", func(c *worker.Config) {
		c.Program.Command = []string{program}
		c.Changed = func(err error) { changes <- err }
	})
	err := p.Serving(t.Context())
	if err == nil || !strings.Contains(err.Error(), "could not be started") {
		t.Errorf("Serving: %v", err)
	}
	if down := <-changes; down == nil {
		t.Error("it begins with nothing wrong")
	}
	var public *rpc.SkillError
	if _, err := call(t.Context(), p, "echo", "1"); !errors.As(err, &public) || !public.Retryable || public.Message != "the skill's worker is not running" {
		t.Errorf("%v", err)
	}
	if err := os.Symlink(os.Args[0], program); err != nil {
		t.Fatal(err)
	}
	if up := <-changes; up != nil {
		t.Error(up)
	}
	if got := mustCall(t, p, "echo", "1"); got != "1" || p.Status().Down != nil {
		t.Errorf("%s, %+v\n%s", got, p.Status(), log)
	}
}

// A worker that says the wrong thing when it starts is not used, and the reason is told.
func TestInitialize(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]string{
		"dies": "exit status 3", "future": "version 2 of the protocol", "partial": "does not serve pid", "mute": "not answered initialize within 100ms",
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p, _ := pool(t, kind, func(c *worker.Config) {
				if kind == "mute" {
					c.StartTimeout = 100 * time.Millisecond
				}
			})
			if err := p.Serving(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v", err)
			}
		})
	}
}

// A retired pool finishes its calls, and takes no more.
func TestRetire(t *testing.T) {
	p, log := pool(t, "rogue", patient)
	release := filepath.Join(t.TempDir(), "release")
	name, _ := json.Marshal(release)
	held := make(chan error, 1)
	go func() {
		_, err := call(t.Context(), p, "until", string(name))
		held <- err
	}()
	eventually.Holds(t, "the call", func() bool { return p.Status().Running == 1 })
	p.Retire()
	if _, err := call(t.Context(), p, "echo", "1"); !errors.Is(err, worker.ErrRetired) {
		t.Errorf("%v", err)
	}
	if err := os.WriteFile(release, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-held; err != nil {
		t.Errorf("the call that was running: %v", err)
	}
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if strings.Contains(log.String(), "level=ERROR") {
		t.Error(log)
	}
}

// A worker that does not end when it is asked to is made to, and Close says when it had to
// kill calls.
func TestClose(t *testing.T) {
	t.Parallel()
	t.Run("stays", func(t *testing.T) {
		t.Parallel()
		p, log := pool(t, "stays", nil)
		mustCall(t, p, "echo", "1")
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if !strings.Contains(log.String(), "has not ended within 250ms of being asked to") {
			t.Error(log)
		}
	})
	t.Run("running", func(t *testing.T) {
		t.Parallel()
		p, _ := pool(t, "rogue", nil)
		failed := make(chan error, 1)
		go func() {
			_, err := call(t.Context(), p, "stubborn", "null")
			failed <- err
		}()
		eventually.Holds(t, "the call", func() bool { return p.Status().Running == 1 })
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := p.Close(ctx); err == nil {
			t.Error("nothing was killed")
		}
		if err := <-failed; err == nil {
			t.Error("the call has an answer")
		}
	})
}

// The ids of calls and pings grow, as the page of the protocol says: a worker may tell by them
// what is new.
func TestRequestIDsGrow(t *testing.T) {
	p, _ := pool(t, "rogue", func(c *worker.Config) { c.PingInterval, c.PingTimeout = 4*time.Millisecond, time.Minute })
	var got struct{ IDs, Pings []int }
	eventually.Holds(t, "pings between calls", func() bool {
		if err := json.Unmarshal([]byte(mustCall(t, p, "ids", "null")), &got); err != nil {
			t.Fatal(err)
		}
		return len(got.Pings) > 1
	})
	if !slices.IsSorted(got.IDs) || len(slices.Compact(slices.Clone(got.IDs))) != len(got.IDs) {
		t.Errorf("%+v", got)
	}
}

// An idle worker that does not react any more is found, and so is one that does not read.
func TestStoppedWorkers(t *testing.T) {
	t.Parallel()
	stop := func(t *testing.T, p *worker.Pool) {
		t.Helper()
		var pid int
		if err := json.Unmarshal([]byte(mustCall(t, p, "pid", "null")), &pid); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("idle", func(t *testing.T) {
		t.Parallel()
		p, log := pool(t, "rogue", func(c *worker.Config) { c.PingInterval, c.PingTimeout = 50*time.Millisecond, 200*time.Millisecond })
		stop(t, p)
		eventually.Holds(t, "a restart", func() bool { return p.Status().Restarts > 0 })
		mustCall(t, p, "echo", "1")
		if !strings.Contains(log.String(), "not answered a ping within 200ms") {
			t.Error(log)
		}
	})
	t.Run("deaf", func(t *testing.T) {
		t.Parallel()
		p, log := pool(t, "rogue", func(c *worker.Config) { c.WriteTimeout = 500 * time.Millisecond })
		stop(t, p)
		// It cannot have read all of it, and goes to the next one.
		want := `"` + strings.Repeat("x", 1<<18) + `"`
		if got, err := call(t.Context(), p, "echo", want); err != nil || got != want {
			t.Errorf("%.20s, %v", got, err)
		}
		if !strings.Contains(log.String(), "has not read its standard input for 500ms") {
			t.Error(log)
		}
	})
}
