package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/output"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/transport"
)

const (
	concierge = "concierge"
	reviewer  = "pr-reviewer"
	rogue     = envelope.Address("agent://rogue-reviewer")
	nobody    = envelope.Address("agent://nobody")
	// patch is a pull request of the sample that the reviewer objects to.
	patch = "file:agents/pr-reviewer/patches/invoice-export.patch"
)

// A scene makes one call, the nth, and shows its result. It fails when the call
// does not end the way the scene means to show.
type scene func(ctx context.Context, n int) error

// A stage is the running fleet, and the output of the demo.
type stage struct {
	fleet  *daemon.Fleet
	caller *daemon.Daemon
	out    io.Writer
	colors output.Colors
}

// A requester makes calls; an [caller.Client] is one.
type requester interface {
	RequestAgent(context.Context, rpc.Request) (*rpc.Result, error)
}

// call makes a call and shows it. want is the status that it must end with.
func (s *stage) call(ctx context.Context, from requester, r rpc.Request, want rpc.Status) (*rpc.Result, error) {
	fmt.Fprintf(s.out, "%s\n", s.colors.Dim(fmt.Sprintf("  agentd request --as %s %s %s '%s'", concierge, r.To, r.Capability, r.Payload)))
	result, _ := from.RequestAgent(ctx, r) // the error is in the result
	if err := output.WriteJSON(s.out, output.JSON, result); err != nil {
		return nil, err
	}
	if result.Status != want {
		return nil, fmt.Errorf("the demo expected status %s and got %s", want, result.Status)
	}
	return result, nil
}

// title prints the heading of the nth scene.
func (s *stage) title(n int, text string) {
	fmt.Fprintf(s.out, "\n%s\n", s.colors.Bold(fmt.Sprintf("%d. %s", n, text)))
}

// remark prints one sentence on what the call above has shown.
func (s *stage) remark(format string, args ...any) {
	fmt.Fprintf(s.out, "%s %s\n", s.colors.Good("→"), fmt.Sprintf(format, args...))
}

// reviewRequest returns a request for a review of the sample patch. Both strings
// are constants of the demo, so %q is good enough for JSON.
func reviewRequest(to envelope.Address, severity string) rpc.Request {
	payload := fmt.Sprintf(`{"prUrl":%q,"severity":%q}`, patch, severity)
	return rpc.Request{To: to, Capability: "review-pr", Payload: json.RawMessage(payload), SessionID: "demo"}
}

// review is the call that succeeds.
func (s *stage) review(ctx context.Context, n int) error {
	s.title(n, "A review. Payload and answer are validated at both ends.")
	result, err := s.call(ctx, s.caller.Client(), reviewRequest(envelope.AddressOf(reviewer), "low"), rpc.StatusOK)
	if err != nil {
		return err
	}
	var review struct {
		Verdict  string            `json:"verdict"`
		Findings []json.RawMessage `json:"findings"`
	}
	if err := json.Unmarshal(result.Response, &review); err != nil {
		return err
	}
	s.remark("status ok: the verdict is %s, with %d findings.", review.Verdict, len(review.Findings))
	return nil
}

// badRequest is the call whose payload the caller's own end rejects. The count of
// messages on the bus proves that none was sent for it.
func (s *stage) badRequest(ctx context.Context, n int) error {
	s.title(n, `A request that breaks the schema: severity is "critical".`)
	before := s.fleet.Bus.Published()
	_, err := s.call(ctx, s.caller.Client(), reviewRequest(envelope.AddressOf(reviewer), "critical"), rpc.StatusSchemaViolation)
	if err != nil {
		return err
	}
	s.remark("schema-violation, side request: %d messages were published for it, and the record is on disk.", s.fleet.Bus.Published()-before)
	return nil
}

// badResponse is the call whose answer breaks the contract that the caller holds.
func (s *stage) badResponse(ctx context.Context, n int) error {
	s.title(n, "An answer that breaks the schema, from an agent that does not check itself.")
	client, stop, err := s.startRogue()
	if err != nil {
		return err
	}
	_, err = s.call(ctx, client, reviewRequest(rogue, "med"), rpc.StatusSchemaViolation)
	if err == nil {
		s.remark("schema-violation, side response, found by the caller; the raw response is kept for debugging.")
	}
	return errors.Join(err, stop())
}

// startRogue starts an agent on the bus whose responses break the contract of
// pr-reviewer, and a client that holds it to that contract. The rogue has no
// output schema, or its own side would already have stopped the response.
func (s *stage) startRogue() (_ *caller.Client, stop func() error, err error) {
	const topic = "agents.rogue-reviewer.requests"
	unchecked, err := capability.Parse("rogue-reviewer", []byte(`
version: 1
agent: agent://rogue-reviewer
transports: [{kind: memory, topics: {requests: `+topic+`}}]
capabilities: [{name: review-pr}]
`), capability.LoadOptions{ValidateSchemas: true})
	if err != nil {
		return nil, nil, err
	}
	answer := rpc.HandlerFunc(func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
		return json.RawMessage(`{"verdict":"looks-good","summary":"Ship it."}`), nil
	})
	inbox, err := callee.New(callee.Config{
		Self: rogue, Contract: unchecked, Records: rpc.Records{Auditor: s.caller.Auditor()}, Handlers: map[string]rpc.Handler{"review-pr": answer},
	})
	if err != nil {
		return nil, nil, err
	}
	there, here := s.fleet.Bus.Connect(), s.fleet.Bus.Connect()
	if err := inbox.Listen(there, topic); err != nil {
		return nil, nil, err
	}
	member, _ := s.fleet.Daemon(reviewer)
	client, err := caller.New(caller.Config{
		Self: envelope.AddressOf(concierge), Records: rpc.Records{Auditor: s.caller.Auditor()}, Transports: []transport.Transport{here},
		Peers: rpc.Peers{rogue: {Address: rogue, Transport: there.Kind(), Topic: topic, Contract: member.Member().Capabilities}},
	})
	if err != nil {
		return nil, nil, err
	}
	// The inbox goes first: it may still answer over the transports that close
	// after it.
	return client, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		return errors.Join(inbox.Shutdown(ctx), client.Close(), here.Close(), there.Close())
	}, nil
}

// unknownPeer is the call to an agent that no peers file lists.
func (s *stage) unknownPeer(ctx context.Context, n int) error {
	s.title(n, "A peer that the peers file does not list.")
	_, err := s.call(ctx, s.caller.Client(), reviewRequest(nobody, "med"), rpc.StatusError)
	if err != nil {
		return err
	}
	s.remark("refused before anything was sent.")
	return nil
}
