package peers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/registry/peers"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/schema"
)

type caller func(ctx context.Context, r rpc.Request) (*rpc.Result, error)

func (c caller) RequestAgent(ctx context.Context, r rpc.Request) (*rpc.Result, error) {
	return c(ctx, r)
}

// peer is an agent with the capabilities of a file.
func peer(t testing.TB, agent, capabilities string) peers.Peer {
	t.Helper()
	doc, err := capability.Parse("capabilities.yaml", []byte("version: 1\nagent: agent://"+agent+"\ntransports: [{kind: memory, topics: {requests: r}}]\ncapabilities:\n"+capabilities), capability.LoadOptions{ValidateSchemas: true})
	if err != nil {
		t.Fatal(err)
	}
	return peers.Peer{Address: doc.Agent, Capabilities: doc.Capabilities}
}

func resolve(t testing.TB, all []peers.Peer, c peers.Caller) (*registry.Resolved, error) {
	t.Helper()
	known := registry.New()
	if err := known.Register(peers.New(all, c)); err != nil {
		t.Fatal(err)
	}
	return known.Resolve(registry.Context{}, []registry.Capability{{Key: "peers"}})
}

func keys(r *registry.Resolved) (all []string) {
	for _, tool := range r.Tools() {
		all = append(all, tool.Name)
	}
	return all
}

func TestNames(t *testing.T) {
	long := strings.Repeat("a", 40)
	for _, c := range []struct{ agent, capability, want string }{
		{"librarian", "search", "librarian__search"},
		{"lib-1", "Search_it", "lib-1__Search_it"},
		{"eu.lib", "search", "eu_lib__search"},
		{long, strings.Repeat("b", 22), long + "__" + strings.Repeat("b", 22)},
		{long, strings.Repeat("b", 23), long + "__" + strings.Repeat("b", 13) + "_04ee0478"},
		{long, strings.Repeat("b", 24), long + "__" + strings.Repeat("b", 13) + "_"},
	} {
		r, err := resolve(t, []peers.Peer{peer(t, c.agent, "- name: "+c.capability+"\n")}, caller(nil))
		if err != nil {
			t.Fatal(err)
		}
		if got := keys(r)[0]; !strings.HasPrefix(got, c.want) || len(got) > 64 || len(c.want) == 64 && got != c.want {
			t.Errorf("%s of %s is the tool %q, want %q", c.capability, c.agent, got, c.want)
		}
		_ = r.Close(t.Context())
	}
}

func TestCollision(t *testing.T) {
	all := []peers.Peer{peer(t, "eu.lib", "- name: search\n"), peer(t, "eu_lib", "- name: search\n")}
	_, err := resolve(t, all, caller(nil))
	if err == nil || !strings.Contains(err.Error(), `agent://eu.lib/search and agent://eu_lib/search would both be the tool "eu_lib__search"`) {
		t.Errorf("got %v", err)
	}
}

// Contracts become the schemas of tools, whatever type a payload has.
func TestShapes(t *testing.T) {
	const file = `
- name: object
  inputSchema: {type: object, properties: {q: {type: string}}, required: [q]}
  outputSchema: {type: object, properties: {n: {type: integer}}}
- name: list
  inputSchema: {$schema: "http://json-schema.org/draft-07/schema#", type: array, items: {$ref: "#/definitions/word"}, definitions: {word: {type: string}}}
  outputSchema: {type: integer}
- name: tree
  inputSchema: {anyOf: [{type: string}, {type: array, items: {$ref: "#"}}]}
- name: loose
`
	var sent rpc.Request
	r, err := resolve(t, []peers.Peer{peer(t, "lib", file)}, caller(func(_ context.Context, r rpc.Request) (*rpc.Result, error) {
		sent = r
		answer := `7`
		if r.Capability == "object" {
			answer = `{"n":9007199254740993}`
		}
		return &rpc.Result{Status: rpc.StatusOK, Response: json.RawMessage(answer)}, nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close(t.Context())
	for _, c := range []struct{ tool, args, payload, want string }{
		{"object", `{"q":"x"}`, `{"q":"x"}`, `{"n":9007199254740993}`},
		{"object", `{"q":7}`, ``, "invalid_arguments: the arguments do not fit the tool's input schema\n/q: expected type string but got number"},
		{"list", `{"payload":["a"]}`, `["a"]`, `{"response":7}`},
		{"list", `{"payload":[7]}`, ``, "invalid_arguments: the arguments do not fit the tool's input schema\n/payload/0: expected type string but got number"},
		{"list", `["a"]`, ``, "invalid_arguments: the arguments do not fit the tool's input schema\n/: expected type object but got array"},
		{"tree", `{"payload":["a",["b"]]}`, `["a",["b"]]`, `{"response":7}`},
		{"loose", `{"payload":null}`, `null`, `{"response":7}`},
	} {
		sent = rpc.Request{}
		result := r.Call(t.Context(), "lib__"+c.tool, json.RawMessage(c.args))
		if got := text(result); got != c.want || string(sent.Payload) != c.payload {
			t.Errorf("%s(%s): %q, sent %s; want %q, %s", c.tool, c.args, got, sent.Payload, c.want, c.payload)
		}
	}
	if sent.To != "agent://lib" || sent.Capability != "loose" {
		t.Errorf("the call went to %+v", sent)
	}
	// What a client of the protocol sees is an object at both ends.
	for _, tool := range r.Tools() {
		if in := string(tool.InputSchema.(json.RawMessage)); !strings.Contains(in, `"type":"object"`) {
			t.Errorf("%s takes %s", tool.Name, in)
		}
	}
}

// Contracts of the full profile are the tool's own, and judged by it.
func TestFullShapes(t *testing.T) {
	const file = `
- name: object
  schemaProfile: full
  inputSchema: {type: object, patternProperties: {"^n": {multipleOf: 3}}, additionalProperties: false}
- name: number
  schemaProfile: full
  inputSchema: {type: integer, multipleOf: 3}
- name: tree
  schemaProfile: full
  inputSchema: {type: array, prefixItems: [{type: string}], items: {$ref: "#"}}
`
	r, err := resolve(t, []peers.Peer{peer(t, "lib", file)}, caller(func(_ context.Context, r rpc.Request) (*rpc.Result, error) {
		return &rpc.Result{Status: rpc.StatusOK, Response: r.Payload}, nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close(t.Context())
	for _, c := range []struct {
		tool, args string
		ok         bool
	}{
		{"object", `{"n":6}`, true},
		{"object", `{"n":7}`, false},
		{"object", `{"m":6}`, false},
		{"number", `{"payload":6}`, true},
		{"number", `{"payload":7}`, false},
		{"tree", `{"payload":["a",["b"]]}`, true}, // the call judges it
	} {
		if got := r.Call(t.Context(), "lib__"+c.tool, json.RawMessage(c.args)); got.IsError == c.ok {
			t.Errorf("%s %s: %s", c.tool, c.args, text(got))
		}
	}
}

func text(r *mcp.CallToolResult) string {
	return r.Content[0].(*mcp.TextContent).Text
}

// A failed call is an answer that a model can act on.
func TestFailures(t *testing.T) {
	violation := []schema.Violation{{Path: "/q", Message: "too short"}}
	for _, c := range []struct {
		err  *rpc.Error
		code registry.Code
		want string
	}{
		{&rpc.Error{Code: rpc.CodeSchemaViolation, Side: rpc.SideRequest, Violations: violation, DetectedBy: "agent://lib"}, registry.InvalidArguments, "the payload does not fit the contract of agent://lib\n/payload/q: too short"},
		{&rpc.Error{Code: rpc.CodeSchemaViolation, Side: rpc.SideResponse, Message: "the answer is wrong", Violations: violation}, registry.Failed, "the answer is wrong"},
		{&rpc.Error{Code: rpc.CodeDenied, Message: "denied"}, registry.PermissionDenied, "denied"},
		{&rpc.Error{Code: rpc.CodeNoResponders, Message: "nobody is there", Retryable: true}, registry.NetworkError, "nobody is there"},
		{&rpc.Error{Code: rpc.CodeHandlerError, Message: "no such book"}, registry.Failed, "no such book"},
		{&rpc.Error{Code: rpc.CodeSchemaDrift, Message: "drift"}, registry.Unavailable, "drift"},
	} {
		r, err := resolve(t, []peers.Peer{peer(t, "lib", "- name: loose\n")}, caller(func(context.Context, rpc.Request) (*rpc.Result, error) {
			return &rpc.Result{Status: rpc.StatusError, Error: c.err}, c.err
		}))
		if err != nil {
			t.Fatal(err)
		}
		result := r.Call(t.Context(), "lib__loose", json.RawMessage(`{"payload":{}}`))
		if registry.FailureCode(result) != c.code || text(result) != string(c.code)+": "+c.want {
			t.Errorf("%v: %q", c.err.Code, text(result))
		}
		_ = r.Close(t.Context())
	}
	// When a call may come again is said by the same body as at the peer.
	limited := &rpc.Error{Code: rpc.CodeRateLimited, Message: "later", Retryable: true, Details: json.RawMessage(`{"retry_after_seconds":9}`)}
	r, err := resolve(t, []peers.Peer{peer(t, "lib", "- name: loose\n")}, caller(func(context.Context, rpc.Request) (*rpc.Result, error) {
		return &rpc.Result{Status: rpc.StatusError, Error: limited}, limited
	}))
	if err != nil {
		t.Fatal(err)
	}
	meta, err := json.Marshal(r.Call(t.Context(), "lib__loose", json.RawMessage(`{"payload":1}`)).Meta)
	if err != nil || !strings.Contains(string(meta), `"details":{"retry_after_seconds":9}`) {
		t.Errorf("a limit: %s, %v", meta, err)
	}
	_ = r.Close(t.Context())
	r, err = resolve(t, []peers.Peer{peer(t, "lib", "- name: loose\n")}, caller(func(context.Context, rpc.Request) (*rpc.Result, error) {
		return nil, errors.New("internal detail")
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close(t.Context())
	if result := r.Call(t.Context(), "lib__loose", json.RawMessage(`{"payload":1}`)); text(result) != "internal: internal error" {
		t.Errorf("an error that is none of a call: %q", text(result))
	}
}

// Every code of a call has a kind of its own choosing, and none is lost.
func TestNobodyToCall(t *testing.T) {
	r, err := resolve(t, nil, caller(nil))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close(t.Context())
	if st := r.Status(); len(keys(r)) != 0 || !strings.Contains(st[0].Skipped, "no peer") {
		t.Errorf("status %+v", st)
	}
	if !slices.ContainsFunc([]registry.Resolver{peers.New(nil, nil)}, func(r registry.Resolver) bool { return r.Key() == "peers" && len(r.Tools()) == 0 }) {
		t.Error("it cannot be listed")
	}
}

func Example() {
	doc, err := capability.Parse("capabilities.yaml", []byte(`
version: 1
agent: agent://librarian
transports: [{kind: memory, topics: {requests: librarian}}]
capabilities:
- name: search
  description: Finds books.
  inputSchema: {type: object, properties: {title: {type: string}}, required: [title]}
`), capability.LoadOptions{ValidateSchemas: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	// An agent's own client in place of this one.
	client := caller(func(_ context.Context, r rpc.Request) (*rpc.Result, error) {
		return &rpc.Result{Status: rpc.StatusOK, Response: json.RawMessage(`["Dune"]`)}, nil
	})
	known := registry.New()
	if err := known.Register(peers.New([]peers.Peer{{Address: envelope.Address("agent://librarian"), Capabilities: doc.Capabilities}}, client)); err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	agent, err := known.Resolve(registry.Context{Context: ctx}, []registry.Capability{{Key: "peers"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer agent.Close(ctx)
	result := agent.Call(ctx, "librarian__search", json.RawMessage(`{"title": "dune"}`))
	fmt.Printf("%s\n", result.StructuredContent)
	// Output: {"response":["Dune"]}
}
