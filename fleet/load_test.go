package fleet_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/schema"
)

func TestStarterFleetOfTheReferenceSystem(t *testing.T) {
	f := starter().load(t)
	if f.Name != "fleet-starter" || f.Description != "Two agents." || f.Version != 1 || f.Root != abs(t, ".") ||
		f.Runtime != (fleet.Runtime{Declaragent: "^1.2.0", Bun: ">=1.1"}) || f.RPC != (fleet.RPC{}) {
		t.Errorf("got %+v", f)
	}
	want := fleet.Deploy{Strategy: "rolling", RollbackOnFailure: true, HealthTimeout: 2 * time.Minute, HealthProbe: "/healthz", Targets: map[string]string{"cloud-run-reviewer": "gcp-cloud-run"}}
	if !reflect.DeepEqual(f.Deploy, want) {
		t.Errorf("deploy %+v", f.Deploy)
	}
	concierge, ok := f.Member("concierge")
	if !ok || !concierge.ClientOnly() || concierge.Address != "agent://concierge" || concierge.Dir != abs(t, "agents/concierge") || concierge.Env != "shared" || concierge.DeployTo != nil {
		t.Fatalf("concierge %+v", concierge)
	}
	if a := concierge.Agent; a.Name != "concierge" || !slices.Equal(a.SkillFiles, []string{"skills/delegate.md"}) || a.Skills != nil || a.Permissions != nil || a.Scopes != nil || a.Security.RequireAuth == nil || *a.Security.RequireAuth || a.Limits != fleet.DefaultLimits() {
		t.Errorf("agent.yaml %+v", a)
	}
	if got := concierge.EnvFiles(); !slices.Equal(got, []string{abs(t, ".env")}) {
		t.Errorf("env files %v", got)
	}
	reviewer, ok := f.Member("pr-reviewer")
	if !ok || reviewer.ClientOnly() || reviewer.DeployTo.Target != "cloud-run-reviewer" {
		t.Fatalf("pr-reviewer %+v", reviewer)
	}
	if _, ok := f.Member("nobody"); ok {
		t.Error("found nobody")
	}
	for _, m := range f.Members {
		p, ok := m.Peer("agent://pr-reviewer")
		if !ok || p.Document != reviewer.Capabilities || !p.InFleet || p.Pinned || p.Auth != nil || p.Transports[0].Address() != "memory://agents.pr-reviewer.requests" {
			t.Errorf("%s: peer %+v", m.ID, p)
		}
		if m.PeersFile != abs(t, "rpc-peers.yaml") {
			t.Errorf("%s: peers file %s", m.ID, m.PeersFile)
		}
		if _, ok := m.Peer("agent://concierge"); ok {
			t.Error("the concierge is nobody's peer")
		}
	}
	if findings := f.Lint(); findings.Failed() {
		t.Errorf("findings %v", findings)
	}
}

func TestEmptyFleet(t *testing.T) {
	f := files{"fleet.yaml": "version: 1\nname: none\nagents: []\n"}.load(t)
	if len(f.Members) != 0 || len(f.Environments) != 1 || f.Environments[0].Name != "default" || len(f.Lint()) != 0 {
		t.Errorf("got %+v", f)
	}
}

func TestOursInAgentYAML(t *testing.T) {
	f := starter().with(files{"agents/pr-reviewer/agent.yaml": `name: pr-reviewer
version: "2.0"
description: Reviews.
validator: native
skills:
  review-pr:
    process:
      command: [go, run, ./agents/pr-reviewer/cmd, ""]
  other:
    process:
      command: [./bin/other]
      dir: ./agents/pr-reviewer
      env: {MODE: fast, EMPTY: ""}
      inheritEnv: [PATH, GO*]
      maxOutputBytes: 1_000
      killGraceMs: 500
permissions:
  allow: ["RequestAgent:agent://librarian/*"]
  deny: []
scopes: ["database:*"]
security:
  defaultPermissions: [network:read]
  requireAuth: true
  auditLog: false
limits: {maxInFlight: 4, shutdownTimeoutMs: 100}
x-owner: {team: tools}
`}).load(t)
	m, _ := f.Member("pr-reviewer")
	a := m.Agent
	for i := range a.Skills {
		a.Skills[i].Position = fleet.Position{}
	}
	want := []fleet.Skill{
		{Name: "review-pr", Process: &fleet.Process{Command: []string{"go", "run", "./agents/pr-reviewer/cmd", ""}, Dir: f.Root, MaxOutputBytes: 4 << 20, KillGrace: 2 * time.Second}},
		{Name: "other", Process: &fleet.Process{Command: []string{"./bin/other"}, Dir: abs(t, "agents/pr-reviewer"), Env: []string{"MODE=fast", "EMPTY="}, InheritEnv: []string{"PATH", "GO*"}, MaxOutputBytes: 1000, KillGrace: 500 * time.Millisecond}},
	}
	if !reflect.DeepEqual(a.Skills, want) {
		t.Errorf("skills\n%+v\n%+v", a.Skills[0].Process, a.Skills[1].Process)
	}
	if s, ok := a.Skill("other"); !ok || s.Process != a.Skills[1].Process {
		t.Error("skill other is not found")
	}
	if p := a.Permissions; p == nil || !slices.Equal(patterns(p.Allow), []string{"RequestAgent:agent://librarian/*"}) || p.Deny == nil || len(p.Deny) != 0 ||
		p.Allow[0].Position.Line != 18 || p.Allow[0].Position.Pointer != "/permissions/allow/0" {
		t.Errorf("permissions %+v", a.Permissions)
	}
	if !slices.Equal(patterns(a.Scopes), []string{"network:read", "database:*"}) {
		t.Errorf("scopes %+v", a.Scopes)
	}
	if s := a.Security; s.RequireAuth == nil || !*s.RequireAuth || !s.NoAuditLog {
		t.Errorf("security %+v", a.Security)
	}
	if a.Limits != (fleet.Limits{MaxPayloadBytes: 1 << 20, MaxInFlight: 4, MaxQueued: 2048, MaxQueuedBytes: 64 << 20, MaxPending: 10_000, MaxViolations: 100, MaxValidationSteps: 1 << 29, MaxSchemaBytes: 2 << 20, MaxCompileSteps: 1 << 24, MaxPatternSteps: 1 << 22, MaxProofSteps: 1_000_000, IdempotencyTTL: 24 * time.Hour, ShutdownTimeout: 100 * time.Millisecond}) {
		t.Errorf("limits %+v", a.Limits)
	}
	if a.Version != "2.0" || a.Description != "Reviews." || a.Validator != "native" {
		t.Errorf("got %+v", a)
	}
}

func patterns(rules []fleet.PermissionRule) []string {
	var out []string
	for _, r := range rules {
		out = append(out, r.Pattern)
	}
	return out
}

func TestEnvironmentsInherit(t *testing.T) {
	f := starter().with(files{"fleet.yaml": `version: 1
name: f
agents:
  - {id: concierge, path: agents/concierge, env: prod, sessionDb: data/s.db, auditDb: data/a.db}
  - {id: pr-reviewer, path: agents/pr-reviewer, env: base}
environments:
  prod:
    inherit: staging
    envFiles: []
    overrides: {concierge: {envFiles: [prod.env]}}
  staging:
    inherit: base
    secretsRef: /etc/secrets.yaml
    channelsRef: channels.yaml
    overrides: {concierge: {envFiles: [b.env]}}
  base:
    peersRef: peers/all.yaml
    secretsRef: secrets.yaml
    envFiles: [a.env, /etc/b.env]
    overrides: {concierge: {envFiles: [x.env]}, pr-reviewer: {envFiles: [r.env]}}
`, "peers/all.yaml": "version: 1\npeers: []\n"}).load(t)
	byName := map[string]*fleet.Environment{}
	for _, e := range f.Environments {
		byName[e.Name] = e
	}
	prod := byName["prod"]
	if !slices.Equal(prod.Chain, []string{"base", "staging", "prod"}) || prod.PeersRef != abs(t, "peers/all.yaml") ||
		prod.SecretsRef != "/etc/secrets.yaml" || prod.ChannelsRef != abs(t, "channels.yaml") || prod.EnvFiles == nil || len(prod.EnvFiles) != 0 {
		t.Errorf("prod %+v", prod)
	}
	if o := prod.Overrides; !reflect.DeepEqual(o["concierge"], fleet.Override{EnvFiles: []string{abs(t, "prod.env")}}) || !reflect.DeepEqual(o["pr-reviewer"], fleet.Override{EnvFiles: []string{abs(t, "r.env")}}) {
		t.Errorf("overrides replace per agent: %+v", o)
	}
	if base := byName["base"]; !slices.Equal(base.EnvFiles, []string{abs(t, "a.env"), "/etc/b.env"}) || base.ChannelsRef != "" || len(base.Overrides["concierge"].EnvFiles) != 1 {
		t.Errorf("base %+v", base)
	}
	m, _ := f.Member("concierge")
	if !slices.Equal(m.EnvFiles(), []string{abs(t, "prod.env")}) || m.SessionDB != abs(t, "data/s.db") || m.AuditDB != abs(t, "data/a.db") || m.Environment != prod {
		t.Errorf("member %+v", m)
	}
}

func TestWhereAMembersPeersComeFrom(t *testing.T) {
	peers := func(topic string) string {
		return "version: 1\npeers:\n  - agent: agent://pr-reviewer\n    transports: [{kind: memory, topics: {requests: " + topic + "}}]\n"
	}
	base := starter().with(files{"rpc-peers.yaml": peers("root"), "env-peers.yaml": peers("env"), "agents/concierge/rpc-peers.yml": peers("own")})
	base["fleet.yaml"] = strings.Replace(base["fleet.yaml"], "./rpc-peers.yaml", "./env-peers.yaml", 1)
	topic := func(f *fleet.Fleet, id string) string {
		m, _ := f.Member(id)
		if len(m.Peers) == 0 {
			return ""
		}
		return m.Peers[0].Transports[0].Requests
	}
	f := base.load(t)
	if got := topic(f, "concierge") + " " + topic(f, "pr-reviewer"); got != "own env" {
		t.Errorf("got %s, want the member's own file, else the environment's", got)
	}
	noRef := base.with(files{"fleet.yaml": strings.Replace(base["fleet.yaml"], "    peersRef: ./env-peers.yaml\n", "", 1)})
	f = noRef.load(t)
	if got := topic(f, "concierge") + " " + topic(f, "pr-reviewer"); got != "own root" {
		t.Errorf("got %s, want the root's file without a peersRef", got)
	}
	f = noRef.with(files{"rpc-peers.yaml": ""}).load(t)
	if got := topic(f, "concierge") + " " + topic(f, "pr-reviewer"); got != "own " {
		t.Errorf("got %s, want no peers without a file", got)
	}
}

func TestPeers(t *testing.T) {
	f := starter().with(files{
		"config/peers.yaml": `version: 1
peers:
  - agent: agent://pr-reviewer
    capabilities: pins/pr-reviewer.yaml
    minSchemaVersion: "1.1"
    transports: [{kind: nats, servers: [a, b], subjects: {requests: s}}, {kind: memory, topics: {requests: r}}]
    auth: {provider: hmac, keyId: k, secretRef: "env:S"}
  - agent: agent://billing.acme
    capabilities: ./pins/billing.json
    transports: [{kind: kafka, brokers: [b], topics: {requests: t}}]
    auth: {provider: oidc, issuer: i, audience: a, jwksUri: j}
  - agent: agent://far.away
    transports: [{kind: sqs, region: r, queues: {requests: q}}]
    auth: {provider: oauth2-client, tokenEndpoint: t, clientId: c, clientSecretRef: r, issuer: i, audience: a, jwksUri: j, scopes: [s]}
`,
		"config/pins/pr-reviewer.yaml": capabilitiesOf("pr-reviewer", "old-name"),
		"config/pins/billing.json":     `{"version": 1, "agent": "agent://billing.acme", "transports": [{"kind": "memory", "topics": {"requests": "r"}}], "capabilities": [{"name": "bill"}]}`,
		"fleet.yaml":                   strings.Replace(starter()["fleet.yaml"], "./rpc-peers.yaml", "config/peers.yaml", 1),
	}).load(t)
	m, _ := f.Member("concierge")
	if len(m.Peers) != 3 {
		t.Fatalf("peers %v", m.Peers)
	}
	own, out, far := m.Peers[0], m.Peers[1], m.Peers[2]
	if _, ok := own.Document.Lookup("old-name"); !ok || !own.Pinned || !own.InFleet || own.MinSchemaVersion != "1.1" || own.Transports[0].Kind != capability.NATS {
		t.Errorf("a pinned file wins over the member's: %+v", own)
	}
	if !reflect.DeepEqual(own.Auth, &fleet.PeerAuth{Provider: fleet.HMAC, Secrets: []fleet.SharedSecret{{KeyID: "k", Ref: "env:S"}}, Position: own.Auth.Position}) {
		t.Errorf("auth %+v", own.Auth)
	}
	if _, ok := out.Document.Lookup("bill"); !ok || !out.Pinned || out.InFleet || !reflect.DeepEqual(out.Auth, &fleet.PeerAuth{Provider: fleet.OIDC, Issuer: "i", Audience: "a", JWKSURI: "j", Position: out.Auth.Position}) {
		t.Errorf("out of fleet: %+v", out)
	}
	if far.Document != nil || far.Pinned || !reflect.DeepEqual(far.Auth, &fleet.PeerAuth{Provider: fleet.OAuth2Client, TokenEndpoint: "t", ClientID: "c", ClientSecretRef: "r", Issuer: "i", Audience: "a", JWKSURI: "j", Scopes: []string{"s"}, Position: far.Auth.Position}) {
		t.Errorf("without a file: %+v", far)
	}
	if findings := f.Lint(); findings.Failed() {
		t.Errorf("pinned and dotted peers are external: %v", findings)
	}
}

func TestHosts(t *testing.T) {
	f := starter().with(files{"fleet.yaml": starter()["fleet.yaml"] + "hosts:\n  - {name: h1, url: \"https://h:9464\", auth: {bearer: \"env:T\"}, timeoutMs: 100}\n  - {name: h2, url: \"http://h\"}\n"}).load(t)
	want := []fleet.Host{{Name: "h1", URL: "https://h:9464", Bearer: "env:T", Timeout: 100 * time.Millisecond}, {Name: "h2", URL: "http://h", Timeout: 5 * time.Second}}
	if !reflect.DeepEqual(f.Hosts, want) {
		t.Errorf("got %+v", f.Hosts)
	}
}

func TestBadFleets(t *testing.T) {
	base := starter()
	manifest := func(from, to string) files {
		changed := strings.Replace(base["fleet.yaml"], from, to, 1)
		if changed == base["fleet.yaml"] {
			panic("nothing to replace: " + from)
		}
		return files{"fleet.yaml": changed}
	}
	reviewer := func(text string) files { return files{"agents/pr-reviewer/agent.yaml": "name: pr-reviewer\n" + text} }
	peers := func(text string) files { return files{"rpc-peers.yaml": "version: 1\npeers:\n" + text} }
	const memory = "    transports: [{kind: memory, topics: {requests: r}}]\n"
	for _, c := range []struct {
		name    string
		changes files
		want    []string
	}{
		{"unknown key", manifest("environments:", "enviroments:"), []string{
			`fleet.yaml:13:5: /agents/0/env: agent "concierge" is in environment "shared", which is not declared`,
			`fleet.yaml:16:5: /agents/1/env: agent "pr-reviewer" is in environment "shared", which is not declared`,
			`fleet.yaml:20:1: /enviroments: unknown key "enviroments" (did you mean "environments"?)`,
		}},
		{"not a fleet", files{"fleet.yaml": "[]\n"}, []string{`fleet.yaml:1:1: expected a mapping but got a list`}},
		{"missing keys", files{"fleet.yaml": "{}\n"}, []string{
			`fleet.yaml:1:1: the key "version" is missing`, `fleet.yaml:1:1: the key "name" is missing`, `fleet.yaml:1:1: the key "agents" is missing`}},
		{"version", manifest("version: 1", "version: 3"), []string{`fleet.yaml:1:1: /version: version 3 is not supported (the version is 1)`}},
		{"agent key", manifest("    deploy:\n", "    depoly:\n"), []string{`fleet.yaml:17:5: /agents/1/depoly: unknown key "depoly" (did you mean "deploy"?)`}},
		{"duplicate id", manifest("id: pr-reviewer\n    path: ./agents/pr-reviewer", "id: concierge\n    path: ./agents/concierge"), []string{
			`fleet.yaml:14:5: /agents/1/id: duplicate agent id "concierge", first on line 11`}},
		{"id", manifest("id: pr-reviewer", "id: Pr-reviewer"), []string{
			`fleet.yaml:14:5: /agents/1/id: "Pr-reviewer": the agent id must start with a lower-case letter or a digit`}},
		{"id with dots", manifest("id: pr-reviewer", "id: a..b"), []string{"fleet.yaml:14:5: /agents/1/id: \"a..b\": the agent id contains `..`"}},
		{"no directory", manifest("./agents/pr-reviewer", "./agents/reviewer"), []string{
			`fleet.yaml:15:5: /agents/1/path: agent "pr-reviewer": there is no directory agents/reviewer`}},
		{"escape", manifest("./agents/pr-reviewer", "../outside"), []string{
			`fleet.yaml:15:5: /agents/1/path: the path leads out of the fleet's root (move the file below fleet.yaml)`}},
		{"hidden escape", manifest("./agents/pr-reviewer", "agents/../../x/agents"), []string{
			`fleet.yaml:15:5: /agents/1/path: the path leads out of the fleet's root (move the file below fleet.yaml)`}},
		{"absolute", manifest("./agents/pr-reviewer", "/etc"), []string{
			`fleet.yaml:15:5: /agents/1/path: the path leads out of the fleet's root (move the file below fleet.yaml)`}},
		{"no agent.yaml", files{"agents/pr-reviewer/agent.yaml": ""}, []string{
			`fleet.yaml:15:5: /agents/1/path: agent "pr-reviewer" has no agent.yaml at agents/pr-reviewer/agent.yaml`}},
		{"undeclared environment", manifest("    env: shared\n    deploy", "    env: shard\n    deploy"), []string{
			`fleet.yaml:16:5: /agents/1/env: agent "pr-reviewer" is in environment "shard", which is not declared (did you mean "shared"?)`}},
		{"circular inheritance", manifest("  shared:\n", "  a: {inherit: b}\n  b: {inherit: c}\n  c: {inherit: a}\n  d: {inherit: d}\n  shared:\n"), []string{
			`fleet.yaml:23:7: /environments/c/inherit: circular inherit chain: a → b → c → a`,
			`fleet.yaml:24:7: /environments/d/inherit: circular inherit chain: d → d`}},
		{"unknown parent", manifest("    peersRef: ./rpc-peers.yaml\n", "    peersRef: ./rpc-peers.yaml\n    inherit: shard\n"), []string{
			`fleet.yaml:23:5: /environments/shared/inherit: environment "shared" inherits from "shard", which is not declared (did you mean "shared"?)`}},
		{"peersRef to nothing", manifest("./rpc-peers.yaml", "./peers.yaml"), []string{
			`peers.yaml: no peers config there, though an environment's peersRef names it`}},
		{"strategy", manifest("rolling", "roling"), []string{`fleet.yaml:31:13: /deploy/strategy: expected one of rolling, all-or-nothing, per-agent, canary (did you mean "rolling"?)`}},
		{"target without kind", manifest("kind: gcp-cloud-run", "knd: x"), []string{`fleet.yaml:37:5: /deploy/targets/cloud-run-reviewer: the key "kind" is missing`}},
		{"hosts", manifest("rpc:\n", "hosts:\n  - {name: a, url: \"ftp://x\"}\n  - {name: a, url: x, auth: {berer: y}}\n  - {name: \"a b\", url: \"https://x\"}\nrpc:\n"), []string{
			`fleet.yaml:27:15: /hosts/0/url: expected an absolute http or https URL`,
			`fleet.yaml:28:6: /hosts/1/name: duplicate host name "a", first on line 27`,
			`fleet.yaml:28:15: /hosts/1/url: expected an absolute http or https URL`,
			`fleet.yaml:28:23: /hosts/1/auth: the key "bearer" is missing`,
			`fleet.yaml:28:30: /hosts/1/auth/berer: unknown key "berer" (did you mean "bearer"?)`,
			`fleet.yaml:29:6: /hosts/2/name: host name must be URL-safe (letters, digits, - and _, and a letter or a digit first)`}},

		{"name mismatch", files{"agents/pr-reviewer/agent.yaml": "name: reviewer\n"}, []string{
			`agents/pr-reviewer/agent.yaml:1:1: /name: agent id mismatch: fleet.yaml declares "pr-reviewer" but this file names "reviewer" (make them equal)`}},
		{"agent typo", reviewer("sytemPrompt: x\n"), []string{
			`agents/pr-reviewer/agent.yaml:2:1: /sytemPrompt: unknown key "sytemPrompt" (did you mean "systemPrompt"?)`}},
		{"skills", reviewer("skills:\n  a: {proces: {}}\n  b: {process: {command: []}}\n  c: {process: {command: [\"\", 1], dir: ../.., env: {\"A=B\": x}, inheritEnv: [\"*\", 1A], killGraceMs: 0}}\n  d: x\n"), []string{
			`agents/pr-reviewer/agent.yaml:3:3: /skills/a: the key "process" is missing`,
			`agents/pr-reviewer/agent.yaml:3:7: /skills/a/proces: unknown key "proces" (did you mean "process"?)`,
			`agents/pr-reviewer/agent.yaml:4:26: /skills/b/process/command: expected at least one word: the program`,
			`agents/pr-reviewer/agent.yaml:5:27: /skills/c/process/command/0: the string must not be empty`,
			`agents/pr-reviewer/agent.yaml:5:31: /skills/c/process/command/1: expected a string but got a number (quote the value)`,
			`agents/pr-reviewer/agent.yaml:5:35: /skills/c/process/dir: the path leads out of the fleet's root (move the file below fleet.yaml)`,
			`agents/pr-reviewer/agent.yaml:5:53: /skills/c/process/env/A=B: "A=B" is not the name of an environment variable (letters, digits and _, no digit first)`,
			`agents/pr-reviewer/agent.yaml:5:77: /skills/c/process/inheritEnv/0: "*" is not the name of an environment variable, or a prefix with * at its end`,
			`agents/pr-reviewer/agent.yaml:5:82: /skills/c/process/inheritEnv/1: "1A" is not the name of an environment variable, or a prefix with * at its end`,
			`agents/pr-reviewer/agent.yaml:5:100: /skills/c/process/killGraceMs: expected a whole number from 1 to 86400000`,
			`agents/pr-reviewer/agent.yaml:6:6: /skills/d: expected a mapping but got a string`}},
		{"skills of another type", reviewer("skills: x\n"), []string{
			`agents/pr-reviewer/agent.yaml:2:1: /skills: expected a mapping from skill names to runners, or a list of files, but got a string`}},
		{"validator, permissions, limits", reviewer("validator: ajv\npermissions: {rules: []}\nlimits: {maxPending: 0}\n"), []string{
			`agents/pr-reviewer/agent.yaml:2:12: /validator: expected one of native, gojsonschema`,
			`agents/pr-reviewer/agent.yaml:3:15: /permissions/rules: rules are the reference runtime's, and would decide nothing here (write them as patterns under allow, ask and deny)`,
			`agents/pr-reviewer/agent.yaml:4:22: /limits/maxPending: expected a whole number from 1 to 2147483647`}},

		{"another agent's capabilities", files{"agents/pr-reviewer/capabilities.yaml": capabilitiesOf("reviewer", "x")}, []string{
			`agents/pr-reviewer/capabilities.yaml:2:1: /agent: the file declares agent "agent://reviewer", expected "agent://pr-reviewer"`}},

		{"duplicate peer", peers("  - agent: agent://pr-reviewer\n" + memory + "  - agent: agent://pr-reviewer\n" + memory), []string{
			`rpc-peers.yaml:5:5: /peers/1: duplicate peer entry for agent://pr-reviewer, first on line 3`}},
		{"peer", peers("  - agent: pr-reviewer\n    transports: []\n    auth: {provider: basic}\n  - agent: agent://x\n    transports: [{kind: memory, topics: {requests: r, responses: s}}]\n    auth: {provider: hmac, keyId: k, secret: s}\n    capabilites: x\n"), []string{
			"rpc-peers.yaml:3:5: /peers/0/agent: \"pr-reviewer\": agent must be `agent://<id>`",
			`rpc-peers.yaml:4:17: /peers/0/transports: expected at least one transport`,
			`rpc-peers.yaml:5:22: /peers/0/auth/provider: expected one of oidc, oauth2-client, hmac, nkey`,
			`rpc-peers.yaml:7:55: /peers/1/transports/0/topics/responses: a peer's topics name no responses (remove the key: replies come to the caller's own inbox)`,
			`rpc-peers.yaml:8:5: /peers/1/auth: the key "secretRef" is missing`,
			`rpc-peers.yaml:8:38: /peers/1/auth/secret: unknown key "secret" (did you mean "secretRef"?)`,
			`rpc-peers.yaml:9:5: /peers/1/capabilites: unknown key "capabilites" (did you mean "capabilities"?)`}},
		{"reply topics", peers("  - agent: agent://x\n    replyTopics: [a.b, a.>, _INBOX.x.>, $JS.API.x, _INBOX.>, '>', 'a.*.b', 'a b', a..b, '']\n" + memory), []string{
			`rpc-peers.yaml:4:41: /peers/0/replyTopics/3: "$JS.API.x" is no topic of one agent (write a whole topic, or one with .> at its end)`,
			`rpc-peers.yaml:4:52: /peers/0/replyTopics/4: "_INBOX.>" is no topic of one agent (write a whole topic, or one with .> at its end)`,
			`rpc-peers.yaml:4:62: /peers/0/replyTopics/5: ">" is no topic of one agent (write a whole topic, or one with .> at its end)`,
			`rpc-peers.yaml:4:67: /peers/0/replyTopics/6: "a.*.b" is no topic of one agent (write a whole topic, or one with .> at its end)`,
			`rpc-peers.yaml:4:76: /peers/0/replyTopics/7: "a b" is no topic of one agent (write a whole topic, or one with .> at its end)`,
			`rpc-peers.yaml:4:83: /peers/0/replyTopics/8: "a..b" is no topic of one agent (write a whole topic, or one with .> at its end)`,
			`rpc-peers.yaml:4:89: /peers/0/replyTopics/9: the string must not be empty`}},
		{"pins", peers("  - agent: agent://a\n    capabilities: ../a.yaml\n" + memory + "  - agent: agent://b\n    capabilities: b.yaml\n" + memory + "  - agent: agent://c\n    capabilities: agents/pr-reviewer/capabilities.yaml\n" + memory), []string{
			`rpc-peers.yaml:4:5: /peers/0/capabilities: the path leads out of the fleet's root (move the file below fleet.yaml)`,
			`rpc-peers.yaml:7:5: /peers/1/capabilities: no capabilities config at b.yaml`,
			`agents/pr-reviewer/capabilities.yaml:2:1: /agent: the file declares agent "agent://pr-reviewer", expected "agent://c"`}},
		{"every file at once", base.with(manifest("version: 1\n", "version: 2\n")).with(files{
			"agents/concierge/agent.yaml":          "name: concierge\nmodle: x\n",
			"agents/pr-reviewer/capabilities.yaml": capabilitiesOf("pr-reviewer", "a b"),
			"rpc-peers.yaml":                       "version: 1\npeers: [{}]\n",
			"agents/pr-reviewer/rpc-peers.yaml":    "a: b: c\n",
		}), []string{
			`fleet.yaml:1:1: /version: version 2 is not supported (the version is 1)`,
			`agents/concierge/agent.yaml:2:1: /modle: unknown key "modle" (did you mean "model"?)`,
			`agents/pr-reviewer/capabilities.yaml:7:5: /capabilities/0/name: capability name must be URL-safe (letters, digits, - and _, and a letter or a digit first)`,
			`rpc-peers.yaml:2:9: /peers/0: the key "agent" is missing`,
			`rpc-peers.yaml:2:9: /peers/0: the key "transports" is missing`,
			`agents/pr-reviewer/rpc-peers.yaml:1:5: invalid YAML: mapping values are not allowed in this context`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			base.with(c.changes).write(t)
			_, err := fleet.Load(".", fleet.LoadOptions{})
			var le *fleet.LoadError
			if !errors.As(err, &le) {
				t.Fatalf("got %v", err)
			}
			if got, want := err.Error(), strings.Join(c.want, "\n"); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestSymbolicLinksMustNotLeadOut(t *testing.T) {
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "agent.yaml"), []byte("name: concierge\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	starter().write(t)
	if err := os.RemoveAll("agents/concierge"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, "agents/concierge"); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	_, err := fleet.Load(".", fleet.LoadOptions{})
	if err == nil || !strings.Contains(err.Error(), "/agents/0/path: the path leads out of the fleet's root") {
		t.Errorf("got %v", err)
	}
}

func TestRootItselfMayBeALink(t *testing.T) {
	starter().write(t)
	real := abs(t, ".")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(real, link); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	f, err := fleet.Load(link, fleet.LoadOptions{})
	if err != nil || f.Root != link {
		t.Errorf("got %v, %v", f, err)
	}
}

func TestInspectOnly(t *testing.T) {
	changed := starter().with(files{"agents/pr-reviewer/capabilities.yaml": strings.Replace(capabilitiesOf("pr-reviewer", "x"), "{type: object}", "{type: object, patternProperties: {}}", 1)})
	changed.write(t)
	if _, err := fleet.Load(".", fleet.LoadOptions{}); err == nil || !strings.Contains(err.Error(), "agents/pr-reviewer/capabilities.yaml:8:33: /capabilities/0/inputSchema/patternProperties") {
		t.Errorf("got %v", err)
	}
	f, err := fleet.Load(".", fleet.LoadOptions{InspectOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	m, _ := f.Member("pr-reviewer")
	if c, _ := m.Capabilities.Lookup("x"); c.Input.Validator != nil {
		t.Error("a validator without validation")
	}
}

func TestValidatorOfAnAgent(t *testing.T) {
	f := starter().with(files{"agents/concierge/agent.yaml": "name: concierge\nvalidator: gojsonschema\n"}).load(t)
	engine := func(c *capability.Contract) bool { return c.Validator != capability.Validator(c.Schema) }
	concierge, _ := f.Member("concierge")
	reviewer, _ := f.Member("pr-reviewer")
	seen, _ := concierge.Peers[0].Document.Lookup("review-pr")
	own, _ := reviewer.Capabilities.Lookup("review-pr")
	if !engine(seen.Input) || engine(own.Input) {
		t.Error("the caller's engine must check what the caller sees, and only that")
	}
	if r := seen.Input.Check([]byte(`{}`)); r.Verdict != schema.Invalid || r.Violations[0].Path != "/prUrl" {
		t.Errorf("got %+v", r)
	}

	recursive := strings.Replace(capabilitiesOf("pr-reviewer", "x"), "{type: object}", `{anyOf: [{type: "null"}, {items: {$ref: "#"}}]}`, 1)
	starter().with(files{"agents/pr-reviewer/agent.yaml": "name: pr-reviewer\nvalidator: gojsonschema\n", "agents/pr-reviewer/capabilities.yaml": recursive}).write(t)
	_, err := fleet.Load(".", plugged())
	if want := `agents/pr-reviewer/capabilities.yaml:7:5: /capabilities/0: capability "x" inputSchema: the gojsonschema engine refuses the schema: recursion through`; err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v", err)
	}
}

func TestFindRoot(t *testing.T) {
	starter().write(t)
	root := abs(t, ".")
	for _, dir := range []string{".", "agents", "agents/pr-reviewer"} {
		if got, err := fleet.FindRoot(dir); err != nil || got != root {
			t.Errorf("from %s: %s, %v", dir, got, err)
		}
	}
	empty := t.TempDir()
	_, err := fleet.FindRoot(empty)
	if !errors.Is(err, fs.ErrNotExist) || err.Error() != "no fleet.yaml found in "+empty+" or in any directory above it" {
		t.Errorf("got %v", err)
	}
	var none *fleet.NoFleetError
	for _, dir := range []string{empty, filepath.Join(empty, "nothing")} {
		if _, err := fleet.Load(dir, fleet.LoadOptions{}); !errors.As(err, &none) {
			t.Errorf("got %v", err)
		}
	}
}

// TestPeersFileInEveryNotation: .yml and .json are read as .yaml is.
func TestPeersFileInEveryNotation(t *testing.T) {
	base := starter().with(files{"rpc-peers.yaml": "", "fleet.yaml": "version: 1\nname: f\nagents:\n  - {id: concierge, path: agents/concierge}\n  - {id: pr-reviewer, path: agents/pr-reviewer}\n"})
	for name, text := range map[string]string{
		"rpc-peers.yml":                   "version: 1\npeers:\n  - agent: agent://pr-reviewer\n    transports: [{kind: memory, topics: {requests: r}}]\n",
		"rpc-peers.json":                  `{"version": 1, "peers": [{"agent": "agent://pr-reviewer", "transports": [{"kind": "memory", "topics": {"requests": "r"}}]}]}`,
		"agents/concierge/rpc-peers.json": `{"version": 1, "peers": [{"agent": "agent://pr-reviewer", "transports": [{"kind": "memory", "topics": {"requests": "r"}}]}]}`,
		"agents/concierge/rpc-peers.yaml": "version: 1\npeers: [{agent: agent://pr-reviewer, transports: [{kind: memory, topics: {requests: r}}]}]\n",
	} {
		f := base.with(files{name: text}).load(t)
		m, _ := f.Member("concierge")
		if len(m.Peers) != 1 || m.PeersFile != abs(t, name) || m.Peers[0].Transports[0].Requests != "r" {
			t.Errorf("%s: %+v", name, m.Peers)
		}
	}
	_, err := fleet.Load(base.with(files{"rpc-peers.json": "{\"version\": 1,\n \"peers\": [],}"}).root(t), fleet.LoadOptions{})
	if err == nil || !strings.HasSuffix(err.Error(), `rpc-peers.json:2:14: invalid JSON: expected a member name in double quotes`) {
		t.Errorf("got %v", err)
	}
}

// TestRootAnywhere: a fleet loads from any directory, and faults then show the
// path as it was given.
func TestRootAnywhere(t *testing.T) {
	root := starter().with(files{"agents/concierge/agent.yaml": "name: concierge\nmodle: x\n"}).root(t)
	_, err := fleet.Load(root, fleet.LoadOptions{})
	if want := filepath.Join(root, "agents/concierge/agent.yaml") + `:2:1: /modle: unknown key "modle" (did you mean "model"?)`; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	t.Chdir(filepath.Join(root, "agents"))
	_, err = fleet.Load("..", fleet.LoadOptions{})
	if want := `../agents/concierge/agent.yaml:2:1: /modle: unknown key "modle" (did you mean "model"?)`; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// TestUnreadableFile: what is no fault of the text is the system's error.
func TestUnreadableFile(t *testing.T) {
	root := starter().with(files{"agents/concierge/agent.yaml": "", "agents/concierge/agent.yaml/notes": "x"}).root(t)
	_, err := fleet.Load(root, fleet.LoadOptions{})
	if err == nil || !strings.Contains(err.Error(), "agent.yaml is a directory, not a file") {
		t.Errorf("got %v", err)
	}
	if _, err := fleet.Validate(root, fleet.LoadOptions{}); err == nil {
		t.Error("Validate hides an error that is no finding")
	}
}
