package format

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The functions of this file follow the grammars production by production. The fast
// ones, which read a text once, are held against them.

func plainIsURI(text []byte, absolute bool) bool {
	end := bytes.IndexAny(text, ":/?#")
	if end >= 0 && text[end] == ':' {
		// Without a scheme, the first segment must not hold a colon.
		if !plainIsScheme(text[:end]) {
			return false
		}
		text = text[end+1:]
	} else if absolute {
		return false
	}
	// The fragment is cut off before the query, because it may hold question
	// marks (RFC 3986 sections 3.4 and 3.5).
	text, fragment, _ := bytes.Cut(text, []byte("#"))
	text, query, _ := bytes.Cut(text, []byte("?"))
	if !plainUriChars(fragment, ":@/?") || !plainUriChars(query, ":@/?") {
		return false
	}
	// Two slashes begin an authority, which ends at the next slash (section
	// 3.2). A path without authority must not begin with two.
	if rest, ok := bytes.CutPrefix(text, []byte("//")); ok {
		slash := bytes.IndexByte(rest, '/')
		if slash < 0 {
			slash = len(rest)
		}
		if !plainIsAuthority(rest[:slash]) {
			return false
		}
		text = rest[slash:]
	}
	return plainUriChars(text, ":@/")
}

func plainUriChars(text []byte, extra string) bool {
	for i := 0; i < len(text); i++ {
		c := text[i]
		if is(c, classUnreserved|classSubDelim) {
			continue
		}
		if c == '%' && i+2 < len(text) && is(text[i+1], classHex) && is(text[i+2], classHex) {
			i += 2
			continue
		}
		if strings.IndexByte(extra, c) < 0 {
			return false
		}
	}
	return true
}

func plainIsAuthority(text []byte) bool {
	// The first at sign ends the user information: neither part may hold one.
	if user, host, ok := bytes.Cut(text, []byte("@")); ok {
		if !plainUriChars(user, ":") {
			return false
		}
		text = host
	}
	if len(text) > 0 && text[0] == '[' {
		end := bytes.IndexByte(text, ']')
		return end > 0 && isIPLiteral(text[1:end]) && isPort(text[end+1:])
	}
	// A registered name holds no colon, so that the first one begins the port.
	// IPv4 addresses need no rule of their own: they are registered names too.
	host, port := text, []byte(nil)
	if colon := bytes.IndexByte(text, ':'); colon >= 0 {
		host, port = text[:colon], text[colon:]
	}
	return plainUriChars(host, "") && isPort(port)
}

func plainIsEmail(text []byte) bool {
	at := bytes.LastIndexByte(text, '@')
	if at < 1 || at > maxLocalPart || len(text)-at-1 > maxDomain {
		return false
	}
	local, domain := text[:at], text[at+1:]
	if local[0] == '"' {
		if !isQuotedLocal(local) {
			return false
		}
	} else if !plainIsDotString(local) {
		return false
	}
	// A bracket opens an address literal, as in user@[192.0.2.1].
	if len(domain) > 0 && domain[0] == '[' {
		return isAddressLiteral(domain)
	}
	return plainIsDomain(domain)
}

func plainIsDotString(text []byte) bool {
	dot := true // a dot may not stand first, last or beside another
	for _, c := range text {
		switch {
		case is(c, classAtext):
			dot = false
		case c == '.' && !dot:
			dot = true
		default:
			return false
		}
	}
	return !dot
}

func plainIsDomain(text []byte) bool {
	for {
		label, rest, more := bytes.Cut(text, []byte("."))
		if len(label) == 0 || len(label) > maxLabel || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for _, c := range label {
			if !is(c, classAlpha|classDigit) && c != '-' {
				return false
			}
		}
		if !more {
			return true
		}
		text = rest
	}
}

func plainIsUUID(text []byte) bool {
	if len(text) != 36 {
		return false
	}
	for i, c := range text {
		switch i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if !is(c, classHex) {
				return false
			}
		}
	}
	return true
}

func plainHasShape(text []byte, shape string) bool {
	for i := range len(shape) {
		same := text[i] == shape[i]
		switch shape[i] {
		case '0':
			same = is(text[i], classDigit)
		case 'T':
			same = text[i]|0x20 == 't'
		}
		if !same {
			return false
		}
	}
	return true
}

func plainIsScheme(text []byte) bool {
	if len(text) == 0 || !is(text[0], classAlpha) {
		return false
	}
	for _, c := range text[1:] {
		if !is(c, classAlpha|classDigit) && c != '+' && c != '-' && c != '.' {
			return false
		}
	}
	return true
}

// TestAgainstTheGrammars edits texts of each format, and texts made of their parts.
func TestAgainstTheGrammars(t *testing.T) {
	fast := map[Name]func([]byte) bool{
		URI: func(s []byte) bool { return plainIsURI(s, true) }, URIReference: func(s []byte) bool { return plainIsURI(s, false) },
		Email: plainIsEmail, UUID: plainIsUUID,
		// The shape alone decides which texts of this length are looked at any further.
		"shape": func(s []byte) bool { return len(s) >= 19 && plainHasShape(s, "0000-00-00T00:00:00") },
	}
	seeds := []string{
		"https://user:pw@www.example.org:8080/a/b;c=1/%41?q=/x?&y=%20#frag/?", "urn:isbn:0451450523", "a/b:c?d#e", "//[::1]:80/x", "mailto:a@b.c", "?#", "a%", "%41:b",
		"jane.doe+tag@mail-2.example.org", `"quoted @ \\" local"@example.org`, "a@[127.0.0.1]", "a@b", "a@" + strings.Repeat("b", 63) + ".c", strings.Repeat("a", 64) + "@b",
		"6ba7b810-9dad-11d1-80b4-00C04FD430C8", "2024-02-29T23:59:60.123+02:00", "2024-02-29t23:59:60z",
	}
	parts := []string{"", "a", "Z", "0", "9", ":", "/", "//", "?", "#", "@", ".", "..", "-", "[", "]", "%", "%4", "%4f", "+", "=", "T", "t", " ", "\"", "\\", "é", "\x00", "\x7f", "_", "~"}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SampledFrom(seeds).Draw(t, "seed")
		for range rapid.IntRange(0, 3).Draw(t, "edits") {
			from := rapid.IntRange(0, len(s)).Draw(t, "from")
			to := min(len(s), from+rapid.IntRange(0, 3).Draw(t, "cut"))
			s = s[:from] + rapid.SampledFrom(parts).Draw(t, "part") + s[to:]
		}
		for name, plain := range fast {
			got := name.Match([]byte(s))
			if name == "shape" {
				got = len(s) >= 19 && hasTimeShape([]byte(s))
			}
			if want := plain([]byte(s)); got != want {
				t.Fatalf("%s: %q: %t, want %t", name, s, got, want)
			}
		}
	})
}

// TestShapeByBytes puts every byte in every place of a time.
func TestShapeByBytes(t *testing.T) {
	for at := range 19 {
		for c := range 256 {
			text := []byte("2024-02-29T23:59:60Z")
			text[at] = byte(c)
			if hasTimeShape(text) != plainHasShape(text, "0000-00-00T00:00:00") {
				t.Errorf("%q", text)
			}
		}
	}
	if got := bytes.Repeat([]byte{0xFF}, 19); hasTimeShape(got) {
		t.Error("bytes beyond ASCII")
	}
}
