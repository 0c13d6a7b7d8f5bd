package daemon_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/rpc"
)

// Where AGENTD_FAULT_MINUTES is set, TestMixedFaults takes that long; AGENTD_FAULT_SEED repeats
// the faults of a run, though not their moments.
const (
	faultMinutes = "AGENTD_FAULT_MINUTES"
	faultSeed    = "AGENTD_FAULT_SEED"
)

// A faultRun is one run of TestMixedFaults.
type faultRun struct {
	t      *testing.T
	cfg    daemon.Config
	fleet  *daemon.Fleet
	notes  string
	skills []string
	ends   time.Time

	mu       sync.Mutex
	outcomes map[string]int // by kind
	faults   map[string]int // by kind
	results  []string       // kinds of outcomes by call, "" for one without
}

// Under load, with faults of all kinds at any moment and reloads among them, each call has one
// outcome, none of those that must not be repeated is run twice, one that is said not to have
// begun has not, and nothing is left behind.
func TestMixedFaults(t *testing.T) {
	length, seed := 3*time.Second, uint64(1)
	if text := os.Getenv(faultMinutes); text != "" {
		minutes, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		length, seed = time.Duration(minutes*float64(time.Minute)), uint64(time.Now().UnixNano())
	}
	if text := os.Getenv(faultSeed); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	r := &faultRun{t: t, outcomes: map[string]int{}, faults: map[string]int{}}
	before := take(t)
	r.start()
	r.recovers() // and all workers serve
	r.ends = time.Now().Add(length)
	random := rand.New(rand.NewPCG(seed, 0))
	var load sync.WaitGroup
	for n := range 8 {
		own := rand.New(rand.NewPCG(seed, uint64(n+1)))
		load.Go(func() { r.callers(own) })
	}
	r.disturb(random)
	load.Wait()
	r.recovers()
	status := r.status()
	stop(t, r.fleet)
	r.judge()
	r.leavesNothing(before)
	t.Logf("seed %d, %s: %d calls\noutcomes: %v\nfaults: %v\n%s\nbefore: %v\nafter: %v", seed, length, len(r.results), r.outcomes, r.faults, status, before, take(t))
}

// start starts the fleet.
func (r *faultRun) start() {
	self, err := filepath.Abs(os.Args[0])
	if err != nil {
		r.t.Fatal(err)
	}
	r.skills = []string{"go"}
	all := files()
	all["callee/notes/keep"] = ""
	all["callee/agent.yaml"] = "name: callee\nskills:\n" + faultySkill("go", self, "DAEMON_TEST: faulty")
	if _, err := exec.LookPath("python3"); err == nil {
		r.skills = append(r.skills, "python")
		all["callee/worker.py"] = pythonFaulty
		all["callee/agent.yaml"] += faultySkill("python", "python3, worker.py", "")
	}
	all["caller/agent.yaml"] += "breaker: off\n"
	all["callee/capabilities.yaml"] = "version: 1\nagent: agent://callee\ntransports: [{kind: memory, topics: {requests: agents.callee.requests}}]\ncapabilities:\n"
	for _, skill := range r.skills {
		all["callee/capabilities.yaml"] += "  - {name: " + skill + ", idempotent: false, inputSchema: {type: object, properties: {id: {type: integer}, do: {type: string}}, required: [id, do]}, " +
			"outputSchema: {type: object, properties: {id: {type: integer}}, required: [id]}}\n"
	}
	r.cfg = load(r.t, all)
	r.cfg.Logger = slog.New(slog.DiscardHandler)
	r.notes = filepath.Join(r.cfg.Fleet.Root, "callee", "notes")
	r.fleet = startFleet(r.t, r.cfg)
}

func faultySkill(name, command, env string) string {
	return "  " + name + ":\n    worker: {command: [" + command + ", notes], dir: callee, env: {" + env + "}, instances: 3, concurrency: 4, maxCalls: 400, maxAgeMs: 5000, maxMemoryBytes: 134217728, startTimeoutMs: 20000, killGraceMs: 500}\n" +
		"    sandbox: {write: [notes]}\n"
}

// callers makes one call after the other.
func (r *faultRun) callers(random *rand.Rand) {
	caller, _ := r.fleet.Daemon("caller")
	for time.Now().Before(r.ends) {
		r.mu.Lock()
		call := faultyCall{ID: len(r.results), Do: drawn(random)}
		r.results = append(r.results, "")
		r.faults[call.Do]++
		r.mu.Unlock()
		timeout := 4 * time.Second
		if call.Do == "hang" {
			timeout = 200 * time.Millisecond
		}
		payload, err := json.Marshal(call)
		if err != nil {
			r.t.Error(err)
			return
		}
		result, err := caller.Client().RequestAgent(context.Background(), rpc.Request{
			To: "agent://callee", Capability: r.skills[random.IntN(len(r.skills))], Payload: payload, Timeout: timeout,
		})
		r.note(call, result, err)
		if err != nil && kindOf(err) == notRunning { // it is to be repeated later
			time.Sleep(10 * time.Millisecond)
		}
		if pause := random.IntN(30); os.Getenv(faultMinutes) != "" {
			time.Sleep(time.Duration(pause) * time.Millisecond)
		}
	}
}

// drawn is what a call does: mostly what it should.
func drawn(random *rand.Rand) string {
	for _, one := range []struct {
		do   string
		ofIn int // one of so many calls
	}{
		{"slow", 5}, {"fail", 20}, {"log", 100}, {"long", 50}, {"crash", 200}, {"garbage", 300}, {"flood", 500}, {"hang", 500}, {"grow", 2000},
	} {
		if random.IntN(one.ofIn) == 0 {
			return one.do
		}
	}
	return "answer"
}

// note takes the one outcome of a call.
func (r *faultRun) note(call faultyCall, result *rpc.Result, err error) {
	kind := "ok"
	var answer struct{ ID int }
	switch {
	case result == nil:
		r.t.Errorf("call %d has no result: %v", call.ID, err)
		return
	case err != nil:
		kind = kindOf(err)
	case json.Unmarshal(result.Response, &answer) != nil || answer.ID != call.ID:
		r.t.Errorf("call %d got the answer of another: %.100s", call.ID, result.Response)
	}
	if strings.HasPrefix(kind, "unexpected") {
		r.t.Errorf("call %d (%s): %v", call.ID, call.Do, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.results[call.ID] != "" {
		r.t.Errorf("call %d has two outcomes", call.ID)
	}
	r.results[call.ID] = kind
	r.outcomes[kind]++
}

// The kinds of outcomes that say that the call has not begun.
const (
	notRunning = "the worker is not running"
	notBegun   = "not begun"
)

// kindOf sorts the error of a call.
func kindOf(err error) string {
	e := (*rpc.Error)(nil)
	if !errors.As(err, &e) {
		return "unexpected"
	}
	lost := strings.Contains(e.Message, "was lost while it served the call")
	switch {
	case e.Code == rpc.CodeHandlerError && e.Message == "the skill's worker is not running" && e.Retryable:
		return notRunning
	case e.Code == rpc.CodeHandlerError && strings.Contains(e.Message, "before they began the call") && e.Retryable:
		return notBegun
	case e.Code == rpc.CodeHandlerError && lost && !e.Retryable:
		return "lost"
	case e.Code == rpc.CodeHandlerError && e.Message == "it was asked to fail":
		return "failed"
	case e.Code == rpc.CodeDeadlineExceeded, e.Code == rpc.CodeTimeout:
		return "late"
	}
	return "unexpected"
}

// disturb does to the processes, and to the files, what nobody should, until the end.
func (r *faultRun) disturb(random *rand.Rand) {
	callee, _ := r.fleet.Daemon("callee")
	text, err := os.ReadFile(filepath.Join(r.cfg.Fleet.Root, "callee", "agent.yaml"))
	if err != nil {
		r.t.Fatal(err)
	}
	pause := func(most time.Duration) { time.Sleep(time.Duration(random.Int64N(int64(most)))) }
	refuse := filepath.Join(r.notes, "refuse")
	began, calm := time.Now(), min(10*time.Second, time.Until(r.ends)/2)
	for version := 0; time.Now().Before(r.ends); version++ {
		pause(100 * time.Millisecond)
		what, kinds := "killed", 8
		// Each reload brings fresh workers. At first and every now and then there is none for a
		// while, so that faults follow each other, and the pauses between starts grow until no
		// worker runs.
		if int(time.Since(began)/calm)%2 == 0 {
			kinds = 5
		}
		switch random.IntN(kinds) {
		case 0, 1, 2:
			if !r.signal(random, syscall.SIGKILL) {
				continue
			}
		case 3:
			if what = "stopped"; !r.signal(random, syscall.SIGSTOP) {
				continue
			}
		case 4:
			what = "refused to start"
			if err := os.WriteFile(refuse, nil, 0o600); err != nil {
				r.t.Error(err)
			}
			r.signal(random, syscall.SIGKILL)
			pause(300 * time.Millisecond)
			if err := os.Remove(refuse); err != nil {
				r.t.Error(err)
			}
		case 5:
			what = "reloaded with a change"
			rewrite(r.t, r.cfg, "callee/agent.yaml", fmt.Sprintf("%sdescription: version %d\n", text, version))
			fallthrough
		case 6:
			if what == "killed" {
				what = "reloaded"
			}
			if err := callee.Reload(); err != nil {
				r.t.Errorf("reload: %v", err)
			}
		default:
			what = "reload that is refused"
			rewrite(r.t, r.cfg, "callee/agent.yaml", string(text)+"unknown: key\n")
			if err := callee.Reload(); err == nil {
				r.t.Error("a faulty file was taken")
			}
			rewrite(r.t, r.cfg, "callee/agent.yaml", string(text))
		}
		r.mu.Lock()
		r.faults[what]++
		r.mu.Unlock()
	}
}

// signal signals one of the newest processes of workers, and reports whether there was one.
func (r *faultRun) signal(random *rand.Rand, signal syscall.Signal) bool {
	const newest = 12
	text, err := os.ReadFile(filepath.Join(r.notes, "pids"))
	if err != nil {
		return false
	}
	pids := strings.Fields(string(text))
	pids = pids[max(0, len(pids)-newest):]
	if len(pids) == 0 {
		return false
	}
	pid, err := strconv.Atoi(pids[random.IntN(len(pids))])
	if err != nil {
		return false
	}
	p, err := os.FindProcess(pid) // a handle: what it is looked up by may become another's
	if err != nil {
		return false
	}
	defer func() { _ = p.Release() }()
	return r.isWorker(pid) && p.Signal(signal) == nil
}

// isWorker reports whether a process runs in this test's folder.
func (r *faultRun) isWorker(pid int) bool {
	dir, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
	return err == nil && strings.HasPrefix(dir, r.cfg.Fleet.Root+"/")
}

// recovers demands that all is well soon after a reload.
func (r *faultRun) recovers() {
	callee, _ := r.fleet.Daemon("callee")
	eventually.Succeeds(r.t, "a reload puts fresh workers in force", callee.Reload)
	eventually.Succeeds(r.t, "the agent is ready", callee.Ready)
	for _, skill := range r.skills {
		call := faultyCall{ID: len(r.results), Do: "answer"}
		r.results = append(r.results, "")
		payload, _ := json.Marshal(call)
		result, err := client(r.t, r.fleet, "caller").RequestAgent(context.Background(), rpc.Request{To: "agent://callee", Capability: skill, Payload: payload})
		r.note(call, result, err)
		if err != nil {
			r.t.Errorf("%s does not recover: %v", skill, err)
		}
	}
}

func (r *faultRun) status() string {
	callee, _ := r.fleet.Daemon("callee")
	// A caller whose time is up before it has sent its request leaves none.
	least, most := len(r.results)-r.outcomes["late"], len(r.results)
	eventually.Succeeds(r.t, "the callee has ended each call once", func() error { // also those that callers no longer wait for
		s := callee.Status()
		for _, load := range s.Capabilities {
			if load.Running+load.Waiting > 0 {
				return fmt.Errorf("%d calls of %s run, and %d wait", load.Running, load.Capability, load.Waiting)
			}
		}
		if s.Requests < least || s.Requests > most {
			return fmt.Errorf("%d, and there were %d to %d", s.Requests, least, most)
		}
		return nil
	})
	s := callee.Status()
	started, err := os.ReadFile(filepath.Join(r.notes, "pids"))
	if err != nil {
		r.t.Error(err)
	}
	return fmt.Sprintf("%d processes of workers started, %d left processes ended", bytes.Count(started, []byte("\n")), s.DescendantsEnded)
}

// judge compares what calls ended with and what the workers have written down.
func (r *faultRun) judge() {
	f, err := os.Open(filepath.Join(r.notes, "ran"))
	if err != nil {
		r.t.Fatal(err)
	}
	defer f.Close()
	runs := make([]int, len(r.results))
	for lines := bufio.NewScanner(f); lines.Scan(); {
		id, err := strconv.Atoi(lines.Text())
		if err != nil || id < 0 || id >= len(runs) {
			r.t.Fatalf("a worker has written down %q", lines.Text())
		}
		runs[id]++
	}
	for id, kind := range r.results {
		switch {
		case kind == "":
			r.t.Errorf("call %d has no outcome", id)
		case runs[id] > 1:
			r.t.Errorf("call %d has run %d times", id, runs[id])
		case (kind == "ok" || kind == "failed") && runs[id] != 1:
			r.t.Errorf("call %d has an answer (%s), and has not run", id, kind)
		case (kind == notRunning || kind == notBegun) && runs[id] != 0:
			r.t.Errorf("call %d has run, and its caller learns: %s", id, kind)
		}
	}
	if r.outcomes["ok"] == 0 {
		r.t.Error("no call has succeeded")
	}
}

// leavesNothing demands that no process, goroutine, descriptor or memory is left.
func (r *faultRun) leavesNothing(before resources) {
	eventually.Succeeds(r.t, "no process of a worker is left", func() error {
		all, err := os.ReadDir("/proc")
		for _, entry := range all {
			if pid, err := strconv.Atoi(entry.Name()); err == nil && r.isWorker(pid) {
				return fmt.Errorf("process %d runs", pid)
			}
		}
		return err
	})
	eventually.Succeeds(r.t, "goroutines and descriptors are as before", func() error {
		now := take(r.t)
		if now.goroutines > before.goroutines || now.descriptors > before.descriptors {
			var b bytes.Buffer
			stacks := make([]byte, 1<<20)
			b.Write(stacks[:runtime.Stack(stacks, true)])
			return fmt.Errorf("before: %v, now: %v\n%s", before, now, b.String())
		}
		return nil
	})
	const allowed = 32 << 20 // what packages keep for later
	if now := take(r.t); now.heap > before.heap+allowed {
		r.t.Errorf("memory before: %d, now: %d", before.heap, now.heap)
	}
}

// resources are what a process may leak.
type resources struct {
	goroutines, descriptors int
	heap                    uint64
}

func take(t *testing.T) resources {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.GC() // what the first has finalized
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return resources{runtime.NumGoroutine(), len(all), m.HeapAlloc}
}
