package store

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
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
		for range 2 {
			got, err := candidatesOf(&some, p, c, allPositions())
			if err != nil || len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %d records, want %d: %v", name, len(got), len(want), err)
			}
			c.Descending = true
			slices.Reverse(want)
		}
	}
}

// candidatesOf returns the candidates of a choice at some positions.
func candidatesOf(u *unpacker, p *pack, c *PackChoice, chosen positions) (list []Record, err error) {
	choice := *c
	if choice.High == 0 {
		choice.High = 1 << 62
	}
	_, err = u.candidates(p, &choice, &chosen, func(r *Record) bool {
		list = append(list, *r)
		return true
	})
	return list, err
}

// The candidates at some positions, between two numbers and up to where the consumer stops are
// those of all.
func TestCandidatesAtPositions(t *testing.T) {
	t.Parallel()
	p := encoded(packedRows(t, 40))
	rapid.Check(t, func(t *rapid.T) {
		c := &PackChoice{Low: rapid.Int64Range(-2, 42).Draw(t, "low"), High: rapid.Int64Range(-2, 42).Draw(t, "high"), Descending: rapid.Bool().Draw(t, "descending")}
		var chosen positions
		for _, n := range rapid.SliceOf(rapid.IntRange(0, 60)).Draw(t, "chosen") {
			chosen.add(n)
		}
		if rapid.Bool().Draw(t, "every") {
			chosen = allPositions()
		}
		limit := rapid.IntRange(1, 45).Draw(t, "limit")
		var want []int64
		for seq := int64(1); seq <= 40; seq++ {
			if c.Low < seq && seq < c.High && chosen.has(int(seq-1)) {
				want = append(want, seq)
			}
		}
		if c.Descending {
			slices.Reverse(want)
		}
		stopped := len(want) >= limit
		want = want[:min(limit, len(want))]
		var u unpacker
		var got []int64
		more, err := u.candidates(p, c, &chosen, func(r *Record) bool {
			if string(r.Correlation) != fmt.Sprintf("c-%d", r.Seq-1) {
				t.Fatalf("record %d is %s", r.Seq, r.Body)
			}
			got = append(got, r.Seq)
			return len(got) < limit
		})
		if err != nil || more == stopped || !slices.Equal(got, want) {
			t.Fatalf("%v, want %v; %v %v", got, want, more, err)
		}
	})
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
			records, err := candidatesOf(&u, p, c, allPositions())
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
		if _, err := candidatesOf(new(unpacker), p, c, allPositions()); err == nil && c.mayBeIn(p.bodies, nil) {
			t.Fatalf("the first %d bytes pass for a pack", n)
		}
	}
}
