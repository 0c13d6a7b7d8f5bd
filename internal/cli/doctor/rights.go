package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	natsgo "github.com/nats-io/nats.go"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/transport/nats/natsauth"
)

// mostTried bounds the members whose subjects are tried, those that the agent may call and those
// that it may not: each attempt is a round trip, and a refusal is a line in the broker's log.
const mostTried = 16

// probe is the last part of the subjects that are tried. The rules are about the parent
// subjects; at this one nobody listens, so that nobody receives anything.
const probe = "agentd-doctor"

// An attempt is something that the agent may do on the broker, or may not.
type attempt struct {
	subject   string
	subscribe bool
	allowed   bool
	// what says it in words that follow "may" and "may not".
	what string
}

// rights tries what the rules promise the agent, and what they forbid it. A broker that
// refuses nothing lets every client read and send everything.
func (p *patient) rights(ctx context.Context, v *daemon.Visit) {
	if p.rules == nil {
		return
	}
	var missing, excess []string
	tried := 0
	for _, a := range p.attempts() {
		allowed, err := a.try(ctx, v.Calls.Client())
		if err != nil {
			p.say(checkRights, fail, "look into the log of the broker", "cannot be tried: %v", err)
			return
		}
		tried++
		switch {
		case a.allowed && !allowed:
			missing = append(missing, a.what)
		case !a.allowed && allowed:
			excess = append(excess, a.what)
		}
	}
	if len(missing) > 0 {
		p.say(checkRights, fail, "agentd fleet nats-config, and reload nats-server", "the broker does not let the agent %s", list(missing))
	}
	if len(excess) > 0 {
		p.say(checkRights, warn, "have the broker enforce who may call whom: agentd fleet nats-config", "the broker lets the agent %s, which the fleet's files forbid", list(excess))
	}
	if len(missing)+len(excess) == 0 {
		p.say(checkRights, ok, "", "as the fleet's files say: tried %s", count(tried, "right"))
	}
}

// attempts are those that show whether the broker enforces the fleet's rules. A few members
// show it: the broker has one list for each user, with all of its subjects.
func (p *patient) attempts() (all []attempt) {
	mine := p.userOf(p.member.ID)
	if mine == nil {
		return nil
	}
	all = append(all,
		attempt{mine.InboxPrefix + "." + probe, true, true, "receive the answers to its calls"},
		attempt{">", true, false, "read every message of every agent"})
	tried := map[bool]int{}
	for _, m := range p.fleet.Members {
		subjects := p.requestSubjects(m.ID)
		if m.ID == p.member.ID {
			for _, s := range subjects {
				all = append(all, attempt{s + "." + probe, true, true, "receive its requests (" + s + ")"})
			}
			continue
		}
		callable := p.mayCall(p.member.Address, m.Address)
		if tried[callable]++; tried[callable] > mostTried {
			continue
		}
		for _, s := range subjects {
			at := s + "." + probe
			all = append(all,
				attempt{at, true, p.grants(mine.Subscribe, at), "read the requests to " + m.ID},
				attempt{at, false, p.grants(mine.Publish, at), "send requests to " + m.ID})
		}
		if other := p.userOf(m.ID); other != nil {
			all = append(all, attempt{other.InboxPrefix + "." + probe, true, false, "read the answers to " + m.ID})
		}
	}
	return all
}

func (p *patient) userOf(id string) *natsauth.User {
	i := slices.IndexFunc(p.rules.Users, func(u natsauth.User) bool { return u.ID == id })
	if i < 0 {
		return nil
	}
	return &p.rules.Users[i]
}

// requestSubjects are where a member takes requests by NATS.
func (p *patient) requestSubjects(id string) (all []string) {
	m, _ := p.fleet.Member(id)
	if m.ClientOnly() {
		return nil
	}
	for _, t := range m.Capabilities.Transports {
		if t.Kind == capability.NATS && !slices.Contains(all, t.Requests) {
			all = append(all, t.Requests)
		}
	}
	return all
}

// grants reports whether one of the rules covers a subject.
func (p *patient) grants(rules []string, subject string) bool {
	return slices.ContainsFunc(rules, func(rule string) bool { return covers(rule, subject) })
}

// covers reports whether a subject with NATS wildcards covers one without.
func covers(rule, subject string) bool {
	want, have := strings.Split(rule, "."), strings.Split(subject, ".")
	for i, token := range want {
		switch {
		case token == ">":
			return i < len(have)
		case i == len(have), token != "*" && token != have[i]:
			return false
		}
	}
	return len(want) == len(have)
}

// try reports whether the broker lets a client do something. What the broker refuses it says
// before it answers the ping that follows. A subscription ends with the same write that began
// it, so that it takes no messages.
func (a attempt) try(ctx context.Context, nc *natsgo.Conn) (allowed bool, err error) {
	refusal := "Publish to " + strconv.Quote(a.subject)
	if a.subscribe {
		refusal = "Subscription to " + strconv.Quote(a.subject)
		s, err := nc.SubscribeSync(a.subject)
		if err != nil {
			return false, err
		}
		if err := s.Unsubscribe(); err != nil {
			return false, err
		}
	} else if err := nc.Publish(a.subject, nil); err != nil {
		return false, err
	}
	if err := nc.FlushWithContext(ctx); err != nil && !errors.Is(err, natsgo.ErrPermissionViolation) {
		return false, err
	}
	said := nc.LastError()
	return !errors.Is(said, natsgo.ErrPermissionViolation) || !strings.Contains(said.Error(), refusal), nil
}

// list is a list in words, of which the first few are shown.
func list(all []string) string {
	const most = 4
	if len(all) <= most {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d things more", strings.Join(all[:most], ", "), len(all)-most)
}
