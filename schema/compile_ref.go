package schema

import (
	"net/url"
	"strconv"
	"strings"
)

// resolve finds the target of every $ref, once all definitions are known. Only
// "#" and the definitions of the root can be named: nothing is fetched, and no
// part of a schema can be reached by a pointer that a later edit would break.
func (c *compiler) resolve(root *node) {
	definitions := map[string]*node{}
	var names []string
	for _, d := range root.notes.definitions {
		definitions[d.name] = d.node
		names = append(names, d.name)
	}
	for _, r := range c.refs {
		if r.text == "#" {
			r.node.ref = root
			continue
		}
		name, ok := definitionName(r.text)
		if !ok {
			c.fault(r.pointer, "$ref must be #/definitions/<name>, or # for the root",
				"move the schema into definitions at the root; nothing outside this document is read")
			continue
		}
		target := definitions[name]
		if target == nil {
			c.fault(r.pointer, "$ref names the definition "+quote(name)+", which does not exist", suggest(name, names))
			continue
		}
		r.node.ref, r.node.refName = target, name
	}
}

// definitionName decodes a reference: percent-encoding first, as a URI
// fragment, then the escapes of RFC 6901.
func definitionName(ref string) (string, bool) {
	segment, ok := strings.CutPrefix(ref, "#/definitions/")
	// Only a definition itself can be named, not a part of it.
	if !ok || strings.Contains(segment, "/") {
		return "", false
	}
	segment, err := url.PathUnescape(segment)
	if err != nil {
		return "", false
	}
	// RFC 6901 section 3: a tilde is followed by 0 or 1.
	for i := 0; i < len(segment); i++ {
		if segment[i] == '~' && (i+1 == len(segment) || segment[i+1] != '0' && segment[i+1] != '1') {
			return "", false
		}
	}
	// The replacer reads once from left to right, so that ~01 becomes ~1, as
	// section 4 asks.
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(segment), true
}

// here lists the schemas that judge the same value as n. A cycle among these
// would never end, see refuseLoops.
func (n *node) here() []*node {
	if n.ref != nil {
		return []*node{n.ref}
	}
	var all []*node
	for _, comb := range []*combinator{n.oneOf, n.anyOf, n.allOf} {
		if comb != nil {
			all = append(all, comb.branches...)
		}
	}
	if n.not != nil {
		all = append(all, n.not)
	}
	return all
}

// below lists the schemas that judge the parts of a value that n judges. Cycles
// among these are how recursive data is described, and end with the data.
func (n *node) below() []*node {
	var all []*node
	if n.obj != nil {
		for _, p := range n.obj.props[:n.obj.declared] {
			all = append(all, p.node)
		}
		if n.obj.additional != nil {
			all = append(all, n.obj.additional)
		}
	}
	if n.arr != nil && n.arr.items != nil {
		all = append(all, n.arr.items)
	}
	return all
}

// refuseLoops finds each $ref that leads back to itself without consuming
// input: no value could be judged by it, and draft-07 leaves its meaning
// undefined (core section 8.3). It is a depth-first search with the usual two
// marks; a schema that is active when it is reached again closes a cycle, and
// every cycle holds a $ref.
func (c *compiler) refuseLoops() {
	const active, done = 1, 2
	state := map[*node]int{}
	var visit func(n *node) bool
	visit = func(n *node) (loops bool) {
		switch state[n] {
		case active:
			return true
		case done:
			return false
		}
		state[n] = active
		for _, next := range n.here() {
			if visit(next) && n.ref != nil {
				c.fault(child(n.pointer, "$ref"), "$ref leads back to itself without consuming input",
					"put a property or an element between the two")
			}
		}
		state[n] = done
		return false
	}
	for _, n := range c.nodes {
		visit(n)
	}
}

// share finds the nodes to which more than one other leads. Only these need
// entries in the memo: every cycle holds one of them, and so does every value
// that is judged twice.
func share(root *node, nodes []*node) {
	reached := map[*node]bool{root.target(): true}
	for _, n := range nodes {
		for _, next := range append(n.here(), n.below()...) {
			next = next.target()
			// The first to lead here only marks the node as reached.
			next.shared = next.shared || reached[next]
			reached[next] = true
		}
	}
}

// maxNesting bounds how many schemas may judge one value inside one another,
// as the branches of branches do: it bounds the stack. People stay below ten.
const maxNesting = 128

// refuseNesting refuses a schema that goes beyond maxNesting. It comes after
// refuseLoops, without which the recursion would not end.
func (c *compiler) refuseNesting() {
	levels := make(map[*node]int, len(c.nodes))
	var count func(n *node) int
	count = func(n *node) int {
		if l, ok := levels[n]; ok {
			return l
		}
		most := 0
		for _, next := range n.here() {
			most = max(most, count(next))
		}
		if n.combines {
			most++ // $ref alone costs nothing: its target stands in for it
		}
		levels[n] = most
		return most
	}
	for _, n := range c.nodes {
		if n.ref == nil && count(n) > maxNesting {
			c.fault(n.pointer, "combinators nest more than "+strconv.Itoa(maxNesting)+" deep around one value", "flatten them")
			return
		}
	}
}

// weigh finds the nodes that judge a value in many steps before they come to
// its parts, and returns the largest number of steps. Definitions that refer to
// each other twice make this exponential: d0 = allOf[d1, d1], d1 = allOf[d2, d2]
// and so on judges one number 2^n times, unless a memo keeps the answers.
func weigh(nodes []*node) (most int) {
	const heavy = 16
	steps := make(map[*node]int, len(nodes))
	var count func(n *node) int
	count = func(n *node) int {
		if s, ok := steps[n]; ok {
			return s
		}
		total := 1
		for _, next := range n.here() {
			// The cap keeps exponential counts from overflowing.
			total = min(total+count(next), 1<<16)
		}
		steps[n], n.heavy = total, total > heavy
		return total
	}
	for _, n := range nodes {
		most = max(most, count(n))
	}
	return most
}

// needsMemo reports whether the work per value could grow with its depth, or
// a value be judged many times: where a schema that combines others can
// contain itself, or where combinations nest. The memo makes such schemas
// linear and all others slower, by a look-up for each value, which is why most
// schemas run without.
func needsMemo(nodes []*node) bool {
	const (
		mostSteps    = 256 // for one value, before its parts
		mostReadings = 8   // of the bytes of one value
	)
	if weigh(nodes) > mostSteps {
		return true
	}
	w := recursion{state: map[*node]*visited{}}
	for _, n := range nodes {
		if w.walk(n).readings > mostReadings {
			return true
		}
	}
	return w.combining
}

// recursion finds the groups of schemas that can contain one another, by
// Tarjan's algorithm for strongly connected components.
type recursion struct {
	state     map[*node]*visited
	stack     []*node
	combining bool // some group holds a schema that combines others
}

// visited is what the walk knows of one schema: the bookkeeping of Tarjan's
// algorithm, and the cost of a reading.
type visited struct {
	order, low int
	open       bool // its group is not complete
	loops      bool // it leads to itself directly
	readings   int  // how often the bytes of one value are read, at most
}

// walk visits a schema and all that it leads to, each once. It also estimates how
// often the bytes of a value are read: once by a schema without combinators,
// by every branch of those with, and twice where a property picks the branch,
// since the property must be found first.
func (w *recursion) walk(n *node) *visited {
	if v := w.state[n]; v != nil {
		return v
	}
	v := &visited{order: len(w.state), low: len(w.state), open: true, readings: 1}
	w.state[n] = v
	w.stack = append(w.stack, n)
	for _, next := range n.below() {
		v.readings = max(v.readings, w.follow(n, next))
	}
	picked := picks(n.oneOf) && n.anyOf == nil && n.allOf == nil && n.not == nil
	for _, next := range n.here() {
		switch readings := w.follow(n, next); {
		case next.target().types&(typeArray|typeObject) == 0: // fails at once on what is long to read
		case picked:
			v.readings = max(v.readings, readings+1)
		default:
			v.readings = min(v.readings+readings, 1<<16)
		}
	}
	if v.low == v.order {
		w.closeGroup(n)
	}
	return v
}

// follow walks on from n to next, and returns how often next reads a value.
func (w *recursion) follow(n, next *node) (readings int) {
	u, v := w.walk(next), w.state[n]
	if u.open {
		v.low = min(v.low, u.low)
		v.loops = v.loops || next == n
	}
	return u.readings
}

// closeGroup completes the group of which n was met first: everything that is on
// the stack above n can be reached from n and leads back to it.
func (w *recursion) closeGroup(n *node) {
	at := len(w.stack) - 1
	for w.stack[at] != n {
		at--
	}
	// More than one schema, or one that leads to itself, is a cycle.
	group := w.stack[at:]
	recursive := len(group) > 1 || w.state[n].loops
	for _, m := range group {
		w.state[m].open = false
		w.combining = w.combining || m.combines && recursive
	}
	w.stack = w.stack[:at]
}

// picks reports whether a property decides which branch is read.
func picks(c *combinator) bool { return c != nil && c.dispatch != nil }

// link fills in what the passes over payloads read: targets of $ref, and the
// dispatch of combinators.
func (c *compiler) link() {
	for _, n := range c.nodes {
		resolveFinal(n)
	}
	for _, n := range c.nodes {
		linkNode(n)
	}
	for _, n := range c.nodes {
		for _, comb := range []*combinator{n.oneOf, n.anyOf} {
			if comb != nil {
				comb.dispatch = newDispatch(comb.to)
			}
		}
	}
}

// resolveFinal finds where a chain of $ref ends, and records it in every node on
// the way, so that a long chain is walked once. refuseLoops has made sure that
// the chain ends.
func resolveFinal(n *node) {
	end := n
	for end.ref != nil && end.final == nil {
		end = end.ref
	}
	if end.final != nil {
		end = end.final
	}
	for ; n.final == nil; n = n.ref {
		n.final = end
		if n == end {
			return
		}
	}
}

// linkNode fills in the targets that one node leads to.
func linkNode(n *node) {
	if n.obj != nil {
		linkObject(n.obj)
	}
	if n.arr != nil && n.arr.items != nil && !n.arr.items.target().any {
		n.arr.to = n.arr.items.target()
	}
	for _, comb := range []*combinator{n.oneOf, n.anyOf, n.allOf} {
		if comb == nil {
			continue
		}
		for _, b := range comb.branches {
			comb.to = append(comb.to, b.target())
		}
	}
	if n.not != nil {
		n.notTo = n.not.target()
	}
}

// linkObject fills in what judges each member: nil where anything goes.
func linkObject(o *objectRule) {
	if o.additional != nil {
		o.rest = o.additional.target()
		o.closed = o.rest.never
		if o.rest.any {
			o.rest = nil
		}
	}
	for i := range o.props {
		p := &o.props[i]
		if p.node == nil {
			p.to = o.rest
		} else if p.to = p.node.target(); p.to.any {
			p.to = nil
		}
	}
}

// newDispatch returns how to pick a branch by the value of one property, or
// nil. It is possible where every branch fixes the property to strings by
// const or enum, and no string belongs to two branches: then all other branches
// fail whatever else the object holds, and a union of a hundred kinds of message
// costs what one of them costs. An object without the property is not decided,
// because properties alone does not require it.
func newDispatch(branches []*node) *dispatch {
	// A property that decides must be declared by every branch, so that those
	// of the first are all candidates.
	if len(branches) < 2 || branches[0].obj == nil {
		return nil
	}
	for _, p := range branches[0].obj.props[:branches[0].obj.declared] {
		d := &dispatch{property: p.name, branch: map[string]int{}}
		if fill(d, branches) {
			return d
		}
	}
	return nil
}

// fill assigns the values of the property to the branches, and reports whether
// every value belongs to one branch only.
func fill(d *dispatch, branches []*node) bool {
	for i, b := range branches {
		if b.obj == nil {
			return false
		}
		at := b.obj.index.find(b.obj.props, []byte(d.property))
		if at < 0 || at >= b.obj.declared {
			return false
		}
		tags := b.obj.props[at].node.target().tags()
		if tags == nil {
			return false
		}
		for _, tag := range tags {
			if _, taken := d.branch[tag]; taken {
				return false
			}
			d.branch[tag] = i
		}
	}
	return true
}

// tags returns the strings to which const or enum fixes a value; nil where
// other values may pass.
func (n *node) tags() []string {
	rule := n.constant
	if rule == nil {
		rule = n.enum
	}
	// Values of other kinds could pass as well, or none is fixed.
	if rule == nil || rule.kinds != typeString {
		return nil
	}
	var tags []string
	for _, l := range rule.values {
		tags = append(tags, l.text)
	}
	return tags
}
