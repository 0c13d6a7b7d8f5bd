package model

import "slices"

// markRecursive sets Recursive on the types that lead back to themselves. Go
// needs to know: a struct cannot contain itself without a pointer.
func markRecursive(types []*Named) {
	leads := map[*Named][]*Named{}
	for _, n := range types {
		seen := map[*Type]bool{}
		var walk func(t *Type)
		walk = func(t *Type) {
			if t == nil || seen[t] {
				return
			}
			seen[t] = true
			if t.Kind == Ref {
				leads[n] = append(leads[n], t.Named)
			}
			for _, m := range t.Members {
				walk(m.Type)
			}
			for _, m := range slices.Concat(t.Of, t.Tuple) {
				walk(m)
			}
			walk(t.Elem)
			walk(t.Flat)
		}
		walk(n.Type)
	}
	// A search from each type. Schemas have few definitions, so the square of their
	// number does not matter.
	for _, start := range types {
		seen := map[*Named]bool{}
		var reach func(n *Named)
		reach = func(n *Named) {
			for _, next := range leads[n] {
				start.Recursive = start.Recursive || next == start
				if !seen[next] {
					seen[next] = true
					reach(next)
				}
			}
		}
		reach(start)
	}
}
