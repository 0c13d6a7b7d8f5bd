package ijson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/agentd/agentd/internal/alloctest"
	"github.com/agentd/agentd/internal/ijson"
)

func TestCheckAccepts(t *testing.T) {
	for _, text := range []string{
		`null`, `true`, `false`, ` 0 `, `-0`, `-0.0`, `0.5`, `10`, `1e5`, `1E+5`, `1.5e-7`, `-12.25E10`,
		`123456789012345678901234567890`, `1e999999999`,
		`""`, `"a"`, `"twelve bytes and then some more of them"`, `"\"\\\/\b\f\n\r\t"`, `"\u0041\u00e9"`,
		`"é"`, `"日本語 mixed with ascii that is longer than eight"`, `"😀"`, `"\ud83d\ude00"`, `"\uD83D\uDE00x"`,
		"\"\u007f\"", "\"\u2028\"", "\"\uffff\"",
		`[]`, `[ ]`, `[1]`, `[1, 2 ,3]`, `[[],[[]]]`, `{}`, `{ }`, `{"a":1}`, ` { "a" : 1 , "b" : [ ] } ` + "\t\r\n",
		`{"":1," ":2}`, `{"a":{"a":{"a":1}}}`, `[{"a":1},{"a":1}]`, `{"a":1,"A":2}`, `{"é":1,"e":2}`,
		`{"abcdefgh1":1,"abcdefgh2":2}`, `{"x":{"\u0061":1},"y":{"\u0061":1},"a":0}`,
	} {
		if err := ijson.Check([]byte(text), 100); err != nil {
			t.Errorf("Check(%s) = %v, want nil", text, err)
		}
	}
}

func TestCheckRefuses(t *testing.T) {
	for _, c := range []struct {
		text   string
		offset int
		msg    string
	}{
		{``, 0, "unexpected end of input"},
		{`  `, 2, "unexpected end of input"},
		{`nul`, 3, "unexpected end of input"},
		{`nule`, 0, "expected a value"},
		{`True`, 0, "expected a value"},
		{`NaN`, 0, "expected a value"},
		{`+1`, 0, "expected a value"},
		{`.5`, 0, "expected a value"},
		{"\ufeff1", 0, "expected a value"},
		{`-`, 1, "unexpected end of input"},
		{`-a`, 1, "malformed number"},
		{`01`, 1, "malformed number"},
		{`-00`, 2, "malformed number"},
		{`-:`, 1, "malformed number"}, // ':' is the byte after '9'
		{`-/`, 1, "malformed number"},
		{`12:`, 2, "unexpected data after the value"},
		{`0:`, 1, "unexpected data after the value"},
		{`0/`, 1, "unexpected data after the value"},
		{`1.5:`, 3, "unexpected data after the value"},
		{`1e5/`, 3, "unexpected data after the value"},
		{`1.`, 2, "unexpected end of input"},
		{`1.x`, 2, "malformed number"},
		{`1e`, 2, "unexpected end of input"},
		{`1e+]`, 3, "malformed number"},
		{`1 2`, 2, "unexpected data after the value"},
		{`{}}`, 2, "unexpected data after the value"},
		{`1,`, 1, "unexpected data after the value"},
		{"1\x00", 1, "unexpected data after the value"},
		{`"a`, 2, "unexpected end of input"},
		{`"a\`, 3, "unexpected end of input"},
		{"\"a\nb\"", 2, "control character in a string"},
		{"\"\x00\"", 1, "control character in a string"},
		{`"\x41"`, 1, "unknown escape in a string"},
		{`"\u12"`, 1, "unknown escape in a string"},
		{`"\u12`, 5, "unexpected end of input"},
		{`"\u12G4"`, 1, "unknown escape in a string"},
		{`"\u12g4"`, 1, "unknown escape in a string"},
		{`"\u/000"`, 1, "unknown escape in a string"},
		{`"\u000:"`, 1, "unknown escape in a string"},
		{"\"\\u0`00\"", 1, "unknown escape in a string"},
		{`"\u00@0"`, 1, "unknown escape in a string"},
		{`"\u123`, 6, "unexpected end of input"},
		{`"\u123"`, 1, "unknown escape in a string"},
		{`"\ud800\u12`, 11, "unexpected end of input"},
		{`"\'"`, 1, "unknown escape in a string"},
		{"\"\xff\"", 1, "invalid UTF-8"},
		{"\"eight by\xc3\"", 9, "invalid UTF-8"},
		{"\"\xed\xa0\x80\"", 1, "invalid UTF-8"},     // an encoded surrogate
		{"\"\xc0\xaf\"", 1, "invalid UTF-8"},         // overlong
		{"\"\xf4\x90\x80\x80\"", 1, "invalid UTF-8"}, // beyond U+10FFFF
		{"\"\xe6\x97\"", 1, "invalid UTF-8"},         // cut off
		{"{\"\xff\":1}", 2, "invalid UTF-8"},
		{`"\ud800"`, 1, "lone surrogate in a string"},
		{`"\udc00"`, 1, "lone surrogate in a string"},
		{`"\ud800\ud800"`, 1, "lone surrogate in a string"},
		{`"\ud800\n"`, 1, "lone surrogate in a string"},
		{`"\ud800x"`, 1, "lone surrogate in a string"},
		{`"\ud800\u00zz"`, 7, "unknown escape in a string"},
		{`[`, 1, "unexpected end of input"},
		{`[,]`, 1, "expected a value"},
		{`[1,]`, 3, "expected a value"},
		{`[1 2]`, 3, "expected ',' or ']' after an element"},
		{`[1}`, 2, "expected ',' or ']' after an element"},
		{`{`, 1, "unexpected end of input"},
		{`{a:1}`, 1, "expected a member name in double quotes"},
		{`{"a":1,}`, 7, "expected a member name in double quotes"},
		{`{"a" 1}`, 5, "expected ':' after a member name"},
		{`{"a":}`, 5, "expected a value"},
		{`{"a":1 "b":2}`, 7, "expected ',' or '}' after a member"},
		{`{"a":1,"a":2}`, 7, "duplicate key"},
		{`{"a":1,"\u0061":2}`, 7, "duplicate key"},
		{`{"\u0061":1,"b":{"a":1},"a":2}`, 24, "duplicate key"},
		{`{"a":{"b":1,"b":1}}`, 12, "duplicate key"},
		{`{"😀":1,"\ud83d\ude00":2}`, 10, "duplicate key"},
		{`{"":1,"":2}`, 6, "duplicate key"},
		{`{"a":1,"a" :2}`, 7, "duplicate key"},
		{`{"same first bytes":1,"other":2,"same first bytes":3}`, 32, "duplicate key"},
	} {
		err := ijson.Check([]byte(c.text), 100)
		var syntax *ijson.SyntaxError
		if !errors.As(err, &syntax) {
			t.Errorf("Check(%q) = %v, want a *SyntaxError", c.text, err)
			continue
		}
		if syntax.Offset != c.offset || syntax.Msg != c.msg {
			t.Errorf("Check(%q) = %d %q, want %d %q", c.text, syntax.Offset, syntax.Msg, c.offset, c.msg)
		}
	}
}

func TestErrorText(t *testing.T) {
	err := ijson.Check([]byte(`{"secret":1,"secret":2}`), 5)
	if got, want := err.Error(), "invalid JSON at byte 12: duplicate key"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestDepth(t *testing.T) {
	nested := func(n int) []byte {
		return []byte(strings.Repeat("[", n) + strings.Repeat("]", n))
	}
	if err := ijson.Check(nested(64), 64); err != nil {
		t.Errorf("64 arrays at bound 64: %v", err)
	}
	if err := ijson.Check(nested(65), 64); err == nil || !strings.Contains(err.Error(), "nested too deeply") {
		t.Errorf("65 arrays at bound 64: %v", err)
	}
	if err := ijson.Check(bytes.Repeat([]byte(`{"a":`), 1e6), 1000); err == nil || !strings.Contains(err.Error(), "byte 5000: nested") {
		t.Errorf("a million objects at bound 1000: %v", err)
	}
	if err := ijson.Check([]byte(`7`), 0); err != nil {
		t.Errorf("a scalar at bound 0: %v", err)
	}
}

// object returns an object with n members named by f.
func object(n int, f func(int) string) []byte {
	var b bytes.Buffer
	b.WriteByte('{')
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `%s:%d`, f(i), i)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// TestDuplicateAtEveryPlace repeats each member in turn, in objects on both
// sides of the switch from comparing to hashing.
func TestDuplicateAtEveryPlace(t *testing.T) {
	for _, n := range []int{1, 2, 15, 16, 17, 18, 33, 100, 1000} {
		plain := func(i int) string { return strconv.Quote("member" + strconv.Itoa(i)) }
		if err := ijson.Check(object(n, plain), 5); err != nil {
			t.Fatalf("%d distinct names: %v", n, err)
		}
		for k := range min(n, 40) {
			for _, again := range []string{plain(k), strings.Replace(plain(k), "e", `\u0065`, 1)} {
				text := object(n+1, func(i int) string {
					if i == n {
						return again
					}
					return plain(i)
				})
				if err := ijson.Check(text, 5); err == nil {
					t.Fatalf("%d names with number %d repeated as %s: accepted", n, k, again)
				}
			}
		}
	}
}

// TestLargeObjectsNested makes the hash sets of several open objects share
// names, which must not be taken for repetition.
func TestLargeObjectsNested(t *testing.T) {
	text := `0`
	for range 5 {
		inner := text
		text = string(object(50, func(i int) string { return fmt.Sprintf(`"k%d"`, i) }))
		text = strings.Replace(text, `"k25":25`, `"k25":`+inner, 1)
	}
	if err := ijson.Check([]byte(text), 10); err != nil {
		t.Fatal(err)
	}
	if err := ijson.Check([]byte(strings.Replace(text, `"k49":49},`, `"k0":49},`, 1)), 10); err == nil {
		t.Error("a repeated name in the innermost object was accepted")
	}
}

func TestSkipEndsAtTheValue(t *testing.T) {
	for _, value := range []string{`12`, `"a\"b"`, `{"a":[1,{}]}`, `[ ]`, `null`, `-0.5e3`} {
		text := []byte("x \t" + value + ` ,"rest`)
		end, err := ijson.Skip(text, 1, 10)
		if err != nil || end != 3+len(value) {
			t.Errorf("Skip past %s = %d, %v, want %d", value, end, err, 3+len(value))
		}
	}
}

func TestUnquoteAndCount(t *testing.T) {
	for _, c := range []struct{ raw, want string }{
		{``, ""}, {`plain`, "plain"}, {`\n\t\r\b\f\/\\\"`, "\n\t\r\b\f/\\\""},
		{`a\u00e9b`, "aéb"}, {`\u00aA\u00Aa\u00fF\u0009\u00990`, "ªªÿ\t\u00990"}, {`\ud83d\ude00!`, "😀!"}, {`日本\u8a9e`, "日本語"}, {`\u0000x`, "\x00x"},
	} {
		if got := string(ijson.AppendUnquoted([]byte("pre"), []byte(c.raw))); got != "pre"+c.want {
			t.Errorf("AppendUnquoted(%s) = %q, want %q", c.raw, got, "pre"+c.want)
		}
		if got, want := ijson.CodePoints([]byte(c.raw)), utf8.RuneCountInString(c.want); got != want {
			t.Errorf("CodePoints(%s) = %d, want %d", c.raw, got, want)
		}
	}
}

func TestValidInputAllocatesNothing(t *testing.T) {
	text := []byte(`{"a":[1,2,{"b\u0041":"é","c":null}],` + string(object(100, func(i int) string { return fmt.Sprintf(`"m%d"`, i) })[1:]))
	if err := ijson.Check(text, 10); err != nil {
		t.Fatal(err)
	}
	var s ijson.Scanner
	if _, err := s.Skip(text, 0, 10); err != nil {
		t.Fatal(err)
	}
	if n := alloctest.Least(100, func() {
		if _, err := s.Skip(text, 0, 10); err != nil {
			t.Error(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations on valid input", n)
	}
}

func TestScannerSurvivesFaults(t *testing.T) {
	var s ijson.Scanner
	for range 3 {
		if _, err := s.Skip([]byte(`{"a":1,"b":{"c":1,"c":2}}`), 0, 5); err == nil {
			t.Fatal("a repeated name was accepted")
		}
		if _, err := s.Skip([]byte(`{"c":1,"a":1,"b":{"a":2}}`), 0, 5); err != nil {
			t.Fatalf("names of an abandoned scan were remembered: %v", err)
		}
		s.Trim()
	}
}

// reference decides with encoding/json and slow, separate checks.
func reference(text []byte) bool {
	return json.Valid(text) && utf8.Valid(text) && surrogatesPaired(text) && namesUnique(text)
}

func surrogatesPaired(text []byte) bool {
	pending := false // the last unit was a high surrogate
	for i := 0; i < len(text); i++ {
		unit := rune(0)
		if text[i] == '\\' {
			i++
			if text[i] == 'u' {
				v, _ := strconv.ParseUint(string(text[i+1:i+5]), 16, 32)
				unit, i = rune(v), i+4
			}
		}
		low := unit >= 0xDC00 && unit <= 0xDFFF
		if low != pending {
			return false
		}
		pending = utf16.IsSurrogate(unit) && !low
	}
	return !pending
}

func namesUnique(text []byte) bool {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	type frame struct {
		names map[string]bool
		isKey bool
	}
	var open []frame
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return true
		}
		if err != nil {
			return false
		}
		if delim, ok := token.(json.Delim); ok && (delim == '}' || delim == ']') {
			open = open[:len(open)-1]
			continue
		}
		if n := len(open) - 1; n >= 0 && open[n].names != nil {
			top := &open[n]
			top.isKey = !top.isKey
			if top.isKey {
				if top.names[token.(string)] {
					return false
				}
				top.names[token.(string)] = true
				continue
			}
		}
		switch token {
		case json.Delim('{'):
			open = append(open, frame{names: map[string]bool{}})
		case json.Delim('['):
			open = append(open, frame{})
		}
	}
}

func FuzzCheck(f *testing.F) {
	for _, seed := range []string{
		`{"a":[1,-2.5e+3,"\u00e9\ud83d\ude00",true,null],"b":{}}`, `{"a":1,"\u0061":2}`, `"\ud800"`, "\"\xff\"",
		`[[[[]]]]`, `01`, `1 2`, `{"abcdefgh":1,"abcdefgi":2}`, ` " `, `-`, `"\`, `"\ud800\u`, `{"":{"":0},"":1}`,
		string(object(20, func(i int) string { return fmt.Sprintf(`"%d"`, i) })),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 1<<16 || bytes.Count(text, []byte("["))+bytes.Count(text, []byte("{")) > 5000 {
			t.Skip("beyond the depth that encoding/json accepts")
		}
		err := ijson.Check(text, 5000)
		if want := reference(text); (err == nil) != want {
			t.Fatalf("Check(%q) = %v, reference says valid=%v", text, err, want)
		}
		var syntax *ijson.SyntaxError
		if err != nil && (!errors.As(err, &syntax) || syntax.Offset < 0 || syntax.Offset > len(text)) {
			t.Fatalf("Check(%q): offset out of range: %v", text, err)
		}
	})
}

func FuzzUnquote(f *testing.F) {
	for _, seed := range []string{``, `a\n`, `\u00e9`, `\ud83d\ude00`, `\\\\\"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		text := append(append([]byte{'"'}, raw...), '"')
		end, escaped, err := ijson.ScanString(text, 0)
		if err != nil || end != len(text) {
			return
		}
		var want string
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatalf("ScanString accepted %q: %v", text, err)
		}
		if got := string(ijson.AppendUnquoted(nil, raw)); got != want {
			t.Fatalf("AppendUnquoted(%q) = %q, want %q", raw, got, want)
		}
		if got := ijson.CodePoints(raw); got != utf8.RuneCountInString(want) {
			t.Fatalf("CodePoints(%q) = %d, want %d", raw, got, utf8.RuneCountInString(want))
		}
		if escaped != bytes.Contains(raw, []byte{'\\'}) {
			t.Fatalf("escaped = %v for %q", escaped, raw)
		}
	})
}
