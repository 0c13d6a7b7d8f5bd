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
	callerAddr = "concierge"
	reviewer   = "pr-reviewer"
	rogue      = envelope.Address("agent://rogue-reviewer")
	nobody     = envelope.Address("agent://nobody")
	// patch is a pull request of the sample that has something to find.
	patch = "file:agents/pr-reviewer/patches/invoice-export.patch"
)

// A NotSampleError says that the fleet is not the one that the demo plays on.
type NotSampleError struct {
	// Root is the fleet's folder.
	Root string
}

func (e *NotSampleError) Error() string {
	return fmt.Sprintf("the demo needs the sample fleet of the agentd repository, and the fleet in %s is another one: run it in a clone of the repository", e.Root)
}

// Run starts the fleet of cfg in this process, plays the calls, writes each with
// its result to w, and stops the fleet. The audit logs stay.
func Run(ctx context.Context, cfg daemon.Config, w io.Writer, colors output.Colors) (err error) {
	for _, id := range []string{callerAddr, reviewer} {
		if m, ok := cfg.Fleet.Member(id); !ok || m.ClientOnly() {
			return &NotSampleError{Root: cfg.Fleet.Root}
		}
	}
	fmt.Fprintf(w, "%s\n", colors.Bold(fmt.Sprintf("Starting the fleet %s: %d agents in one process, over the memory transport.",
		cfg.Fleet.Name, len(cfg.Fleet.Members))))
	f, err := daemon.StartFleet(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() {
		stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.ShutdownTimeout())
		defer cancel()
		err = errors.Join(err, f.Stop(stopCtx))
	}()
	d, _ := f.Daemon(callerAddr)
	s := &stage{fleet: f, caller: d, out: w, colors: colors}
	for i, scene := range []scene{s.review, s.badRequest, s.badResponse, s.unknownPeer} {
		if err := scene(ctx, i+1); err != nil {
			return err
		}
	}
	return nil
}

// A scene is one call and what it shows. It fails when the call does not end
// as the scene says.
type scene func(ctx context.Context, n int) error

// A stage is the running fleet and where its calls are shown.
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

// play makes a call and shows it. want is the status that it must have.
func (s *stage) play(ctx context.Context, from requester, r rpc.Request, want rpc.Status) (*rpc.Result, error) {
	fmt.Fprintf(s.out, "%s\n", s.colors.Dim(fmt.Sprintf("  agentd request --as %s %s %s '%s'", callerAddr, r.To, r.Capability, r.Payload)))
	result, _ := from.RequestAgent(ctx, r) // the error is in the result
	if err := output.WriteJSON(s.out, output.JSON, result); err != nil {
		return nil, err
	}
	if result.Status != want {
		return nil, fmt.Errorf("the demo expected status %s and got %s", want, result.Status)
	}
	return result, nil
}

func (s *stage) title(n int, text string) {
	fmt.Fprintf(s.out, "\n%s\n", s.colors.Bold(fmt.Sprintf("%d. %s", n, text)))
}

func (s *stage) remark(format string, args ...any) {
	fmt.Fprintf(s.out, "%s %s\n", s.colors.Good("→"), fmt.Sprintf(format, args...))
}

func reviewRequest(to envelope.Address, severity string) rpc.Request {
	payload := fmt.Sprintf(`{"prUrl":%q,"severity":%q}`, patch, severity)
	return rpc.Request{To: to, Capability: "review-pr", Payload: json.RawMessage(payload), SessionID: "demo"}
}

func (s *stage) review(ctx context.Context, n int) error {
	s.title(n, "A review. Payload and answer are validated at both ends.")
	result, err := s.play(ctx, s.caller.Client(), reviewRequest(envelope.AddressOf(reviewer), "low"), rpc.StatusOK)
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

func (s *stage) badRequest(ctx context.Context, n int) error {
	s.title(n, `A request that breaks the schema: severity is "critical".`)
	before := s.fleet.Bus.Published()
	_, err := s.play(ctx, s.caller.Client(), reviewRequest(envelope.AddressOf(reviewer), "critical"), rpc.StatusSchemaViolation)
	if err != nil {
		return err
	}
	s.remark("schema-violation, side request: %d messages were published for it, and the record is on disk.", s.fleet.Bus.Published()-before)
	return nil
}

func (s *stage) badResponse(ctx context.Context, n int) error {
	s.title(n, "An answer that breaks the schema, from an agent that does not check itself.")
	client, stop, err := s.startRogue()
	if err != nil {
		return err
	}
	_, err = s.play(ctx, client, reviewRequest(rogue, "med"), rpc.StatusSchemaViolation)
	if err == nil {
		s.remark("schema-violation, side response, found by the caller; the raw response is kept for debugging.")
	}
	return errors.Join(err, stop())
}

// startRogue puts an agent on the bus that answers what its callers do not
// accept, and makes a client that holds it to pr-reviewer's contract.
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
		Self: envelope.AddressOf(callerAddr), Records: rpc.Records{Auditor: s.caller.Auditor()}, Transports: []transport.Transport{here},
		Peers: rpc.Peers{rogue: {Address: rogue, Transport: there.Kind(), Topic: topic, Contract: member.Member().Capabilities}},
	})
	if err != nil {
		return nil, nil, err
	}
	return client, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		return errors.Join(inbox.Shutdown(ctx), client.Close(), here.Close(), there.Close())
	}, nil
}

func (s *stage) unknownPeer(ctx context.Context, n int) error {
	s.title(n, "A peer that the peers file does not list.")
	_, err := s.play(ctx, s.caller.Client(), reviewRequest(nobody, "med"), rpc.StatusError)
	if err != nil {
		return err
	}
	s.remark("refused before anything was sent.")
	return nil
}
