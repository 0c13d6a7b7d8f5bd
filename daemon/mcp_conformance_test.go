package daemon_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/internal/npmtest"
	"github.com/agentd/agentd/rpc"
)

const conformance = "testdata/conformance"

// A conformanceFleet is that of testdata/conformance: an agent with the tools that the suite calls, and
// one that serves them to MCP clients over HTTP.
type conformanceFleet struct {
	answers map[string]json.RawMessage
	desk    *daemon.Daemon
	cfg     daemon.Config
	files   map[string]string
	changes atomic.Int64
}

func startConformanceFleet(t *testing.T) *conformanceFleet {
	t.Helper()
	c := &conformanceFleet{files: map[string]string{}}
	root := os.DirFS(filepath.Join(conformance, "fleet"))
	if err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(root, name)
		c.files[name] = string(data)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(conformance, "answers.json"))
	if err == nil {
		err = json.Unmarshal(data, &c.answers)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.cfg = load(t, c.files)
	c.cfg.Handlers = map[string]rpc.Handler{"fixture": rpc.HandlerFunc(c.serve)}
	f := startFleet(t, c.cfg)
	t.Cleanup(func() { stop(t, f) })
	c.desk, _ = f.Daemon("desk")
	return c
}

// serve is the skill of all of the tools.
func (c *conformanceFleet) serve(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
	if answer, ok := c.answers[inv.Capability]; ok {
		return answer, nil
	}
	var in struct{ MCP capability.ClientInput }
	if err := json.Unmarshal(inv.Payload, &in); err != nil {
		return nil, err
	}
	if question := questionOf(inv.Capability, in.MCP); question != "" {
		return json.RawMessage(question), nil
	}
	switch inv.Capability {
	case "test_error_handling":
		return nil, &rpc.SkillError{Message: "this capability fails whenever it is called"}
	case "test_tool_with_progress", "test_streaming_elicitation":
		for _, done := range []int{0, 50, 100} {
			if err := inv.Progress(fmt.Appendf(nil, `{"progress":%d,"total":100}`, done)); err != nil {
				return nil, err
			}
		}
	case "test_trigger_tool_change":
		return json.RawMessage(`{"changed":true}`), c.change()
	}
	if in.MCP.CanAsk == nil { // it asks nothing
		return json.RawMessage(`{"done":true}`), nil
	}
	said, err := json.Marshal(in.MCP.InputResponses)
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{"content": []any{map[string]string{"type": "text", "text": "given: " + string(said)}}})
}

// change is a reload that finds another description of a tool.
func (c *conformanceFleet) change() error {
	const name = "fixture/capabilities.yaml"
	text := strings.Replace(c.files[name], "description: Changes.", fmt.Sprintf("description: Changed %d times.", c.changes.Add(1)), 1)
	if err := os.WriteFile(filepath.Join(c.cfg.Fleet.Root, name), []byte(text), 0o600); err != nil {
		return err
	}
	return c.desk.Reload()
}

// questionOf returns what a tool asks for, in view of what it has been answered, or "".
func questionOf(tool string, client capability.ClientInput) string {
	form := func(member, kind string) string {
		return fmt.Sprintf(`{"method":"elicitation/create","params":{"message":"Please give it.","requestedSchema":{"type":"object","properties":{%q:{"type":%q}},"required":[%[1]q]}}}`, member, kind)
	}
	const (
		roots  = `{"method":"roots/list"}`
		sample = `{"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"What is the capital of France?"}}],"maxTokens":100}}`
	)
	ask := func(requests map[string]string, state string) string {
		all := map[string]json.RawMessage{}
		for key, r := range requests {
			all[key] = json.RawMessage(r)
		}
		text, _ := json.Marshal(map[string]any{"resultType": "input_required", "inputRequests": all, "requestState": state})
		return string(text)
	}
	once := map[string]map[string]string{
		"test_elicitation":                  {"user": form("username", "string")},
		"test_sampling":                     {"capital": sample},
		"test_missing_capability":           {"capital": sample},
		"test_elicitation_sep1034_defaults": {"defaults": `{"method":"elicitation/create","params":{"message":"Who?","requestedSchema":` + withDefaults + `}}`},
		"test_elicitation_sep1330_enums":    {"enums": `{"method":"elicitation/create","params":{"message":"Which?","requestedSchema":` + withEnums + `}}`},

		"test_input_required_result_elicitation":     {"user_name": form("name", "string")},
		"test_input_required_result_sampling":        {"capital_question": sample},
		"test_input_required_result_list_roots":      {"client_roots": roots},
		"test_input_required_result_request_state":   {"confirm": form("ok", "boolean")},
		"test_input_required_result_tampered_state":  {"confirm": form("ok", "boolean")},
		"test_input_required_result_multiple_inputs": {"user_name": form("name", "string"), "greeting": sample, "client_roots": roots},
	}
	switch requests := once[tool]; {
	case requests != nil && client.InputResponses == nil:
		return ask(requests, "asked")
	case tool == "test_input_required_result_multi_round" && client.RequestState == "":
		return ask(map[string]string{"step1": form("name", "string")}, "one")
	case tool == "test_input_required_result_multi_round" && client.RequestState == "one":
		return ask(map[string]string{"step2": form("color", "string")}, "two")
	case tool == "test_input_required_result_capabilities" && client.InputResponses == nil:
		requests = map[string]string{}
		for _, kind := range client.CanAsk {
			requests[string(kind)] = map[capability.Ask]string{capability.AskElicitation: form("name", "string"), capability.AskSampling: sample}[kind]
		}
		if len(requests) > 0 {
			return ask(requests, "")
		}
	}
	return ""
}

const (
	withDefaults = `{"type":"object","properties":{"name":{"type":"string","default":"John Doe"},"age":{"type":"integer","default":30},` +
		`"score":{"type":"number","default":95.5},"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},"verified":{"type":"boolean","default":true}}}`
	withEnums = `{"type":"object","properties":{"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},` +
		`"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"},{"const":"value3","title":"Third Option"}]},` +
		`"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["Option One","Option Two","Option Three"]},` +
		`"untitledMulti":{"type":"array","minItems":1,"maxItems":3,"items":{"type":"string","enum":["option1","option2","option3"]}},` +
		`"titledMulti":{"type":"array","minItems":1,"maxItems":3,"items":{"anyOf":[{"const":"value1","title":"First Choice"},{"const":"value2","title":"Second Choice"},{"const":"value3","title":"Third Choice"}]}}}}`
)

// The suite of the protocol's project, against an agent of a real fleet over HTTP: all that either
// revision requires, but for the checks that testdata/conformance lists with their reasons. A check
// that is listed and passes fails the suite too. No other test of the package runs beside it: the
// suite gives up a stream that says nothing for a second.
func TestMCPConformance(t *testing.T) {
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) {
			expected, err := filepath.Abs(filepath.Join(conformance, revision+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			suite := npmtest.Conformance(t, "server", "--requirements", revision, "--expected-failures", expected)
			suite.Args = append(suite.Args, "--url", startConformanceFleet(t).desk.Status().MCPServers[0])
			out, err := suite.CombinedOutput()
			if err != nil {
				t.Errorf("%v:\n%s", err, out)
			}
			if testing.Verbose() {
				t.Logf("%s", out)
			}
		})
	}
}
