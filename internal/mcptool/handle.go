package mcptool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/internal/mcpclient"
	"github.com/agentd/agentd/internal/truncate"
	"github.com/agentd/agentd/rpc"
)

var _ rpc.Handler = (*Server)(nil)

// Handle implements [rpc.Handler] for the capabilities that are bound.
func (s *Server) Handle(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
	b, ok := s.bindings[inv.Capability]
	if !ok {
		return nil, fmt.Errorf("mcptool: no tool of %s serves %s", s.name, inv.Capability)
	}
	result, err := s.call(ctx, b, inv)
	if err != nil {
		return nil, err
	}
	return b.response(result)
}

// arguments are those of the tool. A call without arguments is checked as {} where that is
// meant, and the protocol has no other form for it.
func arguments(c *capability.Capability, payload json.RawMessage) json.RawMessage {
	if ijson.IsAbsent(payload) {
		return c.Input.Schema.Arguments(payload)
	}
	return payload
}

// report passes progress on. What is lost is lost: the call goes on.
func report(inv *rpc.Invocation, p mcpclient.Progress) {
	event := struct {
		Progress float64 `json:"progress"`
		Total    float64 `json:"total,omitempty"`
		Message  string  `json:"message,omitempty"`
	}{p.Done, p.Total, p.Message}
	if data, err := json.Marshal(event); err == nil {
		_ = inv.Progress(data)
	}
}

// maxMessage bounds what a caller is shown of a tool's error.
const maxMessage = 2048

// response is what the caller gets of a result.
func (b Binding) response(r *mcpclient.Result) (json.RawMessage, error) {
	text, texts := textOf(r.Content)
	if r.IsError {
		if text == "" {
			text = "it gives no reason"
		}
		return nil, &rpc.SkillError{Message: fmt.Sprintf("the tool %s failed: %s", b.Tool, truncate.String(text, maxMessage))}
	}
	bad := func(format string, args ...any) error {
		return &rpc.SkillError{Code: rpc.CodeBadSkillOutput, Message: fmt.Sprintf(format, args...)}
	}
	switch {
	case b.Capability.Result == capability.ResultMCP:
		return b.whole(r)
	case b.Text == TextUnused && r.Structured == nil:
		return nil, bad("the tool %s answered without structured content", b.Tool)
	case b.Text == TextUnused:
		return r.Structured, nil
	case texts != 1 || len(r.Content) != 1:
		return nil, bad("the answer of the tool %s is not one text", b.Tool)
	case b.Text == TextString:
		return ijson.AppendQuoted(nil, text), nil
	}
	out := bytes.TrimSpace([]byte(text))
	if err := ijson.Check(out, ijson.DefaultMaxDepth); err != nil {
		return nil, bad("the text of the tool %s is not one JSON value", b.Tool)
	}
	return out, nil
}

// textOf joins the texts of a result, and counts them.
func textOf(content []mcp.Content) (string, int) {
	var texts []string
	for _, c := range content {
		if t, ok := c.(*mcp.TextContent); ok {
			texts = append(texts, t.Text)
		}
	}
	return strings.Join(texts, "\n"), len(texts)
}

// whole is a result without what is about its transport.
func (b Binding) whole(r *mcpclient.Result) (json.RawMessage, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(r.Raw, &members); err != nil {
		return nil, fmt.Errorf("mcptool: %w", err)
	}
	content := members["content"]
	if ijson.IsAbsent(content) {
		content = json.RawMessage("[]")
	}
	out := append([]byte(`{"content":`), content...)
	if r.Structured != nil {
		out = append(append(out, `,"structuredContent":`...), r.Structured...)
	}
	if meta := members["_meta"]; !ijson.IsAbsent(meta) && hasMeta(b.Capability) {
		out = append(append(out, `,"_meta":`...), meta...)
	}
	return append(out, '}'), nil
}
