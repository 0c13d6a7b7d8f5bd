package natsauth

import (
	"errors"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
)

// maxReplies is how many messages a callee may publish for one call that reports
// progress: in ten minutes the 50 events a second to which package rpc limits
// skills, as many again in the first burst, and the reply.
const maxReplies = 50*10*60 + 50 + 1

// Rules are what each member may do on the broker.
type Rules struct {
	// Fleet is the fleet's name.
	Fleet string `json:"fleet"`
	// Users are the members that use NATS, in declared order.
	Users []User `json:"users"`
	// Queues are what members use of JetStream, for those that use it.
	Queues []Queue `json:"queues"`
	// External are peers that are not members: the operator of the broker gives them
	// users of their own.
	External []envelope.Address `json:"external"`
}

// A User is one member's permissions. All subjects may contain NATS wildcards.
type User struct {
	// ID is the member's id.
	ID string `json:"id"`
	// InboxPrefix is the parent subject of its reply inboxes.
	InboxPrefix string `json:"inboxPrefix"`
	// Publish are the subjects to which it may publish. Empty means none.
	Publish []string `json:"publish"`
	// Subscribe are the subjects to which it may subscribe. Never empty.
	Subscribe []string `json:"subscribe"`
	// Responds reports whether it may reply to requests.
	Responds bool `json:"responds"`
	// Answers is how many messages it publishes for each request: one, or more if a
	// capability reports progress. It is 0 for a user that may not reply. The broker
	// does not count them.
	Answers int `json:"answers"`
}

// Options narrow the rules.
type Options struct {
	// Allowed reports whether one agent may call any capability of another, as package
	// policy decides. Nil allows all calls that the peers files list.
	Allowed func(from, to envelope.Address) bool
}

// ErrNoNATS means that no member uses NATS.
var ErrNoNATS = errors.New("no member of the fleet has a transport of kind nats, nor a peer that has one")

// Derive derives the rules of a fleet. It fails if two members would share a subject,
// or if no rule can be made for a subject; the error contains every fault.
func Derive(f *fleet.Fleet, opts Options) (*Rules, error) {
	if err := checkSubjects(f); err != nil {
		return nil, err
	}
	r := &Rules{Fleet: f.Name, Users: []User{}, Queues: []Queue{}, External: []envelope.Address{}}
	callers, external := callersOf(f, opts), map[envelope.Address]bool{}
	for _, m := range f.Members {
		if u, ok := newUser(f, m, opts); ok {
			if u.Responds {
				u.Publish = append(u.Publish, answerSubjects(m, callers[m.Address])...)
			}
			r.Users = append(r.Users, u)
			if q, ok := newQueue(f, m, opts); ok {
				r.Queues = append(r.Queues, q)
			}
		}
		for _, p := range m.Peers {
			if !p.InFleet && len(natsSubjects(p.Transports)) > 0 && !external[p.Address] {
				external[p.Address] = true
				r.External = append(r.External, p.Address)
			}
		}
	}
	if len(r.Users) == 0 {
		return nil, ErrNoNATS
	}
	return r, nil
}

// newUser derives the user of a member, but for the answers that it may send. ok is
// false for a member that does not use NATS.
func newUser(f *fleet.Fleet, m *fleet.Member, opts Options) (u User, ok bool) {
	u = User{ID: m.ID, InboxPrefix: InboxPrefix(m.ID), Publish: []string{}}
	u.Subscribe = []string{u.InboxPrefix + ".>"}
	u.addCallee(f, m)
	u.addCaller(f, m, opts)
	return u, u.Responds || len(u.Publish) > 0
}

// addCallee adds what serving requests takes: the requests themselves, and discovery
// (ADR-32).
func (u *User) addCallee(f *fleet.Fleet, m *fleet.Member) {
	requests := requestSubjects(m)
	if len(requests) == 0 {
		return
	}
	u.Responds, u.Answers = true, 1
	if m.Capabilities.PublishesProgress() {
		u.Answers = maxReplies
	}
	for _, subject := range requests {
		// Right below the subject are those of cancellations, services and durable calls.
		u.Subscribe = append(u.Subscribe, subject, subject+".*")
		u.Publish = append(u.Publish, ChangedSubject(subject))
	}
	service := ServiceName(f.BrokerName(m.Address))
	u.Subscribe = append(u.Subscribe, "$SRV.*", "$SRV.*."+service, "$SRV.*."+service+".*")
	// To find another fleet's agent of the same name, and its own replicas.
	u.Publish = append(u.Publish, "$SRV.STATS."+service, InboxPrefix(m.ID)+".>")
}

// addCaller adds what calling its peers takes. A peer that the member may not call
// gets no requests, but may still witness the member's audit log: that is no call of
// a capability, and permissions do not cover it.
func (u *User) addCaller(f *fleet.Fleet, m *fleet.Member, opts Options) {
	for _, p := range m.Peers {
		subjects := natsSubjects(p.Transports)
		if p.Address == m.Address || !opts.allows(m.Address, p.Address) {
			if witnesses(m, p.Address) {
				for _, subject := range subjects {
					u.Publish = append(u.Publish, subject+".witness")
				}
			}
			continue
		}
		if len(subjects) == 0 {
			continue
		}
		for _, subject := range subjects {
			u.Publish = append(u.Publish, subject, subject+".*")
			u.Subscribe = append(u.Subscribe, ChangedSubject(subject))
		}
		u.Publish = append(u.Publish, "$SRV.*."+ServiceName(f.BrokerName(p.Address)))
	}
}

func (o Options) allows(from, to envelope.Address) bool {
	return o.Allowed == nil || o.Allowed(from, to)
}
