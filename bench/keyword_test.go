package bench_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkKeyword measures 64 KB arrays in which one keyword does most of the
// work, where the general benchmark uses it little or not at all.
func BenchmarkKeyword(b *testing.B) {
	const (
		circle = `{"type":"object","properties":{"kind":{"const":"circle"},"r":{"type":"number"}},"required":["kind","r"]}`
		square = `{"type":"object","properties":{"kind":{"const":"square"},"w":{"type":"number"}},"required":["kind","w"]}`
		named  = `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`
	)
	text := func(r *rand.Rand, _ int) string { return fmt.Sprintf(`"a%d-%x"`, r.Uint32(), r.Uint64()) }
	shape := func(r *rand.Rand, i int) string {
		if i%2 == 0 {
			return fmt.Sprintf(`{"kind":"circle","r":%d}`, r.IntN(1000))
		}
		return fmt.Sprintf(`{"kind":"square","w":%d}`, r.IntN(1000))
	}
	for _, c := range []struct {
		name, items, more string
		item              func(r *rand.Rand, i int) string
	}{
		{"pattern", `{"type":"string","pattern":"^[a-z0-9][a-z0-9-]*$"}`, ``, text},
		{"uniqueItems", `{"type":"string"}`, `,"uniqueItems":true`, text},
		{"format", `{"type":"string","format":"date-time"}`, ``, func(r *rand.Rand, _ int) string {
			return fmt.Sprintf(`"2026-%02d-%02dT%02d:%02d:%02d.%03dZ"`, 1+r.IntN(12), 1+r.IntN(28), r.IntN(24), r.IntN(60), r.IntN(60), r.IntN(1000))
		}},
		{"oneOf-const", `{"oneOf":[` + circle + `,` + square + `]}`, ``, shape},
		{"anyOf", `{"anyOf":[` + named + `,` + square + `,` + circle + `]}`, ``, shape},
		{"undeclared", `{"type":"object","additionalProperties":{"type":"integer"}}`, ``, func(r *rand.Rand, _ int) string {
			return fmt.Sprintf(`{"first":%d,"second":%d,"third member":%d}`, r.IntN(99), r.IntN(99), r.IntN(99))
		}},
	} {
		random := rand.New(rand.NewPCG(1, 2))
		var payload bytes.Buffer
		for i := 0; payload.Len() < 64<<10; i++ {
			payload.WriteByte("[,"[min(i, 1)])
			payload.WriteString(c.item(random, i))
		}
		payload.WriteByte(']')
		measure(b, "keyword="+c.name, []byte(`{"type":"array","items":`+c.items+c.more+`}`), payload.Bytes())
	}
}
