package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/schema"
)

// A ToolSpec is a tool as its server offers it.
type ToolSpec struct {
	// Key is one of the keys that the resolver declares.
	Key string
	// Title is for people, Description for models. The latter must not be empty.
	Title, Description string
	// Input judges the arguments; its root is of type object. Output judges what the
	// handler returns, and may be nil for results that are text alone.
	Input, Output json.RawMessage
	// Schemas chooses how Input and Output are read. The zero value stands for the
	// subset of package schema.
	Schemas schema.CompileOptions
	// ReadOnly tools change nothing. Idempotent ones may be called twice with the
	// effect of one call. Destructive ones delete or overwrite. OpenWorld ones reach
	// what nobody here controls, such as the web.
	ReadOnly, Idempotent, Destructive, OpenWorld bool
	// Timeout bounds one call, in place of that of [Limits]. 0 leaves that.
	Timeout time.Duration
	// Bounded says that the handler itself refuses calls beyond those that it runs at once. They
	// do not count for MaxConcurrent of [Limits], where slow ones would keep others waiting that
	// have nothing to do with them.
	Bounded bool
}

// A Handler runs a tool. The arguments have passed the tool's input schema; the result
// is JSON that is to pass the output schema. An error that [Errorf] made is shown to
// the caller; of any other, the caller sees "internal error", and the log the rest.
// A handler returns soon after its context has ended.
type Handler func(ctx context.Context, args json.RawMessage) (json.RawMessage, error)

// A ResultHandler is a [Handler] that makes the whole result, such as one with images.
// Its structured content is held against the output schema, unless it is an error.
type ResultHandler func(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error)

// A Server has the tools of one capability for one agent. A resolver makes it, adds
// tools and returns it; from then on it belongs to the registry.
type Server struct {
	name    string
	allowed []string
	server  *mcp.Server
	tools   []*tool

	troubles []func() []Trouble

	close   []func() error
	once    sync.Once
	closing error

	// What Resolve sets, before the first call.
	calls calls
}

// NewServer returns the server of the capability key. allowed is [Config.Tools].
func NewServer(key, version string, allowed []string) *Server {
	s := &Server{name: key, allowed: slices.Clone(allowed), calls: calls{logger: slog.New(slog.DiscardHandler)}}
	s.server = newMCP(key, version)
	s.server.AddReceivingMiddleware(s.guard)
	return s
}

// guard stands before everything that a client asks of the server. It holds back a
// tool that was added behind the registry's back, later than the check of Resolve, and
// keeps a faulty one from ending the process: the protocol's library does not recover.
func (s *Server) guard(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (result mcp.Result, err error) {
		if call, ok := req.(*mcp.CallToolRequest); ok && !slices.Contains(s.allowed, call.Params.Name) {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("unknown tool %q", call.Params.Name)}
		}
		defer func() {
			if r := recover(); r != nil {
				s.calls.logger.LogAttrs(ctx, slog.LevelError, "a tool failed", slog.String("capability", s.name), slog.String("method", method), slog.Any("error", panicked(r)))
				result, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
			}
		}()
		return next(ctx, method, req)
	}
}

// newMCP is a server with tools and nothing else. The lists of one agent's tools are
// nobody else's to keep.
func newMCP(name, version string) *mcp.Server {
	return mcp.NewServer(&mcp.Implementation{Name: name, Version: version}, &mcp.ServerOptions{
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope = "private" },
	})
}

// MCP is the server itself. A tool that is added to it directly must be allowed like
// any other; its arguments and results are checked by whatever added it.
func (s *Server) MCP() *mcp.Server { return s.server }

// Add registers a tool whose results are JSON. A tool that the agent's list leaves out
// is never registered. The error is for a spec that is not as [ToolSpec] asks.
func (s *Server) Add(spec ToolSpec, h Handler) error {
	return s.AddResult(spec, func(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error) {
		out, err := h(ctx, args)
		if err != nil {
			return nil, err
		}
		return Success(out), nil
	})
}

// Success is the result of a tool that returns JSON. Programs read it as structured
// content, and hosts that know text alone as text.
func Success(out json.RawMessage) *mcp.CallToolResult {
	return &mcp.CallToolResult{StructuredContent: out, Content: []mcp.Content{&mcp.TextContent{Text: string(out)}}}
}

// AddResult is [Server.Add] for tools that make the whole result.
func (s *Server) AddResult(spec ToolSpec, h ResultHandler) error {
	if !slices.Contains(s.allowed, spec.Key) {
		return nil
	}
	t, err := newTool(spec, h)
	if err != nil {
		return fmt.Errorf("tool %s: %w", spec.Key, err)
	}
	if slices.ContainsFunc(s.tools, func(other *tool) bool { return other.def.Name == spec.Key }) {
		return fmt.Errorf("tool %s is added twice", spec.Key)
	}
	if err := addTo(s.server, t.def, s.handler(t)); err != nil {
		return fmt.Errorf("tool %s: %w", spec.Key, err)
	}
	s.tools = append(s.tools, t)
	return nil
}

// addTo registers a tool with a server of the SDK, which panics where it does not like
// the tool's schema.
func addTo(server *mcp.Server, def *mcp.Tool, h mcp.ToolHandler) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	server.AddTool(def, h)
	return nil
}

// OnClose adds something that ends with the server. What was added last ends first.
func (s *Server) OnClose(f func() error) { s.close = append(s.close, f) }

// Close ends what the resolver has started. Once is enough.
func (s *Server) Close() error {
	s.once.Do(func() {
		var errs []error
		for _, f := range slices.Backward(s.close) {
			errs = append(errs, f())
		}
		s.closing = errors.Join(errs...)
	})
	return s.closing
}

// A tool is one of a server, with its schemas compiled.
type tool struct {
	def     *mcp.Tool
	in, out *schema.Schema // nil where the tool has none
	run     ResultHandler
	timeout time.Duration
	bounded bool
}

func newTool(spec ToolSpec, h ResultHandler) (*tool, error) {
	switch {
	case !validName(spec.Key):
		return nil, fmt.Errorf("its key is not 1 to %d letters, digits, _ and -", maxName)
	case spec.Description == "":
		return nil, errors.New("it has no description")
	case spec.Input == nil:
		return nil, errors.New("it has no input schema")
	}
	t := &tool{run: h, timeout: spec.Timeout, bounded: spec.Bounded, def: &mcp.Tool{
		Name: spec.Key, Title: spec.Title, Description: spec.Description, InputSchema: spec.Input,
		Annotations: &mcp.ToolAnnotations{
			Title: spec.Title, ReadOnlyHint: spec.ReadOnly, IdempotentHint: spec.Idempotent,
			DestructiveHint: &spec.Destructive, OpenWorldHint: &spec.OpenWorld,
		},
	}}
	var err error
	if t.in, err = schema.CompileWith(spec.Input, spec.Schemas); err != nil {
		return nil, fmt.Errorf("input schema: %w", err)
	}
	if spec.Output == nil {
		return t, nil
	}
	// Not assigned where it is absent: a nil RawMessage in an interface is no nil.
	t.def.OutputSchema = spec.Output
	if t.out, err = schema.CompileWith(spec.Output, spec.Schemas); err != nil {
		return nil, fmt.Errorf("output schema: %w", err)
	}
	return t, nil
}
