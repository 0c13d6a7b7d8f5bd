package output_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/internal/output"
)

func TestFormatFlag(t *testing.T) {
	for text, ok := range map[string]bool{"table": true, "json": true, "jsonl": true, "": false, "yaml": false, "JSON": false} {
		f := output.Format("before")
		err := f.Set(text)
		if (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
		if want := map[bool]string{true: text, false: "before"}[ok]; f.String() != want {
			t.Errorf("%q: the flag is now %q", text, f)
		}
	}
}

// Payloads pass through as they are: no HTML escaping, no other order of members,
// no other number.
func TestWriteJSON(t *testing.T) {
	value := struct {
		A json.RawMessage `json:"a"`
	}{json.RawMessage(`{"z":"<&>","b":1.0}`)}
	for format, want := range map[output.Format]string{
		output.JSONL: "{\"a\":{\"z\":\"<&>\",\"b\":1.0}}\n",
		output.JSON:  "{\n  \"a\": {\n    \"z\": \"<&>\",\n    \"b\": 1.0\n  }\n}\n",
		output.Table: "{\n  \"a\": {\n    \"z\": \"<&>\",\n    \"b\": 1.0\n  }\n}\n",
	} {
		var fromValue, fromText bytes.Buffer
		if err := output.WriteJSON(&fromValue, format, value); err != nil || fromValue.String() != want {
			t.Errorf("%s: %q, %v; want %q", format, &fromValue, err, want)
		}
		if err := output.WriteJSONBytes(&fromText, format, []byte(" {\"a\":{\"z\":\"<&>\",\n\"b\":1.0}}\n")); err != nil || fromText.String() != want {
			t.Errorf("%s of bytes: %q, %v; want %q", format, &fromText, err, want)
		}
	}
	if err := output.WriteJSONBytes(&bytes.Buffer{}, output.JSON, []byte("{")); err == nil {
		t.Error("wrote what is not JSON")
	}
}

func TestWriteTable(t *testing.T) {
	var b bytes.Buffer
	err := output.WriteTable(&b, []string{"A", "LONG", "LAST"}, [][]string{{"1", "x", ""}, {"longer", "y", "z"}, {"\x1b[2J", "tab\there", "ü"}})
	want := "A        LONG         LAST\n1        x\nlonger   y            z\n\\x1b[2J  tab\\x09here  ü\n"
	if err != nil || b.String() != want {
		t.Errorf("%q, %v; want %q", b.String(), err, want)
	}
}

// Whatever a cell holds, a table has one line a row, and no character that a
// terminal acts on.
func TestTablesAreInert(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rows := rapid.SliceOfN(rapid.SliceOfN(rapid.String(), 2, 2), 0, 4).Draw(rt, "rows")
		var b bytes.Buffer
		if err := output.WriteTable(&b, []string{"A", "B"}, rows); err != nil {
			rt.Fatal(err)
		}
		if n := strings.Count(b.String(), "\n"); n != len(rows)+1 {
			rt.Fatalf("%d lines of %d rows: %q", n, len(rows), b.String())
		}
		for _, r := range b.String() {
			if r != '\n' && unicode.IsControl(r) {
				rt.Fatalf("%q has a control character", b.String())
			}
		}
	})
}

// What needs no escaping is not changed.
func TestPrintableKeepsText(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := rapid.StringOf(rapid.RuneFrom(nil, unicode.Letter, unicode.Digit, unicode.Punct, unicode.Zs)).Draw(rt, "s")
		if got := output.Printable(s); got != s {
			rt.Fatalf("%q became %q", s, got)
		}
	})
}

// Text that would deceive a reader is escaped: what moves the cursor, what shows
// text in another order than it has, and what cannot be seen.
func TestPrintableEscapes(t *testing.T) {
	for text, want := range map[string]string{
		"a\x00\x7f\u009bb":          `a\x00\x7f\x9bb`,
		"\x1b[2Jgone":               `\x1b[2Jgone`,
		"refuse\u202eevorppa":       `refuse\u202eevorppa`,
		"\u2066a\u2069\u200f\u061c": `\u2066a\u2069\u200f\u061c`,
		"one\u2028two":              `one\u2028two`,
		"tag\U000e0061":             `tag\U000e0061`,
		"bad\xffbyte":               `bad\xffbyte`,
		"replaced \ufffd":           "replaced \ufffd",
		"שלום, família 👩\u200d👩 wörld": "שלום, família 👩\u200d👩 wörld",
	} {
		if got := output.Printable(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	if got := output.PrintableText("a\n\tb\r\u202e"); got != "a\n\tb\\x0d\\u202e" {
		t.Errorf("%q", got)
	}
}

// JSON is escaped too, and means the same to a program.
func TestJSONIsPrintable(t *testing.T) {
	const text = "\u202e\u007f\u0085\u2066\U000e0061é\n"
	for _, format := range []output.Format{output.JSON, output.JSONL} {
		var value, raw bytes.Buffer
		source, err := json.Marshal(map[string]string{"a": text})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(output.WriteJSON(&value, format, map[string]string{"a": text}), output.WriteJSONBytes(&raw, format, source)); err != nil {
			t.Fatal(err)
		}
		for _, got := range []string{value.String(), raw.String()} {
			var back map[string]string
			if err := json.Unmarshal([]byte(got), &back); err != nil || back["a"] != text {
				t.Errorf("%s: %v, %q", got, err, back)
			}
			if output.PrintableText(got) != got || !strings.Contains(got, `\u202e`) || !strings.Contains(got, "é") {
				t.Errorf("%q", got)
			}
		}
	}
}

// Colours are for terminals. Neither a buffer nor a file is one, and the null
// device stands for one here: it is a character device as well.
func TestColorsFor(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	file, err := os.Create(t.TempDir() + "/f")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	env := func(pairs ...string) func(string) string {
		return func(name string) string {
			for i := 0; i < len(pairs); i += 2 {
				if pairs[i] == name {
					return pairs[i+1]
				}
			}
			return ""
		}
	}
	for _, test := range []struct {
		on     bool
		colors output.Colors
	}{
		{true, output.ColorsFor(null, env())},
		{false, output.ColorsFor(null, env("NO_COLOR", "1"))},
		{false, output.ColorsFor(null, env("TERM", "dumb"))},
		{false, output.ColorsFor(file, env())},
		{false, output.ColorsFor(&bytes.Buffer{}, env())},
	} {
		if test.colors.On != test.on {
			t.Errorf("colours %t, want %t", test.colors.On, test.on)
		}
		for _, styled := range []string{test.colors.Bold("x"), test.colors.Dim("x"), test.colors.Good("x"), test.colors.Bad("x")} {
			if (styled != "x") != test.on || test.on && !strings.HasSuffix(styled, "\x1b[0m") {
				t.Errorf("%q", styled)
			}
		}
	}
}
