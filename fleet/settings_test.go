package fleet_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
)

// agentWith loads the starter fleet with this text after the reviewer's name.
func agentWith(t *testing.T, text string) (*fleet.AgentFile, error) {
	t.Helper()
	f, err := fleet.Load(starter().with(files{"agents/pr-reviewer/agent.yaml": "name: pr-reviewer\n" + text + "\n"}).root(t), plugged())
	if err != nil {
		return nil, err
	}
	m, _ := f.Member("pr-reviewer")
	return m.Agent, nil
}

// wantFault demands one fault, at a pointer of agent.yaml.
func wantFault(t *testing.T, err error, pointer, message string) {
	t.Helper()
	var le *fleet.LoadError
	if !errors.As(err, &le) || len(le.Faults) != 1 || le.Faults[0].Pointer != pointer || !strings.Contains(le.Faults[0].Message+" ("+le.Faults[0].Hint+")", message) {
		t.Errorf("got %v, want %s: %s", err, pointer, message)
	}
}

// Every number of agent.yaml has a least and a greatest value: both load, the
// next ones outside do not.
func TestNumbersOfAgentYAMLAreBounded(t *testing.T) {
	const day = 24 * time.Hour
	ms := func(d time.Duration) int64 { return d.Milliseconds() }
	for _, tt := range []struct {
		pointer   string
		low, high int64
		get       func(*fleet.AgentFile) int64
	}{
		{"/limits/maxPayloadBytes", 1, math.MaxInt32, func(a *fleet.AgentFile) int64 { return int64(a.Limits.MaxPayloadBytes) }},
		{"/limits/maxInFlight", 1, math.MaxInt32, func(a *fleet.AgentFile) int64 { return int64(a.Limits.MaxInFlight) }},
		{"/limits/maxQueued", 0, math.MaxInt32, func(a *fleet.AgentFile) int64 { return int64(a.Limits.MaxQueued) }},
		{"/limits/maxQueuedBytes", 1, math.MaxInt32, func(a *fleet.AgentFile) int64 { return int64(a.Limits.MaxQueuedBytes) }},
		{"/breaker/minCalls", 1, 1_000_000, func(a *fleet.AgentFile) int64 { return int64(a.Breaker.MinCalls) }},
		{"/breaker/probes", 1, 1_000_000, func(a *fleet.AgentFile) int64 { return int64(a.Breaker.Probes) }},
		{"/breaker/windowMs", 1, ms(day), func(a *fleet.AgentFile) int64 { return ms(a.Breaker.Window) }},
		{"/breaker/coolDownMs", 1, ms(day), func(a *fleet.AgentFile) int64 { return ms(a.Breaker.CoolDown) }},
		{"/breaker/maxCoolDownMs", 5000, ms(day), func(a *fleet.AgentFile) int64 { return ms(a.Breaker.MaxCoolDown) }},
		{"/limits/maxPending", 1, math.MaxInt32, func(a *fleet.AgentFile) int64 { return int64(a.Limits.MaxPending) }},
		{"/limits/maxValidationSteps", 1, math.MaxInt32, func(a *fleet.AgentFile) int64 { return int64(a.Limits.MaxValidationSteps) }},
		{"/limits/maxSchemaBytes", 1, math.MaxInt32, func(a *fleet.AgentFile) int64 { return int64(a.Limits.MaxSchemaBytes) }},
		{"/limits/maxCompileSteps", 1, math.MaxInt32, func(a *fleet.AgentFile) int64 { return int64(a.Limits.MaxCompileSteps) }},
		{"/limits/maxPatternSteps", 1, math.MaxInt32, func(a *fleet.AgentFile) int64 { return int64(a.Limits.MaxPatternSteps) }},
		{"/limits/maxProofSteps", 1, math.MaxInt32, func(a *fleet.AgentFile) int64 { return int64(a.Limits.MaxProofSteps) }},
		{"/limits/maxViolations", 1, 1000, func(a *fleet.AgentFile) int64 { return int64(a.Limits.MaxViolations) }},
		{"/limits/shutdownTimeoutMs", 1, ms(day), func(a *fleet.AgentFile) int64 { return ms(a.Limits.ShutdownTimeout) }},
		{"/limits/idempotencyTtlMs", 1, ms(31 * day), func(a *fleet.AgentFile) int64 { return ms(a.Limits.IdempotencyTTL) }},
		{"/durable/replicas", 1, 5, func(a *fleet.AgentFile) int64 { return int64(a.Durable.Replicas) }},
		{"/durable/ackWaitMs", ms(time.Second), ms(day), func(a *fleet.AgentFile) int64 { return ms(a.Durable.AckWait) }},
		{"/durable/maxDeliver", 1, 1000, func(a *fleet.AgentFile) int64 { return int64(a.Durable.MaxDeliver) }},
		{"/durable/resultTtlMs", ms(time.Hour), ms(366 * day), func(a *fleet.AgentFile) int64 { return ms(a.Durable.ResultTTL) }},
		{"/durable/deadTtlMs", ms(time.Minute), ms(366 * day), func(a *fleet.AgentFile) int64 { return ms(a.Durable.DeadTTL) }},
		{"/durable/maxBytes", 1 << 20, 1 << 50, func(a *fleet.AgentFile) int64 { return a.Durable.MaxBytes }},
		{"/security/clockSkewMs", 0, 60_000, func(a *fleet.AgentFile) int64 { return ms(a.Security.ClockSkew) }},
		{"/security/approvalTimeoutMs", 1, ms(day), func(a *fleet.AgentFile) int64 { return ms(a.Security.ApprovalTimeout) }},
		{"/audit/captureMaxBytes", 1, 256 << 10, func(a *fleet.AgentFile) int64 { return int64(a.Audit.CaptureBytes) }},
		{"/skills/s/process/maxOutputBytes", 1, 1 << 30, func(a *fleet.AgentFile) int64 { return int64(a.Skills[0].Process.MaxOutputBytes) }},
		{"/skills/s/process/killGraceMs", 1, ms(day), func(a *fleet.AgentFile) int64 { return ms(a.Skills[0].Process.KillGrace) }},
	} {
		t.Run(strings.ReplaceAll(tt.pointer[1:], "/", "."), func(t *testing.T) {
			// with nests the number as its pointer does.
			with := func(n int64) string {
				keys := strings.Split(tt.pointer[1:], "/")
				text := fmt.Sprintf("{%s: %d}", keys[len(keys)-1], n)
				if len(keys) == 4 {
					text = fmt.Sprintf("{%s: {%s: {command: [x], %s: %d}}}", keys[1], keys[2], keys[3], n)
				}
				return keys[0] + ": " + text
			}
			for _, n := range []int64{tt.low, tt.high} {
				if a, err := agentWith(t, with(n)); err != nil || tt.get(a) != n {
					t.Errorf("%d: %v", n, err)
				}
			}
			for _, n := range []int64{tt.low - 1, tt.high + 1} {
				_, err := agentWith(t, with(n))
				wantFault(t, err, tt.pointer, fmt.Sprintf("expected a whole number from %d to %d", tt.low, tt.high))
			}
		})
	}
}

// What replicas share has settings of its own, within bounds.
func TestIdempotencyOfAgentYAML(t *testing.T) {
	for text, want := range map[string]fleet.Idempotency{
		"idempotency: {}": {}, "idempotency: {store: local}": {},
		"idempotency: {store: shared, leaseMs: 1000, replicas: 5}":   {Shared: true, Lease: time.Second, Replicas: 5},
		"idempotency: {store: shared, leaseMs: 300000, replicas: 1}": {Shared: true, Lease: 5 * time.Minute, Replicas: 1},
	} {
		a, err := agentWith(t, text)
		if err != nil {
			t.Fatal(err)
		}
		got := a.Idempotency
		if got.Position = (fleet.Position{}); got != want {
			t.Errorf("%s: %+v", text, got)
		}
	}
	for text, fault := range map[string][2]string{
		"idempotency: {store: remote}":               {"/idempotency/store", "expected one of local, shared"},
		"idempotency: {store: shared, leaseMs: 999}": {"/idempotency/leaseMs", "from 1000 to 300000"},
		"idempotency: {store: shared, replicas: 6}":  {"/idempotency/replicas", "from 1 to 5"},
		"idempotency: {leaseMs: 2000}":               {"/idempotency/leaseMs", "no effect on a store that is not shared"},
		"idempotency: {store: local, replicas: 3}":   {"/idempotency/replicas", "say `store: shared`"},
	} {
		_, err := agentWith(t, text)
		wantFault(t, err, fault[0], fault[1])
	}
}

// What a file does not say has a default, whichever block is missing or empty.
func TestDefaultsOfAgentYAML(t *testing.T) {
	for _, text := range []string{"", "limits: {}\naudit: {}\nsecurity: {}\ndurable: {}\npermissions: {}\nbreaker: {}"} {
		a, err := agentWith(t, text)
		if err != nil {
			t.Fatal(err)
		}
		want := fleet.Limits{
			MaxPayloadBytes: 1 << 20, MaxInFlight: 256, MaxQueued: 2048, MaxQueuedBytes: 64 << 20, MaxPending: 10_000, MaxViolations: 100,
			MaxValidationSteps: 1 << 29, MaxSchemaBytes: 2 << 20, MaxCompileSteps: 1 << 24, MaxPatternSteps: 1 << 22, MaxProofSteps: 1_000_000,
			IdempotencyTTL: 24 * time.Hour, ShutdownTimeout: 15 * time.Second,
		}
		breaker := fleet.Breaker{Threshold: 0.9, MinCalls: 20, Window: 30 * time.Second, CoolDown: 5 * time.Second, MaxCoolDown: time.Minute, Probes: 3}
		if a.Breaker != breaker {
			t.Errorf("%q: breaker %+v", text, a.Breaker)
		}
		if a.Limits != want || a.Durable != (fleet.Durable{Position: a.Durable.Position}) || !reflect.DeepEqual(a.Security, fleet.Security{}) {
			t.Errorf("%q: %+v", text, a)
		}
		if a.Audit.CaptureBytes != 16<<10 || a.Audit.FailOpen || a.Audit.Witnesses != nil || a.Audit.Captures("x") {
			t.Errorf("%q: audit %+v", text, a.Audit)
		}
		if (a.Permissions != nil) != (text != "") || a.Scopes != nil || a.Validator != "" || a.Drift != "" {
			t.Errorf("%q: %+v", text, a)
		}
	}
	a, err := agentWith(t, "skills: {s: {process: {command: [x]}}}")
	if err != nil {
		t.Fatal(err)
	}
	if p := a.Skills[0].Process; p.MaxOutputBytes != 4<<20 || p.KillGrace != 2*time.Second || p.Env != nil || p.InheritEnv != nil {
		t.Errorf("process %+v", p)
	}
}

func TestBreakerBlock(t *testing.T) {
	for text, want := range map[string]func(*fleet.Breaker){
		"off":               func(b *fleet.Breaker) { b.Off = true },
		"{threshold: 1}":    func(b *fleet.Breaker) { b.Threshold = 1 },
		"{threshold: 0.01}": func(b *fleet.Breaker) { b.Threshold = 0.01 },
		"{minCalls: 5, windowMs: 10000, coolDownMs: 1000, maxCoolDownMs: 2000, probes: 1}": func(b *fleet.Breaker) {
			*b = fleet.Breaker{Threshold: 0.9, MinCalls: 5, Window: 10 * time.Second, CoolDown: time.Second, MaxCoolDown: 2 * time.Second, Probes: 1}
		},
		"{coolDownMs: 90000}": func(b *fleet.Breaker) { b.CoolDown, b.MaxCoolDown = 90*time.Second, 90*time.Second },
	} {
		b := fleet.DefaultBreaker()
		want(&b)
		if a, err := agentWith(t, "breaker: "+text); err != nil || a.Breaker != b {
			t.Errorf("%s: %+v, %v", text, a, err)
		}
	}
	for text, want := range map[string][2]string{
		"on":               {"/breaker", "expected one of off"},
		"{threshold: 0}":   {"/breaker/threshold", "from 0.01 to 1"},
		"{threshold: 1.1}": {"/breaker/threshold", "from 0.01 to 1"},
		"{coolDownMs: 2000, maxCoolDownMs: 1999}": {"/breaker/maxCoolDownMs", "expected a whole number from 2000 to"},
		"{failures: 5}": {"/breaker/failures", "unknown"},
	} {
		_, err := agentWith(t, "breaker: "+text)
		wantFault(t, err, want[0], want[1])
	}
}

func TestSecurityBlock(t *testing.T) {
	for _, tt := range []struct {
		text string
		want func(fleet.Security) bool
	}{
		{"requireAuth: true", func(s fleet.Security) bool { return s.RequireAuth != nil && *s.RequireAuth }},
		{"requireAuth: false", func(s fleet.Security) bool { return s.RequireAuth != nil && !*s.RequireAuth }},
		{"auditLog: true", func(s fleet.Security) bool { return !s.NoAuditLog }},
		{"auditLog: false", func(s fleet.Security) bool { return s.NoAuditLog }},
		{"clockSkewMs: 1500", func(s fleet.Security) bool { return s.ClockSkew == 1500*time.Millisecond }},
		{"approvalTimeoutMs: 7", func(s fleet.Security) bool { return s.ApprovalTimeout == 7*time.Millisecond }},
	} {
		if a, err := agentWith(t, "security: {"+tt.text+"}"); err != nil || !tt.want(a.Security) {
			t.Errorf("%s: %v, %v", tt.text, a, err)
		}
	}
}

// Scopes are those of the key and of security.defaultPermissions together; the
// defaults stand first. An empty list grants nothing, which no list does not say.
func TestScopes(t *testing.T) {
	for text, want := range map[string][]string{
		"scopes: []":                                 {},
		"security: {defaultPermissions: []}":         {},
		"scopes: [x-a:b]":                            {"x-a:b"},
		"security: {defaultPermissions: ['file:*']}": {"file:*"},
		"scopes: [x-a:b]\nsecurity: {defaultPermissions: [x-c:d, 'x-e:*']}": {"x-c:d", "x-e:*", "x-a:b"},
		"scopes: ['**', '*:read']": {"**", "*:read"},
	} {
		a, err := agentWith(t, text)
		if err != nil || a.Scopes == nil || !slices.Equal(patterns(a.Scopes), want) && len(want) > 0 || len(a.Scopes) != len(want) {
			t.Errorf("%s: %+v, %v", text, a, err)
		}
	}
}

func TestPermissionPatterns(t *testing.T) {
	longest := strings.Repeat("x", 512)
	a, err := agentWith(t, "permissions: {allow: ["+longest+"], ask: ['RequestAgent:agent://a/b', 'RequestAgent:agent://*/*'], deny: ['RequestAgent:**']}")
	if err != nil {
		t.Fatal(err)
	}
	p := a.Permissions
	if !p.Calls() || p.Serve != nil {
		t.Errorf("got %+v", p)
	}
	if !slices.Equal(patterns(p.Allow), []string{longest}) || !slices.Equal(patterns(p.Deny), []string{"RequestAgent:**"}) ||
		!slices.Equal(patterns(p.Ask), []string{"RequestAgent:agent://a/b", "RequestAgent:agent://*/*"}) {
		t.Errorf("got %+v", p)
	}
	if p.Ask[1].Position.Pointer != "/permissions/ask/1" || p.Ask[1].Position.Line != 2 {
		t.Errorf("a rule stands at %+v", p.Ask[1].Position)
	}
	for text, pointer := range map[string]string{
		"allow: ['RequestAgent:agent://a/b/c']": "/permissions/allow/0",
		"deny: ['RequestAgent:agent://a']":      "/permissions/deny/0",
		"ask: ['**', 'REQUESTAGENT:x']":         "/permissions/ask/1",
	} {
		_, err := agentWith(t, "permissions: {"+text+"}")
		wantFault(t, err, pointer, "would match nothing")
	}
}

func TestChoicesOfAgentYAML(t *testing.T) {
	for _, tt := range []struct {
		key     string
		allowed []string
		get     func(*fleet.AgentFile) string
	}{
		{"validator", []string{"native", "gojsonschema"}, func(a *fleet.AgentFile) string { return a.Validator }},
		{"drift", []string{"enforce", "warn", "off"}, func(a *fleet.AgentFile) string { return a.Drift }},
	} {
		for _, value := range tt.allowed {
			if a, err := agentWith(t, tt.key+": \""+value+"\""); err != nil || tt.get(a) != value {
				t.Errorf("%s %s: %v", tt.key, value, err)
			}
		}
		_, err := agentWith(t, tt.key+": other")
		wantFault(t, err, "/"+tt.key, "expected one of "+strings.Join(tt.allowed, ", "))
	}
}

// Both ends of the fleet's own files get the second opinion: the member's
// contract and the one that a peers file pins.
func TestSecondOpinionOnEveryFile(t *testing.T) {
	bad := strings.Replace(capabilitiesOf("pr-reviewer", "x"), "{type: object}", "{type: object, default: 7}", 1)
	for name, changed := range map[string]files{
		"agents/pr-reviewer/capabilities.yaml": {"agents/pr-reviewer/capabilities.yaml": bad},
		"pin.yaml":                             {"pin.yaml": bad, "rpc-peers.yaml": strings.Replace(starter()["rpc-peers.yaml"], "    transports:", "    capabilities: pin.yaml\n    transports:", 1)},
	} {
		root := starter().with(changed).root(t)
		_, err := fleet.Load(root, plugged())
		if err == nil || !strings.Contains(err.Error(), name+":8:33: /capabilities/0/inputSchema/default: capability \"x\" inputSchema: the default does not pass its own schema") {
			t.Errorf("%s: %v", name, err)
		}
		// The second opinion is asked for by plugging it in, and not for inspection.
		inspect := plugged()
		inspect.InspectOnly = true
		for _, opts := range []fleet.LoadOptions{{}, inspect} {
			if _, err := fleet.Load(root, opts); err != nil {
				t.Errorf("%s, with %+v: %v", name, opts, err)
			}
		}
	}
}

// Every number of fleet.yaml is bounded, too.
func TestNumbersOfTheManifestAreBounded(t *testing.T) {
	const day = int64(24 * time.Hour / time.Millisecond)
	for _, tt := range []struct {
		text, pointer string
		low, high     int64
		get           func(*fleet.Fleet) int64
	}{
		{"deploy: {healthGate: {timeoutMs: %d}}", "/deploy/healthGate/timeoutMs", 1, day, func(f *fleet.Fleet) int64 { return f.Deploy.HealthTimeout.Milliseconds() }},
		{"hosts: [{name: h, url: 'http://h', timeoutMs: %d}]", "/hosts/0/timeoutMs", 1, day, func(f *fleet.Fleet) int64 { return f.Hosts[0].Timeout.Milliseconds() }},
		{"agents: [{id: a, path: a, deploy: {target: t, minInstances: %d}}]", "/agents/0/deploy/minInstances", 0, math.MaxInt32, func(f *fleet.Fleet) int64 { return int64(f.Members[0].DeployTo.MinInstances) }},
		{"agents: [{id: a, path: a, deploy: {target: t, maxInstances: %d}}]", "/agents/0/deploy/maxInstances", 1, math.MaxInt32, func(f *fleet.Fleet) int64 { return int64(f.Members[0].DeployTo.MaxInstances) }},
	} {
		load := func(n int64) (*fleet.Fleet, error) {
			text := "version: 1\nname: f\n" + fmt.Sprintf(tt.text, n) + "\n"
			if !strings.HasPrefix(tt.text, "agents") {
				text += "agents: []\n"
			}
			return fleet.Load(files{"fleet.yaml": text, "a/agent.yaml": "name: a\n"}.root(t), fleet.LoadOptions{})
		}
		for _, n := range []int64{tt.low, tt.high} {
			if f, err := load(n); err != nil || tt.get(f) != n {
				t.Errorf(tt.text+": %v", n, err)
			}
		}
		for _, n := range []int64{tt.low - 1, tt.high + 1} {
			_, err := load(n)
			wantFault(t, err, tt.pointer, fmt.Sprintf("from %d to %d", tt.low, tt.high))
		}
	}
}

func TestManifestSettings(t *testing.T) {
	load := func(text string) (*fleet.Fleet, error) {
		return fleet.Load(files{"fleet.yaml": "version: 1\nname: f\nagents: []\n" + text + "\n"}.root(t), fleet.LoadOptions{})
	}
	f, err := load("rpc: {stampFleetVersion: true, minFleetVersion: v1.2.0-cut}")
	want, parseErr := envelope.ParseFleetVersion("v1.2.0-cut")
	if err != nil || parseErr != nil || !f.RPC.StampFleetVersion || f.RPC.MinFleetVersion.Compare(want) != 0 || f.RPC.MinFleetVersion.IsZero() {
		t.Errorf("rpc %+v, %v", f, err)
	}
	for text, want := range map[string]string{
		"rpc: {minFleetVersion: newest}":                       "/rpc/minFleetVersion",
		"rpc: {minFleetVersion: ''}":                           "/rpc/minFleetVersion",
		"rpc: {stampFleetVersion: 1}":                          "/rpc/stampFleetVersion",
		"rpc: {stampVersion: true}":                            "/rpc/stampVersion",
		"runtime: {node: '>=22'}":                              "/runtime/node",
		"deploy: {strategy: blue-green}":                       "/deploy/strategy",
		"deploy: {targets: {t: {kind: ''}}}":                   "/deploy/targets/t/kind",
		"deploy: {healthGate: {path: /x}}":                     "/deploy/healthGate/path",
		"hosts: [{name: -a, url: 'http://h'}]":                 "/hosts/0/name",
		"hosts: [{name: a, url: 'http://'}]":                   "/hosts/0/url",
		"hosts: [{name: a, url: '//h'}]":                       "/hosts/0/url",
		"hosts: [{name: a, url: 'http://h', auth: {}}]":        "/hosts/0/auth",
		"hosts: [{name: a, url: 'http://h', token: x}]":        "/hosts/0/token",
		"environments: {e: {peersRef: ../peers.yaml}}":         "/environments/e/peersRef",
		"environments: {e: {envFiles: [../.env]}}":             "/environments/e/envFiles/0",
		"environments: {e: {overrides: {a: {envFile: x}}}}":    "/environments/e/overrides/a/envFile",
		"environments: {e: {overrides: {a: {envFiles: [7]}}}}": "/environments/e/overrides/a/envFiles/0",
	} {
		_, err := load(text)
		wantFault(t, err, want, "")
	}
}

// A key that agentd does not know is a fault wherever it stands, so that no
// setting is lost to a typing error; keys of the reference runtime are not.
func TestUnknownKeys(t *testing.T) {
	for text, want := range map[string]string{
		"limit: {}":                                                  "/limit",
		"limits: {maxPayload: 1}":                                    "/limits/maxPayload",
		"durable: {replica: 1}":                                      "/durable/replica",
		"audit: {captures: []}":                                      "/audit/captures",
		"security: {clockSkew: 1}":                                   "/security/clockSkew",
		"permissions: {permit: []}":                                  "/permissions/permit",
		"skills: {s: {proc: {}, process: {command: [x]}}}":           "/skills/s/proc",
		"skills: {s: {process: {command: [x], cwd: .}}}":             "/skills/s/process/cwd",
		"skills: {s: {process: {command: [x], env: {'9': x}}}}":      "/skills/s/process/env/9",
		"skills: {s: {process: {command: [x], inheritEnv: [A B]}}}":  "/skills/s/process/inheritEnv/0",
		"skills: {s: {process: {command: [x], inheritEnv: ['**']}}}": "/skills/s/process/inheritEnv/0",
		"skills: {'': {process: {command: [x]}}}":                    "/skills/",
		"X-owner: me": "/X-owner",
	} {
		_, err := agentWith(t, text)
		wantFault(t, err, want, "")
	}
	for _, key := range []string{
		"model", "temperature", "maxTokens", "subagentDepthCap", "systemPrompt", "plugins", "event-sources",
		"channels", "tools", "controlPlane", "secrets", "observability", "x-", "x-anything",
	} {
		if _, err := agentWith(t, key+": {any: [thing]}"); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	for _, key := range []string{"export", "exporters"} {
		if _, err := agentWith(t, "audit: {"+key+": {any: [thing]}}"); err != nil {
			t.Errorf("audit.%s: %v", key, err)
		}
	}
}

// Names that a fleet finds things by: each once, and exactly.
func TestLookups(t *testing.T) {
	f := watched().load(t)
	concierge, ok := f.Member("concierge")
	if !ok || concierge.ID != "concierge" {
		t.Fatalf("got %+v, %t", concierge, ok)
	}
	for _, id := range []string{"", "Concierge", "concierge ", "agent://concierge"} {
		if m, ok := f.Member(id); ok || m != nil {
			t.Errorf("%q finds %s", id, m.ID)
		}
	}
	if p, ok := concierge.Peer("agent://pr-reviewer"); !ok || !p.Pinned || !p.InFleet {
		t.Errorf("got %+v, %t", p, ok)
	}
	for _, a := range []envelope.Address{"", "pr-reviewer", "agent://concierge"} {
		if p, ok := concierge.Peer(a); ok || p != nil {
			t.Errorf("%q finds %s", a, p.Address)
		}
	}
	a, err := agentWith(t, "skills: {s: {process: {command: [x]}}, t: {process: {command: [y, '']}}}")
	if err != nil {
		t.Fatal(err)
	}
	if s, ok := a.Skill("t"); !ok || !slices.Equal(s.Process.Command, []string{"y", ""}) || s.Position.Line != 2 {
		t.Errorf("got %+v, %t", s, ok)
	}
	if s, ok := a.Skill("S"); ok || s.Process != nil {
		t.Errorf("found %+v", s)
	}
}

// A validator that the program does not have is an error at its place, and not a
// fleet that validates by something else.
func TestValidatorThatIsNotPluggedIn(t *testing.T) {
	root := starter().with(files{"agents/pr-reviewer/agent.yaml": "name: pr-reviewer\nvalidator: gojsonschema\n"}).root(t)
	_, err := fleet.Load(root, fleet.LoadOptions{})
	wantFault(t, err, "/validator", `validator "gojsonschema" is not built into this program, which has native (use native, or a program that has it)`)
	var le *fleet.LoadError
	if errors.As(err, &le) && (le.Faults[0].Line != 2 || !strings.HasSuffix(le.Faults[0].File, "agents/pr-reviewer/agent.yaml")) {
		t.Errorf("the fault stands at %+v", le.Faults[0].Position)
	}
	if _, err := fleet.Load(root, fleet.LoadOptions{InspectOnly: true}); err != nil {
		t.Errorf("for inspection: %v", err)
	}
	if _, err := fleet.Load(root, plugged()); err != nil {
		t.Errorf("plugged in: %v", err)
	}
}

// Reload reads the files again as Load read them: with the same validators.
func TestReload(t *testing.T) {
	base := starter().with(files{"agents/pr-reviewer/agent.yaml": "name: pr-reviewer\nvalidator: gojsonschema\n"})
	f := base.load(t)
	if err := os.WriteFile("fleet.yaml", []byte(strings.Replace(base["fleet.yaml"], "fleet-starter", "renamed", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := f.Reload()
	if err != nil || again.Name != "renamed" || f.Name != "fleet-starter" {
		t.Fatalf("got %+v, %v", again, err)
	}
	m, _ := again.Member("pr-reviewer")
	if c := m.Capabilities.Capabilities[0]; c.Input.Validator == capability.Validator(c.Input.Schema) {
		t.Error("the validator was lost")
	}
	t.Chdir("agents") // the root was given as "."
	if _, err := again.Reload(); err != nil {
		t.Errorf("from another directory: %v", err)
	}
	if err := os.WriteFile(filepath.Join(f.Root, "fleet.yaml"), []byte("version: 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var le *fleet.LoadError
	if _, err := f.Reload(); !errors.As(err, &le) {
		t.Errorf("got %v", err)
	}
}
