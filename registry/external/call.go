package external

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/internal/mcpclient"
	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/schema"
)

// A connection is that to one server.
type connection struct {
	name    string
	client  *mcpclient.Client // which others may use as well
	release func() error
	log     *slog.Logger
	names   map[string]string // of the tools, by their names at the server; set before the first call
}

// handler calls a tool. out is its output schema, or nil.
func (c *connection) handler(o offer, out *schema.Schema) registry.ResultHandler {
	return func(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error) {
		request := mcpclient.Request{Tool: o.Name, Arguments: args}
		if inv := rpc.InvocationFrom(ctx); inv != nil {
			request.Traceparent, request.Tracestate = inv.Traceparent, inv.Tracestate
		}
		r, err := c.client.Call(ctx, request)
		if err != nil {
			return nil, c.translate(ctx, o, err)
		}
		if r.IsError {
			return failure(r), nil
		}
		if out != nil {
			if err := c.judge(ctx, o, out, r.Structured); err != nil {
				return nil, err
			}
		}
		result := &mcp.CallToolResult{Content: r.Content}
		if r.Structured != nil {
			result.StructuredContent = r.Structured
			if len(r.Content) == 0 { // hosts that know text alone see it as well
				result.Content = []mcp.Content{&mcp.TextContent{Text: string(r.Structured)}}
			}
		}
		return result, nil
	}
}

// judge holds a result against the tool's own output schema. The caller cannot mend it; the
// log says where it is wrong.
func (c *connection) judge(ctx context.Context, o offer, out *schema.Schema, structured json.RawMessage) error {
	wrong := "has no structured content, which its contract promises"
	if structured != nil {
		report := out.CheckWithin(ctx, structured)
		if report.Verdict == schema.Valid {
			return nil
		}
		wrong = "does not fit its output schema"
		c.log.LogAttrs(ctx, slog.LevelError, "a tool of an MCP server broke its contract", slog.String("server", c.name),
			slog.String("tool", o.Name), slog.String("verdict", fmt.Sprint(report.Verdict)), slog.Any("violations", report.Violations))
	}
	return registry.Errorf(registry.Failed, "the answer of %s %s", o.title(), wrong)
}

// failure is the result of a tool that says itself that it has failed.
func failure(r *mcpclient.Result) *mcp.CallToolResult {
	var texts []string
	for _, part := range r.Content {
		if text, ok := part.(*mcp.TextContent); ok {
			texts = append(texts, text.Text)
		}
	}
	result := registry.Failure(&registry.Error{Code: registry.Failed, Message: strings.Join(texts, "\n")})
	if len(r.Content) > 0 {
		result.Content = r.Content
	}
	return result
}

// translate makes the error of a call into the one that the caller sees.
func (c *connection) translate(ctx context.Context, o offer, err error) error {
	var e *mcpclient.Error
	if !errors.As(err, &e) {
		return err
	}
	code := map[mcpclient.Code]registry.Code{
		mcpclient.Away: registry.Unavailable, mcpclient.Denied: registry.Unavailable, mcpclient.NoTool: registry.NotFound, mcpclient.Changed: registry.Unavailable,
		mcpclient.Busy: registry.RateLimitExceeded, mcpclient.TimedOut: registry.Timeout, mcpclient.Canceled: registry.Canceled,
		mcpclient.Broken: registry.NetworkError, mcpclient.BadAnswer: registry.Failed, mcpclient.Refused: registry.Failed,
		mcpclient.NeedsInput: registry.Unsupported,
	}[e.Code]
	if e.Err != nil && e.Code != mcpclient.Away && e.Code != mcpclient.Denied && e.Code != mcpclient.Canceled { // of one that is away the client logs the begin and the end
		c.log.LogAttrs(ctx, slog.LevelWarn, "a call of an MCP server failed", slog.String("server", c.name), slog.String("tool", o.Name), slog.Any("error", e.Err))
	}
	message := e.Message
	if e.Sent && !e.Retryable && (e.Code == mcpclient.Broken || e.Code == mcpclient.TimedOut) {
		message += "; the tool may have run"
	}
	return &registry.Error{Code: code, Message: message, Retryable: e.Retryable}
}

// troubles are what the server is in.
func (c *connection) troubles() (all []registry.Trouble) {
	s := c.client.State()
	if !s.Connected && s.Cause != "" {
		// In one order, whenever it is asked for: who compares two reports finds what has changed.
		tools := slices.Sorted(maps.Values(c.names))
		t := registry.Trouble{Subject: c.name, Code: "away", Cause: s.Cause, Tools: tools, Since: s.Since}
		if s.NeedsLogin {
			t.Code = "login"
		}
		return append(all, t)
	}
	for _, d := range s.Deviations {
		name, ok := c.names[d.Tool]
		if !ok {
			continue
		}
		t := registry.Trouble{Subject: c.name, Code: "changed", Cause: d.Describe(), Since: s.Since}
		if d.Refused {
			t.Tools = []string{name}
		} else {
			t.Code = "description-changed"
		}
		all = append(all, t)
	}
	return all
}
