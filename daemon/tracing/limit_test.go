package tracing

import (
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Each peer has its own share of traces, and what is beyond it is told: when it begins, each
// minute while it goes on, and when it is over.
func TestPeerLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var told []Limited
		l := newPeerLimit(10, func(one Limited) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, one)
		})
		defer l.close()
		admitted := func(peer string, n int) (all int) {
			for range n {
				if l.admit(peer) {
					all++
				}
			}
			synctest.Wait()
			return all
		}
		want := func(what string, all ...Limited) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if len(told) != len(all) {
				t.Fatalf("%s: told %+v", what, told)
			}
			for i := range all {
				if told[i] != all[i] {
					t.Errorf("%s: told %+v and not %+v", what, told[i], all[i])
				}
			}
			told = nil
		}
		if a, b := admitted("a", 1000), admitted("b", 10); a != 10 || b != 10 {
			t.Errorf("%d of a and %d of b are admitted", a, b)
		}
		want("it begins", Limited{Peer: "a", Refused: 1})
		time.Sleep(time.Second)
		if a := admitted("a", 1000); a != 10 {
			t.Errorf("%d of a are admitted in another second", a)
		}
		want("meanwhile")
		time.Sleep(time.Minute)
		want("after a minute", Limited{Peer: "a", Refused: 989 + 990})
		time.Sleep(time.Minute)
		want("after another one", Limited{Peer: "a", Over: true})
		admitted("a", 11)
		want("it begins again", Limited{Peer: "a", Refused: 1})
	})
}

// What is refused while the end is told begins anew, after it: whoever hears of both knows that the
// limit holds.
func TestPeerLimitWhileTheEndIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var told []Limited
		var l *peerLimit
		var again sync.Once
		l = newPeerLimit(1, func(one Limited) {
			if one.Over {
				again.Do(func() { // before it is heard that it is over
					l.admit("a") // the time that has passed lets one through
					l.admit("a")
				})
			}
			mu.Lock()
			defer mu.Unlock()
			told = append(told, one)
		})
		l.admit("a")
		l.admit("a")
		time.Sleep(limitQuiet)
		synctest.Wait()
		time.Sleep(limitQuiet)
		synctest.Wait()
		l.close()
		mu.Lock()
		defer mu.Unlock()
		want := []Limited{{Peer: "a", Refused: 1}, {Peer: "a", Over: true}, {Peer: "a", Refused: 1}, {Peer: "a", Over: true}}
		if !slices.Equal(told, want) {
			t.Errorf("told %+v", told)
		}
	})
}

// Names that somebody makes up fill no memory, and a limit that holds is not forgotten for them.
func TestPeerLimitOfManyNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPeerLimit(1, func(Limited) {})
		defer l.close()
		l.admit("busy")
		l.admit("busy")
		admitted := 0
		for i := range 10 * maxLimited {
			if l.admit(strconv.Itoa(i)) {
				admitted++
			}
		}
		if len(l.peers) > maxLimited+1 || admitted > maxLimited+1 {
			t.Errorf("%d names have a limit, and %d traces are admitted", len(l.peers), admitted)
		}
		time.Sleep(2 * time.Second)
		if !l.admit("another") || len(l.peers) > 3 || l.peers["busy"] == nil {
			t.Errorf("%d names have a limit", len(l.peers))
		}
	})
}

// Nothing is told after the end.
func TestPeerLimitCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		l := newPeerLimit(1, func(Limited) { n++ })
		l.admit("a")
		l.admit("a")
		l.close()
		time.Sleep(time.Hour)
		l.admit("b")
		l.admit("b")
		if n != 1 {
			t.Errorf("told %d times", n)
		}
	})
}

func TestParsePeerLimit(t *testing.T) {
	for text, want := range map[string]int{"": DefaultPeerLimit, "off": 0, "20": 20} {
		if n, err := ParsePeerLimit(text); n != want || err != nil {
			t.Errorf("%q is %d, %v", text, n, err)
		}
	}
	for _, text := range []string{"0", "-1", "many", "1e3"} {
		if n, err := ParsePeerLimit(text); n != DefaultPeerLimit || err == nil {
			t.Errorf("%q is %d, %v", text, n, err)
		}
	}
}
