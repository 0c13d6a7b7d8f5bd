package strictyaml_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/internal/strictyaml"
)

// tree is a value to be written as text; exactly one of its parts is used.
type tree struct {
	scalar string // a JSON scalar
	keys   []string
	items  []tree
	list   bool
}

func (t tree) leaf() bool { return t.scalar != "" }

// trees draws values up to a depth.
func trees(depth int) *rapid.Generator[tree] {
	scalars := rapid.SampledFrom([]string{
		`"a"`, `""`, `"yes"`, `"1"`, `"é 😀"`, `"two\nlines"`, `"\"quoted\""`, `"# no comment"`, `": "`, `"- x"`, `"null"`, `"{}"`,
		"0", "-1", "1.50", "6e4", "123456789012345678901234567890", "true", "false", "null",
	})
	return rapid.Custom(func(t *rapid.T) tree {
		kind := rapid.IntRange(0, 3).Draw(t, "kind")
		if depth == 0 || kind < 2 {
			return tree{scalar: scalars.Draw(t, "scalar")}
		}
		out := tree{list: kind == 2}
		if !out.list {
			out.keys = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "long key", "1", "~", "a/b", "é", "yes", ""}), 1, 4, rapid.ID[string]).Draw(t, "keys")
		}
		n := len(out.keys)
		if out.list {
			n = rapid.IntRange(1, 3).Draw(t, "n")
		}
		for range n {
			out.items = append(out.items, trees(depth-1).Draw(t, "item"))
		}
		return out
	})
}

func (t tree) json() string {
	if t.leaf() {
		return t.scalar
	}
	parts := make([]string, len(t.items))
	for i, item := range t.items {
		parts[i] = item.json()
		if !t.list {
			parts[i] = quote(t.keys[i]) + ":" + parts[i]
		}
	}
	if t.list {
		return "[" + strings.Join(parts, ",") + "]"
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func quote(s string) string {
	out, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(out)
}

// place is where a writer put a value (a member: its key).
type place struct{ line, column int }

// blockWriter writes trees in YAML's block style and keeps every place.
type blockWriter struct {
	b      strings.Builder
	line   int
	column int
	places map[string]place
}

func (w *blockWriter) text(s string) {
	for _, r := range s {
		if w.column++; r == '\n' {
			w.line, w.column = w.line+1, 1
		}
		w.b.WriteRune(r)
	}
}

// value writes t, whose first line has begun, at an indentation.
func (w *blockWriter) value(t tree, pointer string, indent int) {
	if t.leaf() {
		w.text(t.scalar + "\n")
		return
	}
	for i, item := range t.items {
		if i > 0 {
			w.text(strings.Repeat(" ", indent))
		}
		if t.list {
			w.text("- ")
			child := pointer + "/" + strconv.Itoa(i)
			w.places[child] = place{w.line, w.column}
			w.value(item, child, indent+2)
			continue
		}
		child := pointer + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(t.keys[i])
		w.places[child] = place{w.line, w.column}
		w.text(quote(t.keys[i]) + ":")
		if item.leaf() {
			w.text(" ")
			w.value(item, child, 0)
			continue
		}
		w.text("\n" + strings.Repeat(" ", indent+2))
		w.value(item, child, indent+2)
	}
}

// TestBlockStyle writes random values as YAML and demands the same value back,
// and every part of it at the place where it was written.
func TestBlockStyle(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		value := trees(4).Draw(rt, "value")
		w := blockWriter{line: 1, column: 1, places: map[string]place{"": {1, 1}}}
		w.value(value, "", 0)
		f, err := strictyaml.Parse("f.yaml", []byte(w.b.String()))
		if err == nil {
			err = f.Err()
		}
		if err != nil {
			rt.Fatalf("%v in\n%s", err, w.b.String())
		}
		if got := string(f.Root().AppendJSON(nil)); !sameJSON(got, value.json()) {
			rt.Fatalf("got  %s\nwant %s\nfrom\n%s", got, value.json(), w.b.String())
		}
		places := f.Root().Places()
		for pointer, want := range w.places {
			p := f.Root().Locate(pointer)
			if q := places.Locate(pointer); q != p {
				rt.Fatalf("%q is at %+v, and its places say %+v, in\n%s", pointer, p, q, w.b.String())
			}
			if (place{p.Line, p.Column}) != want || p.Pointer != pointer {
				rt.Fatalf("%q is at %d:%d, want %v, in\n%s", pointer, p.Line, p.Column, want, w.b.String())
			}
		}
	})
}

// sameJSON compares texts whose strings may be escaped differently.
func sameJSON(a, b string) bool {
	unescape := func(s string) string {
		var b strings.Builder
		dec := json.NewDecoder(strings.NewReader(s))
		dec.UseNumber()
		for {
			token, err := dec.Token()
			if err != nil {
				return b.String()
			}
			fmt.Fprintf(&b, "%T %v\n", token, token)
		}
	}
	return unescape(a) == unescape(b)
}

// TestBothFormatsAgree reads random JSON, with white space in it, as JSON and
// as YAML, of which it is a subset: same value, same places.
func TestBothFormatsAgree(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		value := trees(4).Draw(rt, "value").json()
		var b strings.Builder
		depth := 0
		for i := 0; i < len(value); i++ {
			c := value[i]
			if c == '"' { // strings stay as they are
				end := i + 1
				for value[end] != '"' {
					if value[end] == '\\' {
						end++
					}
					end++
				}
				b.WriteString(value[i : end+1])
				i = end
				continue
			}
			b.WriteByte(c)
			switch c {
			case '{', '[':
				depth++
			case '}', ']':
				depth--
			}
			if depth > 0 && strings.ContainsRune("{[,:", rune(c)) {
				b.WriteString(rapid.SampledFrom([]string{" ", "  ", "\n ", "\n\n   "}).Draw(rt, "space"))
			}
		}
		src := []byte(b.String())
		asJSON, err := strictyaml.Parse("f.json", src)
		if err != nil {
			rt.Fatalf("%v in %s", err, src)
		}
		asYAML, err := strictyaml.Parse("f.yaml", src)
		if err != nil {
			rt.Fatalf("%v in %s", err, src)
		}
		one, other := asJSON.Root().AppendJSON(nil), asYAML.Root().AppendJSON(nil)
		if string(one) != string(other) {
			rt.Fatalf("as JSON %s\nas YAML %s", one, other)
		}
		for _, pointer := range pointers(asJSON.Root(), "") {
			p, q := asJSON.Root().Locate(pointer), asYAML.Root().Locate(pointer)
			if p.Line != q.Line || p.Column != q.Column {
				rt.Fatalf("%q is at %d:%d in JSON and at %d:%d in YAML, in\n%s", pointer, p.Line, p.Column, q.Line, q.Column, src)
			}
		}
	})
}

// pointers lists every place in a value.
func pointers(v strictyaml.Value, at string) []string {
	out := []string{at}
	switch v.Kind() {
	case strictyaml.Map:
		for _, e := range v.Entries() {
			out = append(out, pointers(e.Value, at+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(e.Name))...)
		}
	case strictyaml.List:
		for i, item := range v.List() {
			out = append(out, pointers(item, at+"/"+strconv.Itoa(i))...)
		}
	}
	return out
}

// TestEveryAccessorOnEveryKind: an accessor accepts its own kind and records
// one fault, and no other, on any other; absence is no fault.
func TestEveryAccessorOnEveryKind(t *testing.T) {
	samples := []struct {
		kind strictyaml.Kind
		text string
	}{
		{strictyaml.Null, "~"}, {strictyaml.Bool, "true"}, {strictyaml.Number, "7"},
		{strictyaml.String, "fast"}, {strictyaml.List, "[fast]"}, {strictyaml.Map, "{fast: fast}"},
	}
	accessors := []struct {
		name    string
		accepts strictyaml.Kind
		call    func(strictyaml.Value)
	}{
		{"String", strictyaml.String, func(v strictyaml.Value) { _ = v.String() }},
		{"Text", strictyaml.String, func(v strictyaml.Value) { v.Text() }},
		{"Enum", strictyaml.String, func(v strictyaml.Value) { v.Enum("fast", "slow") }},
		{"Bool", strictyaml.Bool, func(v strictyaml.Value) { v.Bool() }},
		{"Int", strictyaml.Number, func(v strictyaml.Value) { v.Int(0, 10) }},
		{"Float", strictyaml.Number, func(v strictyaml.Value) { v.Float(0, 10) }},
		{"Millis", strictyaml.Number, func(v strictyaml.Value) { v.Millis(1e9) }},
		{"List", strictyaml.List, func(v strictyaml.Value) { v.List() }},
		{"Texts", strictyaml.List, func(v strictyaml.Value) { v.Texts() }},
		{"Entries", strictyaml.Map, func(v strictyaml.Value) { v.Entries() }},
		{"StringMap", strictyaml.Map, func(v strictyaml.Value) { v.StringMap() }},
		{"Object", strictyaml.Map, func(v strictyaml.Value) { o := v.Object(); o.Need("fast"); o.Done() }},
	}
	for _, a := range accessors {
		for _, s := range samples {
			f, err := strictyaml.Parse("f.yaml", []byte("k: "+s.text))
			if err != nil {
				t.Fatal(err)
			}
			o := f.Root().Object()
			a.call(o.Get("k"))
			a.call(o.Get("absent"))
			err = f.Err()
			if s.kind == a.accepts {
				if err != nil {
					t.Errorf("%s of %v: %v", a.name, s.kind, err)
				}
				continue
			}
			want := fmt.Sprintf("f.yaml:1:4: /k: expected %v but got %v", a.accepts, s.kind)
			if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s of %v: got %v, want %s", a.name, s.kind, err, want)
			}
		}
	}
}

func TestWholeNumbers(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "-0": 0, "7.0": 7, "7e0": 7, "70e-1": 7, "9007199254740993": 9007199254740993, "-9223372036854775808": -9223372036854775808,
		"9223372036854775807": 9223372036854775807, "9007199254740991.0": 9007199254740991,
	} {
		f, err := strictyaml.Parse("f.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Root().Int(-1<<63, 1<<63-1); got != want || f.Err() != nil {
			t.Errorf("%s: %d, %v", text, got, f.Err())
		}
	}
	for _, text := range []string{"7.5", "1e-1", "9223372036854775808", "1e19", "9007199254740992.0", "9007199254740993.0", "1e400"} {
		f, err := strictyaml.Parse("f.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Root().Int(-1<<63, 1<<63-1); got != 0 || f.Err() == nil {
			t.Errorf("%s: %d without a fault", text, got)
		}
	}
}

// TestAliasesKeepTheirOwnPointers: one value used twice has two pointers, and
// faults in it are reported for each use.
func TestAliasesKeepTheirOwnPointers(t *testing.T) {
	f, err := strictyaml.Parse("f.yaml", []byte("base: &b {port: x}\none: *b\ntwo: *b\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range f.Root().Entries() {
		o := e.Value.Object()
		o.Get("port").Int(1, 10)
		o.Done()
	}
	want := "f.yaml:1:17: /base/port: expected a number but got a string\n" +
		"f.yaml:1:17: /one/port: expected a number but got a string\n" +
		"f.yaml:1:17: /two/port: expected a number but got a string"
	if err := f.Err(); err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

// TestFailTakesFaultsOfOthers: what a later stage finds joins the file's own
// faults, in their order.
func TestFailTakesFaultsOfOthers(t *testing.T) {
	f, err := strictyaml.Parse("f.yaml", []byte("a: 1\nb: 2\n"))
	if err != nil {
		t.Fatal(err)
	}
	root := f.Root()
	root.FaultBelow("/b", "second", "")
	f.Fail(&strictyaml.Error{Faults: []strictyaml.Fault{root.Locate("/a").Fault("first", "do this")}})
	f.Fail(fmt.Errorf("about the file"))
	want := "f.yaml: about the file\nf.yaml:1:1: /a: first (do this)\nf.yaml:2:1: /b: second"
	if err := f.Err(); err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

// TestManyFaultsStayCheap: faults beyond those that are kept cost no search for
// the nearest key or the place.
func TestManyFaultsStayCheap(t *testing.T) {
	const n = 100_000
	var b strings.Builder
	b.WriteByte('{')
	for i := range n {
		fmt.Fprintf(&b, `"unknown-key-number-%d":0,`, i)
	}
	b.WriteString(`"name":"x"}`)
	f, err := strictyaml.Parse("f.json", []byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	o := f.Root().Object()
	o.Need("name").Text()
	for i := range 20 {
		o.Get(fmt.Sprintf("some-known-key-number-%d", i))
	}
	start := time.Now()
	o.Done()
	for i := range n {
		f.Root().FaultBelow("/name", strconv.Itoa(i), "")
	}
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("took %v", d)
	}
	if err := f.Err(); err == nil || !strings.HasSuffix(err.Error(), fmt.Sprintf("and %d more faults", 2*n-200)) {
		t.Errorf("got ...%s", err.Error()[max(0, len(err.Error())-100):])
	}
}
