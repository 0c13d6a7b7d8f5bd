package ir

import (
	"testing"

	"pgregory.net/rapid"
)

func TestNameIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		known := rapid.SliceOfNDistinct(rapid.StringMatching(`(long prefix )?[a-c]{0,3}(é|suffix)?`), 0, 30, rapid.ID).Draw(t, "names")
		var props []Property
		for _, name := range known {
			props = append(props, Property{Name: name})
		}
		var x Names
		x.Build(props)
		for i, name := range known {
			if got := x.Find(props, []byte(name)); got != i {
				t.Fatalf("%q is found at %d, want %d", name, got, i)
			}
			for _, other := range []string{name + "x", "x" + name, name + "\x00"} {
				got, want := x.Find(props, []byte(other)), -1
				for k := range known {
					if known[k] == other {
						want = k
					}
				}
				if got != want {
					t.Fatalf("%q is found at %d, want %d", other, got, want)
				}
			}
		}
	})
}
