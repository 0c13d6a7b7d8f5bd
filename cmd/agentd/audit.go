package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/fleet"
)

func (a *app) auditCommand() *cobra.Command {
	cmd := a.group(&cobra.Command{
		Use: "audit", Short: "Read and verify the audit logs",
		Long: "Read and verify the audit logs.\n\n" +
			"Every agent has a log of its own. Without --agent or --db the commands look at the\n" +
			"logs of all members of the fleet. They may run while the agents write.",
	})
	cmd.AddCommand(a.auditQueryCommand(), a.auditVerifyCommand())
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
	agent string // or the file, where that is all that is known
	*auditchain.Reader
}

// openLogs opens the chosen logs, and calls use with them.
func (a *app) openLogs(ctx context.Context, choice logChoice, use func([]namedLog) error) (err error) {
	sources, err := a.logSources(choice)
	if err != nil {
		return err
	}
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
		logs = append(logs, namedLog{agent: s.agent, Reader: r})
	}
	return use(logs)
}

type logSource struct{ agent, path string }

func (a *app) logSources(choice logChoice) ([]logSource, error) {
	if choice.db != "" {
		return []logSource{{agent: choice.db, path: choice.db}}, nil
	}
	f, err := a.loadFleet(fleet.LoadOptions{InspectOnly: true})
	if err != nil {
		return nil, err
	}
	paths, err := a.paths(f)
	if err != nil {
		return nil, err
	}
	var sources []logSource
	for _, m := range f.Members {
		path := daemon.AuditDB(m, paths)
		if m.ID == choice.agent {
			return []logSource{{agent: m.ID, path: path}}, nil
		}
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			sources = append(sources, logSource{agent: m.ID, path: path})
		}
	}
	switch {
	case choice.agent != "":
		return nil, fmt.Errorf("the fleet %s has no agent %q", f.Name, choice.agent)
	case len(sources) == 0:
		return nil, fmt.Errorf("no agent of the fleet %s has an audit log below %s yet: run `agentd demo` or `agentd fleet run` first", f.Name, paths.State)
	}
	return sources, nil
}
