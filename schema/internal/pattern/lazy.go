package pattern

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"unicode/utf8"
)

// Bounds of the caches of [lazy], in bytes: of one pattern and of all in a schema.
// Below leastStates a cache would be of no use.
const (
	maxCache       = 1 << 18
	maxSchemaCache = 1 << 22
	leastStates    = 16
)

// A cache that is full is started anew. It was of little use if texts asked for a new
// entry more often than once in useful characters. After maxStrikes of those, the
// pattern runs without.
const (
	useful     = 16
	maxStrikes = 4
)

// lazy runs a [parallel] automaton and remembers each step of it. Most texts come
// through few of the states that its complete automaton has, so that nearly every
// character costs one look-up, as in a [dfa].
//
// The cache is shared by all goroutines. They read it without a lock, since entries are
// written once and states never change; a goroutine that misses an entry adds it
// under the lock. A full cache is replaced: those who still read the old one go on
// with it to their next miss.
//
// A text can be made so that every character misses. That costs a few times what the
// parallel automaton does, for as long as it takes to fill maxStrikes caches in the
// life of the pattern; from then on all texts cost what [Pattern].Work says.
type lazy struct {
	*parallel
	size  int                   // the most that a cache takes, in bytes
	cache atomic.Pointer[cache] // nil once the pattern runs without

	mu      sync.Mutex // guards what follows, and all of a cache but next and final
	strikes int
	set     []uint64 // the state under construction
	key     []byte
}

// cache is the part of the complete automaton that texts came through.
type cache struct {
	// next has a row for each state and a column for each class, of the offsets of
	// rows. 0 is a step that is not known. The first rows belong to no state.
	next  []uint32
	final []bool // by number of the state: whether the text may end there

	sets   []uint64 // the positions that a state stands for
	kinds  []byte   // what assertions need to know about the text before
	number map[string]int
	misses int
	read   int // characters between the misses
}

// The states without a set, by number.
const (
	lazyUnknown = iota
	lazyReject
	lazyAccept
	lazyStart
)

// The bits of a kind.
const (
	kindWord  = 1 << iota // the last character is a word character
	kindBegin             // there is none
)

// newLazy returns nil if budget, which is what the caches of a schema may still take,
// leaves no room for one.
func newLazy(a *parallel, budget *int) *lazy {
	z := &lazy{parallel: a, set: make([]uint64, a.width)}
	size := min(maxCache, *budget)
	if size < leastStates*z.stateSize() {
		return nil
	}
	*budget -= size
	z.size = size
	z.cache.Store(z.newCache(leastStates))
	return z
}

// stateSize is what a state takes: its row, its set, and the key of that.
func (z *lazy) stateSize() int {
	const entry = 64 // of the map
	return 4*z.classes + 16*z.width + entry
}

// newCache returns a cache for so many states, of which it has the start.
func (z *lazy) newCache(states int) *cache {
	c := &cache{
		next: make([]uint32, states*z.classes), final: make([]bool, states),
		sets: make([]uint64, lazyStart*z.width, states*z.width), kinds: make([]byte, lazyStart, states),
		number: make(map[string]int, states),
	}
	clear(z.set)
	z.intern(c, kindBegin)
	return c
}

// match reports whether text, which is valid UTF-8, holds a match.
func (z *lazy) match(text []byte) bool {
	c := z.cache.Load()
	if c == nil {
		return z.parallel.match(text)
	}
	classes, ascii := z.classes, &z.ascii
	state, missed, bet := uint32(lazyStart*classes), 0, patience
	for i := 0; i < len(text); {
		class := 0
		if b := text[i]; b < utf8.RuneSelf {
			class = int(ascii[b])
			i++
		} else {
			class, i = z.wide(text, i)
		}
		to := atomic.LoadUint32(&c.next[int(state)+class])
		if int(to) <= lazyAccept*classes {
			if to == lazyUnknown {
				if c, to = z.miss(c, int(state), class, i-missed); c == nil {
					return z.parallel.match(text)
				}
				missed = i
			}
			if int(to) <= lazyAccept*classes {
				return int(to) == lazyAccept*classes
			}
		}
		if i > bet && to == state { // as in dfa
			row := c.next[state : int(state)+classes]
			for i < len(text) && text[i] < utf8.RuneSelf && atomic.LoadUint32(&row[ascii[text[i]]]) == state {
				i++
			}
			bet = i + patience
		}
		state = to
	}
	return c.final[int(state)/classes]
}

// miss finds out where a state leads on a class, so many characters after the last
// miss. It returns the cache in which the answer is a state, or nil if the pattern
// runs without from now on.
func (z *lazy) miss(c *cache, state, class, read int) (*cache, uint32) {
	z.mu.Lock()
	defer z.mu.Unlock()
	now := z.cache.Load()
	if now == nil {
		return nil, 0
	}
	now.misses++
	now.read += read
	to, kind := z.successor(c, state/z.classes, class)
	if to == lazyUnknown {
		if to = z.known(now, kind); to == lazyUnknown {
			if len(now.kinds) == cap(now.kinds) {
				if now = z.renew(now); now == nil {
					return nil, 0
				}
			}
			z.successor(c, state/z.classes, class) // renewing has used the set
			to = z.intern(now, kind)
		}
	}
	row := uint32(to * z.classes)
	if now == c {
		atomic.StoreUint32(&c.next[state+class], row)
	}
	return now, row
}

// successor finds out where a state leads: to one without a set, or to lazyUnknown, and
// then leaves the set in z.set and returns its kind.
func (z *lazy) successor(c *cache, state, class int) (to int, kind byte) {
	l, word := &z.links[0], z.words[class]
	if word != (c.kinds[state]&kindWord != 0) {
		l = &z.links[1]
	}
	start := &l.later
	if c.kinds[state]&kindBegin != 0 {
		start = &l.begin
	}
	if start.match || l.step(z.positions(c, state), z.set, start.first) {
		return lazyAccept, 0
	}
	if !z.consume(z.set, class) {
		return lazyReject, 0
	}
	if word {
		kind = kindWord
	}
	return lazyUnknown, kind
}

// positions returns the set of a state.
func (z *lazy) positions(c *cache, state int) []uint64 {
	return c.sets[state*z.width : (state+1)*z.width]
}

// known returns the state that stands for z.set, if there is one. It leaves the key.
func (z *lazy) known(c *cache, kind byte) int {
	z.key = append(z.key[:0], kind)
	for _, w := range z.set {
		z.key = binary.LittleEndian.AppendUint64(z.key, w)
	}
	return c.number[string(z.key)]
}

// intern returns the state that stands for z.set, new or not.
func (z *lazy) intern(c *cache, kind byte) int {
	if n := z.known(c, kind); n != lazyUnknown {
		return n
	}
	n := len(c.kinds)
	c.number[string(z.key)] = n
	c.kinds = append(c.kinds, kind)
	c.sets = append(c.sets, z.set...)
	c.final[n] = z.ends(z.set, kind&kindWord != 0, kind&kindBegin != 0)
	return n
}

// renew replaces a full cache: by a larger one while that may be, and else by an empty
// one, or by none.
func (z *lazy) renew(old *cache) *cache {
	states := cap(old.kinds)
	most := z.size / z.stateSize()
	if states == most {
		if old.read < useful*old.misses {
			z.strikes++
		}
		if z.strikes == maxStrikes {
			z.cache.Store(nil)
			return nil
		}
		fresh := z.newCache(states)
		z.cache.Store(fresh)
		return fresh
	}
	larger := z.newCache(min(4*states, most))
	copy(larger.next, old.next)
	copy(larger.final, old.final)
	larger.sets = append(larger.sets[:0], old.sets...)
	larger.kinds = append(larger.kinds[:0], old.kinds...)
	larger.number = old.number // nobody adds to the old one any more
	larger.misses, larger.read = old.misses, old.read
	z.cache.Store(larger)
	return larger
}
