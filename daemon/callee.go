package daemon

import (
	"context"
	"fmt"
	"maps"
	"os"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/skill"
	"github.com/agentd/agentd/transport/nats"
	"github.com/agentd/agentd/transport/nats/natsauth"
	"github.com/agentd/agentd/transport/nats/quota"
)

// openInbox builds the callee's end. No request arrives before listen.
func (d *Daemon) openInbox(ctx context.Context) (err error) {
	m := d.Member()
	if m.ClientOnly() {
		return nil
	}
	d.stats.setCapabilities(m.Capabilities.Names())
	d.stats.setTenants(d.permissions.tenants.Load().Served())
	if err := d.openAnswers(ctx); err != nil {
		return err
	}
	_, version, err := fleetVersion(os.Getenv)
	if err != nil {
		return err
	}
	handlers, err := d.handlers(d.cfg.Fleet, m)
	if err != nil {
		return err
	}
	d.inbox, err = callee.New(callee.Config{
		Self:     m.Address,
		Contract: m.Capabilities,
		Handlers: handlers,
		Records:  d.records(),
		Checks: callee.Checks{
			Authorizer:      calleeAuthorizer{&d.permissions},
			Tenants:         tenantGuard{&d.permissions},
			Limiter:         d.limiter(),
			MinFleetVersion: d.cfg.Fleet.RPC.MinFleetVersion,
		},
		Services:     map[string]callee.Service{witnessService: d.serveWitness},
		ReplyTopics:  d.replyTopics,
		Idempotency:  d.answers,
		Replays:      d.sharedReplays(),
		Identity:     &d.keyring,
		Limits:       calleeLimits(m),
		FleetVersion: version,
		Logger:       d.log,
	})
	if err != nil {
		return fmt.Errorf("%w\n(declare it under skills: in %s)", err, m.Agent.Path)
	}
	return nil
}

// limiter counts the calls that arrive. Where the process is on NATS it counts those
// to capabilities with a shared rate limit together with the agent's other replicas.
func (d *Daemon) limiter() rpc.Limiter {
	local := policy.NewRateLimiter(0)
	conn := d.jetStreamConn()
	if conn == nil {
		return local
	}
	js, err := conn.JetStream()
	if err != nil {
		d.log.Warn("rate limits are not shared", "error", err)
		return local
	}
	return quota.New(quota.Options{JetStream: js, Bucket: natsauth.LimitsBucket(d.brokerName(d.Member().Address)), Provisioned: conn.Provisioned(), Local: local, Logger: d.log})
}

// handlers returns what runs the member's skills, by skill name. It does not check that
// they cover the contract: callee.New and SetContract reject one that they do not.
func (d *Daemon) handlers(f *fleet.Fleet, m *fleet.Member) (map[string]rpc.Handler, error) {
	variables, err := f.EnvFileVariables(m)
	if err != nil {
		return nil, err
	}
	handlers := map[string]rpc.Handler{}
	for _, s := range m.Agent.Skills {
		handlers[s.Name] = d.process(s.Process, variables)
	}
	// Go functions replace processes of the same name.
	maps.Copy(handlers, d.cfg.Handlers)
	return handlers, nil
}

// process returns a skill that runs a command, with those variables of the .env files
// that it names. The variables that agentd sets come after those of agent.yaml and so
// override them: a skill must reach the agent that runs it, and no other.
func (d *Daemon) process(p *fleet.Process, variables []fleet.Variable) *skill.Process {
	return &skill.Process{
		Command: p.Command, Dir: p.Dir, InheritEnv: p.InheritEnv,
		Env: append(append(namedVariables(p, variables, os.LookupEnv), p.Env...),
			"AGENTD_SOCKET="+d.Socket(),
			"AGENTD_AGENT="+string(d.Member().Address),
			"AGENTD_FLEET_ROOT="+d.cfg.Fleet.Root),
		MaxOutputBytes: p.MaxOutputBytes, KillGrace: p.KillGrace,
		Calls: &d.calls, Logger: d.log,
	}
}

// listen accepts requests by every declared transport that this process supports.
// A transport that it does not support is no error as long as one remains: the same
// files serve a fleet in one process and one that is spread over hosts.
func (d *Daemon) listen(ctx context.Context) error {
	if d.inbox == nil {
		return nil
	}
	var kinds []capability.TransportKind
	supported := 0
	for _, spec := range d.Member().Capabilities.Transports {
		kinds = append(kinds, spec.Kind)
		t := d.transport(spec.Kind)
		if t == nil {
			d.log.Debug("transport not used in this process", "kind", spec.Kind)
			continue
		}
		if err := d.inbox.Listen(t, spec.Requests); err != nil {
			return err
		}
		// Durable requests need a broker that stores them. One mailbox serves the
		// agent, however many NATS transports it declares.
		if conn, ok := t.(*nats.Conn); ok && d.mailbox == nil {
			if err := d.listenDurable(ctx, conn, spec.Requests); err != nil {
				return err
			}
		}
		supported++
	}
	if supported == 0 {
		return fmt.Errorf("this process supports none of the agent's transports %v, so nobody could call it", kinds)
	}
	return nil
}

// replyTopics are where the files say that a caller takes its answers.
func (d *Daemon) replyTopics(caller envelope.Address) []string {
	if p, ok := d.Member().Peer(caller); ok {
		return p.ReplyTopics
	}
	return nil
}
