package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/output"
	"github.com/agentd/agentd/transport/nats"
)

// statusTimeout bounds how long the agents may take to answer.
const statusTimeout = 10 * time.Second

func (a *app) fleetStatusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show which members run, here and elsewhere",
		Long: "Show which members run: on this machine, by their control sockets, and anywhere on the NATS\n" +
			"system that the fleet's files or AGENTD_NATS_URL name, as NATS services. An agent that only\n" +
			"calls others is no service, and shown only on its own machine.\n\n" +
			"The exit status is 3 when a member does not run, or is not ready.",
		Example: "  agentd fleet status\n" +
			"  agentd fleet status -o json | jq -r '.[] | select(.state != \"ready\") | .agent'",
		Args: cobra.NoArgs,
		RunE: a.do(func(ctx context.Context, _ []string) error { return a.fleetStatus(ctx) }),
	}
}

// A statusRow is one running instance of a member, or a member that does not run.
type statusRow struct {
	Agent string `json:"agent"`
	// Where is local or nats, or "" for a member that does not run.
	Where    string `json:"where,omitempty"`
	Instance string `json:"instance,omitempty"`
	// State is ready, not-ready or down.
	State   string    `json:"state"`
	Version string    `json:"version,omitempty"`
	Digest  string    `json:"digest,omitempty"`
	Started time.Time `json:"started,omitzero"`
	// Requests and Errors count the calls that it has answered.
	Requests int `json:"requests"`
	Errors   int `json:"errors"`
	// Notes are what somebody should look at.
	Notes []string `json:"notes,omitempty"`
}

const (
	stateReady    = "ready"
	stateNotReady = "not-ready"
	stateDown     = "down"
)

func (a *app) fleetStatus(ctx context.Context) error {
	f, err := a.loadFleet(fleet.LoadOptions{InspectOnly: true})
	if err != nil {
		return err
	}
	paths, err := a.paths(f)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	rows, err := localStatus(ctx, f, paths)
	if err != nil {
		return err
	}
	elsewhere, err := daemon.FindAgents(ctx, f, nats.FromEnv(a.getenv))
	if err != nil {
		fmt.Fprintf(a.stderr, "agents elsewhere are not shown: %v\n", err)
	}
	for _, s := range elsewhere {
		if !slices.ContainsFunc(rows, func(r statusRow) bool { return r.Instance == s.Instance }) {
			rows = append(rows, rowOf("nats", s))
		}
	}
	rows = byMember(f, rows)
	if err := a.writeStatus(rows); err != nil {
		return err
	}
	if slices.ContainsFunc(rows, func(r statusRow) bool { return r.State != stateReady }) {
		return &exitError{code: exitFinding}
	}
	return nil
}

// localStatus asks the agents that run on this machine.
func localStatus(ctx context.Context, f *fleet.Fleet, paths daemon.Paths) ([]statusRow, error) {
	running, err := paths.Running(ctx)
	if err != nil {
		return nil, err
	}
	var rows []statusRow
	for _, id := range running {
		if _, ok := f.Member(id); !ok {
			continue
		}
		client := control.NewClient(paths.Socket(id))
		s, err := client.Status(ctx)
		client.Close()
		if err != nil {
			rows = append(rows, statusRow{Agent: id, Where: "local", State: stateNotReady, Notes: []string{err.Error()}})
			continue
		}
		rows = append(rows, rowOf("local", s))
	}
	return rows, nil
}

func rowOf(where string, s control.Status) statusRow {
	r := statusRow{
		Agent: s.Agent.ID(), Where: where, Instance: s.Instance, State: stateReady, Version: s.Version, Digest: s.Digest,
		Started: s.Started, Requests: s.Requests, Errors: s.Errors, Notes: s.Warnings,
	}
	if !s.Ready {
		r.State = stateNotReady
		if s.Reason != "" {
			r.Notes = append([]string{s.Reason}, r.Notes...)
		}
	}
	return r
}

// byMember sorts the rows as the fleet lists its members, with one for each that
// does not run.
func byMember(f *fleet.Fleet, rows []statusRow) []statusRow {
	var all []statusRow
	for _, m := range f.Members {
		before := len(all)
		for _, r := range rows {
			if r.Agent != m.ID {
				continue
			}
			if !m.ClientOnly() && r.Digest != "" && r.Digest != m.Capabilities.Digest() {
				r.Notes = append(r.Notes, "offers something else than its file says: it has not been loaded again")
			}
			all = append(all, r)
		}
		if len(all) == before {
			all = append(all, statusRow{Agent: m.ID, State: stateDown})
		}
	}
	return all
}

func (a *app) writeStatus(rows []statusRow) error {
	if a.output != output.Table {
		return writeList(a, rows)
	}
	dash := func(s string) string {
		if s == "" {
			return "-"
		}
		return output.Printable(s)
	}
	cells := make([][]string, len(rows))
	for i, r := range rows {
		uptime, requests, errs, note := "-", "-", "-", ""
		if !r.Started.IsZero() {
			uptime = time.Since(r.Started).Round(time.Second).String()
			requests, errs = strconv.Itoa(r.Requests), strconv.Itoa(r.Errors)
		}
		if len(r.Notes) > 0 {
			note = r.Notes[0]
		}
		cells[i] = []string{r.Agent, dash(r.Where), r.State, dash(r.Version), shortDigest(r.Digest), uptime, requests, errs, output.Printable(note)}
	}
	return output.WriteTable(a.stdout, []string{"AGENT", "WHERE", "STATE", "VERSION", "DIGEST", "UPTIME", "CALLS", "ERRORS", "NOTE"}, cells)
}
