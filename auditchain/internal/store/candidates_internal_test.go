package store

import (
	"bytes"
	"reflect"
	"slices"
	"testing"
)

// The candidates of a choice are the records that have what is looked for, as they are when all
// bodies are read.
func TestCandidatesAreThoseThatMatch(t *testing.T) {
	t.Parallel()
	p := encoded(packedRows(t, 20))
	for name, c := range map[string]*PackChoice{
		"all":               {},
		"a tenant":          {Tenant: "b"},
		"a member":          {Members: [][]byte{[]byte(`"peerId":"agent://\"1\""`)}},
		"two, of a tenant":  {Members: [][]byte{[]byte(`"peerId":"agent://\"1\""`), []byte(`"correlationId":"c-7"`)}, Tenant: "b"},
		"a text":            {Text: []byte(`"correlationid":"c-1`)},
		"braces":            {Text: []byte(`]}`)},
		"a member of none":  {Members: [][]byte{[]byte(`"peerId":"agent://x"`)}},
		"across two bodies": {Text: []byte(`},{`)},
	} {
		var all, some unpacker
		records, err := all.read(p)
		if err != nil {
			t.Fatal(err)
		}
		want := slices.DeleteFunc(slices.Clone(records), func(r Record) bool {
			return c.Tenant != "" && c.Tenant != string(r.Tenant) || !c.mayBeIn(r.Body, bytes.ToLower(r.Body))
		})
		got, err := some.candidates(p, c)
		if err != nil || len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %d records, want %d: %v", name, len(got), len(want), err)
		}
	}
}

// Whatever the bytes of a pack are, reading some of it ends, and shows no record that is not in it.
func TestCandidatesOfDamagedPacks(t *testing.T) {
	t.Parallel()
	rows := packedRows(t, 9)
	c := &PackChoice{Members: [][]byte{[]byte(`"peerId":"agent://\"1\""`)}}
	for at := range len(encoded(rows).bodies) {
		for _, b := range []byte(`"{}[],\`) {
			p := encoded(rows)
			p.bodies[at] = b
			var u unpacker
			records, err := u.candidates(p, c)
			if err != nil {
				continue
			}
			for _, r := range records {
				if !bytes.Contains(p.bodies, r.Body) || r.Seq < 1 || r.Seq > 9 {
					t.Fatalf("byte %d as %c: %+v", at, b, r)
				}
			}
		}
	}
	for n := range len(encoded(rows).bodies) {
		p := encoded(rows)
		p.bodies = p.bodies[:n]
		if _, err := new(unpacker).candidates(p, c); err == nil && c.mayBeIn(p.bodies, nil) {
			t.Fatalf("the first %d bytes pass for a pack", n)
		}
	}
}
