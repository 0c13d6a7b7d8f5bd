package verdict

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agentd/agentd/schema/internal/compile"
	"github.com/agentd/agentd/schema/internal/hashtable"
)

// TestScratchSpaceIsGivenUp judges payloads that make each part of the scratch
// space grow: what a large payload took must not stay with the pool, and what a
// usual one took must stay, since the next one needs it again.
func TestScratchSpaceIsGivenUp(t *testing.T) {
	numbers := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, ",%d", i)
		}
		return "[" + b.String()[1:] + "]"
	}
	members := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"m%d":0`, i)
		}
		return "{" + b.String()[1:] + "}"
	}
	text := func(n int) string { return `"\u0061` + strings.Repeat("a", n) + `"` }
	const recursive = `{"anyOf":[{"type":"number"},{"items":{"$ref":"#"}},{"items":{"$ref":"#"},"minItems":1}]}`
	lists := func(n int) string { return "[" + strings.Repeat(",[0]", n)[1:] + "]" }
	const unique = `{"uniqueItems":true,"items":{"uniqueItems":true}}`
	nested := func(doc func(n int) string) func(n int) string {
		return func(n int) string { return "[" + doc(n) + "]" }
	}
	for _, c := range []struct {
		name, schema string
		doc          func(n int) string
		few, many    int
		size         func(r *Run) int
		most         int
	}{
		{"the memo", recursive, lists, 100, 40_000, func(r *Run) int { return r.memo.Size() }, hashtable.MaxKept},
		{"the table of elements", unique, nested(numbers), 100, 40_000, func(r *Run) int { values, _ := r.ids.Size(); return values }, hashtable.MaxKept},
		{"the keys of elements", unique, func(n int) string { return "[[" + text(n) + "," + text(n+1) + "]]" }, 100, 600_000, func(r *Run) int { _, keys := r.ids.Size(); return keys }, maxKeptBytes},
		{"which elements were seen", unique, nested(numbers), 100, 40_000, func(r *Run) int { return r.seen.Size() }, hashtable.MaxKept},
		{"the hashes of elements", `{"uniqueItems":true}`, numbers, 100, 40_000, func(r *Run) int { return r.distinct.table.Size() }, hashtable.MaxKept},
		{"the elements", `{"uniqueItems":true}`, numbers, 100, 40_000, func(r *Run) int { return cap(r.distinct.elements) }, hashtable.MaxKept},
		{"the text of an element", `{"uniqueItems":true}`, func(n int) string { return "[" + text(n) + "]" }, 100, 1_100_000, func(r *Run) int { return cap(r.distinct.text) }, maxKeptBytes},
		{"a string without its escapes", `{"enum":["x"]}`, text, 100, 1_100_000, func(r *Run) int { return cap(r.text) }, maxKeptBytes},
		{"the key of an element", unique, func(n int) string { return "[[" + numbers(n) + "]]" }, 100, 300_000, func(r *Run) int { bytes, _ := r.unique.Size(); return bytes }, maxKeptBytes},
		{"the members of an element", unique, func(n int) string { return "[[" + members(n) + "]]" }, 100, 40_000, func(r *Run) int { _, members := r.unique.Size(); return members }, hashtable.MaxKept},
	} {
		s, faults := compile.Compile([]byte(c.schema))
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		r := NewRun(s)
		judge := func(n int) int {
			r.Begin(t.Context(), []byte(c.doc(n)), DefaultSteps)
			_ = r.document(s.Root, 100)
			grown := c.size(r)
			r.end()
			return grown
		}
		judge(c.few)
		if got := c.size(r); got == 0 || got > c.most {
			t.Errorf("%s: %d is kept of a usual payload", c.name, got)
		}
		if grown := judge(c.many); grown <= c.most {
			t.Errorf("%s: grew to %d only", c.name, grown)
		}
		if got := c.size(r); got > c.most {
			t.Errorf("%s: %d is kept, want at most %d", c.name, got, c.most)
		}
		judge(c.few)
		if got := c.size(r); got == 0 || got > c.most {
			t.Errorf("%s: %d is kept of a usual payload after a large one", c.name, got)
		}
	}
}
