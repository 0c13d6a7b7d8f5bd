package format

import "strings"

// Samples are strings of a format that read well, and one of a length.
func Samples(f Name, least int) []string {
	const longest = 1 << 16
	pad := strings.Repeat("a", min(least, longest))
	switch f {
	case UUID:
		return []string{"0190a6e8-7c31-7d4a-9b2e-5f3c8a1d6e40", "6ba7b810-9dad-11d1-80b4-00c04fd430c8"}
	case Email:
		return []string{"user@example.com", "a@b", longEmail(least)}
	case URI:
		const short = "https://example.com/"
		return []string{short, "a:", short + pad[min(len(pad), len(short)):]}
	case URIReference:
		return []string{"/path", "https://example.com/", "", "/" + pad[min(len(pad), 1):]}
	case DateTime:
		const short = "2026-01-15T09:30:00Z"
		digits := strings.Repeat("0", max(1, len(pad)-len(short)-1))
		return []string{short, short[:len(short)-1] + "." + digits + "Z"}
	default:
		return samplesFull(f)
	}
}

// longEmail is an email of a length, if there is one: a local part of up to 64
// characters, and a domain of labels of at most 63.
func longEmail(length int) string {
	if length < 3 || length > maxLocalPart+1+maxDomain {
		return "a@b"
	}
	local := min(maxLocalPart, length-2)
	domain := []byte(strings.Repeat("a", length-local-1))
	const label = 32 // at most one longer, at the end
	for i := label - 1; i < len(domain)-1; i += label {
		domain[i] = '.'
	}
	return strings.Repeat("a", local) + "@" + string(domain)
}
