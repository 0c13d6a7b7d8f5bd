package compile

import (
	"strconv"

	"github.com/agentd/agentd/schema/internal/ir"
	"github.com/agentd/agentd/schema/internal/jsonptr"
	"github.com/agentd/agentd/schema/internal/memo"
)

// indexOf is the place of a node in the list of all: numbers are given in its order.
func indexOf(n *ir.Node) int { return int(n.ID - memo.FirstID) }

// refuseLoops finds each $ref that leads back to itself without consuming
// input: no value could be judged by it, and draft-07 leaves its meaning
// undefined (core section 8.3). Every cycle among schemas for one value holds
// a $ref.
func (c *compiler) refuseLoops() {
	loops := ir.Walk{
		Next: (*ir.Node).Here,
		Edge: func(from, _ *ir.Node, closes bool) {
			if closes && from.Ref != nil {
				c.fault(jsonptr.Child(from.Pointer, "$ref"), "$ref leads back to itself without consuming input",
					"put a property or an element between the two")
			}
		},
	}
	loops.All(c.nodes)
}

// share finds the nodes to which more than one other leads. Only these need
// entries in the memo: every cycle holds one of them, and so does every value
// that is judged twice.
func share(root *ir.Node, nodes []*ir.Node) {
	reached := map[*ir.Node]bool{root.Target(): true}
	for _, n := range nodes {
		for _, next := range n.Edges() {
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
// refuseLoops, without which what a schema leads to would not be known before it.
func (c *compiler) refuseNesting() {
	levels := make([]int, len(c.nodes))
	nesting := ir.Walk{Next: (*ir.Node).Here, Leave: func(n *ir.Node) {
		most := 0
		for _, next := range n.Here() {
			most = max(most, levels[indexOf(next)])
		}
		if n.Combines {
			most++ // $ref alone costs nothing: its target stands in for it
		}
		levels[indexOf(n)] = most
	}}
	nesting.All(c.nodes)
	for i, n := range c.nodes {
		if n.Ref == nil && levels[i] > maxNesting {
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
	steps := make([]int, len(nodes))
	weights := ir.Walk{Next: (*ir.Node).Here, Leave: func(n *ir.Node) {
		total := 1
		for _, next := range n.Here() {
			// The cap keeps exponential counts from overflowing.
			total = min(total+steps[indexOf(next)], 1<<16)
		}
		steps[indexOf(n)], n.Heavy = total, total > heavy
		most = max(most, total)
	}}
	weights.All(nodes)
	return most
}

// needsMemo reports whether the work per value could grow with its depth, or
// a value be judged many times: where a schema that combines others can
// contain itself, or where combinations nest. The memo makes such schemas
// linear and all others slower, by a look-up for each value, which is why most
// schemas run without.
//
// What is unevaluated takes a second look at the branches, which without a memo
// would judge everything behind them again, at every level.
func needsMemo(nodes []*ir.Node) bool {
	const (
		mostSteps    = 256 // for one value, before its parts
		mostReadings = 8   // of the bytes of one value
	)
	if weigh(nodes) > mostSteps {
		return true
	}
	for _, n := range nodes {
		if n.Beyond != nil && (n.Beyond.Members != nil || n.Beyond.Elements != nil) {
			return true
		}
	}
	r := recursion{state: make([]visited, len(nodes))}
	walk := ir.Walk{Next: (*ir.Node).Edges, Enter: r.enter, Edge: r.edge, Leave: r.leave}
	walk.All(nodes)
	return r.combining || r.readings > mostReadings
}

// recursion finds the groups of schemas that can contain one another, by
// Tarjan's algorithm for strongly connected components.
type recursion struct {
	state     []visited  // by index
	stack     []*ir.Node // those whose group is not complete
	count     int
	combining bool // some group holds a schema that combines others
	readings  int  // the most of any schema
}

// visited is what the walk knows of one schema: the bookkeeping of Tarjan's
// algorithm, and the cost of a reading.
type visited struct {
	order, low int
	open       bool // its group is not complete
	loops      bool // it leads to itself directly
	readings   int  // how often the bytes of one value are read, at most
}

func (r *recursion) enter(n *ir.Node) {
	r.state[indexOf(n)] = visited{order: r.count, low: r.count, open: true, readings: 1}
	r.count++
	r.stack = append(r.stack, n)
}

// edge takes over what was found behind a step. Where that may lead back, it is a part
// of the same group.
func (r *recursion) edge(from, to *ir.Node, _ bool) {
	u, v := &r.state[indexOf(to)], &r.state[indexOf(from)]
	if u.open {
		v.low = min(v.low, u.low)
		v.loops = v.loops || from == to
	}
	if from.Ref == nil && !from.Combines && !overlaps(from) {
		v.readings = max(v.readings, u.readings) // each part is read once
	}
}

// leave completes a schema, and its group if n was met first of it.
func (r *recursion) leave(n *ir.Node) {
	v := &r.state[indexOf(n)]
	if n.Ref != nil || n.Combines || overlaps(n) {
		v.readings = r.read(n)
	}
	r.readings = max(r.readings, v.readings)
	if v.low == v.order {
		r.closeGroup(n)
	}
}

// read estimates how often the bytes of a value are read by a schema with combinators:
// by every branch, and twice where a property picks the branch, since the property
// must be found first. What is still open counts as far as it is known. That may be
// too little only in a group that combines, and those need a memo anyway.
func (r *recursion) read(n *ir.Node) (readings int) {
	readings = 1
	for _, next := range n.Parts() {
		again := r.state[indexOf(next)].readings
		if overlaps(n) {
			readings = min(readings+again, 1<<16)
		} else {
			readings = max(readings, again)
		}
	}
	picked := picks(n.OneOf) && n.AnyOf == nil && n.AllOf == nil && n.Not == nil
	for _, next := range n.Here() {
		switch again := r.state[indexOf(next)].readings; {
		case next.Target().Types&(ir.TypeArray|ir.TypeObject) == 0: // fails at once on what is long to read
		case picked:
			readings = max(readings, again+1)
		default:
			readings = min(readings+again, 1<<16)
		}
	}
	return readings
}

// closeGroup completes the group of which n was met first: everything that is on
// the stack above n can be reached from n and leads back to it.
func (r *recursion) closeGroup(n *ir.Node) {
	at := len(r.stack) - 1
	for r.stack[at] != n {
		at--
	}
	// More than one schema, or one that leads to itself, is a cycle.
	group := r.stack[at:]
	recursive := len(group) > 1 || r.state[indexOf(n)].loops
	for _, m := range group {
		r.state[indexOf(m)].open = false
		r.combining = r.combining || recursive && (m.Combines || overlaps(m))
	}
	r.stack = r.stack[:at]
}

// overlaps reports whether several schemas of a node can judge the same part: an
// element both items and contains, a member several patterns.
func overlaps(n *ir.Node) bool {
	return n.Arr != nil && n.Arr.Full != nil && n.Arr.Full.Contains != nil ||
		n.Obj != nil && n.Obj.Full != nil && len(n.Obj.Full.Patterns) > 0
}

// picks reports whether a property decides which branch is read.
func picks(c *ir.Combinator) bool { return c != nil && c.Dispatch != nil }
