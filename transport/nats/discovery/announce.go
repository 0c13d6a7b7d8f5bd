package discovery

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/agentd/agentd/transport/nats"
)

// A Service describes an agent to NATS tools.
type Service struct {
	// Version should be a semantic version (semver.org 2.0.0); others become "0.0.0".
	Version string
	// Description is for people.
	Description string
	// Metadata is for programs; the daemon's Metadata constants are its keys.
	Metadata map[string]string
	// Endpoints has one entry for each capability.
	Endpoints []Endpoint
}

// An Endpoint is one capability and its statistics.
type Endpoint struct {
	// Name is the capability's. Characters that a NATS name cannot contain become _.
	Name string
	// Subject is where requests go, and Group the queue group that shares them.
	Subject, Group string
	// Metadata is for programs.
	Metadata map[string]string
	// Requests counts the requests that have ended, Errors those of them that failed.
	Requests, Errors int
	// Busy is the sum of their processing times.
	Busy time.Duration
	// LastError is the code of the newest failure, or "".
	LastError string
}

// An Announcement answers discovery requests about one agent until it is closed. It
// is safe for concurrent use.
type Announcement struct {
	name, id string
	started  time.Time
	nc       *natsgo.Conn
	describe func() Service

	mu   sync.Mutex
	subs []*natsgo.Subscription // guarded by mu
}

// flushTimeout bounds how long Announce waits until the server knows of a service.
const flushTimeout = 5 * time.Second

// Announce answers for the service called name, a legal NATS name. It calls describe
// for each discovery request, from several goroutines at the same time: describe must
// not block. When Announce returns, the server that conn is connected to knows of the
// service. [FindOn] finds it by each of subjects, where its endpoints take requests.
func Announce(conn *nats.Conn, name string, describe func() Service, subjects ...string) (*Announcement, error) {
	if legalName(name) != name || name == "" {
		return nil, fmt.Errorf("discovery: %q cannot be the name of a NATS service: use letters, digits, - and _", name)
	}
	a := &Announcement{name: name, id: uuid.NewString(), started: time.Now().UTC(), nc: conn.Client(), describe: describe}
	// One subscription serves all verbs: the second part of a subject is the verb.
	topics := []string{micro.APIPrefix + ".*", micro.APIPrefix + ".*." + name, micro.APIPrefix + ".*." + name + "." + a.id}
	for _, subject := range subjects {
		topics = append(topics, micro.APIPrefix+".*."+nameOn(subject))
	}
	for _, subject := range topics {
		sub, err := a.nc.Subscribe(subject, a.answer)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("discovery: %s: %w", subject, err), a.Close())
		}
		a.subs = append(a.subs, sub)
	}
	if a.nc.IsConnected() {
		// The client sends subscriptions in the background. Without the flush, somebody who
		// looks for the service right after Announce may miss it. If the flush fails, the
		// connection is being made again, and subscribes anew by itself.
		_ = a.nc.FlushTimeout(flushTimeout)
	}
	return a, nil
}

// ID identifies this instance among the replicas of the service. It changes with each
// announcement.
func (a *Announcement) ID() string { return a.id }

// Close stops answering. It may be called twice.
func (a *Announcement) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	var errs []error
	for _, sub := range a.subs {
		if err := sub.Unsubscribe(); err != nil && !errors.Is(err, natsgo.ErrConnectionClosed) {
			errs = append(errs, err)
		}
	}
	a.subs = nil
	return errors.Join(errs...)
}

// answer replies to one discovery request. It ignores messages without an inbox for the
// reply, and unknown verbs: subjects are open to everybody.
func (a *Announcement) answer(m *natsgo.Msg) {
	verb := strings.Split(m.Subject, ".")[1]
	// Anything but an inbox could be a request, to an agent or to the server itself,
	// that the sender may not make.
	if !strings.HasPrefix(m.Reply, "_INBOX") {
		return
	}
	s := a.describe()
	identity := micro.ServiceIdentity{Name: a.name, ID: a.id, Version: semanticVersion(s.Version), Metadata: orEmpty(s.Metadata)}
	var reply any
	switch verb {
	case micro.PingVerb.String():
		reply = micro.Ping{ServiceIdentity: identity, Type: micro.PingResponseType}
	case micro.InfoVerb.String():
		reply = micro.Info{ServiceIdentity: identity, Type: micro.InfoResponseType, Description: s.Description, Endpoints: infoOf(s.Endpoints)}
	case micro.StatsVerb.String():
		reply = micro.Stats{ServiceIdentity: identity, Type: micro.StatsResponseType, Started: a.started, Endpoints: statsOf(s.Endpoints)}
	default:
		return
	}
	data, err := json.Marshal(reply)
	if err == nil {
		_ = a.nc.Publish(m.Reply, data) // a reply that is lost is requested again
	}
}

func infoOf(endpoints []Endpoint) []micro.EndpointInfo {
	all := make([]micro.EndpointInfo, 0, len(endpoints)) // other clients cannot read null
	for _, e := range endpoints {
		all = append(all, micro.EndpointInfo{Name: legalName(e.Name), Subject: e.Subject, QueueGroup: e.Group, Metadata: orEmpty(e.Metadata)})
	}
	return all
}

func statsOf(endpoints []Endpoint) []*micro.EndpointStats {
	all := make([]*micro.EndpointStats, 0, len(endpoints))
	for _, e := range endpoints {
		s := &micro.EndpointStats{
			Name: legalName(e.Name), Subject: e.Subject, QueueGroup: e.Group,
			NumRequests: e.Requests, NumErrors: e.Errors, LastError: e.LastError, ProcessingTime: e.Busy,
		}
		if e.Requests > 0 {
			s.AverageProcessingTime = e.Busy / time.Duration(e.Requests)
		}
		all = append(all, s)
	}
	return all
}

// orEmpty returns m, or an empty map for nil: other clients cannot read null.
func orEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

// nameOn is a second name for the services that take requests on a subject. Others may share
// it, as a subject may have characters that a name cannot.
func nameOn(subject string) string { return "subject-" + legalName(subject) }

// legalName is s with _ in the place of each character that a NATS name cannot contain.
func legalName(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '-', r == '_':
			return r
		}
		return '_'
	}, s)
}

// semanticVersion returns the version if it is a semantic one, without a leading v, and
// else "0.0.0": other clients reject a service with another version.
func semanticVersion(version string) string {
	version = strings.TrimPrefix(version, "v")
	if !regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`).MatchString(version) {
		return "0.0.0"
	}
	return version
}
