package strictyaml_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/internal/strictyaml"
)

// jsonOf parses src and returns its value as JSON, and all faults as text.
func jsonOf(t *testing.T, name, src string) (string, string) {
	t.Helper()
	f, err := strictyaml.Parse(name, []byte(src))
	if err != nil {
		return "", err.Error()
	}
	faults := ""
	if err := f.Err(); err != nil {
		faults = err.Error()
	}
	return string(f.Root().AppendJSON(nil)), faults
}

func TestScalarsFollowYAML12(t *testing.T) {
	for _, c := range []struct{ yaml, want string }{
		{`1`, `1`}, {`-7`, `-7`}, {`+12`, `12`}, {`-0`, `-0`},
		{`017`, `17`}, {`0x1F`, `31`}, {`0o17`, `15`},
		{`60_000`, `60000`}, {`0xFF_FF`, `65535`}, {`1_000.5`, `1000.5`},
		{`_1`, `"_1"`}, {`1_`, `"1_"`}, {`1__0`, `"1__0"`},
		{`.5`, `0.5`}, {`-.5`, `-0.5`}, {`1.`, `1`}, {`1.50`, `1.50`}, {`1.e3`, `1e3`}, {`1E+3`, `1E+3`},
		{`1e400`, `1e400`}, {`1e-999999999`, `1e-999999999`},
		{`123456789012345678901234567890`, `123456789012345678901234567890`},
		{`0x123456789012345678901234567890`, `94522879687365475552814062743484560`},
		{`9007199254740993`, `9007199254740993`},
		{`0b11`, `"0b11"`}, {`-0x1`, `"-0x1"`}, {`190:20:30`, `"190:20:30"`}, {`1e`, `"1e"`}, {`.`, `"."`}, {`1.2.3`, `"1.2.3"`}, {`0x`, `"0x"`},
		{`true`, `true`}, {`False`, `false`}, {`TRUE`, `true`}, {`tRUE`, `"tRUE"`},
		{`yes`, `"yes"`}, {`no`, `"no"`}, {`on`, `"on"`}, {`off`, `"off"`}, {`y`, `"y"`}, {`n`, `"n"`},
		{`~`, `null`}, {`null`, `null`}, {`Null`, `null`}, {``, `null`}, {`nULL`, `"nULL"`},
		{`2026-01-02`, `"2026-01-02"`}, {`2026-01-02T03:04:05Z`, `"2026-01-02T03:04:05Z"`},
		{`"1"`, `"1"`}, {`'no'`, `"no"`}, {`=`, `"="`},
		{`!!str 12`, `"12"`}, {`!!int 12`, `12`}, {`!!float 1`, `1`}, {`!!bool true`, `true`}, {`!!timestamp 2026-01-02`, `"2026-01-02"`},
		{`"tab\tquote\" é <b> ` + "\U0001F600" + `"`, `"tab\tquote\" é <b> ` + "\U0001F600" + `"`},
		{"|\n  two\n  lines", `"two\nlines\n"`},
	} {
		got, faults := jsonOf(t, "f.yaml", "k: "+c.yaml+"\n")
		if want := `{"k":` + c.want + `}`; got != want && got != strings.Replace(want, `\n"}`, `"}`, 1) || faults != "" {
			t.Errorf("%s: got %s, want %s; faults %q", c.yaml, got, want, faults)
		}
		if !json.Valid([]byte(got)) {
			t.Errorf("%s: not JSON: %s", c.yaml, got)
		}
	}
}

func TestStructure(t *testing.T) {
	got, faults := jsonOf(t, "f.yaml", "z: [1, {b: x}]\na: &base {k: v}\nm: *base\n\"2\": []\ne: {}\n")
	if want := `{"z":[1,{"b":"x"}],"a":{"k":"v"},"m":{"k":"v"},"2":[],"e":{}}`; got != want || faults != "" {
		t.Errorf("got %s, faults %q; want %s, in declared order", got, faults, want)
	}
	got, faults = jsonOf(t, "f.JSON", "\ufeff{ \"z\": [1, -0.0, 1E5, {\"b\": \"\\u00e9\\/\"}],\n\t\"a\": null, \"t\": true }\n")
	if want := `{"z":[1,-0.0,1E5,{"b":"é/"}],"a":null,"t":true}`; got != want || faults != "" {
		t.Errorf("got %s, faults %q; want %s", got, faults, want)
	}
}

func TestFaultsOfTheSource(t *testing.T) {
	for _, c := range []struct{ name, file, src, want string }{
		{"empty", "f.yaml", "", `f.yaml:1:1: the file is empty`},
		{"comment only", "f.yaml", "# x\n", `f.yaml:1:1: the file is empty`},
		{"second document", "f.yaml", "a: 1\n---\nb: 2\n", "f.yaml:2:1: a second YAML document begins here: a file holds one (split the file, or remove the `---`)"},
		{"syntax", "f.yaml", "a: b: c\n", `f.yaml:1:5: invalid YAML: mapping values are not allowed in this context`},
		{"tab", "f.yaml", "a:\n\tb: 1\n", `f.yaml:2:1: invalid YAML: found character that cannot start any token while scanning for the next token`},
		{"not UTF-8", "f.yaml", "a: 1\nb: \xff\n", `f.yaml:2:4: invalid YAML: invalid leading UTF-8 octet (value: 255)`},
		{"unknown anchor", "f.yaml", "a: *b\n", `f.yaml:1:4: invalid YAML: unknown anchor 'b' referenced`},
		{"alias to a parent", "f.yaml", "a: &a [*a]\n", `f.yaml:1:8: /a/0: the alias *a refers to a value that contains it`},
		{"infinity", "f.yaml", "a: [.inf]\n", `f.yaml:1:5: /a/0: .inf has no JSON value`},
		{"binary", "f.yaml", "a: !!binary aGk=\n", `f.yaml:1:4: /a: the tag !!binary is not supported (write a quoted string without a tag)`},
		{"application tag", "f.yaml", "a: !env X\n", `f.yaml:1:4: /a: the tag !env is not supported (write a quoted string without a tag)`},
		{"tagged mapping", "f.yaml", "a: !!set {x: }\n", `f.yaml:1:4: /a: the tag !!set is not supported (remove the tag)`},
		{"wrong tag", "f.yaml", "a: !!int x\n", `f.yaml:1:4: /a: the tag !!int needs a number`},
		{"merge", "f.yaml", "a: &x {b: 1}\nc:\n  <<: *x\n", `f.yaml:3:3: /c: merge keys (<<) are not supported (write the keys out, or alias the whole value)`},
		{"number as key", "f.yaml", "404: x\n", `f.yaml:1:1: a mapping's key must be a string, not a number (quote the key)`},
		{"list as key", "f.yaml", "? [a]\n: x\n", `f.yaml:1:3: a mapping's key must be a string`},
		{"long number", "f.yaml", "a: 0x" + strings.Repeat("f", 5000), `f.yaml:1:4: /a: the number is too long`},
		{"two duplicates", "f.yaml", "é: {b: 1, c: 2, b: 3}\na: 1\né: 2\n", "f.yaml:1:17: /é/b: duplicate key \"b\", first on line 1 (keep one of them)\nf.yaml:3:1: /é: duplicate key \"é\", first on line 1 (keep one of them)"},
		{"pointer escapes", "f.yaml", "a/b~c: [.nan]\n", `f.yaml:1:9: /a~1b~0c/0: .nan has no JSON value`},

		{"YAML in JSON", "f.json", "a: 1\n", `f.json:1:1: invalid JSON: expected a value`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, got := jsonOf(t, c.file, c.src); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestBounds(t *testing.T) {
	laughs := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < 9; i++ {
		ref := "*a" + string(rune('0'+i-1))
		laughs += "a" + string(rune('0'+i)) + ": &a" + string(rune('0'+i)) + " [" + strings.Repeat(ref+", ", 9) + ref + "]\n"
	}
	for _, c := range []struct{ name, file, src, want string }{
		{"billion laughs", "f.yaml", laughs, "more than 200000 values"},
		{"deep YAML", "f.yaml", strings.Repeat("[", 100_000), "max depth"},
		{"rather deep YAML", "f.yaml", strings.Repeat("[", 200) + strings.Repeat("]", 200), "deeper than 128 levels"},
		{"deep JSON", "f.json", strings.Repeat("[", 100_000), "deeper than 128 levels"},
		{"big", "f.yaml", "a: " + strings.Repeat("x", strictyaml.MaxBytes), "larger than 4194304 bytes"},
		{"many values", "f.json", "[" + strings.Repeat("0,", 250_000) + "0]", "more than 200000 values"},
		{"many faults", "f.yaml", "[" + strings.Repeat(".inf, ", 1000) + "x]", "and 800 more faults"},
	} {
		t.Run(c.name, func(t *testing.T) {
			start := time.Now()
			_, got := jsonOf(t, c.file, c.src)
			if !strings.Contains(got, c.want) {
				t.Errorf("got %.200s, want %s", got, c.want)
			}
			if d := time.Since(start); d > 20*time.Second {
				t.Errorf("took %v", d)
			}
		})
	}
}

const sample = `name: demo
count: 6e4
wait: 1500
ratio: 0.5
on: true
mode: fast
tags: [a, b]
env: {A: x, B: ""}
`

type model struct {
	Name  string
	Count int64
	Wait  time.Duration
	Ratio float64
	On    bool
	Mode  string
	Tags  []string
	Env   map[string]string
}

func decode(v strictyaml.Value) model {
	o := v.Object()
	defer o.Done()
	return model{
		Name:  o.Need("name").Text(),
		Count: o.Get("count").Int(1, 100_000),
		Wait:  o.Get("wait").Millis(time.Minute),
		Ratio: o.Get("ratio").Float(0, 1),
		On:    o.Get("on").Bool(),
		Mode:  o.Get("mode").Enum("fast", "slow"),
		Tags:  o.Get("tags").AtLeastOne("tag").Texts(),
		Env:   o.Get("env").StringMap(),
	}
}

func TestDecode(t *testing.T) {
	f, err := strictyaml.Parse("f.yaml", []byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	m := decode(f.Root())
	if err := f.Err(); err != nil {
		t.Fatal(err)
	}
	if m.Name != "demo" || m.Count != 60000 || m.Wait != 1500*time.Millisecond || m.Ratio != 0.5 || !m.On ||
		m.Mode != "fast" || strings.Join(m.Tags, ",") != "a,b" || m.Env["A"] != "x" || len(m.Env) != 2 {
		t.Errorf("got %+v", m)
	}
}

func TestDecodeReportsEveryFault(t *testing.T) {
	for _, c := range []struct{ name, src, want string }{
		{"missing", "count: 1\n", `f.yaml:1:1: the key "name" is missing`},
		{"not a mapping", "[1]\n", `f.yaml:1:1: expected a mapping but got a list`},
		{"null", "name:\n", `f.yaml:1:6: /name: expected a string but got null`},
		{"number for a string", "name: 1.2\n", `f.yaml:1:7: /name: expected a string but got a number (quote the value)`},
		{"empty string", "name: \"\"\n", `f.yaml:1:7: /name: the string must not be empty`},
		{"fraction", "{name: x, count: 1.5}\n", `f.yaml:1:18: /count: expected a whole number`},
		{"below", "{name: x, count: 0}\n", `f.yaml:1:18: /count: expected a whole number from 1 to 100000`},
		{"huge", "{name: x, count: 1e999999999}\n", `f.yaml:1:18: /count: expected a whole number`},
		{"zero milliseconds", "{name: x, wait: 0}\n", `f.yaml:1:17: /wait: expected a whole number from 1 to 60000`},
		{"enum", "{name: x, mode: fats}\n", `f.yaml:1:17: /mode: expected one of fast, slow (did you mean "fast"?)`},
		{"empty list", "{name: x, tags: []}\n", `f.yaml:1:17: /tags: expected at least one tag`},
		{"item", "{name: x, tags: [a, 7]}\n", `f.yaml:1:21: /tags/1: expected a string but got a number (quote the value)`},
		{"map value", "{name: x, env: {A: 1}}\n", `f.yaml:1:20: /env/A: expected a string but got a number (quote the value)`},
		{"typo", "name: x\ncuont: 3\n", `f.yaml:2:1: /cuont: unknown key "cuont" (did you mean "count"?)`},
		{"case", "name: x\nCOUNT: 3\n", `f.yaml:2:1: /COUNT: unknown key "COUNT" (did you mean "count"?)`},
		{"unrelated", "name: x\nwhatever: 3\n", `f.yaml:2:1: /whatever: unknown key "whatever" (known keys: name, count, wait, ratio, on, mode, tags, env)`},
		{"all at once, by position", "on: 1\nmod: fast\ncount: x\n",
			"f.yaml:1:1: the key \"name\" is missing\n" +
				"f.yaml:1:5: /on: expected a boolean but got a number\n" +
				"f.yaml:2:1: /mod: unknown key \"mod\" (did you mean \"mode\"?)\n" +
				"f.yaml:3:8: /count: expected a number but got a string"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := strictyaml.Parse("f.yaml", []byte(c.src))
			if err != nil {
				t.Fatal(err)
			}
			decode(f.Root())
			err = f.Err()
			if err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestAlternativeSpellings(t *testing.T) {
	read := func(src string) (int64, error) {
		f, err := strictyaml.Parse("f.yaml", []byte(src))
		if err != nil {
			t.Fatal(err)
		}
		o := f.Root().Object()
		n := o.GetAny("maxItems", "max_items").Int(0, 9)
		o.PassOver("theirs")
		o.PassOverPrefix("x-")
		o.Done()
		return n, f.Err()
	}
	for _, src := range []string{"maxItems: 3", "max_items: 3\ntheirs: [1]\nx-a: 1"} {
		if n, err := read(src); n != 3 || err != nil {
			t.Errorf("%s: got %d, %v", src, n, err)
		}
	}
	if _, err := read("max_items: 3\nmaxItems: 3"); err == nil || !strings.Contains(err.Error(), `f.yaml:1:1: /max_items: "maxItems" and "max_items" are one key`) {
		t.Errorf("both spellings: %v", err)
	}
	if _, err := read("max-items: 3"); err == nil || !strings.Contains(err.Error(), `did you mean "maxItems"?`) {
		t.Errorf("a third spelling: %v", err)
	}
}

func TestLocate(t *testing.T) {
	f, err := strictyaml.Parse("f.yaml", []byte("top:\n  schema:\n    type: object\n    oneOf:\n      - {a/b: 1}\n      - ~x: 2\n"))
	if err != nil {
		t.Fatal(err)
	}
	schema := f.Root().Object().Get("top").Object().Get("schema")
	for _, c := range []struct {
		pointer, whole string
		line, column   int
	}{
		{"", "/top/schema", 2, 3},
		{"/type", "/top/schema/type", 3, 5},
		{"/oneOf/0/a~1b", "/top/schema/oneOf/0/a~1b", 5, 10},
		{"/oneOf/1/~0x", "/top/schema/oneOf/1/~0x", 6, 9},
		{"/oneOf/7/x", "/top/schema/oneOf/7/x", 4, 5},
		{"/nowhere", "/top/schema/nowhere", 2, 3},
	} {
		for _, p := range []strictyaml.Position{schema.Locate(c.pointer), schema.Places().Locate(c.pointer)} {
			if p.Line != c.line || p.Column != c.column || p.Pointer != c.whole || p.File != "f.yaml" {
				t.Errorf("%q leads to %+v, want %d:%d %s", c.pointer, p, c.line, c.column, c.whole)
			}
		}
	}
	if p := (strictyaml.Places{}).Locate("/x"); p != (strictyaml.Position{Pointer: "/x"}) {
		t.Errorf("in no file it is at %+v", p)
	}
}

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	if _, err := strictyaml.ReadFile(filepath.Join(dir, "none.yaml"), ""); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file gives %v", err)
	}
	if _, err := strictyaml.ReadFile(dir, "d"); err == nil || err.Error() != "d is a directory, not a file" {
		t.Errorf("a directory gives %v", err)
	}
	path := filepath.Join(dir, "f.yaml")
	if err := os.WriteFile(path, []byte("a: b: c"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := strictyaml.ReadFile(path, "shown.yaml")
	var e *strictyaml.Error
	if !errors.As(err, &e) || len(e.Faults) != 1 || e.Faults[0].File != "shown.yaml" || e.Faults[0].Line != 1 {
		t.Errorf("got %v", err)
	}
}

func TestJoinKeepsFilesTogether(t *testing.T) {
	fault := func(file string, line int, msg string) strictyaml.Fault {
		return strictyaml.Position{File: file, Line: line, Column: 1}.Fault(msg, "")
	}
	disk := errors.New("disk on fire")
	err := strictyaml.Join(nil,
		&strictyaml.Error{Faults: []strictyaml.Fault{fault("b", 2, "1")}, Omitted: 3},
		disk,
		&strictyaml.Error{Faults: []strictyaml.Fault{fault("a", 1, "3"), fault("b", 1, "0")}},
	)
	if want := "b:1:1: 0\nb:2:1: 1\na:1:1: 3\nand 3 more faults\ndisk on fire"; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if !errors.Is(err, disk) {
		t.Error("the other error is lost")
	}
	if strictyaml.Join(nil, nil) != nil {
		t.Error("nothing joined is an error")
	}
	if err := strictyaml.Join(disk); err != disk {
		t.Errorf("one error joined is %v", err)
	}
}

func TestFaultAsJSON(t *testing.T) {
	f := strictyaml.Position{File: "f", Line: 1, Column: 2, Pointer: "/a"}.Fault("m", "h")
	got, err := json.Marshal(f)
	if want := `{"file":"f","line":1,"column":2,"pointer":"/a","message":"m","hint":"h"}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v", got, err)
	}
}
