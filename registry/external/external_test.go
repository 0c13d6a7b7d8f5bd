package external_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/logtest"
	"github.com/agentd/agentd/internal/mcpclient"
	"github.com/agentd/agentd/internal/oauthtest"
	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/registry/external"
)

// The test binary is also the server of the tests, whose argument is its folder.
func TestMain(m *testing.M) {
	if os.Getenv("MCP_TEST_SERVER") != "" {
		serve(os.Args[len(os.Args)-1])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const (
	inputSchema  = `{"type":"object","properties":{"n":{"type":"integer","maximum":9007199254740993}},"dependentRequired":{"a":["b"]}}`
	outputSchema = `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`
)

func serve(dir string) {
	if err := os.WriteFile(filepath.Join(dir, "started"), nil, 0o600); err != nil {
		panic(err)
	}
	text := func(s string) []mcp.Content { return []mcp.Content{&mcp.TextContent{Text: s}} }
	s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	add := func(name, output string, answer func(args json.RawMessage) *mcp.CallToolResult) {
		t := &mcp.Tool{Name: name, Description: "Does " + name + ".", InputSchema: json.RawMessage(inputSchema), Annotations: &mcp.ToolAnnotations{ReadOnlyHint: name == "typed"}}
		if output != "" {
			t.OutputSchema = json.RawMessage(output)
		}
		s.AddTool(t, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return answer(r.Params.Arguments), nil
		})
	}
	add("typed", outputSchema, func(args json.RawMessage) *mcp.CallToolResult {
		return &mcp.CallToolResult{StructuredContent: args, Content: []mcp.Content{}}
	})
	add("text", "", func(json.RawMessage) *mcp.CallToolResult { return &mcp.CallToolResult{Content: text("as text")} })
	add("fails", outputSchema, func(json.RawMessage) *mcp.CallToolResult {
		return &mcp.CallToolResult{IsError: true, Content: text("no such file"), Meta: mcp.Meta{"io.agentd/error": map[string]any{"code": "rate_limit_exceeded"}}}
	})
	add("silent", outputSchema, func(json.RawMessage) *mcp.CallToolResult { return &mcp.CallToolResult{Content: text("1")} })
	_ = s.Run(context.Background(), &mcp.StdioTransport{})
}

// agent is an agent in a folder of its own.
func agent(t *testing.T) (ctx registry.Context, dir string, log *logtest.Lines) {
	t.Helper()
	dir, log = t.TempDir(), &logtest.Lines{}
	return registry.Context{Context: t.Context(), Agent: "hub", AgentDir: dir, WorkspaceDir: dir, Logger: slog.New(slog.NewTextHandler(log, nil))}, dir, log
}

// configured is the capability with one server, the test binary, and more keys.
func configured(dir, more string) string {
	return fmt.Sprintf(`{"servers": {"x": {"command": [%q, %q], "env": {"MCP_TEST_SERVER": "1", "GORACE": "atexit_sleep_ms=0"}%s}}}`, os.Args[0], dir, more)
}

func uses(config string) []registry.Capability {
	return []registry.Capability{{Key: "mcp", Config: json.RawMessage(config)}}
}

func known(t *testing.T) (*registry.Registry, *external.Resolver) {
	t.Helper()
	r := external.New(nil)
	all := registry.New()
	if err := all.Register(r); err != nil {
		t.Fatal(err)
	}
	return all, r
}

// pinned pins the server of configured.
func pinned(t *testing.T, ctx registry.Context, dir string) *external.Lock {
	t.Helper()
	_, r := known(t)
	lock, found, err := r.Pin(ctx, json.RawMessage(configured(dir, "")))
	if err != nil || len(found) != 1 || len(found[0].Tools) != 4 || len(found[0].New) != 4 {
		t.Fatalf("%+v, %v", found, err)
	}
	if err := external.WriteLock(dir, lock); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "started")); err != nil {
		t.Fatal(err)
	}
	return lock
}

func resolve(t *testing.T, ctx registry.Context, config string) *registry.Resolved {
	t.Helper()
	all, _ := known(t)
	tools, err := all.Resolve(ctx, uses(config))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tools.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return tools
}

// The tools are known, and judged, without the server.
func TestNothingIsStarted(t *testing.T) {
	ctx, dir, _ := agent(t)
	pinned(t, ctx, dir)
	all, _ := known(t)
	if err := all.Check(ctx, uses(configured(dir, ""))); err != nil {
		t.Error(err)
	}
	err := all.Check(ctx, uses(strings.Replace(configured(dir, ""), `{"servers"`, `{"tools": ["x__txt"], "servers"`, 1)))
	if err == nil || !strings.Contains(err.Error(), `did you mean "x__text"`) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "started")); err == nil {
		t.Error("the server was started")
	}
}

// Calls are checked on both sides, in the full profile, and results are exact.
func TestCalls(t *testing.T) {
	ctx, dir, log := agent(t)
	pinned(t, ctx, dir)
	tools := resolve(t, ctx, configured(dir, ""))
	for _, row := range []struct {
		tool, args string
		code       registry.Code
		want       string
	}{
		{"x__typed", `{"n":9007199254740993}`, "", `{"n":9007199254740993}`},
		{"x__typed", `{"n": 9007199254740994}`, registry.InvalidArguments, "/n"},
		{"x__typed", `{"n": 1, "a": 1}`, registry.InvalidArguments, `"b"`},
		{"x__typed", `{"n": "1"}`, registry.InvalidArguments, "/n"},
		{"x__typed", `{}`, registry.Failed, "does not fit its output schema"},
		{"x__text", `{}`, "", "as text"},
		{"x__fails", `{}`, registry.Failed, "no such file"},
		{"x__silent", `{}`, registry.Failed, "no structured content"},
	} {
		r := tools.Call(t.Context(), row.tool, json.RawMessage(row.args))
		if got := r.Content[0].(*mcp.TextContent).Text; registry.FailureCode(r) != row.code || !strings.Contains(got, row.want) {
			t.Errorf("%s %s: %s %q", row.tool, row.args, registry.FailureCode(r), got)
		}
		if raw, ok := r.StructuredContent.(json.RawMessage); row.tool == "x__typed" && row.code == "" && (!ok || string(raw) != row.args) {
			t.Errorf("the structured content is %v", r.StructuredContent)
		}
	}
	if !strings.Contains(log.String(), "broke its contract") {
		t.Error("the log does not say it")
	}
	for _, def := range tools.Tools() {
		if in, ok := def.InputSchema.(json.RawMessage); !ok || string(in) != inputSchema {
			t.Errorf("the input schema of %s is %s", def.Name, in)
		}
		if def.Annotations.ReadOnlyHint != (def.Name == "x__typed") || strings.Contains(def.Description, "x__") {
			t.Errorf("%+v", def)
		}
	}
}

// What a server's list leaves out was never there.
func TestServerTools(t *testing.T) {
	ctx, dir, _ := agent(t)
	pinned(t, ctx, dir)
	tools := resolve(t, ctx, configured(dir, `, "tools": ["text"]`))
	if all := tools.Tools(); len(all) != 1 || all[0].Name != "x__text" {
		t.Errorf("%d tools", len(all))
	}
}

// A server that is away keeps no agent from starting; its tools say so, and so does the list
// of troubles.
func TestAway(t *testing.T) {
	ctx, dir, log := agent(t)
	pinned(t, ctx, dir)
	gone := strings.Replace(configured(dir, ""), os.Args[0], "/no/such/program", 1)
	tools := resolve(t, ctx, gone)
	r := tools.Call(t.Context(), "x__text", nil)
	if got := r.Content[0].(*mcp.TextContent).Text; registry.FailureCode(r) != registry.Unavailable || strings.Contains(got, "/no/such") {
		t.Errorf("%s", got)
	}
	eventually.Succeeds(t, "the trouble is listed", func() error {
		for _, trouble := range tools.Troubles() {
			if trouble.Code == "away" && trouble.Subject == "x" && len(trouble.Tools) == 4 && strings.Contains(trouble.Cause, "/no/such/program") {
				return nil
			}
		}
		return fmt.Errorf("%+v", tools.Troubles())
	})
	for range 20 { // always in one order
		for _, trouble := range tools.Troubles() {
			if want := []string{"x__fails", "x__silent", "x__text", "x__typed"}; !slices.Equal(trouble.Tools, want) {
				t.Fatalf("%q", trouble.Tools)
			}
		}
	}
	if strings.Count(log.String(), "is away") != 1 {
		t.Errorf("the log is %s", log)
	}
}

// A contract that the server does not serve any more is refused, and pinning shows why.
func TestChanged(t *testing.T) {
	ctx, dir, _ := agent(t)
	lock := pinned(t, ctx, dir)
	tool := &lock.Servers["x"].Tools[1] // by name: fails, silent, text, typed
	tool.Description = "Was something else."
	tool.Digest, _ = tool.Contract.Digest()
	if err := external.WriteLock(dir, lock); err != nil {
		t.Fatal(err)
	}
	tools := resolve(t, ctx, configured(dir, ""))
	r := tools.Call(t.Context(), "x__silent", nil)
	if got := r.Content[0].(*mcp.TextContent).Text; registry.FailureCode(r) != registry.Unavailable || !strings.HasSuffix(got, "was pinned: description") {
		t.Errorf("%s", got)
	}
	if r := tools.Call(t.Context(), "x__text", nil); r.IsError {
		t.Errorf("%+v", r)
	}
	if all := tools.Troubles(); len(all) != 1 || all[0].Code != "changed" || !strings.Contains(all[0].Cause, `description was "Was something else." and is "Does silent."`) || len(all[0].Tools) != 1 || all[0].Tools[0] != "x__silent" {
		t.Errorf("%+v", all)
	}
	_, resolver := known(t)
	_, found, err := resolver.Pin(ctx, json.RawMessage(configured(dir, "")))
	if err != nil || found[0].Same() || len(found[0].Changed) != 1 || found[0].Changed[0].Tool != "silent" {
		t.Errorf("%+v, %v", found, err)
	}
	// By choice, a description is reported only.
	tools = resolve(t, ctx, configured(dir, `, "descriptions": "report"`))
	if r := tools.Call(t.Context(), "x__silent", nil); registry.FailureCode(r) != registry.Failed {
		t.Errorf("%+v", r)
	}
	if all := tools.Troubles(); len(all) != 1 || all[0].Code != "description-changed" || len(all[0].Tools) != 0 {
		t.Errorf("%+v", all)
	}
}

// A server that takes tokens is pinned and used with those of a client, and one that takes logins
// says that it lacks one.
func TestProtected(t *testing.T) {
	s := oauthtest.New(t)
	const secret = "the secret of a client"
	s.Clients["hub"] = oauthtest.Client{Secret: secret}
	server := mcp.NewServer(&mcp.Implementation{Name: "web", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "text", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "as text"}}}, nil
	})
	r := s.Protect(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true}))
	ctx, dir, _ := agent(t)
	ctx.StateDir = t.TempDir()
	ctx.Secret = func(context.Context, string) (string, error) { return secret, nil }
	config := func(oauth string) string {
		return fmt.Sprintf(`{"servers": {"x": {"url": %q, "oauth": %s}}}`, r.URL, oauth)
	}
	machine := config(fmt.Sprintf(`{"grant": "client-credentials", "issuer": %q, "clientId": "hub", "clientSecret": "env:S"}`, s.URL))
	_, resolver := known(t)
	lock, _, err := resolver.Pin(ctx, json.RawMessage(machine))
	if err != nil {
		t.Fatal(err)
	}
	if err := external.WriteLock(dir, lock); err != nil {
		t.Fatal(err)
	}
	if got := resolve(t, ctx, machine).Call(t.Context(), "x__text", nil); got.IsError || got.Content[0].(*mcp.TextContent).Text != "as text" {
		t.Errorf("%+v", got.Content[0])
	}
	tools := resolve(t, ctx, config(`{}`))
	const want = "needs a login (nobody is logged in): run `agentd mcp login --agent hub x`"
	got := tools.Call(t.Context(), "x__text", nil)
	if text := got.Content[0].(*mcp.TextContent).Text; registry.FailureCode(got) != registry.Unavailable || !strings.Contains(text, want) {
		t.Errorf("%s", text)
	}
	eventually.Holds(t, "the trouble is listed", func() bool {
		all := tools.Troubles()
		return len(all) == 1 && all[0].Code == "login" && strings.Contains(all[0].Cause, want)
	})
}

func TestFaults(t *testing.T) {
	ctx, dir, _ := agent(t)
	pinned(t, ctx, dir)
	all := registry.New()
	if err := all.Register(external.New(nil).Declare(external.Declared{Name: "others"})); err != nil {
		t.Fatal(err)
	}
	for config, want := range map[string]string{
		`{}`:                                "servers",
		`{"servers": {"x": {}}}`:            "/servers/x: there is no MCP server \"x\" under mcpServers",
		`{"servers": ["other"]}`:            "/servers/other: there is no MCP server \"other\" under mcpServers (did you mean \"others\"?)",
		`{"servers": ["others", "others"]}`: "/servers",
		`{"servers": {"others": {"era": "2025-11-25"}}}`:                                                          "/servers/others: how the server is reached is declared under mcpServers",
		`{"servers": {"others": {"env": {}}}}`:                                                                    "/servers/others: how the server is reached is declared under mcpServers",
		`{"servers": {"others": {}}}`:                                                                             "/servers/others: the tools of the server \"others\" are not pinned",
		`{"servers": {"x": {"command": ["a"], "timeoutMs": 5}}}`:                                                  "/servers/x/timeoutMs: it is for a server of mcpServers (write limits: {timeoutMs: …})",
		`{"servers": {"x": {"command": ["a"], "url": "https://a.example.com"}}}`:                                  "either by a command or by a url",
		`{"servers": {"y": {"command": ["a"]}}}`:                                                                  "/servers/y: the tools of the server \"y\" are not pinned",
		`{"servers": {"a__b": {"command": ["a"]}}}`:                                                               "the name \"a__b\" of a server",
		`{"servers": {"x": {"command": ["a"], "tools": ["txt"]}}}`:                                                "/servers/x/tools/0: no tool \"txt\" of the server \"x\" is pinned",
		`{"servers": {"x": {"url": "http://a.example.com/mcp"}}}`:                                                 "/servers/x/url: the server would be reached without encryption",
		`{"servers": {"x": {"url": "ftp://a.example.com/mcp"}}}`:                                                  "/servers/x/url: it is not the URL",
		`{"servers": {"x": {"url": "http://127.0.0.1:1/", "credentials": [{"secret": "s"}]}}}`:                    "/servers/x/credentials: the secret would be sent without encryption",
		`{"servers": {"x": {"url": "https://a.example.com", "allowAddresses": ["10"]}}}`:                          "/servers/x: allowAddresses",
		`{"servers": {"x": {"url": "https://a.example.com", "env": {}}}}`:                                         "env and sandbox are for a command",
		`{"servers": {"x": {"command": ["a"], "caFile": "ca.pem"}}}`:                                              "are for a url",
		`{"servers": {"x": {"command": ["a"], "env": {"A=B": "c"}}}}`:                                             "/servers/x/env: \"A=B\" is no name of a variable",
		`{"servers": {"x": {"command": ["a"], "comand": []}}}`:                                                    "did you mean \"command\"",
		`{"servers": {"x": {"command": ["a"], "era": "2024-11-05"}}}`:                                             "/servers/x/era",
		`{"servers": {"x": {"command": ["a"], "oauth": {}}}}`:                                                     "are for a url",
		`{"servers": {"x": {"url": "https://a.example.com", "oauth": {"clientSecret": "s3cret"}}}}`:               "/servers/x/oauth: clientSecret: not a reference",
		`{"servers": {"x": {"url": "https://a.example.com", "oauth": {}, "credentials": [{"secret": "env:S"}]}}}`: "/servers/x/oauth: credentials have the header",
	} {
		tools, err := all.Resolve(ctx, uses(config))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", config, err)
		}
		if tools != nil {
			_ = tools.Close(t.Context())
		}
	}
}

// A lock that was edited is no lock. Pinning replaces one whose contracts were edited, and
// none that it cannot read: a later agentd may have written it.
func TestEditedLock(t *testing.T) {
	ctx, dir, _ := agent(t)
	pinned(t, ctx, dir)
	path := filepath.Join(dir, external.LockName)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all, r := known(t)
	for old, edited := range map[string]string{
		"Does text.":     "Does harm.",
		`"version": 1`:   `"version": 2`,
		`"name": "text"`: `"name": "text", "name": "text"`,
		`"servers"`:      `"server"`,
	} {
		if err := os.WriteFile(path, bytes.Replace(before, []byte(old), []byte(edited), 1), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := all.Check(ctx, uses(configured(dir, ""))); err == nil || !strings.Contains(err.Error(), external.LockName) {
			t.Errorf("%s: %v", edited, err)
		}
		if _, _, err := r.Pin(ctx, json.RawMessage(configured(dir, ""))); (err == nil) != (edited == "Does harm.") {
			t.Errorf("pinning where it says %s: %v", edited, err)
		}
	}
}

// A reload that changes nothing about a server keeps its program; one that does starts it anew.
func TestKeptOverReloads(t *testing.T) {
	ctx, dir, _ := agent(t)
	lock := pinned(t, ctx, dir)
	var open external.Connections
	load := func(config, besides string) *registry.Resolved {
		t.Helper()
		all := registry.New()
		if err := all.Register(external.New(nil).Share(&open, besides)); err != nil {
			t.Fatal(err)
		}
		tools, err := all.Resolve(ctx, uses(config))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = tools.Close(context.Background()) })
		return tools
	}
	now := load(configured(dir, ""), "")
	for _, row := range []struct {
		change       func()
		config, with string
		starts       bool
	}{
		{func() {}, configured(dir, ""), "", false},
		{func() {}, configured(dir, `, "limits": {"pending": 3}`), "", true},
		{func() {}, configured(dir, `, "limits": {"pending": 3}`), "another variable", true},
		{func() {
			s := lock.Servers["x"]
			s.Tools = s.Tools[1:]
			lock.Servers["x"] = s
			if err := external.WriteLock(dir, lock); err != nil {
				t.Fatal(err)
			}
		}, configured(dir, `, "limits": {"pending": 3}`), "another variable", true},
	} {
		if r := now.Call(t.Context(), "x__text", nil); r.IsError {
			t.Fatalf("%+v", r)
		}
		if err := os.Remove(filepath.Join(dir, "started")); err != nil {
			t.Fatal(err)
		}
		row.change()
		next := load(row.config, row.with)
		if err := now.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if r := next.Call(t.Context(), "x__text", nil); r.IsError {
			t.Fatalf("%+v", r)
		}
		if _, err := os.Stat(filepath.Join(dir, "started")); (err == nil) != row.starts {
			t.Errorf("%s %s: %v", row.config, row.with, err)
		} else if err != nil {
			_ = os.WriteFile(filepath.Join(dir, "started"), nil, 0o600)
		}
		now = next
	}
}

// A server that the agent's file declares for all uses is named, with what this use says of it,
// and its contracts are in one lock with those of an import.
func TestDeclared(t *testing.T) {
	ctx, dir, _ := agent(t)
	lock := pinned(t, ctx, dir)
	tool := lock.Servers["x"].Tools[3].Contract // typed
	imported := &external.Lock{Version: 1}
	if err := imported.Add("files", "test 1", []mcpclient.Contract{tool}); err != nil {
		t.Fatal(err)
	}
	if err := external.WriteLock(dir, imported); err != nil {
		t.Fatal(err)
	}
	resolver := func() *external.Resolver {
		return external.New(nil).Declare(external.Declared{Name: "files", Options: func(registry.Context) (mcpclient.Options, error) {
			return mcpclient.Options{Name: "files", Command: &mcpclient.Command{Args: []string{os.Args[0], dir}, Env: func() ([]string, error) {
				return []string{"MCP_TEST_SERVER=1", "GORACE=atexit_sleep_ms=0"}, nil
			}}}, nil
		}}, external.Declared{Name: "unused", Options: func(registry.Context) (mcpclient.Options, error) {
			t.Error("a server that nobody uses was asked")
			return mcpclient.Options{}, nil
		}})
	}
	for _, config := range []string{`{"servers": ["files"]}`, `{"servers": {"files": {}}}`, `{"servers": {"files": {"tools": ["typed"], "descriptions": "refuse", "timeoutMs": 60000}}}`} {
		all := registry.New()
		if err := all.Register(resolver()); err != nil {
			t.Fatal(err)
		}
		tools, err := all.Resolve(ctx, uses(config))
		if err != nil {
			t.Fatal(config, err)
		}
		r := tools.Call(t.Context(), "files__typed", json.RawMessage(`{"n":9007199254740993}`))
		if raw, ok := r.StructuredContent.(json.RawMessage); r.IsError || !ok || string(raw) != `{"n":9007199254740993}` || len(tools.Tools()) != 1 {
			t.Errorf("%s: %+v", config, r)
		}
		if err := tools.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	// Pinning reads what is in use and what was imported, and shows what has come since.
	after, found, err := resolver().Pin(ctx, json.RawMessage(`{}`))
	if err != nil || len(found) != 1 || found[0].Server != "files" || len(found[0].New) != 3 || found[0].Changed != nil || len(after.Servers["files"].Tools) != 4 {
		t.Errorf("%+v, %v", found, err)
	}
	if got := external.Inline(json.RawMessage(`{"servers": {"b": {"command": ["x"]}, "a": {"url": "https://x"}, "files": {}}}`)); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("declared where they are used: %q", got)
	}
}
