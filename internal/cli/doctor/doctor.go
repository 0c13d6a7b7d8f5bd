package doctor

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/transport/nats/natsauth"
)

// checkTimeout bounds one check: a broker or a peer that is silent is a finding, and must not
// hide those that come after it.
const checkTimeout = 10 * time.Second

// A Request is one `agentd doctor`.
type Request struct {
	// Agents are the members to examine; none means those that run here, or else all.
	Agents []string
}

// Run examines the fleet's files, this host and the agents, and prints what it has found. The
// error is a finding if a check fails.
func Run(ctx context.Context, env *cli.Env, r Request) error {
	var found report
	if err := examine(ctx, env, r, &found); err != nil {
		return err
	}
	if err := found.write(env); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if found.count(fail) > 0 {
		return cli.Finding(nil)
	}
	return nil
}

// An examination has what the checks of all agents share.
type examination struct {
	*report
	env   *cli.Env
	fleet *fleet.Fleet
	paths daemon.Paths
	// mayCall is what the fleet's files permit.
	mayCall func(from, to envelope.Address) bool
	// rules are what members may do on the broker; nil where none uses NATS.
	rules *natsauth.Rules
}

// A patient is a member that is examined.
type patient struct {
	*examination
	member *fleet.Member
	// agent is a client of the running agent, and status what it says of itself. Both are nil
	// where it does not run on this host.
	agent  *control.Client
	status *control.Status
}

// examine makes all checks. The files come first: without them nothing else is known. The
// error is for a command that cannot be carried out.
func examine(ctx context.Context, env *cli.Env, r Request, found *report) error {
	x := &examination{report: found, env: env}
	sound, err := x.files()
	if err != nil || !sound {
		return err
	}
	if x.fleet, x.paths, err = env.InspectFleet(); err != nil {
		return err
	}
	members, running, err := x.members(ctx, r.Agents)
	if err != nil {
		return err
	}
	if x.mayCall, err = policy.Reach(x.fleet); err == nil {
		x.rules, err = rulesOf(x.fleet, x.mayCall)
	} else {
		x.mayCall = func(_, _ envelope.Address) bool { return true } // nobody knows
	}
	if err != nil {
		x.add("", checkRights, fail, "give each agent a subject of its own", "no permissions can be derived for the broker: %v", err)
	}
	x.sandbox(ctx, members)
	for _, m := range members {
		p := &patient{examination: x, member: m}
		if slices.Contains(running, m.ID) {
			p.agent = control.NewClient(x.paths.Socket(m.ID))
		}
		p.examine(ctx)
	}
	return nil
}

// examine makes the checks of one agent, each within its own time.
func (p *patient) examine(ctx context.Context) {
	if p.agent != nil {
		defer p.agent.Close()
	}
	for _, one := range []func(context.Context){p.running, p.calls, p.broker, p.peers, p.witnesses, p.keys, p.disk, p.ports} {
		if ctx.Err() != nil {
			return
		}
		bounded, cancel := context.WithTimeout(ctx, checkTimeout)
		one(bounded)
		cancel()
	}
}

// say adds a line about the agent.
func (p *patient) say(c check, l level, remedy, format string, args ...any) {
	p.add(p.member.ID, c, l, remedy, format, args...)
}

// members returns the members to examine, and the ids of those that run here.
func (x *examination) members(ctx context.Context, agents []string) (all []*fleet.Member, running []string, err error) {
	if running, err = x.paths.Running(ctx); err != nil {
		return nil, nil, err
	}
	wanted := agents
	if len(wanted) == 0 {
		wanted = running
	}
	ids := make([]string, len(wanted))
	for i, agent := range wanted {
		ids[i] = cli.ID(agent)
		if _, known := x.fleet.Member(ids[i]); !known && len(agents) > 0 {
			return nil, nil, cli.Usage("--agent: the fleet has no agent %q", agent)
		}
	}
	for _, m := range x.fleet.Members {
		if len(ids) == 0 || slices.Contains(ids, m.ID) {
			all = append(all, m)
		}
	}
	return all, running, nil
}

// rulesOf returns what the members may do on the broker, nil where none uses NATS.
func rulesOf(f *fleet.Fleet, mayCall func(from, to envelope.Address) bool) (*natsauth.Rules, error) {
	rules, err := natsauth.Derive(f, natsauth.Options{Allowed: mayCall})
	if errors.Is(err, natsauth.ErrNoNATS) {
		return nil, nil
	}
	return rules, err
}
