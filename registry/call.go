package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/schema"
)

// Limits bound the calls of an agent's tools. A zero field means its default.
type Limits struct {
	// MaxArgumentBytes and MaxResultBytes bound one call. The defaults are 1 MiB, the
	// most 2 MiB: a longer message ends the session of the protocol.
	MaxArgumentBytes, MaxResultBytes int
	// MaxConcurrent is how many calls of one capability run at once. Further ones wait.
	// The default is 32.
	MaxConcurrent int
	// Timeout bounds one call of a tool that has none of its own. The default is 1 min.
	Timeout time.Duration
}

// withDefaults fills in what is left out.
func (l Limits) withDefaults() Limits {
	const most = 2 << 20
	for _, n := range []*int{&l.MaxArgumentBytes, &l.MaxResultBytes} {
		if *n <= 0 {
			*n = 1 << 20
		}
		*n = min(*n, most)
	}
	if l.MaxConcurrent <= 0 {
		l.MaxConcurrent = 32
	}
	if l.Timeout <= 0 {
		l.Timeout = time.Minute
	}
	return l
}

// A Call is one call of a tool.
type Call struct {
	// Capability and Tool are their keys.
	Capability, Tool string
	// Arguments are JSON, not checked yet. Nil stands for none.
	Arguments json.RawMessage
}

// A Handle makes a call. Its errors are results as well.
type Handle func(ctx context.Context, c Call) *mcp.CallToolResult

// calls is what all calls of one server share.
type calls struct {
	limits  Limits
	logger  *slog.Logger
	slots   chan struct{}
	wrap    func(Handle) Handle
	running sync.WaitGroup
}

// start gets the server ready for calls.
func (s *Server) start(ctx Context) {
	s.calls.limits, s.calls.logger, s.calls.wrap = ctx.Limits.withDefaults(), ctx.Logger, ctx.Wrap
	s.calls.slots = make(chan struct{}, s.calls.limits.MaxConcurrent)
}

// call is every call of a tool, whoever makes it: through [Resolved.Call], or through
// a session of the protocol.
func (s *Server) call(ctx context.Context, t *tool, args json.RawMessage) *mcp.CallToolResult {
	c := Call{Capability: s.name, Tool: t.def.Name, Arguments: args}
	handle := func(ctx context.Context, c Call) *mcp.CallToolResult {
		result, err := s.checked(ctx, t, c.Arguments)
		if err == nil {
			return result
		}
		e, unexpected := shown(err)
		if unexpected {
			s.calls.logger.LogAttrs(ctx, slog.LevelError, "a tool failed",
				slog.String("capability", c.Capability), slog.String("tool", c.Tool), slog.Any("error", err))
		}
		return Failure(e)
	}
	if s.calls.wrap != nil {
		return s.calls.wrap(handle)(ctx, c)
	}
	return handle(ctx, c)
}

// checked runs a tool between its two checks.
func (s *Server) checked(ctx context.Context, t *tool, args json.RawMessage) (*mcp.CallToolResult, error) {
	limits := s.calls.limits
	timeout := limits.Timeout
	if t.timeout > 0 {
		timeout = t.timeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if len(args) > limits.MaxArgumentBytes {
		return nil, Errorf(TooLarge, "the arguments have more than %d bytes", limits.MaxArgumentBytes)
	}
	if t.in != nil {
		args = t.in.Arguments(args)
		if err := judge(ctx, t.in, args); err != nil {
			return nil, err
		}
	}
	result, err := s.run(ctx, t, args)
	if own := new(Error); err != nil && ctx.Err() != nil && !errors.As(err, &own) {
		err = ctx.Err() // of which not every driver and library makes its error
	}
	if err != nil {
		return nil, err
	}
	if result == nil {
		return nil, errors.New("the tool returned neither a result nor an error")
	}
	return result, t.checkResult(ctx, result, limits.MaxResultBytes)
}

// judge checks arguments.
func judge(ctx context.Context, s *schema.Schema, args json.RawMessage) error {
	switch r := s.CheckWithin(ctx, args); r.Verdict {
	case schema.Valid:
		return nil
	case schema.Invalid:
		return invalid(r.Violations)
	case schema.Malformed:
		return Errorf(InvalidArguments, "the arguments are not valid JSON: %s", r.Syntax.Msg)
	default:
		return Errorf(InvalidArguments, "the arguments take too long to check")
	}
}

// run runs the handler, and does not wait for one that its context cannot end: the
// handler keeps its slot until it returns, and the server is not closed before.
func (s *Server) run(ctx context.Context, t *tool, args json.RawMessage) (*mcp.CallToolResult, error) {
	leave := func() {}
	if !t.bounded {
		select {
		case s.calls.slots <- struct{}{}:
			leave = func() { <-s.calls.slots }
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	type answer struct {
		result *mcp.CallToolResult
		err    error
	}
	done := make(chan answer, 1)
	s.calls.running.Go(func() {
		defer leave()
		var a answer
		defer func() { done <- a }()
		defer func() {
			if r := recover(); r != nil {
				a = answer{err: panicked(r)}
			}
		}()
		a.result, a.err = t.run(ctx, args)
	})
	select {
	case a := <-done:
		return a.result, a.err
	case <-ctx.Done():
	}
	select {
	case a := <-done: // both were ready
		return a.result, a.err
	default:
		return nil, ctx.Err()
	}
}

// panicked is the error of a tool that panicked: one faulty tool must not end the
// process.
func panicked(r any) error { return fmt.Errorf("panic: %v\n%s", r, debug.Stack()) }

// checkResult judges what a handler returned. Its fault is the tool's and no caller
// can mend it, so that only the log has the details.
func (t *tool) checkResult(ctx context.Context, r *mcp.CallToolResult, most int) error {
	if raw, ok := r.StructuredContent.(json.RawMessage); ok && len(raw) > most {
		return Errorf(TooLarge, "the result has more than %d bytes", most)
	}
	size := 0
	for _, c := range r.Content {
		size += contentSize(c)
	}
	if size > most {
		return Errorf(TooLarge, "the result has more than %d bytes", most)
	}
	if t.out == nil || r.IsError {
		return nil
	}
	raw, ok := r.StructuredContent.(json.RawMessage)
	if !ok {
		var err error
		if raw, err = json.Marshal(r.StructuredContent); err != nil {
			return fmt.Errorf("the structured content of the result: %w", err)
		}
	}
	if report := t.out.CheckWithin(ctx, raw); report.Verdict != schema.Valid {
		return fmt.Errorf("the result does not fit the output schema: %s, %v", report.Verdict, report.Violations)
	}
	return nil
}

// contentSize is about what a part of a result adds to a message.
func contentSize(c mcp.Content) int {
	switch c := c.(type) {
	case *mcp.TextContent:
		return len(c.Text)
	case *mcp.ImageContent:
		return len(c.Data)
	case *mcp.AudioContent:
		return len(c.Data)
	case *mcp.EmbeddedResource:
		if c.Resource != nil {
			return len(c.Resource.Text) + len(c.Resource.Blob)
		}
	}
	return 0
}

// handler is a tool as the protocol's library calls it. Arguments arrive as the bytes
// that the client sent.
func (s *Server) handler(t *tool) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		ctx, end := bound(ctx)
		defer end()
		return s.call(ctx, t, req.Params.Arguments), nil
	}
}

// callKey is the key of the context that a session serves.
type callKey struct{}

// Bind returns a context for [mcp.Server.Connect] or an HTTP request of the protocol:
// the calls of that session end with ctx, and their handlers see its values. The
// library itself passes values on, and not always the end.
func Bind(ctx context.Context) context.Context { return context.WithValue(ctx, callKey{}, ctx) }

// bound ends a handler's context with that of its session.
func bound(ctx context.Context) (context.Context, func()) {
	session, ok := ctx.Value(callKey{}).(context.Context)
	if !ok {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(session, func() { cancel(context.Cause(session)) })
	return ctx, func() { stop(); cancel(nil) }
}
