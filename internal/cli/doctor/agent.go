package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/daemon/health"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/cli"
)

// start is what to do about an agent that does not run.
func (p *patient) start() string { return "agentd run --agent " + p.member.ID }

// running asks the running agent how it is. Its conditions are findings: it watches itself
// better than anybody could from outside.
func (p *patient) running(ctx context.Context) {
	if p.agent == nil {
		p.say(checkAgent, warn, p.start(), "does not run on this host")
		return
	}
	s, err := p.agent.Status(ctx)
	if err != nil {
		p.say(checkAgent, fail, "look into its log, and start it again", "does not answer at its control socket: %v", err)
		return
	}
	p.status = &s
	for _, c := range s.Conditions {
		if c.Kind == health.Witness || c.Kind == health.Circuit || c.Kind == health.Broker && len(s.Brokers) > 0 {
			continue // see witnesses, circuits and brokersAway
		}
		l := fail
		if c.Advisory {
			l = warn
		}
		p.say(checkAgent, l, c.Remedy, "[%s] %s: %s", c.Kind, c.Effect, c.Cause)
	}
	away := p.brokersAway(&s)
	p.waiting(&s)
	if !away && len(s.Brokers) > 0 {
		p.deadLetters(ctx)
	}
	blocked := slices.ContainsFunc(s.Conditions, func(c health.Condition) bool { return !c.Advisory })
	switch own := cli.Version(); {
	case !s.Ready && !blocked && !away:
		p.say(checkAgent, fail, "wait until it has started, or look into its log", "is not ready: %s", s.Reason)
	case s.Version != own:
		p.say(checkAgent, warn, "restart it with the new version, or use the agentd that it runs", "runs version %s, and this is agentd %s", s.Version, own)
	case s.Ready:
		p.say(checkAgent, ok, "", "ready: version %s, process %d, %s answered, %d of them failed", s.Version, s.PID, count(s.Requests, "call"), s.Errors)
	}
}

// brokersAway says which connections to brokers the running agent lacks, and reports whether it
// lacks one. The check of the broker makes connections of its own, which may go another way.
func (p *patient) brokersAway(s *control.Status) (away bool) {
	for _, b := range s.Brokers {
		if !b.Connected {
			away = true
			p.say(checkAgent, fail, "see the broker below; the agent connects again by itself", "has no connection to its broker (%s): it neither gets nor makes calls over NATS", b.Broker)
		}
	}
	return away
}

// waiting says which calls wait for a person.
func (p *patient) waiting(s *control.Status) {
	for _, a := range s.Approvals {
		text := fmt.Sprintf("%s: waiting for a person", count(a.Waiting, "call"))
		if !a.Oldest.IsZero() {
			text += ", the first since " + a.Oldest.UTC().Format(time.RFC3339)
		}
		p.say(checkAgent, warn, "agentd approvals list --agent "+p.member.ID, "%s", text)
	}
}

// deadLetters says on how many requests the queue has given up.
func (p *patient) deadLetters(ctx context.Context) {
	if p.member.ClientOnly() || !p.member.Capabilities.KeepsRequests() {
		return
	}
	list := "agentd dlq list --agent " + p.member.ID
	does, err := p.agent.Activity(ctx)
	var refused *control.RefusedError
	switch {
	case errors.As(err, &refused): // by an agent of another version, which is a finding itself
	case err != nil:
		p.say(checkAgent, warn, list, "does not say whether there are dead letters: %v", err)
	case does.Queue == nil:
		p.say(checkAgent, warn, list, "the broker has not said in time whether there are dead letters")
	case does.Queue.Dead > 0:
		p.say(checkAgent, warn, list, "dead letters: the queue has given up on %d of its requests", does.Queue.Dead)
	}
}

// peers has the running agent ask its peers what they serve now. Nobody else can: it holds the
// keys that they accept. Those that it may not call it cannot ask either, where the broker
// enforces that: all agents of a fleet may share a peers file.
func (p *patient) peers(ctx context.Context) {
	var asked []envelope.Address
	for _, peer := range p.member.Peers {
		if peer.Address != p.member.Address && p.mayCall(p.member.Address, peer.Address) {
			asked = append(asked, peer.Address)
		}
	}
	switch {
	case len(p.member.Peers) == 0:
		return
	case len(asked) == 0:
		p.say(checkPeers, skipped, "", "the agent may call none of its peers")
		return
	case p.agent == nil:
		p.say(checkPeers, skipped, "", "only the running agent can ask its peers")
		return
	}
	if len(asked) == len(p.member.Peers) {
		asked = nil // all of them, however many there are
	}
	all, err := p.agent.VerifyPeers(ctx, asked)
	if err != nil {
		p.say(checkPeers, fail, "look into the log of the agent", "cannot ask its peers: %v", err)
		return
	}
	good := 0
	for i := range all {
		if text, remedy := faultOf(&all[i]); text != "" {
			p.say(checkPeers, fail, remedy, "%s %s", all[i].Peer, text)
		} else {
			good++
		}
		if all[i].WrongClock(p.member.Agent.Security.ClockSkew) {
			p.say(checkClock, fail, "synchronize the clocks of both hosts (NTP)", "%s: %s", all[i].Peer, all[i].ClockText())
		}
	}
	if good > 0 {
		p.say(checkPeers, ok, "", "%s reachable, with the contracts that this agent was built against", count(good, "peer"))
	}
}

// faultOf says what is wrong with a peer, "" for nothing.
func faultOf(s *control.PeerStatus) (text, remedy string) {
	switch s.State {
	case control.PeerUnreachable:
		return "does not answer at " + s.Subject + ": " + s.Error, "start it; if it runs, compare its subject, its broker and its permissions with this agent's peers file"
	case control.PeerDrifted:
		reasons := []string{s.Error}
		for _, d := range s.Drifts {
			reasons = append(reasons, d.Reason)
		}
		text := "serves another contract of " + strings.Join(s.Differ, ", ") + ": " + strings.Join(slices.DeleteFunc(reasons, func(r string) bool { return r == "" }), "; ")
		return text, "bring this fleet's copy of its capabilities file up to date, or roll the peer back (docs/drift.md)"
	}
	if len(s.Contracts) > 1 {
		return fmt.Sprintf("has replicas with %d different contracts", len(s.Contracts)), "finish its roll-out, or roll it back"
	}
	return "", ""
}

// witnesses says how the witnesses of the agent's audit log are.
func (p *patient) witnesses(context.Context) {
	all := p.member.Agent.Audit.Witnesses
	switch {
	case len(all) == 0:
		p.say(checkWitnesses, skipped, "name some (audit.witnesses in agent.yaml, docs/audit.md)",
			"none: who has this host can replace the whole audit log, with its checkpoints, unseen")
		return
	case p.status == nil:
		p.say(checkWitnesses, skipped, "", "only the running agent knows whether its %s co-sign", count(len(all), "witness"))
		return
	}
	sound := true
	for _, c := range p.status.Conditions {
		if c.Kind != health.Witness {
			continue
		}
		l := fail
		if c.Advisory {
			l = warn
		}
		sound = false
		p.say(checkWitnesses, l, c.Remedy, "%s: %s", c.Effect, c.Cause)
	}
	sound = !p.lagging() && sound
	if sound {
		p.say(checkWitnesses, ok, "", "%s: %s", count(len(all), "witness"), strings.Join(addressesOf(all), ", "))
	}
}

// lagging says which witnesses have not co-signed, and reports whether there are any. The alert
// AgentdWitnessLag fires when that lasts.
func (p *patient) lagging() (found bool) {
	if p.status.Audit == nil {
		return false
	}
	for _, w := range p.status.Audit.Witnesses {
		if w.UnsignedSince.IsZero() {
			continue
		}
		found = true
		p.say(checkWitnesses, warn, fmt.Sprintf("start %s, and let this agent call it (agentd fleet peers --verify --as %s); agentd asks it again by itself", w.Witness, p.member.ID),
			"%s has not co-signed the audit log since %s: %s", w.Witness, w.UnsignedSince.UTC().Format(time.RFC3339), w.Error)
	}
	return found
}

func addressesOf(all []fleet.Witness) []string {
	names := make([]string, len(all))
	for i, w := range all {
		names[i] = string(w.Address)
	}
	return names
}

// count is a number of things, in words that agree with it.
func count(n int, thing string) string {
	switch {
	case n == 1:
		return "1 " + thing
	case strings.HasSuffix(thing, "s"):
		return fmt.Sprintf("%d %ses", n, thing)
	case strings.HasSuffix(thing, "y"):
		return fmt.Sprintf("%d %sies", n, strings.TrimSuffix(thing, "y"))
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
