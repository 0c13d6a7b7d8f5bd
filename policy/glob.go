package policy

import (
	"fmt"
	"math/bits"
	"strings"
	"unicode/utf8"
)

// MaxPatternBytes bounds a pattern.
const MaxPatternBytes = 512

// A Glob is a pattern over permission targets and addresses. `*` is any run of
// characters other than /, `**` any run at all, `?` one character other than /.
// Everything else stands for itself: there is no escape, no class, no choice.
// A pattern must cover the whole target. A newline is a character like any other,
// so that no target escapes a deny rule by containing one.
//
// The path semantics of other glob libraries do not fit: to them `**` inside
// RequestAgent:** is a plain star, and [ and { have a meaning.
type Glob struct {
	pattern string
	literal int  // bytes before the first wildcard
	plain   bool // no further wildcard is behind that one
}

// ParseGlob rejects a pattern that is empty, longer than [MaxPatternBytes] or not
// UTF-8.
func ParseGlob(pattern string) (Glob, error) {
	switch {
	case pattern == "":
		return Glob{}, fmt.Errorf("policy: the pattern is empty")
	case len(pattern) > MaxPatternBytes:
		return Glob{}, fmt.Errorf("policy: the pattern has %d bytes, more than %d", len(pattern), MaxPatternBytes)
	case !utf8.ValidString(pattern):
		return Glob{}, fmt.Errorf("policy: the pattern is not UTF-8")
	}
	literal := strings.IndexAny(pattern, "*?")
	if literal < 0 {
		literal = len(pattern)
	}
	behind := strings.TrimPrefix(strings.TrimPrefix(pattern[literal:], "*"), "*")
	return Glob{pattern: pattern, literal: literal, plain: !strings.ContainsAny(behind, "*?")}, nil
}

// String returns the pattern.
func (g Glob) String() string { return g.pattern }

// Match reports whether the pattern covers target, from end to end. It
// allocates nothing, and takes time linear in the target. The zero Glob covers
// the empty target alone.
func (g Glob) Match(target string) bool {
	rest, ok := strings.CutPrefix(target, g.pattern[:g.literal])
	wild := g.pattern[g.literal:]
	switch {
	case !ok:
		return false
	case wild == "":
		return rest == ""
	case !g.plain:
		return simulate(wild, rest)
	}
	// Most rules: RequestAgent:**, RequestAgent:agent://a/*, RequestAgent:**/admin. What a
	// single run covers is between the two literal ends.
	if end, any := strings.CutPrefix(wild, "**"); any {
		return strings.HasSuffix(rest, end)
	}
	covered, ok := strings.CutSuffix(rest, wild[1:])
	return ok && strings.IndexByte(covered, '/') < 0
}

// simulate runs a pattern as an automaton that is in several states at once, so
// that each character of the target is read once. Backtracking would not do: a
// * that meets a slash sends a matcher back to the ** before it, and a rule
// such as **a*b then takes time quadratic in a target of many a's, which the
// caller of an agent chooses.
func simulate(pattern, target string) bool {
	var sets [2][maxWords]uint64
	words := len(pattern)/wordBits + 1 // the part of the sets that this pattern uses
	now, next := states(sets[0][:words]), states(sets[1][:words])
	now.enter(pattern, 0)
	for i := 0; i < len(target); {
		width := 1
		if target[i] >= utf8.RuneSelf {
			// By characters: a ? that took a byte would match a part of one.
			_, width = utf8.DecodeRuneInString(target[i:])
		}
		clear(next)
		alive := false
		for w, word := range now {
			for ; word != 0; word &= word - 1 {
				at := w*wordBits + bits.TrailingZeros64(word)
				alive = next.step(pattern, at, target[i:i+width]) || alive
			}
		}
		if !alive {
			return false
		}
		now, next, i = next, now, i+width
	}
	return now.has(len(pattern))
}

const (
	wordBits = 64
	maxWords = MaxPatternBytes/wordBits + 1
)

// states is a set of offsets in a pattern: what stands before each of them has
// matched the target so far.
type states []uint64

func (s states) has(at int) bool { return s[at/wordBits]>>(at%wordBits)&1 != 0 }

// enter adds an offset. A star there may stand for nothing, so that what follows
// it is entered as well.
func (s states) enter(pattern string, at int) {
	for {
		s[at/wordBits] |= 1 << (at % wordBits)
		switch {
		case at == len(pattern) || pattern[at] != '*':
			return
		case strings.HasPrefix(pattern[at:], "**"):
			at += 2
		default:
			at++
		}
	}
}

// step adds the offsets that one character of the target leads to from another,
// and reports whether there is one.
func (s states) step(pattern string, at int, char string) bool {
	if at == len(pattern) {
		return false
	}
	switch pattern[at] {
	case '*':
		if char == "/" && !strings.HasPrefix(pattern[at:], "**") {
			return false
		}
		s.enter(pattern, at)
	case '?':
		if char == "/" {
			return false
		}
		s.enter(pattern, at+1)
	case char[0]:
		if len(char) > 1 && !strings.HasPrefix(pattern[at:], char) {
			return false
		}
		s.enter(pattern, at+len(char))
	default:
		return false
	}
	return true
}
