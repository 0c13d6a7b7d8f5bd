package pattern

import (
	"bytes"
	"testing"
)

// BenchmarkMatch measures the automata by themselves, on texts of 60,000 characters.
func BenchmarkMatch(b *testing.B) {
	words := bytes.Repeat([]byte("some words of usual length "), 2400)[:60_000]
	for _, c := range []struct {
		name, pattern string
		text          []byte
	}{
		{"stays", `^[a-z ]*$`, words},
		{"moves", `^(?:[a-z ]{40})*$`, words},
		{"unanchored", `[0-9]{3}-[0-9]{4}`, words},
		{"cached", `[ab]*a[ab]{30}$`, bytes.Repeat([]byte("abbab"), 12_000)},
		{"ideographs", `^\p{Lo}+$`, bytes.Repeat([]byte("漢字仮名交じり文"), 2500)},
		{"literal", `needle`, words},
	} {
		p, refused := Compile(c.pattern, budget())
		if refused != nil {
			b.Fatal(refused)
		}
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.text)))
			for b.Loop() {
				p.Match(c.text)
			}
		})
	}
}
