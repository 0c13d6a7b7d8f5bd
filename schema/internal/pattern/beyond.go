package pattern

import (
	"slices"
	"unicode/utf8"

	"github.com/agentd/agentd/schema/internal/regular"
)

// beyond maps characters beyond ASCII to classes.
type beyond struct {
	starts []rune   // the first characters of the runs
	kinds  []uint16 // the class of each run
	// pages replaces the search through many runs for characters of three bytes at
	// most: an offset into leaves for each block of characters. Blocks of one
	// class share a leaf.
	pages  []uint16
	leaves []uint16
}

// A block has so many characters. Patterns with few runs do without pages.
const (
	pageBits = 5
	pageSize = 1 << pageBits
	fewRuns  = 4
)

// Bounds of pages and leaves, in bytes: of one pattern, in which every block has a leaf of
// its own, and of all in a schema.
const (
	maxPages       = 2 * (1<<16>>pageBits + 1<<16)
	maxSchemaPages = 1 << 20
)

// newBeyond joins runs that the program does not tell apart, which makes the search
// through them shorter.
func newBeyond(alphabet *regular.Alphabet) beyond {
	b := beyond{starts: []rune{utf8.RuneSelf}, kinds: []uint16{alphabet.Class(utf8.RuneSelf)}}
	for run, first := range alphabet.Cuts {
		kind := alphabet.ClassOf[run]
		if first > utf8.RuneSelf && kind != b.kinds[len(b.kinds)-1] {
			b.starts, b.kinds = append(b.starts, first), append(b.kinds, kind)
		}
	}
	return b
}

// paginate builds the pages, if budget allows for what they take, in bytes.
func (b *beyond) paginate(budget *int) {
	if len(b.starts) <= fewRuns || *budget < maxPages {
		return
	}
	uniform := map[uint16]uint16{}
	run := 0
	for first := rune(0); first <= 0xFFFF; first += pageSize {
		for run+1 < len(b.starts) && b.starts[run+1] <= first {
			run++
		}
		mixed := run+1 < len(b.starts) && b.starts[run+1] < first+pageSize
		leaf, known := uniform[b.kinds[run]]
		if mixed || !known {
			leaf = uint16(len(b.leaves))
			at := run
			for r := first; r < first+pageSize; r++ {
				if at+1 < len(b.starts) && b.starts[at+1] <= r {
					at++
				}
				b.leaves = append(b.leaves, b.kinds[at])
			}
		}
		if !mixed {
			uniform[b.kinds[run]] = leaf
		}
		b.pages = append(b.pages, leaf)
	}
	*budget -= 2 * (len(b.pages) + len(b.leaves))
}

// wide returns the class of the character beyond ASCII at text[i], and the offset
// behind it. The text is valid UTF-8.
func (b *beyond) wide(text []byte, i int) (class, end int) {
	r, size := rune(0), 3
	if isThree(text, i) {
		r = three(text, i)
	} else {
		r, size = utf8.DecodeRune(text[i:])
	}
	if int(r>>pageBits) < len(b.pages) {
		return b.paged(r), i + size
	}
	return int(b.class(r)), i + size
}

// isThree reports whether a character of three bytes stands at text[i].
func isThree(text []byte, i int) bool { return text[i]&0xF0 == 0xE0 && len(text)-i >= 3 }

// three returns that character. The text is valid, so that its bytes need no check.
func three(text []byte, i int) rune {
	return rune(text[i]&0x0F)<<12 | rune(text[i+1]&0x3F)<<6 | rune(text[i+2]&0x3F)
}

// paged returns the class of a character for which there is a page.
func (b *beyond) paged(r rune) int {
	return int(b.leaves[int(b.pages[r>>pageBits])+int(r&(pageSize-1))])
}

// class returns the class of a character beyond ASCII.
func (b *beyond) class(r rune) uint16 {
	if len(b.starts) <= fewRuns {
		at := len(b.starts) - 1
		for at > 0 && b.starts[at] > r {
			at--
		}
		return b.kinds[at]
	}
	at, exact := slices.BinarySearch(b.starts, r)
	if !exact {
		at--
	}
	return b.kinds[at]
}
