package tasks_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/rpc"
)

// modelTask is what the model knows of a task.
type modelTask struct {
	id, attempts, max int64
	priority          int
	done              bool
	lease             string
	ends              time.Time
}

// free says that the task can be claimed.
func (m *modelTask) free(now time.Time) bool {
	return !m.done && m.attempts < m.max && !m.ends.After(now)
}

// Whatever two processes do, in whatever order and time: a claim gets the first task
// that is free, and nobody gets one that is not.
func TestNoTaskHasTwoHolders(t *testing.T) {
	dir := t.TempDir()
	c := newClock()
	var processes []agent
	for range 2 {
		processes = append(processes, start(t, dir, "{}", c.now))
	}
	run := 0
	rapid.Check(t, func(t *rapid.T) {
		run++ // a tenant for each, rather than a file
		ctx := rpc.WithInvocation(context.Background(), &rpc.Invocation{TenantID: fmt.Sprint(run)})
		var all []*modelTask
		for range rapid.IntRange(1, 15).Draw(t, "steps") {
			a := agent{t, rapid.SampledFrom(processes).Draw(t, "process").res}
			var some *modelTask
			if len(all) > 0 {
				some = rapid.SampledFrom(all).Draw(t, "task")
			}
			switch step := rapid.SampledFrom([]string{"add", "claim", "claim", "complete", "extend", "wait"}).Draw(t, "step"); {
			case step == "wait":
				c.pass(rapid.IntRange(1, 10).Draw(t, "seconds"))
			case step == "add" || some == nil:
				m := &modelTask{max: rapid.Int64Range(1, 3).Draw(t, "attempts"), priority: rapid.IntRange(-1, 1).Draw(t, "priority")}
				added, _ := a.call(ctx, "add_task", args{"title": "x", "maxAttempts": m.max, "priority": m.priority})
				m.id = added.ID
				all = append(all, m)
			case step == "claim":
				var want *modelTask
				for _, m := range all {
					if m.free(c.now()) && (want == nil || m.priority > want.priority) {
						want = m
					}
				}
				got, code := a.call(ctx, "claim_task", args{"leaseSeconds": 5})
				if code != "" || got.Claimed != (want != nil) || want != nil && got.Task.ID != want.id {
					t.Fatalf("claimed %+v, %s; want %+v", got, code, want)
				}
				if want != nil {
					want.attempts++
					want.lease, want.ends = got.Lease, c.Add(5*time.Second)
				}
			default:
				holds := some.lease != "" && !some.done && (some.ends.After(c.now()) || some.attempts < some.max)
				lease := some.lease
				if lease == "" {
					lease = "none"
				}
				_, code := a.call(ctx, step+"_task", args{"id": some.id, "lease": lease, "leaseSeconds": 5}.without(step == "complete", "leaseSeconds"))
				if again := step == "complete" && some.done; (code == "") != (holds || again) {
					t.Fatalf("%s of %+v at %v: %q", step, some, c.now(), code)
				}
				if holds && step == "complete" {
					some.done = true
				} else if holds {
					some.ends = c.Add(5 * time.Second)
				}
			}
		}
	})
}

func (a args) without(drop bool, key string) args {
	if drop {
		delete(a, key)
	}
	return a
}

// Many who claim at once, through connections of their own, get a task each.
func TestClaimedAtOnce(t *testing.T) {
	const workers, each = 6, 5
	dir := t.TempDir()
	filler := start(t, dir, "{}", nil)
	for range workers * each {
		filler.must("add_task", args{"title": "x"})
	}
	var mu sync.Mutex
	holders := map[int64]int{}
	var all sync.WaitGroup
	for range workers {
		a := start(t, dir, "{}", nil)
		all.Go(func() {
			for {
				got, code := a.call(context.Background(), "claim_task", nil)
				if code != "" {
					t.Error(code)
				}
				if !got.Claimed {
					return
				}
				mu.Lock()
				holders[got.Task.ID]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if len(holders) != workers*each {
		t.Errorf("%d tasks were claimed", len(holders))
	}
	for id, n := range holders {
		if n != 1 {
			t.Errorf("task %d has %d holders", id, n)
		}
	}
}
