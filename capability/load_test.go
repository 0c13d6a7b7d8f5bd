package capability_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/schema"
)

// reviewPR is the file that the typed capabilities of the reference system are
// documented with.
const reviewPR = `version: 1
agent: agent://pr-reviewer
transports:
  - kind: memory
    topics:
      requests: agents.pr-reviewer.requests
capabilities:
  - name: review-pr
    description: Review a GitHub pull request.
    timeoutMs: 60000
    idempotent: true
    since: "1.1.0"
    inputSchema:
      type: object
      properties:
        prUrl: { type: string, description: "GitHub PR URL." }
        severity: { enum: [low, med, high] }
      required: [prUrl, severity]
      additionalProperties: false
    outputSchema:
      type: object
      properties:
        verdict: { enum: [approve, request-changes, comment] }
        summary: { type: string }
      required: [verdict, summary]
`

var validating = capability.LoadOptions{ValidateSchemas: true}

func parse(t *testing.T, src string) *capability.Document {
	t.Helper()
	doc, err := capability.Parse("capabilities.yaml", []byte(src), validating)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestReviewPR(t *testing.T) {
	doc := parse(t, reviewPR)
	if doc.Version != 1 || doc.Agent != "agent://pr-reviewer" || doc.Path != "capabilities.yaml" {
		t.Errorf("got %+v", doc)
	}
	if got := doc.Transports[0].Address(); got != "memory://agents.pr-reviewer.requests" {
		t.Errorf("address %s", got)
	}
	c, ok := doc.Lookup("review-pr")
	if !ok || c != doc.Capabilities[0] {
		t.Fatal("review-pr is not found")
	}
	if _, ok := doc.Lookup("Review-PR"); ok {
		t.Error("lookup ignores case")
	}
	if c.Timeout != time.Minute || !c.Idempotent || c.Since != "1.1.0" || c.Skill != "review-pr" || c.Description != "Review a GitHub pull request." || c.Position.Line != 8 {
		t.Errorf("got %+v", c)
	}
	if want := `{"type":"object","properties":{"prUrl":{"type":"string","description":"GitHub PR URL."},"severity":{"enum":["low","med","high"]}},"required":["prUrl","severity"],"additionalProperties":false}`; string(c.Input.Source) != want {
		t.Errorf("source %s", c.Input.Source)
	}
	if r := c.Input.Check([]byte(`{"prUrl":"x","severity":"high"}`)); r.Verdict != schema.Valid {
		t.Errorf("a valid payload gives %+v", r)
	}
	r := c.Input.Check([]byte(`{"prUrl":"x","severity":"critical"}`))
	if r.Verdict != schema.Invalid || len(r.Violations) != 1 || r.Violations[0].Path != "/severity" {
		t.Errorf("an invalid payload gives %+v", r)
	}
}

func TestLooseJSONRunsNoValidator(t *testing.T) {
	doc := parse(t, "{version: 1, agent: agent://a, transports: [{kind: memory, topics: {requests: r}}], capabilities: [{name: x}]}")
	c, _ := doc.Lookup("x")
	if c.Input != nil || c.Output != nil {
		t.Fatal("a contract came from nowhere")
	}
	if r := c.Input.Check([]byte(`not even JSON`)); r.Verdict != schema.Valid {
		t.Errorf("without a schema the payload was checked: %+v", r)
	}
}

func TestEveryTransportKindLoads(t *testing.T) {
	doc := parse(t, `version: 1
agent: agent://a.b-c_d
transports:
  - {kind: memory, topics: {requests: m.req, responses: m.res}}
  - {kind: nats, servers: ["nats://h:4222", "${env:NATS}"], subjects: {requests: n.req}}
  - kind: kafka
    brokers: [k1:9092]
    topics: {requests: k.req, responses: k.res}
    ssl: true
    sasl: {mechanism: scram-sha-256, username: u, passwordRef: "secret://kafka"}
  - {kind: sqs, region: eu-west-1, queues: {requests: q.fifo}}
  - {kind: amqp, url: "amqp://h", queues: {requests: a.req}}
  - {kind: mqtt, url: "mqtt://h", topics: {requests: t/req}}
capabilities: [{name: x}]
`)
	want := []capability.TransportSpec{
		{Kind: capability.Memory, Requests: "m.req", Responses: "m.res"},
		{Kind: capability.NATS, Requests: "n.req", Servers: []string{"nats://h:4222", "${env:NATS}"}},
		{Kind: capability.Kafka, Requests: "k.req", Responses: "k.res", Servers: []string{"k1:9092"}, TLS: true,
			SASL: &capability.SASL{Mechanism: "scram-sha-256", Username: "u", PasswordRef: "secret://kafka"}},
		{Kind: capability.SQS, Requests: "q.fifo", Region: "eu-west-1"},
		{Kind: capability.AMQP, Requests: "a.req", URL: "amqp://h"},
		{Kind: capability.MQTT, Requests: "t/req", URL: "mqtt://h"},
	}
	got := doc.Transports
	for i := range got {
		if got[i].Position.Line == 0 {
			t.Errorf("transport %d has no position", i)
		}
		got[i].Position = capability.Position{}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestCarriedKeys(t *testing.T) {
	const head = "{version: 1, agent: agent://a, transports: [{kind: memory, topics: {requests: r}}], capabilities: [{name: x, "
	want := &capability.Capability{
		Name: "x", Skill: "web", Timeout: 30 * time.Second, Delivery: capability.DeliveryDurable, Progress: true,
		ID: "7f", Version: "1.0.0", Category: "information_retrieval", Permissions: []string{"network:read"},
		RateLimit:   &capability.RateLimit{Requests: 100, Period: time.Minute, Burst: 10},
		RetryPolicy: &capability.RetryPolicy{MaxAttempts: 3, BackoffMultiplier: 2, InitialDelay: time.Second, MaxDelay: 10 * time.Second, RetryOn: []string{"timeout"}},
		Concurrency: 4, Cost: map[string]float64{"compute": 0.001}, Callers: []string{"agent://b"},
	}
	for _, src := range []string{
		`skill: web, timeoutMs: 30000, delivery: durable, progress: true, id: 7f, version: "1.0.0", category: information_retrieval, permissions: ["network:read"], rateLimit: {requests: 100, period: 1m, burst: 10}, retryPolicy: {maxAttempts: 3, backoffMultiplier: 2, initialDelayMs: 1000, maxDelayMs: 10000, retryOn: [timeout]}, concurrency: 4, cost: {compute: 0.001}, callers: ["agent://b"]}]}`,
		`skill: web, timeout_ms: 30000, delivery: durable, progress: true, id: 7f, version: "1.0.0", category: information_retrieval, permissions: ["network:read"], rate_limit: {requests: 100, period: 1m, burst: 10}, retry_policy: {max_attempts: 3, backoff_multiplier: 2, initial_delay_ms: 1000, max_delay_ms: 10000, retry_on: [timeout]}, concurrency: 4, cost: {compute: 0.001}, callers: ["agent://b"]}]}`,
	} {
		doc := parse(t, head+src)
		got := *doc.Capabilities[0]
		got.Position, got.Digest = capability.Position{}, ""
		if !reflect.DeepEqual(&got, want) {
			t.Errorf("got  %+v\nwant %+v", &got, want)
		}
	}
	short := parse(t, head+"rateLimit: {requests: 5}, retryPolicy: {initialDelayMs: 20000}}]}").Capabilities[0]
	if *short.RateLimit != (capability.RateLimit{Requests: 5, Period: time.Second, Burst: 5}) {
		t.Errorf("default rate limit %+v", short.RateLimit)
	}
	if p := short.RetryPolicy; p.MaxAttempts != 3 || p.BackoffMultiplier != 2 || p.MaxDelay != 20*time.Second {
		t.Errorf("default retry policy %+v", p)
	}
}

func TestBadFiles(t *testing.T) {
	const head = "version: 1\nagent: agent://a\ntransports:\n  - kind: memory\n    topics: {requests: r}\ncapabilities:\n"
	long := strings.Repeat("n", 129)
	for _, c := range []struct {
		name, src string
		want      []string
	}{
		{"empty mapping", "{}", []string{
			`f.yaml:1:1: the key "version" is missing`, `f.yaml:1:1: the key "agent" is missing`,
			`f.yaml:1:1: the key "transports" is missing`, `f.yaml:1:1: the key "capabilities" is missing`}},
		{"everything at once", "version: 2\nagent: pr-reviewer\ntransports: []\ncapabilities: []\nnotes: x\n", []string{
			`f.yaml:1:1: /version: version 2 is not supported (the version is 1)`,
			"f.yaml:2:1: /agent: \"pr-reviewer\": agent must be `agent://<id>`",
			`f.yaml:3:13: /transports: expected at least one transport`,
			`f.yaml:4:15: /capabilities: expected at least one capability`,
			`f.yaml:5:1: /notes: unknown key "notes" (known keys: version, agent, transports, capabilities)`}},
		{"agent id", strings.Replace(head, "agent://a", "agent://a/../b", 1) + "  - name: x\n", []string{
			"f.yaml:2:1: /agent: \"agent://a/../b\": the agent id contains `..`"}},
		{"string version", strings.Replace(head, "version: 1", `version: "1"`, 1) + "  - name: x\n", []string{
			`f.yaml:1:10: /version: expected a number but got a string`}},
		{"typo", head + "  - name: x\n    inputSchma: {type: object}\n    timeout: 5\n", []string{
			`f.yaml:8:5: /capabilities/0/inputSchma: unknown key "inputSchma" (did you mean "inputSchema"?)`,
			`f.yaml:9:5: /capabilities/0/timeout: unknown key "timeout" (did you mean "timeoutMs"?)`}},
		{"duplicate", head + "  - name: x\n  - name: y\n  - name: x\n", []string{
			`f.yaml:9:5: /capabilities/2/name: duplicate capability name "x", first on line 7 (rename one of them)`}},
		{"differ in case", head + "  - name: getX\n  - name: getx\n", []string{
			`f.yaml:8:5: /capabilities/1/name: the capability names "getX" and "getx" differ only in case (rename one of them)`}},
		{"duplicate key", head + "  - name: x\n    name: y\n", []string{
			`f.yaml:8:5: /capabilities/0/name: duplicate key "name", first on line 7 (keep one of them)`}},
		{"names", head + "  - name: \"a b\"\n  - name: -a\n  - name: \"\"\n  - name: ../x\n  - name: " + long + "\n  - name: é\n", []string{
			`f.yaml:7:5: /capabilities/0/name: capability name must be URL-safe (letters, digits, - and _, and a letter or a digit first)`,
			`f.yaml:8:5: /capabilities/1/name: capability name must be URL-safe (letters, digits, - and _, and a letter or a digit first)`,
			`f.yaml:9:5: /capabilities/2/name: capability name must be URL-safe (letters, digits, - and _, and a letter or a digit first)`,
			`f.yaml:10:5: /capabilities/3/name: capability name must be URL-safe (letters, digits, - and _, and a letter or a digit first)`,
			`f.yaml:11:5: /capabilities/4/name: the capability name is longer than 128 bytes`,
			`f.yaml:12:5: /capabilities/5/name: capability name must be URL-safe (letters, digits, - and _, and a letter or a digit first)`}},
		{"types", head + "  - name: x\n    timeoutMs: 0\n    idempotent: yes\n    since: 1.1\n    skill: ~\n", []string{
			`f.yaml:8:16: /capabilities/0/timeoutMs: expected a whole number from 1 to 31536000000`,
			`f.yaml:9:17: /capabilities/0/idempotent: expected a boolean but got a string`,
			`f.yaml:10:12: /capabilities/0/since: expected a string but got a number (quote the value)`,
			`f.yaml:11:12: /capabilities/0/skill: expected a string but got null`}},
		{"since", head + "  - {name: a, since: banana}\n  - {name: b, since: \"1.2.3.4.5\"}\n  - {name: c, since: \"1.x\"}\n  - {name: d, since: v1.2}\n  - {name: e, since: \"\"}\n", []string{
			`f.yaml:7:15: /capabilities/0/since: "banana" is no release (up to four numbers, such as "1.2.0")`,
			`f.yaml:8:15: /capabilities/1/since: "1.2.3.4.5" is no release (up to four numbers, such as "1.2.0")`,
			`f.yaml:9:15: /capabilities/2/since: "1.x" is no release (up to four numbers, such as "1.2.0")`}},
		{"schema of another type", head + "  - name: x\n    inputSchema: true\n    outputSchema:\n", []string{
			`f.yaml:8:5: /capabilities/0/inputSchema: capability "x" inputSchema: schema must be a JSON object (leave the key out for loose JSON)`,
			`f.yaml:9:5: /capabilities/0/outputSchema: capability "x" outputSchema: schema must be a JSON object (leave the key out for loose JSON)`}},
		{"transports", strings.Replace(head, "  - kind: memory\n    topics: {requests: r}\n",
			"  - {kind: nats, topics: {requests: r}}\n  - {kind: rabbit}\n  - {kind: kafka, brokers: [], topics: {request: r}}\n  - {kind: kafka, brokers: [b], topics: {requests: r}, sasl: {mechanism: plan}}\n", 1) + "  - name: x\n", []string{
			`f.yaml:4:5: /transports/0: the key "servers" is missing`,
			`f.yaml:4:5: /transports/0: the key "subjects" is missing`,
			`f.yaml:4:18: /transports/0/topics: unknown key "topics" (known keys: kind, servers, subjects)`,
			`f.yaml:5:12: /transports/1/kind: expected one of memory, nats, kafka, sqs, amqp, mqtt`,
			`f.yaml:6:28: /transports/2/brokers: expected at least one broker`,
			`f.yaml:6:32: /transports/2/topics: the key "requests" is missing`,
			`f.yaml:6:41: /transports/2/topics/request: unknown key "request" (did you mean "requests"?)`,
			`f.yaml:7:56: /transports/3/sasl: the key "username" is missing`,
			`f.yaml:7:56: /transports/3/sasl: the key "passwordRef" is missing`,
			`f.yaml:7:74: /transports/3/sasl/mechanism: expected one of plain, scram-sha-256, scram-sha-512 (did you mean "plain"?)`}},
		{"carried", head + "  - name: x\n    delivery: durably\n    rateLimit: {period: 1 minute}\n    retryPolicy: {maxAttempts: 0, initialDelayMs: 20, maxDelayMs: 10}\n    cost: {usd: -1}\n    concurrency: 0\n", []string{
			`f.yaml:8:15: /capabilities/0/delivery: expected one of durable (did you mean "durable"?)`,
			`f.yaml:9:5: /capabilities/0/rateLimit: the key "requests" is missing`,
			`f.yaml:9:17: /capabilities/0/rateLimit/period: expected a duration (such as 500ms, 10s, 1m or 1h)`,
			`f.yaml:10:5: /capabilities/0/retryPolicy: maxDelayMs is shorter than initialDelayMs`,
			`f.yaml:10:32: /capabilities/0/retryPolicy/maxAttempts: expected a whole number from 1 to 100`,
			`f.yaml:11:17: /capabilities/0/cost/usd: expected a number from 0 to 1.7976931348623157e+308`,
			`f.yaml:12:18: /capabilities/0/concurrency: expected a whole number from 1 to 1000000`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := capability.Parse("f.yaml", []byte(c.src), validating)
			if got, want := message(err), strings.Join(c.want, "\n"); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestSchemaFaultsStandAtTheirPlaceInTheFile(t *testing.T) {
	src := strings.Replace(reviewPR, "      additionalProperties: false\n", "      additionalProperties: false\n      patternProperties: {}\n", 1)
	src = strings.Replace(src, "summary: { type: string }", "summary: { type: strng }", 1)
	_, err := capability.Parse("f.yaml", []byte(src), validating)
	var le *capability.LoadError
	if !errors.As(err, &le) || len(le.Faults) != 2 {
		t.Fatalf("got %v", err)
	}
	for i, want := range []struct {
		line    int
		pointer string
		text    string
	}{
		{20, "/capabilities/0/inputSchema/patternProperties", `capability "review-pr" inputSchema: `},
		{25, "/capabilities/0/outputSchema/properties/summary/type", `capability "review-pr" outputSchema: `},
	} {
		f := le.Faults[i]
		if f.Line != want.line || f.Pointer != want.pointer || !strings.HasPrefix(f.Message, want.text) {
			t.Errorf("fault %d is %v, want line %d, %s", i, f, want.line, want.pointer)
		}
	}
	doc, err := capability.Parse("f.yaml", []byte(src), capability.LoadOptions{})
	if err != nil {
		t.Fatalf("for inspection the file must load: %v", err)
	}
	c := doc.Capabilities[0]
	if c.Input == nil || c.Input.Schema != nil || c.Input.Validator != nil || !strings.Contains(string(c.Input.Source), "patternProperties") || c.Input.Digest == "" {
		t.Errorf("for inspection the contract is %+v", c.Input)
	}
}

func TestLoadFromDisk(t *testing.T) {
	dir := t.TempDir()
	if _, ok := capability.Find(dir); ok {
		t.Error("found a file in an empty directory")
	}
	missing := filepath.Join(dir, "capabilities.yaml")
	_, err := capability.Load(missing)
	if message(err) != "no capabilities config at "+missing || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file gives %v", err)
	}
	path := filepath.Join(dir, "capabilities.json")
	src := `{"version": 1, "agent": "agent://a", "transports": [{"kind": "memory", "topics": {"requests": "r"}}],
  "capabilities": [{"name": "x", "timoutMs": 5}]}`
	if err := os.WriteFile(path, []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, ok := capability.Find(dir); !ok || got != path {
		t.Errorf("Find gives %s, %v", got, ok)
	}
	_, err = capability.LoadWith(path, capability.LoadOptions{Name: "agents/a/capabilities.json"})
	if want := `agents/a/capabilities.json:2:34: /capabilities/0/timoutMs: unknown key "timoutMs" (did you mean "timeoutMs"?)`; message(err) != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	_, err = capability.Parse("f.yaml", []byte(reviewPR), capability.LoadOptions{Agent: "agent://librarian"})
	if want := `f.yaml:2:1: /agent: the file declares agent "agent://pr-reviewer", expected "agent://librarian"`; message(err) != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if err := os.WriteFile(missing, []byte(reviewPR), 0o600); err != nil {
		t.Fatal(err)
	}
	doc, err := capability.Load(missing)
	if err != nil || doc.Path != missing {
		t.Errorf("got %v, %v", doc, err)
	}
}

// refuseOutput is an engine that refuses schemas with a certain text.
type refuseOutput struct{}

func (refuseOutput) Name() string { return "refuse" }

func (refuseOutput) Compile(s *schema.Schema) (capability.Validator, error) {
	if strings.Contains(string(s.Source()), "verdict") {
		return nil, errors.New("no verdicts")
	}
	return refuseAll{}, nil
}

type refuseAll struct{}

func (refuseAll) CheckWithin(context.Context, []byte) schema.Report {
	return schema.Report{Verdict: schema.Malformed}
}

func TestWithEngine(t *testing.T) {
	doc := parse(t, reviewPR)
	_, err := doc.WithEngine(refuseOutput{})
	if want := `capabilities.yaml:8:5: /capabilities/0: capability "review-pr" outputSchema: no verdicts (use the native validator)`; message(err) != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	simple := parse(t, reviewPR[:strings.Index(reviewPR, "    outputSchema")])
	other, err := simple.WithEngine(refuseOutput{})
	if err != nil {
		t.Fatal(err)
	}
	c, _ := other.Lookup("review-pr")
	if c.Input.Check(nil).Verdict != schema.Malformed || c != other.Capabilities[0] {
		t.Error("the engine is not in use")
	}
	if c, _ := simple.Lookup("review-pr"); c.Input.Validator != capability.Validator(c.Input.Schema) {
		t.Error("the document changed under its other users")
	}
	if c.Digest != simple.Capabilities[0].Digest || other.Digest() != simple.Digest() {
		t.Error("the engine changes digests")
	}
	back, err := other.WithEngine(capability.Native{})
	if c, _ := back.Lookup("review-pr"); err != nil || c.Input.Validator != capability.Validator(c.Input.Schema) {
		t.Errorf("back to native: %v", err)
	}
}

// A plugged second opinion sees each compiled schema once, and its objections
// stand at their places in the file.
func TestSecondOpinion(t *testing.T) {
	var seen []string
	opts := validating
	opts.SecondOpinion = func(s *schema.Schema) []schema.Fault {
		seen = append(seen, string(s.Source()))
		if strings.Contains(string(s.Source()), "verdict") {
			return []schema.Fault{{Pointer: "/properties/verdict", Message: "no verdicts", Hint: "judge less"}, {Message: "nor this"}}
		}
		return nil
	}
	_, err := capability.Parse("f.yaml", []byte(reviewPR), opts)
	want := `f.yaml:20:5: /capabilities/0/outputSchema: capability "review-pr" outputSchema: nor this
f.yaml:23:9: /capabilities/0/outputSchema/properties/verdict: capability "review-pr" outputSchema: no verdicts (judge less)`
	if message(err) != want || len(seen) != 2 {
		t.Errorf("got\n%v\nwant\n%s\nafter %d schemas", err, want, len(seen))
	}

	seen = nil
	if _, err := capability.Parse("f.yaml", []byte(strings.Replace(reviewPR, "type: object", "type: objct", 1)), opts); err == nil || len(seen) != 1 {
		t.Errorf("a schema that does not compile: %v, %d schemas reviewed, want the other one alone", err, len(seen))
	}
	seen, opts.ValidateSchemas = nil, false
	if _, err := capability.Parse("f.yaml", []byte(reviewPR), opts); err != nil || len(seen) != 0 {
		t.Errorf("for inspection: %v, %d schemas reviewed", err, len(seen))
	}
}

func TestEngineNamed(t *testing.T) {
	for name, want := range map[string]string{"": "native", "native": "native", "refuse": "refuse"} {
		if e, err := capability.EngineNamed(name, refuseOutput{}); err != nil || e.Name() != want {
			t.Errorf("%q: %v, %v", name, e, err)
		}
	}
	_, err := capability.EngineNamed("gojsonschema")
	var none *capability.NoEngineError
	if want := `validator "gojsonschema" is not built into this program, which has native`; !errors.As(err, &none) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if _, err = capability.EngineNamed("ajv", refuseOutput{}); !errors.As(err, &none) || strings.Join(none.Have, " ") != "native refuse" {
		t.Errorf("got %v", err)
	}
}

func BenchmarkParse(b *testing.B) {
	for b.Loop() {
		if _, err := capability.Parse("f.yaml", []byte(reviewPR), validating); err != nil {
			b.Fatal(err)
		}
	}
}
