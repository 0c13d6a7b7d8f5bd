package capability_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/capability"
)

// with is a one-capability document with this input schema.
func with(inputSchema string) string {
	return "{version: 1, agent: agent://a, transports: [{kind: memory, topics: {requests: r}}], capabilities: [{name: x, inputSchema: " + inputSchema + "}]}"
}

func digest(t *testing.T, inputSchema string) string {
	t.Helper()
	doc, err := capability.Parse("f.yaml", []byte(with(inputSchema)), capability.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return doc.Digest()
}

func TestDigestCoversWhatACallerCanObserve(t *testing.T) {
	base := `{type: object, properties: {a: {type: string}, description: {enum: [1]}}, required: [a]}`
	for _, same := range []string{
		`{required: [a], properties: {description: {enum: [1]}, a: {type: string}}, type: object}`,
		`{type: object, title: T, description: D, $id: x, $schema: s, default: {}, examples: [{}], properties: {a: {type: string, description: D, default: q}, description: {enum: [1], title: t}}, required: [a]}`,
		`{type: object, properties: {a: {type: string}, description: {enum: [1.0]}}, required: [a]}`,
	} {
		if digest(t, base) != digest(t, same) {
			t.Errorf("another digest for\n%s\nthan for\n%s", same, base)
		}
	}
	seen := map[string]string{digest(t, base): base}
	for _, other := range []string{
		`{type: object, properties: {a: {type: string}}, required: [a]}`,
		`{type: object, properties: {a: {type: string}, description: {enum: [2]}}, required: [a]}`,
		`{type: object, properties: {a: {type: string}, description: {enum: [9007199254740993]}}, required: [a]}`,
		`{type: object, properties: {a: {type: string}, description: {enum: [9007199254740992]}}, required: [a]}`,
		`{type: object, properties: {a: {type: string}, description: {enum: [{title: T}]}}, required: [a]}`,
		`{type: object, properties: {a: {type: string}, description: {enum: [{title: U}]}}, required: [a]}`,
		`{type: object, properties: {a: {type: string}, description: {const: {default: 1}}}, required: [a]}`,
		`{type: object, properties: {a: {type: string}, description: {enum: [1]}}}`,
		`{type: object, properties: {a: {type: string}, title: {enum: [1]}}, required: [a]}`,
		`{type: object, properties: {a: {oneOf: [{type: string}]}, description: {enum: [1]}}, required: [a]}`,
		`{type: object, additionalProperties: false}`, `{type: object, additionalProperties: true}`, `{}`,
	} {
		d := digest(t, other)
		if first, dup := seen[d]; dup {
			t.Errorf("one digest for\n%s\nand\n%s", first, other)
		}
		seen[d] = other
	}
}

func TestDigestIgnoresAnnotationsAtEveryDepth(t *testing.T) {
	nest := func(inner string) string {
		return `{definitions: {d: ` + inner + `}, items: ` + inner + `, not: ` + inner + `, additionalProperties: ` + inner +
			`, oneOf: [` + inner + `, true], anyOf: [` + inner + `], allOf: [` + inner + `]}`
	}
	if digest(t, nest(`{type: string}`)) != digest(t, nest(`{type: string, description: d, examples: [x]}`)) {
		t.Error("a description inside a subschema changes the digest")
	}
}

func TestDigestsAreStable(t *testing.T) {
	// A change of these values breaks every lock file and cached proof in the field.
	doc := parse(t, reviewPR)
	c := doc.Capabilities[0]
	got := []string{c.Input.Digest, c.Output.Digest, c.Digest, doc.Digest()}
	want := []string{
		"sha256:0761627e9665b6a75ea8d8223814ac92718a082814061817a44a952839e0e9b0",
		"sha256:c3c243389521ea6b40a086e9352748cdf55d384b3d27557010e9a5100e03fa62",
		"sha256:da5b9f72b0d2c501d97cdd40475d6a68d148219069c244c2930e9bd72b1c9cfb",
		"sha256:266e0cf979fe6bbaf4bb15840563d2f2b6b21ae808e78b4d548360572f80575a",
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("digest %d is %s, was %s", i, got[i], want[i])
		}
	}
	if d := parse(t, strings.Replace(reviewPR, "timeoutMs: 60000", "timeoutMs: 1", 1)).Digest(); d != doc.Digest() {
		t.Error("the timeout is part of the digest")
	}
	if d := parse(t, strings.Replace(reviewPR, "name: review-pr", "name: review", 1)).Digest(); d == doc.Digest() {
		t.Error("the name is not part of the digest")
	}
}

func TestPublishedForm(t *testing.T) {
	doc := parse(t, reviewPR)
	out, err := doc.Published().JSON()
	if err != nil {
		t.Fatal(err)
	}
	c := doc.Capabilities[0]
	want := `{"agent":"agent://pr-reviewer","capabilities_version":"1.0","digest":"` + doc.Digest() + `","tool_schemas":{"review-pr":{` +
		`"description":"Review a GitHub pull request.","digest":"` + c.Digest + `","idempotent":true,` +
		`"inputSchema":{"additionalProperties":false,"properties":{"prUrl":{"description":"GitHub PR URL.","type":"string"},"severity":{"enum":["low","med","high"]}},"required":["prUrl","severity"],"type":"object"},` +
		`"outputSchema":{"properties":{"summary":{"type":"string"},"verdict":{"enum":["approve","request-changes","comment"]}},"required":["verdict","summary"],"type":"object"},` +
		`"since":"1.1.0","timeoutMs":60000}}}`
	if string(out) != want {
		t.Errorf("got  %s\nwant %s", out, want)
	}
	p, err := capability.ParsePublished(out)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := p.JSON(); err != nil || string(again) != string(out) {
		t.Errorf("read back as %s, %v", again, err)
	}
}

func TestParsePublished(t *testing.T) {
	const rest = `,"agent":"agent://a","digest":"d","tool_schemas":{"x":{"digest":"e","later":1}},"later":{}}`
	for _, src := range []string{
		`{"capabilities_version":"1.7"` + rest,
		`{"capabilities_version":"1.0","tool_schemas":{}}`,            // no agent, as other implementations write it
		`{"capabilities_version":"1.0","digest":7,"tool_schemas":{}}`, // nobody believes it anyway
	} {
		if _, err := capability.ParsePublished([]byte(src)); err != nil {
			t.Errorf("%s is refused: %v", src, err)
		}
	}
	for _, c := range []struct {
		src, want     string
		newer, absent bool
	}{
		{src: `{"capabilities_version":"2.0"` + rest, want: `capabilities_version 2.0 is not supported, only 1.x is`, newer: true},
		{src: `{"capabilities_version":"2.0","tool_schemas":[],"agent":7}`, want: `capabilities_version 2.0 is not supported`, newer: true},
		{src: `{"capabilities_version":"2.0"}`, want: `capabilities_version 2.0 is not supported`, newer: true},
		{src: `{"capabilities_version":"10.1.2-rc"}`, want: `capabilities_version 10.1.2-rc is not supported`, newer: true},
		{src: `{"capabilities_version":3` + rest, want: `capabilities_version 3 is not supported`, newer: true},
		{src: `{"capabilities_version":"1"` + rest, want: `capabilities_version is missing or not of the form major.minor`},
		{src: `{"capabilities_version":"0.9"` + rest, want: `capabilities_version is missing or not of the form major.minor`},
		{src: `{"capabilities_version":1.0` + rest, want: `capabilities_version is missing or not of the form major.minor`},
		{src: `{"capabilities_version":null` + rest, want: `capabilities_version is missing`},
		{src: `{"x":1` + rest, want: `capabilities_version is missing`},
		{src: `{"x":1,"agent":"agent://a"}`, want: `neither capabilities_version nor tool_schemas`, absent: true},
		{src: `{}`, want: `neither capabilities_version nor tool_schemas`, absent: true},
		{src: `{"capabilities_version":"1.0","agent":"agent://a"}`, want: `tool_schemas is missing`},
		{src: `{"capabilities_version":"1.0","tool_schemas":null}`, want: `tool_schemas is missing`},
		{src: `{"capabilities_version":"1.0","tool_schemas":[]}`, want: `tool_schemas is missing or no object`},
		{src: `{"capabilities_version":"1.0","agent":"agent://../a","tool_schemas":{}}`, want: "agent: "},
		{src: `{"capabilities_version":"1.0","agent":7,"tool_schemas":{}}`, want: "agent: not a string"},
		{src: `{"capabilities_version":"1.0","capabilities_version":"1.0"}`, want: `duplicate key`},
		{src: `[]`, want: `not of the published form`},
		{src: `null`, want: `not of the published form`},
		{src: `"1.0"`, want: `not of the published form`},
		{src: ``, want: `invalid JSON`},
	} {
		_, err := capability.ParsePublished([]byte(c.src))
		var pe *capability.PublishedError
		if !errors.As(err, &pe) || !strings.Contains(pe.Reason, c.want) || pe.NewerMajor != c.newer || pe.Absent != c.absent {
			t.Errorf("%s: got %v, want %s", c.src, err, c.want)
		}
	}
}

// An entry that cannot be used does not spoil the others.
func TestParsePublishedEntries(t *testing.T) {
	p, err := capability.ParsePublished([]byte(`{"capabilities_version":"1.0","tool_schemas":{
		"good":{"inputSchema":{"type":"object"},"digest":"x"},"bare":{},"bool":{"inputSchema":true},"null":{"outputSchema":null},
		"list":[],"nothing":null,"text":"t","since":{"since":7},"late":{"timeoutMs":"soon"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"good": "", "bare": "", "bool": "a schema must be a JSON object", "null": "a schema must be a JSON object", "list": "not of the published form",
		"nothing": "it is no object", "text": "not of the published form", "since": "not of the published form", "late": "not of the published form",
	} {
		entry, ok := p.ToolSchemas[name]
		if !ok || (entry.Fault == nil) != (want == "") || want != "" && !strings.Contains(entry.Fault.Error(), want) {
			t.Errorf("%s: %+v, want %q", name, entry, want)
		}
	}
}

// The digest of a published entry is computed from its schemas. It is that of the
// capability that published them, whatever the entry says.
func TestContractDigest(t *testing.T) {
	doc := parse(t, reviewPR)
	out, err := doc.Published().JSON()
	if err != nil {
		t.Fatal(err)
	}
	p, err := capability.ParsePublished(out)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := p.ContractsDigest(); err != nil || got != doc.Digest() {
		t.Errorf("all together: %s, %v, want %s", got, err, doc.Digest())
	}
	for name, entry := range p.ToolSchemas {
		c, _ := doc.Lookup(name)
		entry.Digest = "sha256:a lie"
		if got, err := entry.ContractDigest(name); err != nil || got != c.Digest {
			t.Errorf("%s: %s, %v, want %s", name, got, err, c.Digest)
		}
	}
}

// What a peer publishes may nest as deep as it likes, and takes no more than its length.
// Beyond the depth of schemas that compile there is no digest, and the error is typed.
func TestContractDigestIsBounded(t *testing.T) {
	nest := func(n int, leaf string) json.RawMessage {
		return json.RawMessage(strings.Repeat(`{"not":`, n) + leaf + strings.Repeat(`}`, n))
	}
	for _, c := range []struct {
		name   string
		schema json.RawMessage
		ok     bool
	}{
		{"as deep as schemas may be", nest(capability.MaxDigestDepth, `true`), true},
		{"deeper", nest(capability.MaxDigestDepth+1, `true`), false},
		{"far deeper", nest(100_000, `true`), false},
		{"long, at the bottom", nest(capability.MaxDigestDepth-1, `{"const":"`+strings.Repeat("x", 1<<20)+`"}`), true},
		{"no JSON", json.RawMessage(`{"not":`), false},
		{"a repeated name", json.RawMessage(`{"not":{},"\u006eot":{}}`), false},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		digest, err := capability.ToolSchema{InputSchema: c.schema, OutputSchema: c.schema}.ContractDigest("f")
		runtime.ReadMemStats(&after)
		var typed *capability.DigestError
		if c.ok != (err == nil) || err != nil && !errors.As(err, &typed) || c.ok != strings.HasPrefix(digest, "sha256:") {
			t.Errorf("%s: %q, %v", c.name, digest, err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > uint64(30*len(c.schema)+4<<20) {
			t.Errorf("%s: %d bytes allocated for %d", c.name, took, len(c.schema))
		}
	}
}

// The revision covers everything that a caller can see: also a version, which the
// digest of the contract leaves out.
func TestRevision(t *testing.T) {
	revision := func(src string) string {
		t.Helper()
		p := parse(t, src).Published()
		out, err := p.JSON()
		if err != nil {
			t.Fatal(err)
		}
		read, err := capability.ParsePublished(append([]byte(" "), out...))
		if err != nil || read.Revision != p.Revision || p.Revision == "" {
			t.Errorf("published as %q, read as %+v, %v", p.Revision, read, err)
		}
		return p.Revision
	}
	if revision(reviewPR) == revision(strings.Replace(reviewPR, "1.1.0", "1.2.0", 1)) {
		t.Error("another since leaves the revision as it is")
	}
}

func TestSchemaVersion(t *testing.T) {
	for _, text := range []string{"", "banana", "1.2.3.4.5", "1..2", "-1", "1.x", "vv1", "4294967296", " 1"} {
		if v, ok := capability.ParseSchemaVersion(text); ok {
			t.Errorf("%q is %v", text, v)
		}
	}
	for _, pair := range [][2]string{{"1.9", "1.10"}, {"1", "1.0.0.1"}, {"v1.2", "v2"}, {"0.9.9.9", "1"}} {
		older, ok := capability.ParseSchemaVersion(pair[0])
		newer, ok2 := capability.ParseSchemaVersion(pair[1])
		if !ok || !ok2 || !older.Before(newer) || newer.Before(older) || older.Before(older) {
			t.Errorf("%s is not before %s", pair[0], pair[1])
		}
	}
}

// TestKeyOrderDoesNotMatter shuffles the members of a schema, which no caller
// can observe.
func TestKeyOrderDoesNotMatter(t *testing.T) {
	members := []string{`type: object`, `properties: {a: {type: string}, b: {type: integer}}`, `required: [a]`, `additionalProperties: false`, `minItems: 3`}
	want := digest(t, "{"+strings.Join(members, ", ")+"}")
	rapid.Check(t, func(rt *rapid.T) {
		shuffled := rapid.Permutation(members).Draw(rt, "members")
		if got := digest(t, "{"+strings.Join(shuffled, ", ")+"}"); got != want {
			rt.Fatalf("%v: digest %s, want %s", shuffled, got, want)
		}
	})
}

// FuzzParse: any bytes give a document or an error, and a document's published
// form reads back.
func FuzzParse(f *testing.F) {
	f.Add(reviewPR)
	f.Add(with(`{type: [object, "null"], oneOf: [{$ref: "#/definitions/a"}], definitions: {a: {pattern: "^x"}}}`))
	f.Add(`{"version": 1, "agent": "agent://a", "transports": [], "capabilities": [{}]}`)
	f.Fuzz(func(t *testing.T, src string) {
		for _, opts := range []capability.LoadOptions{{}, validating} {
			doc, err := capability.Parse("f.yaml", []byte(src), opts)
			if err != nil {
				continue
			}
			out, err := doc.Published().JSON()
			if err != nil {
				t.Fatal(err)
			}
			p, err := capability.ParsePublished(out)
			if err != nil {
				t.Fatalf("%v in %s", err, out)
			}
			if p.Digest != doc.Digest() || len(p.ToolSchemas) != len(doc.Capabilities) {
				t.Fatalf("read back as %+v", p)
			}
		}
	})
}

func ExampleParse() {
	doc, err := capability.Parse("capabilities.yaml", []byte(`
version: 1
agent: agent://echo
transports:
  - kind: memory
    topics: { requests: agents.echo.requests }
capabilities:
  - name: say
    timeoutMs: 5000
    inputSchema:
      type: object
      properties: { text: { type: string } }
      required: [text]
`), capability.LoadOptions{ValidateSchemas: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	say, _ := doc.Lookup("say")
	fmt.Println(doc.Agent, doc.Names(), say.Timeout)
	report := say.Input.Check(json.RawMessage(`{}`))
	fmt.Println(report.Violations[0].Path, report.Violations[0].Message)
	// Output:
	// agent://echo [say] 5s
	// /text missing required property "text"
}
