package serve

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/ownprocess"
)

// conceal keeps skills from the memory of this process, where the system can.
func conceal(log *slog.Logger) {
	if err := ownprocess.Conceal(); err != nil {
		log.Warn("skills, and whatever else runs as this user, can read the memory of this process", "error", err)
	}
}

// A console is where a command says what happens to its process: in words for a
// person, or, with --log-format json, as records of the log like everything else on
// standard error.
type console struct {
	env *cli.Env
	log *slog.Logger
}

// say reports what is as it should be. text is for a person; msg and attrs are the
// same for a log collector.
func (c console) say(text, msg string, attrs ...any) { c.write(slog.LevelInfo, text, msg, attrs) }

// fault reports what is not.
func (c console) fault(text, msg string, attrs ...any) { c.write(slog.LevelError, text, msg, attrs) }

func (c console) write(level slog.Level, text, msg string, attrs []any) {
	if !c.env.LogsJSON() {
		fmt.Fprintln(c.env.Stderr, text)
		return
	}
	c.log.Log(context.Background(), level, msg, attrs...)
}
