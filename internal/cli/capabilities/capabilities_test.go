package capabilities

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentd/agentd/capability/lint"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/cli/clitest"
	"github.com/agentd/agentd/internal/output"
)

// twoClerks is the office with a second agent that also offers echo.
func twoClerks(t *testing.T) *clitest.Env {
	t.Helper()
	env := clitest.New(t, clitest.Office)
	env.Write(t, "fleet.yaml", "version: 1\nname: office\nagents: [{id: clerk, path: ./clerk}, {id: desk, path: ./desk}, {id: copier, path: ./copier}]\nenvironments: {default: {peersRef: ./rpc-peers.yaml}}\n")
	env.Write(t, "copier/agent.yaml", "name: copier\nskills: {echo: {process: {command: [cat]}}}\n")
	env.Write(t, "copier/capabilities.yaml", "version: 1\nagent: agent://copier\ntransports: [{kind: memory, topics: {requests: agents.copier.requests}}]\ncapabilities: [{name: echo}]\n")
	return env
}

// A capability of one member is found by its name alone; one of several needs
// --peer, and a file needs no fleet.
func TestChoice(t *testing.T) {
	t.Parallel()
	env := twoClerks(t)
	file := filepath.Join(env.Dir, "copier", "capabilities.yaml")
	noFleet := clitest.New(t, "")
	for _, test := range []struct {
		env    *clitest.Env
		choice Choice
		name   string
		agent  string // or
		code   int
		fails  string
	}{
		{env, Choice{}, "file", "agent://clerk", 0, ""},
		{env, Choice{}, "echo", "", cli.ExitUsage, "choose one with --peer clerk, --peer copier"},
		{env, Choice{Peer: "copier"}, "echo", "agent://copier", 0, ""},
		{env, Choice{Peer: "agent://copier"}, "echo", "agent://copier", 0, ""},
		{env, Choice{Peer: "copier"}, "file", "", cli.ExitFailed, `declares no capability "file"; it has echo`},
		{env, Choice{Peer: "desk"}, "echo", "", cli.ExitFailed, `agent "desk" offers no capabilities: it only calls others`},
		{env, Choice{Peer: "nobody"}, "echo", "", cli.ExitFailed, `the fleet office has no agent "nobody"`},
		{env, Choice{}, "fly", "", cli.ExitFailed, `no member of the fleet office declares a capability "fly"`},
		{noFleet, Choice{File: file}, "echo", "agent://copier", 0, ""},
		{noFleet, Choice{File: "nowhere.yaml"}, "echo", "", cli.ExitFailed, "nowhere.yaml"},
		{noFleet, Choice{}, "echo", "", cli.ExitFailed, "fleet.yaml"},
	} {
		doc, c, err := test.choice.find(&test.env.Env, test.name)
		if test.fails != "" {
			if clitest.Code(err) != test.code || !strings.Contains(err.Error(), test.fails) {
				t.Errorf("%+v %s: %v, want status %d and %q", test.choice, test.name, err, test.code, test.fails)
			}
			continue
		}
		if err != nil || string(doc.Agent) != test.agent || c.Name != test.name {
			t.Errorf("%+v %s: %v", test.choice, test.name, err)
		}
	}
}

func TestShow(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, clitest.Office)
	if err := Show(&env.Env, Choice{}, "file"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"file  Files a form.\n", "agent       agent://clerk\n", "timeoutMs   5000\n", "since       1.2\n", "skill       echo\n",
		"\ninputSchema\n{\n", `"additionalProperties": false`, "\noutputSchema\n{\n",
	} {
		if !strings.Contains(env.Out.String(), want) {
			t.Errorf("no %q in\n%s", want, env.Out)
		}
	}
	env.Reset()
	if err := Show(&env.Env, Choice{}, "echo"); err != nil {
		t.Fatal(err)
	}
	if got := env.Out.String(); strings.Count(got, "none: any JSON is accepted") != 2 || strings.Contains(got, "timeoutMs") || strings.Contains(got, "since") {
		t.Errorf("a capability without a schema: %s", got)
	}
	env.Reset()
	env.Format = output.JSON
	if err := Show(&env.Env, Choice{}, "file"); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Agent, Name string
		InputSchema struct{ Required []string }
	}
	if err := json.Unmarshal([]byte(env.Out.String()), &got); err != nil || got.Agent != "agent://clerk" || got.Name != "file" || len(got.InputSchema.Required) != 1 {
		t.Errorf("%v: %s", err, env.Out)
	}
}

// Whatever a file declares of a capability is shown, in both forms.
func TestShowShowsEverythingDeclared(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, clitest.Office)
	env.Write(t, "clerk/capabilities.yaml", `version: 1
agent: agent://clerk
transports: [{kind: memory, topics: {requests: agents.clerk.requests}}]
capabilities:
  - name: file
    description: Files.
    id: clerk.file
    version: "3"
    category: office
    skill: echo
    since: "1.2"
    timeoutMs: 5000
    idempotent: true
    progress: true
    delivery: durable
    permissions: ["network:read", "database:*"]
    callers: ["agent://desk", "agent://board-*"]
    concurrency: 7
    rateLimit: {requests: 10, period: 1m, burst: 20, shared: true}
    retryPolicy: {maxAttempts: 4, initialDelayMs: 100, maxDelayMs: 900, backoffMultiplier: 1.5, retryOn: [timeout, busy]}
    cost: {usd: 0.25, tokens: 1000}
`)
	if err := Show(&env.Env, Choice{}, "file"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"id           clerk.file\n", "version      3\n", "category     office\n", "since        1.2\n", "skill        echo\n", "timeoutMs    5000\n",
		"idempotent   true\n", "progress     true\n", "delivery     durable\n", "permissions  network:read, database:*\n",
		"callers      agent://desk, agent://board-*\n", "concurrency  7\n", "rateLimit    10 per 1m0s, bursts of 20, shared by the replicas\n",
		"retryPolicy  4 attempts, 100 to 900 ms apart (×1.5), on timeout, busy\n", "cost         tokens 1000, usd 0.25\n",
	} {
		if !strings.Contains(env.Out.String(), want) {
			t.Errorf("no %q in\n%s", want, env.Out)
		}
	}
	env.Reset()
	env.Format = output.JSONL
	if err := Show(&env.Env, Choice{}, "file"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"id":"clerk.file"`, `"version":"3"`, `"category":"office"`, `"skill":"echo"`, `"delivery":"durable"`, `"permissions":["network:read","database:*"]`,
		`"callers":["agent://desk","agent://board-*"]`, `"concurrency":7`, `"rateLimit":{"requests":10,"period":"1m0s","burst":20,"shared":true}`,
		`"retryPolicy":{"maxAttempts":4,"backoffMultiplier":1.5,"initialDelayMs":100,"maxDelayMs":900,"retryOn":["timeout","busy"]}`, `"cost":{"tokens":1000,"usd":0.25}`,
	} {
		if !strings.Contains(env.Out.String(), want) {
			t.Errorf("no %s in\n%s", want, env.Out)
		}
	}
}

// What Sample prints, Validate accepts.
func TestSampleIsValid(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, clitest.Office)
	for _, side := range []string{"request", "response"} {
		env.Reset()
		if err := Sample(&env.Env, Choice{}, "file", side); err != nil {
			t.Fatal(err)
		}
		env.Stdin = strings.NewReader(env.Out.String())
		env.Reset()
		if err := Validate(&env.Env, Choice{}, "file", side, "-"); err != nil || env.Out.String() != "✓ valid\n" {
			t.Errorf("%s: %v, %s", side, err, env.Out)
		}
	}
	if err := Sample(&env.Env, Choice{}, "echo", "request"); err == nil || !strings.Contains(err.Error(), "any JSON is accepted") {
		t.Errorf("%v", err)
	}
	if err := Sample(&env.Env, Choice{}, "file", "both"); clitest.Code(err) != cli.ExitUsage {
		t.Errorf("%v", err)
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, clitest.Office)
	for _, test := range []struct {
		name, side, payload string
		code                int
		table, json         string
	}{
		{"file", "request", `{"form":"A1"}`, 0, "✓ valid\n", `{"verdict":"valid","violations":[],"truncated":false}`},
		{"echo", "request", `[1,2]`, 0, "✓ valid\n", `{"verdict":"valid","violations":[],"truncated":false}`},
		{"file", "response", `{}`, 0, "✓ valid\n", `"verdict":"valid"`},
		{"file", "request", `{"copies":"two"}`, cli.ExitFinding, "✗ invalid\n  ", `"path":"/copies"`},
		{"file", "request", `{"a":1,"a":2}`, cli.ExitFinding, "✗ malformed\n  \"\" ", `"verdict":"malformed"`},
		{"file", "request", `{"form":"A1","\u001b[2J":1}`, cli.ExitFinding, "✗ invalid\n", `"verdict":"invalid"`},
	} {
		for format, want := range map[output.Format]string{output.Table: test.table, output.JSONL: test.json} {
			env.Reset()
			env.Format = format
			err := Validate(&env.Env, Choice{}, test.name, test.side, test.payload)
			if clitest.Code(err) != test.code || !strings.Contains(env.Out.String(), want) || strings.Contains(env.Out.String(), "\x1b") {
				t.Errorf("%s %s %s: %v, %s; want status %d and %s", format, test.name, test.payload, err, env.Out, test.code, want)
			}
		}
	}
	for payload, code := range map[string]int{"{": cli.ExitFailed, "@nowhere": cli.ExitFailed} {
		if err := Validate(&env.Env, Choice{}, "file", "request", payload); clitest.Code(err) != code {
			t.Errorf("%s: %v", payload, err)
		}
	}
	if err := Validate(&env.Env, Choice{}, "file", "left", "{}"); clitest.Code(err) != cli.ExitUsage {
		t.Errorf("%v", err)
	}
}

func TestLint(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, clitest.Office)
	file := filepath.Join(env.Dir, "clerk", "capabilities.yaml")
	for _, test := range []struct {
		profile string
		code    int
		want    string
	}{
		{"draft-07-subset", 0, `"ok":true`},
		{"openai-strict", cli.ExitFinding, `"ok":false,"profile":"openai-strict"`},
	} {
		env.Reset()
		env.Format = output.JSONL
		if err := Lint(&env.Env, file, test.profile, lint.Options{}); clitest.Code(err) != test.code || !strings.Contains(env.Out.String(), test.want) {
			t.Errorf("%s: %v, %s", test.profile, err, env.Out)
		}
		if strings.Contains(env.Out.String(), `"findings":null`) {
			t.Errorf("%s: null in %s", test.profile, env.Out)
		}
		env.Reset()
		env.Format = output.Table
		if err := Lint(&env.Env, file, test.profile, lint.Options{}); clitest.Code(err) != test.code {
			t.Errorf("%s: %v, %s", test.profile, err, env.Out)
		}
	}
	if err := Lint(&env.Env, file, "grok", lint.Options{}); clitest.Code(err) != cli.ExitUsage || !strings.HasPrefix(err.Error(), "--profile: ") {
		t.Errorf("%v", err)
	}
	if err := Lint(&env.Env, "nowhere.yaml", "gemini", lint.Options{}); clitest.Code(err) != cli.ExitFailed {
		t.Errorf("%v", err)
	}
}
