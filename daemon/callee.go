package daemon

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/agentd/agentd/daemon/skillapi"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/skill"
	"github.com/agentd/agentd/transport/nats/natsauth"
	"github.com/agentd/agentd/transport/nats/quota"
)

// openInbox builds the callee's end. No request arrives before listen.
func (d *Daemon) openInbox(ctx context.Context) (err error) {
	m := d.Member()
	if m.ClientOnly() {
		return nil
	}
	d.stats.setTenants(d.permissions.tenants.Load().Served())
	if err := d.openAnswers(ctx); err != nil {
		return err
	}
	_, version, err := fleetVersion(os.Getenv)
	if err != nil {
		return err
	}
	actions, err := d.openActions(d.cfg.Fleet, m)
	if err != nil {
		return err
	}
	d.useActions(actions) // Stop closes them, also after an error below
	handlers, err := d.handlers(ctx, d.cfg.Fleet, m, actions)
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
			Approver:        d.approvals,
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
		Tracer:       d.tracerOrNil(),
		SkillKind:    d.skillKind,
		Logger:       d.log,
	})
	if err != nil {
		return fmt.Errorf("%w\n(declare it under skills: in %s)", err, m.Agent.Path)
	}
	d.serveUsers(handlers)
	d.workers.use(handlers)
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
// they cover the contract: callee.New and SetContract reject one that they do not. They are
// those of actions, too, which it completes.
func (d *Daemon) handlers(ctx context.Context, f *fleet.Fleet, m *fleet.Member, actions *actionSet) (map[string]rpc.Handler, error) {
	variables, err := f.EnvFileVariables(m)
	if err != nil {
		return nil, err
	}
	handlers, private := map[string]rpc.Handler{}, d.privateFiles()
	switches := slices.ContainsFunc(d.processSkills(m), func(s fleet.Skill) bool { return s.Sandbox != nil && s.Sandbox.User != nil })
	for _, s := range m.Agent.Skills {
		if s.Inline && d.cfg.Handlers[s.Name] == nil {
			return nil, fmt.Errorf("%s:%d: the skill %q is inline, and this program has no Go function of that name", s.Position.File, s.Position.Line, s.Name)
		}
		if d.cfg.Handlers[s.Name] != nil || s.Worker != nil && len(capabilitiesOf(m, s)) == 0 {
			continue // a Go function replaces the process of the same name, and a worker serves something
		}
		if s.MCP != nil {
			continue // below
		}
		if s.Action != nil {
			handlers[s.Name] = actionSkill{d, actions, s.Name}
			continue
		}
		if s.HTTP != nil {
			if handlers[s.Name], err = d.httpService(m, s, variables, actions); err != nil {
				return nil, err
			}
			continue
		}
		if handlers[s.Name], err = d.program(ctx, f, m, s, variables, switches, private); err != nil {
			return nil, err
		}
	}
	tools, err := d.toolSkills(ctx, f, m, actions)
	if err != nil {
		return nil, err
	}
	maps.Copy(handlers, tools)
	maps.Copy(handlers, d.cfg.Handlers)
	for name, h := range handlers {
		s, _ := m.Agent.Skill(name)
		handlers[name] = toolSkill{d: d, skill: h, inline: s.Inline || rpc.IsInline(h)}
	}
	actions.handlers = handlers
	return handlers, nil
}

// program returns a skill that is a program of its own, which is started for each call, or
// stays as a worker. switches says that some skill runs as another user.
func (d *Daemon) program(ctx context.Context, f *fleet.Fleet, m *fleet.Member, s fleet.Skill, variables []fleet.Variable, switches bool, private privateFiles) (rpc.Handler, error) {
	if err := checkTypeScript(ctx, s); err != nil {
		return nil, err
	}
	api, err := d.openSkillAPI(ctx)
	if err != nil {
		return nil, err
	}
	c, err := d.openConfinement(ctx, switches)
	if err != nil {
		return nil, err
	}
	user, err := d.userOf(ctx, c, s)
	if err != nil {
		return nil, err
	}
	process := d.process(s.Process, variables, api)
	process.Usage = d.programs.of(s.Name)
	if process.Sandbox, err = d.confine(c, f, m, s, user, api.URL(), private); err != nil {
		return nil, err
	}
	if process.Sandbox != nil && !process.Sandbox.Policy.Off {
		process.Builds = c.placeOf(user).builds
	}
	if user != nil {
		process.Calls = api.As(user.UID)
	}
	if s.Worker != nil {
		return d.worker(m, s, process, api.URL())
	}
	return process, nil
}

// process returns a skill that runs a command, with those variables of the .env files
// that it names. The variables that agentd sets come after those of agent.yaml and so
// override them: a skill must reach the agent that runs it, and no other. AGENTD_SOCKET is
// that of an operator, and empty even where inheritEnv would pass one on.
func (d *Daemon) process(p *fleet.Process, variables []fleet.Variable, api *skillapi.Server) *skill.Process {
	return &skill.Process{
		Command: p.Command, Dir: p.Dir, InheritEnv: p.InheritEnv,
		Env: append(append(namedVariables(p, variables, os.LookupEnv), p.Env...),
			"AGENTD_URL="+api.URL(),
			"AGENTD_SOCKET=",
			"AGENTD_AGENT="+string(d.Member().Address),
			"AGENTD_FLEET_ROOT="+d.cfg.Fleet.Root),
		MaxOutputBytes: p.MaxOutputBytes, KillGrace: p.KillGrace,
		Calls: api, Descendants: d.descendants, Logger: d.log,
	}
}

// replyTopics are where the files say that a caller takes its answers.
func (d *Daemon) replyTopics(caller envelope.Address) []string {
	if p, ok := d.Member().Peer(caller); ok {
		return p.ReplyTopics
	}
	return nil
}
