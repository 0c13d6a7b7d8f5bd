package jcs

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/internal/ijson"
)

func canonical(t interface {
	Helper()
	Fatalf(string, ...any)
}, src string) string {
	t.Helper()
	out, err := Append(nil, []byte(src))
	if err != nil {
		t.Fatalf("Append(%s): %v", src, err)
	}
	return string(out)
}

func TestAppend(t *testing.T) {
	tests := []struct{ name, src, want string }{
		{"literals", " [ null , true,\tfalse ] \r\n", "[null,true,false]"},
		{"empty", `{ "a" : { } , "b" : [ ] }`, `{"a":{},"b":[]}`},
		{"members are sorted at every level", `{"b":{"z":1,"y":[{"d":1,"c":2}]},"a":0}`, `{"a":0,"b":{"y":[{"c":2,"d":1}],"z":1}}`},
		{"a prefix sorts first", `{"aa":1,"a":2,"":3}`, `{"":3,"a":2,"aa":1}`},
		// The member names of RFC 8785 section 3.2.3.
		{"utf-16 order", `{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}`,
			"{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u0080\":\"Control\",\"ö\":\"Latin Small Letter O With Diaeresis\",\"€\":\"Euro Sign\",\"😀\":\"Emoji: Grinning Face\",\"\ufb33\":\"Hebrew Letter Dalet With Dagesh\"}"},
		// The string of RFC 8785 section 3.2.2.
		{"shortest escapes", `"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/"`, "\"€$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\""},
		{"all short escapes", `"\b\t\n\f\r\u0000\u001F\u007f"`, "\"\\b\\t\\n\\f\\r\\u0000\\u001f\x7f\""},
		{"names are unescaped before sorting", `{"\u0062":1,"a":2}`, `{"a":2,"b":1}`},
		{"escaped characters sort by their value", `{"a\"":1,"a!":2,"a#":3}`, `{"a!":2,"a\"":1,"a#":3}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := canonical(t, test.src); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestAppendKeepsPrefix(t *testing.T) {
	got, err := Append([]byte("prefix:"), []byte(`{"b":1,"a":2}`))
	if err != nil || string(got) != `prefix:{"a":2,"b":1}` {
		t.Errorf("got %s, %v", got, err)
	}
	got, err = Append([]byte("prefix:"), []byte(`{"b":1,`))
	if err == nil || string(got) != "prefix:" {
		t.Errorf("after a failure dst is %q, %v", got, err)
	}
}

// The doubles of RFC 8785 appendix B, with what ECMAScript prints.
func TestES6Numbers(t *testing.T) {
	for bits, want := range map[uint64]string{
		0x0000000000000001: "5e-324",
		0x8000000000000001: "-5e-324",
		0x7fefffffffffffff: "1.7976931348623157e+308",
		0xffefffffffffffff: "-1.7976931348623157e+308",
		0x4340000000000000: "9007199254740992",
		0xc340000000000000: "-9007199254740992",
		0x4430000000000000: "295147905179352830000",
		0x44b52d02c7e14af5: "9.999999999999997e+22",
		0x44b52d02c7e14af6: "1e+23",
		0x44b52d02c7e14af7: "1.0000000000000001e+23",
		0x444b1ae4d6e2ef4e: "999999999999999700000",
		0x444b1ae4d6e2ef4f: "999999999999999900000",
		0x444b1ae4d6e2ef50: "1e+21",
		0x3eb0c6f7a0b5ed8c: "9.999999999999997e-7",
		0x3eb0c6f7a0b5ed8d: "0.000001",
		0x41b3de4355555553: "333333333.3333332",
		0x41b3de4355555554: "333333333.33333325",
		0x41b3de4355555555: "333333333.3333333",
		0x41b3de4355555556: "333333333.3333334",
		0x41b3de4355555557: "333333333.33333343",
		0xbecbf647612f3696: "-0.0000033333333333333333",
		0x43143ff3c1cb0959: "1424953923781206.2",
	} {
		got, err := Marshal(math.Float64frombits(bits))
		if err != nil || string(got) != want {
			t.Errorf("%016x: got %s, %v, want %s", bits, got, err, want)
		}
	}
}

func TestNumbers(t *testing.T) {
	tests := []struct{ src, want string }{
		{"0", "0"}, {"-0", "0"}, {"0.000", "0"}, {"-0.0e7", "0"}, {"0e99999999999999999999", "0"},
		{"1.0", "1"}, {"100e-2", "1"}, {"4.50", "4.5"}, {"2e-3", "0.002"}, {"1E30", "1e+30"},
		{"0.000001", "0.000001"}, {"0.0000001", "1e-7"}, {"120e18", "120000000000000000000"}, {"1e21", "1e+21"},
		{"0.000000000000000000000000001", "1e-27"},
		// Beyond what a double holds: the exact value.
		{"9007199254740993", "9007199254740993"},
		{"333333333.33333329", "333333333.33333329"},
		{"1234567890123456789012345", "1.234567890123456789012345e+24"},
		{"1e400", "1e+400"}, {"-1.5E-400", "-1.5e-400"},
		// Exponents beyond int64.
		{"1e99999999999999999999", "1e+99999999999999999999"},
		{"10e99999999999999999999", "1e+100000000000000000000"},
		{"0.1e100000000000000000000", "1e+99999999999999999999"},
		{"0.01e-100000000000000000000", "1e-100000000000000000002"},
		{"1000e-100000000000000000000", "1e-99999999999999999997"},
		{"1e0000000000000000000000001", "10"},
		{"10e999999999999999999", "1e+1000000000000000000"},
		{"1e1000000000000000000", "1e+1000000000000000000"},
	}
	for _, test := range tests {
		if got := canonical(t, test.src); got != test.want {
			t.Errorf("%s: got %s, want %s", test.src, got, test.want)
		}
	}
}

func TestRefusals(t *testing.T) {
	tests := []struct {
		src    string
		offset int
		msg    string
	}{
		{"", 0, "unexpected end"},
		{"  ", 2, "unexpected end"},
		{"{", 1, "unexpected end"},
		{"[1", 2, "unexpected end"},
		{"[1}", 2, "',' or ']'"},
		{"[1,]", 3, "expected a value"},
		{`{"a":1,}`, 7, "member name"},
		{`{"a" 1}`, 5, "expected ':'"},
		{`{"a":1 "b":2}`, 7, "',' or '}'"},
		{"1 2", 2, "after the value"},
		{"tru", 3, "unexpected end"},
		{"NaN", 0, "expected a value"},
		{"+1", 0, "expected a value"},
		{"01", 1, "malformed number"},
		{"-", 1, "unexpected end"},
		{"[1.]", 3, "malformed number"},
		{"1.e1", 2, "malformed number"},
		{"[1e]", 3, "malformed number"},
		{"1e+", 3, "unexpected end"},
		{`"a`, 2, "unexpected end"},
		{`"\x"`, 1, "unknown escape"},
		{`"\u12g4"`, 1, "unknown escape"},
		{"\"a\nb\"", 2, "control character"},
		{"\"\xff\"", 1, "UTF-8"},
		{"\"\xed\xa0\x80\"", 1, "UTF-8"}, // a surrogate, as bytes
		{`"\ud800"`, 1, "lone surrogate"},
		{`"\udc00\ud800"`, 1, "lone surrogate"},
		{`{"a":1,"b":2,"\u0061":3}`, 13, "duplicate"},
		{`[{"x":{"a":1,"a":1}}]`, 13, "duplicate"},
		{strings.Repeat("[", MaxDepth+1), MaxDepth, "nested too deeply"},
		{strings.Repeat(`{"":`, MaxDepth+1), 4 * MaxDepth, "nested too deeply"},
	}
	for _, test := range tests {
		_, err := Append(nil, []byte(test.src))
		var syntax *ijson.SyntaxError
		if !errors.As(err, &syntax) || syntax.Offset != test.offset || !strings.Contains(syntax.Msg, test.msg) {
			t.Errorf("%.40q: got %v, want byte %d: %s", test.src, err, test.offset, test.msg)
		}
	}
	deepest := strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth)
	if got := canonical(t, deepest); got != deepest {
		t.Error("the deepest allowed nesting changed")
	}
}

func TestErrorsRepeatNoInput(t *testing.T) {
	_, err := Append(nil, []byte(`{"secret-name":"secret-value","secret-name":1}`))
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
}

func TestMarshalError(t *testing.T) {
	if _, err := Marshal(math.NaN()); err == nil {
		t.Error("NaN was marshalled")
	}
	if _, err := Marshal(json.RawMessage(`{"a":1,"a":2}`)); err == nil {
		t.Error("duplicate members were marshalled")
	}
}

// A double that has been through JSON text of any shape prints as ECMAScript
// prints it. encoding/json follows ECMAScript but for minus zero.
func TestDoublesPrintAsES6(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.Float64().Draw(t, "f")
		want, _ := json.Marshal(f)
		if f == 0 {
			want = []byte("0")
		}
		for _, format := range []byte("efg") {
			text := strconv.FormatFloat(f, format, -1, 64)
			if got := canonical(t, text); got != string(want) {
				t.Fatalf("%s: got %s, want %s", text, got, want)
			}
		}
	})
}

// The printed number has exactly the value of the token, and one value has
// one text.
func TestNumbersAreExact(t *testing.T) {
	token := rapid.StringMatching(`-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,3})?`)
	rapid.Check(t, func(t *rapid.T) {
		src := token.Draw(t, "token")
		got := canonical(t, src)
		before, ok1 := new(big.Rat).SetString(src)
		after, ok2 := new(big.Rat).SetString(got)
		if !ok1 || !ok2 || before.Cmp(after) != 0 {
			t.Fatalf("%s became %s", src, got)
		}
		// The same value in another layout.
		mantissa, exponent := new(big.Int).Mul(before.Num(), big.NewInt(1)), 0
		for den := new(big.Int).Set(before.Denom()); den.Cmp(big.NewInt(1)) != 0; exponent-- {
			mantissa.Mul(mantissa, big.NewInt(10))
			r := new(big.Rat).SetFrac(mantissa, den)
			mantissa.Set(r.Num())
			den.Set(r.Denom())
		}
		other := mantissa.String() + "E" + big.NewInt(int64(exponent)).String()
		if again := canonical(t, other); again != got {
			t.Fatalf("%s gives %s, %s gives %s", src, got, other, again)
		}
	})
}

func TestMemberOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.String(), 0, 12, rapid.ID[string]).Draw(t, "names")
		object := map[string]int{}
		var shuffled bytes.Buffer
		for i, name := range rapid.Permutation(names).Draw(t, "order") {
			object[name] = i
			text, _ := json.Marshal(name)
			if i == 0 {
				shuffled.WriteByte('{')
			} else {
				shuffled.WriteByte(',')
			}
			shuffled.Write(text)
			shuffled.WriteString(":" + big.NewInt(int64(i)).String())
		}
		if len(names) == 0 {
			shuffled.WriteByte('{')
		}
		shuffled.WriteByte('}')
		got := canonical(t, shuffled.String())

		slices.SortFunc(names, func(a, b string) int {
			return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
		})
		dec := json.NewDecoder(strings.NewReader(got))
		_, _ = dec.Token()
		for _, name := range names {
			key, err := dec.Token()
			if err != nil || key != name {
				t.Fatalf("%s: got member %q, %v, want %q", got, key, err, name)
			}
			if value, _ := dec.Token(); value != float64(object[name]) {
				t.Fatalf("%s: member %q has value %v, want %d", got, name, value, object[name])
			}
		}
	})
}

// checkRewritten checks that Append returns what it would if nothing were canonical already.
func checkRewritten(t interface{ Fatalf(string, ...any) }, src []byte) {
	var a Appender
	got, gotErr := a.Append(nil, src)
	want, wantErr := new(Appender).rewrite(nil, src)
	if known := a.Members(); len(known) > 0 {
		again := []byte{'{'}
		for i, m := range known {
			if i > 0 {
				again = append(again, ',')
			}
			again = append(append(append(again, got[m.Name:m.Value-1]...), ':'), got[m.Value:m.End]...)
		}
		if again = append(again, '}'); !bytes.Equal(again, got) || got[0] != '{' {
			t.Fatalf("%q: got %q, and of its members %q", src, got, again)
		}
	}
	if !bytes.Equal(got, want) || (gotErr == nil) != (wantErr == nil) || gotErr != nil && gotErr.Error() != wantErr.Error() {
		t.Fatalf("%q: got %q, %v, want %q, %v", src, got, gotErr, want, wantErr)
	}
}

// Every short text is what it is when it is written again.
func TestShortTexts(t *testing.T) {
	const alphabet = "{}[],:\"a0.1e- \\"
	var extend func(src []byte)
	extend = func(src []byte) {
		checkRewritten(t, src)
		for i := 0; i < len(alphabet) && len(src) < 4; i++ {
			extend(append(src, alphabet[i]))
		}
	}
	extend(make([]byte, 0, 4))
}

// So is what differs from a canonical text in a few bytes.
func TestNearlyCanonical(t *testing.T) {
	bodies := []string{
		`{"attempts":1,"capabilityName":"review","latencyMs":1.234,"retried":["BUSY","TIMEOUT"],"unproven":true}`,
		`{"":null,"a":{"b":[{},[],0,false,"text"],"c":0.000001},"\u00f6":"\u20ac","\u20ac":123456789012345}`,
		`[[[[[[[[[{}]]]]]]]]]`, `{"\ud83d\ude00":1,"\ufb33":2}`,
	}
	rapid.Check(t, func(t *rapid.T) {
		src := []byte(canonical(t, rapid.SampledFrom(bodies).Draw(t, "body")))
		for range rapid.IntRange(0, 3).Draw(t, "changes") {
			at := rapid.IntRange(0, len(src)-1).Draw(t, "at")
			piece := rapid.SampledFrom([]string{"", "0", ".", "e", "-", "9", "a", `"`, ",", ":", "{", "}", "[", "]", " ", `\`, "\xff", "\x1f", `"a":1,`}).Draw(t, "piece")
			src = slices.Concat(src[:at], []byte(piece), src[at+rapid.IntRange(0, 1).Draw(t, "instead"):])
		}
		checkRewritten(t, src)
	})
}

func FuzzAppend(f *testing.F) {
	for _, seed := range []string{
		`{"b":[1,2.50,-0,1e400],"a":{"z":null,"y":"\ud83d\ude00\u000f"}}`, `"\ud800"`, `[[[]]]`, `{"a":1,"a":2}`,
		`1e99999999999999999999`, "\"\xff\"", `{"\ufb33":1,"\ud83d\ude00":2}`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		out, err := Append(nil, src)
		checkRewritten(t, src)
		if err != nil {
			var syntax *ijson.SyntaxError
			if !errors.As(err, &syntax) || syntax.Offset < 0 || syntax.Offset > len(src) {
				t.Fatalf("error %v for %d bytes", err, len(src))
			}
			return
		}
		if !json.Valid(src) {
			t.Fatalf("accepted what is not JSON: %q", src)
		}
		again, err := Append(nil, out)
		if err != nil || !bytes.Equal(again, out) {
			t.Fatalf("not a fixed point: %q, then %q, %v", out, again, err)
		}
		if before, after := decode(src), decode(out); before != after {
			t.Fatalf("value changed: %s, then %s", before, after)
		}
	})
}

// decode renders the value that encoding/json reads, numbers as doubles.
func decode(src []byte) string {
	var v any
	if err := json.Unmarshal(src, &v); err != nil {
		return "out of range" // a number beyond a double
	}
	text, _ := json.Marshal(v)
	return strings.ReplaceAll(string(text), "-0", "0")
}

func BenchmarkAppend(b *testing.B) {
	src := []byte(`{"kind":"capability_schema_violation","ts":1790000000000,"tenantId":"default","capabilityName":"review-pr","peerId":"agent://pr-reviewer","side":"request","violations":[{"path":"/severity","message":"value not in enum"}],"correlationId":"018f3f7e-0000-7000-8000-000000000000"}`)
	for name, src := range map[string][]byte{"canonical": []byte(canonical(b, string(src))), "not canonical": src} {
		b.Run(name, func(b *testing.B) {
			dst := make([]byte, 0, len(src))
			b.SetBytes(int64(len(src)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Append(dst, src); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
