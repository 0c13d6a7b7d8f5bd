package spelling

import (
	"fmt"
	"strings"
)

// longestCompared bounds the names that [Nearest] compares, because the cost
// grows with the square of their length.
const longestCompared = 64

// DidYouMean returns the hint `did you mean "x"?` for the [Nearest] of known,
// or "" if none is near.
func DidYouMean(name string, known []string) string {
	if near := Nearest(name, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return ""
}

// maxListed bounds the names of a list in a message, which a file may make long.
const maxListed = 12

// Among lists the known names in words, and the one that a misspelt name was
// probably meant to be: `a, b and 3 more; did you mean "b"?`. It returns "nothing"
// if there are none.
func Among(name string, known []string) string {
	if len(known) == 0 {
		return "nothing"
	}
	text := strings.Join(known[:min(len(known), maxListed)], ", ")
	if more := len(known) - maxListed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if hint := DidYouMean(name, known); hint != "" {
		text += "; " + hint
	}
	return text
}

// Nearest returns the member of known that name most likely stands for, or "".
// Names that differ only in case or in - and _ are nearest; otherwise at most a
// third of name may be mistyped (Damerau-Levenshtein distance), or the end of
// it missing. Among equals the first of known wins.
func Nearest(name string, known []string) string {
	if len(name) > longestCompared {
		return ""
	}
	folded := fold(name)
	best, bestDistance := "", (len(name)+2)/3+1
	for _, k := range known {
		if len(k) > 2*longestCompared {
			continue // room for twice the name in - and _, but not for megabytes
		}
		if fold(k) == folded {
			return k
		}
		if len(k) > longestCompared {
			continue
		}
		d := distance(name, k)
		if len(folded) >= 3 && strings.HasPrefix(fold(k), folded) {
			d = min(d, 2) // an abbreviation, however long the rest is
		}
		if d < bestDistance {
			best, bestDistance = k, d
		}
	}
	return best
}

// fold removes what writers vary in a name: upper and lower case, - and _.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' {
			return -1
		}
		return r
	}, strings.ToLower(s))
}

// distance counts the insertions, deletions, substitutions and swaps of
// neighbours (optimal string alignment) that turn a into b. It keeps three
// rows of the table: a swap reaches back two.
func distance(a, b string) int {
	before, previous, current := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := 1; i <= len(a); i++ {
		current[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			current[j] = min(previous[j]+1, current[j-1]+1, previous[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				current[j] = min(current[j], before[j-2]+1)
			}
		}
		before, previous, current = previous, current, before
	}
	return previous[len(b)]
}
