package daemon

import (
	"os"
	"slices"

	"github.com/agentd/agentd/daemon/control"
)

// Status is what the control API shows about the agent. docs/running.md explains it.
func (d *Daemon) Status() control.Status {
	member, calls := d.Member(), d.stats.calls.Total()
	s := control.Status{
		Agent: member.Address, Fleet: d.cfg.Fleet.Name, Version: d.cfg.Version, PID: os.Getpid(), Started: d.started,
		Ready: true, Warnings: d.Warnings(), Conditions: slices.Concat(d.conditions.Active(), d.brokerTrouble(), d.overload(), d.refusedReload(), d.unconfined(), d.toolTrouble(), d.httpTrouble(), d.usedTrouble(), d.mcp.issuerTrouble()), Requests: calls.Requests, Errors: calls.Errors,
	}
	if err := d.Ready(); err != nil {
		s.Ready, s.Reason = false, err.Error()
	}
	// The control API answers while the agent is still starting: d.announcement and
	// what follows it in start are set only once it is ready.
	if s.Ready && d.announcement != nil {
		s.Instance = d.announcement.ID()
	}
	if !member.ClientOnly() {
		s.Digest = member.Capabilities.Digest()
	}
	d.addLoad(&s)
	d.addSignals(&s)
	if tools := d.tools.Load(); tools != nil {
		for _, c := range tools.Status() {
			s.Tools = append(s.Tools, control.Tools(c))
		}
	}
	s.MCP, s.MCPServers = d.mcp.status(), d.mcp.urls()
	s.ControlClients, s.ControlServers = d.clients.status()
	for _, t := range d.transports {
		s.Transports = append(s.Transports, t.Kind())
	}
	return s
}
