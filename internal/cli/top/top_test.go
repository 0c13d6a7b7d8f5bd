package top

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/daemon/health"
	"github.com/agentd/agentd/internal/output"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
)

// began is when the agents of these tests did.
var began = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// office are the readings of an agent, two seconds apart.
func office() (before, now *reading) {
	status := control.Status{
		Agent: "agent://desk", PID: 7, Started: began, Ready: true,
		Approvals: []control.ApprovalsWaiting{{Role: rpc.RoleCaller, Waiting: 2, Oldest: began}},
		Audit:     &control.AuditStatus{Backlog: 3, Lost: 1, Witnesses: []control.WitnessStatus{{Witness: "w", UnsignedSince: began}}},
		Brokers:   []control.Broker{{Broker: "nats", Connected: true}, {Broker: "jetstream"}},
		Breakers:  []control.Breaker{{Peer: "agent://clerk", Capability: "file", State: policy.BreakerOpen}},
		Drift:     []control.DriftVerdicts{{Peer: "agent://clerk", Refused: 1}},
		Workers:   []control.Worker{{Skill: "python", Instances: 2, Serving: 1, Running: 1, Waiting: 4, Restarts: 5}},
		Conditions: []health.Condition{
			{Kind: health.Circuit, Effect: "calls are refused", Cause: "all failed", Advisory: true},
			{Kind: health.AuditLog, Effect: "no call is made", Cause: "the disk\nis full"},
		},
	}
	earlier := status
	earlier.Processes = []control.Processes{{Skill: "python", CPUSeconds: 10}}
	status.Processes = []control.Processes{{Skill: "python", Running: 2, CPUSeconds: 11, ResidentBytes: 64 << 20}}
	count := func(role rpc.Role, calls, failed, limited uint64, quick, slow uint64) control.CallCounts {
		return control.CallCounts{
			Role: role, Peer: "agent://clerk", Capability: "file", Calls: calls, RateLimited: limited,
			Failed:    map[string]uint64{rpc.CodeSchemaViolation.String(): failed},
			Latencies: []control.LatencyBucket{{UpTo: 0.002, Calls: quick}, {UpTo: 1.5, Calls: slow}},
		}
	}
	before = &reading{began.Add(time.Minute), control.Activity{Status: earlier, Models: []control.ModelTokens{
		{Capability: "file", Provider: "p", Model: "again", Operation: "chat", Requests: 9, Input: 90, Output: 9},
		{Capability: "file", Provider: "p", Model: "opus", Operation: "chat", Requests: 10, Input: 4000, Output: 300},
	}, Calls: []control.CallCounts{
		count(rpc.RoleCaller, 100, 1, 0, 100, 0), count(rpc.RoleCallee, 5000, 0, 0, 5000, 0),
	}}}
	now = &reading{began.Add(time.Minute + 2*time.Second), control.Activity{
		Models: []control.ModelTokens{
			{Capability: "file", Provider: "p", Model: "again", Operation: "chat", Requests: 1, Input: 8, Output: 2},
			{Capability: "file", Provider: "p", Model: "opus", Operation: "chat", Requests: 12, Input: 5000, Output: 340},
		},
		Status: status, RoundTrips: []control.RoundTrip{{Broker: "nats", Milliseconds: 0.25}}, Queue: &control.Queue{Waiting: 6, Dead: 1},
		Calls:    []control.CallCounts{count(rpc.RoleCaller, 200, 51, 10, 198, 2), count(rpc.RoleCallee, 10, 0, 0, 10, 0)},
		InFlight: []control.InFlight{{Role: rpc.RoleCallee, Peer: "other", Capability: "echo", Running: 1, Waiting: 9}},
	}}
	return before, now
}

// Rates and latencies are those of the interval, and what was counted before is not in them. Of
// counts that began again, all are new.
func TestCompare(t *testing.T) {
	t.Parallel()
	before, now := office()
	a := newAgent("desk", before, now)
	want := []calls{
		{Role: rpc.RoleCaller, Peer: "agent://clerk", Capability: "file", Ended: 100, PerSecond: 50, FailedShare: 0.5, P50Ms: 2, P99Ms: 1500,
			Failed: map[string]uint64{rpc.CodeSchemaViolation.String(): 50}, LimitedPerSecond: 5, Total: 200, Violations: 51},
		{Role: rpc.RoleCallee, Peer: "agent://clerk", Capability: "file", Ended: 10, PerSecond: 5, P50Ms: 2, P99Ms: 2, Total: 10},
		{Role: rpc.RoleCallee, Peer: "other", Capability: "echo", InFlight: 1, Queued: 9},
	}
	if !reflect.DeepEqual(a.Calls, want) {
		t.Errorf("%+v\nwant %+v", a.Calls, want)
	}
	if a.Seconds != 2 || a.Skills[0].CPU != 0.5 || a.Skills[0].Worker.Waiting != 4 || a.Brokers[0].RoundTripMs != 0.25 {
		t.Errorf("%+v", a)
	}
	if a = newAgent("desk", nil, now); a.Seconds != 0 || a.Calls[0].PerSecond != 0 || a.Calls[0].Ended != 0 || a.Calls[0].Total != 200 {
		t.Errorf("without an interval there are no rates: %+v", a.Calls[0])
	}
}

// officeSnapshot has an agent that answers, two that do not, and one that runs elsewhere.
func officeSnapshot() *snapshot {
	before, now := office()
	return &snapshot{Time: began.Add(time.Hour), Fleet: "office", Agents: []agent{
		{Agent: "gone", State: stateDown, Error: "does not run on this host", Away: began},
		{Agent: "hung", State: stateUnreachable, Error: "has not answered for 3s", Away: began},
		{Agent: "far", State: stateDown, elsewhere: true},
		newAgent("desk", before, now),
	}}
}

func TestPlain(t *testing.T) {
	t.Parallel()
	s := officeSnapshot()
	s.sort(byRate)
	const want = `13:00:00  office: 1 running, 2 away, 50.0 calls/s made, 5.0/s served, by rate; not running here: far
✗ desk [audit-log] no call is made: the disk is full
✗ gone: does not run on this host, since 12:00:00
✗ hung: has not answered for 3s, since 12:00:00
! desk [circuit] calls are refused: all failed

AGENT  STATE        UP    MADE/S  SERVED/S  FAILED  FLIGHT  QUEUED  APPROVALS  BROKER       AUDIT       NOTE
desk   ready        1h0m  50.0    5.0       45.5%   1       9       2          0.25ms away  3 (1 lost)  queue: 6 waiting, 0 in flight, 1 dead; 1 of 1 witnesses lag
gone   down         -     -       -         -       -       -       -          -            -
hung   unreachable  -     -       -         -       -       -       -          -            -

AGENT  ROLE    PEER   CAPABILITY  CALLS/S  FAILED  P50     P99     FLIGHT  QUEUED  NOTE
desk   caller  clerk  file        50.0     50.0%   2.00ms  1.5s    0       -       circuit open; 5.0/s limited; violations: 51; drift: 1 refused
desk   callee  clerk  file        5.0      0.0%    2.00ms  2.00ms  0       0
desk   callee  other  echo        0.0      -       -       -       1       9

AGENT  SKILL   PROCESSES  SERVING  RUNNING  WAITING  CPU    MEMORY  NOTE
desk   python  2          1/2      1        4        50.0%  64M     restarts: 5

AGENT  CAPABILITY  PROVIDER  MODEL  OPERATION  IN/S  OUT/S  REQUESTS  INPUT  OUTPUT
desk   file        p         opus   chat       500   20.0   12        5000   340
desk   file        p         again  chat       4.0   1.0    1         8      2
`
	if got := (look{order: byRate}).plain(s); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestSort(t *testing.T) {
	t.Parallel()
	for order, first := range map[Sort]string{
		byRate: "callee a", byErrors: "callee b", byLatency: "caller c", byInFlight: "callee d", byName: "callee a",
	} {
		s := &snapshot{Agents: []agent{{Agent: "x", State: stateReady, Calls: []calls{
			{Role: rpc.RoleCallee, Capability: "d", InFlight: 1, Queued: 2}, {Role: rpc.RoleCaller, Capability: "c", P99Ms: 9},
			{Role: rpc.RoleCallee, Capability: "b", FailedShare: 1}, {Role: rpc.RoleCallee, Capability: "a", PerSecond: 3},
		}}}}
		s.sort(order)
		if c := s.Agents[0].Calls[0]; fmt.Sprintf("%s %s", c.Role, c.Capability) != first {
			t.Errorf("by %s, %s %s is first", order, c.Role, c.Capability)
		}
	}
	if _, err := parseSort("size"); err == nil {
		t.Error("an order that there is not")
	}
}

// Names that others have chosen move no cursor, whatever they hold.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	const hostile = "\x1b[2J\x07\u202e\n\x9bx\xff"
	_, now := office()
	a := newAgent(hostile, nil, now)
	a.Error, a.State = hostile, stateNotReady
	a.Calls = []calls{{Peer: hostile, Capability: hostile}}
	a.Models = []modelTokens{{ModelTokens: control.ModelTokens{Capability: hostile, Provider: hostile, Model: hostile, Operation: hostile}}}
	a.Skills = []skill{{Skill: hostile, Worker: &control.Worker{Down: hostile}}}
	a.Conditions[0].Cause, a.Conditions[0].Effect = hostile, hostile
	s := &snapshot{Fleet: hostile, Agents: []agent{a, {Agent: hostile, State: stateUnreachable, Error: hostile}, {Agent: hostile, elsewhere: true}}}
	for _, text := range []string{(look{}).plain(s), strings.NewReplacer(home, "", endLine, "", endScreen, "", "\r\n", "\n").Replace((&screen{shown: s}).draw(200, 60))} {
		if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) }); i >= 0 {
			t.Errorf("a control character in %q", text[i:])
		}
	}
}

// A view fits the terminal, however small that is, and troubles and keys are shown.
func TestDrawFits(t *testing.T) {
	t.Parallel()
	s := officeSnapshot()
	for i := range 100 {
		s.Agents[3].Calls = append(s.Agents[3].Calls, calls{Role: rpc.RoleCaller, Capability: fmt.Sprintf("c%d", i)})
	}
	for _, height := range []int{1, 2, 3, 6, 12, 24, 60} {
		for _, width := range []int{1, 20, 80, 300} {
			view := &screen{shown: s, look: look{order: byRate}, scroll: 1000}
			text := strings.NewReplacer(home, "", endLine, "", endScreen, "").Replace(view.draw(width, height))
			lines := strings.Split(text, "\r\n")
			if len(lines) != height {
				t.Fatalf("%d lines on a terminal of %d", len(lines), height)
			}
			for _, line := range lines {
				if len([]rune(line)) > width {
					t.Fatalf("%q is wider than %d", line, width)
				}
			}
			if height >= 20 && width >= 80 && (!strings.HasPrefix(lines[1], "✗ desk [audit-log]") || !strings.HasPrefix(lines[height-1], "q quit") || !strings.Contains(text, "CAPABILITY")) {
				t.Fatalf("at %d×%d\n%s", width, height, text)
			}
		}
	}
	if bold := (&screen{shown: s, look: look{colors: output.Colors{On: true}}}).draw(80, 24); !strings.Contains(bold, "\x1b[1mAGENT") {
		t.Error("headers are not bold")
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	var p keyParser
	var got []key
	for _, b := range []byte("r\x1b[A\x1bOB\x1b[1;5C\x1b[3~\x1bxe\x03") {
		if k, ok := p.next(b); ok {
			got = append(got, k)
		}
	}
	if want := []key{'r', up, down, right, 'x', 'e', interrupt}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	s := screen{look: look{order: byRate}}
	for _, step := range []struct {
		key   key
		order Sort
		on    bool
	}{{left, byName, true}, {right, byRate, true}, {right, byErrors, true}, {'l', byLatency, true}, {'z', byLatency, true}, {'q', byLatency, false}, {interrupt, byLatency, false}} {
		if on := s.press(step.key); on != step.on || s.look.order != step.order {
			t.Errorf("after %v it sorts by %s, and goes on: %v", step.key, s.look.order, on)
		}
	}
}
