package trace

import "math/rand/v2"

// Child continues the trace of parent, a W3C traceparent (Trace Context level 1,
// section 3.2), with a fresh span id. It starts a new trace when parent is empty
// or malformed, as section 4.3 demands.
func Child(parent string) string {
	var b [55]byte
	if valid(parent) {
		copy(b[:], parent)
	} else {
		copy(b[:], "00-")
		putHex(b[3:], rand.Uint64()|1) // an all-zero id is invalid
		putHex(b[19:], rand.Uint64())
		copy(b[35:], "-")
		copy(b[52:], "-01")
	}
	putHex(b[36:], rand.Uint64()|1)
	return string(b[:])
}

// ID returns the trace id of a traceparent, 32 hex digits, or "" for a malformed
// one.
func ID(traceparent string) string {
	if !valid(traceparent) {
		return ""
	}
	return traceparent[3:35]
}

// putHex writes v as 16 hex digits.
func putHex(dst []byte, v uint64) {
	const digits = "0123456789abcdef"
	for i := range 16 {
		dst[i] = digits[v>>(60-4*i)&15]
	}
}

func valid(s string) bool {
	const form = "vv-tttttttttttttttttttttttttttttttt-pppppppppppppppp-ff"
	if len(s) != len(form) {
		return false
	}
	for i := range len(s) {
		c := s[i]
		hex := '0' <= c && c <= '9' || 'a' <= c && c <= 'f'
		if form[i] == '-' && c != '-' || form[i] != '-' && !hex {
			return false
		}
	}
	return s[:2] != "ff" // version ff is forbidden
}
