package schema

import (
	"fmt"
	"strings"
	"testing"
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
	for _, c := range []struct {
		name, schema string
		doc          func(n int) string
		few, many    int
		size         func(r *run) int
		most         int
	}{
		{"the memo", recursive, lists, 100, 40_000, func(r *run) int { return len(r.memo.slots) }, maxKeptSlots},
		{"the table of elements", `{"uniqueItems":true}`, numbers, 100, 20_000, func(r *run) int { return len(r.ids.table) }, maxKeptSlots},
		{"the keys of elements", `{"uniqueItems":true}`, func(n int) string { return "[" + text(n) + "," + text(n+1) + "]" }, 100, 600_000, func(r *run) int { return cap(r.ids.arena) }, maxKeptBytes},
		{"which elements were seen", `{"uniqueItems":true}`, numbers, 100, 40_000, func(r *run) int { return len(r.seen.slots) }, maxKeptSlots},
		{"a string without its escapes", `{"enum":["x"]}`, text, 100, 1_100_000, func(r *run) int { return cap(r.text) }, maxKeptBytes},
		{"the key of an element", `{"uniqueItems":true}`, func(n int) string { return "[" + numbers(n) + "]" }, 100, 300_000, func(r *run) int { return cap(r.unique.key) }, maxKeptBytes},
		{"the members of an element", `{"uniqueItems":true}`, func(n int) string { return "[" + members(n) + "]" }, 100, 40_000, func(r *run) int { return cap(r.unique.pairs) }, maxKeptSlots},
	} {
		s, faults := compileSource([]byte(c.schema))
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		r := newRun(s)
		judge := func(n int) int {
			r.begin([]byte(c.doc(n)))
			r.document(s.root, 100)
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

// TestMemoDropsSparseTables pins which tables are dropped and not cleared, which
// would take time in proportion to a larger payload than the last.
func TestMemoDropsSparseTables(t *testing.T) {
	for _, c := range []struct {
		slots, used int
		kept        bool
	}{
		{1024, 1, true}, {2048, 1, false}, {2048, 127, false}, {2048, 128, true}, {maxKeptSlots, 20_000, true}, {2 * maxKeptSlots, 40_000, false},
	} {
		var m memo
		m.put(0, 0)
		m.slots = make([]memoSlot, c.slots)
		m.used = 0
		for i := range c.used {
			m.put(uint64(i), 7)
		}
		if len(m.slots) != c.slots {
			t.Fatalf("%d slots for %d entries", len(m.slots), c.used)
		}
		m.reset()
		if (m.slots != nil) != c.kept {
			t.Errorf("%d slots with %d entries: kept %v", c.slots, c.used, !c.kept)
		}
		if _, ok := m.get(0); ok || m.used != 0 {
			t.Errorf("%d slots with %d entries: an entry survived", c.slots, c.used)
		}
		if m.put(0, 3); m.used != 1 {
			t.Errorf("%d entries after one was put", m.used)
		}
	}
}

// TestInternerTrim gives up the memory of large payloads and only that, and
// forgets the values in either case.
func TestInternerTrim(t *testing.T) {
	for _, c := range []struct {
		name string
		keys int
		size int
		kept bool
	}{
		{"few", 10, 8, true}, {"as many as are kept", maxKeptSlots / 2, 8, true}, {"one more", maxKeptSlots/2 + 1, 8, false}, {"long ones", 3, maxKeptBytes / 2, false},
	} {
		var table interner
		key := func(i int) []byte { return fmt.Appendf(nil, "%0*d", c.size, i) }
		for i := range c.keys {
			table.add(key(i))
		}
		table.trim()
		if (table.table != nil) != c.kept {
			t.Errorf("%s: kept %v", c.name, !c.kept)
		}
		if _, found := table.find(key(0)); found || len(table.entries) != 0 || len(table.arena) != 0 || table.longest != 0 {
			t.Errorf("%s: a value survived", c.name)
		}
		if id := table.add(key(1)); id != 0 {
			t.Errorf("%s: the first value has number %d", c.name, id)
		}
		if _, found := table.find(key(0)); found {
			t.Errorf("%s: a value came back", c.name)
		}
	}
}
