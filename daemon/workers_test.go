package daemon_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/daemon/health"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/logtest"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/skill/worker"
)

// workerScript is a worker in shell, which answers with its version and process id, and by
// asking a peer.
const workerScript = `
exit_at_start=no
[ $exit_at_start = no ] || exit 3
while read -r line; do
	id=$(expr "$line" : '.*"id":\([0-9]*\)')
	case $line in
	*'"method":"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":1}}' ;;
	*'"method":"ping"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{}}' ;;
	*'"capability":"ask"'*)
		echo '{"jsonrpc":"2.0","id":"a","method":"requestAgent","params":{"call":'$id',"request":{"to":"callee","capability":"cat","payload":[1]}}}'
		read -r result
		echo '{"jsonrpc":"2.0","id":'$id',"result":{"answer":'"$result"'}}' ;;
	*'"capability":"crash"'*) exit 9 ;;
	*'"method":"invoke"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"answer":["v1",'$$',"'$AGENTD_WORKER'"]}}' ;;
	esac
done
`

// withWorker is a fleet whose callee has a worker for some capabilities.
func withWorker(settings string) map[string]string {
	all := files()
	all["callee/worker.sh"] = workerScript
	all["callee/agent.yaml"] = "name: callee\nskills:\n  cat: {process: {command: [cat]}}\n  stays: {worker: {command: [sh, worker.sh], dir: callee" + settings + "}}\n"
	all["callee/capabilities.yaml"] += "  - {name: pid, skill: stays}\n  - {name: ask, skill: stays}\n  - {name: crash, skill: stays}\n"
	return all
}

// pidOf calls the worker, and returns its version and process id.
func pidOf(t *testing.T, f *daemon.Fleet, capability string) (version string, pid float64) {
	t.Helper()
	result, err := client(t, f, "caller").RequestAgent(t.Context(), rpc.Request{To: "agent://callee", Capability: capability})
	if err != nil {
		t.Fatal(err)
	}
	var got [3]any
	if err := json.Unmarshal(result.Response, &got); err != nil || got[2] != "1" {
		t.Fatalf("%s, %v", result.Response, err)
	}
	version, _ = got[0].(string)
	pid, _ = got[1].(float64)
	return version, pid
}

// Capabilities with one worker are served by one process, which makes nested calls by its
// pipe; the status and the ends of calls say what becomes of it.
func TestWorker(t *testing.T) {
	cfg := withGo(load(t, withWorker("")))
	log := &logtest.Lines{}
	cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
	f := startFleet(t, cfg)
	defer stop(t, f)
	d, _ := f.Daemon("callee")
	if s := d.Status().Workers; len(s) != 1 || s[0].Skill != "stays" || !s[0].Idle || s[0].Instances != 1 {
		t.Errorf("before its first call: %+v", s)
	}
	_, first := pidOf(t, f, "pid")
	if _, again := pidOf(t, f, "pid"); again != first {
		t.Errorf("served by %v and %v", first, again)
	}
	result, err := client(t, f, "caller").RequestAgent(t.Context(), rpc.Request{To: "agent://callee", Capability: "ask"})
	if err != nil {
		t.Fatal(err)
	}
	var nested struct{ Result rpc.Result }
	if err := json.Unmarshal(result.Response, &nested); err != nil || string(nested.Result.Response) != "[1]" || nested.Result.TraceID != result.TraceID {
		t.Errorf("%s, %v", result.Response, err)
	}
	_, err = client(t, f, "caller").RequestAgent(t.Context(), rpc.Request{To: "agent://callee", Capability: "crash"})
	var failed *rpc.Error
	if !errors.As(err, &failed) || failed.Retryable || !strings.Contains(failed.Message, "exit status 9") {
		t.Errorf("%v", err)
	}
	if _, pid := pidOf(t, f, "pid"); pid == first {
		t.Error("the worker has survived its end")
	}
	if s := d.Status().Workers; s[0].Idle || s[0].Serving != 1 || s[0].Restarts != 1 {
		t.Errorf("%+v", s)
	}
	for _, want := range []string{"the worker has ended", "skill=stays", "exit status 9"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log has no %q:\n%s", want, log)
		}
	}
}

// rescript changes the worker's script.
func rescript(t *testing.T, cfg daemon.Config, old, to string) {
	t.Helper()
	name := filepath.Join(cfg.Fleet.Root, "callee", "worker.sh")
	text := strings.Replace(workerScript, old, to, 1)
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A reload puts a new worker in the place of the one that serves, and refuses no call. One
// whose program does not start is refused, and the old one goes on.
func TestWorkerReload(t *testing.T) {
	cfg := withGo(load(t, withWorker(", instances: 2")))
	f := startFleet(t, cfg)
	defer stop(t, f)
	d, _ := f.Daemon("callee")
	_, first := pidOf(t, f, "pid")

	var calls atomic.Int64
	done := make(chan struct{})
	var load sync.WaitGroup
	for range 4 {
		load.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if _, err := client(t, f, "caller").RequestAgent(t.Context(), rpc.Request{To: "agent://callee", Capability: "pid"}); err != nil {
					t.Errorf("a call is refused: %v", err)
					return
				}
				calls.Add(1)
			}
		})
	}
	for version := 2; version < 5; version++ {
		rescript(t, cfg, `"v1"`, fmt.Sprintf(`"v%d"`, version))
		if err := d.Reload(); err != nil {
			t.Fatal(err)
		}
		if got, pid := pidOf(t, f, "pid"); got != fmt.Sprintf("v%d", version) || pid == first {
			t.Errorf("after the reload, %s serves", got)
		}
		before := calls.Load()
		eventually.Holds(t, "further calls", func() bool { return calls.Load() > before+10 })
	}
	rescript(t, cfg, "exit_at_start=no", "exit_at_start=yes")
	if err := d.Reload(); err == nil || !strings.Contains(err.Error(), "the worker stays does not start: it has ended: exit status 3") {
		t.Errorf("a reload with a worker that does not start: %v", err)
	}
	close(done)
	load.Wait()
	if got, _ := pidOf(t, f, "pid"); got != "v4" || d.Ready() != nil {
		t.Errorf("%s serves, %v", got, d.Ready())
	}
}

// The stop of an agent ends a reload that waits for a new worker, and that worker with it.
func TestStopEndsReload(t *testing.T) {
	cfg := withGo(load(t, withWorker(", startTimeoutMs: 600000")))
	log := &logtest.Lines{}
	cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
	f := startFleet(t, cfg)
	d, _ := f.Daemon("callee")
	pidOf(t, f, "pid")
	rescript(t, cfg, "exit_at_start=no", "echo it waits >&2; cat >/dev/null; exit")
	reloaded := make(chan error, 1)
	go func() { reloaded <- d.Reload() }()
	eventually.Holds(t, "the new worker", func() bool { return strings.Contains(log.String(), "it waits") })
	stop(t, f)
	select {
	case err := <-reloaded:
		if !errors.Is(err, worker.ErrRetired) {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("the reload goes on")
	}
}

// An eager worker starts with its agent, which is ready when it serves. While it does not, the
// agent has a condition, calls are refused as ones to repeat, and all of that ends by itself.
func TestWorkerDown(t *testing.T) {
	cfg := withGo(load(t, withWorker(", start: eager")))
	log := &logtest.Lines{}
	cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
	rescript(t, cfg, "exit_at_start=no", "exit_at_start=yes")
	f := startFleet(t, cfg)
	defer stop(t, f)
	d, _ := f.Daemon("callee")
	if err := d.Ready(); err == nil {
		t.Error("ready without its worker")
	}
	eventually.Holds(t, "the condition", func() bool {
		s := d.Status()
		return !s.Ready && len(s.Conditions) == 1 && s.Conditions[0].Kind == health.Worker && s.Conditions[0].Subject == "stays" && strings.Contains(s.Workers[0].Down, "exit status 3")
	})
	_, err := client(t, f, "caller").RequestAgent(t.Context(), rpc.Request{To: "agent://callee", Capability: "pid"})
	var failed *rpc.Error
	if !errors.As(err, &failed) || !failed.Retryable || failed.Message != "the skill's worker is not running" {
		t.Errorf("%v", err)
	}
	rescript(t, cfg, "", "")
	eventually.Holds(t, "the end of the condition", func() bool { return d.Ready() == nil })
	pidOf(t, f, "pid")
	for _, want := range []string{"calls of the skill stays are refused", "over: calls of the skill stays are refused"} {
		if strings.Count(log.String(), `msg="`+want) != 1 {
			t.Errorf("the log does not say once %q:\n%s", want, log)
		}
	}
}

// A worker does not serve two capabilities of which one may do what the other may not.
func TestWorkerOfDifferentPermissions(t *testing.T) {
	all := withWorker("")
	all["callee/capabilities.yaml"] = strings.Replace(all["callee/capabilities.yaml"], "{name: ask, skill: stays}", "{name: ask, skill: stays, permissions: [filesystem:read]}", 1)
	cfg := withGo(load(t, all))
	f, err := daemon.StartFleet(t.Context(), cfg)
	if err == nil {
		stop(t, f)
		d, _ := f.Daemon("callee")
		if d.Status().Conditions != nil {
			t.Skip("this system does not confine skills")
		}
	}
	if err == nil || !strings.Contains(err.Error(), "callee/agent.yaml:4:3") || !strings.Contains(err.Error(), `serves pid and ask, whose permissions differ`) {
		t.Errorf("%v", err)
	}
}

// Faults of the keys have their place.
func TestWorkerKeys(t *testing.T) {
	all := withWorker(", instances: 0, start: later, maxAgeMs: x, maxcalls: 1")
	dir := t.TempDir()
	for name, text := range all {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	_, err := fleet.Load(dir, fleet.LoadOptions{})
	for _, want := range []string{
		"callee/agent.yaml:4:", "/skills/stays/worker/instances: expected a whole number from 1 to 256", `/skills/stays/worker/start: `, "/skills/stays/worker/maxAgeMs: ", `unknown key "maxcalls" (did you mean "maxCalls"?)`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
}

// A worker that has no calls ends, and so do all but one of those that start with the agent;
// the next call is served all the same.
func TestWorkerWithoutCallsEnds(t *testing.T) {
	t.Parallel()
	cfg := withGo(load(t, withWorker(", idleTimeoutMs: 20")))
	f := startFleet(t, cfg)
	defer stop(t, f)
	d, _ := f.Daemon("callee")
	_, first := pidOf(t, f, "pid")
	eventually.Holds(t, "the worker ends", func() bool { s := d.Status().Workers[0]; return s.Idle && s.Serving == 0 })
	if err := d.Ready(); err != nil {
		t.Errorf("without a worker: %v", err)
	}
	if _, again := pidOf(t, f, "pid"); again == first {
		t.Errorf("the process %v has ended, and serves", first)
	}
	rewrite(t, cfg, "callee/agent.yaml", withWorker(", idleTimeoutMs: 20, instances: 2, start: eager")["callee/agent.yaml"])
	if err := d.Reload(); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "one stays", func() bool { s := d.Status().Workers[0]; return !s.Idle && s.Serving == 1 && s.Instances == 2 })
}
