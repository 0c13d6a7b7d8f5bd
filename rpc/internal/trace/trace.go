package trace

import (
	"math/rand/v2"
	"strings"
)

// length is that of a traceparent of version 00: 00-<trace id>-<span id>-<flags>.
const length = 55

// Child continues the trace of parent, a W3C traceparent (Trace Context level 1,
// section 3.2), with a fresh span id. It starts a new trace when parent is empty
// or malformed, as section 4.3 demands; one that is not sampled, as nobody records
// what began it (section 3.2.2.5.1). The result is of version 00, the only one
// that this package writes, whatever the version of parent.
func Child(parent string) string {
	if !Valid(parent) {
		return New(false)
	}
	var b [length]byte
	copy(b[:], parent)
	copy(b[:], "00")
	putHex(b[36:], rand.Uint64()|1) // an all-zero id is invalid
	return string(b[:])
}

// New begins a trace.
func New(sampled bool) string {
	if sampled {
		return NewBelow(always)
	}
	return NewBelow(0)
}

// always is the bound below which all traces are.
const always = 1 << 63

// NewBelow begins a trace that is sampled if [Rank] is below the bound.
func NewBelow(bound uint64) string {
	var b [length]byte
	copy(b[:], "00-")
	low := rand.Uint64()
	putHex(b[3:], rand.Uint64()|1)
	putHex(b[19:], low)
	copy(b[35:], "-")
	putHex(b[36:], rand.Uint64()|1)
	copy(b[52:], "-00")
	if low>>1 < bound {
		b[54] = '1'
	}
	return string(b[:])
}

// Rank places the trace of a valid traceparent among all, from 0 to below 2^63, in the way
// of OpenTelemetry's libraries: the lower half of its id without the last bit.
func Rank(traceparent string) uint64 {
	var low uint64
	for i := 19; i < 35; i++ {
		low = low<<4 | uint64(hexValue(traceparent[i]))
	}
	return low >> 1
}

// Sampled reports whether a traceparent is valid and says that its trace is recorded.
func Sampled(traceparent string) bool {
	return len(traceparent) >= length && hexValue(traceparent[54])&1 == 1 && Valid(traceparent)
}

// WithSampled returns a valid traceparent with the flag set or cleared.
func WithSampled(traceparent string, sampled bool) string {
	if Sampled(traceparent) == sampled {
		return traceparent
	}
	const digits = "0123456789abcdef"
	var b [length]byte
	copy(b[:], traceparent)
	b[54] = digits[hexValue(b[54])^1]
	return string(b[:])
}

// hexValue is the value of a lower-case hex digit.
func hexValue(c byte) byte {
	if c >= 'a' {
		return c - 'a' + 10
	}
	return c - '0'
}

// ID returns the trace id of a traceparent, 32 hex digits, or "" for a malformed
// one.
func ID(traceparent string) string {
	if !Valid(traceparent) {
		return ""
	}
	return traceparent[3:35]
}

// SpanID is the span id of a traceparent that says that its trace is recorded, 16 hex digits, or "".
func SpanID(traceparent string) string {
	if !Sampled(traceparent) || !Valid(traceparent) {
		return ""
	}
	return traceparent[36:52]
}

// FromID returns a traceparent of the trace called id: 32 hex digits, or a UUID,
// which is the same with dashes. ok is false for anything else. The trace is
// sampled: somebody who names it means to find it.
func FromID(id string) (traceparent string, ok bool) {
	const uuid = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
	if len(id) == len(uuid) && id[8] == '-' && id[13] == '-' && id[18] == '-' && id[23] == '-' {
		id = strings.ReplaceAll(id, "-", "")
	}
	parent := "00-" + strings.ToLower(id) + "-0000000000000001-01"
	if !Valid(parent) {
		return "", false
	}
	return Child(parent), true
}

// putHex writes v as 16 hex digits.
func putHex(dst []byte, v uint64) {
	const digits = "0123456789abcdef"
	for i := range 16 {
		dst[i] = digits[v>>(60-4*i)&15]
	}
}

// Valid reports whether s is a traceparent. One of a later version may be longer
// (section 3.2.4). Both ends ask several times for each call, so it looks at eight digits
// at a time: random ones make a branch for each of them unpredictable.
func Valid(s string) bool {
	if len(s) < length || len(s) > length && (s[:2] == "00" || s[length] != '-') || s[2] != '-' || s[35] != '-' || s[52] != '-' {
		return false
	}
	trace := [...]uint64{word(s[3:]), word(s[11:]), word(s[19:]), word(s[27:])}
	span := [...]uint64{word(s[36:]), word(s[44:])}
	others := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[53])<<16 | uint64(s[54])<<24 | zeros&^(1<<32-1)
	if notHex(trace[0])|notHex(trace[1])|notHex(trace[2])|notHex(trace[3])|notHex(span[0])|notHex(span[1])|notHex(others) != 0 {
		return false
	}
	// Version ff and ids of nothing but zeros are forbidden.
	return s[:2] != "ff" && trace != [...]uint64{zeros, zeros, zeros, zeros} && span != [...]uint64{zeros, zeros}
}

// Each constant repeats one byte eight times.
const (
	ones  = 0x0101010101010101
	highs = 0x80 * ones
	zeros = '0' * ones // the digit
)

// word returns the first eight bytes of s.
func word(s string) uint64 {
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// notHex is 0 if all bytes of w are lower-case hex digits. The sums lift what is at least
// the first digit, and what is beyond the last, to the highest bit of its byte; a byte
// that has that bit already would spoil the next one, and is refused itself.
func notHex(w uint64) uint64 {
	digit := (w + (0x80-'0')*ones) &^ (w + (0x7f-'9')*ones)
	letter := (w + (0x80-'a')*ones) &^ (w + (0x7f-'f')*ones)
	return (^(digit | letter) | w) & highs
}
