package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/registry"
)

// a resolver that a third party could have written. Its fields decide how it behaves.
type resolver struct {
	key     string
	tools   []registry.Tool
	schema  string
	resolve func(ctx registry.Context, c registry.Config) (*registry.Server, error)
}

func (r resolver) Key() string            { return r.key }
func (r resolver) Tools() []registry.Tool { return r.tools }
func (r resolver) ConfigSchema() json.RawMessage {
	if r.schema == "" {
		return nil
	}
	return json.RawMessage(r.schema)
}

func (r resolver) Resolve(ctx registry.Context, c registry.Config) (*registry.Server, error) {
	if r.resolve != nil {
		return r.resolve(ctx, c)
	}
	return r.serve(c.Tools)
}

// serve is a server with every tool that the resolver declares and allowed lets in.
func (r resolver) serve(allowed []string) (*registry.Server, error) {
	s := registry.NewServer(r.key, "1", allowed)
	for _, t := range r.tools {
		err := s.Add(registry.ToolSpec{Key: t.Key, Title: t.Name, Description: t.Description, Input: json.RawMessage(`{"type": "object"}`)},
			func(context.Context, json.RawMessage) (json.RawMessage, error) {
				return json.Marshal(map[string]string{"by": t.Key})
			})
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// capability is a resolver with tools of these keys.
func capability(key string, tools ...string) resolver {
	r := resolver{key: key}
	for _, t := range tools {
		r.tools = append(r.tools, registry.Tool{Key: t, Name: "The tool " + t, Description: "Does " + t + "."})
	}
	return r
}

const filesSchema = `{"type": "object", "properties": {"dirs": {"type": "array", "items": {"type": "string"}, "minItems": 1}, "write": {"type": "boolean"}}, "required": ["dirs"], "additionalProperties": false}`

// seed has the capabilities of the seed's example.
func seed(t *testing.T) *registry.Registry {
	files := capability("files", "list_files", "read_file", "search_files")
	files.schema = filesSchema
	return registered(t, capability("memory", "remember", "recall"), capability("history", "list_calls"),
		capability("tasks", "add_task"), capability("audio", "transcribe", "speak"), files)
}

func registered(t *testing.T, resolvers ...registry.Resolver) *registry.Registry {
	t.Helper()
	reg := registry.New()
	for _, r := range resolvers {
		if err := reg.Register(r); err != nil {
			t.Fatal(err)
		}
	}
	return reg
}

func parse(t *testing.T, name, text string) []registry.Capability {
	t.Helper()
	caps, err := registry.Parse(name, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return caps
}

func resolve(t *testing.T, reg *registry.Registry, text string) *registry.Resolved {
	t.Helper()
	res, err := reg.Resolve(registry.Context{Context: t.Context()}, parse(t, "agent.yaml", text))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := res.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return res
}

// listed is what a client of the protocol sees.
func listed(t *testing.T, res *registry.Resolved) []string {
	t.Helper()
	session, err := res.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	var keys []string
	for tool, err := range session.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, tool.Name)
	}
	return keys
}

// seedJSON is the example of the seed, byte for byte.
const seedJSON = `{
  "capabilities": {
    "memory": {},
    "history": {},
    "tasks": {},
    "audio": { "tools": ["transcribe"] },
    "files": { "dirs": ["/data/reports"], "tools": ["read_file"] }
  }
}`

func TestSeedExample(t *testing.T) {
	res, err := seed(t).Resolve(registry.Context{Context: t.Context()}, parse(t, "agent.json", seedJSON))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Close(t.Context())
	want := []string{"add_task", "list_calls", "read_file", "recall", "remember", "transcribe"}
	if got := listed(t, res); !slices.Equal(got, want) {
		t.Errorf("the agent has %q, want %q", got, want)
	}
	status, err := json.Marshal(res.Status())
	if err != nil {
		t.Fatal(err)
	}
	if want := `[{"key":"memory","tools":["remember","recall"]},{"key":"history","tools":["list_calls"]},{"key":"tasks","tools":["add_task"]},{"key":"audio","tools":["transcribe"]},{"key":"files","tools":["read_file"]}]`; string(status) != want {
		t.Errorf("status is %s, want %s", status, want)
	}
	if got := len(res.MCPServers()); got != 5 {
		t.Errorf("%d servers, want one for each capability", got)
	}
}

// "Every capability is explicitly listed in agent.capabilities. No implicit inclusion."
func TestNoImplicitInclusion(t *testing.T) {
	for _, text := range []string{"name: x\n", "capabilities: {}\n"} {
		if got := listed(t, resolve(t, seed(t), text)); len(got) > 0 {
			t.Errorf("%q gives %q, want nothing", text, got)
		}
	}
	if got := listed(t, resolve(t, seed(t), "capabilities: {tasks: {}}\n")); !slices.Equal(got, []string{"add_task"}) {
		t.Errorf("an agent that lists tasks has %q", got)
	}
}

// "Capabilities are the security model. No separate trust layer." A tool that the list
// leaves out is not hidden or refused: its server does not have it.
func TestToolsThatAreLeftOutDoNotExist(t *testing.T) {
	res := resolve(t, seed(t), "capabilities: {audio: {tools: [transcribe]}}\n")
	if code := registry.FailureCode(res.Call(t.Context(), "speak", nil)); code != registry.NotFound {
		t.Errorf("calling a tool that is left out: %q, want %q", code, registry.NotFound)
	}
	theirs, ours := mcp.NewInMemoryTransports()
	if _, err := res.MCPServers()["audio"].Connect(t.Context(), theirs, nil); err != nil {
		t.Fatal(err)
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), ours, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	tools, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(tools.Tools) != 1 || tools.Tools[0].Name != "transcribe" {
		t.Errorf("the capability's own server has %v", tools.Tools)
	}
	if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "speak"}); err == nil {
		t.Error("the capability's own server runs a tool that is left out")
	}
}

// "No capability resolver receives a channel parameter. Core is channel-agnostic."
func TestResolversLearnNothingOfChannels(t *testing.T) {
	for _, typ := range []reflect.Type{reflect.TypeFor[registry.Context](), reflect.TypeFor[registry.Config]()} {
		for i := range typ.NumField() {
			if name := strings.ToLower(typ.Field(i).Name); strings.Contains(name, "channel") || strings.Contains(name, "thread") {
				t.Errorf("%s.%s tells a resolver of the channel", typ, typ.Field(i).Name)
			}
		}
	}
}

// "tools is a reserved key in capability config - always handled by the registry, never
// passed to resolvers."
func TestToolsAreNotPassedOn(t *testing.T) {
	files := capability("files", "list_files", "read_file")
	files.schema = filesSchema // refuses unknown keys, tools among them
	var got registry.Config
	files.resolve = func(_ registry.Context, c registry.Config) (*registry.Server, error) {
		got = c
		return files.serve(c.Tools)
	}
	reg := registered(t, files)
	resolve(t, reg, "capabilities: {files: {dirs: [/data/reports], tools: [read_file]}}\n")
	if string(got.JSON) != `{"dirs":["/data/reports"]}` || !slices.Equal(got.Tools, []string{"read_file"}) {
		t.Errorf("the resolver got %s and the tools %q", got.JSON, got.Tools)
	}
	resolve(t, reg, "capabilities: {files: {dirs: [/data/reports]}}\n")
	if !slices.Equal(got.Tools, []string{"list_files", "read_file"}) {
		t.Errorf("without a list the resolver got the tools %q, want all", got.Tools)
	}
	declares := capability("greedy", "x")
	declares.schema = `{"type": "object", "properties": {"tools": {"type": "string"}}}`
	if err := reg.Register(declares); err == nil || !strings.Contains(err.Error(), `"tools"`) {
		t.Errorf("a schema that declares tools: %v", err)
	}
}

// "Registering a new CapabilityResolver automatically makes that capability available
// for agent configuration. No other code changes needed."
func TestRegisteringIsEnough(t *testing.T) {
	reg := seed(t)
	text := "capabilities: {weather: {}}\n"
	if _, err := reg.Resolve(registry.Context{}, parse(t, "agent.yaml", text)); err == nil {
		t.Fatal("a capability that nobody registered resolves")
	}
	if err := reg.Register(capability("weather", "get_weather")); err != nil {
		t.Fatal(err)
	}
	if got := listed(t, resolve(t, reg, text)); !slices.Equal(got, []string{"get_weather"}) {
		t.Errorf("the agent has %q", got)
	}
}

func TestKnownCapabilities(t *testing.T) {
	reg := seed(t)
	stopped := capability("stopped", "x")
	stopped.resolve = func(registry.Context, registry.Config) (*registry.Server, error) {
		t.Error("listing capabilities resolved one")
		return nil, errors.New("no")
	}
	if err := reg.Register(stopped); err != nil {
		t.Fatal(err)
	}
	known := reg.KnownCapabilities()
	var keys []string
	for _, d := range known {
		keys = append(keys, d.Key)
	}
	if want := []string{"audio", "files", "history", "memory", "stopped", "tasks"}; !slices.Equal(keys, want) {
		t.Errorf("known are %q, want %q", keys, want)
	}
	got, err := json.Marshal(known[1])
	if err != nil {
		t.Fatal(err)
	}
	want := `{"key":"files","tools":[{"key":"list_files","name":"The tool list_files","description":"Does list_files."},` +
		`{"key":"read_file","name":"The tool read_file","description":"Does read_file."},` +
		`{"key":"search_files","name":"The tool search_files","description":"Does search_files."}],"configSchema":` + compact(t, filesSchema) + `}`
	if string(got) != want {
		t.Errorf("files is described as\n%s, want\n%s", got, want)
	}
}

func compact(t *testing.T, text string) string {
	t.Helper()
	out, err := json.Marshal(json.RawMessage(text))
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestRegisterRefuses(t *testing.T) {
	badSchema := capability("x", "a")
	badSchema.schema = `{"type": "objekt"}`
	bare := capability("x", "a")
	bare.tools[0].Description = ""
	for name, r := range map[string]resolver{
		`the key "not a name"`:   capability("not a name", "a"),
		"is not 1 to 64 letters": capability(strings.Repeat("k", 65), "a"),
		`the key "a/b"`:          capability("x", "a/b"),
		"declared twice":         capability("x", "a", "a"),
		"a description":          bare,
		"/type":                  badSchema,
		"registered already":     capability("memory", "a"),
	} {
		if err := seed(t).Register(r); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
