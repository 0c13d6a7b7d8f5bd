package ijson_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/internal/ijson"
)

// openObject is the model of one open object.
type openObject struct {
	scope ijson.Scope
	names map[string]bool
}

// TestNamesAgainstModel opens, fills, closes and abandons objects at random,
// and holds every answer to that of plain maps.
func TestNamesAgainstModel(t *testing.T) {
	var n ijson.Names // kept from one check to the next, as scratch space is
	rapid.Check(t, func(t *rapid.T) {
		n.Reset()
		var open []*openObject
		type saved struct {
			mark  ijson.Mark
			depth int
			names map[string]bool
		}
		var marks []saved
		t.Repeat(map[string]func(*rapid.T){
			"open": func(*rapid.T) {
				open = append(open, &openObject{n.Open(), map[string]bool{}})
			},
			"add": func(t *rapid.T) {
				if len(open) == 0 {
					t.Skip("no object is open")
				}
				top := open[len(open)-1]
				next := rapid.IntRange(0, 60).Draw(t, "first")
				inOrder := rapid.Bool().Draw(t, "in order")
				for range rapid.IntRange(1, 30).Draw(t, "count") {
					k := next
					if next++; !inOrder {
						k = rapid.IntRange(0, 60).Draw(t, "name")
					}
					name := fmt.Sprintf("common prefix %d", k)
					raw, escaped := name, rapid.Bool().Draw(t, "escaped")
					if escaped {
						raw = fmt.Sprintf(`common\u0020prefix %d`, k)
					}
					if got := n.Add(&top.scope, []byte(raw), escaped); got == top.names[name] {
						t.Fatalf("Add(%s) = %v with %v", raw, got, top.names)
					}
					top.names[name] = true
				}
			},
			"close": func(t *rapid.T) {
				if len(open) == 0 || len(marks) > 0 && marks[len(marks)-1].depth == len(open) {
					t.Skip("nothing to close")
				}
				n.Close(open[len(open)-1].scope)
				open = open[:len(open)-1]
			},
			"mark": func(*rapid.T) {
				m := saved{mark: n.Mark(), depth: len(open)}
				if len(open) > 0 {
					m.names = map[string]bool{}
					for name := range open[len(open)-1].names {
						m.names[name] = true
					}
				}
				marks = append(marks, m)
			},
			"rewind": func(t *rapid.T) {
				if len(marks) == 0 {
					t.Skip("no mark is left")
				}
				m := marks[len(marks)-1]
				if m.depth > 0 && len(open[m.depth-1].names) != len(m.names) {
					t.Skip("a mark stands for a branch, which adds no name to the object around it")
				}
				marks = marks[:len(marks)-1]
				n.Rewind(m.mark)
				open = open[:m.depth]
			},
		})
		n.Trim()
	})
}

func TestScanNumberSaysWhetherItIsAnInteger(t *testing.T) {
	for text, want := range map[string]struct {
		end     int
		integer bool
	}{
		"0": {1, true}, "-0": {2, true}, "12345678901234567890,": {20, true}, "7]": {1, true}, "10 ": {2, true},
		"1.0": {3, false}, "1e2": {3, false}, "0.5e-3}": {6, false}, "-1E+2": {5, false}, "1.50x": {4, false},
	} {
		end, integer, err := ijson.ScanNumber([]byte(text), 0)
		if err != nil || end != want.end || integer != want.integer {
			t.Errorf("ScanNumber(%q) = %d, %v, %v, want %d, %v", text, end, integer, err, want.end, want.integer)
		}
	}
}

func TestSkipSpace(t *testing.T) {
	for text, want := range map[string]int{"": 0, "x": 0, " x": 1, "\t\r\n x": 4, "  ": 2, "\v": 0, "\u00a0": 0, "\x00": 0} {
		if got := ijson.SkipSpace([]byte(text), 0); got != want {
			t.Errorf("SkipSpace(%q) = %d, want %d", text, got, want)
		}
	}
}
