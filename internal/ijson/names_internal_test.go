package ijson

import (
	"strconv"
	"testing"
)

// fill adds n distinct names, all written with an escape and none in order, to an
// object that stays open.
func fill(t *testing.T, names *Names, n int) {
	t.Helper()
	scope := names.Open()
	for i := range n {
		if !names.Add(&scope, []byte(`\u006e`+strconv.Itoa(1<<24-i)), true) {
			t.Fatalf("name %d was seen before", i)
		}
	}
}

// Scratch space is kept from scan to scan; a text, or the room that one huge
// text needed, must not be kept with it.
func TestTrimKeepsNoTextAndNoHugeScratch(t *testing.T) {
	var names Names
	fill(t, &names, 100)
	names.Trim()
	if cap(names.names) == 0 || len(names.table) == 0 || cap(names.arena) == 0 {
		t.Error("the scratch space of a small text was given up")
	}
	for _, n := range names.names[:cap(names.names)] {
		if n.text != nil {
			t.Fatalf("a name is still referred to: %s", n.text)
		}
	}
	fill(t, &names, maxKept+1)
	names.Trim()
	if cap(names.names) != 0 || cap(names.arena) != 0 || len(names.table) != 0 {
		t.Errorf("after a huge text, scratch space for %d names, %d bytes and %d slots stays", cap(names.names), cap(names.arena), len(names.table))
	}
	fill(t, &names, 100) // as if new
}

// Names of closed objects are forgotten as well, although Close keeps their
// slots for the next object.
func TestResetForgetsClosedObjects(t *testing.T) {
	var names Names
	scope := names.Open()
	for _, text := range []string{"a", "b"} {
		names.Add(&scope, []byte(text), false)
	}
	names.Close(scope)
	names.Reset()
	for _, n := range names.names[:cap(names.names)] {
		if n.text != nil {
			t.Fatalf("a name is still referred to: %s", n.text)
		}
	}
}

// A slot of an object that has ended can have the hash of a repeated name and its index.
// Half a hash is short enough for a large text to meet that. The name that it repeats
// stands behind that slot.
func TestSlotsOfClosedObjectsHideNoName(t *testing.T) {
	const count = 2 * pairwise
	var names Names
	fill(t, &names, count) // the table is large enough from here on
	names.Reset()
	scope := Scope{id: names.scopes + 1}
	repeated := []byte(`n` + strconv.Itoa(1<<24-3))
	hash := names.hash(scope.id, repeated)
	names.table[hash&uint32(len(names.table)-1)] = slot{hash, count + names.base}
	names.used++
	scope = names.Open()
	for i := range count {
		if !names.Add(&scope, []byte(`n`+strconv.Itoa(1<<24-i)), false) {
			t.Fatalf("name %d was seen before", i)
		}
	}
	if names.Add(&scope, repeated, false) {
		t.Error("a repeated name passes for a new one")
	}
}

// What stands behind a name in its text says nothing about it.
func TestFingerprint(t *testing.T) {
	for size := range 12 {
		alone := []byte("abcdefghijkl")[:size:size]
		for _, behind := range []string{"", "\":1}", "\":[1,2,3,4]", "\xff\xff\xff\xff\xff\xff\xff\xff"} {
			text := append(alone[:size:size], behind...)
			if got, want := fingerprint(text[:size]), fingerprint(alone); got != want {
				t.Errorf("%q before %q: %x, alone %x", alone, behind, got, want)
			}
		}
	}
}
