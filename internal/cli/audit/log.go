package audit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/internal/cli"
)

// A Choice selects logs: the zero value selects the log of every member of the
// fleet that has one.
type Choice struct {
	// Agent is --agent, the id of one member.
	Agent string
	// DB is --db, the path of a database, which no fleet needs to know.
	DB string
}

// A Log is an open log and where it comes from.
type Log struct {
	Source
	*auditchain.Reader
}

// A Source is the location of a log.
type Source struct {
	// Agent is the id of the member whose log it is, or the path of a database
	// that was chosen with --db.
	Agent string
	// DB is the path of the database.
	DB string
	// Socket is the control socket of the agent that writes the log, or "" when
	// no member of the fleet is known to.
	Socket string
}

// withLogs opens the chosen logs for reading, calls use with them, and closes them.
func withLogs(ctx context.Context, env *cli.Env, choice Choice, use func([]Log) error) error {
	sources, err := findSources(env, choice)
	if err != nil {
		return err
	}
	return openSources(ctx, sources, use)
}

// withOneLog is withLogs for commands that need exactly one log, such as those
// that take a record number: with several, they could not know which is meant.
func withOneLog(ctx context.Context, env *cli.Env, choice Choice, use func(Log) error) error {
	sources, err := findSources(env, choice)
	if err != nil {
		return err
	}
	if len(sources) > 1 {
		return ambiguous(sources)
	}
	return openSources(ctx, sources, func(logs []Log) error { return use(logs[0]) })
}

// ambiguous returns the usage error for a command that needs one log of several. It
// spells out the flags to choose from.
func ambiguous(sources []Source) error {
	agents := make([]string, len(sources))
	for i, s := range sources {
		agents[i] = s.Agent
	}
	return cli.Usage("the fleet has several logs: choose one with --agent %s, or with --db <file>", strings.Join(agents, ", --agent "))
}

// openSources opens every source before use runs, so that a log that cannot be
// opened fails the command before any output. It closes them in all cases, and
// joins the errors of closing to that of use.
func openSources(ctx context.Context, sources []Source, use func([]Log) error) (err error) {
	var logs []Log
	defer func() {
		for _, l := range logs {
			err = errors.Join(err, l.Close())
		}
	}()
	for _, s := range sources {
		r, err := auditchain.OpenReader(ctx, s.DB)
		if err != nil {
			return err
		}
		logs = append(logs, Log{s, r})
	}
	return use(logs)
}

// findSources locates the chosen logs. With --db a fleet is optional: it only
// helps to find the agent that has the database open.
func findSources(env *cli.Env, choice Choice) ([]Source, error) {
	// The error counts only below, when the fleet is what selects the logs.
	members, fleetName, err := memberSources(env)
	if choice.DB != "" {
		return []Source{{Agent: choice.DB, DB: choice.DB, Socket: socketOf(choice.DB, members)}}, nil
	}
	if err != nil {
		return nil, err
	}
	choice.Agent = cli.ID(choice.Agent)
	var existing []Source
	for _, s := range members {
		// A chosen member is returned even without a database: opening it reports
		// the missing file by path, which helps more than "no log".
		if s.Agent == choice.Agent {
			return []Source{s}, nil
		}
		// Only a missing file means that the member has no log yet. A file that
		// cannot be examined, for example for want of permission, must fail later
		// with that error.
		if _, err := os.Stat(s.DB); !errors.Is(err, fs.ErrNotExist) {
			existing = append(existing, s)
		}
	}
	switch {
	case choice.Agent != "":
		return nil, fmt.Errorf("the fleet %s has no agent %q", fleetName, choice.Agent)
	case len(existing) == 0:
		return nil, fmt.Errorf("no agent of the fleet %s has an audit log yet: run `agentd demo` or `agentd fleet run` first", fleetName)
	}
	return existing, nil
}

// memberSources returns where each member of the fleet has its log, or would
// have it once it runs.
func memberSources(env *cli.Env) (sources []Source, fleetName string, err error) {
	f, paths, err := env.InspectFleet()
	if err != nil {
		return nil, "", err
	}
	for _, m := range f.Members {
		sources = append(sources, Source{Agent: m.ID, DB: daemon.AuditDB(m, paths), Socket: paths.Socket(m.ID)})
	}
	return sources, f.Name, nil
}

// socketOf returns the control socket of the member whose log the file db is.
// It compares files, not paths: --db may name the log through a link.
func socketOf(db string, members []Source) string {
	info, err := os.Stat(db)
	if err != nil {
		return ""
	}
	for _, s := range members {
		if own, err := os.Stat(s.DB); err == nil && os.SameFile(info, own) {
			return s.Socket
		}
	}
	return ""
}
