package policy

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxPatternBytes bounds a pattern.
const MaxPatternBytes = 512

// A Glob is a pattern over permission targets and addresses. `*` is any run of
// characters other than /, `**` any run at all, `?` one character other than /.
// Everything else stands for itself: there is no escape, no class, no choice.
// A pattern covers the whole target, and a newline is a character like any
// other, so that no target slips out of a deny rule by holding one.
//
// The path semantics of other glob libraries do not fit: to them `**` inside
// RequestAgent:** is a plain star, and [ and { have a meaning.
type Glob struct{ pattern string }

// ParseGlob refuses a pattern that is empty, longer than [MaxPatternBytes] or not
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
	return Glob{pattern: pattern}, nil
}

// String is the pattern.
func (g Glob) String() string { return g.pattern }

// A retreat is where matching goes on when what follows a star does not match:
// after the star in the pattern, with the star one character longer.
type retreat struct{ pattern, target int }

// Match reports whether the pattern covers target, from end to end. It
// allocates nothing. The zero Glob covers the empty target alone.
//
// Only the last star of each sort has to be kept: whatever stood before it has
// matched as early as it can, and so left most to what follows. A later `*`
// starts over with the `**` before it, since that may carry it past a slash.
func (g Glob) Match(target string) bool {
	p, i, j := g.pattern, 0, 0
	star, double := retreat{-1, 0}, retreat{-1, 0}
	for {
		switch {
		case strings.HasPrefix(p[i:], "**"):
			i += 2
			star, double = retreat{-1, 0}, retreat{i, j}
			continue
		case i < len(p) && p[i] == '*':
			i++
			star = retreat{i, j}
			continue
		case i == len(p) && j == len(target):
			return true
		case i < len(p) && j < len(target):
			if n := one(p[i], target[j:]); n > 0 {
				i, j = i+1, j+n
				continue
			}
		}
		switch {
		case star.pattern >= 0 && star.target < len(target) && target[star.target] != '/':
			star.target += width(target[star.target:])
			i, j = star.pattern, star.target
		case double.pattern >= 0 && double.target < len(target):
			star.pattern = -1
			double.target += width(target[double.target:])
			i, j = double.pattern, double.target
		default:
			return false
		}
	}
}

// one is how many bytes of target the byte c of a pattern takes: 0 for no match.
func one(c byte, target string) int {
	switch {
	case c == '?' && target[0] != '/':
		return width(target)
	case c == target[0] && c != '?':
		return 1
	}
	return 0
}

// width is how many bytes the first character of s has. Stars step by characters
// too: one that ended inside of a character would let ? match a part of it.
func width(s string) int {
	_, n := utf8.DecodeRuneInString(s)
	return n
}
