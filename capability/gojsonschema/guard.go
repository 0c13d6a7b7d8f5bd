package gojsonschema

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/internal/jcs"
	"github.com/agentd/agentd/schema"
)

// MaxUnfolded bounds the schemas that one schema may unfold to when every
// reference is replaced by its target, recursion cut at its second turn.
const MaxUnfolded = 50_000

// A RefusedError reports why the engine refuses a schema.
type RefusedError struct {
	// Pointer is the place in the schema, an RFC 6901 pointer.
	Pointer string
	// Reason is in words.
	Reason string
}

func (e *RefusedError) Error() string {
	at := e.Pointer
	if at == "" {
		at = "the root"
	}
	return fmt.Sprintf("the gojsonschema engine refuses the schema: %s at %s", e.Reason, at)
}

// edge leads from a schema to one that the library applies together with it.
type edge struct {
	to schema.Node
	// combined is set if both apply to the same value as alternatives. The
	// library starts over for each alternative, so recursion there is
	// exponential.
	combined bool
}

// edges returns the schemas inside n, or the target of its reference.
func edges(n schema.Node) []edge {
	var out []edge
	if _, target, ok := n.Ref(); ok {
		return append(out, edge{to: target})
	}
	for _, p := range n.Properties() {
		out = append(out, edge{to: p.Schema})
	}
	if additional, ok := n.Additional(); ok {
		out = append(out, edge{to: additional})
	}
	if items, ok := n.Items(); ok {
		out = append(out, edge{to: items})
	}
	for _, branches := range [][]schema.Node{n.OneOf(), n.AnyOf(), n.AllOf()} {
		for _, b := range branches {
			out = append(out, edge{to: b, combined: true})
		}
	}
	if not, ok := n.Not(); ok {
		out = append(out, edge{to: not, combined: true})
	}
	return out
}

// children returns the schemas inside n. It does not follow a reference.
func children(n schema.Node) []schema.Node {
	if _, _, ok := n.Ref(); ok {
		return nil
	}
	var out []schema.Node
	for _, e := range edges(n) {
		out = append(out, e.to)
	}
	return out
}

// guard finds schemas on which the library is slow. It is Tarjan's algorithm
// for strongly connected components: schemas in one component refer to each
// other in a cycle, and a combined edge inside a component is recursion
// through alternatives.
type guard struct {
	index    map[schema.Node]int // in the order of first visits, from 1
	low      map[schema.Node]int // the least index that a schema reaches on the stack
	stack    []schema.Node       // visited, and not yet in a group
	on       map[schema.Node]bool
	combined [][2]schema.Node    // the edges that start over, from and to
	group    map[schema.Node]int // schemas that reach each other share a number
	size     map[schema.Node]int // schemas that a node unfolds to, capped
}

// checkCost refuses schemas on which the library could take exponential time
// or memory.
func checkCost(root schema.Node) error {
	g := guard{
		index: make(map[schema.Node]int), low: make(map[schema.Node]int), on: make(map[schema.Node]bool),
		group: make(map[schema.Node]int), size: make(map[schema.Node]int),
	}
	g.visit(root)
	for _, e := range g.combined {
		if g.group[e[0]] == g.group[e[1]] {
			return &RefusedError{Pointer: e[1].Pointer(), Reason: "recursion through oneOf, anyOf, allOf or not"}
		}
	}
	if g.size[root] > MaxUnfolded {
		return &RefusedError{Pointer: root.Pointer(), Reason: fmt.Sprintf("references that unfold to more than %d schemas", MaxUnfolded)}
	}
	return nil
}

// visit walks n and everything below it. If n is where its component was
// entered, it then pops the component off the stack. A reference to a schema
// that is still open adds nothing to the size, which cuts recursion at its
// second turn.
func (g *guard) visit(n schema.Node) {
	g.index[n] = len(g.index) + 1
	g.low[n] = g.index[n]
	g.stack = append(g.stack, n)
	g.on[n] = true
	size := 1
	for _, e := range edges(n) {
		if e.combined {
			g.combined = append(g.combined, [2]schema.Node{n, e.to})
		}
		switch {
		case g.index[e.to] == 0:
			g.visit(e.to)
			g.low[n] = min(g.low[n], g.low[e.to])
		case g.on[e.to]:
			g.low[n] = min(g.low[n], g.index[e.to])
		}
		// Capped, since the exact size can be exponential and overflow.
		size = min(size+g.size[e.to], 2*MaxUnfolded)
	}
	g.size[n] = size
	// n belongs to a component that was entered higher up.
	if g.low[n] != g.index[n] {
		return
	}
	for {
		last := g.stack[len(g.stack)-1]
		g.stack = g.stack[:len(g.stack)-1]
		delete(g.on, last)
		g.group[last] = g.index[n]
		if last == n {
			return
		}
	}
}

// comparesNumbers reports whether a schema compares numbers by equality,
// anywhere in it. The library does that in float64, where two large integers
// that differ may be equal.
func comparesNumbers(root schema.Node, seen map[schema.Node]bool) bool {
	if seen[root] {
		return false
	}
	seen[root] = true
	if root.UniqueItems() {
		return true
	}
	literals := root.Enum()
	if value, ok := root.Const(); ok {
		literals = append(literals, value)
	}
	for _, l := range literals {
		if l.Type != schema.TypeString && l.Type != schema.TypeBoolean && l.Type != schema.TypeNull {
			return true
		}
	}
	for _, e := range edges(root) {
		if comparesNumbers(e.to, seen) {
			return true
		}
	}
	return false
}

const (
	// The library holds numbers as big.Rat, whose size grows with the exponent and
	// not with the text.
	maxDigits   = 300   // characters of a number in canonical form
	maxExponent = "300" // of three digits
)

// badNumber reports whether canonical JSON holds a number that the library
// cannot judge: one whose size would cost it too much memory, and, if exact
// is set, one that float64 cannot tell from its neighbours.
func badNumber(canonical []byte, exact bool) bool {
	for i := 0; i < len(canonical); {
		switch c := canonical[i]; {
		case c == '"':
			end, _, err := ijson.ScanString(canonical, i)
			if err != nil {
				return true
			}
			i = end
		case c == '-' || '0' <= c && c <= '9':
			end, _, err := ijson.ScanNumber(canonical, i)
			if err != nil || !holds(string(canonical[i:end]), exact) {
				return true
			}
			i = end
		default:
			i++
		}
	}
	return false
}

// holds reports whether the library can judge a canonical number.
func holds(token string, exact bool) bool {
	mantissa, exponent, _ := strings.Cut(token, "e")
	exponent = strings.TrimLeft(exponent, "+-")
	if len(mantissa) > maxDigits || len(exponent) > 3 || len(exponent) == 3 && exponent > maxExponent {
		return false
	}
	return !exact || shortest(token)
}

// shortest reports whether a canonical number is the shortest text of a
// float64. Different shortest texts stand for different float64 values, so
// comparing such numbers as float64 is exact.
func shortest(token string) bool {
	f, err := strconv.ParseFloat(token, 64)
	if err != nil {
		return false
	}
	text, err := jcs.Append(nil, strconv.AppendFloat(nil, f, 'g', -1, 64))
	return err == nil && string(text) == token
}
