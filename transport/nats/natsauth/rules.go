package natsauth

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/transport"
)

// responseLifetime is how long a request may be answered: longer than any call
// may take, which is ten minutes.
const responseLifetime = 11 * time.Minute

// maxProgress is how much progress a call of ten minutes may tell: 50 events a
// second, which package rpc holds skills to, as many more at once, and the reply.
const maxProgress = 50*10*60 + 50 + 1

// Rules are what each member may do on the broker.
type Rules struct {
	// Fleet is the fleet's name.
	Fleet string `json:"fleet"`
	// Users are the members that use NATS, in declared order.
	Users []User `json:"users"`
	// External are peers that are no members: whoever runs the broker gives them
	// users of their own.
	External []envelope.Address `json:"external"`
}

// A User is one member's permissions. All subjects may hold NATS wildcards.
type User struct {
	// ID is the member's id.
	ID string `json:"id"`
	// InboxPrefix is the subject that its reply inboxes are below.
	InboxPrefix string `json:"inboxPrefix"`
	// Publish are the subjects of its peers. Empty is none.
	Publish []string `json:"publish"`
	// Subscribe are its own subjects. Never empty.
	Subscribe []string `json:"subscribe"`
	// Responds reports whether it may answer requests.
	Responds bool `json:"responds"`
	// Answers is how many messages it may publish for each request: one, and
	// more where a capability tells of its progress. 0 where it may not answer.
	Answers int `json:"answers"`
}

// Options narrow the rules.
type Options struct {
	// Allowed, if not nil, decides whether one agent may call any capability of
	// another: package policy knows. Nil allows what the peers files list.
	Allowed func(from, to envelope.Address) bool
}

// ErrNoNATS says that no member uses NATS.
var ErrNoNATS = errors.New("no member of the fleet has a transport of kind nats, nor a peer that has one")

// bucketSubjects are what an agent publishes to in order to make and use a
// key-value bucket (ADR-8), and no other.
func bucketSubjects(bucket string) []string {
	stream := "KV_" + bucket
	return []string{
		"$JS.API.INFO", "$JS.API.STREAM.CREATE." + stream, "$JS.API.STREAM.UPDATE." + stream, "$JS.API.STREAM.INFO." + stream,
		"$JS.API.DIRECT.GET." + stream + ".>", "$KV." + bucket + ".>",
	}
}

// sharesLimits reports whether replicas of the member count calls together.
func sharesLimits(m *fleet.Member) bool {
	return slices.ContainsFunc(m.Capabilities.Capabilities, func(c *capability.Capability) bool {
		return c.RateLimit != nil && c.RateLimit.Shared
	})
}

// calleeSubjects are what an agent publishes to in order to keep the requests to
// it: the making of its own streams, its consumer, its answers and dead letters.
func calleeSubjects(id, topic string) []string {
	requests, results, dead := RequestsStream(id), ResultsStream(id), DeadStream(id)
	all := []string{
		"$JS.API.CONSUMER.CREATE." + requests + ".>", "$JS.API.CONSUMER.MSG.NEXT." + requests + ".>", "$JS.ACK." + requests + ".>",
		"$JS.API.DIRECT.GET." + results + ".>", "$JS.API.STREAM.PURGE." + results,
		"$JS.API.STREAM.MSG.GET." + dead, "$JS.API.DIRECT.GET." + dead, "$JS.API.STREAM.MSG.DELETE." + dead,
		"agentd.results." + ServiceName(id) + ".>", DeadSubject(id), RequestsSubject(topic),
	}
	for _, stream := range []string{requests, results, dead} {
		all = append(all, "$JS.API.STREAM.CREATE."+stream, "$JS.API.STREAM.INFO."+stream)
	}
	return all
}

// callerSubjects are what an agent publishes to in order to fetch answers of a
// peer, those to itself, and to ask whether the peer keeps requests at all.
func callerSubjects(id, peer string) []string {
	return []string{"$JS.API.STREAM.INFO." + RequestsStream(peer), "$JS.API.DIRECT.GET." + ResultsStream(peer) + "." + ResultsSubject(peer, id) + ".*"}
}

// keepsRequests reports whether a peer may keep requests; one whose contract is
// not known may.
func keepsRequests(d *capability.Document) bool { return d == nil || d.KeepsRequests() }

// Derive makes the rules of a fleet. It fails where two members would share a
// subject, and where a subject is not fit for rules; the error holds every fault.
func Derive(f *fleet.Fleet, opts Options) (*Rules, error) {
	if err := check(f); err != nil {
		return nil, err
	}
	r := &Rules{Fleet: f.Name, Users: []User{}, External: []envelope.Address{}}
	for _, m := range f.Members {
		if u, ok := user(m, opts); ok {
			if u.Responds {
				u.Publish = append(u.Publish, callersAlive(f, m, opts)...)
			}
			r.Users = append(r.Users, u)
		}
		for _, p := range m.Peers {
			if !p.InFleet && len(subjects(p.Transports)) > 0 && !slices.Contains(r.External, p.Address) {
				r.External = append(r.External, p.Address)
			}
		}
	}
	if len(r.Users) == 0 {
		return nil, ErrNoNATS
	}
	return r, nil
}

// user is the member's; ok is false for a member that does not use NATS.
func user(m *fleet.Member, opts Options) (u User, ok bool) {
	u = User{ID: m.ID, InboxPrefix: InboxPrefix(m.ID), Publish: []string{}}
	u.Subscribe = []string{u.InboxPrefix + ".>"}
	for _, subject := range own(m) {
		u.Responds = true
		u.Subscribe = append(u.Subscribe, subject, subject+".*")
	}
	if u.Responds {
		u.Answers = 1
		if m.Capabilities.PublishesProgress() {
			u.Answers = maxProgress
		}
		service := ServiceName(m.ID)
		u.Subscribe = append(u.Subscribe, "$SRV.*", "$SRV.*."+service, "$SRV.*."+service+".*")
		if m.Capabilities.KeepsRequests() {
			for _, subject := range own(m) {
				u.Publish = append(u.Publish, calleeSubjects(m.ID, subject)...)
			}
		}
		if sharesLimits(m) {
			u.Publish = append(u.Publish, bucketSubjects(LimitsBucket(m.ID))...)
		}
	}
	keeps := false
	for _, p := range m.Peers {
		peer := subjects(p.Transports)
		if p.Address == m.Address || opts.Allowed != nil && !opts.Allowed(m.Address, p.Address) {
			if slices.ContainsFunc(m.Agent.Audit.Witnesses, func(w fleet.Witness) bool { return w.Address == p.Address }) {
				for _, subject := range peer {
					u.Publish = append(u.Publish, subject+".witness")
				}
			}
			continue
		}
		for _, subject := range peer {
			u.Publish = append(u.Publish, subject, subject+".*")
		}
		if len(peer) > 0 {
			u.Publish = append(u.Publish, "$SRV.*."+ServiceName(p.Address.ID()))
		}
		if len(peer) > 0 && keepsRequests(p.Document) {
			keeps = true
			u.Publish = append(u.Publish, callerSubjects(m.ID, p.Address.ID())...)
		}
	}
	if keeps {
		u.Publish = append(u.Publish, bucketSubjects(CallsBucket(m.ID))...)
		u.Subscribe = append(u.Subscribe, AnsweredSubject("*", m.ID)+".*")
	}
	return u, u.Responds || len(u.Publish) > 0
}

// callersAlive are the subjects by which an agent asks whether the processes that call
// it still listen; nothing else arrives there.
func callersAlive(f *fleet.Fleet, callee *fleet.Member, opts Options) (all []string) {
	for _, m := range f.Members {
		if p, ok := m.Peer(callee.Address); ok && len(subjects(p.Transports)) > 0 && (opts.Allowed == nil || opts.Allowed(m.Address, callee.Address)) {
			all = append(all, InboxPrefix(m.ID)+".*.alive")
		}
	}
	return all
}

func own(m *fleet.Member) []string {
	if m.ClientOnly() {
		return nil
	}
	return subjects(m.Capabilities.Transports)
}

// subjects are where requests go by NATS.
func subjects(transports []capability.TransportSpec) []string {
	var out []string
	for _, t := range transports {
		if t.Kind == capability.NATS && !slices.Contains(out, t.Requests) {
			out = append(out, t.Requests)
		}
	}
	return out
}

// A claim is a member's hold on a subject or a service name.
type claim struct{ subject, member string }

// check finds what the rules of one member would give away of another's.
func check(f *fleet.Fleet) error {
	var errs []error
	var claims []claim
	services := map[string]string{}
	for _, m := range f.Members {
		for _, subject := range own(m) {
			if why := unfit(subject); why != "" {
				errs = append(errs, fmt.Errorf("%s: the requests subject %q %s", m.Capabilities.Path, subject, why))
				continue
			}
			for _, other := range claims {
				if other.member != m.ID && overlap(subject, other.subject) {
					errs = append(errs, fmt.Errorf("agents %s and %s share subjects: %s and %s; give each a subject that is not the other's nor right below it",
						other.member, m.ID, other.subject, subject))
				}
			}
			claims = append(claims, claim{subject, m.ID})
		}
		if other, taken := services[ServiceName(m.ID)]; taken && len(own(m)) > 0 {
			errs = append(errs, fmt.Errorf("agents %s and %s have the same service name %s; rename one", other, m.ID, ServiceName(m.ID)))
		}
		services[ServiceName(m.ID)] = m.ID
		for _, p := range m.Peers {
			for _, subject := range subjects(p.Transports) {
				if why := unfit(subject); why != "" {
					errs = append(errs, fmt.Errorf("%s:%d: the requests subject %q of %s %s", m.PeersFile, p.Position.Line, subject, p.Address, why))
				}
			}
		}
	}
	return errors.Join(errs...)
}

// unfit says why no rule can be made for a subject, or is "".
func unfit(subject string) string {
	switch {
	case strings.Contains(subject, "${"):
		return "is a reference, which only the running agent knows: write the subject itself"
	case strings.HasPrefix(subject, "_INBOX.") || strings.HasPrefix(subject, "$"):
		return "belongs to NATS: choose another"
	case transport.CheckTopic("", subject) != nil:
		return "is no NATS subject"
	}
	return ""
}

// overlap reports whether agents on a and b would hear of each other's requests:
// an agent hears its subject and those one part below.
func overlap(a, b string) bool { return a == b || parent(a) == b || parent(b) == a }

func parent(subject string) string {
	if i := strings.LastIndexByte(subject, '.'); i >= 0 {
		return subject[:i]
	}
	return ""
}
