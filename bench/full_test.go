package bench_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentd/agentd/schema"
)

// fullWorkloads are schemas as others write them, over the whole vocabulary of their
// dialect, each with a payload that passes and one that fails at its end.
func fullWorkloads(b testing.TB) []workload {
	b.Helper()
	repeat := func(n int, part func(i int) string) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = part(i)
		}
		return strings.Join(parts, ",")
	}
	// A schema for schemas, judging a schema.
	definitions := repeat(60, func(i int) string {
		return fmt.Sprintf(`"d%d":{"type":["object","null"],"properties":{"id":{"type":"integer","minimum":%d},"name":{"$ref":"#/definitions/d%d"},"tags":{"items":[{"enum":["a","b"]},true]}},"required":["id"],"dependencies":{"id":["name"]}}`, i, i, (i+1)%60)
	})
	operations := func(last string) string {
		return `{"openapi":"3.1.0","info":{"title":"Items","version":"1.2.0","x-audience":"all"},"paths":{` + repeat(40, func(i int) string {
			return fmt.Sprintf(`"/items/%d/{id}":{"parameters":[{"name":"id","in":"path","required":true,"schema":{"type":"integer"}}],"get":{"operationId":"getItem%d","tags":["items"],"responses":{"200":{"description":"the item","x-cache":60},"4XX":{"description":"no item"},"default":{"description":"a fault"}}},"x-owner":"team %d"}`, i, i, i%7)
		}) + last + `}}`
	}
	tree := func(leaf string) string {
		text := leaf
		for i := range 200 {
			text = fmt.Sprintf(`{"data":%d,"children":[{"data":"left"},%s]}`, i, text)
		}
		return text
	}
	event := func(i int) string {
		if i%3 == 0 {
			return fmt.Sprintf(`["2026-01-%02d",%d,{"kind":"sale","amount":%d.25,"currency":"EUR"}]`, 1+i%28, i, i)
		}
		return fmt.Sprintf(`["2026-01-%02d",%d,{"kind":"visit","page":"/p/%d","seconds":%d}]`, 1+i%28, i, i%50, i%90)
	}
	call := func(end string) string {
		return `{"query":"payments that failed","repositories":[` + repeat(20, func(i int) string { return fmt.Sprintf(`"agentd/service-%d"`, i) }) +
			`],"filter":{"author":null,"label":"bug","x-team":{"id":7}},"sort":["updated",-1],"from":"2026-01-01","to":"2026-02-01","limit":50,"cursor":` + end + `}`
	}
	manifest := func(last string) string {
		return `{"name":"@agentd/client","version":"1.2.0","license":"Apache-2.0","main":"index.js","bin":{"agentd":"bin.js"},"files":["dist","README.md"],"scripts":{"build":"tsc","test":"node --test"},"engines":{"node":">=20"},"dependencies":{` +
			repeat(60, func(i int) string { return fmt.Sprintf(`"@scope/library-%d":"^%d.%d.0"`, i, i%5, i%9) }) + `},"repository":{"type":"git","url":"https://example.org/agentd.git"},"exports":` + last + `}`
	}
	payloads := map[string][2]string{
		"tool-call":   {call(`"c2Vjb25k"`), call(`7`)},
		"manifest":    {manifest(`{".":{"import":"./index.js"}}`), manifest(`{".":7}`)},
		"metaschema":  {`{"definitions":{` + definitions + `}}`, `{"definitions":{` + definitions + `,"last":{"type":"strin"}}}`},
		"openapi":     {operations(""), operations(`,"/last":{"get":{"responses":{"99":{"description":"none"}}}}`)},
		"strict-tree": {tree(`{"data":1}`), tree(`{"daat":1}`)},
		"events":      {"[" + repeat(300, event) + "]", "[" + repeat(300, event) + `,["2026-01-01",301,{"kind":"sale","amount":1.255,"currency":"EUR"}]]`},
	}
	var all []workload
	for _, name := range []string{"tool-call", "manifest", "metaschema", "openapi", "strict-tree", "events"} {
		text, err := os.ReadFile(filepath.Join("testdata", "full", name+".schema.json"))
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, workload{name, string(text), payloads[name][0], payloads[name][1]})
	}
	return all
}

// fullEngines are the engines with our own by the full profile.
func fullEngines() []engine {
	all := engines()
	all[0].compile = func(b *testing.B, text []byte) func([]byte) bool { return agentdFull(b, text).Valid }
	all[1].compile = func(b *testing.B, text []byte) func([]byte) bool {
		s := agentdFull(b, text)
		return func(payload []byte) bool { return s.Check(payload).Verdict == schema.Valid }
	}
	return all
}

func agentdFull(b testing.TB, text []byte) *schema.Schema {
	b.Helper()
	s, err := schema.CompileWith(text, schema.CompileOptions{Profile: schema.ProfileFull})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// BenchmarkFull measures the full profile. An engine takes part in a workload if it
// answers both payloads right.
func BenchmarkFull(b *testing.B) {
	for _, w := range fullWorkloads(b) {
		measureWorkload(b, "schema="+w.name, w, fullEngines())
	}
}

// TestFullWorkloads holds that the payloads are what they are called.
func TestFullWorkloads(t *testing.T) {
	for _, w := range fullWorkloads(t) {
		s := agentdFull(t, []byte(w.schema))
		if !json.Valid([]byte(w.invalid)) || !s.Valid([]byte(w.valid)) || s.Valid([]byte(w.invalid)) {
			t.Errorf("%s: %v", w.name, s.Validate([]byte(w.valid)))
		}
		t.Logf("%s: %d and %d bytes, schema of %d", w.name, len(w.valid), len(w.invalid), len(w.schema))
	}
}
