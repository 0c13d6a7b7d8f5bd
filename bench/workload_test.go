package bench_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// workload is a schema with a payload that passes and one that fails, at its end
// wherever the workload has one: a fault at the start is no work.
type workload struct {
	name, schema   string
	valid, invalid string
}

// BenchmarkWorkload measures payloads that spend their time in one place, where the
// libraries come closest to each other. An engine takes part in a workload if it answers
// both payloads right: google/jsonschema-go, for one, asserts no format.
func BenchmarkWorkload(b *testing.B) {
	all := workloads()
	for _, size := range sizes { // the payloads of BenchmarkValidate, and with a member too many
		text := string(read(b, size+".json"))
		end := strings.LastIndexByte(text, '}')
		all = append(all, workload{"request-" + size, string(read(b, size+".schema.json")), text, text[:end] + `,"extra":1` + text[end:]})
	}
	for _, w := range all {
		measureWorkload(b, "workload="+w.name, w, engines())
	}
}

// measureWorkload runs the engines that answer both payloads right.
func measureWorkload(b *testing.B, name string, w workload, by []engine) {
	b.Helper()
	for _, payload := range []struct {
		kind, text string
		want       bool
	}{{"valid", w.valid, true}, {"invalid", w.invalid, false}} {
		for _, e := range by {
			if e.name == "jsontext-syntax-only" && !payload.want {
				continue
			}
			b.Run(name+"/payload="+payload.kind+"/engine="+e.name, func(b *testing.B) {
				valid := e.compile(b, []byte(w.schema))
				start := time.Now()
				right := valid([]byte(w.valid))
				if time.Since(start) > time.Second {
					b.Skip("takes seconds")
				}
				if !right || e.name != "jsontext-syntax-only" && valid([]byte(w.invalid)) {
					b.Skip("gives another answer")
				}
				run(b, valid, []byte(payload.text), payload.want)
			})
		}
	}
}

// workloads returns all of them.
func workloads() []workload {
	return append(append(patternWorkloads(), containerWorkloads()...), textWorkloads()...)
}

// patternWorkloads are patterns on one long string and on many short ones.
func patternWorkloads() []workload {
	random := rand.New(rand.NewPCG(3, 4))
	words := func(size int) string {
		var b strings.Builder
		for b.Len() < size {
			for range 2 + random.IntN(9) {
				b.WriteByte(byte('a' + random.IntN(26)))
			}
			b.WriteByte(' ')
		}
		return b.String()
	}
	prose := words(64 << 10)
	letters := strings.ReplaceAll(words(1000), " ", "")
	var all []workload
	add := func(name, pattern, valid, invalid string) {
		all = append(all, workload{"pattern-" + name, `{"pattern":"` + pattern + `"}`, `"` + valid + `"`, `"` + invalid + `"`})
	}
	add("literal", `needle`, prose+"needle", prose)
	add("prefix", `error: [a-z]+ at [0-9]+`, prose+"error: disk at 17", prose+"error: disk")
	add("class", `[0-9]{3}-[0-9]{4}`, prose+"555-1234", prose+"555-123")
	add("alternatives", `(?:foo|bar|baz)-(?:qux|quux)`, prose+"baz-quux", prose+"baz-qu")
	add("dotted", `.*needle.*`, prose+"needle", prose)
	add("window", `.{0,1000}#.{0,1000}`, prose[:4096]+"#", prose[:4096])
	add("repeated", `^(?:[a-z]{1,20} )*$`, prose, prose+"-")
	add("counted", `^(?:[a-z ]{40})*$`, prose[:60_000], prose[:60_001])
	add("bounded", `^[a-z]{1,200}(?:\\.[a-z]{1,200}){1,3}$`, letters[:200]+"."+letters[200:380], letters[:200]+"."+letters[200:380]+"-")
	add("near", `error.{0,200}disk.{0,200}failed`, prose+"error in some disk that failed", prose+"error in some disk")
	add("explosive", `[ab]*a[ab]{30}$`, strings.Repeat("abbab", 6000)+"a"+strings.Repeat("b", 30), strings.Repeat("abbab", 6000)+strings.Repeat("b", 31))
	add("cjk", `^\\p{Lo}+$`, strings.Repeat("漢字仮名交じり文", 2000), strings.Repeat("漢字仮名交じり文", 2000)+"-")
	short := func(name, pattern string, item func() string, wrong string) {
		var items []string
		for range 1000 {
			items = append(items, `"`+item()+`"`)
		}
		good := strings.Join(items, ",")
		all = append(all, workload{"patterns-" + name, `{"type":"array","items":{"type":"string","pattern":"` + pattern + `"}}`,
			"[" + good + "]", "[" + good + `,"` + wrong + `"]`})
	}
	short("semver", `^(?:0|[1-9][0-9]*)\\.(?:0|[1-9][0-9]*)\\.(?:0|[1-9][0-9]*)(?:-[0-9A-Za-z-]+(?:\\.[0-9A-Za-z-]+)*)?$`, func() string {
		return fmt.Sprintf("%d.%d.%d-rc.%d", random.IntN(20), random.IntN(100), random.IntN(100), random.IntN(9))
	}, "1.02.3")
	short("key", `^[A-Za-z_][A-Za-z0-9_.-]{0,199}$`, func() string { return fmt.Sprintf("service_%x.%x", random.Uint32(), random.Uint64()) }, "a b")
	short("address", `[^@\\s]+@[^@\\s]+\\.[a-z]{2,}`, func() string {
		return fmt.Sprintf("user%d@mail%d.example.org", random.IntN(1_000_000), random.IntN(100))
	}, "user@example")
	return all
}

// containerWorkloads are arrays and objects that are compared as a whole, or large.
func containerWorkloads() []workload {
	list := func(open, end string, n int, last string, part func(i int) string) string {
		parts := make([]string, 0, n+1)
		for i := range n {
			parts = append(parts, part(i))
		}
		if last != "" {
			parts = append(parts, last)
		}
		return open + strings.Join(parts, ",") + end
	}
	number := func(i int) string { return fmt.Sprint(i * 7919) }
	text := func(i int) string { return fmt.Sprintf(`"item-%d-%d"`, i, i*7919) }
	object := func(i int) string { return fmt.Sprintf(`{"id":%d,"tags":["a","b"]}`, i*7919) }
	member := func(i int) string { return fmt.Sprintf(`"member%d":%d`, i, i) }
	shuffled := func(i int) string { return member(i * 7919 % 5000) }
	constant := func(i int) string { return []string{`{"b":[3.0],"a":2}`, `{"a":1,"b":[2]}`}[i%2] }
	const unique = `{"type":"array","uniqueItems":true}`
	return []workload{
		{"unique-objects", unique, list("[", "]", 10_000, "", object), list("[", "]", 10_000, `{"tags":["a","b"],"id":7919}`, object)},
		{"unique-ints", unique, list("[", "]", 10_000, "", number), list("[", "]", 10_000, "7919", number)},
		{"unique-strings", unique, list("[", "]", 10_000, "", text), list("[", "]", 10_000, `"item-1-7919"`, text)},
		{"undeclared", `{"type":"object","additionalProperties":{"type":"integer"}}`, list("{", "}", 5000, "", member), list("{", "}", 5000, `"last":1.5`, member)},
		{"undeclared-shuffled", `{"type":"object","additionalProperties":{"type":"integer"}}`, list("{", "}", 5000, "", shuffled), list("{", "}", 5000, `"last":1.5`, shuffled)},
		{"undeclared-any", `{"type":"object","required":["last"]}`, list("{", "}", 5000, `"last":1.5`, member), list("{", "}", 5000, "", member)},
		{"const-objects", `{"type":"array","items":{"enum":[{"a":1,"b":[2]},{"a":2,"b":[3]}]}}`, list("[", "]", 2000, "", constant), list("[", "]", 2000, `{"a":2,"b":[2]}`, constant)},
	}
}

// textWorkloads are strings of which the length or the format is judged.
func textWorkloads() []workload {
	random := rand.New(rand.NewPCG(5, 6))
	texts := func(name, keywords string, wrong string, item func() string) workload {
		var items []string
		for range 1000 {
			items = append(items, `"`+item()+`"`)
		}
		good := strings.Join(items, ",")
		return workload{name, `{"type":"array","items":{"type":"string",` + keywords + `}}`, "[" + good + "]", "[" + good + `,"` + wrong + `"]`}
	}
	han := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteRune(rune(0x4E00 + random.IntN(0x5000)))
		}
		return b.String()
	}
	long := han(20_000)
	pick := func(words ...string) string { return words[random.IntN(len(words))] }
	return []workload{
		{"cjk-long", `{"type":"string","maxLength":20000}`, `"` + long + `"`, `"` + long + `漢"`},
		texts("cjk-short", `"maxLength":40`, han(41), func() string { return han(35 + random.IntN(6)) }),
		texts("format-uri", `"format":"uri"`, "www.example.org/v1/items", func() string {
			return fmt.Sprintf("https://%s.example.org/%s/items/%d?page=%d&sort=name#part-%d", pick("www", "api", "docs"), pick("v1", "v2"), random.IntN(1_000_000), random.IntN(90), random.IntN(9))
		}),
		texts("format-uuid", `"format":"uuid"`, "2eb8aa08-aa98-11ea-b4aa-73b441d1638", func() string {
			return fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", random.Uint32(), random.IntN(1<<16), random.IntN(1<<16), random.IntN(1<<16), random.Uint64()>>16)
		}),
		texts("format-date-time", `"format":"date-time"`, "2026-02-30T10:00:00Z", func() string {
			return fmt.Sprintf("2026-%02d-%02dT%02d:%02d:%02d.%03d%s", 1+random.IntN(12), 1+random.IntN(28), random.IntN(24), random.IntN(60), random.IntN(60), random.IntN(1000), pick("Z", "+02:00", "-07:30"))
		}),
		texts("format-email", `"format":"email"`, "user@-example.org", func() string {
			return fmt.Sprintf("%s.%s%d@%s.example.org", pick("jane", "sam", "kim"), pick("doe", "lee", "fox"), random.IntN(1e4), pick("mail", "post"))
		}),
	}
}
