package lint

import "github.com/agentd/agentd/schema"

// walk holds what the rules need to know of a schema as a whole, from one pass.
type walk struct {
	order     []schema.Node // all schemas inside it but boolean ones, in source order
	boolean   []schema.Node
	recursive bool            // a reference leads back to a schema that holds it
	depth     int             // greatest nesting of objects, references followed
	used      map[string]bool // names that references lead to
}

// newWalk visits the root and then every definition, including those that nothing
// refers to: they are part of the file.
func newWalk(s *schema.Schema) *walk {
	w := &walk{used: make(map[string]bool)}
	seen := make(map[schema.Node]bool)
	w.collect(s.Root(), seen)
	for _, d := range s.Definitions() {
		w.collect(d.Schema, seen)
	}
	w.measure(s.Root())
	return w
}

// collect lists the schemas inside n. It does not follow references: their
// targets are the definitions, which newWalk visits on their own.
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
		w.collect(c, seen)
	}
}

// children returns the schemas directly inside n, which is no reference.
func children(n schema.Node) []schema.Node { return n.Children() }

// maxMeasured bounds the depth that is measured. No provider's limit comes near.
const maxMeasured = 100

// measure follows references to find recursion and the depth of nesting.
func (w *walk) measure(root schema.Node) {
	m := measurer{walk: w, open: make(map[schema.Node]bool), best: make(map[schema.Node]int)}
	m.visit(root, 0)
}

// measurer is the state of [walk.measure].
type measurer struct {
	*walk
	open map[schema.Node]bool // on the way from the root to the current schema
	best map[schema.Node]int  // greatest depth+1 at which each schema was entered
}

// visit measures n, which stands inside depth objects. It enters a schema again
// only at a greater depth than before, so that definitions which refer to each
// other twice over cost their number and not its power of two.
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
		m.visit(c, depth)
	}
}
