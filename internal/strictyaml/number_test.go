package strictyaml_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/internal/strictyaml"
)

// kindOf reads one plain scalar.
func kindOf(t interface{ Fatal(...any) }, scalar string) (kind strictyaml.Kind, json string) {
	f, err := strictyaml.Parse("f.yaml", []byte("k: "+scalar+"\n"))
	if err == nil {
		err = f.Err()
	}
	if err != nil {
		t.Fatal(err)
	}
	v := f.Root().Object().Get("k")
	return v.Kind(), string(v.AppendJSON(nil))
}

// A plain scalar is a number exactly if the core schema of YAML 1.2 says so, and its
// value is exact whatever its size.
func TestNumbersAreThoseOfTheCoreSchema(t *testing.T) {
	decimal := regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
	other := regexp.MustCompile(`^(0o[0-7]+|0x[0-9a-fA-F]+)$`)
	text := rapid.OneOf(
		rapid.StringMatching(`[-+]?[0-9]{0,25}(\.[0-9]{0,5})?([eE][-+]?[0-9]{0,2})?`),
		rapid.StringMatching(`[-+]?0[xo][0-9a-fA-F]{0,20}`),
		rapid.StringMatching(`[-+.0-9eExo]{1,6}`),
	)
	rapid.Check(t, func(t *rapid.T) {
		s := text.Draw(t, "scalar")
		if s == "" || s == "-" || strings.Trim(s, "-") == "" || s == "..." {
			t.Skip("marks of YAML")
		}
		kind, token := kindOf(t, s)
		if want := decimal.MatchString(s) || other.MatchString(s); want != (kind == strictyaml.Number) {
			t.Fatalf("%q is %s: %s", s, kind, token)
		}
		if kind != strictyaml.Number {
			if token != fmt.Sprintf("%q", s) {
				t.Fatalf("%q became %s", s, token)
			}
			return
		}
		value := func(s string) *big.Rat {
			r := new(big.Rat)
			if other.MatchString(s) {
				n, _ := new(big.Int).SetString(s, 0)
				return r.SetInt(n)
			}
			if rest := strings.TrimLeft(s, "-+"); strings.HasPrefix(rest, "0") { // big.Rat would read an octal number
				s = s[:len(s)-len(rest)] + "0" + strings.TrimLeft(rest, "0")
			}
			if _, ok := r.SetString(s); !ok {
				t.Fatalf("%q is no number", s)
			}
			return r
		}
		if value(s).Cmp(value(token)) != 0 {
			t.Fatalf("%q became %s", s, token)
		}
	})
}

// Underscores group digits, and anywhere else make a string.
func TestGroupedDigits(t *testing.T) {
	for scalar, want := range map[string]string{
		"60_000": "60000", "1_0.2_5": "10.25", "0xff_ff": "65535", "0o1_7": "15", "1_2e1_0": "12e10", "-1_0": "-10",
		"1__0": `"1__0"`, "_1": `"_1"`, "1_": `"1_"`, "1_.5": `"1_.5"`, "1._5": `"1._5"`, "0_x1": `"0_x1"`, "0x_1": `"0x_1"`, "-_1": `"-_1"`,
	} {
		if _, got := kindOf(t, scalar); got != want {
			t.Errorf("%s is %s, want %s", scalar, got, want)
		}
	}
}

// A number may be long, and not longer: reading it costs the square of its length.
func TestLongNumbers(t *testing.T) {
	const most = 4096
	for _, form := range []struct{ prefix, digit string }{{"", "7"}, {"-", "7"}, {"1.", "0"}, {"0x", "f"}, {"0o", "7"}} {
		counted := len(form.prefix) // of a number in another base only the digits count
		if strings.HasPrefix(form.prefix, "0") {
			counted = 0
		}
		for extra, want := range map[int]string{0: "", 1: "f.yaml:1:4: /k: the number is too long"} {
			f, err := strictyaml.Parse("f.yaml", []byte("k: "+form.prefix+strings.Repeat(form.digit, most-counted+extra)))
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if err := f.Err(); err != nil {
				got = err.Error()
			}
			if got != want {
				t.Errorf("%q with %d too many: %q, want %q", form.prefix, extra, got, want)
			}
		}
	}
}

// A tag may repeat what a scalar is; one that contradicts it, or that no JSON has, is
// a fault at the value.
func TestTags(t *testing.T) {
	for scalar, want := range map[string]string{
		`!!str 5`: `"5"`, `!!str true`: `"true"`, `!!int 5`: `5`, `!!float 5`: `5`, `!!int "5"`: `5`, `!!bool "true"`: `true`, `!!null ""`: `null`,
		`!!map {a: 1}`: `{"a":1}`, `!!seq [1]`: `[1]`, `!!timestamp 2024-01-01`: `"2024-01-01"`,
		`!!int x`:       "f.yaml:1:4: /k: the tag !!int needs a number",
		`!!bool 1`:      "f.yaml:1:4: /k: the tag !!bool needs a boolean",
		`!!null x`:      "f.yaml:1:4: /k: the tag !!null needs null",
		`!!binary aGk=`: "f.yaml:1:4: /k: the tag !!binary is not supported (write a quoted string without a tag)",
		`!secret x`:     "f.yaml:1:4: /k: the tag !secret is not supported (write a quoted string without a tag)",
		`!!set {a}`:     "f.yaml:1:4: /k: the tag !!set is not supported (remove the tag)",
		`!mine [1]`:     "f.yaml:1:4: /k: the tag !mine is not supported (remove the tag)",
		`!!float .inf`:  "f.yaml:1:4: /k: .inf has no JSON value",
		`-.NaN`:         `"-.NaN"`,
		`.NAN`:          "f.yaml:1:4: /k: .NAN has no JSON value",
	} {
		f, err := strictyaml.Parse("f.yaml", []byte("k: "+scalar+"\n"))
		if err != nil {
			t.Errorf("%s: %v", scalar, err)
			continue
		}
		got := string(f.Root().Object().Get("k").AppendJSON(nil))
		if err := f.Err(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", scalar, got, want)
		}
	}
}

// The errors of several files are one error, and what is not about a file stays
// findable in it.
func TestJoin(t *testing.T) {
	fault := func(file string, line int) error {
		return &strictyaml.Error{Faults: []strictyaml.Fault{strictyaml.Position{File: file, Line: line, Column: 1}.Fault("wrong", "")}, Omitted: line}
	}
	if err := strictyaml.Join(nil, nil); err != nil || strictyaml.Join() != nil {
		t.Errorf("no error at all: %v", err)
	}
	if err := strictyaml.Join(nil, fs.ErrNotExist); err != fs.ErrNotExist {
		t.Errorf("one error alone: %v", err)
	}
	err := strictyaml.Join(fault("b", 2), nil, fs.ErrNotExist, fmt.Errorf("load: %w", fault("a", 1)), fault("b", 1), fs.ErrPermission)
	e, ok := errors.AsType[*strictyaml.Error](err)
	if !ok || len(e.Faults) != 3 || e.Omitted != 4 || !errors.Is(err, fs.ErrNotExist) || !errors.Is(err, fs.ErrPermission) {
		t.Fatalf("%v", err)
	}
	if want := "b:1:1: wrong\nb:2:1: wrong\na:1:1: wrong\nand 4 more faults"; e.Error() != want {
		t.Errorf("got\n%s\nwant\n%s", e, want)
	}
}

// A fault is printed without the parts that it does not have.
func TestFaultText(t *testing.T) {
	for want, f := range map[string]strictyaml.Fault{
		"f: m":               strictyaml.Position{File: "f"}.Fault("m", ""),
		"f: m (h)":           strictyaml.Position{File: "f"}.Fault("m", "h"),
		"f:3:4: m":           strictyaml.Position{File: "f", Line: 3, Column: 4}.Fault("m", ""),
		"f:3:4: /a/b: m (h)": strictyaml.Position{File: "f", Line: 3, Column: 4, Pointer: "/a/b"}.Fault("m", "h"),
		"f: /a: m":           strictyaml.Position{File: "f", Pointer: "/a"}.Fault("m", ""),
	} {
		if got := f.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// Aliases stand for a copy of what they name; what they may not do is a fault.
func TestAliases(t *testing.T) {
	for src, want := range map[string]string{
		"a: &x [1, {b: 2}]\nc: *x\n":       `{"a":[1,{"b":2}],"c":[1,{"b":2}]}`,
		"a: &x one\n*x : two\n":            `{"a":"one","one":"two"}`,
		"a: &x 1\n*x : two\n":              "f.yaml:1:4: a mapping's key must be a string, not a number (quote the key)",
		"a: &x {b: 1}\nc:\n  <<: *x\n":     "f.yaml:3:3: /c: merge keys (<<) are not supported (write the keys out, or alias the whole value)",
		"a: &x [1, *x]\n":                  "f.yaml:1:11: /a/1: the alias *x refers to a value that contains it",
		"a: &x {b: {c: *x}}\n":             "f.yaml:1:15: /a/b/c: the alias *x refers to a value that contains it",
		"? [a]\n: 1\nb: 2\n":               "f.yaml:1:3: a mapping's key must be a string",
		"null: 1\n":                        "f.yaml:1:1: a mapping's key must be a string, not null (quote the key)",
		"yes: 1\n\"true\": 2\n'3': 4\n":    `{"yes":1,"true":2,"3":4}`,
		"a: 1\n---\nb: 2\n":                "f.yaml:2:1: a second YAML document begins here: a file holds one (split the file, or remove the `---`)",
		"a: &x 1\nb: &x 2\nc: *x\nd: *x\n": `{"a":1,"b":2,"c":2,"d":2}`,
	} {
		got, faults := jsonOf(t, "f.yaml", src)
		if faults != "" {
			got = faults
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", src, got, want)
		}
	}
}
