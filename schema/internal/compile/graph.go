package compile

import (
	"strconv"

	"github.com/agentd/agentd/schema/internal/ir"
	"github.com/agentd/agentd/schema/internal/jsonptr"
)

// refuseLoops finds each $ref that leads back to itself without consuming
// input: no value could be judged by it, and draft-07 leaves its meaning
// undefined (core section 8.3). It is a depth-first search with the usual two
// marks; a schema that is active when it is reached again closes a cycle, and
// every cycle holds a $ref.
func (c *compiler) refuseLoops() {
	const active, done = 1, 2
	state := map[*ir.Node]int{}
	var visit func(n *ir.Node) bool
	visit = func(n *ir.Node) (loops bool) {
		switch state[n] {
		case active:
			return true
		case done:
			return false
		}
		state[n] = active
		for _, next := range n.Here() {
			if visit(next) && n.Ref != nil {
				c.fault(jsonptr.Child(n.Pointer, "$ref"), "$ref leads back to itself without consuming input",
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
func share(root *ir.Node, nodes []*ir.Node) {
	reached := map[*ir.Node]bool{root.Target(): true}
	for _, n := range nodes {
		for _, next := range append(n.Here(), n.Below()...) {
			next = next.Target()
			// The first to lead here only marks the node as reached.
			next.Shared = next.Shared || reached[next]
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
	levels := make(map[*ir.Node]int, len(c.nodes))
	var count func(n *ir.Node) int
	count = func(n *ir.Node) int {
		if l, ok := levels[n]; ok {
			return l
		}
		most := 0
		for _, next := range n.Here() {
			most = max(most, count(next))
		}
		if n.Combines {
			most++ // $ref alone costs nothing: its target stands in for it
		}
		levels[n] = most
		return most
	}
	for _, n := range c.nodes {
		if n.Ref == nil && count(n) > maxNesting {
			c.fault(n.Pointer, "combinators nest more than "+strconv.Itoa(maxNesting)+" deep around one value", "flatten them")
			return
		}
	}
}

// weigh finds the nodes that judge a value in many steps before they come to
// its parts, and returns the largest number of steps. Definitions that refer to
// each other twice make this exponential: d0 = allOf[d1, d1], d1 = allOf[d2, d2]
// and so on judges one number 2^n times, unless a memo keeps the answers.
func weigh(nodes []*ir.Node) (most int) {
	const heavy = 16
	steps := make(map[*ir.Node]int, len(nodes))
	var count func(n *ir.Node) int
	count = func(n *ir.Node) int {
		if s, ok := steps[n]; ok {
			return s
		}
		total := 1
		for _, next := range n.Here() {
			// The cap keeps exponential counts from overflowing.
			total = min(total+count(next), 1<<16)
		}
		steps[n], n.Heavy = total, total > heavy
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
func needsMemo(nodes []*ir.Node) bool {
	const (
		mostSteps    = 256 // for one value, before its parts
		mostReadings = 8   // of the bytes of one value
	)
	if weigh(nodes) > mostSteps {
		return true
	}
	w := recursion{state: map[*ir.Node]*visited{}}
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
	state     map[*ir.Node]*visited
	stack     []*ir.Node
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
func (w *recursion) walk(n *ir.Node) *visited {
	if v := w.state[n]; v != nil {
		return v
	}
	v := &visited{order: len(w.state), low: len(w.state), open: true, readings: 1}
	w.state[n] = v
	w.stack = append(w.stack, n)
	for _, next := range n.Below() {
		v.readings = max(v.readings, w.follow(n, next))
	}
	picked := picks(n.OneOf) && n.AnyOf == nil && n.AllOf == nil && n.Not == nil
	for _, next := range n.Here() {
		switch readings := w.follow(n, next); {
		case next.Target().Types&(ir.TypeArray|ir.TypeObject) == 0: // fails at once on what is long to read
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
func (w *recursion) follow(n, next *ir.Node) (readings int) {
	u, v := w.walk(next), w.state[n]
	if u.open {
		v.low = min(v.low, u.low)
		v.loops = v.loops || next == n
	}
	return u.readings
}

// closeGroup completes the group of which n was met first: everything that is on
// the stack above n can be reached from n and leads back to it.
func (w *recursion) closeGroup(n *ir.Node) {
	at := len(w.stack) - 1
	for w.stack[at] != n {
		at--
	}
	// More than one schema, or one that leads to itself, is a cycle.
	group := w.stack[at:]
	recursive := len(group) > 1 || w.state[n].loops
	for _, m := range group {
		w.state[m].open = false
		w.combining = w.combining || m.Combines && recursive
	}
	w.stack = w.stack[:at]
}

// picks reports whether a property decides which branch is read.
func picks(c *ir.Combinator) bool { return c != nil && c.Dispatch != nil }
