package fleet

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/daemon/health"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/output"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/transport/nats"
)

// whereLocal is where an instance runs that answers on its socket.
const whereLocal = "local"

// statusTimeout bounds how long all agents together may take to answer.
const statusTimeout = 10 * time.Second

// An instance is one running instance of a member, or a member that does not run.
type instance struct {
	Agent string `json:"agent"`
	// Where is local or nats, and "" for a member that does not run.
	Where    string `json:"where,omitempty"`
	Instance string `json:"instance,omitempty"`
	// State is ready, not-ready or down.
	State   string    `json:"state"`
	Version string    `json:"version,omitempty"`
	Digest  string    `json:"digest,omitempty"`
	Started time.Time `json:"started,omitzero"`
	// Requests is the number of calls answered, Errors of those that failed.
	Requests int `json:"requests"`
	Errors   int `json:"errors"`
	// Running and Waiting are the numbers of requests that are served and that wait for
	// it, and Dropped of messages that came too fast. Only local instances report them,
	// as well as what follows.
	Running int    `json:"running"`
	Waiting int    `json:"waiting"`
	Dropped uint64 `json:"dropped"`
	// DescendantsEnded counts the processes that its skills have left, and that agentd has
	// ended.
	DescendantsEnded int64 `json:"descendantsEnded,omitempty"`
	// Capabilities are those that have been called, and Breakers those of the
	// capabilities that the instance has called.
	Capabilities []control.CapabilityLoad `json:"capabilities,omitempty"`
	Breakers     []control.Breaker        `json:"breakers,omitempty"`
	// Workers are its skills that stay.
	Workers []control.Worker `json:"workers,omitempty"`
	// Tools are what it may use.
	Tools []control.Tools `json:"tools,omitempty"`
	// MCP are the MCP clients that it serves.
	MCP []control.MCPClient `json:"mcp,omitempty"`
	// MCPServers are the URLs where it serves them over HTTP.
	MCPServers []string `json:"mcpServers,omitempty"`
	// ControlClients and ControlServers are the same of its control API.
	ControlClients []control.MCPClient `json:"controlClients,omitempty"`
	ControlServers []string            `json:"controlServers,omitempty"`
	// Tenants are those that its agent.yaml lists.
	Tenants []control.TenantLoad `json:"tenants,omitempty"`
	// Notes are what somebody should look at, the most important first.
	Notes []string `json:"notes,omitempty"`
	// Conditions are the same for programs: each with a kind and a code that stay from version
	// to version, beside its text.
	Conditions []health.Condition `json:"conditions,omitempty"`
}

// note adds what somebody should look at.
func (i *instance) note(kind health.Kind, subject, code, text, remedy string) {
	i.Notes = append(i.Notes, text)
	i.Conditions = append(i.Conditions, health.Condition{Kind: kind, Subject: subject, Code: code, Effect: text, Remedy: remedy, Advisory: kind != health.Agent})
}

// The states of an instance.
const (
	stateReady    = "ready"
	stateNotReady = "not-ready"
	stateDown     = "down"
)

// Status prints which members run, on this machine and on the fleet's NATS
// system. The error is a finding unless all of them are ready.
func Status(ctx context.Context, env *cli.Env) error {
	f, paths, err := env.InspectFleet()
	if err != nil {
		return err
	}
	// One bound for sockets and broker together: a status that hangs is of no use.
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	found, err := localInstances(ctx, f, paths)
	if err != nil {
		return err
	}
	remote, err := daemon.FindAgents(ctx, f, nats.FromEnv(env.Getenv))
	if err != nil { // the local agents are worth showing while the broker is down
		fmt.Fprintf(env.Stderr, "agents elsewhere are not shown: %v\n", err)
	}
	for _, s := range remote {
		// An agent on this machine answers on NATS, too; its own answer counts.
		if !slices.ContainsFunc(found, func(i instance) bool { return i.Instance == s.Instance }) {
			found = append(found, newInstance("nats", s))
		}
	}
	all := byMember(f, found)
	if err := writeInstances(env, all); err != nil {
		return err
	}
	if slices.ContainsFunc(all, func(i instance) bool { return i.State != stateReady }) {
		return cli.Finding(nil)
	}
	return nil
}

// localInstances asks the members that run on this machine, on their sockets.
func localInstances(ctx context.Context, f *fleet.Fleet, paths daemon.Paths) ([]instance, error) {
	running, err := paths.Running(ctx)
	if err != nil {
		return nil, err
	}
	var found []instance
	for _, id := range running {
		// A socket of an agent that fleet.yaml no longer lists.
		if _, ok := f.Member(id); !ok {
			continue
		}
		client := control.NewClient(paths.Socket(id))
		s, err := client.Status(ctx)
		client.Close()
		if err != nil {
			// It has a socket and does not answer properly, which is worth a row of
			// its own rather than "down".
			silent := instance{Agent: id, Where: whereLocal, State: stateNotReady}
			silent.note(health.Agent, "", "no-answer", err.Error(), "look into its log, and start it again")
			found = append(found, silent)
			continue
		}
		found = append(found, newInstance(whereLocal, s))
	}
	return found, nil
}

// newInstance converts an agent's answer. The reason why an agent is not ready
// comes before its other notes, since the table shows only the first.
func newInstance(where string, s control.Status) instance {
	i := instance{
		Agent: s.Agent.ID(), Where: where, Instance: s.Instance, State: stateReady, Version: s.Version, Digest: s.Digest,
		Started: s.Started, Requests: s.Requests, Errors: s.Errors, Notes: s.Warnings, Conditions: s.Conditions,
		Dropped: s.Dropped, DescendantsEnded: s.DescendantsEnded, Capabilities: s.Capabilities, Breakers: s.Breakers, Tenants: s.Tenants, Tools: s.Tools, Workers: s.Workers, MCP: s.MCP, MCPServers: s.MCPServers,
		ControlClients: s.ControlClients, ControlServers: s.ControlServers,
	}
	for _, c := range s.Tools {
		if c.Skipped != "" {
			i.note(health.Tools, c.Key, "skipped", fmt.Sprintf("the capability %s was skipped: %s", c.Key, c.Skipped), "")
		}
	}
	for _, w := range s.Workers {
		if w.Restarts > 0 {
			i.note(health.Worker, w.Skill, "replaced", fmt.Sprintf("the worker %s was replaced after faults, so far %d; its log has the reasons (%d of %d serve)", w.Skill, w.Restarts, w.Serving, w.Instances), "")
		}
	}
	for _, l := range s.Capabilities {
		i.Running += l.Running
		i.Waiting += l.Waiting
	}
	if !s.Ready {
		i.State = stateNotReady
		if s.Reason != "" {
			i.Notes = append([]string{s.Reason}, i.Notes...)
		}
	}
	return i
}

// byMember sorts the instances as fleet.yaml lists the members, adds a row for
// each member that does not run, and notes instances whose contract is not that
// of the member's file.
func byMember(f *fleet.Fleet, found []instance) []instance {
	var all []instance
	for _, m := range f.Members {
		before := len(all)
		for _, i := range found {
			if i.Agent != m.ID {
				continue
			}
			if !m.ClientOnly() && i.Digest != "" && i.Digest != m.Capabilities.Digest() {
				i.note(health.Contract, "", "not-reloaded", "offers something else than its file: it has not reloaded the file", "agentd reload, or see why the last one was refused")
			}
			all = append(all, i)
		}
		if len(all) == before {
			all = append(all, downMember(m.ID))
		}
	}
	return all
}

// downMember is the row of a member that runs nowhere. The table has no note for it: its state
// says everything.
func downMember(id string) instance {
	i := instance{Agent: id, State: stateDown}
	i.note(health.Agent, "", "down", "no instance of the agent answers: calls to it fail", "start it: agentd run --agent "+id)
	i.Notes = nil
	return i
}

// writeInstances prints one row for each instance; a member that runs twice has
// two.
func writeInstances(env *cli.Env, all []instance) error {
	if env.Format != output.Table {
		return cli.WriteList(env, all)
	}
	rows := make([][]string, len(all))
	for n, i := range all {
		uptime, requests, errs, running, waiting, circuits, note := "-", "-", "-", "-", "-", "-", ""
		if !i.Started.IsZero() {
			uptime = time.Since(i.Started).Round(time.Second).String()
			requests, errs = strconv.Itoa(i.Requests), strconv.Itoa(i.Errors)
		}
		if i.Where == whereLocal {
			running, waiting, circuits = strconv.Itoa(i.Running), strconv.Itoa(i.Waiting), circuitsOf(i.Breakers)
		}
		if note = clientsOf(i.MCP); len(i.Notes) > 0 {
			note = i.Notes[0] // what is wrong comes first
		}
		rows[n] = []string{i.Agent, orDash(i.Where), i.State, orDash(i.Version), shortDigest(i.Digest), uptime, requests, errs, running, waiting, circuits, note}
	}
	return env.WriteTable([]string{"AGENT", "WHERE", "STATE", "VERSION", "DIGEST", "UPTIME", "CALLS", "ERRORS", "RUNNING", "WAITING", "CIRCUITS", "NOTE"}, rows)
}

// clientsOf names the MCP clients that an agent serves, "" for none.
func clientsOf(all []control.MCPClient) string {
	names := make([]string, len(all))
	for n, c := range all {
		names[n] = c.Client
	}
	if len(names) == 0 {
		return ""
	}
	return "serves the MCP clients " + strings.Join(names, ", ")
}

// circuitsOf counts the breakers that are not closed, by their state.
func circuitsOf(all []control.Breaker) string {
	open, halfOpen := 0, 0
	for _, b := range all {
		//exhaustive:enforce
		switch b.State {
		case policy.BreakerOpen:
			open++
		case policy.BreakerHalfOpen:
			halfOpen++
		case policy.BreakerClosed:
		}
	}
	switch {
	case len(all) == 0:
		return "-"
	case open > 0 && halfOpen > 0:
		return fmt.Sprintf("%d open, %d half-open", open, halfOpen)
	case open > 0:
		return fmt.Sprintf("%d open", open)
	case halfOpen > 0:
		return fmt.Sprintf("%d half-open", halfOpen)
	}
	return "closed"
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
