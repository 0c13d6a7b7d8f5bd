package ijson_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/internal/ijson"
)

// The spelling is that of RFC 8785 section 3.2.2.2: signatures depend on it.
func TestAppendQuoted(t *testing.T) {
	for text, want := range map[string]string{
		"":                             `""`,
		"a":                            `"a"`,
		`"\/`:                          `"\"\\/"`,
		"\b\f\n\r\t":                   `"\b\f\n\r\t"`,
		"\x00\x01\x1f\x0b":             `"\u0000\u0001\u001f\u000b"`,
		"\x1e\x7f":                     "\"\\u001e\x7f\"", // delete is no control character here
		"<&>":                          `"<&>"`,
		"\u2028\u2029":                 "\"\u2028\u2029\"",
		"é日本😀":                         `"é日本😀"`,
		"\ufffd":                       "\"\ufffd\"",
		"a\xffb":                       "\"a\ufffdb\"",
		"\xff\xfe":                     "\"\ufffd\ufffd\"",
		"é\xc3":                        "\"é\ufffd\"",
		"\xe6\x97":                     "\"\ufffd\ufffd\"",
		"\xed\xa0\x80":                 "\"\ufffd\ufffd\ufffd\"", // an encoded surrogate
		"seven..":                      `"seven.."`,
		"eight...":                     `"eight..."`,
		"nine bytes":                   `"nine bytes"`,
		"eight...\n":                   `"eight...\n"`,
		"sixteen bytes...x\"eight...é": `"sixteen bytes...x\"eight...é"`,
	} {
		if got := string(ijson.AppendQuoted([]byte("pre"), text)); got != "pre"+want {
			t.Errorf("AppendQuoted(%q) = %s, want pre%s", text, got, want)
		}
	}
}

// Each byte is tried at each of the places that the scan by eight bytes tells
// apart, between plain bytes.
func TestAppendQuotedFindsEveryByteAtEveryPlace(t *testing.T) {
	for c := range 256 {
		for before := range 17 {
			for after := range 9 {
				text := strings.Repeat("x", before) + string([]byte{byte(c)}) + strings.Repeat("y", after)
				got := ijson.AppendQuoted(nil, text)
				if want := reencoded(t, text); !bytes.Equal(got, want) {
					t.Fatalf("AppendQuoted(%q) = %s, want %s", text, got, want)
				}
			}
		}
	}
}

// reencoded quotes text with encoding/json, and undoes the escapes that
// ECMA-262 does not have.
func reencoded(t interface{ Fatal(...any) }, text string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(text); err != nil {
		t.Fatal(err)
	}
	out := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	if strings.ContainsAny(text, "\u2028\u2029") || !utf8.ValidString(text) {
		out = bytes.ReplaceAll(out, []byte(`\u2028`), []byte("\u2028"))
		out = bytes.ReplaceAll(out, []byte(`\u2029`), []byte("\u2029"))
		out = bytes.ReplaceAll(out, []byte(`\ufffd`), []byte("\ufffd"))
	}
	return out
}

// What is quoted is a string for the scanner, and stands for the same text.
func TestQuotedTextReadsBack(t *testing.T) {
	text := rapid.StringOf(rapid.OneOf(rapid.Rune(), rapid.RuneFrom([]rune("\"\\\n\x00 ab"))))
	rapid.Check(t, func(t *rapid.T) {
		want := text.Draw(t, "text")
		quoted := ijson.AppendQuoted(nil, want)
		end, escaped, err := ijson.ScanString(quoted, 0)
		if err != nil || end != len(quoted) {
			t.Fatalf("ScanString(%s) = %d, %v", quoted, end, err)
		}
		raw := quoted[1 : end-1]
		if got := string(ijson.AppendUnquoted(nil, raw)); got != want {
			t.Fatalf("%q became %s, which stands for %q", want, quoted, got)
		}
		if escaped != bytes.ContainsRune(raw, '\\') {
			t.Fatalf("escaped = %v for %s", escaped, quoted)
		}
	})
}

func FuzzAppendQuoted(f *testing.F) {
	for _, seed := range []string{"", "plain", "\"\\\x00", "é\xff😀", "eight byte\u2028s and more"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		quoted := ijson.AppendQuoted(nil, text)
		if err := ijson.Check(quoted, 0); err != nil {
			t.Fatalf("%q became %q: %v", text, quoted, err)
		}
		var back string
		if err := json.Unmarshal(quoted, &back); err != nil || back != strings.ToValidUTF8(back, "") {
			t.Fatalf("%q became %s, which stands for %q, %v", text, quoted, back, err)
		}
		if utf8.ValidString(text) && back != text {
			t.Fatalf("%q came back as %q", text, back)
		}
	})
}
