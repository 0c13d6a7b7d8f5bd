package schema

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// jsonValue draws a value out of a small world, so that equal ones are common.
func jsonValue(t *rapid.T, depth int) any {
	kinds := 4
	if depth > 0 {
		kinds = 6
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return rapid.SampledFrom([]any{nil, true, false}).Draw(t, "word")
	case 1:
		return rapid.SampledFrom([]any{json.Number("0"), json.Number("1"), json.Number("10")}).Draw(t, "number")
	case 2, 3:
		return rapid.SampledFrom([]string{"", "a", "b", "1", "é\n"}).Draw(t, "string")
	case 4:
		list := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "length") {
			list = append(list, jsonValue(t, depth-1))
		}
		return list
	default:
		object := map[string]any{}
		for range rapid.IntRange(0, 3).Draw(t, "members") {
			object[rapid.SampledFrom([]string{"a", "b", "", "é\n"}).Draw(t, "name")] = jsonValue(t, depth-1)
		}
		return object
	}
}

// spell writes a value as JSON in a spelling of its own.
func spell(t *rapid.T, v any) string {
	gap := rapid.SampledFrom([]string{"", " ", "\n\t"}).Draw(t, "space")
	switch v := v.(type) {
	case json.Number:
		if rapid.Bool().Draw(t, "respell") {
			return map[json.Number]string{"0": "-0.0e7", "1": "10e-1", "10": "1.0E+1"}[v]
		}
		return string(v)
	case string:
		if rapid.Bool().Draw(t, "escape") {
			var b strings.Builder
			for _, r := range v {
				fmt.Fprintf(&b, `\u%04x`, r)
			}
			return `"` + b.String() + `"`
		}
		return fmt.Sprintf("%q", v)
	case []any:
		var parts []string
		for _, item := range v {
			parts = append(parts, gap+spell(t, item))
		}
		return "[" + strings.Join(parts, gap+",") + gap + "]"
	case map[string]any:
		var parts []string
		for _, name := range rapid.Permutation(names(v)).Draw(t, "order") {
			parts = append(parts, gap+spell(t, name)+gap+":"+gap+spell(t, v[name]))
		}
		return "{" + strings.Join(parts, ",") + gap + "}"
	case nil:
		return "null"
	default:
		return fmt.Sprint(v)
	}
}

func names(object map[string]any) []string {
	var all []string
	for _, name := range []string{"a", "b", "", "é\n"} {
		if _, ok := object[name]; ok {
			all = append(all, name)
		}
	}
	return all
}

// equal is the plain definition of equality in JSON Schema.
func equal(t *rapid.T, a, b any) bool {
	ja, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	jb, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(ja) == string(jb) // members come out sorted
}

func TestInternedValuesAreEqualOrNot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := jsonValue(t, 3), jsonValue(t, 3)
		if rapid.Bool().Draw(t, "same") {
			b = a
		}
		var table interner
		id := identifier{table: &table}
		textA, textB := spell(t, a), spell(t, b)
		idA, endA, _ := id.identify([]byte(textA), 0)
		idB, endB, _ := id.identify([]byte(textB), 0)
		if endA != len(textA) || endB != len(textB) {
			t.Fatalf("ends %d and %d of %q and %q", endA, endB, textA, textB)
		}
		if (idA == idB) != equal(t, a, b) {
			t.Fatalf("%s and %s have numbers %d and %d", textA, textB, idA, idB)
		}
		frozen := identifier{table: &table, frozen: true}
		if again, _, ok := frozen.identify([]byte(spell(t, a)), 0); !ok || again != idA {
			t.Fatalf("%s is not found again: %d, %v", textA, again, ok)
		}
	})
}

// TestEqualityKeywords holds const, enum and uniqueItems against the plain
// definition.
func TestEqualityKeywords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := jsonValue(t, 2), jsonValue(t, 2)
		textA, textB := spell(t, a), spell(t, b)
		for src, doc := range map[string]string{
			`{"const":` + textA + `}`:                  textB,
			`{"enum":["other",{"z":0},` + textA + `]}`: textB,
			`{"not":{"uniqueItems":true}}`:             "[" + textA + ",\"other\"," + textB + "]",
		} {
			s, err := Compile([]byte(src))
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Valid([]byte(doc)); got != equal(t, a, b) {
				t.Fatalf("%s on %s: %v", src, doc, got)
			}
		}
	})
}

func TestFrozenTableTakesNothingIn(t *testing.T) {
	var table interner
	id := identifier{table: &table}
	id.identify([]byte(`{"a":[1,"x"]}`), 0)
	before := len(table.entries)
	frozen := identifier{table: &table, frozen: true}
	for _, text := range []string{
		`"y"`, `2`, `[]`, `{}`, `[1,"x",1]`, `{"a":1}`, `{"b":1}`, `{"a":[1,"x"],"a2":1}`, `["x",1]`, `true`,
		`"` + strings.Repeat("x", 1000) + `"`, `[` + strings.Repeat("1,", 1000) + `1]`, strings.Repeat("[", 100) + strings.Repeat("]", 100),
	} {
		if _, _, ok := frozen.identify([]byte(text), 0); ok {
			t.Errorf("%s was found", text)
		}
	}
	if len(table.entries) != before || len(frozen.key) != 0 || len(frozen.pairs) != 0 {
		t.Error("looking up left traces")
	}
}

func TestInternerResetKeepsNothing(t *testing.T) {
	var table interner
	for round := range 3 {
		for i := range 1000 {
			if id := table.add(fmt.Appendf(nil, "%d", i)); int(id) != i {
				t.Fatalf("round %d: key %d has number %d", round, i, id)
			}
		}
		for i := range 1000 {
			if id, ok := table.find(fmt.Appendf(nil, "%d", i)); !ok || int(id) != i {
				t.Fatalf("round %d: key %d is found as %d, %v", round, i, id, ok)
			}
		}
		table.reset()
		if _, ok := table.find([]byte("7")); ok {
			t.Fatalf("round %d: a key survived the reset", round)
		}
	}
}

func TestMemo(t *testing.T) {
	var m memo
	for round := range 3 {
		m.reset()
		want := map[uint64]int{}
		for i := range 5000 {
			key := memoKey(uint32(i%7), i*i)
			m.put(key, i)
			want[key] = i
		}
		m.put(memoKey(0, 0), -1)
		want[memoKey(0, 0)] = -1
		for key, result := range want {
			if got, ok := m.get(key); !ok || got != result {
				t.Fatalf("round %d: key %d is %d, %v, want %d", round, key, got, ok, result)
			}
		}
		if m.used != len(want) {
			t.Fatalf("round %d: %d entries for %d keys", round, m.used, len(want))
		}
		if _, ok := m.get(memoKey(8, 1)); ok {
			t.Fatal("a key that was not put is found")
		}
	}
}

func TestNameIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		known := rapid.SliceOfNDistinct(rapid.StringMatching(`(long prefix )?[a-c]{0,3}(é|suffix)?`), 0, 30, rapid.ID).Draw(t, "names")
		var props []property
		for _, name := range known {
			props = append(props, property{name: name})
		}
		var x nameIndex
		x.build(props)
		for i, name := range known {
			if got := x.find(props, []byte(name)); got != i {
				t.Fatalf("%q is found at %d, want %d", name, got, i)
			}
			for _, other := range []string{name + "x", "x" + name, name + "\x00"} {
				got, want := x.find(props, []byte(other)), -1
				for k := range known {
					if known[k] == other {
						want = k
					}
				}
				if got != want {
					t.Fatalf("%q is found at %d, want %d", other, got, want)
				}
			}
		}
	})
}
