package ir

// Walk goes through schemas depth first, parts before wholes, and comes to each
// once. It is the one traversal of the graph: what differs between those who use it
// is where they go next, and what they do on the way.
type Walk struct {
	// Next lists the schemas to go to from one.
	Next func(n *Node) []*Node

	// Enter is called before what lies behind a schema, and Leave after it; Edge is
	// called for each step, once what it leads to has been left. If that is still
	// open instead, the step closes a cycle. Each may be nil.
	Enter func(n *Node)
	Edge  func(from, to *Node, open bool)
	Leave func(n *Node)

	open map[*Node]bool // the schemas come to, and whether they have yet to be left
}

// From goes through n and all behind it that the walk has not come to before.
func (w *Walk) From(n *Node) {
	if _, known := w.open[n]; known {
		return
	}
	if w.open == nil {
		w.open = map[*Node]bool{}
	}
	w.open[n] = true
	if w.Enter != nil {
		w.Enter(n)
	}
	for _, next := range w.Next(n) {
		w.From(next)
		if w.Edge != nil {
			w.Edge(n, next, w.open[next])
		}
	}
	w.open[n] = false
	if w.Leave != nil {
		w.Leave(n)
	}
}

// All goes through all of some schemas.
func (w *Walk) All(nodes []*Node) {
	if w.open == nil {
		w.open = make(map[*Node]bool, len(nodes))
	}
	for _, n := range nodes {
		w.From(n)
	}
}
