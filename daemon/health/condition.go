package health

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// A Kind is what a [Condition] is about. The set is closed: status shows it, and
// operators match on it.
type Kind string

// The kinds.
const (
	// Broker is a broker that cannot be reached.
	Broker Kind = "broker"
	// AuditLog is an audit log that takes no records.
	AuditLog Kind = "audit-log"
	// Checkpoint is an audit log whose newest checkpoint could not be signed, or not
	// be written beside it.
	Checkpoint Kind = "audit-checkpoint"
	// Witness is a witness that has seen another history of the audit log, or, without a
	// subject, too few witnesses that co-sign it.
	Witness Kind = "audit-witness"
	// Erasure is a redaction or pruning of the audit log that was interrupted and cannot be
	// completed.
	Erasure Kind = "audit-erasure"
	// Idempotency is a store of answers that takes none.
	Idempotency Kind = "idempotency-store"
	// Identity is a key that is missing, not published, or out of its time.
	Identity Kind = "identity"
	// Listening is an agent that takes no requests although it could.
	Listening Kind = "listening"
	// DurableQueue is the broker's queue of requests to this agent, where none can be taken
	// from it although the broker is there.
	DurableQueue Kind = "durable-queue"
	// Replicas are further processes of an agent, where each remembers by itself which
	// requests it has accepted.
	Replicas Kind = "replicas"
	// Circuit is a capability of a peer that is not called, because most calls failed.
	Circuit Kind = "circuit"
	// Reload is a reload that has failed, so that the files in force are not those there.
	Reload Kind = "reload"
	// Sandbox is what skills are not held to.
	Sandbox Kind = "sandbox"
	// Worker is a skill that stays, and of which no process serves.
	Worker Kind = "worker"
	// Queue is a capability of this agent with more requests than it can take.
	Queue Kind = "queue"
	// ToolServer is an MCP server that is away, or a tool of it that does not keep the
	// contract of the capability that it serves.
	ToolServer Kind = "mcp-server"
	// HTTPSkill is a web service that runs a skill and cannot be reached.
	HTTPSkill Kind = "http-skill"
	// Issuer is an authorization server whose keys cannot be had, so that some MCP clients
	// are let in no more.
	Issuer Kind = "mcp-issuer"
	// Telemetry is a collector of traces or logs that cannot be reached. Nothing that calls
	// depend on fails.
	Telemetry Kind = "telemetry"
)

// The kinds that an agent cannot report of itself, and that `agentd fleet status` finds.
const (
	// Agent is a member that does not run, or does not answer.
	Agent Kind = "agent"
	// Contract is one that differs from its file.
	Contract Kind = "contract"
	// Tools is a capability that the agent lists as one to use, and does not have.
	Tools Kind = "tools"
)

// Kinds are those that an agent can report of itself.
func Kinds() []Kind {
	return []Kind{
		Broker, AuditLog, Checkpoint, Witness, Erasure, Idempotency, Identity, Listening, DurableQueue, Replicas, Circuit, Reload, Sandbox, Worker, Queue,
		ToolServer, HTTPSkill, Issuer, Telemetry,
	}
}

// A Condition is one thing that is wrong.
type Condition struct {
	// Kind and Subject identify it. Subject is "" where there is only one of a kind.
	Kind    Kind   `json:"kind"`
	Subject string `json:"subject,omitempty"`
	// Code distinguishes causes, such as disk-full. A condition whose code changes is
	// logged again.
	Code string `json:"code"`
	// Effect is what follows for calls.
	Effect string `json:"effect"`
	// Cause is why, and Remedy what an operator can do about it.
	Cause  string `json:"cause"`
	Remedy string `json:"remedy,omitempty"`
	// Advisory is true where the agent stays ready all the same.
	Advisory bool `json:"advisory,omitempty"`
	// Since is when it began; the [Board] sets it. It is zero where nobody knows.
	Since time.Time `json:"since,omitzero"`
}

// String is the condition in one line.
func (c Condition) String() string {
	text := fmt.Sprintf("%s: %s: %s", c.Kind, c.Effect, c.Cause)
	if c.Remedy != "" {
		text += " (" + c.Remedy + ")"
	}
	return text
}

// name identifies a condition.
type name struct {
	kind    Kind
	subject string
}

// A Board has the conditions that hold now. It is safe for concurrent use.
type Board struct {
	log *slog.Logger

	mu     sync.Mutex
	active map[name]Condition // guarded by mu
}

// NewBoard returns a board without conditions that logs those to come.
func NewBoard(log *slog.Logger) *Board { return &Board{log: log, active: map[name]Condition{}} }

// Begin puts a condition on the board, and logs it as an error: once, until it ends or
// its code changes.
func (b *Board) Begin(c Condition) {
	id := name{c.Kind, c.Subject}
	b.mu.Lock()
	before, known := b.active[id]
	c.Since = time.Now()
	if known {
		c.Since = before.Since
	}
	b.active[id] = c
	b.mu.Unlock()
	if known && before.Code == c.Code {
		return
	}
	b.log.Error(c.Effect, append(id.attrs(), "code", c.Code, "cause", c.Cause, "remedy", c.Remedy)...)
}

// End takes a condition off the board, if it is there, and logs how long it held.
func (b *Board) End(kind Kind, subject string) {
	id := name{kind, subject}
	b.mu.Lock()
	c, known := b.active[id]
	delete(b.active, id)
	b.mu.Unlock()
	if known {
		b.log.Info("over: "+c.Effect, append(id.attrs(), "code", c.Code, "lasted", time.Since(c.Since).Round(time.Millisecond))...)
	}
}

// attrs are what every line about a condition has.
func (n name) attrs() []any {
	if n.subject == "" {
		return []any{"condition", string(n.kind)}
	}
	return []any{"condition", string(n.kind), "subject", n.subject}
}

// Active returns the conditions, oldest first.
func (b *Board) Active() []Condition {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []Condition
	for _, c := range b.active {
		all = append(all, c)
	}
	slices.SortFunc(all, func(x, y Condition) int {
		return cmp.Or(x.Since.Compare(y.Since), cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Subject, y.Subject))
	})
	return all
}

// Err returns why the agent is not ready: every condition that is not advisory, or
// nil.
func (b *Board) Err() error {
	var all []error
	for _, c := range b.Active() {
		if !c.Advisory {
			all = append(all, errors.New(c.String()))
		}
	}
	return errors.Join(all...)
}

// Warnings returns the advisory conditions, a line each.
func (b *Board) Warnings() []string {
	var all []string
	for _, c := range b.Active() {
		if c.Advisory {
			all = append(all, c.String())
		}
	}
	return all
}
