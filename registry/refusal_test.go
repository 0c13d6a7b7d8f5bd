package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/registry"
)

func TestRefusals(t *testing.T) {
	started := false
	witness := capability("witness", "see")
	witness.resolve = func(registry.Context, registry.Config) (*registry.Server, error) {
		started = true
		return nil, nil
	}
	for _, c := range []struct{ name, text, want string }{
		{"unknown capability", "capabilities:\n  memmory: {}\n",
			`agent.yaml:2:3: /capabilities/memmory: unknown capability "memmory" (known: audio, files, history, memory, tasks, witness; did you mean "memory"?)`},
		{"unknown tool", "capabilities:\n  audio:\n    tools: [transcibe]\n",
			`agent.yaml:3:13: /capabilities/audio/tools/0: the capability "audio" has no tool "transcibe" (its tools: transcribe, speak; did you mean "transcribe"?)`},
		{"a tool of another capability", "capabilities:\n  audio: {tools: [transcribe, recall]}\n",
			`agent.yaml:2:31: /capabilities/audio/tools/1: the capability "audio" has no tool "recall" (its tools: transcribe, speak)`},
		{"an empty list", "capabilities:\n  audio: {tools: []}\n",
			`agent.yaml:2:11: /capabilities/audio/tools: tools lists no tool (leave the key out to have all tools, or take audio out of capabilities to have none)`},
		{"a repeated tool", "capabilities:\n  audio: {tools: [speak, speak]}\n",
			`agent.yaml:2:26: /capabilities/audio/tools/1: the tool "speak" is listed twice (keep one of them)`},
		{"a wildcard", "capabilities:\n  audio: {tools: ['*']}\n",
			`agent.yaml:2:19: /capabilities/audio/tools/0: tools takes no wildcards such as "*" (list each tool, or leave the key out to have all tools)`},
		{"no list", "capabilities:\n  audio: {tools: transcribe}\n",
			`agent.yaml:2:11: /capabilities/audio/tools: tools is a list of the names of tools (leave the key out to have all tools)`},
		{"a list with another value", "capabilities:\n  audio: {tools: [transcribe, null]}\n",
			`agent.yaml:2:11: /capabilities/audio/tools: tools is a list of the names of tools (leave the key out to have all tools)`},
		{"a missing key", "capabilities:\n  files: {}\n",
			`agent.yaml:2:3: /capabilities/files/dirs: missing required property "dirs"`},
		{"a wrong type", "capabilities:\n  files:\n    dirs:\n    - /a\n    - 7\n",
			`agent.yaml:5:7: /capabilities/files/dirs/1: expected type string but got number`},
		{"an unknown key", "capabilities:\n  files: {dirs: [/a], tool: [read_file]}\n",
			`agent.yaml:2:23: /capabilities/files/tool: additional property "tool" is not allowed (known keys: dirs, write, tools; did you mean "tools"?)`},
		{"configuration for one that takes none", "capabilities:\n  memory: {tool: [recall]}\n",
			`agent.yaml:2:12: /capabilities/memory/tool: unknown key "tool": the capability "memory" takes no configuration but tools (did you mean "tools"?)`},
		{"two faults in two capabilities", "capabilities:\n  tasks: {x: 1}\n  nothing: {}\n",
			`agent.yaml:2:11: /capabilities/tasks/x: unknown key "x": the capability "tasks" takes no configuration but tools` + "\n" +
				`agent.yaml:3:3: /capabilities/nothing: unknown capability "nothing" (known: audio, files, history, memory, tasks, witness)`},
	} {
		t.Run(c.name, func(t *testing.T) {
			reg := seed(t)
			if err := reg.Register(witness); err != nil {
				t.Fatal(err)
			}
			text := c.text + "  witness: {}\n"
			_, err := reg.Resolve(registry.Context{Context: t.Context()}, parse(t, "agent.yaml", text))
			var load *registry.LoadError
			if !errors.As(err, &load) || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
	if started {
		t.Error("a refused configuration started a capability")
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"capabilities: [memory]\n":                "expected a mapping",
		"capabilities:\n  memory:\n":              "write memory: {}",
		"capabilities: {memory: true}\n":          "the configuration of a capability is a mapping",
		"capabilities: {memory: {}, memory: {}}":  "duplicate key",
		"capabilities: {memory: {a: 1, a: 2}}}\n": "agent.yaml:1",
	} {
		if _, err := registry.Parse("agent.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// Go code gives capabilities without a file.
func TestRefusalsWithoutFile(t *testing.T) {
	for config, want := range map[string]string{
		`[]`: "not a JSON object", `nul`: "not a JSON object", `null`: "not a JSON object", `{"dirs": ["a"], "dirs": ["b"]}`: "not a JSON object",
		`{"dirs": "a"}`: "/dirs: expected type array",
	} {
		_, err := seed(t).Resolve(registry.Context{}, []registry.Capability{{Key: "files", Config: json.RawMessage(config)}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", config, err, want)
		}
	}
	_, err := seed(t).Resolve(registry.Context{}, []registry.Capability{{Key: "memory"}, {Key: "memory"}})
	if err == nil || !strings.Contains(err.Error(), "listed twice") {
		t.Errorf("a capability twice: %v", err)
	}
}

func TestTwoCapabilitiesOneToolName(t *testing.T) {
	reg := registered(t, capability("memory", "search", "recall"), capability("files", "search", "read_file"))
	_, err := reg.Resolve(registry.Context{}, parse(t, "agent.yaml", "capabilities:\n  memory: {}\n  files: {}\n"))
	want := `agent.yaml:3:3: /capabilities/files: the capabilities "memory" and "files" both have a tool called "search" (list the tools of one of them, without search, under its key tools)`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	// What the hint says mends it.
	if got := listed(t, resolve(t, reg, "capabilities:\n  memory: {}\n  files: {tools: [read_file]}\n")); len(got) != 3 {
		t.Errorf("the agent has %q", got)
	}
}

// A resolver that does not keep to the list is refused, and what it has started ends.
func TestResolverOutsideOfItsAllowlist(t *testing.T) {
	closed := 0
	add := func(s *registry.Server, name string) {
		s.OnClose(func() error { closed++; return nil })
		mcp.AddTool(s.MCP(), &mcp.Tool{Name: name, Description: "d"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, struct{}, error) {
			return nil, struct{}{}, nil
		})
	}
	for name, make := range map[string]func(r resolver, c registry.Config) (*registry.Server, error){
		"it ignores the list": func(r resolver, _ registry.Config) (*registry.Server, error) {
			s, err := r.serve([]string{"transcribe", "speak"})
			s.OnClose(func() error { closed++; return nil })
			return s, err
		},
		"it goes around Add": func(r resolver, c registry.Config) (*registry.Server, error) {
			s, err := r.serve(c.Tools)
			add(s, "speak")
			return s, err
		},
		"it never declared the tool": func(r resolver, c registry.Config) (*registry.Server, error) {
			s, err := r.serve(c.Tools)
			add(s, "rm_rf")
			return s, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			closed = 0
			audio := capability("audio", "transcribe", "speak")
			audio.resolve = func(_ registry.Context, c registry.Config) (*registry.Server, error) { return make(audio, c) }
			_, err := registered(t, audio).Resolve(registry.Context{}, parse(t, "agent.yaml", "capabilities:\n  audio: {tools: [transcribe]}\n"))
			if err == nil || !strings.Contains(err.Error(), "agent.yaml:2:3") || !strings.Contains(err.Error(), "not among those that it may have") {
				t.Errorf("got %v", err)
			}
			if closed != 1 {
				t.Errorf("what it started was closed %d times", closed)
			}
		})
	}
}

// A tool that is added once the check is over is still not there.
func TestToolAddedLater(t *testing.T) {
	audio := capability("audio", "transcribe", "speak")
	var server *registry.Server
	audio.resolve = func(_ registry.Context, c registry.Config) (s *registry.Server, err error) {
		server, err = audio.serve(c.Tools)
		return server, err
	}
	res := resolve(t, registered(t, audio), "capabilities: {audio: {tools: [transcribe]}}\n")
	server.MCP().AddTool(&mcp.Tool{Name: "speak", InputSchema: json.RawMessage(`{"type": "object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		t.Error("the tool ran")
		return &mcp.CallToolResult{}, nil
	})
	if got := listed(t, res); len(got) != 1 {
		t.Errorf("the agent has %q", got)
	}
	theirs, ours := mcp.NewInMemoryTransports()
	if _, err := server.MCP().Connect(t.Context(), theirs, nil); err != nil {
		t.Fatal(err)
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), ours, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "speak"}); err == nil {
		t.Error("calling it succeeds")
	}
}

func TestResolverFaults(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"plain":   {errors.New("no such disk"), `agent.yaml:2:3: /capabilities/files: the capability "files" cannot be provided: no such disk`},
		"located": {&registry.ConfigError{Pointer: "/dirs/1", Message: "there is no folder of that name", Hint: "make it"}, `agent.yaml:2:22: /capabilities/files/dirs/1: there is no folder of that name (make it)`},
	} {
		files := capability("files", "read_file")
		files.schema = filesSchema
		files.resolve = func(registry.Context, registry.Config) (*registry.Server, error) { return nil, c.err }
		_, err := registered(t, files).Resolve(registry.Context{}, parse(t, "agent.yaml", "capabilities:\n  files: {dirs: [/a, /b]}\n"))
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: got  %v\nwant %s", name, err, c.want)
		}
	}
}

// A fault of one capability closes those that were resolved before it.
func TestFaultClosesWhatWasStarted(t *testing.T) {
	closed := false
	first, second := capability("first", "a"), capability("second", "b")
	first.resolve = func(_ registry.Context, c registry.Config) (*registry.Server, error) {
		s, err := first.serve(c.Tools)
		s.OnClose(func() error { closed = true; return nil })
		return s, err
	}
	second.resolve = func(registry.Context, registry.Config) (*registry.Server, error) { return nil, errors.New("no") }
	if _, err := registered(t, first, second).Resolve(registry.Context{}, parse(t, "a.yaml", "capabilities: {first: {}, second: {}}")); err == nil || !closed {
		t.Errorf("%v; closed: %t", err, closed)
	}
}

func TestSkip(t *testing.T) {
	why, silent := capability("audio", "transcribe"), capability("video", "watch")
	why.resolve = func(registry.Context, registry.Config) (*registry.Server, error) {
		return nil, registry.Skipf("no endpoint is configured in %s", "agent.yaml")
	}
	silent.resolve = func(registry.Context, registry.Config) (*registry.Server, error) { return nil, nil }
	res := resolve(t, registered(t, why, silent, capability("memory", "recall")), "capabilities: {audio: {tools: [transcribe]}, video: {}, memory: {}}\n")
	got, _ := json.Marshal(res.Status())
	want := `[{"key":"audio","tools":[],"skipped":"no endpoint is configured in agent.yaml"},{"key":"video","tools":[],"skipped":"its resolver has nothing for this agent"},{"key":"memory","tools":["recall"]}]`
	if string(got) != want {
		t.Errorf("status is %s, want %s", got, want)
	}
	if got := listed(t, res); len(got) != 1 {
		t.Errorf("the agent has %q", got)
	}
}

// A tool that the agent asks for by name must be there; one that it takes along with
// all others need not.
func TestListedToolThatIsNotGiven(t *testing.T) {
	files := capability("files", "read_file", "write_file")
	files.resolve = func(_ registry.Context, c registry.Config) (*registry.Server, error) {
		only := capability("files", "read_file")
		return only.serve(c.Tools)
	}
	reg := registered(t, files)
	if got := listed(t, resolve(t, reg, "capabilities: {files: {}}\n")); len(got) != 1 {
		t.Errorf("the agent has %q", got)
	}
	_, err := reg.Resolve(registry.Context{}, parse(t, "agent.yaml", "capabilities: {files: {tools: [read_file, write_file]}}\n"))
	if err == nil || !strings.Contains(err.Error(), `does not give the tool "write_file" with this configuration`) {
		t.Errorf("got %v", err)
	}
}

// perAgent is a capability whose tools are those that its configuration names.
type perAgent struct{ resolver }

func (p perAgent) AgentTools(_ registry.Context, config json.RawMessage) ([]registry.Tool, error) {
	var c struct{ Names []string }
	if err := json.Unmarshal(config, &c); err != nil {
		return nil, err
	}
	if len(c.Names) == 0 {
		return nil, registry.Skip("there is nobody")
	}
	return capability("", c.Names...).tools, nil
}

func TestToolsOfOneAgent(t *testing.T) {
	p := perAgent{resolver{key: "peers", schema: `{"type": "object", "properties": {"names": {"type": "array", "items": {"type": "string"}}}}`}}
	p.resolve = func(_ registry.Context, c registry.Config) (*registry.Server, error) {
		return capability("peers", "ann", "bob").serve(c.Tools)
	}
	reg := registered(t, p)
	if got := listed(t, resolve(t, reg, "capabilities: {peers: {names: [ann, bob], tools: [bob]}}\n")); len(got) != 1 || got[0] != "bob" {
		t.Errorf("the agent has %q", got)
	}
	_, err := reg.Resolve(registry.Context{}, parse(t, "agent.yaml", "capabilities: {peers: {names: [ann], tools: [bob]}}\n"))
	if err == nil || !strings.Contains(err.Error(), `has no tool "bob" (its tools: ann)`) {
		t.Errorf("got %v", err)
	}
	_, err = reg.Resolve(registry.Context{}, parse(t, "agent.yaml", "capabilities: {peers: {names: ['a b']}}\n"))
	if err == nil || !strings.Contains(err.Error(), `"a b" of a tool is not`) {
		t.Errorf("got %v", err)
	}
	if st := resolve(t, reg, "capabilities: {peers: {}}\n").Status(); len(st) != 1 || st[0].Skipped != "there is nobody" {
		t.Errorf("status is %v", st)
	}
	if known := reg.KnownCapabilities(); !known[0].PerAgent {
		t.Error("the descriptor does not say that the tools depend on the agent")
	}
}
