package tasks_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/registry/tasks"
	"github.com/agentd/agentd/rpc"
)

// An agent with the capability.
type agent struct {
	t   interface{ Fatalf(string, ...any) }
	res *registry.Resolved
}

// A clock that a test sets.
type clock struct{ time.Time }

func newClock() *clock { return &clock{time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time { return c.Time }

func (c *clock) pass(seconds int) { c.Time = c.Add(time.Duration(seconds) * time.Second) }

func resolve(dir, config string, now func() time.Time) (*registry.Resolved, error) {
	reg := registry.New()
	if err := reg.Register(tasks.New(now)); err != nil {
		return nil, err
	}
	return reg.Resolve(registry.Context{Context: context.Background(), Agent: "worker", StateDir: dir},
		[]registry.Capability{{Key: "tasks", Config: json.RawMessage(config)}})
}

func start(t *testing.T, dir, config string, now func() time.Time) agent {
	t.Helper()
	res, err := resolve(dir, config, now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Close(context.Background()) })
	return agent{t, res}
}

// A task as tools show it.
type task struct {
	ID                    int64
	Title, Details, Key   string
	State                 string
	Priority              int
	Attempts, MaxAttempts int
	NotBefore, LeaseEnds  time.Time
	Result, Reason        string
}

// A reply has the members of all results.
type reply struct {
	task
	Added      bool
	Claimed    bool
	Task       task
	Lease      string
	NextAt     time.Time
	Tasks      []task
	Counts     map[string]int
	NextBefore int64
}

// args are those of a tool.
type args map[string]any

func (a agent) call(ctx context.Context, tool string, with args) (r reply, code registry.Code) {
	encoded, err := json.Marshal(with)
	if err != nil {
		a.t.Fatalf("%v", err)
	}
	result := a.res.Call(ctx, tool, encoded)
	if code := registry.FailureCode(result); code != "" {
		return r, code
	}
	if err := json.Unmarshal(result.StructuredContent.(json.RawMessage), &r); err != nil {
		a.t.Fatalf("%v", err)
	}
	return r, ""
}

func (a agent) must(tool string, with args) reply {
	r, code := a.call(context.Background(), tool, with)
	if code != "" {
		a.t.Fatalf("%s %v: %s", tool, with, code)
	}
	return r
}

// refused fails unless the answer is this code.
func (a agent) refused(want registry.Code, tool string, with args) {
	if _, code := a.call(context.Background(), tool, with); code != want {
		a.t.Fatalf("%s %v: %q, want %q", tool, with, code, want)
	}
}

func TestWork(t *testing.T) {
	dir := t.TempDir()
	a := start(t, dir, "{}", nil)
	low := a.must("add_task", args{"title": "sweep", "priority": -1}).ID
	plain := a.must("add_task", args{"title": "read", "details": "chapter 7"}).ID
	high := a.must("add_task", args{"title": "answer", "priority": 5}).ID
	if list := a.must("list_tasks", nil); len(list.Tasks) != 3 || list.Tasks[0].ID != high || list.Counts["open"] != 3 {
		t.Errorf("%+v", list)
	}
	var leases []string
	for _, want := range []int64{high, plain, low} {
		got := a.must("claim_task", nil)
		if !got.Claimed || got.Task.ID != want || got.Task.State != "claimed" || got.Task.Attempts != 1 || got.Lease == "" {
			t.Errorf("%+v, want task %d", got, want)
		}
		leases = append(leases, got.Lease)
	}
	none := a.must("claim_task", nil)
	if in := time.Until(none.NextAt); none.Claimed || in < 200*time.Second || in > 300*time.Second {
		t.Errorf("%+v", none)
	}
	a.must("complete_task", args{"id": plain, "lease": leases[1], "result": "done reading"})
	if got := a.must("get_task", args{"id": plain}); got.State != "done" || got.Result != "done reading" || got.Details != "chapter 7" || !got.LeaseEnds.IsZero() {
		t.Errorf("%+v", got)
	}
	a.must("complete_task", args{"id": plain, "lease": leases[1]}) // its answer was lost
	a.refused(registry.Conflict, "fail_task", args{"id": plain, "lease": leases[1], "reason": "x"})
	if got := a.must("get_task", args{"id": plain}); got.Result != "done reading" {
		t.Errorf("a repetition changed it: %+v", got)
	}
	a.refused(registry.Conflict, "claim_task", args{"id": plain})
	a.refused(registry.Conflict, "remove_task", args{"id": low})
	if err := a.res.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	a = start(t, dir, "{}", nil) // the next process
	a.refused(registry.Conflict, "complete_task", args{"id": low, "lease": leases[0]})
	a.must("complete_task", args{"id": low, "lease": leases[2]})
	a.must("remove_task", args{"id": low})
	for _, tool := range []string{"remove_task", "get_task", "claim_task"} {
		a.refused(registry.NotFound, tool, args{"id": low})
	}
	if list := a.must("list_tasks", args{"state": "claimed"}); len(list.Tasks) != 1 || list.Tasks[0].ID != high || list.Counts["done"] != 1 {
		t.Errorf("%+v", list)
	}
}

func TestLeaseEnds(t *testing.T) {
	c := newClock()
	a := start(t, t.TempDir(), "{}", c.now)
	id := a.must("add_task", args{"title": "x", "maxAttempts": 2}).ID
	first := a.must("claim_task", args{"leaseSeconds": 10}).Lease
	c.pass(9)
	a.refused(registry.Conflict, "claim_task", args{"id": id})
	if got := a.must("extend_task", args{"id": id, "lease": first, "leaseSeconds": 10}); !got.LeaseEnds.Equal(c.Add(10 * time.Second)) {
		t.Errorf("%+v", got)
	}
	c.pass(10)
	if got := a.must("get_task", args{"id": id}); got.State != "open" || got.Attempts != 1 {
		t.Errorf("%+v", got)
	}
	second := a.must("claim_task", args{"leaseSeconds": 10}).Lease
	if second == first || second == "" {
		t.Errorf("the lease is %q again", second)
	}
	for _, tool := range []string{"extend_task", "complete_task"} {
		a.refused(registry.Conflict, tool, args{"id": id, "lease": first})
	}
	c.pass(10)
	// The last attempt has ended, too: nobody can claim it any more.
	if got := a.must("get_task", args{"id": id}); got.State != "failed" || !strings.Contains(got.Reason, "lease") {
		t.Errorf("%+v", got)
	}
	for range 2 { // before it is written down, and after
		a.refused(registry.Conflict, "complete_task", args{"id": id, "lease": second})
		if got := a.must("claim_task", nil); got.Claimed || !got.NextAt.IsZero() {
			t.Errorf("%+v", got)
		}
	}
}

// Work that took too long counts, as long as nobody else has begun it.
func TestLateWorkCounts(t *testing.T) {
	c := newClock()
	a := start(t, t.TempDir(), "{}", c.now)
	id := a.must("add_task", args{"title": "x"}).ID
	lease := a.must("claim_task", args{"leaseSeconds": 1}).Lease
	c.pass(100)
	if got := a.must("complete_task", args{"id": id, "lease": lease}); got.State != "done" {
		t.Errorf("%+v", got)
	}
}

func TestFail(t *testing.T) {
	c := newClock()
	a := start(t, t.TempDir(), "{}", c.now)
	id := a.must("add_task", args{"title": "x", "maxAttempts": 2}).ID
	lease := a.must("claim_task", nil).Lease
	for range 2 { // the second one repeats the first
		if got := a.must("fail_task", args{"id": id, "lease": lease, "reason": "no network", "delaySeconds": 60}); got.State != "open" {
			t.Errorf("%+v", got)
		}
	}
	a.refused(registry.Conflict, "complete_task", args{"id": id, "lease": lease})
	if got := a.must("claim_task", nil); got.Claimed || !got.NextAt.Equal(c.Add(time.Minute)) {
		t.Errorf("%+v", got)
	}
	a.refused(registry.Conflict, "claim_task", args{"id": id})
	c.pass(60)
	got := a.must("claim_task", nil)
	if got.Task.Reason != "no network" || got.Task.Attempts != 2 {
		t.Errorf("%+v", got)
	}
	if got := a.must("fail_task", args{"id": id, "lease": got.Lease, "reason": "still none"}); got.State != "failed" {
		t.Errorf("tried twice of 2: %+v", got)
	}
	other := a.must("add_task", args{"title": "y"}).ID
	if got := a.must("fail_task", args{"id": other, "lease": a.must("claim_task", nil).Lease, "reason": "nonsense", "retry": false}); got.State != "failed" {
		t.Errorf("not to be tried again: %+v", got)
	}
	a.refused(registry.Conflict, "claim_task", args{"id": other})
}

func TestKey(t *testing.T) {
	c := newClock()
	a := start(t, t.TempDir(), "{}", c.now)
	add := func() reply { return a.must("add_task", args{"title": "x", "key": "daily", "maxAttempts": 1}) }
	first := add()
	if again := add(); !first.Added || again.Added || again.ID != first.ID {
		t.Errorf("%+v, then %+v", first, again)
	}
	claimed := a.must("claim_task", nil)
	if again := add(); again.Added {
		t.Errorf("%+v", again)
	}
	a.must("complete_task", args{"id": first.ID, "lease": claimed.Lease})
	second := add()
	if !second.Added || second.ID == first.ID {
		t.Errorf("%+v", second)
	}
	a.must("claim_task", args{"leaseSeconds": 1})
	c.pass(1) // it has failed
	if third := add(); !third.Added {
		t.Errorf("%+v", third)
	}
}

func TestBounds(t *testing.T) {
	c := newClock()
	a := start(t, t.TempDir(), `{"maxTasks": 2, "maxFinished": 2, "maxTextBytes": 10}`, c.now)
	a.refused(registry.TooLarge, "add_task", args{"title": "x", "details": "éééééé"})
	var ids []int64
	for range 5 {
		id := a.must("add_task", args{"title": "x", "details": "0123456789"}).ID
		lease := a.must("claim_task", nil).Lease
		a.refused(registry.TooLarge, "complete_task", args{"id": id, "lease": lease, "result": "01234567890"})
		a.refused(registry.TooLarge, "fail_task", args{"id": id, "lease": lease, "reason": "01234567890"})
		a.must("complete_task", args{"id": id, "lease": lease, "result": "0123456789"})
		ids = append(ids, id)
		c.pass(1)
	}
	list := a.must("list_tasks", nil)
	if len(list.Tasks) != 2 || list.Tasks[0].ID != ids[4] || list.Tasks[1].ID != ids[3] || list.Tasks[0].Details != "" {
		t.Errorf("%+v", list)
	}
	a.must("add_task", args{"title": "1"})
	a.must("add_task", args{"title": "2"})
	a.refused(registry.TooLarge, "add_task", args{"title": "3"})
	a.must("claim_task", nil)
	a.refused(registry.TooLarge, "add_task", args{"title": "3"})
	for name, with := range map[string]args{
		"no title": {}, "empty": {"title": ""}, "long": {"title": strings.Repeat("x", 201)},
		"priority": {"title": "x", "priority": 1.5}, "state": {"title": "x", "state": "done"},
		"attempts": {"title": "x", "maxAttempts": 0}, "delay": {"title": "x", "delaySeconds": -1},
	} {
		if _, code := a.call(t.Context(), "add_task", with); code != registry.InvalidArguments {
			t.Errorf("%s: %s", name, code)
		}
	}
	for _, seconds := range []any{0, 86401, "1"} {
		a.refused(registry.InvalidArguments, "claim_task", args{"leaseSeconds": seconds})
	}
}

func TestListGoesOn(t *testing.T) {
	a := start(t, t.TempDir(), "{}", nil)
	for range 7 {
		a.must("add_task", args{"title": "x"})
	}
	a.must("claim_task", args{"id": 4})
	var ids []int64
	with := args{"limit": 2, "state": "open"}
	for {
		page := a.must("list_tasks", with)
		for _, task := range page.Tasks {
			ids = append(ids, task.ID)
		}
		if page.NextBefore == 0 {
			break
		}
		with["before"] = page.NextBefore
	}
	if !slices.Equal(ids, []int64{7, 6, 5, 3, 2, 1}) {
		t.Errorf("got %v", ids)
	}
}

// A task is its tenant's: no tool of another one shows, claims, changes or counts it,
// even with its lease.
func TestTenants(t *testing.T) {
	a := start(t, t.TempDir(), `{"maxTasks": 1}`, nil)
	as := func(tenant string) context.Context {
		return rpc.WithInvocation(t.Context(), &rpc.Invocation{TenantID: tenant})
	}
	added, code := a.call(as("red"), "add_task", args{"title": "x", "key": "k"})
	if code != "" {
		t.Fatal(code)
	}
	if r, code := a.call(as("blue"), "claim_task", nil); code != "" || r.Claimed || !r.NextAt.IsZero() {
		t.Errorf("%+v, %s", r, code)
	}
	claimed, code := a.call(as("red"), "claim_task", nil)
	if code != "" || !claimed.Claimed {
		t.Fatal(claimed, code)
	}
	for _, ctx := range []context.Context{as("blue"), as(""), t.Context()} {
		for tool, with := range map[string]args{
			"get_task": {}, "remove_task": {}, "claim_task": {}, "extend_task": {"lease": claimed.Lease},
			"complete_task": {"lease": claimed.Lease}, "fail_task": {"lease": claimed.Lease, "reason": "x"},
		} {
			with["id"] = added.ID
			if _, code := a.call(ctx, tool, with); code != registry.NotFound {
				t.Errorf("%s: %s", tool, code)
			}
		}
		if r, code := a.call(ctx, "list_tasks", nil); code != "" || len(r.Tasks) != 0 || r.Counts["claimed"] != 0 {
			t.Errorf("%+v, %s", r, code)
		}
	}
	if r, code := a.call(as("blue"), "add_task", args{"title": "x", "key": "k"}); code != "" || !r.Added {
		t.Errorf("blue has a list of its own: %+v, %s", r, code)
	}
}

func TestSkippedWithoutStateFolder(t *testing.T) {
	a := start(t, "", "{}", nil)
	if st := a.res.Status(); len(st) != 1 || !strings.Contains(st[0].Skipped, "state folder") {
		t.Errorf("%+v", st)
	}
}

const childDir = "AGENTD_TEST_TASKS_DIR"

// TestMain is another process of the agent where the environment names a folder: it
// claims tasks until there are none, prints each, and then waits for its end. It
// completes those with an even number.
func TestMain(m *testing.M) {
	dir := os.Getenv(childDir)
	if dir == "" {
		os.Exit(m.Run())
	}
	res, err := resolve(dir, "{}", nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	child := agent{exit{}, res}
	for got := child.must("claim_task", nil); got.Claimed; got = child.must("claim_task", nil) {
		if got.Task.ID%2 == 0 {
			child.must("complete_task", args{"id": got.Task.ID, "lease": got.Lease})
		}
		fmt.Println(got.Task.ID)
	}
	fmt.Println("end")
	select {}
}

type exit struct{}

func (exit) Fatalf(format string, a ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", a...)
	os.Exit(1)
}

// Processes that work on one list share it without overlap. When they are killed, what
// they held is claimable again after its lease, and what they completed is not.
func TestProcessesShareAList(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts processes")
	}
	const count = 40
	dir := t.TempDir()
	a := start(t, dir, "{}", nil)
	for range count {
		a.must("add_task", args{"title": "x"})
	}
	var children []*exec.Cmd
	var outputs []*bufio.Scanner
	for range 3 {
		child := exec.CommandContext(t.Context(), os.Args[0])
		child.Env, child.Stderr = append(os.Environ(), childDir+"="+dir), os.Stderr
		out, err := child.StdoutPipe()
		if err == nil {
			err = child.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		children, outputs = append(children, child), append(outputs, bufio.NewScanner(out))
	}
	claimed := map[string]int{}
	for i, out := range outputs {
		for out.Scan() && out.Text() != "end" {
			claimed[out.Text()]++
		}
		if err := children[i].Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = children[i].Wait() // it was killed
	}
	for id, n := range claimed {
		if n != 1 {
			t.Errorf("task %s was claimed %d times", id, n)
		}
	}
	if len(claimed) != count {
		t.Errorf("%d tasks of %d were claimed", len(claimed), count)
	}
	if got := a.must("claim_task", nil); got.Claimed {
		t.Errorf("%+v is claimed twice", got)
	}
	later := start(t, dir, "{}", func() time.Time { return time.Now().Add(time.Hour) })
	for want := int64(1); want < count; want += 2 {
		if got := later.must("claim_task", nil); got.Task.ID != want {
			t.Errorf("%+v, want %d", got, want)
		}
	}
	if got := later.must("claim_task", nil); got.Claimed {
		t.Errorf("%+v was completed", got)
	}
}
