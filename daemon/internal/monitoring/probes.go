package monitoring

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentd/agentd/daemon/health"
	"github.com/agentd/agentd/daemon/metrics"
	"github.com/agentd/agentd/policy"
)

// aliveTimeout is how long the locks of an agent may stay shut. No lock of an agent is held over
// I/O or a call, so that a second is a long time; kubelets ask several times before they act.
const aliveTimeout = 5 * time.Second

// probes answer for the agents of the process.
type probes struct {
	agents  []Agent
	started atomic.Bool // all agents have been ready at once

	mu      sync.Mutex
	looking []chan struct{} // one for each agent; nil where nobody looks; guarded by mu

	letters lettersSeen
}

// live answers whether the process works. What is outside of it, such as a broker or a disk, does
// not count: a restart would not bring it back.
func (p *probes) live(w http.ResponseWriter, r *http.Request) {
	for i := range p.agents {
		timeout := time.NewTimer(aliveTimeout)
		defer timeout.Stop()
		select {
		case <-p.look(i):
		case <-r.Context().Done():
			return
		case <-timeout.C:
			http.Error(w, fmt.Sprintf("deadlocked: the agent %s has not opened its locks for %s", p.agents[i].Metrics.ID, aliveTimeout), http.StatusServiceUnavailable)
			return
		}
	}
	answer(w, http.StatusOK, "ok\n")
}

// look looks whether an agent is alive. One look at a time is under way: those at an agent that
// hangs hang, too.
func (p *probes) look(i int) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.looking == nil {
		p.looking = make([]chan struct{}, len(p.agents))
	}
	if done := p.looking[i]; done != nil {
		return done
	}
	done := make(chan struct{})
	p.looking[i] = done
	go func() { // ends with the look; a deadlock is over with the process
		p.agents[i].Alive()
		p.mu.Lock()
		p.looking[i] = nil
		p.mu.Unlock()
		close(done)
	}()
	return done
}

// A verdict is what /readyz says, as JSON.
type verdict struct {
	Ready  bool           `json:"ready"`
	Agents []agentVerdict `json:"agents,omitempty"`
}

// An agentVerdict is that of one agent.
type agentVerdict struct {
	Agent string `json:"agent"`
	Ready bool   `json:"ready"`
	// Reasons are why it is not ready, Warnings what somebody should look at although it is, and
	// Conditions both in the form of its status.
	Reasons    []string           `json:"reasons,omitempty"`
	Warnings   []string           `json:"warnings,omitempty"`
	Conditions []health.Condition `json:"conditions,omitempty"`
}

// ready answers whether all agents serve every call. Without why it says no more.
func (p *probes) ready(w http.ResponseWriter, r *http.Request, why bool) {
	_, verbose := r.URL.Query()["verbose"]
	asJSON := strings.Contains(r.Header.Get("Accept"), "application/json")
	v := p.judge(r.Context(), why && (verbose || asJSON))
	status := http.StatusOK
	if !v.Ready {
		status = http.StatusServiceUnavailable
	}
	if !why {
		v.Agents = nil
	}
	if asJSON {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v) // a client that has gone needs no answer
		return
	}
	answer(w, status, v.text(verbose))
}

// text is the verdict in lines, the first of which sums it up.
func (v *verdict) text(verbose bool) string {
	var text strings.Builder
	if v.Ready {
		text.WriteString("ok\n")
	} else {
		text.WriteString("not ready\n")
	}
	for _, a := range v.Agents {
		if verbose && a.Ready {
			fmt.Fprintf(&text, "%s: ready\n", a.Agent)
		}
		for _, reason := range a.Reasons {
			fmt.Fprintf(&text, "%s: %s\n", a.Agent, reason)
		}
		for _, warning := range a.Warnings {
			fmt.Fprintf(&text, "%s: warning: %s\n", a.Agent, warning)
		}
	}
	return text.String()
}

// judge asks the agents, with warnings for everything that they know.
func (p *probes) judge(ctx context.Context, warnings bool) verdict {
	v := verdict{Ready: true}
	for i := range p.agents {
		a := &p.agents[i].Metrics
		one := agentVerdict{Agent: a.ID, Ready: true}
		if err := a.Ready(); err != nil {
			one.Ready, one.Reasons, v.Ready = false, strings.Split(err.Error(), "\n"), false
		}
		if warnings {
			one.warn(ctx, a, p.letters.of)
		}
		v.Agents = append(v.Agents, one)
	}
	if v.Ready {
		p.started.Store(true)
	}
	return v
}

// liveTimeout bounds what a probe waits for the broker, and is how old its answer may be.
const liveTimeout = time.Second

// warn adds what an agent's status says besides, what waits for a person, and what a queue has
// given up on.
func (v *agentVerdict) warn(ctx context.Context, a *metrics.Agent, dead func(context.Context, *metrics.Agent) uint64) {
	s, ok := a.Status()
	v.Warnings, v.Conditions = s.Warnings, s.Conditions
	for _, w := range s.Approvals {
		v.Warnings = append(v.Warnings, fmt.Sprintf("%s for a person, the oldest since %s (agentd approvals list)", count(w.Waiting, "call waits", "calls wait"), w.Oldest.UTC().Format(time.RFC3339)))
	}
	for _, b := range s.Breakers {
		if b.State == policy.BreakerHalfOpen { // open ones are conditions
			v.Warnings = append(v.Warnings, fmt.Sprintf("most calls to %s of %s have failed: the next ones find out whether it works again", b.Capability, b.Peer))
		}
	}
	for _, slow := range s.Slow {
		v.Warnings = append(v.Warnings, slow.String()+" (agentd top)")
	}
	if s.Audit != nil {
		for _, w := range s.Audit.Witnesses {
			if !w.UnsignedSince.IsZero() {
				v.Warnings = append(v.Warnings, fmt.Sprintf("the witness %s has not co-signed the audit log since %s: %s", w.Witness, w.UnsignedSince.UTC().Format(time.RFC3339), w.Error))
			}
		}
	}
	if !ok || a.Live == nil {
		return
	}
	if n := dead(ctx, a); n > 0 {
		v.Warnings = append(v.Warnings, count(n, "dead letter: a request that was", "dead letters: requests that were")+" not served (agentd dlq list)")
	}
}

// count is a number of things, of which there is one or are many.
func count[N int | uint64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// lettersSeen are the dead letters of agents, as the broker has said within the last second: where
// no token is asked for, strangers may ask as often as they like.
type lettersSeen struct {
	mu   sync.Mutex // held while one of all who wait asks the broker
	at   map[string]time.Time
	dead map[string]uint64
}

// of counts those of an agent. A client that has gone takes no answer from those that wait.
func (s *lettersSeen) of(ctx context.Context, a *metrics.Agent) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at == nil {
		s.at, s.dead = map[string]time.Time{}, map[string]uint64{}
	}
	if at, seen := s.at[a.ID]; seen && time.Since(at) < liveTimeout {
		return s.dead[a.ID]
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), liveTimeout)
	defer cancel()
	s.dead[a.ID] = 0
	if q := a.Live(ctx).Queue; q != nil {
		s.dead[a.ID] = q.Dead
	}
	s.at[a.ID] = time.Now()
	return s.dead[a.ID]
}

// startup answers whether the start is over: for good, once all agents have been ready. A broker
// that goes away later is no reason to start again.
func (p *probes) startup(w http.ResponseWriter, r *http.Request) {
	if p.started.Load() || p.judge(r.Context(), false).Ready {
		answer(w, http.StatusOK, "ok\n")
		return
	}
	answer(w, http.StatusServiceUnavailable, "starting\n")
}

func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text)) // a client that has gone needs no answer
}
