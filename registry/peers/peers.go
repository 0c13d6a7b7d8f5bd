package peers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/peertool"
	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/rpc"
)

// A Peer is an agent with the capabilities of it that may be called.
type Peer struct {
	Address      envelope.Address
	Capabilities []*capability.Capability
}

// A Caller makes calls in the agent's name. The Client of package rpc/caller is one.
type Caller interface {
	RequestAgent(ctx context.Context, r rpc.Request) (*rpc.Result, error)
}

// A Resolver is the capability peers of one agent.
type Resolver struct {
	peers  []Peer
	caller Caller
}

// New returns the capability for an agent with these peers. It may be registered without
// any, to be listed.
func New(peers []Peer, caller Caller) *Resolver { return &Resolver{peers, caller} }

var _ registry.AgentResolver = (*Resolver)(nil)

// Key implements [registry.Resolver].
func (*Resolver) Key() string { return "peers" }

// Tools implements [registry.Resolver]. No agent has the same peers as another.
func (*Resolver) Tools() []registry.Tool { return nil }

// ConfigSchema implements [registry.Resolver].
func (*Resolver) ConfigSchema() json.RawMessage { return nil }

// A callable is a capability of a peer with the name of its tool.
type callable struct {
	name string
	to   envelope.Address
	*capability.Capability
}

// callables lists what may be called. Two that would have one name are an error: whoever
// calls it could not say which of the two it means.
func (r *Resolver) callables() ([]callable, error) {
	var all []callable
	named := map[string]string{}
	for _, p := range r.peers {
		for _, c := range p.Capabilities {
			what := string(p.Address) + "/" + c.Name
			name := peertool.Name(p.Address.ID(), c.Name)
			if other, taken := named[name]; taken {
				return nil, &registry.ConfigError{
					Message: fmt.Sprintf("%s and %s would both be the tool %q", other, what, name),
					Hint:    "call one of them from a skill instead, and deny it under permissions",
				}
			}
			named[name] = what
			all = append(all, callable{name, p.Address, c})
		}
	}
	return all, nil
}

// AgentTools implements [registry.AgentResolver].
func (r *Resolver) AgentTools(registry.Context, json.RawMessage) ([]registry.Tool, error) {
	all, err := r.callables()
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, registry.Skip("the agent has no peer that it may call and whose capabilities a file declares")
	}
	tools := make([]registry.Tool, len(all))
	for i, c := range all {
		tools[i] = registry.Tool{Key: c.name, Name: peertool.Title(c.to, c.Capability), Description: peertool.Description(c.to, c.Capability)}
	}
	return tools, nil
}

// Resolve implements [registry.Resolver].
func (r *Resolver) Resolve(_ registry.Context, config registry.Config) (*registry.Server, error) {
	if r.caller == nil {
		return nil, registry.Skip("there is nothing here that makes calls")
	}
	all, err := r.callables()
	if err != nil {
		return nil, err
	}
	s := registry.NewServer("peers", "1", config.Tools)
	for _, c := range all {
		input, output := peertool.Input(c.Capability), peertool.Output(c.Capability)
		err := s.Add(registry.ToolSpec{
			Key: c.name, Title: peertool.Title(c.to, c.Capability), Description: peertool.Description(c.to, c.Capability), Input: input.Schema, Output: output.Schema,
			Schemas: c.CompileOptions(), Idempotent: c.Idempotent, OpenWorld: true, Timeout: rpc.MaxTimeout,
		}, func(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
			return r.call(ctx, c, input, output, args)
		})
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

// call makes the whole call of the agent. The context has the call that the tool is used
// in, if there is one, so that this one is nested in it.
func (r *Resolver) call(ctx context.Context, c callable, input, output peertool.Shape, args json.RawMessage) (json.RawMessage, error) {
	payload, wrong := input.Unwrap(args)
	if wrong != nil { // the tool's own schema has found nothing, so it says less than the shape
		return nil, registry.Errorf(registry.InvalidArguments, "%s", registry.ViolationText("the arguments are not those of the tool", wrong))
	}
	result, err := r.caller.RequestAgent(ctx, rpc.Request{To: c.to, Capability: c.Name, Payload: payload})
	if result != nil && result.Status == rpc.StatusOK {
		return output.Wrap(result.Response)
	}
	var failed *rpc.Error
	if result != nil && result.Error != nil {
		failed = result.Error
	} else if !errors.As(err, &failed) {
		return nil, fmt.Errorf("call %s of %s: %w", c.Name, c.to, err)
	}
	return nil, translate(input, failed)
}
