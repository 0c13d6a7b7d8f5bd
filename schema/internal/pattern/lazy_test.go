package pattern

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/agentd/agentd/internal/alloctest"
)

// explosive is a pattern whose complete automaton has two thousand million states, of
// which random texts come through a new one at every character.
const explosive = `[ab]*a[ab]{30}$`

func randomText(random *rand.Rand, size int) []byte {
	text := make([]byte, size)
	for i := range text {
		text[i] = "ab"[random.IntN(2)]
	}
	return text
}

// TestHostileTextsEndTheCache reads texts that fill the cache again and again: it is
// given up, and what it takes stays bounded until then.
func TestHostileTextsEndTheCache(t *testing.T) {
	p, refused := Compile(explosive, budget())
	if refused != nil {
		t.Fatal(refused)
	}
	random := rand.New(rand.NewPCG(1, 1))
	most := maxCache / p.lazy.stateSize()
	for range 1000 {
		text := randomText(random, 500)
		if p.Match(text) != p.parallel.match(text) {
			t.Fatalf("%q: the cache says something else", text)
		}
		c := p.lazy.cache.Load()
		if c == nil {
			if p.lazy.strikes != maxStrikes {
				t.Errorf("given up after %d caches", p.lazy.strikes)
			}
			return
		}
		if len(c.kinds) > most || cap(c.kinds) > most {
			t.Fatalf("%d states in a cache for %d", cap(c.kinds), most)
		}
	}
	t.Error("the cache is never given up")
}

// TestUsualTextsKeepTheCache reads texts that come through the same states: nothing is
// built after the first one, and nothing allocated.
func TestUsualTextsKeepTheCache(t *testing.T) {
	p, refused := Compile(explosive, budget())
	if refused != nil {
		t.Fatal(refused)
	}
	text := bytes.Repeat([]byte("abbab"), 1000)
	for range 3 { // a miss that makes the cache grow is not kept
		p.Match(text)
	}
	misses := p.lazy.cache.Load().misses
	if allocs := alloctest.Least(20, func() { p.Match(text) }); allocs > 0 {
		t.Errorf("%v allocations", allocs)
	}
	if now := p.lazy.cache.Load().misses; now != misses || misses > 1000 {
		t.Errorf("%d misses after the first text, %d after more of the same", misses, now)
	}
}

// TestCacheIsShared lets goroutines fill, replace and give up one cache together.
func TestCacheIsShared(t *testing.T) {
	for _, source := range []string{explosive, `\b[ab]*a[ab]{30}\b`, `(?:é|[ab])*a(?:é|[ab]){32}$`} {
		p, refused := Compile(source, budget())
		if refused != nil {
			t.Fatal(refused)
		}
		if p.lazy == nil {
			t.Fatalf("%q runs without a cache", source)
		}
		var all sync.WaitGroup
		for worker := range uint64(4) {
			all.Go(func() {
				random := rand.New(rand.NewPCG(worker, 2))
				for range 60 {
					text := bytes.ReplaceAll(randomText(random, 300), []byte("aaaa"), []byte("é -"))
					if got := p.Match(text); got != p.parallel.match(text) {
						t.Errorf("%q on %q: %v", source, text, got)
						return
					}
				}
			})
		}
		all.Wait()
	}
}

// TestCachesOfASchemaAreBounded compiles more patterns than may have a cache.
func TestCachesOfASchemaAreBounded(t *testing.T) {
	b := NewBudget()
	with, without := 0, 0
	for range 2 * maxSchemaCache / maxCache {
		p, refused := Compile(explosive, &b)
		switch {
		case refused != nil:
			t.Fatal(refused)
		case p.lazy != nil:
			with++
		default:
			without++
		}
		if text := []byte("a" + strings.Repeat("b", 30)); !p.Match(text) || p.Match(text[1:]) {
			t.Fatal("wrong")
		}
	}
	if with != maxSchemaCache/maxCache || without != with {
		t.Errorf("%d with a cache, %d without", with, without)
	}
}

// TestLiterals pins what is searched for before an automaton runs.
func TestLiterals(t *testing.T) {
	for source, want := range map[string]literals{
		`needle`:              {prefix: []byte("needle"), whole: true},
		`.*needle.*`:          {prefix: []byte("needle"), whole: true},
		`(?:nee)dle`:          {prefix: []byte("needle"), whole: true},
		`é+x`:                 {prefix: []byte("éx"), whole: true},
		`error: [a-z]+ at \d`: {prefix: []byte("error: "), inner: []byte(" at ")},
		`^error`:              {inner: []byte("error")},
		`[ab]c[d-f]ghi$`:      {inner: []byte("ghi")},
		`[xX]yz`:              {inner: []byte("yz")},
		`a|b`:                 {},
		`(?:abc)?d`:           {prefix: []byte("d"), whole: true},
		`(?:abc){2}d`:         {inner: []byte("d")},
		`x{0,3}$`:             {},
	} {
		p, refused := Compile(source, budget())
		if refused != nil {
			t.Fatal(source, refused)
		}
		got := p.literals
		if !bytes.Equal(got.prefix, want.prefix) || got.whole != want.whole || !bytes.Equal(got.inner, want.inner) {
			t.Errorf("%s: prefix %q (whole: %t), inner %q", source, got.prefix, got.whole, got.inner)
		}
	}
}
