package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/skill/worker"
)

// Under calls that crash, hang and break the protocol, and with processes that are killed at
// any moment, each call has one outcome, and none is run twice: a call that was given to
// another process had not begun.
func TestStorm(t *testing.T) {
	t.Parallel()
	const callers, rounds = 12, 25
	p, log := pool(t, "rogue", func(c *worker.Config) {
		c.Instances, c.MaxCalls = 3, 40
		c.Program.KillGrace = 50 * time.Millisecond
	})
	notes := filepath.Join(t.TempDir(), "notes")
	var succeeded, failed atomic.Int64
	var all sync.WaitGroup
	for n := range callers {
		all.Go(func() {
			for round := range rounds {
				capability := "note"
				if n == 0 {
					capability = []string{"crash", "garbage", "hang", "twice", "flood"}[round%5]
				}
				payload, _ := json.Marshal(fmt.Sprintf("%s %d-%d", notes, n, round))
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				if capability == "hang" {
					cancel()
					ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
				}
				_, err := p.Handle(ctx, &rpc.Invocation{Capability: capability, Payload: payload})
				cancel()
				var public *rpc.SkillError
				switch {
				case err == nil:
					succeeded.Add(1)
				case errors.As(err, &public) || errors.Is(err, context.DeadlineExceeded):
					failed.Add(1)
				default:
					t.Errorf("%s: %v", capability, err)
				}
				if n == 1 && round%8 == 0 {
					var pid int
					if text, err := call(t.Context(), p, "pid", "null"); err == nil && json.Unmarshal([]byte(text), &pid) == nil {
						_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
					}
				}
			}
		})
	}
	all.Wait()
	if sum := succeeded.Load() + failed.Load(); sum != callers*rounds || succeeded.Load() == 0 {
		t.Errorf("%d calls have %d outcomes, %d of them good\n%.2000s", callers*rounds, sum, succeeded.Load(), log)
	}
	text, err := os.ReadFile(notes)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, note := range strings.Fields(string(text)) {
		if seen[note] {
			t.Errorf("the call %s has run twice", note)
		}
		seen[note] = true
	}
	if s := p.Status(); s.Running != 0 || s.Waiting != 0 {
		t.Errorf("%+v", s)
	}
}
