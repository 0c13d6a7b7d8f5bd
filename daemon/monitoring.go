package daemon

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"

	"github.com/agentd/agentd/daemon/internal/monitoring"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/secretref"
)

// openMonitoring serves probes, metrics and profiles where the command line or the files say so:
// before anything that may take long, so that a start can be watched.
func (d *Daemon) openMonitoring(ctx context.Context) error {
	m := d.Member()
	listen := cmp.Or(d.cfg.Listen, m.Agent.Monitoring.Listen)
	if listen == "" {
		return nil
	}
	settings, err := d.monitoringSettings(d.cfg.Fleet, m)
	if err != nil {
		return err
	}
	process := monitoring.Process{Agents: []monitoring.Agent{d.monitored()}}
	if d.cfg.shared {
		process.LogsLost = d.cfg.LogsLost
	}
	d.monitoring, err = monitoring.Listen(ctx, listen, settings, d.log, process)
	if err == nil {
		d.log.Info("probes and metrics are served", "url", d.monitoring.URL())
	}
	return err
}

// monitoringSettings are those of the server in a member's files, and of the command line.
func (d *Daemon) monitoringSettings(f *fleet.Fleet, member *fleet.Member) (s monitoring.Settings, err error) {
	m := &member.Agent.Monitoring
	s = monitoring.Settings{Insecure: m.Insecure, Hosts: m.Hosts, Profiles: m.Profiles || d.cfg.Profiles}
	if m.Token != "" {
		variables, err := f.EnvFileVariables(member)
		if err != nil {
			return s, err
		}
		if s.Token, err = secretref.Resolve(m.Token, lookup(variables)); err != nil {
			return s, fmt.Errorf("monitoring.token: %w", err)
		}
		if s.Token == "" {
			return s, fmt.Errorf("monitoring.token: %s is empty", m.Token)
		}
	}
	if m.TLS != nil {
		cert, err := tls.LoadX509KeyPair(m.TLS.Cert, m.TLS.Key)
		if err != nil {
			return s, fmt.Errorf("monitoring.tls: %w", err)
		}
		s.Certificate = &cert
	}
	return s, nil
}

// reloadMonitoring reads what a reload changes of the server.
func (d *Daemon) reloadMonitoring(f *fleet.Fleet, m *fleet.Member, r *mcpReload) error {
	if d.monitoring == nil {
		return nil
	}
	settings, err := d.monitoringSettings(f, m)
	if err != nil {
		return err
	}
	use, err := d.monitoring.Prepare(settings)
	if err == nil {
		r.use = append(r.use, use)
	}
	return err
}

// monitored is the agent for a server of probes and metrics.
func (d *Daemon) monitored() monitoring.Agent {
	return monitoring.Agent{Metrics: d.Metrics(), Alive: d.alive}
}

// monitoringURL is where the agent's probes and metrics are served, "" for nowhere.
func (d *Daemon) monitoringURL() string {
	switch {
	case d.monitoring != nil:
		return d.monitoring.URL()
	case d.sharedMonitoring != nil:
		return d.sharedMonitoring.URL()
	}
	return ""
}

// alive takes each lock that calls take, one after another. It does not return while one of them
// stays shut: then calls do not return either, and never will.
func (d *Daemon) alive() {
	d.conditions.Active()
	if !d.ready.Load() { // what follows comes and goes
		return
	}
	d.client.Pending()
	d.breakers.States(d.started)
	d.gate.Verdicts()
	d.approvals.counts()
	d.stats.calls.Total()
	d.stats.tenants()
	if d.access != nil {
		d.access.state()
	}
	if d.inbox != nil {
		d.inbox.Loads()
		d.workers.status()
	}
	d.mcp.status()
	d.clients.status()
}
