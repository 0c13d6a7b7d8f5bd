package discovery

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/agentd/agentd/transport/nats"
)

// A Service is what is told of an agent.
type Service struct {
	// Version is a semantic version (semver.org 2.0.0); "0.0.0" when it is none.
	Version string
	// Description is for people.
	Description string
	// Metadata says what else is to be known.
	Metadata map[string]string
	// Endpoints are one for each capability.
	Endpoints []Endpoint
}

// An Endpoint is one capability, and what it has done.
type Endpoint struct {
	// Name is the capability's. What a NATS name cannot hold becomes _.
	Name string
	// Subject is where requests go, and Group the queue group that shares them.
	Subject, Group string
	// Metadata says what else is to be known.
	Metadata map[string]string
	// Requests counts those that ended, Errors those of them that ended badly.
	Requests, Errors int
	// Busy is what all of them took together.
	Busy time.Duration
	// LastError is in words, or "".
	LastError string
}

// An Announcement answers questions about one agent until it is closed. It is
// safe for concurrent use.
type Announcement struct {
	name, id string
	started  time.Time
	nc       *natsgo.Conn
	describe func() Service

	mu   sync.Mutex
	subs []*natsgo.Subscription // guarded by mu
}

// Announce answers for the service called name, a legal NATS name. describe is
// asked at each question, by several goroutines at once, and must not block.
func Announce(conn *nats.Conn, name string, describe func() Service) (*Announcement, error) {
	if legalName(name) != name || name == "" {
		return nil, fmt.Errorf("discovery: %q is no name for a NATS service: letters, digits, - and _ are", name)
	}
	a := &Announcement{name: name, id: rand.Text(), started: time.Now().UTC(), nc: conn.Client(), describe: describe}
	// One subscription for all verbs: the second part of the subject tells which.
	for _, subject := range []string{micro.APIPrefix + ".*", micro.APIPrefix + ".*." + name, micro.APIPrefix + ".*." + name + "." + a.id} {
		sub, err := a.nc.Subscribe(subject, a.answer)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("discovery: %s: %w", subject, err), a.Close())
		}
		a.subs = append(a.subs, sub)
	}
	return a, nil
}

// ID tells this instance from others of the service.
func (a *Announcement) ID() string { return a.id }

// Close answers no more. It may be called twice.
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

// answer is called for each question. What is no question is passed over.
func (a *Announcement) answer(m *natsgo.Msg) {
	verb := strings.Split(m.Subject, ".")[1]
	if m.Reply == "" {
		return
	}
	s := a.describe()
	identity := micro.ServiceIdentity{Name: a.name, ID: a.id, Version: semantic(s.Version), Metadata: present(s.Metadata)}
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
		_ = a.nc.Publish(m.Reply, data) // whoever asks again gets another
	}
}

func infoOf(endpoints []Endpoint) []micro.EndpointInfo {
	all := make([]micro.EndpointInfo, 0, len(endpoints)) // null is no list to other clients
	for _, e := range endpoints {
		all = append(all, micro.EndpointInfo{Name: legalName(e.Name), Subject: e.Subject, QueueGroup: e.Group, Metadata: present(e.Metadata)})
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

func present(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

// legalName is s with _ for what a NATS service name cannot hold.
func legalName(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '-', r == '_':
			return r
		}
		return '_'
	}, s)
}

// semantic is the version, if it is a semantic one: other clients refuse a service
// with another.
func semantic(version string) string {
	version = strings.TrimPrefix(version, "v")
	if !regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`).MatchString(version) {
		return "0.0.0"
	}
	return version
}
