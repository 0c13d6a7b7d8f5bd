package store

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// A set is read as it was written, in the shorter of its two forms.
func TestPositionsAreReadBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, maxPacked).Draw(t, "size")
		var p positions
		for _, n := range rapid.SliceOfN(rapid.IntRange(0, size-1), 1, size).Draw(t, "places") {
			p.add(n)
		}
		text := p.appendTo(nil, size)
		if len(text) > min(p.count(), (size+7)/8) || p.count() == size && len(text) > 0 {
			t.Fatalf("%d bytes for %d of %d", len(text), p.count(), size)
		}
		got := readPositions(int64(p.count()), text)
		for n := range size {
			if got.has(n) != p.has(n) {
				t.Fatalf("%x: place %d of %d", text, n, size)
			}
		}
	})
}

// Whatever bytes are read as a set, the result is that of as many records as the entry counts, or
// of all, and a set of the log's making has one form.
func FuzzPositions(f *testing.F) {
	f.Add(int64(3), []byte{0, 7, 255})
	f.Add(int64(9), []byte{0xff, 0x01})
	f.Add(int64(200), []byte{})
	f.Add(int64(-1), []byte{1})
	f.Add(int64(1)<<62, bytes.Repeat([]byte{1}, 40))
	f.Fuzz(func(t *testing.T, records int64, b []byte) {
		p := readPositions(records, b)
		if p == allPositions() {
			return
		}
		if int64(p.count()) != records || p.empty() || p.last() >= maxPacked || !p.has(p.last()) {
			t.Fatalf("%d records, %x: %x", records, b, p)
		}
		if got := readPositions(records, p.appendTo(nil, maxPacked)); got != p {
			t.Fatalf("%x is read back as %x", p, got)
		}
	})
}
