package ijson_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/internal/ijson"
)

func TestEnter(t *testing.T) {
	for _, tt := range []struct {
		text  string
		next  int
		empty bool
	}{
		{`[]`, 2, true}, {"[ \n]", 4, true}, {`{}x`, 2, true}, {`{ }`, 3, true},
		{`[1]`, 1, false}, {`[  1`, 3, false}, {`{"a"`, 1, false}, {`[`, 1, false}, {`[ `, 2, false},
		{`[}`, 1, false}, {`{]`, 1, false}, // the bracket of another kind is the next step's fault
	} {
		if next, empty := ijson.Enter([]byte(tt.text), 0); next != tt.next || empty != tt.empty {
			t.Errorf("Enter(%s) = %d, %v, want %d, %v", tt.text, next, empty, tt.next, tt.empty)
		}
	}
}

func TestScanName(t *testing.T) {
	for _, tt := range []struct {
		text       string
		end, value int
		escaped    bool
		err        string
	}{
		{text: `"a":1`, end: 3, value: 4},
		{text: `"" : 1`, end: 2, value: 5},
		{text: `"\u0061"` + "\n:\t1", end: 8, value: 11, escaped: true},
		{text: `"a":`, end: 3, value: 4},
		{text: `a:1`, err: "byte 0: expected a member name in double quotes"},
		{text: ``, err: "byte 0: unexpected end of input"},
		{text: `"a`, err: "byte 2: unexpected end of input"},
		{text: `"a" 1`, err: "byte 4: expected ':' after a member name"},
		{text: `"a" `, err: "byte 4: unexpected end of input"},
		{text: "\"\x01\":1", err: "byte 1: control character in a string"},
	} {
		end, escaped, value, err := ijson.ScanName([]byte(tt.text), 0)
		if tt.err != "" {
			if err == nil || err.Error() != "invalid JSON at "+tt.err {
				t.Errorf("ScanName(%s): %v, want %s", tt.text, err, tt.err)
			}
			continue
		}
		if err != nil || end != tt.end || value != tt.value || escaped != tt.escaped {
			t.Errorf("ScanName(%s) = %d, %v, %d, %v", tt.text, end, escaped, value, err)
		}
	}
}

func TestNext(t *testing.T) {
	for _, tt := range []struct {
		text    string
		closing byte
		next    int
		more    bool
		err     string
	}{
		{text: `,1`, closing: ']', next: 1, more: true},
		{text: " ,\n 1", closing: '}', next: 4, more: true},
		{text: `,`, closing: ']', next: 1, more: true}, // what is due now is not here, but is not this step's fault
		{text: `]`, closing: ']', next: 1},
		{text: ` }x`, closing: '}', next: 2},
		{text: `}`, closing: ']', err: "byte 0: expected ',' or ']' after an element"},
		{text: `]`, closing: '}', err: "byte 0: expected ',' or '}' after a member"},
		{text: ` 1`, closing: ']', err: "byte 1: expected ',' or ']' after an element"},
		{text: ` `, closing: ']', err: "byte 1: unexpected end of input"},
		{text: ``, closing: '}', err: "byte 0: unexpected end of input"},
	} {
		next, more, err := ijson.Next([]byte(tt.text), 0, tt.closing)
		if tt.err != "" {
			var syntax *ijson.SyntaxError
			if !errors.As(err, &syntax) || err.Error() != "invalid JSON at "+tt.err {
				t.Errorf("Next(%q, %c): %v, want %s", tt.text, tt.closing, err, tt.err)
			}
			continue
		}
		if err != nil || next != tt.next || more != tt.more {
			t.Errorf("Next(%q, %c) = %d, %v, %v, want %d, %v", tt.text, tt.closing, next, more, err, tt.next, tt.more)
		}
	}
}

func TestEnd(t *testing.T) {
	for text, want := range map[string]string{
		"": "", " \t\r\n": "", "x": "invalid JSON at byte 0: unexpected data after the value",
		"  ]": "invalid JSON at byte 2: unexpected data after the value",
	} {
		err := ijson.End([]byte(text), 0)
		if (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("End(%q) = %v, want %q", text, err, want)
		}
	}
}

// values draws JSON texts, with white space wherever it may stand.
func values(depth int) *rapid.Generator[string] {
	space := rapid.SampledFrom([]string{"", "", "", " ", "\n\t", "\r "})
	scalar := rapid.SampledFrom([]string{
		`null`, `true`, `false`, `0`, `-1.5e+3`, `12345678901234567890`, `""`, `"plain"`, `"]}"`, `"{[,:"`, `"\""`, `"\\"`, `"\\\""`,
		`"é日\ud83d\ude00 and a good deal more of it"`, `"\u005d"`,
	})
	return rapid.Custom(func(t *rapid.T) string {
		kind := rapid.IntRange(0, 3).Draw(t, "kind")
		if depth == 0 || kind < 2 {
			return scalar.Draw(t, "scalar")
		}
		var parts []string
		for i := range rapid.IntRange(0, 4).Draw(t, "n") {
			part := space.Draw(t, "space") + values(depth-1).Draw(t, "value") + space.Draw(t, "space")
			if kind == 2 {
				part = space.Draw(t, "space") + fmt.Sprintf(`"k%d"`, i) + space.Draw(t, "space") + ":" + part
			}
			parts = append(parts, part)
		}
		inner := strings.Join(parts, ",")
		if inner == "" {
			inner = space.Draw(t, "space")
		}
		if kind == 2 {
			return "{" + inner + "}"
		}
		return "[" + inner + "]"
	})
}

// On checked text, the strict skip, the quick one and a walk by the steps of a
// container all end at the same place.
func TestSkipsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := rapid.SampledFrom([]string{"", " ", "[", `"x":`}).Draw(t, "before")
		after := rapid.SampledFrom([]string{"", " ", ",1", "]", "}", "\n]", ":0"}).Draw(t, "after")
		value := values(4).Draw(t, "value")
		text := []byte(before + value + after)
		want := len(before) + len(value)
		if end, err := ijson.Skip(text, len(before), 10); err != nil || end != want {
			t.Fatalf("Skip = %d, %v, want %d in %s", end, err, want, text)
		}
		if end := ijson.SkipValid(text, len(before)); end != want {
			t.Fatalf("SkipValid = %d, want %d in %s", end, want, text)
		}
		if end, err := walk(text, len(before)); err != nil || end != want {
			t.Fatalf("walk = %d, %v, want %d in %s", end, err, want, text)
		}
	})
}

// walk is a reader of its own, made of the package's steps.
func walk(data []byte, i int) (end int, err error) {
	switch c := data[i]; {
	case c == '"':
		end, _, err = ijson.ScanString(data, i)
		return end, err
	case c == '-' || c >= '0' && c <= '9':
		end, _, err = ijson.ScanNumber(data, i)
		return end, err
	case c != '{' && c != '[':
		return ijson.ScanLiteral(data, i)
	}
	object := data[i] == '{'
	closing := data[i] + 2
	i, empty := ijson.Enter(data, i)
	for more := !empty; more; {
		if object {
			if _, _, i, err = ijson.ScanName(data, i); err != nil {
				return 0, err
			}
		}
		if end, err = walk(data, i); err != nil {
			return 0, err
		}
		if i, more, err = ijson.Next(data, end, closing); err != nil {
			return 0, err
		}
	}
	return i, nil
}

func TestSkipValidStaysInBounds(t *testing.T) {
	for _, text := range []string{``, ` `, `[`, `{"a`, `[[[`, `"`, `"\`, `,:`, `]`, `}}`, `[}]`, "\"\xff", `12`, `nul`} {
		for i := range len(text) + 1 {
			if end := ijson.SkipValid([]byte(text), i); end < i || end > len(text) {
				t.Errorf("SkipValid(%q, %d) = %d", text, i, end)
			}
		}
	}
}

func TestScanLiteral(t *testing.T) {
	for _, tt := range []struct {
		text string
		end  int
		err  string
	}{
		{"true,", 4, ""}, {"false]", 5, ""}, {"null", 4, ""}, {"nullable", 4, ""},
		{"", 0, "byte 0: unexpected end of input"}, {"tru", 0, "byte 3: unexpected end of input"}, {"f", 0, "byte 1: unexpected end of input"},
		{"trux", 0, "byte 0: expected a value"}, {"nULL", 0, "byte 0: expected a value"}, {"x", 0, "byte 0: expected a value"},
		{"fals ", 0, "byte 0: expected a value"},
	} {
		end, err := ijson.ScanLiteral([]byte(tt.text), 0)
		if end != tt.end || (err == nil) != (tt.err == "") || err != nil && err.Error() != "invalid JSON at "+tt.err {
			t.Errorf("ScanLiteral(%q) = %d, %v, want %d, %s", tt.text, end, err, tt.end, tt.err)
		}
	}
}

func FuzzSkipValid(f *testing.F) {
	for _, seed := range []string{`{"a":[1,"]"]}`, `[{"x":"\\\""}, null ]`, `"`, `[[`, `}`} {
		f.Add([]byte(seed), 0)
	}
	f.Fuzz(func(t *testing.T, text []byte, i int) {
		if i < 0 || i > len(text) {
			return
		}
		end := ijson.SkipValid(text, i)
		if end < i || end > len(text) {
			t.Fatalf("SkipValid(%q, %d) = %d", text, i, end)
		}
		if ijson.Check(text[i:], 1000) != nil {
			return // of no use, but within bounds
		}
		if want, err := ijson.Skip(text, i, 1000); err == nil && end != want {
			t.Fatalf("SkipValid(%q, %d) = %d, Skip ends at %d", text, i, end, want)
		}
	})
}
