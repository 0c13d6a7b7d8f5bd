package strictyaml_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agentd/agentd/internal/strictyaml"
)

// Where a JSON file stops being JSON, the fault has the place and the scanner's
// reason.
func TestFaultsOfJSON(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{``, "f.json:1:1: the file is empty"},
		{" \n\t\r\n", "f.json:1:1: the file is empty"},
		{"\ufeff", "f.json:1:1: the file is empty"},
		{"{\n  \"a\": 1,\n}", "f.json:3:1: invalid JSON: expected a member name in double quotes"},
		{"{\"a\" 1}", "f.json:1:6: invalid JSON: expected ':' after a member name"},
		{"{\"a\":1\n\"b\":2}", "f.json:2:1: invalid JSON: expected ',' or '}' after a member"},
		{"[1\n 2]", "f.json:2:2: invalid JSON: expected ',' or ']' after an element"},
		{"[1,]", "f.json:1:4: invalid JSON: expected a value"},
		{"[1,", "f.json:1:4: invalid JSON: unexpected end of input"},
		{"{", "f.json:1:2: invalid JSON: unexpected end of input"},
		{"{\"a\":", "f.json:1:6: invalid JSON: unexpected end of input"},
		{"[\"é\", tru]", "f.json:1:7: invalid JSON: expected a value"}, // columns are characters
		{"[nul", "f.json:1:5: invalid JSON: unexpected end of input"},
		{"[01]", "f.json:1:3: invalid JSON: malformed number"},
		{"[+1]", "f.json:1:2: invalid JSON: expected a value"},
		{"{} {}", "f.json:1:4: invalid JSON: unexpected data after the value"},
		{"# comment\n{}", "f.json:1:1: invalid JSON: expected a value"},
		{"{'a':1}", "f.json:1:2: invalid JSON: expected a member name in double quotes"},
		{"{\"a\":\"\\ud800\"}", "f.json:1:7: invalid JSON: lone surrogate in a string"},
		{"{\"a\n\":1}", "f.json:1:4: invalid JSON: control character in a string"},
		{"[\"\xff\"]", "f.json:1:3: invalid JSON: invalid UTF-8"},
		{"[1" + strings.Repeat("0", 4096) + "]", "f.json:1:2: the number is too long"},
	} {
		got, faults := jsonOf(t, "f.json", c.src)
		if faults != c.want || got != "" {
			t.Errorf("%.40q: %q, want %q", c.src, faults, c.want)
		}
	}
}

// JSON goes on after a repeated key, as YAML does, and reports each of them
// with the line of the first.
func TestEveryRepeatedKeyOfJSON(t *testing.T) {
	got, faults := jsonOf(t, "f.json", "{\n \"a\": 1,\n \"b\": {\"x\": 1, \"\\u0078\": 2},\n \"a\": 3,\n \"a\": 4\n}")
	want := "f.json:3:16: /b/x: duplicate key \"x\", first on line 3 (keep one of them)\n" +
		"f.json:4:2: /a: duplicate key \"a\", first on line 2 (keep one of them)\n" +
		"f.json:5:2: /a: duplicate key \"a\", first on line 2 (keep one of them)"
	if faults != want {
		t.Errorf("got\n%s\nwant\n%s", faults, want)
	}
	if got != `{"a":1,"b":{"x":1}}` {
		t.Errorf("the first of each stays: %s", got)
	}
}

func TestJSONValuesKeepTheirText(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{` [ 1.50 , -0 , 1e400 , 123456789012345678901234567890 ] `, `[1.50,-0,1e400,123456789012345678901234567890]`},
		{`{"b":null,"a":[true,false,{}],"":[]}`, `{"b":null,"a":[true,false,{}],"":[]}`},
		{`"\u00e9\ud83d\ude00\/\n\u0001<&>"`, "\"é😀/\\n\\u0001<&>\""},
		{"\ufeff{\"a\":1}", `{"a":1}`},
		{"\"\u2028\"", "\"\u2028\""},
		{`"\u2028"`, "\"\u2028\""},
	} {
		if got, faults := jsonOf(t, "F.JSON", c.src); got != c.want || faults != "" {
			t.Errorf("%s: %s, %s, want %s", c.src, got, faults, c.want)
		}
	}
}

// Depth and the number of values are bounded the same way in both formats.
func TestBoundsOfJSON(t *testing.T) {
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	if _, faults := jsonOf(t, "f.json", nested(strictyaml.MaxDepth+1)); faults != "" {
		t.Errorf("the deepest nesting that is allowed: %s", faults)
	}
	want := fmt.Sprintf("f.json:1:%d: values nest deeper than %d levels", strictyaml.MaxDepth+2, strictyaml.MaxDepth)
	if _, faults := jsonOf(t, "f.json", nested(strictyaml.MaxDepth+2)); faults != want {
		t.Errorf("%s, want %s", faults, want)
	}
	members := func(n int) string { return strings.Repeat(`{"":`, n) + "0" + strings.Repeat("}", n) }
	if _, faults := jsonOf(t, "f.json", members(strictyaml.MaxDepth)); faults != "" {
		t.Errorf("the deepest nesting of mappings that is allowed: %s", faults)
	}
	if _, faults := jsonOf(t, "f.json", members(strictyaml.MaxDepth+1)); !strings.Contains(faults, "values nest deeper") {
		t.Errorf("mappings one level deeper: %q", faults)
	}
	list := func(n int) string { return "[" + strings.Repeat("0,", n-2) + "0]" }
	if _, faults := jsonOf(t, "f.json", list(strictyaml.MaxNodes)); faults != "" {
		t.Errorf("as many values as are allowed: %s", faults)
	}
	if _, faults := jsonOf(t, "f.json", list(strictyaml.MaxNodes+1)); !strings.Contains(faults, "holds more than 200000 values") {
		t.Errorf("one value more: %q", faults)
	}
	if _, faults := jsonOf(t, "f.json", `"`+strings.Repeat("x", strictyaml.MaxBytes)+`"`); faults != "f.json: the file is larger than 4194304 bytes" {
		t.Errorf("a file that is too large: %q", faults)
	}
}
