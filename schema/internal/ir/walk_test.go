package ir

import (
	"slices"
	"strings"
	"testing"
)

// TestWalk goes through a schema that refers to itself: each node is entered once,
// left after all behind it, and the only step that closes a cycle is found.
func TestWalk(t *testing.T) {
	leaf, other := &Node{Pointer: "leaf"}, &Node{Pointer: "other"}
	again := &Node{Pointer: "ref"}
	list := &Node{Pointer: "list", Arr: &ArrayRule{Items: again}}
	root := &Node{
		Pointer: "root",
		AnyOf:   &Combinator{Branches: []*Node{leaf, list}},
		Obj:     &ObjectRule{Props: []Property{{Node: other}, {}}, Declared: 1, Additional: leaf},
	}
	again.Ref = root
	var steps []string
	w := Walk{
		Next:  (*Node).Edges,
		Enter: func(n *Node) { steps = append(steps, "+"+n.Pointer) },
		Edge: func(from, to *Node, open bool) {
			if open {
				steps = append(steps, from.Pointer+">"+to.Pointer)
			}
		},
		Leave: func(n *Node) { steps = append(steps, "-"+n.Pointer) },
	}
	w.All([]*Node{root, leaf, other})
	const want = "+root +leaf -leaf +list +ref ref>root -ref -list +other -other -root"
	if got := strings.Join(steps, " "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if !slices.Equal(root.Edges(), append(root.Here(), root.Parts()...)) || len(root.Edges()) != 4 {
		t.Errorf("%d edges", len(root.Edges()))
	}
	for _, n := range []*Node{leaf, again, list, root} {
		if all := n.Edges(); cap(all) != len(all) {
			t.Errorf("%s: room for %d edges, of which there are %d", n.Pointer, cap(all), len(all))
		}
	}
}
