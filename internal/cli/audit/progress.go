package audit

import (
	"context"
	"sync"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/output"
	"github.com/agentd/agentd/internal/progress"
)

// watchInterval is the time between two looks at a log that is being erased from.
const watchInterval = 500 * time.Millisecond

// watchErasure shows on a terminal how far an erasure of about total records has come,
// until the returned function is called. The log itself tells: the agent that has it open
// may do the work. Each look opens and closes it, since erased pages stay in the write-ahead
// log for as long as a reader is open.
func watchErasure(ctx context.Context, env *cli.Env, doing string, log Source, total int64) (stop func()) {
	line := progress.New(env.Stderr, env.Getenv, doing+" "+output.Printable(log.Agent), "records")
	if line == nil {
		return func() {}
	}
	line.Set(0, total)
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		begun := int64(-1)
		for ticker := time.NewTicker(watchInterval); ; {
			if n, err := countErased(ctx, log.DB); err == nil {
				if begun < 0 {
					begun = n
				}
				line.Set(min(n-begun, total), total)
			}
			select {
			case <-ticker.C:
			case <-ctx.Done():
				ticker.Stop()
				return
			}
		}
	})
	return func() {
		cancel()
		watching.Wait()
		line.End()
	}
}

func countErased(ctx context.Context, path string) (int64, error) {
	r, err := auditchain.OpenReader(ctx, path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = r.Close() }() // nothing was written
	return r.CountErased(ctx)
}

// verifying shows how far the verification of a log has come.
func verifying(env *cli.Env, log Log) *progress.Line {
	return progress.New(env.Stderr, env.Getenv, "verifying "+output.Printable(log.Agent), "records")
}
