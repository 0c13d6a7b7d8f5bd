package format_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/agentd/agentd/schema/internal/format"
)

// TestFullFormats holds what the official suite leaves open.
func TestFullFormats(t *testing.T) {
	for _, c := range []struct {
		name    format.Name
		text    string
		matches bool
	}{
		{format.Regex, `^a{2,3}?(?:b|[^\]\-c])+\p{Script=Greek}\u{1F600}\x41\cA\0$`, true},
		{format.Regex, `(?<year>\d{4})-\k<year>(?=x)(?<!y)a{,3}]`, true},
		{format.Regex, `a**`, false},
		{format.Regex, `*a`, false},
		{format.Regex, `(a`, false},
		{format.Regex, `a)`, false},
		{format.Regex, `a)(b`, false},
		{format.Regex, `[a`, false},
		{format.Regex, `\`, false},
		{format.Regex, `\x4`, false},
		{format.Regex, `\u{}`, false},
		{format.Regex, `\p{`, false},
		{format.Regex, `(?<1a>b)`, false},
		{format.Regex, `(?x)`, false},
		{format.Regex, `\00`, false},
		{format.Duration, "P1Y2M3DT4H5M6S", true},
		{format.Duration, "PT", false},
		{format.Duration, "P1Y3D", false},
		{format.Duration, "P1W2D", false},
		{format.Hostname, "", false},
		{format.Hostname, "a..b", false},
		{format.Hostname, "xn--bcher-kva.example", true},
		{format.Hostname, "xn--999999999999", false},
		{format.Hostname, "ab--cd", false},
		{format.IDNHostname, "bücher。example", true},
		{format.RelativeJSONPointer, "0+1/a", true},
		{format.RelativeJSONPointer, "01", false},
		{format.URITemplate, "{+path:3,x*}/here", true},
		{format.URITemplate, "{path:10000}", false},
		{format.URITemplate, "{", false},
		{format.IRI, "http://ƒøø.ßår/?q=\U000E0001", true},
		{format.IRI, "http://x/\uE000", false},
		{format.Time, "23:59:60Z", true},
		{format.Time, "22:59:60Z", false},
	} {
		if !format.Known(c.name) {
			t.Errorf("%s is not known", c.name)
		}
		if got := c.name.Match([]byte(c.text)); got != c.matches {
			t.Errorf("%q is a %s: %v", c.text, c.name, got)
		}
	}
	if format.Known("color") {
		t.Error("color is a format")
	}
}

// TestFullLanguages holds the languages of the formats to the checks, on the strings of
// the official suite and on samples: a wide one holds all strings of the format, and a
// narrow one holds no others. A proof rests on both.
func TestFullLanguages(t *testing.T) {
	texts := suiteStrings(t)
	for _, name := range []format.Name{
		format.Date, format.Time, format.Duration, format.Hostname, format.IDNHostname, format.IDNEmail, format.IPv4, format.IPv6,
		format.IRI, format.IRIReference, format.URITemplate, format.JSONPointer, format.RelativeJSONPointer, format.Regex,
	} {
		samples := format.Samples(name, 0)
		if len(samples) == 0 {
			t.Errorf("%s has no samples", name)
		}
		for _, s := range samples {
			if !name.Match([]byte(s)) {
				t.Errorf("%q is no %s", s, name)
			}
		}
		for _, how := range format.Fits() {
			var languages []*regexp.Regexp
			for _, l := range format.Languages(name, how) {
				languages = append(languages, regexp.MustCompile(l))
			}
			for _, text := range append(texts, samples...) {
				in, all := name.Match([]byte(text)), true
				for _, l := range languages {
					all = all && l.MatchString(text)
				}
				if how == format.Narrow && all && !in || how != format.Narrow && in && !all {
					t.Errorf("%s: %q has the format: %v, and is in its languages (fit %d): %v", name, text, in, how, all)
				}
			}
		}
	}
}

// suiteStrings returns the strings of the official suite about formats.
func suiteStrings(t *testing.T) (all []string) {
	t.Helper()
	src, err := os.ReadFile("../../../testdata/conformance/json-schema-test-suite/draft2020-12.json")
	if err != nil {
		t.Fatal(err)
	}
	var files map[string][]struct{ Tests []struct{ Data any } }
	if err := json.Unmarshal(src, &files); err != nil {
		t.Fatal(err)
	}
	for file, groups := range files {
		for _, g := range groups {
			for _, c := range g.Tests {
				if text, ok := c.Data.(string); ok && strings.Contains(file, "format") {
					all = append(all, text)
				}
			}
		}
	}
	return all
}
