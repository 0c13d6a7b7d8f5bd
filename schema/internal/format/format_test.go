package format

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// formatExamples are strings that have a format, and strings that nearly have it.
type formatExamples struct {
	format    Name
	good, bad []string
}

func examplesOfFormats() []formatExamples {
	label := strings.Repeat("a", 63)
	return []formatExamples{
		{UUID, []string{
			"00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff",
			"2EB8AA08-AA98-11EA-B4AA-73B441D16380", "0191a2b3-c4d5-7e6f-8a9b-0c1d2e3f4a5b",
		}, []string{
			"", "2eb8aa08aa9811eab4aa73b441d16380", "{2eb8aa08-aa98-11ea-b4aa-73b441d16380}",
			"urn:uuid:2eb8aa08-aa98-11ea-b4aa-73b441d16380", "2eb8aa08-aa98-11ea-b4aa-73b441d1638g",
			"2eb8aa08-aa98-11ea-b4aa-73b441d16380 ", "2eb8aa08-aa98-11ea-b4aa-73b441d1638",
		}},
		{DateTime, []string{
			"1963-06-19T08:30:06.283185Z", "1963-06-19t08:30:06z", "2020-02-29T00:00:00+00:00", "2000-02-29T23:59:59-23:59",
			"1990-12-31T23:59:60Z", "1990-12-31T15:59:60-08:00", "1991-01-01T00:29:60+00:30", "1990-12-31T23:59:60.5Z",
			"0000-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999999Z", "1937-01-01T12:00:27.87+00:20",
		}, []string{
			"", "2024", "2024-01-01", "2024-01-01T00:00Z", "2024-01-01 00:00:00Z", "2024-01-01T00:00:00", "2024-13-01T00:00:00Z",
			"2024-00-01T00:00:00Z", "2023-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "2024-04-31T00:00:00Z", "2024-01-00T00:00:00Z",
			"2024-01-01T24:00:00Z", "2024-01-01T00:60:00Z", "2024-01-01T00:00:61Z", "2024-01-01T00:00:00.Z", "2024-01-01T00:00:00,5Z",
			"2024-01-01T00:00:00+24:00", "2024-01-01T00:00:00+00:60", "2024-01-01T00:00:00+0000", "2024-01-01T00:00:00ZZ",
			"1990-12-31T23:59:60+01:00", "1990-12-31T23:58:60Z", "1990-12-31T22:59:60Z", "2024-01-01T00:00:00Z\n", "২024-01-01T00:00:00Z",
			"+2024-01-01T00:00:00Z", "24-01-01T00:00:00Z", "2024-01-01T00:00:00Y",
		}},
		{Email, []string{
			"joe.bloggs@example.com", "te~st@example.com", "a@b", "user+tag@sub.example.co", "!#$%&'*+-/=?^_`{|}~@example.org",
			`"joe bloggs"@example.com`, `"joe..bloggs"@example.com`, `"joe@bloggs"@example.com`, `"a\"b\\"@example.com`, `""@example.com`,
			"joe@[127.0.0.1]", "joe@[IPv6:::1]", "joe@[ipv6:2001:db8::1]", "joe@[IPv6:1:2:3:4:5:6:7:8]", "joe@[IPv6:::ffff:1.2.3.4]",
			"joe@1.2.3.4", "joe@xn--bcher-kva.example", "joe@" + label + ".example", strings.Repeat("l", 64) + "@example.com",
		}, []string{
			"", "2962", "@example.com", "joe@", "joe", ".joe@example.com", "joe.@example.com", "jo..e@example.com", "joe bloggs@example.com",
			`"joe@example.com`, `"a"b"@example.com`, `"a\"@example.com`, `a"b"@example.com`, "joe@exa mple.com", "joe@-example.com",
			"joe@example-.com", "joe@example..com", "joe@.example.com", "joe@example.com.", "joe@exa_mple.com", "joe@[127.0.0.300]",
			"joe@[1.2.3]", "joe@[127.0.0.1", "joe@127.0.0.1]", "joe@[]", "joe@[IPv6:12345::]", "joe@[IPv6:1:2:3:4:5:6:7::]",
			"joe@[IPv6:]", "joe@[x-tag:data]", "jöe@example.com", "joe@exämple.com", "a@b@c", "joe@a" + label + ".example",
			strings.Repeat("l", 65) + "@example.com", "joe@" + strings.Repeat("a.", 128) + "aa", "<joe@example.com>", "joe@example.com\n",
			"\"\x01\"@example.com", `mailto:joe@`,
		}},
		{URI, []string{
			"http://foo.bar/?baz=qux#quux", "http://foo.com/blah_(wikipedia)_blah#cite-1", "urn:oasis:names:specification:docbook:dtd:xml:4.1.2",
			"mailto:John.Doe@example.com", "tel:+1-816-555-1212", "ldap://[2001:db8::7]/c=GB?objectClass?one", "file:///etc/fstab", "a:",
			"http://-.~_!$&'()*+,;=:%40:80%2f::::::@example.com", "http://[v1.fe80::a+en1]", "http://[VF.x]", "http://[v0aF.~:!]", "http://example.com:/", "http://[::]",
			"http://1.2.3.999", "x+y-z.1:rest", "http://@/", "http:a:b", "http:///", "nats://a.b:4222", "http://[1:2:3:4:5:6:1.2.3.4]/",
			"http://[1:2:3:4:5:6:7::]",
		}, []string{
			"", "//foo.bar/", "/abc", "abc", "#frag", ":foo", "1http://a", "ht_tp://a", "http://a b", "http://a\\b", "http://a/%", "http://a/%1",
			"http://a/%zz", "http://a/<>", "http://a/{x}", "http://a/^", "http://a/`", "http://a/|", "http://a/\"", "http://a:b/", "http://[::1",
			"http://[::1]x", "http://::1]", "http://[:::1]", "http://[1::2::3]", "http://[1:2:3:4:5:6:7]", "http://[1:2:3:4:5:6:7:8:9]",
			"http://[12345::]", "http://[::1.2.3]", "http://[::1.2.3.4:5]", "http://[::01.2.3.4]", "http://[v.x]", "http://[v1.]", "http://[v1]", "http://[vg.x]", "http://[v1.%41]", "http://[v1./]", "http://[]",
			"http://a#b#c", "http://é", "http://a/é", "http:/[::1]", "http://a@b@c", "http://a\n", "http://[::1]:x", "http://[1:]", "http://[:1]",
			"http://[::1%25eth0]",
		}},
		{URIReference, []string{
			"", "#", "?", "/", "//", "//host", "//user@host:1/p?q#f", "abc", "a/b:c", "./a:b", "../x", "#frag", "?q=/?", "/a//b", "http://a/b",
			"%41", "a%2Fb", ";p=1", "//[::1]", "@", "a@b",
		}, []string{
			"a:b:é", "1:b", ":", "_:x", "\\\\WINDOWS\\share", "#fr\\ag", "#a#b", "/%zz", "/a b", "//h:x", "//a@b@c", "/[", "//[::1", "é", "a\x00", "<",
		}},
	}
}

func TestFormats(t *testing.T) {
	for _, c := range examplesOfFormats() {
		for _, s := range c.good {
			if !c.format.Match([]byte(s)) {
				t.Errorf("%s: %q is refused", c.format, s)
			}
		}
		for _, s := range c.bad {
			if c.format.Match([]byte(s)) {
				t.Errorf("%s: %q is accepted", c.format, s)
			}
		}
	}
}

// TestEveryDate holds the calendar to that of package time: the days before, in
// and after every month, in years of every kind.
func TestEveryDate(t *testing.T) {
	for _, year := range []int{0, 4, 100, 400, 1900, 2000, 2023, 2024, 2100, 9996, 9999} {
		for month := range 14 {
			for day := range 33 {
				text := fmt.Sprintf("%04d-%02d-%02dT00:00:00Z", year, month, day)
				_, err := time.Parse(time.RFC3339, text)
				if DateTime.Match([]byte(text)) != (err == nil) {
					t.Errorf("%s: package time says %v", text, err)
				}
			}
		}
	}
}

// TestFormatsByEdits changes one character of each example, which makes strings
// on both sides of every rule, and holds the validator to the expressions by
// which the prover knows the formats: they are written apart from one another.
func TestFormatsByEdits(t *testing.T) {
	for _, c := range examplesOfFormats() {
		matches := func(how Fit) func(s string) bool {
			var all []*regexp.Regexp
			for _, source := range Languages(c.format, how) {
				all = append(all, regexp.MustCompile(source))
			}
			return func(s string) bool {
				return !slices.ContainsFunc(all, func(re *regexp.Regexp) bool { return !re.MatchString(s) })
			}
		}
		within, over := matches(Narrow), matches(Close)
		for _, example := range c.good {
			if len(example) > 90 {
				continue
			}
			for i := range len(example) {
				for _, edit := range []string{"", "0", "6", "g", ":", ".", "-", "@", "%", "[", "]", "\"", "\\", "/", " ", example[i:i+1] + example[i:i+1]} {
					s := example[:i] + edit + example[i+1:]
					got := c.format.Match([]byte(s))
					if within(s) && !got || got && !over(s) {
						t.Errorf("%s: %q is accepted: %v; the languages say %v to %v", c.format, s, got, within(s), over(s))
					}
				}
			}
		}
	}
}

// FuzzFormats sets each format beside a parser of the standard library where
// one is known to be stricter or laxer.
func FuzzFormats(f *testing.F) {
	for _, s := range []string{
		"2024-02-29T12:30:59.5+01:00", "http://u@[::1]:80/p?q#f", "a@b.c", "::ffff:1.2.3.4", "1::8", "1:2:3:4:5:6:7:8", "/a?b#c", "",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		text := []byte(s)
		if isDateTime(text) && !strings.Contains(s, ":60") {
			upper := strings.ToUpper(s)
			if _, err := time.Parse(time.RFC3339Nano, upper); err != nil {
				t.Errorf("date-time %q is accepted, but %v", s, err)
			}
		}
		if isIPv6(text, 7, false) != isAddr6(s) {
			t.Errorf("IPv6 %q: %v, netip says %v", s, isIPv6(text, 7, false), isAddr6(s))
		}
		if isURI(text, true) && !isURI(text, false) {
			t.Errorf("%q is a URI but no reference", s)
		}
		if isURI(text, true) {
			// url.Parse knows no IPvFuture, and looks into percent-encoding.
			if _, err := url.Parse(s); err != nil && !strings.ContainsAny(s, "[%") {
				t.Errorf("uri %q is accepted, but %v", s, err)
			}
		}
		if isEmail(text) && (!strings.Contains(s, "@") || len(s) > maxLocalPart+1+maxDomain) {
			t.Errorf("email %q is accepted", s)
		}
		isUUID(text)
	})
}

// isAddr6 is netip's opinion, without zones.
func isAddr6(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is6() && a.Zone() == "" && strings.Contains(s, ":")
}
