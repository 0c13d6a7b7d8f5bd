package peers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
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
			name := toolName(p.Address.ID(), c.Name)
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
		tools[i] = registry.Tool{Key: c.name, Name: c.title(), Description: c.describe()}
	}
	return tools, nil
}

func (c *callable) title() string { return c.Name + " of " + c.to.ID() }

func (c *callable) describe() string {
	if c.Description != "" {
		return c.Description
	}
	return "Calls " + c.Name + " of the agent " + c.to.ID() + "."
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
		opts := c.CompileOptions()
		input, output := shapeOf(c.Input, "payload", opts), shapeOf(c.Output, "response", opts)
		if c.Output == nil {
			output = shape{member: "response"} // loose JSON, and no schema that says so
		}
		err := s.Add(registry.ToolSpec{
			Key: c.name, Title: c.title(), Description: c.describe(), Input: input.schema, Output: output.schema,
			Schemas: opts, Idempotent: c.Idempotent, OpenWorld: true, Timeout: rpc.MaxTimeout,
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
func (r *Resolver) call(ctx context.Context, c callable, input, output shape, args json.RawMessage) (json.RawMessage, error) {
	payload, err := input.unwrap(args)
	if err != nil {
		return nil, err
	}
	result, err := r.caller.RequestAgent(ctx, rpc.Request{To: c.to, Capability: c.Name, Payload: payload})
	if result != nil && result.Status == rpc.StatusOK {
		return output.wrap(result.Response)
	}
	var failed *rpc.Error
	if result != nil && result.Error != nil {
		failed = result.Error
	} else if !errors.As(err, &failed) {
		return nil, fmt.Errorf("call %s of %s: %w", c.Name, c.to, err)
	}
	return nil, input.translate(failed)
}

// maxToolName is the length of the longest name of a tool.
const maxToolName = 64

// toolName is the name of the tool for a capability of an agent. It depends on these two
// alone, so that a name means the same in every version of the fleet's files.
func toolName(agent, capability string) string {
	full := agent + "__" + capability
	name := strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, full)
	if len(name) <= maxToolName {
		return name
	}
	sum := sha256.Sum256([]byte(full))
	const hash = 8
	return name[:maxToolName-1-hash] + "_" + hex.EncodeToString(sum[:])[:hash]
}
