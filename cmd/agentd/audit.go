package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/fleet"
)

func (a *app) auditCommand() *cobra.Command {
	cmd := a.group(&cobra.Command{
		Use: "audit", Short: "Read, verify, prove, export and erase audit records",
		Long: "Read, verify, prove, export and erase audit records.\n\n" +
			"Every agent has a log of its own. Without --agent or --db the commands look at the logs of\n" +
			"all members of the fleet, or ask for one. They may run while the agents write: what changes\n" +
			"a log then goes through the agent that has it open.",
	})
	cmd.AddCommand(
		a.auditQueryCommand(), a.auditStatsCommand(), a.auditExportCommand(),
		a.auditVerifyCommand(), a.auditProveCommand(), a.auditVerifyProofCommand(),
		a.auditRedactCommand(), a.auditPruneCommand(), a.auditRotateKeyCommand(),
	)
	return cmd
}

// A logChoice are the flags that say which logs to look at.
type logChoice struct{ agent, db string }

func (c *logChoice) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.agent, "agent", "", "look at this member's log only")
	cmd.Flags().StringVar(&c.db, "db", "", "look at this file instead of the fleet's logs")
	cmd.MarkFlagsMutuallyExclusive("agent", "db")
}

// A namedLog is an open log and whose it is.
type namedLog struct {
	logSource
	*auditchain.Reader
}

// openLogs opens the chosen logs, and calls use with them.
func (a *app) openLogs(ctx context.Context, choice logChoice, use func([]namedLog) error) error {
	sources, err := a.logSources(choice)
	if err != nil {
		return err
	}
	return openSources(ctx, sources, use)
}

// openLog opens the one chosen log, and calls use with it. Several are a
// mistake: what wants one could not say which it means.
func (a *app) openLog(ctx context.Context, choice logChoice, use func(namedLog) error) error {
	sources, err := a.logSources(choice)
	if err != nil {
		return err
	}
	if len(sources) > 1 {
		return severalLogs(sources)
	}
	return openSources(ctx, sources, func(logs []namedLog) error { return use(logs[0]) })
}

func severalLogs(sources []logSource) error {
	agents := make([]string, len(sources))
	for i, s := range sources {
		agents[i] = s.agent
	}
	return usage("the fleet has several logs: choose one with --agent %s, or with --db <file>", strings.Join(agents, ", --agent "))
}

func openSources(ctx context.Context, sources []logSource, use func([]namedLog) error) (err error) {
	var logs []namedLog
	defer func() {
		for _, l := range logs {
			err = errors.Join(err, l.Close())
		}
	}()
	for _, s := range sources {
		r, err := auditchain.OpenReader(ctx, s.path)
		if err != nil {
			return err
		}
		logs = append(logs, namedLog{s, r})
	}
	return use(logs)
}

// A logSource says where a log is.
type logSource struct {
	agent  string // or the file, where that is all that is known
	path   string
	socket string // of the agent that writes to it, or empty where it is not known
}

func (a *app) logSources(choice logChoice) ([]logSource, error) {
	members, fleetName, err := a.memberLogs()
	if choice.db != "" { // for which a fleet is nothing but a help
		return []logSource{{agent: choice.db, path: choice.db, socket: socketOf(choice.db, members)}}, nil
	}
	if err != nil {
		return nil, err
	}
	var sources []logSource
	for _, s := range members {
		if s.agent == choice.agent {
			return []logSource{s}, nil
		}
		if _, err := os.Stat(s.path); !errors.Is(err, fs.ErrNotExist) {
			sources = append(sources, s)
		}
	}
	switch {
	case choice.agent != "":
		return nil, fmt.Errorf("the fleet %s has no agent %q", fleetName, choice.agent)
	case len(sources) == 0:
		return nil, fmt.Errorf("no agent of the fleet %s has an audit log yet: run `agentd demo` or `agentd fleet run` first", fleetName)
	}
	return sources, nil
}

// memberLogs says where each member of the fleet has its log, or would have it.
func (a *app) memberLogs() (sources []logSource, fleetName string, err error) {
	f, err := a.loadFleet(fleet.LoadOptions{InspectOnly: true})
	if err != nil {
		return nil, "", err
	}
	paths, err := a.paths(f)
	if err != nil {
		return nil, "", err
	}
	for _, m := range f.Members {
		sources = append(sources, logSource{agent: m.ID, path: daemon.AuditDB(m, paths), socket: paths.Socket(m.ID)})
	}
	return sources, f.Name, nil
}

// socketOf finds the member whose log a file is.
func socketOf(path string, members []logSource) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	for _, s := range members {
		if own, err := os.Stat(s.path); err == nil && os.SameFile(info, own) {
			return s.socket
		}
	}
	return ""
}
