package mcptool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/internal/mcpclient"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/schema/contain"
)

// Text says what the text of a result is.
type Text string

const (
	// TextUnused takes the structured content of results.
	TextUnused Text = ""
	// TextJSON takes the text as a JSON value.
	TextJSON Text = "json"
	// TextString takes the text as a string.
	TextString Text = "string"
)

// A Binding is a capability with the tool that serves it.
type Binding struct {
	Capability *capability.Capability
	Tool       string
	// Text is for capabilities whose results are JSON.
	Text Text
	// PinWords refuses calls while the tool's descriptions differ from the capability's.
	PinWords bool
}

// Options are what a server is reached with.
type Options struct {
	// Client is the connection. Pinned and Judge are set here.
	Client   mcpclient.Options
	Bindings []Binding
	// Compile and Budget bound what the schemas of the server may cost.
	Compile schema.CompileLimits
	Budget  contain.Budget
}

// A Server is the connection to a server whose tools serve capabilities. It is safe for
// concurrent use.
type Server struct {
	name     string
	client   *mcpclient.Client
	bindings map[string]Binding // by capability
	opts     Options

	mu       sync.Mutex
	verdicts map[string]verdict // by tool
}

// Open returns a server, which is reached when Start is called. The error is for a binding
// that cannot work.
func Open(o Options) (*Server, error) {
	s := &Server{name: o.Client.Name, bindings: map[string]Binding{}, opts: o, verdicts: map[string]verdict{}}
	tools := map[string]string{}
	for _, b := range o.Bindings {
		c := b.Capability
		if other, taken := tools[b.Tool]; taken {
			return nil, fmt.Errorf("the capabilities %s and %s are both served by the tool %s: give one of them a skill of another kind", other, c.Name, b.Tool)
		}
		tools[b.Tool] = c.Name
		if c.Input == nil || c.Input.Schema == nil {
			return nil, fmt.Errorf("the capability %s has no inputSchema, without which nothing is known of what the tool %s would be sent: `agentd capabilities import-mcp` writes it", c.Name, b.Tool)
		}
		if len(c.Asks) > 0 {
			return nil, fmt.Errorf("the capability %s asks its client, which no tool of a server does for it: remove asks", c.Name)
		}
		if b.Text != TextUnused && c.Result == capability.ResultMCP {
			return nil, fmt.Errorf("the capability %s has results of tools, of which text is a part: remove text, or result: mcp", c.Name)
		}
		s.bindings[c.Name] = b
		o.Client.Pinned = append(o.Client.Pinned, b.contract())
	}
	o.Client.Judge = s.judge
	var err error
	s.client, err = mcpclient.New(o.Client)
	return s, err
}

// Start begins to connect, in the background.
func (s *Server) Start() { s.client.Start() }

// Close ends the connection with all calls.
func (s *Server) Close() error { return s.client.Close() }

// Name is what the configuration calls the server.
func (s *Server) Name() string { return s.name }

// Capabilities are the names of those that the server's tools serve.
func (s *Server) Capabilities() (names []string) {
	for name := range s.bindings {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// A State is how it stands with a server.
type State struct {
	mcpclient.State
	// Refused are the capabilities whose calls are refused, because the tool does not fit,
	// and Reworded those that are served although the words of the tool have changed.
	Refused, Reworded []Fault
}

// A Fault is what is wrong with the tool of a capability.
type Fault struct {
	Capability, Tool, Reason string
	Since                    time.Time
}

// State returns how it stands.
func (s *Server) State() State {
	out := State{State: s.client.State()}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range s.Capabilities() {
		b := s.bindings[name]
		switch v := s.verdicts[b.Tool]; {
		case v.reason == "":
		case v.refused:
			out.Refused = append(out.Refused, Fault{name, b.Tool, v.reason, v.since})
		default:
			out.Reworded = append(out.Reworded, Fault{name, b.Tool, v.reason, v.since})
		}
	}
	return out
}

// call makes a call of the tool.
func (s *Server) call(ctx context.Context, b Binding, inv *rpc.Invocation) (*mcpclient.Result, error) {
	r := mcpclient.Request{Tool: b.Tool, Arguments: arguments(b.Capability, inv.Payload), Traceparent: inv.Traceparent, Tracestate: inv.Tracestate}
	if inv.WantsProgress() {
		r.Progress = func(p mcpclient.Progress) { report(inv, p) }
	}
	result, err := s.client.Call(ctx, r)
	if err == nil {
		return result, nil
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx) // the callee has the words for the end of a call
	}
	var failed *mcpclient.Error
	if !errors.As(err, &failed) {
		return nil, err
	}
	code, cause := rpc.CodeHandlerError, failed.Err
	switch failed.Code {
	case mcpclient.BadAnswer:
		code = rpc.CodeBadSkillOutput
	case mcpclient.Changed:
		s.mu.Lock()
		v := s.verdicts[b.Tool]
		s.mu.Unlock()
		cause = &DriftError{s.name, Fault{b.Capability.Name, b.Tool, v.reason, v.since}}
	}
	return nil, &rpc.SkillError{Code: code, Message: failed.Message, Retryable: failed.Retryable, Err: cause}
}

// A DriftError is the cause of a call that was refused because the tool does not keep the
// contract of its capability.
type DriftError struct {
	Server string
	Fault
}

func (e *DriftError) Error() string {
	return fmt.Sprintf("the tool %s of the MCP server %s does not keep the contract of %s: %s", e.Tool, e.Server, e.Capability, e.Reason)
}
