package tracing

import (
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
