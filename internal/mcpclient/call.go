package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/internal/failure"
	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/internal/mcpauth"
)

// A Request is a call of a tool.
type Request struct {
	Tool string
	// Arguments are an object, and go out as they are. Nil is an empty one.
	Arguments json.RawMessage
	// Traceparent and Tracestate are the W3C trace context that the call continues, or "".
	Traceparent, Tracestate string
	// Progress gets to know how far the call has come; it must return at once. It may be
	// nil.
	Progress func(Progress)
	// Timeout bounds the call; 0, or more than the limit, is the limit.
	Timeout time.Duration
}

// A Result is what a tool answered.
type Result struct {
	// Raw is the whole result, in the bytes of the server.
	Raw json.RawMessage
	// Structured is the structured content, in the bytes of the server; nil for none.
	Structured json.RawMessage
	Content    []mcp.Content
	// IsError says that the tool has failed, and Content why.
	IsError bool
}

// codeHeaderMismatch is what a server answers, before it runs anything, to a call whose
// headers are not those that its list of tools asks for.
const codeHeaderMismatch = -32020

// Call calls a tool whose contract is pinned and served. The error is an [*Error].
func (c *Client) Call(ctx context.Context, r Request) (*Result, error) {
	pinned, ok := c.pinned[r.Tool]
	if !ok {
		return nil, errorf(NoTool, "no contract is pinned for a tool %q of the MCP server %s", r.Tool, c.opts.Name)
	}
	select {
	case c.slots <- struct{}{}:
	default:
		return nil, errorf(Busy, "%d calls to the MCP server %s are under way, which is all that it gets", cap(c.slots), c.opts.Name).retryable()
	}
	defer func() { <-c.slots }()
	if c.rate != nil && !c.rate.Allow() {
		return nil, errorf(Busy, "the MCP server %s gets no more than %d calls a minute", c.opts.Name, c.opts.Limits.PerMinute).retryable()
	}
	timeout := c.opts.Limits.Timeout
	if r.Timeout > 0 {
		timeout = min(timeout, r.Timeout)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	end := c.trace(&r)
	result, e := c.try(ctx, r, pinned.Hints().Idempotent)
	if wire := (*jsonrpc.Error)(nil); e != nil && errors.As(e.Err, &wire) && wire.Code == codeHeaderMismatch {
		c.listChanged() // which the next try waits for
		result, e = c.try(ctx, r, pinned.Hints().Idempotent)
	}
	end(result, e)
	if e != nil {
		return nil, e
	}
	return result, nil
}

// try makes the call once.
func (c *Client) try(ctx context.Context, r Request, idempotent bool) (*Result, *Error) {
	l, e := c.ready(ctx, r.Tool)
	if e != nil {
		return nil, e
	}
	calling, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(l.calls, func() { cancel(context.Cause(l.calls)) })() //nolint:contextcheck // the connection's end is another than the caller's
	calling, capture := withCapture(calling)
	params := &mcp.CallToolParams{Name: r.Tool, Meta: traceMeta(&r)}
	if r.Arguments != nil {
		params.Arguments = r.Arguments
	}
	if r.Progress != nil {
		token, remove := c.progress.add(r.Progress)
		defer remove()
		params.SetProgressToken(token)
	}
	_, err := l.session.CallTool(calling, params)
	got := capture.outcome()
	var result *Result
	if err == nil || got.result != nil { // the library refuses some results that are good here
		if result, e = l.result(got.result); e == nil {
			return result, nil
		}
	} else {
		e = c.failed(ctx, l, err, got)
	}
	e.Sent = got.sent
	switch e.Code {
	case Refused, BadAnswer, NeedsInput, Canceled: // it would be the same, or nobody waits
	case Denied:
		e.Retryable = soon(e.Err)
	default:
		e.Retryable = !got.sent || idempotent
	}
	return nil, e
}

// soon reports whether the lack of a token may end without anybody who mends it.
func soon(err error) bool {
	denied := (*mcpauth.Error)(nil)
	return errors.As(err, &denied) && denied.Kind == mcpauth.Unreachable
}

// ready returns the connection if it may be used for a tool.
func (c *Client) ready(ctx context.Context, tool string) (*link, *Error) {
	l, err := c.await(ctx)
	if e := (*Error)(nil); errors.As(err, &e) {
		return nil, e
	} else if err != nil {
		e = c.ended(ctx)
		e.Retryable = e.Code == TimedOut
		return nil, e
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := find(c.deviations, tool); d != nil && d.Refused {
		e := errorf(Changed, "the MCP server %s serves the tool %s under another contract than was pinned: %s", c.opts.Name, tool, places(d.Changes))
		e.Changes = d.Changes
		return nil, e
	}
	return l, nil
}

// ended is the error of a call whose time is over, or whose caller has gone.
func (c *Client) ended(ctx context.Context) *Error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return errorf(TimedOut, "the MCP server %s did not answer in time", c.opts.Name).because(ctx.Err())
	}
	return errorf(Canceled, "the call was canceled").because(ctx.Err())
}

// failed translates the error of the library. ctx is the caller's, which the end of the
// connection leaves alone.
func (c *Client) failed(ctx context.Context, l *link, err error, got captured) *Error {
	name, wrong := c.opts.Name, misbehaved("")
	err = l.redact(err)
	switch denied := (*mcpauth.Error)(nil); {
	case errors.As(got.err, &denied):
		if denied.Kind != mcpauth.NeedsScope { // of which other calls know nothing
			c.relist()
		}
		return errorf(Denied, "%s", denied.Text).because(denied)
	case got.err != nil && errors.As(got.err, &wrong):
		return errorf(BadAnswer, "the MCP server %s: %v", name, wrong).because(err)
	case l.calls.Err() != nil:
		return errorf(Broken, "the connection to the MCP server %s ended before it answered", name).because(err)
	case got.wire != nil:
		said := &jsonrpc.Error{Code: got.wire.Code, Message: l.quote(got.wire.Message)}
		return errorf(Refused, "the MCP server %s answered with an error: %s", name, said.Message).because(said)
	case ctx.Err() != nil:
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			c.relist() // which finds a server that has stopped to answer
		}
		return c.ended(ctx)
	}
	c.relist()
	if errors.As(err, &wrong) {
		return errorf(Broken, "the connection to the MCP server %s ended before it answered: %v", name, wrong).because(err)
	}
	if f := failure.As(err); f != nil {
		return errorf(Broken, "the MCP server %s: %s", name, f.Text).because(err)
	}
	return errorf(Broken, "the connection to the MCP server %s ended before it answered", name).because(err)
}

// quote shortens what the server has said, without the secrets that it was sent.
func (l *link) quote(text string) string { return shown(l.withoutSecrets(text)) }

func (l *link) withoutSecrets(text string) string {
	if l.web == nil {
		return text
	}
	return string(l.web.redact([]byte(text)))
}

// A redactedError is its cause, in other words.
type redactedError struct {
	error
	text string
}

func (e redactedError) Error() string { return e.text }

func (e redactedError) Unwrap() error { return e.error }

// redact takes out of an error, which may quote the server, the secrets that it was sent: the log
// and the status show it.
func (l *link) redact(err error) error {
	if err == nil {
		return nil
	}
	said := err.Error()
	if text := l.withoutSecrets(said); text != said {
		return redactedError{err, text}
	}
	return err
}

// maxResultDepth bounds the nesting of a result.
const maxResultDepth = 512

// result takes a result apart.
func (l *link) result(raw json.RawMessage) (*Result, *Error) {
	if raw == nil {
		return nil, errorf(BadAnswer, "the answer of the MCP server did not come as the answer to the call")
	}
	if l.web != nil {
		raw = l.web.redact(raw) // before an error may quote it
	}
	if err := ijson.Check(raw, maxResultDepth); err != nil {
		return nil, errorf(BadAnswer, "the answer of the MCP server is not valid JSON: %v", err).because(err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, errorf(BadAnswer, "the answer of the MCP server is no object").because(err)
	}
	switch kind := string(members["resultType"]); {
	case kind == `"input_required"` || members["inputRequests"] != nil:
		return nil, errorf(NeedsInput, "the MCP server asks for input, which it does not get here")
	case kind != "" && kind != `"complete"`:
		return nil, errorf(BadAnswer, "the answer of the MCP server is of an unknown kind: %s", shown(kind))
	}
	// Without the structured content, which may have numbers that no float holds.
	rest := map[string]json.RawMessage{}
	for _, name := range []string{"content", "isError"} {
		if part := present(members[name]); part != nil {
			rest[name] = part
		}
	}
	var answer mcp.CallToolResult
	data, err := json.Marshal(rest)
	if err == nil {
		err = json.Unmarshal(data, &answer)
	}
	if err != nil {
		return nil, errorf(BadAnswer, "the answer of the MCP server is not one of the protocol").because(err)
	}
	return &Result{Raw: raw, Structured: present(members["structuredContent"]), Content: answer.Content, IsError: answer.IsError}, nil
}
