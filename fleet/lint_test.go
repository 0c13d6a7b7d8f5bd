package fleet_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
)

func text(t *testing.T, findings fleet.Findings) string {
	t.Helper()
	var b strings.Builder
	if err := findings.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestLint(t *testing.T) {
	base := starter()
	const memory = "    transports: [{kind: memory, topics: {requests: r}}]\n"
	runner := func(skill string) string {
		return "name: pr-reviewer\nskills:\n  " + skill + ": {process: {command: [x]}}\n"
	}
	for _, c := range []struct {
		name    string
		changes files
		want    string
	}{
		{"clean", files{"agents/pr-reviewer/agent.yaml": runner("review-pr")}, "✓ fleet validates clean.\n"},
		{"skills elsewhere", nil,
			"! [skill.missing] agents/pr-reviewer/capabilities.yaml:9:5: /capabilities/0: the capability \"review-pr\" runs the skill \"review-pr\", which agent.yaml of \"pr-reviewer\" does not declare\n✓ fleet validates; warnings: 1.\n"},
		{"skill typo", files{"agents/pr-reviewer/agent.yaml": runner("reviewpr")},
			"✗ [skill.missing] agents/pr-reviewer/capabilities.yaml:9:5: /capabilities/0: the capability \"review-pr\" runs the skill \"review-pr\", which agent.yaml of \"pr-reviewer\" does not declare (did you mean \"reviewpr\"?)\n"},
		{"peers", files{
			"agents/pr-reviewer/agent.yaml": runner("review-pr"),
			"rpc-peers.yaml":                "version: 1\npeers:\n  - agent: agent://librarian\n" + memory + "  - agent: agent://concierge\n" + memory + "  - agent: agent://billing.acme\n" + memory,
		}, "! [peer.client-only] rpc-peers.yaml:5:5: /peers/1: the peer agent://concierge offers no capabilities\n" +
			"· [peer.dangling] rpc-peers.yaml:3:5: /peers/0: the peer agent://librarian is no agent of this fleet, and has no capabilities file: calls to it are not checked (name its file with the key capabilities)\n" +
			"✓ fleet validates; warnings: 1.\n"},
		{"peers that only call", files{
			"agents/pr-reviewer/agent.yaml": runner("review-pr"),
			"rpc-peers.yaml":                "version: 1\npeers:\n  - agent: agent://concierge\n    tenants: [acme]\n" + memory,
		}, "✓ fleet validates clean.\n"},
		{"duplicate capability", files{
			"agents/pr-reviewer/agent.yaml":      runner("review-pr"),
			"agents/concierge/capabilities.yaml": capabilitiesOf("concierge", "review-pr"),
			"agents/concierge/agent.yaml":        "name: concierge\nskills: {review-pr: {process: {command: [x]}}}\n",
		}, "! [capability.duplicate] agents/pr-reviewer/capabilities.yaml:9:5: /capabilities/0: the capability \"review-pr\" is offered by agent://concierge and by agent://pr-reviewer\n✓ fleet validates; warnings: 1.\n"},
		{"deploy target and override", files{
			"agents/pr-reviewer/agent.yaml": runner("review-pr"),
			"fleet.yaml": strings.NewReplacer("target: cloud-run-reviewer", "target: cloud-run-reviewr", "    envFiles:\n      - ./.env\n", "    overrides: {conciergee: {}}\n").
				Replace(base["fleet.yaml"]),
		}, "✗ [deploy.target.missing] fleet.yaml:18:7: /agents/1/deploy/target: agent \"pr-reviewer\" deploys to \"cloud-run-reviewr\", which is not declared in deploy.targets (did you mean \"cloud-run-reviewer\"?)\n" +
			"! [override.unknown] fleet.yaml:21:3: /environments/shared: the environment \"shared\" overrides agent \"conciergee\", which the fleet does not have (did you mean \"concierge\"?)\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			findings := base.with(c.changes).load(t).Lint()
			if got := text(t, findings); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			if findings.Failed() != strings.Contains(c.want, "✗") {
				t.Errorf("Failed is %v", findings.Failed())
			}
		})
	}
}

func TestValidate(t *testing.T) {
	starter().with(files{"fleet.yaml": "version: 2\nname: x\nagents: []\n"}).write(t)
	findings, err := fleet.Validate(".", fleet.LoadOptions{})
	if err != nil || !findings.Failed() || len(findings) != 1 || findings[0].Code != fleet.ConfigInvalid {
		t.Fatalf("got %v, %v", findings, err)
	}
	got, err := json.Marshal(findings)
	if want := `[{"severity":"error","code":"config.invalid","message":"version 2 is not supported","hint":"the version is 1","position":{"file":"fleet.yaml","line":1,"column":1,"pointer":"/version"}}]`; err != nil || string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if _, err := fleet.Validate(t.TempDir(), fleet.LoadOptions{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a fleet: %v", err)
	}
	starter().write(t)
	findings, err = fleet.Validate(".", fleet.LoadOptions{})
	if err != nil || findings.Failed() || len(findings) != 1 {
		t.Errorf("got %v, %v", findings, err)
	}
}

// three is a fleet whose concierge has a peers file of its own.
func three() files {
	const memory = "    transports: [{kind: memory, topics: {requests: r}}]\n"
	return starter().with(files{
		"fleet.yaml": "version: 1\nname: three\nagents:\n  - {id: concierge, path: agents/concierge}\n  - {id: pr-reviewer, path: agents/pr-reviewer}\n  - {id: librarian.v2, path: agents/librarian}\n",
		"agents/concierge/rpc-peers.yaml": "version: 1\npeers:\n  - agent: agent://pr-reviewer\n" + memory + "  - agent: agent://librarian.v2\n    transports: [{kind: nats, servers: [s], subjects: {requests: r}}]\n" +
			"  - agent: agent://billing.acme\n    transports: [{kind: kafka, brokers: [b], topics: {requests: r}}]\n",
		"rpc-peers.yaml":                     "version: 1\npeers:\n  - agent: agent://pr-reviewer\n" + memory,
		"agents/librarian/agent.yaml":        "name: librarian.v2\n",
		"agents/librarian/capabilities.yaml": capabilitiesOf("librarian.v2", "search") + "  - name: index\n    timeoutMs: 5\n    idempotent: true\n    description: |\n      Index\n      notes.\n  - name: drop\n",
	})
}

func TestGraph(t *testing.T) {
	f := three().load(t)
	all := func(envelope.Address, envelope.Address, string) bool { return true }
	for _, opts := range []fleet.GraphOptions{{}, {Allowed: all}} {
		got, err := json.Marshal(f.Graph(opts))
		want := `{"nodes":[` +
			`{"id":"concierge","clientOnly":true,"capabilities":[],"external":false},` +
			`{"id":"pr-reviewer","clientOnly":false,"capabilities":["review-pr"],"external":false},` +
			`{"id":"librarian.v2","clientOnly":false,"capabilities":["search","index","drop"],"external":false},` +
			`{"id":"billing.acme","clientOnly":false,"capabilities":[],"external":true}],"edges":[` +
			`{"from":"concierge","to":"pr-reviewer","transport":"memory","capability":"review-pr","capabilities":["review-pr"]},` +
			`{"from":"concierge","to":"librarian.v2","transport":"nats","capabilities":["search","index","drop"]},` +
			`{"from":"concierge","to":"billing.acme","transport":"kafka","capabilities":[]},` +
			`{"from":"librarian.v2","to":"pr-reviewer","transport":"memory","capability":"review-pr","capabilities":["review-pr"]}]}`
		if err != nil || string(got) != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	g := f.Graph(fleet.GraphOptions{Allowed: func(from, to envelope.Address, capability string) bool {
		return from == "agent://concierge" && capability == "search"
	}})
	if len(g.Edges) != 1 || g.Edges[0].Capability != "search" || len(g.Nodes) != 3 {
		t.Errorf("with permissions: %+v", g)
	}
}

func TestGraphNotations(t *testing.T) {
	g := three().load(t).Graph(fleet.GraphOptions{})
	for format, want := range map[fleet.GraphFormat]string{
		fleet.FormatMermaid: `graph LR
  n0("concierge")
  n1["pr-reviewer<br/>review-pr"]
  n2["librarian.v2<br/>search<br/>index<br/>drop"]
  n3(["billing.acme"])
  n0 -->|review-pr| n1
  n0 -->|nats| n2
  n0 -->|kafka| n3
  n2 -->|review-pr| n1
  linkStyle 0 stroke:#3b82f6
  linkStyle 1 stroke:#10b981
  linkStyle 2 stroke:#ef4444
  linkStyle 3 stroke:#3b82f6
`,
		fleet.FormatDOT: `digraph fleet {
  rankdir=LR;
  node [shape=box];
  n0 [label="concierge", style=rounded];
  n1 [label="pr-reviewer\nreview-pr"];
  n2 [label="librarian.v2\nsearch\nindex\ndrop"];
  n3 [label="billing.acme", style=dashed];
  n0 -> n1 [label="review-pr", color="#3b82f6"];
  n0 -> n2 [label="nats", color="#10b981"];
  n0 -> n3 [label="kafka", color="#ef4444"];
  n2 -> n1 [label="review-pr", color="#3b82f6"];
}
`,
	} {
		var b strings.Builder
		if err := g.Write(&b, format); err != nil || b.String() != want {
			t.Errorf("%s: %v\n%s", format, err, b.String())
		}
	}
	var b strings.Builder
	if err := g.Write(&b, fleet.FormatJSON); err != nil || !json.Valid([]byte(b.String())) {
		t.Errorf("%v in %s", err, b.String())
	}
	if err := g.Write(&b, "svg"); err == nil || err.Error() != `fleet graph: no format "svg": choose mermaid, dot or json` {
		t.Errorf("got %v", err)
	}
}

func TestListAndCapabilities(t *testing.T) {
	f := three().load(t)
	got, err := json.Marshal(f.List())
	want := `{"root":` + quote(t, f.Root) + `,"manifest":{"name":"three","version":1},"agents":[` +
		`{"id":"concierge","path":"agents/concierge","env":"default","capabilities":[]},` +
		`{"id":"pr-reviewer","path":"agents/pr-reviewer","env":"default","capabilities":["review-pr"]},` +
		`{"id":"librarian.v2","path":"agents/librarian","env":"default","capabilities":["search","index","drop"]}]}`
	if err != nil || string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	var b strings.Builder
	if err := f.List().WriteText(&b); err != nil || b.String() != "fleet: three\nroot: "+f.Root+"\nagents (3):\n  • concierge  env=default (client-only)\n  • pr-reviewer  env=default capabilities=1\n  • librarian.v2  env=default capabilities=3\n" {
		t.Errorf("%v\n%s", err, b.String())
	}

	c := f.Capabilities()
	index := c.Agents["agent://librarian.v2"][1]
	if index.Name != "index" || index.TimeoutMs != 5 || !index.Idempotent || index.Input != "" || c.Agents["agent://pr-reviewer"][0].Input == "" || len(c.Agents) != 2 || len(c.ClientOnly) != 1 {
		t.Errorf("got %+v", c)
	}
	b.Reset()
	if err := c.WriteText(&b); err != nil || b.String() != "agent://librarian.v2\n  • search\n  • index (untyped, timeout=5ms, idempotent): Index notes.\n  • drop (untyped)\nagent://pr-reviewer\n  • review-pr (timeout=60000ms, idempotent): Review a GitHub pull request.\nagent://concierge (client-only)\n" {
		t.Errorf("%v\n%s", err, b.String())
	}
}

func quote(t *testing.T, s string) string {
	t.Helper()
	out, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
