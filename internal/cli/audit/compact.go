package audit

import (
	"context"
	"fmt"
	"os"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/output"
	"github.com/agentd/agentd/internal/progress"
)

// A compacted is the outcome for one log: bytes of its database before and after.
type compacted struct {
	Agent  string `json:"agent"`
	Before int64  `json:"before"`
	After  int64  `json:"after"`
}

// Compact writes the database of one log anew without its free pages. It never goes through
// a running agent, whose calls would wait meanwhile.
func Compact(ctx context.Context, env *cli.Env, logs Choice) error {
	sources, err := findSources(env, logs)
	if err != nil {
		return err
	}
	if len(sources) > 1 {
		return ambiguous(sources)
	}
	s := sources[0]
	if _, err := os.Stat(s.DB); err != nil {
		return err // opening would begin a log
	}
	line := progress.New(env.Stderr, env.Getenv, "compacting "+output.Printable(s.Agent), "databases")
	c, err := auditchain.Compact(ctx, s.DB, auditchain.Options{})
	line.End()
	if err != nil {
		return err
	}
	if env.Format != output.Table {
		return env.WriteJSON(compacted{s.Agent, c.Before, c.After})
	}
	_, err = fmt.Fprintf(env.Stdout, "%s: %s bytes before, %s after\n", s.Agent, progress.Count(c.Before), progress.Count(c.After))
	return err
}
