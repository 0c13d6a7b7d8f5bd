package regular

import (
	"encoding/binary"
	"slices"
	"unicode"
)

// Budget bounds searches by counting steps. Several searches, one after the
// other, can share one.
type Budget struct {
	// Steps is what is left. A step is one position of one automaton, which
	// takes some tens of nanoseconds and at most some tens of bytes.
	Steps int
	// Done ends searches when it is closed; nil never does.
	Done <-chan struct{}
}

func (b *Budget) spend(n int) { b.Steps -= n }

func (b *Budget) stopped() bool {
	select {
	case <-b.Done:
		return true
	default:
		return false
	}
}

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

// Find returns a string that qualifies: the shortest if there is one term, and
// among those of its length one that reads well.
//
// Only a complement needs its automaton deterministic. The others are walked
// one alternative at a time, which keeps the states few for most expressions;
// where it does not, all alternatives are walked at once, with the other half of
// the budget.
func (q Query) Find(b *Budget) (string, Answer) {
	// Half of the steps for each way.
	rest := b.Steps / 2
	for _, together := range []bool{false, true} {
		s := search{query: q, budget: b, together: together, seen: map[string]int32{}}
		b.Steps -= rest
		s.trie()
		s.alphabet()
		text, answer := s.run()
		b.Steps += rest
		if answer != Unknown {
			return text, answer
		}
		rest = 0
	}
	return "", Unknown
}

// letter is a class of code points that all automata of a query treat alike: the
// common refinement of their alphabets and of the excluded strings.
type letter struct {
	rune  rune
	rank  int      // how well the rune reads; less is better
	class []uint16 // by term
	key   rune     // the rune itself where an excluded string holds it; else -1
}

// search is one walk through the product of the automata, best first: by length
// plus the distance that is missing to a match. Where strings qualify it finds
// one after few nodes; where none does it visits all nodes, and only the size of
// the product counts.
type search struct {
	query    Query
	budget   *Budget
	together bool // walk all alternatives at once
	letters  []letter
	tries    []trieNode
	nodes    []node
	states   []int32          // of all nodes, one for each term
	seen     map[string]int32 // the shortest node by its states
	queue    queue
	key      []byte
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

// trie builds a tree of the excluded strings. A node of the search carries its
// place in the tree for as long as its string is the beginning of an excluded
// one.
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

// alphabet cuts the code points into letters. Surrogates are left out: they occur
// in no string. The letters that read best come first, so that of several
// shortest strings the search finds one that people can read.
func (s *search) alphabet() {
	// Surrogates are cut out as a run of their own.
	cuts := []rune{0, 0xD800, 0xE000}
	for _, t := range s.query.Terms {
		cuts = append(cuts, t.Language.alphabet.Cuts...)
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
	class := make([]uint16, len(s.query.Terms))
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
			class[k] = t.Language.alphabet.Class(cut)
			s.key = binary.LittleEndian.AppendUint16(s.key, class[k])
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

// run walks the product until a node accepts, none is left, or the budget is
// used up. Only the second is a proof that nothing qualifies, and only if no
// successor was left out for lack of steps.
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
	s.spread(root, start, 0)
	next := make([]int32, len(q.Terms))
	for count := 0; len(s.queue) > 0; count++ {
		at := s.queue.pop()
		if s.accepts(at) {
			return s.text(at), Found
		}
		if s.budget.Steps < 0 || count%256 == 255 && s.budget.stopped() {
			return "", Unknown
		}
		for i := range s.letters {
			s.follow(at, i, next)
		}
	}
	if s.budget.Steps < 0 {
		return "", Unknown // not all successors were visited
	}
	return "", Empty
}

// follow visits what one letter leads to, unless a term can no longer be
// satisfied from there.
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
	// Still on the way to an excluded string, or off it for good.
	if was := s.nodes[at].trie; was != offTrie {
		if to, ok := s.tries[was].next[l.key]; ok {
			n.trie = to
		}
	}
	s.spread(n, next, 0)
}

// spread visits every combination of alternatives of the terms from k on.
func (s *search) spread(n node, states []int32, k int) {
	for ; k < len(states); k++ {
		t := s.query.Terms[k]
		if t.Complement || s.together || states[k] == stateMatched {
			continue
		}
		whole := states[k]
		split := t.Language.alternatives(whole, s.budget)
		for _, one := range split {
			if one != stateDead && s.budget.Steps >= 0 {
				states[k] = one
				s.spread(n, states, k+1)
			}
		}
		states[k] = whole
		return
	}
	s.visit(n, states)
}

// visit queues a node unless one with the same states is known that is not
// longer. Below the least length, nodes of different length are different: a
// loop may be needed to get there. Beyond it, the shorter one is always as good.
func (s *search) visit(n node, states []int32) {
	left, most := int32(s.query.MinLength-n.length), int32(0)
	sum := int32(0)
	s.key = binary.LittleEndian.AppendUint32(s.key[:0], uint32(min(n.length, s.query.MinLength)))
	s.key = binary.LittleEndian.AppendUint32(s.key, uint32(n.trie))
	for k, state := range states {
		s.key = binary.LittleEndian.AppendUint32(s.key, uint32(state))
		if !s.query.Terms[k].Complement {
			d := s.query.Terms[k].Language.states[state].toEnd
			sum, most = sum+d, max(most, d)
		}
	}
	s.budget.spend(1)
	if s.query.MaxLength >= 0 && n.length+int(most) > s.query.MaxLength {
		return
	}
	// The node that is known reaches all that this one would.
	if known, ok := s.seen[string(s.key)]; ok && s.nodes[known].length <= n.length {
		return
	}
	s.budget.spend(4)
	s.seen[string(s.key)] = int32(len(s.nodes))
	s.queue.push(entry{int32(n.length) + max(sum, left), int32(n.length), int32(len(s.nodes))})
	s.nodes = append(s.nodes, n)
	s.states = append(s.states, states...)
}

// accepts reports whether the string of a node qualifies.
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
