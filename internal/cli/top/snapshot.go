package top

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/daemon/health"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
)

// A snapshot is what the agents have done in one interval, and how they are at its end.
type snapshot struct {
	Time   time.Time `json:"time"`
	Fleet  string    `json:"fleet"`
	Agents []agent   `json:"agents"`
}

// The states of an agent.
const (
	stateReady    = "ready"
	stateNotReady = "not-ready"
	// stateUnreachable is that of an agent whose socket is there, and that does not answer.
	stateUnreachable = "unreachable"
	stateDown        = "down"
)

// An agent is how one is. Those that do not answer have no more than the first four.
type agent struct {
	Agent string `json:"agent"`
	State string `json:"state"`
	// Error says why it has not answered, and Away since when.
	Error string    `json:"error,omitempty"`
	Away  time.Time `json:"awaySince,omitzero"`

	PID     int       `json:"pid,omitempty"`
	Version string    `json:"version,omitempty"`
	Started time.Time `json:"started,omitzero"`
	// Seconds is the time that rates and latencies are of; 0 where nothing is known of the agent
	// before, or it has started since.
	Seconds    float64                    `json:"seconds"`
	Conditions []health.Condition         `json:"conditions,omitempty"`
	Calls      []calls                    `json:"calls,omitempty"`
	Approvals  []control.ApprovalsWaiting `json:"approvals,omitempty"`
	Breakers   []control.Breaker          `json:"breakers,omitempty"`
	Drift      []control.DriftVerdicts    `json:"drift,omitempty"`
	Audit      *control.AuditStatus       `json:"audit,omitempty"`
	Brokers    []broker                   `json:"brokers,omitempty"`
	Queue      *control.Queue             `json:"queue,omitempty"`
	Skills     []skill                    `json:"skills,omitempty"`
	Models     []modelTokens              `json:"models,omitempty"`
	// Dropped is the number of messages that came faster than they could be taken.
	Dropped uint64 `json:"dropped,omitempty"`

	elsewhere bool // it is down, has never answered here, and nobody has asked for it
}

// calls are those of one peer and one capability.
type calls struct {
	Role       rpc.Role         `json:"role"`
	Peer       envelope.Address `json:"peer"`
	Capability string           `json:"capability"`
	// Ended is the number of calls that have ended in the interval, PerSecond their rate, and
	// FailedShare which part of them did not end with ok.
	Ended       uint64  `json:"ended"`
	PerSecond   float64 `json:"perSecond"`
	FailedShare float64 `json:"failedShare"`
	// P50Ms and P99Ms are latencies that half of them, and 99 of 100, have not exceeded; they may be
	// 9 % too large. Without calls there are none.
	P50Ms float64 `json:"p50Ms,omitempty"`
	P99Ms float64 `json:"p99Ms,omitempty"`
	// Failed counts the calls that have failed in the interval, by code.
	Failed map[string]uint64 `json:"failed,omitempty"`
	// LimitedPerSecond is the rate of what rate limits have refused, RetriesPerSecond that of attempts
	// after the first.
	LimitedPerSecond float64 `json:"limitedPerSecond,omitempty"`
	RetriesPerSecond float64 `json:"retriesPerSecond,omitempty"`
	// InFlight calls run or wait for a reply, Queued ones wait for their turn.
	InFlight int `json:"inFlight"`
	Queued   int `json:"queued"`
	// Total is the number of calls since the agent started, Violations of those among them that broke
	// a schema.
	Total      uint64 `json:"total"`
	Violations uint64 `json:"violations,omitempty"`
}

// A broker is one connection to a broker.
type broker struct {
	control.Broker
	RoundTripMs float64 `json:"roundTripMs,omitempty"`
}

// A skill is the programs of one skill; those that stay are workers.
type skill struct {
	Skill     string `json:"skill"`
	Processes int    `json:"processes"`
	// CPU is the number of processors that they have used in the interval.
	CPU           float64         `json:"cpu"`
	ResidentBytes int64           `json:"residentBytes"`
	Worker        *control.Worker `json:"worker,omitempty"`
}

// newAgent compares what an agent says with what it said before, nil for nothing.
func newAgent(id string, before, now *reading) agent {
	s := &now.activity.Status
	a := agent{
		Agent: id, State: stateReady, PID: s.PID, Version: s.Version, Started: s.Started, Conditions: s.Conditions,
		Approvals: s.Approvals, Breakers: s.Breakers, Drift: s.Drift, Audit: s.Audit, Queue: now.activity.Queue, Dropped: s.Dropped,
	}
	if !s.Ready {
		a.State, a.Error = stateNotReady, s.Reason
	}
	old := control.Activity{}
	if before != nil {
		a.Seconds, old = now.at.Sub(before.at).Seconds(), before.activity
	}
	a.Calls = callsOf(&old, &now.activity, a.Seconds)
	for _, b := range s.Brokers {
		one := broker{Broker: b}
		for _, r := range now.activity.RoundTrips {
			if r.Broker == b.Broker {
				one.RoundTripMs = r.Milliseconds
			}
		}
		a.Brokers = append(a.Brokers, one)
	}
	a.Skills = skillsOf(&old.Status, s, a.Seconds)
	a.Models = modelsOf(old.Models, now.activity.Models, a.Seconds)
	return a
}

// A pair is what calls are counted by.
type pair struct {
	role       rpc.Role
	peer       envelope.Address
	capability string
}

// callsOf compares two activities. A pair that a reload has ended and another has brought back
// counts from 0 again.
func callsOf(old, now *control.Activity, seconds float64) (all []calls) {
	before := map[pair]*control.CallCounts{}
	for i := range old.Calls {
		c := &old.Calls[i]
		before[pair{c.Role, c.Peer, c.Capability}] = c
	}
	index := map[pair]int{}
	at := func(p pair) *calls {
		i, ok := index[p]
		if !ok {
			i, index[p] = len(all), len(all)
			all = append(all, calls{Role: p.role, Peer: p.peer, Capability: p.capability})
		}
		return &all[i]
	}
	for i := range now.Calls {
		c := &now.Calls[i]
		p := pair{c.Role, c.Peer, c.Capability}
		b := before[p]
		if b == nil || b.Calls > c.Calls {
			b = &control.CallCounts{}
		}
		at(p).count(b, c, seconds)
	}
	for _, f := range now.InFlight {
		c := at(pair{f.Role, f.Peer, f.Capability})
		c.InFlight, c.Queued = f.Running, f.Waiting
	}
	return all
}

// count takes what has come to c between two counts. Without a time nothing is known of that.
func (c *calls) count(before, now *control.CallCounts, seconds float64) {
	c.Total = now.Calls
	for code, n := range now.Failed {
		var parsed rpc.Code
		if parsed.UnmarshalText([]byte(code)) == nil && parsed.Status() == rpc.StatusSchemaViolation {
			c.Violations += n
		}
	}
	if seconds <= 0 {
		return
	}
	c.Ended = now.Calls - before.Calls
	c.PerSecond = float64(c.Ended) / seconds
	c.LimitedPerSecond = float64(now.RateLimited-min(before.RateLimited, now.RateLimited)) / seconds
	c.RetriesPerSecond = float64(now.Retries-min(before.Retries, now.Retries)) / seconds
	if c.Ended == 0 {
		return
	}
	var failed uint64
	for code, n := range now.Failed {
		if more := n - min(before.Failed[code], n); more > 0 {
			if c.Failed == nil {
				c.Failed = map[string]uint64{}
			}
			c.Failed[code] = more
			failed += more
		}
	}
	c.FailedShare = min(1, float64(failed)/float64(c.Ended))
	recent := latenciesSince(before.Latencies, now.Latencies)
	c.P50Ms, c.P99Ms = quantile(recent, 0.5), quantile(recent, 0.99)
}

// latenciesSince are the latencies that have come to those from before. Both are in the order of
// their bounds.
func latenciesSince(before, now []control.LatencyBucket) []control.LatencyBucket {
	old := make(map[float64]uint64, len(before))
	for _, b := range before {
		old[b.UpTo] = b.Calls
	}
	var recent []control.LatencyBucket
	for _, b := range now {
		if n := b.Calls - min(old[b.UpTo], b.Calls); n > 0 {
			recent = append(recent, control.LatencyBucket{UpTo: b.UpTo, Calls: n})
		}
	}
	return recent
}

// quantile is a latency in milliseconds that a share of the calls has not exceeded, 0 without calls.
func quantile(all []control.LatencyBucket, share float64) float64 {
	var total uint64
	for _, b := range all {
		total += b.Calls
	}
	rank := uint64(math.Ceil(share * float64(total)))
	for _, b := range all {
		if rank <= b.Calls {
			return b.UpTo * 1000
		}
		rank -= b.Calls
	}
	return 0
}

// skillsOf are the programs of skills that run, and the workers.
func skillsOf(old, now *control.Status, seconds float64) (all []skill) {
	for _, p := range now.Processes {
		one := skill{Skill: p.Skill, Processes: p.Running, ResidentBytes: p.ResidentBytes}
		for _, b := range old.Processes {
			if b.Skill == p.Skill && seconds > 0 {
				one.CPU = max(0, p.CPUSeconds-b.CPUSeconds) / seconds
			}
		}
		all = append(all, one)
	}
	for i := range now.Workers {
		w := &now.Workers[i]
		at := slices.IndexFunc(all, func(s skill) bool { return s.Skill == w.Skill })
		if at < 0 {
			at, all = len(all), append(all, skill{Skill: w.Skill})
		}
		all[at].Worker = w
	}
	return all
}

// silent reports whether no agent has answered.
func (s *snapshot) silent() bool {
	return !slices.ContainsFunc(s.Agents, func(a agent) bool { return a.answers() })
}

func (a *agent) answers() bool { return a.State == stateReady || a.State == stateNotReady }

// rates are the calls that the agent has made and served, a second, and which share of both has
// failed.
func (a *agent) rates() (made, served, failed float64) {
	var ended float64
	for i := range a.Calls {
		c := &a.Calls[i]
		if c.Role == rpc.RoleCaller {
			made += c.PerSecond
		} else {
			served += c.PerSecond
		}
		ended += float64(c.Ended)
		failed += c.FailedShare * float64(c.Ended)
	}
	if ended == 0 {
		return made, served, 0
	}
	return made, served, failed / ended
}

// load is how many calls are in flight at the agent, and how many wait for their turn.
func (a *agent) load() (inFlight, queued int) {
	for i := range a.Calls {
		inFlight += a.Calls[i].InFlight
		queued += a.Calls[i].Queued
	}
	return inFlight, queued
}

// breaker returns the state of the breaker of calls, "" where it lets all of them through.
func (a *agent) breaker(c *calls) policy.BreakerState {
	if c.Role != rpc.RoleCaller {
		return ""
	}
	for _, b := range a.Breakers {
		if b.Peer == c.Peer && b.Capability == c.Capability && b.State != policy.BreakerClosed {
			return b.State
		}
	}
	return ""
}

// A Sort is what calls and agents are sorted by.
type Sort string

// The orders; each has the largest first, but for names.
const (
	byRate     Sort = "rate"
	byErrors   Sort = "errors"
	byLatency  Sort = "latency"
	byInFlight Sort = "flight"
	byName     Sort = "name"
)

func sorts() []Sort { return []Sort{byRate, byErrors, byLatency, byInFlight, byName} }

// sort sorts agents and their calls. Agents that do not answer come last.
func (s *snapshot) sort(by Sort) {
	for i := range s.Agents {
		slices.SortStableFunc(s.Agents[i].Calls, func(x, y calls) int { return compareCalls(&x, &y, by) })
	}
	slices.SortStableFunc(s.Agents, func(x, y agent) int {
		silent := 0
		if x.answers() != y.answers() {
			silent = 1
			if x.answers() {
				silent = -1
			}
		}
		return cmp.Or(silent, cmp.Compare(y.weight(by), x.weight(by)), strings.Compare(x.Agent, y.Agent))
	})
}

// weight is what an agent is sorted by.
func (a *agent) weight(by Sort) (w float64) {
	switch by {
	case byRate:
		made, served, _ := a.rates()
		return made + served
	case byErrors:
		_, _, failed := a.rates()
		return failed
	case byInFlight:
		inFlight, queued := a.load()
		return float64(inFlight + queued)
	case byLatency:
		for i := range a.Calls {
			w = max(w, a.Calls[i].P99Ms)
		}
	case byName:
	}
	return w
}

func (c *calls) weight(by Sort) float64 {
	switch by {
	case byRate:
		return c.PerSecond
	case byErrors:
		return c.FailedShare
	case byLatency:
		return c.P99Ms
	case byInFlight:
		return float64(c.InFlight + c.Queued)
	case byName:
	}
	return 0
}

func compareCalls(x, y *calls, by Sort) int {
	return cmp.Or(cmp.Compare(y.weight(by), x.weight(by)), strings.Compare(string(x.Role), string(y.Role)),
		strings.Compare(string(x.Peer), string(y.Peer)), strings.Compare(x.Capability, y.Capability))
}
