package dev

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/output"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/schema"
)

// screenQueue bounds what waits for a terminal that is slow, or that somebody has paused:
// calls do not wait for it.
const screenQueue = 4096

// A screen writes what happens to standard output, a line or a JSON value each. It is safe
// for concurrent use until close.
type screen struct {
	env    *cli.Env
	colors output.Colors
	root   string // of the fleet
	prefix string // what stands for it in the paths of faults, as the user would write them
	lines  chan []byte
	done   sync.WaitGroup

	mu      sync.Mutex
	members map[string]bool // that run here; guarded by mu
	lost    int             // lines that found no room; guarded by mu
	closed  bool            // guarded by mu
}

var _ daemon.Observer = (*screen)(nil)

// newScreen starts the writer, which close ends.
func newScreen(env *cli.Env, f *fleet.Fleet) *screen {
	s := &screen{env: env, colors: env.Colors(), root: f.Root, lines: make(chan []byte, screenQueue), members: map[string]bool{}}
	if shown, err := env.FleetRoot(); err == nil && shown != "." {
		s.prefix = shown + string(filepath.Separator)
	}
	for _, m := range f.Members {
		s.members[m.ID] = true
	}
	s.done.Go(func() {
		for line := range s.lines {
			_, _ = env.Stdout.Write(line) // who does not read any more misses nothing
		}
	})
	return s
}

// close writes what waits. What happens later, as in calls that outlive the patience of a
// shutdown, is not shown.
func (s *screen) close() {
	s.mu.Lock()
	s.closed = true
	close(s.lines)
	s.mu.Unlock()
	s.done.Wait()
}

// An event is what every line says; the rest of it is in the type that embeds this.
type event struct {
	Time  string `json:"time"` // RFC 3339, in UTC
	Event string `json:"event"`
}

func at(t time.Time, kind string) event {
	return event{t.UTC().Format("2006-01-02T15:04:05.000Z07:00"), kind}
}

// show writes text for a person, or value for a program. It never blocks.
func (s *screen) show(t time.Time, text string, value any) {
	var b bytes.Buffer
	if s.env.Format == output.JSONL {
		if err := output.WriteJSON(&b, output.JSONL, value); err != nil {
			return // the values are of this package, and all have a JSON form
		}
	} else {
		fmt.Fprintf(&b, "%s  %s\n", s.colors.Dim(t.Local().Format("15:04:05.000")), text)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	if s.lost > 0 {
		more, err := json.Marshal(struct {
			event
			Lines int `json:"lines"`
		}{at(t, "omitted"), s.lost})
		if s.env.Format != output.JSONL || err != nil {
			more = fmt.Appendf(nil, "… %d lines are not shown: the terminal is too slow", s.lost)
		}
		select {
		case s.lines <- append(more, '\n'):
			s.lost = 0
		default:
		}
	}
	select {
	case s.lines <- b.Bytes():
	default:
		s.lost++
	}
}

// Call implements [daemon.Observer]. A call between two agents of this process has two ends;
// the caller's is shown, which has seen all of it.
func (s *screen) Call(agent string, r rpc.CallRecord) {
	peer := cli.ID(string(r.Peer))
	from, to := agent, peer
	if r.Role == rpc.RoleCallee {
		s.mu.Lock()
		shown := s.members[peer]
		s.mu.Unlock()
		if shown && peer != agent { // an operator's run of an agent's own action has one end
			return
		}
		from, to = peer, agent
	}
	v := struct {
		event
		Caller        string     `json:"caller"`
		Callee        string     `json:"callee"`
		Capability    string     `json:"capability"`
		Status        rpc.Status `json:"status"`
		Code          string     `json:"code,omitempty"`
		DetectedBy    string     `json:"detectedBy,omitempty"`
		LatencyMs     float64    `json:"latencyMs"`
		Attempts      int        `json:"attempts"`
		Replayed      bool       `json:"replayed,omitempty"`
		Mode          rpc.Mode   `json:"mode"`
		CorrelationID string     `json:"correlationId"`
		TraceID       string     `json:"traceId"`
		TenantID      string     `json:"tenantId,omitempty"`
		Origin        string     `json:"origin,omitempty"`
	}{
		at(r.Start.Add(r.Latency), "call"), from, to, r.Capability, r.Status, "", string(r.DetectedBy), float64(r.Latency.Microseconds()) / 1000,
		r.Attempts, r.Replayed, r.Mode, r.CorrelationID, r.TraceID, r.TenantID, r.Origin,
	}
	mark, outcome := s.colors.Good("✓"), s.colors.Good(string(r.Status))
	if r.Status != rpc.StatusOK {
		mark, outcome = s.colors.Bad("✗"), s.colors.Bad(string(r.Status))
	}
	if r.Code != 0 {
		v.Code = r.Code.String()
		outcome += " " + v.Code
	}
	text := fmt.Sprintf("%s %s → %s  %s  %s", mark, output.Printable(from), s.colors.Bold(output.Printable(to+"/"+r.Capability)), outcome, latency(r.Latency))
	for _, note := range []struct {
		holds bool
		text  string
	}{
		{r.Mode != rpc.ModeSync, string(r.Mode)}, {r.Attempts > 1, fmt.Sprintf("%d attempts", r.Attempts)},
		{r.Replayed, "an earlier answer"}, {r.TenantID != "", "tenant " + r.TenantID}, {r.Origin != "", "for " + r.Origin},
	} {
		if note.holds {
			text += s.colors.Dim("  " + output.Printable(note.text))
		}
	}
	s.show(r.Start.Add(r.Latency), text, v)
}

// latency is a duration as a person compares it.
func latency(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}

// Violation implements [daemon.Observer].
func (s *screen) Violation(agent string, v rpc.SchemaViolation) {
	type violation struct {
		Path     string         `json:"path"`
		Expected string         `json:"expected"`
		Kind     schema.Keyword `json:"kind"`
	}
	all := make([]violation, len(v.Violations))
	text := fmt.Sprintf("%s the %s of %s breaks its schema, found by %s:", s.colors.Bad("✗"), v.Side, s.colors.Bold(output.Printable(v.Capability)), agent)
	for i, one := range v.Violations {
		all[i] = violation{one.Path, one.Message, one.Keyword}
		place := one.Path
		if place == "" {
			place = "(the whole " + string(v.Side) + ")"
		}
		text += fmt.Sprintf("\n              %s  %s  %s", output.Printable(place), output.Printable(one.Message), s.colors.Dim("["+one.Keyword.String()+"]"))
	}
	if v.ViolationsOmitted > 0 {
		text += fmt.Sprintf("\n              … and %d more", v.ViolationsOmitted)
	}
	s.show(v.Time, text, struct {
		event
		Agent         string      `json:"agent"`
		Peer          string      `json:"peer"`
		Capability    string      `json:"capability"`
		Side          rpc.Side    `json:"side"`
		Violations    []violation `json:"violations"`
		Omitted       int         `json:"violationsOmitted,omitempty"`
		CorrelationID string      `json:"correlationId"`
	}{at(v.Time, "violation"), agent, cli.ID(string(v.Peer)), v.Capability, v.Side, all, v.ViolationsOmitted, v.CorrelationID})
}

// ready says that the fleet runs, and how to call it.
func (s *screen) ready(f *daemon.Fleet) {
	type agent struct {
		Agent        string   `json:"agent"`
		Capabilities []string `json:"capabilities"`
		Socket       string   `json:"socket"`
	}
	var agents []agent
	var text strings.Builder
	for _, d := range f.Daemons {
		a := agent{d.Member().ID, []string{}, d.Socket()}
		if c := d.Member().Capabilities; c != nil {
			a.Capabilities = c.Names()
		}
		agents = append(agents, a)
		offers := strings.Join(a.Capabilities, ", ")
		if offers == "" {
			offers = "(only calls)"
		}
		fmt.Fprintf(&text, "\n              %s  %s  %s", s.colors.Bold(a.Agent), output.Printable(offers), s.colors.Dim("socket="+output.Printable(a.Socket)))
	}
	try := example(f)
	if try != "" {
		fmt.Fprintf(&text, "\n              in another terminal: %s", output.Printable(try))
	}
	now := time.Now()
	s.show(now, fmt.Sprintf("ready: %d agents, reloaded when a file changes. press ctrl-c to stop.%s", len(agents), text.String()), struct {
		event
		Agents  []agent `json:"agents"`
		Example string  `json:"example,omitempty"`
	}{at(now, "ready"), agents, try})
}

// A reloadEvent is one reload, or a refused one.
type reloadEvent struct {
	event
	Agents  []string `json:"agents"`
	Files   []string `json:"files,omitempty"`
	Error   string   `json:"error,omitempty"`
	Waiting []string `json:"awaitsRestart,omitempty"`
}

// reloaded says that changed files are in force, but for keys that take a restart.
func (s *screen) reloaded(agents, files, waiting []string) {
	now, names := time.Now(), s.names(files)
	text := fmt.Sprintf("%s reloaded %s%s", s.colors.Good("↻"), strings.Join(agents, ", "), s.colors.Dim(list(names)))
	if len(waiting) > 0 {
		text += "\n              start again for: " + output.Printable(strings.Join(waiting, ", "))
	}
	s.show(now, text, reloadEvent{event: at(now, "reloaded"), Agents: agents, Files: names, Waiting: waiting})
}

// refused says that changed files are at fault.
func (s *screen) refused(agents, files []string, fault string) {
	s.fault("not reloaded", agents, files, fault, "the files from before the change stay in force")
}

// notStarted says why an agent that was added to the fleet does not run.
func (s *screen) notStarted(agent, fault string) {
	s.fault("not started", []string{agent}, nil, fault, "it starts once its files are mended")
}

func (s *screen) fault(what string, agents, files []string, fault, effect string) {
	now := time.Now()
	fault = strings.ReplaceAll(fault, s.root+string(filepath.Separator), s.prefix)
	text := fmt.Sprintf("%s %s: %s\n              %s: %s", s.colors.Bad("✗"), what,
		strings.ReplaceAll(output.PrintableText(fault), "\n", "\n              "), strings.Join(agents, ", "), effect)
	s.show(now, text, reloadEvent{event: at(now, "not-reloaded"), Agents: agents, Files: s.names(files), Error: fault})
}

// joined says that an agent was added to the fleet, and runs.
func (s *screen) joined(agent string) {
	s.mu.Lock()
	s.members[agent] = true
	s.mu.Unlock()
	now := time.Now()
	s.show(now, fmt.Sprintf("%s %s has joined the fleet", s.colors.Good("↻"), agent), reloadEvent{event: at(now, "joined"), Agents: []string{agent}})
}

// names are the paths of files below the fleet's folder, each once.
func (s *screen) names(files []string) []string {
	all := make([]string, 0, len(files))
	for _, f := range files {
		if rel, err := filepath.Rel(s.root, f); err == nil && filepath.IsLocal(rel) {
			f = rel
		}
		all = append(all, filepath.ToSlash(f))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// list is a few names in brackets.
func list(names []string) string {
	const most = 3
	switch {
	case len(names) == 0:
		return ""
	case len(names) > most:
		return output.Printable(fmt.Sprintf(" (%s and %d more)", strings.Join(names[:most], ", "), len(names)-most))
	}
	return output.Printable(" (" + strings.Join(names, ", ") + ")")
}
