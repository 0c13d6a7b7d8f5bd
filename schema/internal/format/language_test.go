package format

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestFormatLanguages holds the languages by which the prover knows a format
// to the check that the validator makes.
func TestFormatLanguages(t *testing.T) {
	odd := []string{
		"", ":", "a:", "a:b", "//", "//h", "a://", "a://[::1]", "a://[v1.x]:8", "//[1:2:3:4:5:6:7:8]", "//[1:2:3:4:5:6:7::]", "//[::2:3:4:5:6:7:8]", "//[::1:2:3:4:5:6:7:8]", "//[1::8]", "//[1:2:3:4:5:6:1.2.3.4]", "//[::1.2.3.4]", "//[1:2:3:4:5:6::1.2.3.4]", "//[1:2:3:4:5::1.2.3.4]", "//[1:2:3:4::5:1.2.3.4]", "//[::01.2.3.4]", "//[::1.2.3.256]", "//[:1]", "//[1:]", "//[12345::]", "//[::", "a:/b:c", "a/b:c", "1a:b", "%41", "%4", "?q#f#",
		"a://u@h:1/p?q#f", "a://u@v@h", "a://h:x", "/p//q", "a:b//c", "@", "a@b", "a@b.", "a@-b", "a@b-", "a@b-c.d", `"a b"@c`, `"a\"b"@c`,
		`"a"b"@c`, ".a@b", "a.b@c", "a..b@c", "a@[127.0.0.1]", "a@[IPv6:::1]", "a@[ipV6:1:2:3:4:5:6:7:8]", "a@[IPv6:1:2:3:4:5:6:7::]", "a@[IPv6:1:2:3:4:5:6::]", "a@[IPv6:1:2:3:4::1.2.3.4]", "a@[IPv6:1:2:3:4:5::1.2.3.4]", "a@[001.02.3.255]", "a@[256.1.1.1]", "a@[IPv6:]", "a@[x]", strings.Repeat("a", 64) + "@b", strings.Repeat("a", 65) + "@b",
		"a@" + strings.Repeat("b", 64), "a@" + strings.Repeat("b.", 127) + "b", "a@" + strings.Repeat("b.", 128) + "b",
		"2024-02-29T00:00:00Z", "2023-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "2000-02-29T00:00:00Z", "2024-04-31T00:00:00Z",
		"2024-12-31T23:59:60Z", "2024-12-31T22:59:60Z", "2024-12-31T22:59:60-01:00", "2024-12-31t23:59:59.999z", "2024-12-31T24:00:00Z",
		"2024-12-31T23:59:59+24:00", "2024-12-31T23:59:59.Z", "2024-12-31 23:59:59Z", "6ba7b810-9dad-11d1-80b4-00C04FD430C8", "6ba7b8109dad11d180b400c04fd430c8",
	}
	for _, f := range []Name{UUID, Email, URI, URIReference, DateTime} {
		t.Run(string(f), func(t *testing.T) {
			wide, over, under := compileAll(Languages(f, Wide)), compileAll(Languages(f, Close)), compileAll(Languages(f, Narrow))
			check := func(s string) (problem string) {
				has := f.Match([]byte(s))
				least, most := Span(f)
				switch {
				case has && (!matchAll(over, s) || !matchAll(wide, s)):
					return "is of the format, but not in the wider language"
				case has && (len(s) < least || len(s) > most):
					return "is of the format, but not of its lengths"
				case !has && matchAll(under, s):
					return "is in the narrower language, but not of the format"
				}
				return ""
			}
			for _, s := range odd {
				if problem := check(s); problem != "" {
					t.Errorf("%q %s", s, problem)
				}
			}
			for least := range 400 {
				for _, s := range Samples(f, least) {
					if problem := check(s); problem != "" || !f.Match([]byte(s)) {
						t.Errorf("the sample %q is not of the format", s)
					}
				}
			}
			rapid.Check(t, func(t *rapid.T) {
				from := rapid.SampledFrom([]*regexp.Regexp{over[len(over)-1], under[len(under)-1]}).Draw(t, "language")
				s := rapid.StringMatching(from.String()).Draw(t, "string")
				if problem := check(s); problem != "" {
					t.Fatalf("%q %s", s, problem)
				}
				// One byte changed often leaves the format.
				if len(s) > 0 {
					at := rapid.IntRange(0, len(s)-1).Draw(t, "at")
					by := rapid.SampledFrom([]string{"", ":", "/", "@", "[", "]", ".", "-", "0", "9", "%", "#", "?", `"`, `\`, " ", "é"}).Draw(t, "by")
					s = s[:at] + by + s[at+1:]
				}
				if problem := check(s); problem != "" {
					t.Fatalf("%q %s", s, problem)
				}
			})
		})
	}
}

func compileAll(sources []string) []*regexp.Regexp {
	var all []*regexp.Regexp
	for _, s := range sources {
		all = append(all, regexp.MustCompile(s))
	}
	return all
}

func matchAll(all []*regexp.Regexp, s string) bool {
	for _, e := range all {
		if !e.MatchString(s) {
			return false
		}
	}
	return true
}

func TestFormatImplication(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := []byte(rapid.StringMatching(languageURI(false)).Draw(t, "uri"))
		if URI.Match(s) && !URIReference.Match(s) {
			t.Fatalf("%q is a URI but no URI reference", s)
		}
	})
}
