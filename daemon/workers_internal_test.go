package daemon

import (
	"log/slog"
	"testing"

	"github.com/agentd/agentd/daemon/health"
	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/skill"
	"github.com/agentd/agentd/skill/worker"
)

// A worker that goes down after a reload has waited for it, and before it is in force, is a
// condition as soon as it is; the next worker in its place ends that.
func TestWorkerDownBeforeItIsInForce(t *testing.T) {
	w := &workers{board: health.NewBoard(slog.New(slog.DiscardHandler))}
	stays := func(command ...string) *workerSkill {
		t.Helper()
		s := &workerSkill{workers: w, name: "stays"}
		var err error
		s.pool, err = worker.New(worker.Config{
			Name: s.name, Program: &skill.Process{Command: command}, Capabilities: []worker.Capability{{Name: "c"}},
			Changed: func(error) { w.judge(s) },
		})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	next := stays("false")
	handlers := map[string]rpc.Handler{"stays": next}
	next.pool.Begin()
	eventually.Holds(t, "the worker is down", func() bool { return next.pool.Status().Down != nil })
	if all := w.board.Active(); len(all) != 0 {
		t.Errorf("before it is in force: %+v", all)
	}
	w.use(handlers)
	if all := w.board.Active(); len(all) != 1 || all[0].Kind != health.Worker || all[0].Subject != "stays" || all[0].Code != "down" {
		t.Errorf("in force: %+v", all)
	}
	w.use(map[string]rpc.Handler{"stays": stays("cat")})
	if all := w.board.Active(); len(all) != 0 {
		t.Errorf("with another in its place: %+v", all)
	}
	if err := w.close(t.Context()); err != nil {
		t.Error(err)
	}
}
