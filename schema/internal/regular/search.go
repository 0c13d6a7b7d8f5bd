package regular

import (
	"encoding/binary"
	"slices"
	"unicode"
)

// Budget bounds searches by counting steps. It can be shared by several.
type Budget struct {
	// Steps is what is left. A step is one position of one automaton, which
	// takes some tens of nanoseconds and at most some tens of bytes.
	Steps int
}

func (b *Budget) spend(n int) { b.Steps -= n }

// Answer is the outcome of a search.
type Answer uint8

// The outcomes.
const (
	Empty   Answer = iota + 1 // no string qualifies
	Found                     // one does
	Unknown                   // the budget was used up
)

// Term is a language, or with Complement the strings outside of it.
type Term struct {
	Language   *Language
	Complement bool
}

// Query describes the strings that are looked for.
type Query struct {
	// Terms must all hold the string.
	Terms []Term
	// MinLength and MaxLength count code points; a MaxLength below zero means
	// no limit.
	MinLength, MaxLength int
	// Excluded strings do not count.
	Excluded []string
}

// Find returns the shortest string that qualifies, and among those of its
// length one that reads well.
func (q Query) Find(b *Budget) (string, Answer) {
	s := search{query: q, budget: b, seen: map[string]struct{}{}}
	s.trie()
	s.alphabet()
	return s.run()
}

// letter is a class of code points that all automata treat alike.
type letter struct {
	rune  rune
	rank  int     // how well the rune reads; less is better
	class []int16 // by term
	key   rune    // the rune itself where an excluded string holds it; else -1
}

// search is one breadth-first walk through the product of the automata.
type search struct {
	query   Query
	budget  *Budget
	letters []letter
	tries   []trieNode
	nodes   []node
	states  []int32 // of all nodes, one for each term
	seen    map[string]struct{}
	key     []byte
}

// node is a product state with the way that led there.
type node struct {
	parent int32
	letter int32
	length int
	trie   int32
}

// trieNode is a prefix of the excluded strings.
type trieNode struct {
	next map[rune]int32
	end  bool
}

// offTrie is the state of having left every excluded string.
const offTrie = -1

func (s *search) trie() {
	if len(s.query.Excluded) == 0 {
		return
	}
	s.tries = []trieNode{{next: map[rune]int32{}}}
	for _, text := range s.query.Excluded {
		at := int32(0)
		for _, r := range text {
			next, ok := s.tries[at].next[r]
			if !ok {
				next = int32(len(s.tries))
				s.tries = append(s.tries, trieNode{next: map[rune]int32{}})
				s.tries[at].next[r] = next
			}
			at = next
		}
		s.tries[at].end = true
		s.budget.spend(len(text))
	}
}

// alphabet cuts the code points into letters.
func (s *search) alphabet() {
	cuts := []rune{0, 0xD800, 0xE000}
	for _, t := range s.query.Terms {
		cuts = append(cuts, t.Language.cuts...)
	}
	special := map[rune]bool{}
	for _, t := range s.tries {
		for r := range t.next {
			cuts = append(cuts, r, r+1)
			special[r] = true
		}
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	known := map[string]int{}
	class := make([]int16, len(s.query.Terms))
	for i, cut := range cuts {
		last := rune(unicode.MaxRune)
		if i+1 < len(cuts) {
			last = cuts[i+1] - 1
		}
		if cut > unicode.MaxRune || cut == 0xD800 {
			continue
		}
		key := rune(-1)
		if special[cut] {
			key = cut
		}
		s.key = binary.LittleEndian.AppendUint32(s.key[:0], uint32(key))
		for k, t := range s.query.Terms {
			class[k] = t.Language.class(cut)
			s.key = binary.LittleEndian.AppendUint16(s.key, uint16(class[k]))
		}
		r, rank := readable(cut, last)
		at, ok := known[string(s.key)]
		if !ok {
			known[string(s.key)] = len(s.letters)
			s.letters = append(s.letters, letter{r, rank, slices.Clone(class), key})
		} else if rank < s.letters[at].rank {
			s.letters[at].rune, s.letters[at].rank = r, rank
		}
	}
	s.budget.spend(len(cuts))
	slices.SortStableFunc(s.letters, func(a, b letter) int { return a.rank - b.rank })
}

// readable returns the code point between first and last that reads best.
func readable(first, last rune) (r rune, rank int) {
	preferred := [...][2]rune{
		{'a', 'z'}, {'0', '9'}, {'A', 'Z'}, {'-', '.'}, {'_', '_'}, {' ', ' '}, {'!', '~'},
		{0xE0, 0xFF}, {0xA1, 0x2FF}, {0x370, 0x1FFF}, {0x3041, 0xD7FF}, {0x20, 0xD7FF},
	}
	for i, p := range preferred {
		if lo, hi := max(first, p[0]), min(last, p[1]); lo <= hi {
			return lo, i
		}
	}
	return first, len(preferred)
}

func (s *search) run() (string, Answer) {
	q := s.query
	if q.MaxLength >= 0 && q.MinLength > q.MaxLength {
		return "", Empty
	}
	start := make([]int32, len(q.Terms))
	for i, t := range q.Terms {
		start[i] = t.Language.start(s.budget)
	}
	root := node{parent: -1, trie: offTrie}
	if len(s.tries) > 0 {
		root.trie = 0
	}
	s.visit(root, start)
	next := make([]int32, len(q.Terms))
	for at := 0; at < len(s.nodes); at++ {
		if s.accepts(at) {
			return s.text(at), Found
		}
		if s.budget.Steps < 0 {
			return "", Unknown
		}
		if q.MaxLength >= 0 && s.nodes[at].length >= q.MaxLength {
			continue
		}
		for i := range s.letters {
			s.follow(at, i, next)
		}
	}
	return "", Empty
}

// follow visits what one letter leads to.
func (s *search) follow(at, i int, next []int32) {
	l := &s.letters[i]
	from := s.states[at*len(next):]
	for k, t := range s.query.Terms {
		next[k] = t.Language.step(from[k], l.class[k], s.budget)
		if !t.Complement && next[k] == stateDead || t.Complement && next[k] == stateMatched {
			return
		}
	}
	n := node{parent: int32(at), letter: int32(i), length: s.nodes[at].length + 1, trie: offTrie}
	if was := s.nodes[at].trie; was != offTrie {
		if to, ok := s.tries[was].next[l.key]; ok {
			n.trie = to
		}
	}
	s.visit(n, next)
}

// visit adds a node unless one like it is known. Beyond the least length,
// nodes differ only by their states: the first is the shortest.
func (s *search) visit(n node, states []int32) {
	s.key = binary.LittleEndian.AppendUint32(s.key[:0], uint32(min(n.length, s.query.MinLength)))
	s.key = binary.LittleEndian.AppendUint32(s.key, uint32(n.trie))
	for _, state := range states {
		s.key = binary.LittleEndian.AppendUint32(s.key, uint32(state))
	}
	s.budget.spend(1)
	if _, ok := s.seen[string(s.key)]; ok {
		return
	}
	s.budget.spend(4)
	s.seen[string(s.key)] = struct{}{}
	s.nodes = append(s.nodes, n)
	s.states = append(s.states, states...)
}

func (s *search) accepts(at int) bool {
	n := s.nodes[at]
	if n.length < s.query.MinLength || n.trie != offTrie && s.tries[n.trie].end {
		return false
	}
	for k, t := range s.query.Terms {
		if t.Language.accepts(s.states[at*len(s.query.Terms)+k]) == t.Complement {
			return false
		}
	}
	return true
}

// text spells the way to a node.
func (s *search) text(at int) string {
	var runes []rune
	for n := s.nodes[at]; n.parent >= 0; n = s.nodes[n.parent] {
		runes = append(runes, s.letters[n.letter].rune)
	}
	slices.Reverse(runes)
	return string(runes)
}
