package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/registry"
)

// Every character that names may have, and as many as they may.
func TestNames(t *testing.T) {
	good := []string{"azAZ09_-", strings.Repeat("k", 64)}
	bad := []string{"", "a b", "a.b", "a@b", "a[b", "a`b", "a{b", "a/b", "a:b", "ä", strings.Repeat("k", 65)}
	for _, name := range append(slices.Clone(good), bad...) {
		err := registry.New().Register(capability(name, "tool"))
		if (err == nil) != slices.Contains(good, name) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// A driver says in its own words that its context has ended. The caller hears the same
// as ever.
func TestErrorsOfDriversAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		res := one(t, registry.Context{Limits: registry.Limits{Timeout: time.Second}}, func(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
			<-ctx.Done()
			if strings.Contains(string(args), "own") {
				return nil, registry.Errorf(registry.Conflict, "it was half done")
			}
			return nil, errors.New("interrupted (9)")
		})
		defer res.Close(t.Context())
		// The handler and its deadline race: both answers are right, and neither is the driver's.
		if r := res.Call(t.Context(), "count", json.RawMessage(`{"text":"driver"}`)); registry.FailureCode(r) != registry.Timeout {
			t.Errorf("a driver's error: %q", text(r))
		}
		if r := res.Call(t.Context(), "count", json.RawMessage(`{"text":"own"}`)); registry.FailureCode(r) != registry.Timeout && registry.FailureCode(r) != registry.Conflict {
			t.Errorf("a tool's own error: %q", text(r))
		}
	})
}

// What could not be closed is told, and the rest is closed all the same.
func TestCloseFails(t *testing.T) {
	var closed []string
	make := func(key string) resolver {
		r := capability(key, key+"_tool")
		r.resolve = func(_ registry.Context, c registry.Config) (*registry.Server, error) {
			s, err := r.serve(c.Tools)
			for _, part := range []string{"1", "2"} {
				s.OnClose(func() error { closed = append(closed, key+part); return errors.New(key + part + " is stuck") })
			}
			return s, err
		}
		return r
	}
	res, err := registered(t, make("a"), make("b")).Resolve(registry.Context{}, []registry.Capability{{Key: "a"}, {Key: "b"}})
	if err != nil {
		t.Fatal(err)
	}
	err = res.Close(t.Context())
	for _, want := range []string{"a1 is stuck", "a2 is stuck", "b1 is stuck", "b2 is stuck"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not told: %v", want, err)
		}
	}
	if err := res.Close(t.Context()); err == nil {
		t.Error("the second Close hides what the first has found")
	}
	if want := []string{"b2", "b1", "a2", "a1"}; !slices.Equal(closed, want) {
		t.Errorf("closed %q, want %q: each once, the last first", closed, want)
	}
}

// A tool that makes its whole result is held to the same bounds and schema.
func TestWholeResults(t *testing.T) {
	results := map[string]*mcp.CallToolResult{
		"text":      {Content: []mcp.Content{&mcp.TextContent{Text: strings.Repeat("x", 600)}, &mcp.TextContent{Text: strings.Repeat("x", 600)}}, StructuredContent: map[string]any{"count": 1}},
		"image":     {Content: []mcp.Content{&mcp.ImageContent{Data: make([]byte, 1200), MIMEType: "image/png"}}, StructuredContent: map[string]any{"count": 1}},
		"audio":     {Content: []mcp.Content{&mcp.AudioContent{Data: make([]byte, 1200), MIMEType: "audio/wav"}}, StructuredContent: map[string]any{"count": 1}},
		"resource":  {Content: []mcp.Content{&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "x:y", Text: strings.Repeat("x", 1200)}}}, StructuredContent: map[string]any{"count": 1}},
		"good":      {Content: []mcp.Content{&mcp.TextContent{Text: "fine"}}, StructuredContent: map[string]any{"count": 1}},
		"wrong":     {StructuredContent: map[string]any{"count": "one"}},
		"missing":   {Content: []mcp.Content{&mcp.TextContent{Text: "fine"}}},
		"no JSON":   {StructuredContent: func() {}},
		"own error": {IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "the other server says no"}}},
		"nothing":   nil,
	}
	res := withTool(t, registry.Context{Limits: registry.Limits{MaxResultBytes: 1000}}, func(s *registry.Server) error {
		return s.AddResult(registry.ToolSpec{Key: "count", Description: "d", Input: json.RawMessage(countInput), Output: json.RawMessage(countOutput)},
			func(_ context.Context, args json.RawMessage) (*mcp.CallToolResult, error) {
				var a struct{ Text string }
				err := json.Unmarshal(args, &a)
				return results[a.Text], err
			})
	})
	defer res.Close(t.Context())
	for name, want := range map[string]registry.Code{
		"text": registry.TooLarge, "image": registry.TooLarge, "audio": registry.TooLarge, "resource": registry.TooLarge, "good": "",
		"wrong": registry.Internal, "missing": registry.Internal, "no JSON": registry.Internal, "own error": registry.Internal, "nothing": registry.Internal,
	} {
		args, _ := json.Marshal(map[string]string{"text": name})
		r := res.Call(t.Context(), "count", args)
		if registry.FailureCode(r) != want {
			t.Errorf("%s: %q, want %q", name, registry.FailureCode(r), want)
		}
		if name == "own error" && text(r) != "the other server says no" {
			t.Errorf("a result that is an error already: %q", text(r))
		}
	}
}

// The codes that time may mend say so, and the others do not.
func TestRetryable(t *testing.T) {
	for code, want := range map[registry.Code]bool{
		registry.RateLimitExceeded: true, registry.Timeout: true, registry.NetworkError: true, registry.Unavailable: true,
		registry.InvalidArguments: false, registry.NotFound: false, registry.PermissionDenied: false, registry.Conflict: false,
		registry.TooLarge: false, registry.Canceled: false, registry.Unsupported: false, registry.Failed: false, registry.Internal: false,
	} {
		e := new(registry.Error)
		if !errors.As(registry.Errorf(code, "x"), &e) || e.Retryable != want {
			t.Errorf("%s: %+v", code, e)
		}
	}
	plain, _ := json.Marshal(registry.Failure(&registry.Error{Code: registry.NotFound, Message: "no"}).Meta)
	if want := `{"io.agentd/error":{"code":"not_found","message":"no","retryable":false}}`; string(plain) != want {
		t.Errorf("%s, want %s", plain, want)
	}
}

// A misspelt key deep in a configuration is compared with its own neighbours.
func TestNearestKeyBelow(t *testing.T) {
	c := capability("mcp", "x")
	c.schema = `{"type": "object", "properties": {"servers": {"type": "array", "items": {"$ref": "#/definitions/server"}}, "by/name": {"type": "object", "additionalProperties": {"$ref": "#/definitions/server"}}},
		"definitions": {"server": {"type": "object", "properties": {"command": {"type": "string"}, "url": {"type": "string"}}, "additionalProperties": false}}}`
	_, err := registered(t, c).Resolve(registry.Context{}, parse(t, "agent.yaml", "capabilities: {mcp: {servers: [{comand: x}], by/name: {one: {ulr: y}}}}\n"))
	for _, want := range []string{
		`/capabilities/mcp/servers/0/comand: additional property "comand" is not allowed (known keys: command, url; did you mean "command"?)`,
		`/capabilities/mcp/by~1name/one/ulr: additional property "ulr" is not allowed (known keys: command, url; did you mean "url"?)`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}
