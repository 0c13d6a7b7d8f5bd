package compile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/internal/truncate"
	"github.com/agentd/agentd/schema/internal/identity"
	"github.com/agentd/agentd/schema/internal/ir"
	"github.com/agentd/agentd/schema/internal/jsonptr"
	"github.com/agentd/agentd/schema/internal/jsontree"
	"github.com/agentd/agentd/schema/internal/memo"
	"github.com/agentd/agentd/schema/internal/pattern"
)

// compiler turns a parsed schema into nodes and collects every fault.
//
// It works in three rounds. The first walks the source once, checks the form
// of every keyword and makes a node of every schema. The second finds the
// target of each $ref, which may stand anywhere, and refuses loops. Only a
// schema without faults reaches the third, which fills in what the passes
// over payloads read: targets, dispatch, and whether a memo is needed.
type compiler struct {
	faults   []Fault
	nodes    []*ir.Node          // every schema, in the order of the source
	literals identity.Table      // the values of const and enum
	ident    identity.Identifier // numbers the literals
	refs     []pendingRef
	patterns pattern.Budget
	full     *fullProfile // nil for the subset

	tags map[string]int // scratch space of newDispatch: hardly any property decides

	ctx      context.Context
	steps    int       // that are left
	exceeded *Exceeded // once none are
	words    int       // with which hints have compared
}

// pendingRef is a $ref whose target may not be compiled yet.
type pendingRef struct {
	node    *ir.Node
	text    string // the reference as written
	pointer string // where it stands
}

// Fault is one reason to refuse a schema.
type Fault struct {
	Pointer string // where it stands, as an RFC 6901 pointer into the schema
	Message string // what is wrong
	Hint    string // what to do about it; may be empty
}

// Compile compiles a schema, given as JSON, or returns all its faults. src is
// not kept.
func Compile(src []byte) (*ir.Schema, []Fault) {
	return faulted(Within(context.Background(), src, defaultBudget()))
}

// faulted makes faults of an exceeded budget.
func faulted(s *ir.Schema, faults []Fault, exceeded *Exceeded) (*ir.Schema, []Fault) {
	switch {
	case exceeded == nil:
		return s, faults
	case exceeded.Bytes:
		hint := "split it; a contract is not a database"
		return nil, []Fault{{Message: "the schema is larger than 8 MiB", Hint: hint}}
	}
	return nil, []Fault{{Message: "the schema takes too long to compile", Hint: "split it, or repeat less"}}
}

// Within is Compile within a budget, and until ctx ends. If exceeded is set, there is
// neither a schema nor a fault.
func Within(ctx context.Context, src []byte, budget Budget) (s *ir.Schema, faults []Fault, exceeded *Exceeded) {
	return within(ctx, src, budget, (*compiler).subset)
}

// A profile compiles the tree of a schema. It returns nil if there is nothing to complete:
// the compiler has the faults.
type profile func(*compiler, *jsontree.Tree) *ir.Node

// within is Within for any profile.
func within(ctx context.Context, src []byte, budget Budget, by profile) (s *ir.Schema, faults []Fault, exceeded *Exceeded) {
	if len(src) > budget.MaxBytes {
		return nil, nil, &Exceeded{Bytes: true}
	}
	c := &compiler{patterns: pattern.NewBudget().Within(budget.MaxPatternSteps), tags: map[string]int{}, ctx: ctx, steps: budget.MaxSteps}
	// All literals of the schema share one table, which the validator later
	// only reads.
	c.ident.Table = &c.literals
	if ctx.Err() != nil {
		return nil, nil, &Exceeded{Cause: ctx.Err()}
	}
	if c.spend(len(src)) {
		s, faults = c.compile(slices.Clone(src), by)
	}
	if c.exceeded != nil {
		return nil, nil, c.exceeded
	}
	return s, faults, nil
}

// compile is Compile by a profile, without the bound on the size. It takes over src.
func (c *compiler) compile(src []byte, by profile) (*ir.Schema, []Fault) {
	t, err := jsontree.Parse(src, func() bool { return c.spend(stepsOfValue) })
	if errors.Is(err, jsontree.ErrTooLarge) {
		return nil, nil // c.exceeded says why
	}
	if err != nil {
		var syntax *ijson.SyntaxError
		hint := ""
		if errors.As(err, &syntax) {
			hint = position(src, syntax.Offset)
		}
		return nil, []Fault{{Message: err.Error(), Hint: hint}}
	}
	root := by(c, t)
	if root == nil {
		return nil, c.faults
	}
	return c.complete(root, src)
}

// subset compiles by the profile of capabilities.yaml.
func (c *compiler) subset(t *jsontree.Tree) *ir.Node {
	if t.Kind != jsontree.Object {
		// A capability whose contract is true or false says nothing; more
		// likely a file was cut short.
		c.fault("", "the root of a schema must be an object", "write {} to accept every value")
		return nil
	}
	root := c.schema(t, "")
	c.resolve(root)
	return root
}

// complete refuses what only shows in the whole and fills in what the passes over
// payloads read. It is the part that both profiles share.
func (c *compiler) complete(root *ir.Node, src []byte) (*ir.Schema, []Fault) {
	if len(c.faults) == 0 {
		c.refuseLoops()
	}
	if len(c.faults) == 0 {
		c.refuseNesting()
	}
	if len(c.faults) > 0 || c.exceeded != nil {
		return nil, c.faults
	}
	// The schema is sound from here on: the following rounds cannot fail.
	c.link()
	share(root, c.nodes)
	return &ir.Schema{
		Root: root, Nodes: c.nodes, Source: src, Literals: c.literals, Memoise: needsMemo(c.nodes),
		Full: c.full != nil,
	}, nil
}

// position names the line and column of an offset, both counted from 1, in bytes.
func position(src []byte, offset int) string {
	before := src[:min(offset, len(src))]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return fmt.Sprintf("line %d, column %d", line, column)
}

// maxFaults bounds the faults that are listed: nobody mends more at once.
const maxFaults = 1000

// fault records a reason to refuse the schema; compiling goes on, so that every
// fault shows at once.
func (c *compiler) fault(pointer, message, hint string) {
	switch {
	case !c.spend(stepsOfFault) || !c.spendAt(pointer, 0) || len(c.faults) > maxFaults:
	case len(c.faults) == maxFaults:
		c.faults = append(c.faults, Fault{Message: "there are more faults, which are not listed"})
	default:
		c.faults = append(c.faults, Fault{pointer, message, hint})
	}
}

// schema compiles one schema, which may be a boolean. It recurses with the
// source, whose depth jsontree.Parse has bounded. A schema in which there is a fault
// still gets a node, so that the rest can be checked as well.
func (c *compiler) schema(t *jsontree.Tree, pointer string) *ir.Node {
	if c.full != nil {
		return c.full.schema(t)
	}
	// Keys of the memo have room for so many nodes.
	if len(c.nodes) == memo.MaxNodes {
		c.fault(pointer, "the schema is too large", "")
		return c.nodes[0]
	}
	if len(c.nodes) > 0 && (!c.spend(stepsOfSchema) || !c.spendAt(pointer, len(t.Members))) {
		return c.nodes[0]
	}
	n := &ir.Node{ID: uint32(memo.FirstID + len(c.nodes)), Pointer: pointer, Raw: t.Raw, Types: ir.AnyType}
	c.nodes = append(c.nodes, n)
	switch {
	case t.Kind == jsontree.Boolean:
		// true is the empty node, which accepts everything.
		n.Boolean = true
		if t.Raw[0] == 'f' {
			n.Never, n.Types = true, 0 // no value has a type in the empty set
		}
	case t.Kind != jsontree.Object:
		c.fault(pointer, "a schema must be an object or a boolean, not "+describe(t.Kind), "")
	case t.Get("$ref") != nil:
		c.reference(n, t, pointer)
	default:
		for _, m := range t.Members {
			c.keyword(n, m.Name, m.Value, jsonptr.Child(pointer, m.Name))
		}
	}
	c.finish(n)
	return n
}

// reference compiles a schema that holds $ref. Draft-07 ignores what stands
// beside $ref (core section 8.3), and authors expect the opposite, as later
// drafts have it. Whatever would assert something there is refused; annotations
// are kept, since both readings of them agree.
func (c *compiler) reference(n *ir.Node, t *jsontree.Tree, pointer string) {
	for _, m := range t.Members {
		at := jsonptr.Child(pointer, m.Name)
		switch m.Name {
		case "$ref":
			if text, ok := c.text(m.Value, at); ok {
				n.RefBy, n.RefText = m.Name, text
				c.refs = append(c.refs, pendingRef{n, text, at})
			}
		case "title", "description", "default", "examples":
			c.keyword(n, m.Name, m.Value, at)
		case "definitions", "$schema":
			if pointer == "" {
				c.keyword(n, m.Name, m.Value, at)
				continue
			}
			fallthrough
		default:
			name := truncate.String(m.Name, maxShown)
			c.fault(at, "draft-07 ignores "+name+" beside $ref", `write {"allOf": [{"$ref": …}, {"`+name+`": …}]}`)
		}
	}
}

// keyword compiles one keyword of a schema object. Keywords are independent of
// their order; what depends on several of them is left to finish.
func (c *compiler) keyword(n *ir.Node, name string, v *jsontree.Tree, at string) {
	switch name {
	case "type":
		c.types(n, v, at)
	case "enum", "const":
		c.values(n, name, v, at)
	case "properties", "required", "additionalProperties":
		c.objectKeyword(n, name, v, at)
	case "items", "minItems", "maxItems", "uniqueItems":
		c.arrayKeyword(n, name, v, at)
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		c.numberKeyword(n, name, v, at)
	case "minLength", "maxLength", "pattern", "format":
		c.stringKeyword(n, name, v, at)
	case "oneOf", "anyOf", "allOf", "not":
		c.combinator(n, name, v, at)
	case "title", "description", "default", "examples", "definitions", "$schema":
		c.annotation(n, name, v, at)
	default:
		c.unknown(name, at)
	}
}

// types compiles type: one name, or a list of names that differ (draft-07
// validation section 6.1.1).
func (c *compiler) types(n *ir.Node, v *jsontree.Tree, at string) {
	list := v.Items
	switch {
	case v.Kind == jsontree.String:
		list = []*jsontree.Tree{v}
	case v.Kind != jsontree.Array:
		c.fault(at, "type must be a string or an array of strings, not "+describe(v.Kind), "")
		return
	case len(list) == 0:
		c.fault(at, "type must not be an empty array", "leave type out to accept every type")
		return
	}
	n.Types = 0
	for i, item := range list {
		where := at
		if v.Kind == jsontree.Array {
			where = jsonptr.Element(at, i)
		}
		name, ok := c.text(item, where)
		if !ok {
			continue
		}
		bit := typeBit(name)
		switch {
		case bit == 0:
			c.fault(where, "unknown type "+truncate.Quote(name), c.suggest(name, typeNames()))
		case slices.Contains(n.TypeList, name):
			c.fault(where, "type "+truncate.Quote(name)+" is listed twice", "")
		default:
			n.Types |= bit
			n.TypeList = append(n.TypeList, name)
		}
	}
}

// combinator compiles oneOf, anyOf, allOf or not, whose branches are schemas for
// the same value.
func (c *compiler) combinator(n *ir.Node, name string, v *jsontree.Tree, at string) {
	switch name {
	case "oneOf":
		n.OneOf = c.branches(v, at)
	case "anyOf":
		n.AnyOf = c.branches(v, at)
	case "allOf":
		// A $ref of the full profile may have made branches already.
		if comb := c.branches(v, at); comb != nil {
			n.AllOf = withBranches(n.AllOf, comb.Branches...)
		}
	case "not":
		n.Not = c.schema(v, at)
	}
}

// branches compiles the array of schemas of a combinator, of which there must
// be one at least (draft-07 validation section 6.7).
func (c *compiler) branches(v *jsontree.Tree, at string) *ir.Combinator {
	switch {
	case v.Kind != jsontree.Array:
		c.fault(at, "must be an array of schemas, not "+describe(v.Kind), "")
		return nil
	case len(v.Items) == 0:
		c.fault(at, "must hold at least one schema", "")
		return nil
	}
	comb := &ir.Combinator{}
	for i, item := range v.Items {
		if c.exceeded != nil {
			return nil
		}
		comb.Branches = append(comb.Branches, c.schema(item, jsonptr.Element(at, i)))
	}
	return comb
}

// withBranches adds branches to a combinator that may be absent.
func withBranches(comb *ir.Combinator, branches ...*ir.Node) *ir.Combinator {
	if comb == nil {
		comb = &ir.Combinator{}
	}
	comb.Branches = append(comb.Branches, branches...)
	return comb
}

// annotation compiles a keyword that asserts nothing. Its form is checked all
// the same: a title that is no string is a mistake worth knowing of.
func (c *compiler) annotation(n *ir.Node, name string, v *jsontree.Tree, at string) {
	switch name {
	case "title":
		n.Notes.Title, _ = c.text(v, at)
	case "description":
		n.Notes.Description, _ = c.text(v, at)
	case "default":
		n.Notes.Fallback = compact(v.Raw)
	case "examples":
		c.examples(n, v, at)
	case "definitions":
		c.definitions(n, v, at)
	case "$schema":
		c.dialect(v, at)
	}
}

// examples keeps the values of examples as JSON. Whether they are valid is for
// the loader of a capability to ask.
func (c *compiler) examples(n *ir.Node, v *jsontree.Tree, at string) {
	if v.Kind != jsontree.Array {
		c.fault(at, "examples must be an array, not "+describe(v.Kind), "")
		return
	}
	n.Notes.Examples = [][]byte{}
	for _, item := range v.Items {
		n.Notes.Examples = append(n.Notes.Examples, compact(item.Raw))
	}
}

// definitions compiles definitions wherever they stand, so that their faults
// show, although $ref reaches only those at the root. A mistake in a schema that
// nothing uses yet is still a mistake.
func (c *compiler) definitions(n *ir.Node, v *jsontree.Tree, at string) {
	if v.Kind != jsontree.Object {
		c.fault(at, "definitions must be an object, not "+describe(v.Kind), "")
		return
	}
	for _, m := range v.Members {
		if c.exceeded != nil {
			return
		}
		def := ir.Definition{Name: m.Name, Node: c.schema(m.Value, jsonptr.Child(at, m.Name))}
		n.Notes.Definitions = append(n.Notes.Definitions, def)
	}
}

// dialect accepts $schema if it names draft-07, at the root, with or without the
// empty fragment. Under another draft the same keywords could mean other things.
func (c *compiler) dialect(v *jsontree.Tree, at string) {
	text, ok := c.text(v, at)
	switch {
	case !ok:
	case at != "/$schema":
		c.fault(at, "$schema stands only at the root", "remove it")
	case text != "http://json-schema.org/draft-07/schema#" && text != "http://json-schema.org/draft-07/schema":
		c.fault(at, "$schema names another dialect than draft-07",
			`write "http://json-schema.org/draft-07/schema#", or leave it out`)
	}
}

// text returns the characters of a string, or records that it is none.
func (c *compiler) text(v *jsontree.Tree, at string) (string, bool) {
	if v.Kind != jsontree.String {
		c.fault(at, "must be a string, not "+describe(v.Kind), "")
		return "", false
	}
	return v.Text, true
}
