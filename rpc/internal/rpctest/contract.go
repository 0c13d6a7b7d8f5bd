package rpctest

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
)

// Contract declares review-pr, with schemas for both sides, and loose, without any.
const Contract = `
version: 1
agent: agent://pr-reviewer
transports:
  - kind: memory
    topics: {requests: agents.pr-reviewer.requests}
capabilities:
  - name: review-pr
    timeoutMs: 5000
    inputSchema:
      type: object
      properties:
        prUrl: {type: string}
        severity: {enum: [low, med, high]}
      required: [prUrl, severity]
      additionalProperties: false
    outputSchema:
      type: object
      properties:
        verdict: {enum: [approve, request-changes, comment]}
      required: [verdict]
  - name: loose
`

// A valid payload and a valid answer of review-pr.
const (
	ValidRequest = `{"prUrl":"https://example.com/1","severity":"med"}`
	ValidAnswer  = `{"verdict":"approve"}`
)

// Request is a valid call to review-pr.
func Request() rpc.Request {
	return rpc.Request{To: Reviewer, Capability: "review-pr", Payload: json.RawMessage(ValidRequest)}
}

// Listening is r with OnProgress set, and the events that it gets. They need no lock:
// a call hands them over on its own goroutine.
func Listening(r rpc.Request) (rpc.Request, *[]rpc.ProgressEvent) {
	events := &[]rpc.ProgressEvent{}
	r.OnProgress = func(e rpc.ProgressEvent) { *events = append(*events, e) }
	return r, events
}

// ContractWith is [Contract] with keys, YAML indented by four spaces, in place of
// review-pr's timeout.
func ContractWith(t testing.TB, keys string) *capability.Document {
	t.Helper()
	return Document(t, strings.Replace(Contract, "    timeoutMs: 5000\n", keys, 1))
}

// OncePerHour are keys for [ContractWith] that allow one call.
const OncePerHour = "    rateLimit: {requests: 1, period: 1h}\n"

// Both gives both ends one contract, and their refusals one log.
func Both(doc *capability.Document, refusals *Refusals) Option {
	return func(cc *caller.Config, ic *callee.Config) {
		peer := cc.Peers.(rpc.Peers)[Reviewer]
		peer.Contract = doc
		cc.Peers, ic.Contract = rpc.Peers{Reviewer: peer}, doc
		cc.Records.Refusals, ic.Records.Refusals = refusals, refusals
	}
}

// WithProgress has the callee declare progress for every capability.
func WithProgress(t testing.TB) Option {
	return func(_ *caller.Config, ic *callee.Config) {
		ic.Contract = Document(t, strings.ReplaceAll(Contract, "- name: ", "- progress: true\n    name: "))
	}
}

// Answers is a skill with one answer.
func Answers(s string) rpc.Handler {
	return rpc.HandlerFunc(func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
		return json.RawMessage(s), nil
	})
}

// Fails is a skill with one error.
func Fails(err error) rpc.Handler {
	return rpc.HandlerFunc(func(context.Context, *rpc.Invocation) (json.RawMessage, error) { return nil, err })
}

// Counts is a skill that reports the numbers from 1 to n as progress, and answers.
func Counts(n int) rpc.Handler {
	return rpc.HandlerFunc(func(ctx context.Context, _ *rpc.Invocation) (json.RawMessage, error) {
		for i := range n {
			if err := rpc.Progress(ctx, json.RawMessage(strconv.Itoa(i+1))); err != nil {
				return nil, err
			}
		}
		return json.RawMessage(ValidAnswer), nil
	})
}

// Hangs is a skill that runs until its context ends, and sends the cause.
func Hangs(ended chan<- error) rpc.Handler {
	return rpc.HandlerFunc(func(ctx context.Context, _ *rpc.Invocation) (json.RawMessage, error) {
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return nil, ctx.Err()
	})
}

// Silent is a skill that outlives its deadline, so that its caller gives up first.
func Silent() rpc.Handler {
	return rpc.HandlerFunc(func(ctx context.Context, _ *rpc.Invocation) (json.RawMessage, error) {
		<-ctx.Done()
		time.Sleep(time.Second)
		return nil, ctx.Err()
	})
}

// A Gate is a skill that runs until the test lets it finish.
type Gate struct {
	// Running gets the message id of each request that begins.
	Running chan string
	// Finish ends one running request for each value that it gets, or all when it is
	// closed.
	Finish chan struct{}
}

// NewGate returns a Gate with room for 100 requests.
func NewGate() *Gate {
	return &Gate{Running: make(chan string, 100), Finish: make(chan struct{})}
}

// Handle implements [rpc.Handler].
func (g *Gate) Handle(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
	g.Running <- inv.MessageID
	select {
	case <-g.Finish:
		return json.RawMessage(ValidAnswer), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
