package fleet_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/schema"
)

// acting is a fleet of one agent with this file.
func acting(name, text string) files {
	return files{"fleet.yaml": "version: 1\nname: f\nagents: [{id: desk, path: ./desk}]\nenvironments: {default: {}}\n", "desk/" + name: text}
}

func loadDesk(t *testing.T, f files, opts fleet.LoadOptions) (*fleet.Member, error) {
	t.Helper()
	loaded, err := fleet.Load(f.root(t), opts)
	if err != nil {
		return nil, err
	}
	m, _ := loaded.Member("desk")
	return m, nil
}

// known is a program that has one action.
func known(t *testing.T) fleet.LoadOptions {
	t.Helper()
	compile := func(src string) *capability.Contract {
		s, err := schema.Compile([]byte(src))
		if err != nil {
			t.Fatal(err)
		}
		return &capability.Contract{Schema: s, Validator: s, Source: []byte(src)}
	}
	config := compile(`{"type":"object","properties":{"hosts":{"type":"array","items":{"type":"string"}},"maxBytes":{"type":"integer"}},"required":["hosts"],"additionalProperties":false}`)
	return fleet.LoadOptions{Actions: []fleet.KnownAction{{Capability: &capability.Capability{
		Name: "http-get", Title: "HTTP GET", Description: "Perform HTTP GET request", Permissions: []string{"http:read"},
		Input:     compile(`{"type":"object","properties":{"url":{"type":"string","format":"uri"},"timeout":{"type":"number"}},"required":["url"],"additionalProperties":false}`),
		Output:    compile(`{"type":"object"}`),
		RateLimit: &capability.RateLimit{Requests: 10, Period: 1, Burst: 10},
	}, Config: config.Schema}}}
}

// The example of the guide to the ARAL standard's third layer loads as it stands there.
func TestLayer3OfTheGuide(t *testing.T) {
	example, err := os.ReadFile("testdata/layer3.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"agent.json", "agent.yaml"} {
		m, err := loadDesk(t, acting(name, string(example)), fleet.LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		a := m.Agent
		if m.ClientOnly() || a.Name != "desk" || a.Security.RequireAuth == nil || !*a.Security.RequireAuth || a.Security.NoAuditLog || a.Scopes == nil || len(a.Scopes) != 0 {
			t.Errorf("%s: %+v", name, a)
		}
		if got := m.Capabilities.Names(); !reflect.DeepEqual(got, []string{"get-weather", "send-notification"}) {
			t.Fatalf("%s: %q", name, got)
		}
		weather, _ := m.Capabilities.Lookup("get-weather")
		if got, want := string(weather.Input.Source), `{"type":"object","properties":{"location":{"type":"string"}},"required":["location"],"additionalProperties":false}`; got != want {
			t.Errorf("%s: %s", name, got)
		}
		if weather.Title != "Get Weather" || weather.Description != "Fetch weather data" || !reflect.DeepEqual(weather.Permissions, []string{"weather:read"}) ||
			weather.RateLimit.Requests != 100 || weather.RateLimit.Period.Hours() != 1 || weather.Output != nil || weather.Digest == "" || weather.Input.Digest == "" {
			t.Errorf("%s: %+v", name, weather)
		}
		notify, _ := m.Capabilities.Lookup("send-notification")
		if got, want := string(notify.Input.Source), `{"type":"object","properties":{"message":{"type":"string"},"channel":{"type":"string","enum":["email","sms","push"]}},"required":["message"],"additionalProperties":false}`; got != want {
			t.Errorf("%s: %s", name, got)
		}
		if *notify.RateLimit != capability.DefaultActionLimit() {
			t.Errorf("%s: an action without a rate limit has %+v", name, notify.RateLimit)
		}
		s, ok := a.Skill("get-weather")
		if !ok || !reflect.DeepEqual(s.Process.Command, []string{"node", "./handlers/weather.js"}) || s.Process.Dir != m.Dir {
			t.Errorf("%s: %+v", name, s.Process)
		}
		if len(a.Actions) != 2 || a.Actions[1].ID != "send-notification" || a.Actions[1].Handler != "./handlers/notify.js" || a.Actions[1].Position.Line != 19 {
			t.Errorf("%s: %+v", name, a.Actions)
		}
		// Reachable inside of the process, unless the file says more.
		if got := m.Capabilities.Transports; len(got) != 1 || got[0].Kind != capability.Memory || got[0].Requests != "agents.desk.requests" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// layer is an agent.yaml with one action.
func layer(action string) string {
	return "layers:\n  capabilities:\n    actions:\n      - " + strings.ReplaceAll(strings.TrimSpace(action), "\n", "\n        ") + "\n"
}

func TestHandlersRunByTheirSuffix(t *testing.T) {
	for handler, want := range map[string][]string{
		"./h/a.js": {"node", "./h/a.js"}, "h/a.mjs": {"node", "./h/a.mjs"}, "h/a.cjs": {"node", "./h/a.cjs"},
		"h/a.ts": {"node", fleet.StripTypes, "./h/a.ts"}, "h/a.PY": {"python3", "./h/a.PY"}, "h/a.sh": {"sh", "./h/a.sh"},
		"h/tool": {"DIR/h/tool"}, "--version.sh": {"sh", "./--version.sh"}, "a; rm -rf $HOME.sh": {"sh", "./a; rm -rf $HOME.sh"},
	} {
		m, err := loadDesk(t, acting("agent.yaml", layer("id: x\npermissions: []\nparameters: {}\nhandler: '"+handler+"'")), fleet.LoadOptions{})
		if err != nil {
			t.Errorf("%s: %v", handler, err)
			continue
		}
		s, _ := m.Agent.Skill("x")
		for i := range want {
			want[i] = strings.ReplaceAll(want[i], "DIR", m.Dir)
		}
		if !reflect.DeepEqual(s.Process.Command, want) || s.Process.Dir != m.Dir {
			t.Errorf("%s: %q in %s, want %q", handler, s.Process.Command, s.Process.Dir, want)
		}
	}
}

func TestActionFaults(t *testing.T) {
	const ok = "id: x\nhandler: h.js\npermissions: []\n"
	for text, want := range map[string]string{
		layer("handler: h.js\npermissions: []\nparameters: {}"):          `desk/agent.yaml:4:9: /layers/capabilities/actions/0: the key "id" is missing`,
		layer("id: x/y\nhandler: h.js\npermissions: []\nparameters: {}"): `4:9: /layers/capabilities/actions/0/id: capability name must be URL-safe`,
		layer(ok): `4:9: /layers/capabilities/actions/0: the key "parameters" is missing`,
		layer("id: x\nhandler: h.js\nparameters: {}"):                                                                           `4:9: /layers/capabilities/actions/0: the action "x" does not say which permissions it needs (write permissions: [] if it needs none)`,
		layer("id: x\nhandler: h.js\npermissions: [wether:read]\nparameters: {}"):                                               `did you mean "weather:read"`,
		layer(ok + "parameters: {location: {type: strin, required: true}}"):                                                     `7:33: /layers/capabilities/actions/0/parameters/location/type: capability "x" parameters: `,
		layer(ok + "parameters: {location: {type: string, required: yes}}"):                                                     `/layers/capabilities/actions/0/parameters/location/required: expected a boolean but got a string`,
		layer(ok + "parameters: {location: string}"):                                                                            `/layers/capabilities/actions/0/parameters/location: expected a mapping that describes "location", but got a string`,
		layer(ok + "parameters: {type: array}"):                                                                                 `/layers/capabilities/actions/0/parameters: the parameters of the action "x" are no object`,
		layer(ok + "parameters: {type: object, propertes: {}}"):                                                                 `unsupported keyword "propertes"`,
		layer(ok + "parameters: {}\nretruns: {}"):                                                                               `8:9: /layers/capabilities/actions/0/retruns: unknown key "retruns" (did you mean "returns"?)`,
		layer(ok + "parameters: {}\nconfig: {hosts: []}"):                                                                       `only the actions that agentd has take a configuration`,
		layer(ok + "parameters: {}\nrateLimit: {requests: 0, window: 1h}"):                                                      `/rateLimit/requests: expected a whole number`,
		layer(ok+"parameters: {}\n") + layer(ok)[len("layers:\n  capabilities:\n    actions:\n"):] + "        parameters: {}\n": `the name "x" is taken`,
		layer("id: x\nhandler: ../h.js\npermissions: []\nparameters: {}"):                                                       `5:9: /layers/capabilities/actions/0/handler: the handler is not in the agent's folder (move it below`,
		layer("id: x\nhandler: ../../h.js\npermissions: []\nparameters: {}"):                                                    `/handler: the path leads out of the fleet's root`,
		layer("id: x\nhandler: .\npermissions: []\nparameters: {}"):                                                             `/handler: the handler is not in the agent's folder`,
		layer("id: x\nhandler: ''\npermissions: []\nparameters: {}"):                                                            `/handler: the string must not be empty`,
		layer("id: http-gt"):                      `4:9: /layers/capabilities/actions/0/id: agentd has no action "http-gt" (did you mean "http-get"?)`,
		layer("id: http-get\nconfig: {host: []}"): `5:18: /layers/capabilities/actions/0/config/host: the configuration of the action "http-get": `,
		layer("id: http-get"):                     `the configuration of the action "http-get": missing required property "hosts"`,
		layer("id: http-get\nconfig: []"):         `/config: expected a mapping but got a list`,
		layer("id: http-get\nconfig: {hosts: []}\nparameters: {url: {type: string}}"):               `/parameters: these parameters are not all taken by the built-in action "http-get" (it does not take {`,
		"layers: {capabilities: {action: []}}\n":                                                    `unknown key "action" (did you mean "actions"?)`,
		"layers: {capabilites: {}}\n":                                                               `unknown key "capabilites" (did you mean "capabilities"?)`,
		"layers: {capabilities: {security: {requireAuth: false}}}\nsecurity: {requireAuth: true}\n": `two of them differ`,
		"layers: {capabilities: {security: {auditLog: true}}}\nsecurity: {auditLog: false}\n":       `mean the same, and they differ`,
		"layers: {capabilities: {security: {auditLog: false}}}\nsecurity: {auditLog: true}\n":       `mean the same, and they differ`,
		"layers: {capabilities: {security: {defaultPermissions: [all]}}}\n":                         `a scope is <domain>:<verb>`,
		"name: desk\nskills: {s: {action: http-get, config: {hosts: 7}}}\n":                         `/skills/s/config/hosts: the configuration of the action "http-get": `,
		"name: desk\nskills: {s: {action: http-get, process: {command: [x]}}}\n":                    `a skill is a process, a worker, a web service, an action or a tool of an MCP server`,
		"name: desk\nskills: {s: {process: {command: [x]}, config: {}}}\n":                          `unknown key "config"`,
		"description: no name, and no layers\n":                                                     `the key "name" is missing`,
	} {
		_, err := loadDesk(t, acting("agent.yaml", text), known(t))
		var load *fleet.LoadError
		if !errors.As(err, &load) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\nwant %s", text, err, want)
		}
	}
}

// A link in the agent's folder that leads out of it is followed before it is judged.
func TestHandlerBehindALink(t *testing.T) {
	f := acting("agent.yaml", layer("id: x\nhandler: h.js\npermissions: []\nparameters: {}"))
	f["other/h.js"] = ""
	dir := f.root(t)
	if err := os.Symlink(filepath.Join(dir, "other/h.js"), filepath.Join(dir, "desk/h.js")); err != nil {
		t.Fatal(err)
	}
	if _, err := fleet.Load(dir, fleet.LoadOptions{}); err == nil || !strings.Contains(err.Error(), "not in the agent's folder") {
		t.Error(err)
	}
}

// An entry that names an action of the program's own has what that action has, and may
// only take away.
func TestBuiltInActions(t *testing.T) {
	m, err := loadDesk(t, acting("agent.yaml", layer(`
id: http-get
config: {hosts: [example.com], maxBytes: 10}
permissions: [network:read]
parameters:
  type: object
  properties: {url: {type: string, format: uri, maxLength: 100}}
  required: [url]
  additionalProperties: false
rateLimit: {requests: 5, window: 1m}
`)), known(t))
	if err != nil {
		t.Fatal(err)
	}
	c, _ := m.Capabilities.Lookup("http-get")
	if c.Title != "HTTP GET" || c.Description == "" || !reflect.DeepEqual(c.Permissions, []string{"network:read", "http:read"}) || c.RateLimit.Requests != 5 || c.Output == nil {
		t.Errorf("%+v", c)
	}
	if !strings.Contains(string(c.Input.Source), "maxLength") {
		t.Errorf("%s", c.Input.Source)
	}
	s, _ := m.Agent.Skill("http-get")
	if s.Process != nil || s.Action == nil || s.Action.Config != `{"hosts":["example.com"],"maxBytes":10}` || s.Action.Position.Line != 5 {
		t.Errorf("%+v", s)
	}
	m, err = loadDesk(t, acting("agent.yaml", layer("id: http-get\nconfig: {hosts: []}")), known(t))
	if err != nil {
		t.Fatal(err)
	}
	c, _ = m.Capabilities.Lookup("http-get")
	if c.RateLimit.Requests != 10 || !strings.Contains(string(c.Input.Source), "timeout") || c.Digest == "" || c.Input.Locate("/properties/url").Line != 4 {
		t.Errorf("%+v, %v", c, c.Input.Locate("/properties/url"))
	}
}

// A capability of capabilities.yaml can be run by such an action, and then needs what the
// action needs, whatever it says itself.
func TestSkillsThatAreActions(t *testing.T) {
	f := acting("agent.yaml", "name: desk\nskills: {fetch: {action: http-get, config: {hosts: [a]}}}\n")
	f["desk/capabilities.yaml"] = "version: 1\nagent: agent://desk\ntransports: [{kind: memory, topics: {requests: t}}]\ncapabilities:\n" +
		"  - {name: fetch, permissions: []}\n  - {name: get, skill: fetch}\n  - {name: other, skill: none}\n"
	m, err := loadDesk(t, f, known(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{"fetch": {"http:read"}, "get": {"http:read"}, "other": nil} {
		if c, _ := m.Capabilities.Lookup(name); !reflect.DeepEqual(c.Permissions, want) {
			t.Errorf("%s needs %q, want %q", name, c.Permissions, want)
		}
	}
}

// Actions and the capabilities of capabilities.yaml are one surface.
func TestActionsBesideCapabilities(t *testing.T) {
	action := layer("id: x\nhandler: h.js\npermissions: []\nparameters: {}\nreturns: {n: {type: integer, required: true}}")
	f := acting("agent.yaml", "name: desk\n"+action+"    security: {defaultPermissions: [weather:read], auditLog: false}\nscopes: [http:read]\n")
	const offered = "version: 1\nagent: agent://desk\ntransports: [{kind: memory, topics: {requests: t}}]\ncapabilities: [{name: %}]\n"
	f["desk/capabilities.yaml"] = strings.ReplaceAll(offered, "%", "y")
	m, err := loadDesk(t, f, fleet.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Capabilities.Names(); !reflect.DeepEqual(got, []string{"y", "x"}) || m.Capabilities.Transports[0].Requests != "t" {
		t.Errorf("%q, %+v", got, m.Capabilities.Transports)
	}
	c, _ := m.Capabilities.Lookup("x")
	if got := string(c.Output.Source); got != `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}` {
		t.Error(got)
	}
	if at := c.Output.Locate("/properties/n/type"); at.Line != 9 || at.Pointer != "/layers/capabilities/actions/0/returns/n/type" {
		t.Errorf("%+v", at)
	}
	if !m.Agent.Security.NoAuditLog || len(m.Agent.Scopes) != 2 || m.Agent.Scopes[0].Pattern != "weather:read" {
		t.Errorf("%+v, %+v", m.Agent.Security, m.Agent.Scopes)
	}
	f["desk/capabilities.yaml"] = strings.ReplaceAll(offered, "%", "X")
	if _, err := loadDesk(t, f, fleet.LoadOptions{}); err == nil || !strings.Contains(err.Error(), `desk/agent.yaml:5:9: /layers/capabilities/actions/0: the action "x" has the name of a capability, first at `) {
		t.Error(err)
	}
	f["desk/agent.yaml"] = "name: desk\n" + layer("id: z\nhandler: h.js\npermissions: []\nparameters: {}") + "    transports: [{kind: memory, topics: {requests: z}}]\n"
	if _, err := loadDesk(t, f, fleet.LoadOptions{}); err == nil || !strings.Contains(err.Error(), "capabilities.yaml has the agent's transports already") {
		t.Error(err)
	}
	delete(f, "desk/capabilities.yaml")
	if m, err := loadDesk(t, f, fleet.LoadOptions{}); err != nil || m.Capabilities.Transports[0].Requests != "z" {
		t.Errorf("%+v, %v", m, err)
	}
}
