package lint

import "github.com/agentd/agentd/schema"

// walk is every schema inside a schema.
type walk struct {
	order     []schema.Node // in the order of the source, without boolean ones
	boolean   []schema.Node
	recursive bool
	depth     int // of objects and arrays, references followed
	used      map[string]bool
}

func newWalk(s *schema.Schema) *walk {
	w := &walk{used: make(map[string]bool)}
	seen := make(map[schema.Node]bool)
	w.collect(s.Root(), seen)
	for _, d := range s.Definitions() {
		w.collect(d.Schema, seen)
	}
	w.measure(s.Root(), make(map[schema.Node]bool), 0)
	return w
}

// collect lists the schemas inside n, without following references: their
// targets are definitions, and those are listed too.
func (w *walk) collect(n schema.Node, seen map[schema.Node]bool) {
	if seen[n] {
		return
	}
	seen[n] = true
	if _, ok := n.Boolean(); ok {
		w.boolean = append(w.boolean, n)
		return
	}
	w.order = append(w.order, n)
	if name, _, ok := n.Ref(); ok {
		w.used[name] = true
		return
	}
	for _, c := range children(n) {
		w.collect(c.node, seen)
	}
}

// child is a schema inside another; deeper says that it applies to a part of
// the value, and not to the value itself.
type child struct {
	node   schema.Node
	deeper bool
}

// children are the schemas directly inside n.
func children(n schema.Node) []child {
	var out []child
	for _, p := range n.Properties() {
		out = append(out, child{p.Schema, true})
	}
	if additional, ok := n.Additional(); ok {
		out = append(out, child{additional, true})
	}
	if items, ok := n.Items(); ok {
		out = append(out, child{items, true})
	}
	for _, branches := range [][]schema.Node{n.OneOf(), n.AnyOf(), n.AllOf()} {
		for _, b := range branches {
			out = append(out, child{b, false})
		}
	}
	if not, ok := n.Not(); ok {
		out = append(out, child{not, false})
	}
	return out
}

// maxMeasured bounds the depth that is measured; no limit of a provider is near.
const maxMeasured = 100

// measure follows references to find recursion and the depth of nesting. open
// are the schemas on the way to n; a schema that was left is not entered again
// at the same or a smaller depth, so that shared definitions cost once.
func (w *walk) measure(n schema.Node, open map[schema.Node]bool, depth int) {
	m := measurer{walk: w, open: open, best: make(map[schema.Node]int)}
	m.visit(n, depth)
}

// measurer is the state of [walk.measure].
type measurer struct {
	*walk
	open map[schema.Node]bool
	best map[schema.Node]int // the greatest depth+1 at which a schema was entered
}

// visit measures n, which stands inside depth objects.
func (m *measurer) visit(n schema.Node, depth int) {
	if m.open[n] {
		m.recursive = true
		return
	}
	if depth > maxMeasured || m.best[n] > depth {
		return
	}
	m.best[n] = depth + 1
	m.open[n] = true
	defer delete(m.open, n)
	if _, target, ok := n.Ref(); ok {
		m.visit(target, depth)
		return
	}
	if n.HasObject() {
		depth++
		m.depth = max(m.depth, depth)
	}
	for _, c := range children(n) {
		m.visit(c.node, depth)
	}
}
