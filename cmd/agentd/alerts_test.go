package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/rpc"
)

// The fleet of the alerts has all that one of them is about: a clerk with a queue, and with skills
// of which a service of the test decides how long they take; and a desk that has the clerk co-sign its
// audit log, asks a person before it pays, and was built against its own copy of the clerk's file.
const alertFiles = `
-- fleet.yaml --
version: 1
name: alerts
agents: [{id: clerk, path: ./clerk}, {id: desk, path: ./desk}]
environments: {default: {peersRef: ./rpc-peers.yaml}}
-- rpc-peers.yaml --
version: 1
peers:
  - agent: agent://clerk
    transports: [{kind: nats, servers: ["SERVER"], subjects: {requests: agents.clerk.requests}}]
    capabilities: ./pinned.yaml
-- desk/agent.yaml --
name: desk
audit: {witnesses: [agent://clerk]}
breaker: {minCalls: 2, coolDownMs: 600000}
permissions: {allow: ["RequestAgent:agent://clerk/*"], ask: ["RequestAgent:agent://clerk/pay"]}
-- clerk/agent.yaml --
name: clerk
monitoring: {objectives: {latencyMs: 60000, capabilities: {sort: {latencyMs: 200}}}}
durable: {ackWaitMs: 1500, maxDeliver: 1}
skills:
  file: {process: {command: [cat]}}
  pay: {process: {command: [cat]}}
  sort: {http: {url: "SERVICE/sort"}}
  hang: {http: {url: "SERVICE/hang"}}
  broken: {process: {command: [sh, -c, 'exit 75']}}
-- clerk/capabilities.yaml --
CAPABILITIES
-- pinned.yaml --
CAPABILITIES
`

const alertCapabilities = `version: 1
agent: agent://clerk
transports: [{kind: nats, servers: ["SERVER"], subjects: {requests: agents.clerk.requests}}]
capabilities:
  - {name: file, inputSchema: {type: object}}
  - {name: pay}
  - {name: sort}
  - {name: hang, timeoutMs: 1000}
  - {name: broken, delivery: durable}`

// alerted is the fleet, while it runs.
type alerted struct {
	office
	files  *laidFleet
	broker *natstest.Server
	mended atomic.Bool // the skill hang hangs no more
}

func openAlerted(t *testing.T) *alerted {
	t.Helper()
	a := &alerted{broker: natstest.Run(t, "jetstream {}")}
	service := httptest.NewServer(http.HandlerFunc(a.serve))
	t.Cleanup(service.Close)
	text := strings.NewReplacer("SERVER", a.broker.URL(), "SERVICE", service.URL).Replace(strings.ReplaceAll(alertFiles, "CAPABILITIES", alertCapabilities))
	a.files = layFleet(t, text, "--listen", "127.0.0.1:0")
	a.root = a.files.root
	a.startClerk(t)
	a.desk = a.files.run(t, "desk", filepath.Join(a.files.dir, "s"))
	// The first answer of a witness is no lag.
	eventually.Holds(t, "the clerk has co-signed", func() bool {
		s, err := a.desk.Status(t.Context())
		return err == nil && s.Audit != nil && len(s.Audit.Witnesses) == 1 && s.Audit.Witnesses[0].UnsignedSince.IsZero()
	})
	return a
}

// serve runs skills.
func (a *alerted) serve(w http.ResponseWriter, r *http.Request) {
	payload, err := io.ReadAll(r.Body)
	switch {
	case err != nil:
		return
	case r.URL.Path == "/hang" && !a.mended.Load():
		<-r.Context().Done()
	case strings.Contains(string(payload), "slow"):
		time.Sleep(201 * time.Millisecond) // what the clerk measures is longer than its objective
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(payload)
}

func (a *alerted) startClerk(t *testing.T) {
	t.Helper()
	a.clerk = a.files.run(t, "clerk", filepath.Join(a.files.dir, "s"))
}

// ask makes a call of the desk to the clerk.
func (a *alerted) ask(t *testing.T, capability, payload string) *rpc.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	result, err := a.desk.RequestAgent(ctx, rpc.Request{To: "agent://clerk", Capability: capability, Payload: json.RawMessage(payload)})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// asks makes calls at once, each of which must end well.
func (a *alerted) asks(t *testing.T, n int, capability, payload string) {
	t.Helper()
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			if r := a.ask(t, capability, payload); r.Status != rpc.StatusOK {
				t.Errorf("%s: %+v", capability, r.Error)
			}
		})
	}
	all.Wait()
}

// command runs agentd as the operator of the fleet.
func (a *alerted) command(t *testing.T, args ...string) (stdout string, status int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "agentd", append(args, "-C", a.root)...)
	cmd.Env = a.desk.env // the clerk's is the same
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// An alertFault is what an alert is about: how it comes, what says so, and how it goes.
type alertFault struct {
	agent  string // the one that the alert names
	ready  bool   // it serves calls all the same
	says   string // of /readyz?verbose, a regular expression
	doctor string // a line of doctor: its check, status, text and remedy, a regular expression
	status int    // the exit status of doctor
	begin  func(t *testing.T, a *alerted) (end func())
}

// alertFaults has one for each alert.
func alertFaults() map[string]alertFault {
	return map[string]alertFault{
		"AgentdAuditRefusing": {
			agent: "clerk", says: `clerk: audit-log: calls are refused: no record of them can be kept`,
			doctor: `agent fail \[audit-log\] calls are refused.* → .*put (this one|its folder) back.*`, status: 3,
			begin: func(t *testing.T, a *alerted) func() {
				moved := a.clerk.state + "-away"
				if err := os.Rename(a.clerk.state, moved); err != nil {
					t.Fatal(err)
				}
				return func() {
					if err := os.Rename(moved, a.clerk.state); err != nil {
						t.Error(err)
					}
				}
			},
		},
		"AgentdBrokerAway": {
			agent: "clerk", says: `clerk: nats: `,
			doctor: `broker fail cannot be reached.* → start it \(agentd broker\).*`, status: 3,
			begin: func(_ *testing.T, a *alerted) func() {
				a.broker.Stop()
				return a.broker.Start
			},
		},
		"AgentdDrift": {
			agent: "desk", ready: true, says: `desk: warning: calls are refused since .*file`,
			doctor: `peers fail agent://clerk serves another contract of file.* → bring this fleet's copy.*`, status: 3,
			begin: changeContract,
		},
		"AgentdBreakerOpen": {
			agent: "desk", ready: true, says: `desk: warning: circuit: calls to hang of agent://clerk are refused until`,
			doctor: `circuits fail calls to hang of agent://clerk are refused until .* → .*agentd fleet reset-breaker clerk/hang --as desk.*`, status: 3,
			begin: func(t *testing.T, a *alerted) func() {
				for range 2 {
					if r := a.ask(t, "hang", `{}`); r.Status != rpc.StatusTimeout {
						t.Errorf("it does not hang: %+v", r)
					}
				}
				return func() {
					a.mended.Store(true)
					eventually.Holds(t, "the remedy helps", func() bool { // a machine may be busy for a second
						out, status := a.command(t, "fleet", "reset-breaker", "clerk/hang", "--as", "desk")
						if status != 0 {
							t.Errorf("%d: %s", status, out)
						}
						return a.ask(t, "hang", `{}`).Status == rpc.StatusOK
					})
				}
			},
		},
		"AgentdDeadLetters": {
			agent: "clerk", ready: true, says: `clerk: warning: 1 dead letter: .*agentd dlq list`,
			doctor: `agent warn dead letters: the queue has given up on 1 .* → agentd dlq list --agent clerk`,
			begin: func(t *testing.T, a *alerted) func() {
				if r := a.ask(t, "broken", `{}`); r.Status == rpc.StatusOK {
					t.Errorf("%+v", r)
				}
				return func() {
					if out, status := a.command(t, "dlq", "drop", "--agent", "clerk", "1"); status != 0 {
						t.Errorf("%d: %s", status, out)
					}
				}
			},
		},
		"AgentdWitnessLag": {
			agent: "desk", ready: true, says: `desk: warning: the witness agent://clerk has not co-signed the audit log since `,
			doctor: `witnesses warn agent://clerk has not co-signed the audit log since .* → start agent://clerk.*`, status: 3, // and it does not answer as a peer
			begin: func(t *testing.T, a *alerted) func() {
				if err := a.clerk.log.process.Signal(syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
				<-a.clerk.log.ended
				a.ask(t, "file", `{}`) // has a record, and that a checkpoint
				return func() { a.startClerk(t) }
			},
		},
		"AgentdApprovalsWaiting": {
			agent: "desk", ready: true, says: `desk: warning: 1 call waits for a person, .*agentd approvals list`,
			doctor: `agent warn 1 call: waiting for a person.* → agentd approvals list --agent desk`,
			begin:  letWait,
		},
		"AgentdLatencyBurn": {
			agent: "clerk", ready: true, says: `clerk: warning: 100% of the requests for sort in the last 5 minutes took longer than 0.2s`,
			doctor: `latency warn 100% of the requests for sort in the last 5 minutes took longer than 0.2s, .* → agentd top --agent clerk --sort latency; .*monitoring.objectives.*`,
			begin: func(t *testing.T, a *alerted) func() {
				a.asks(t, 2, "sort", `{"slow":true}`)
				return func() { // fast ones, until they are enough
					eventually.Succeeds(t, "status says nothing of it", func() error {
						a.asks(t, 1, "sort", `{}`)
						s, err := a.clerk.Status(t.Context())
						if err == nil && len(s.Slow) > 0 {
							err = fmt.Errorf("%s", s.Slow[0])
						}
						return err
					})
				}
			},
		},
	}
}

// changeContract has the clerk serve another contract than the desk was built against.
func changeContract(t *testing.T, a *alerted) (end func()) {
	path := filepath.Join(a.root, "clerk", "capabilities.yaml")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Error(err)
		}
	}
	ends := func(status rpc.Status, code rpc.Code) {
		eventually.Succeeds(t, "calls go by the new contract", func() error {
			if r := a.ask(t, "file", `{}`); r.Status != status || r.Error != nil && r.Error.Code != code {
				return fmt.Errorf("%s, %+v", r.Status, r.Error)
			}
			return nil
		})
	}
	write(strings.Replace(string(good), "{type: object}", "{type: object, required: [title]}", 1))
	ends(rpc.StatusError, rpc.CodeSchemaDrift)
	return func() {
		write(string(good))
		ends(rpc.StatusOK, 0)
	}
}

// letWait has a call wait for a person.
func letWait(t *testing.T, a *alerted) (end func()) {
	var waiting sync.WaitGroup
	waiting.Go(func() {
		if r := a.ask(t, "pay", `{}`); r.Status != rpc.StatusOK {
			t.Errorf("%+v", r.Error)
		}
	})
	return func() {
		all, err := a.desk.Approvals(t.Context(), false)
		if err != nil || len(all) != 1 {
			t.Fatalf("%+v, %v", all, err)
		}
		if err := a.desk.Decide(t.Context(), all[0].ID, control.Decision{Approve: true}); err != nil {
			t.Error(err)
		}
		waiting.Wait()
	}
}

// Each fault that an alert is about moves what the alert reads; /readyz says why and doctor what to
// do; and when the fault is mended so is all of that, without a restart of the agent.
func TestAlertedFaults(t *testing.T) {
	rules, faults := readRules(t), alertFaults()
	if len(rules) != len(faults) {
		t.Errorf("%d alerts, and %d faults", len(rules), len(faults))
	}
	for name, rule := range rules {
		fault, ok := faults[name]
		if !ok {
			t.Errorf("no fault is known for the alert %s", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := openAlerted(t)
			a.wantQuiet(t, rule, fault)
			end := fault.begin(t, a)
			a.wantAlarm(t, rule, fault)
			end()
			a.wantQuiet(t, rule, fault)
		})
	}
}

// subject is the agent that a fault is at.
func (a *alerted) subject(fault alertFault) member {
	if fault.agent == "clerk" {
		return a.clerk
	}
	return a.desk
}

func (a *alerted) wantAlarm(t *testing.T, rule alertRule, fault alertFault) {
	t.Helper()
	m := a.subject(fault)
	eventually.Succeeds(t, "the metric moves", func() error {
		if fires, value := rule.fires(t, m.page(t, "/metrics").text, fault.agent); !fires {
			return fmt.Errorf("%s is %g", rule.Expr, value)
		}
		return nil
	})
	want := http.StatusServiceUnavailable
	if fault.ready {
		want = http.StatusOK
	}
	eventually.Succeeds(t, "/readyz says why", func() error {
		if p := m.page(t, "/readyz?verbose"); p.status != want || !regexp.MustCompile(fault.says).MatchString(p.text) {
			return fmt.Errorf("%d: %s", p.status, p.text)
		}
		return nil
	})
	eventually.Succeeds(t, "doctor names the cure", func() error {
		if lines, status := a.doctor(t, fault.agent); status != fault.status || !regexp.MustCompile(`(?m)^`+fault.doctor+`$`).MatchString(lines) {
			return fmt.Errorf("doctor ends with %d, and says\n%s", status, lines)
		}
		return nil
	})
}

func (a *alerted) wantQuiet(t *testing.T, rule alertRule, fault alertFault) {
	t.Helper()
	m := a.subject(fault)
	eventually.Succeeds(t, "the metric is well", func() error {
		if fires, value := rule.fires(t, m.page(t, "/metrics").text, fault.agent); fires {
			return fmt.Errorf("%s is %g", rule.Expr, value)
		}
		return nil
	})
	eventually.Succeeds(t, "/readyz has nothing to say", func() error {
		if p := m.page(t, "/readyz?verbose"); p.status != http.StatusOK || regexp.MustCompile(fault.says).MatchString(p.text) {
			return fmt.Errorf("%d: %s", p.status, p.text)
		}
		return nil
	})
	eventually.Succeeds(t, "doctor finds no fault", func() error {
		if lines, status := a.doctor(t, fault.agent); status != 0 || regexp.MustCompile(`(?m)^`+fault.doctor+`$`).MatchString(lines) {
			return fmt.Errorf("doctor ends with %d, and says\n%s", status, lines)
		}
		return nil
	})
}

// doctor examines an agent. The lines are "<check> <status> <text> → <remedy>".
func (a *alerted) doctor(t *testing.T, agent string) (lines string, status int) {
	t.Helper()
	out, status := a.command(t, "doctor", "--agent", agent, "-o", "jsonl")
	var b strings.Builder
	for line := range strings.Lines(out) {
		var l struct{ Check, Status, Text, Remedy string }
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Errorf("%q: %v", line, err)
		}
		fmt.Fprintf(&b, "%s %s %s → %s\n", l.Check, l.Status, strings.Join(strings.Fields(l.Text), " "), l.Remedy)
	}
	return b.String(), status
}

// A page is what an agent answers to a machine.
type page struct {
	status int
	text   string
}

func (m member) page(t *testing.T, path string) page {
	t.Helper()
	s, err := m.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.Get(s.Monitoring + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return page{response.StatusCode, string(text)}
}
