package contain

import (
	"context"
	"encoding/binary"
	"slices"

	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/schema/internal/ir"
	"github.com/agentd/agentd/schema/internal/verdict"
)

// form is a class of schemas that accept the same values because they are
// written the same way, whatever their place, order and annotations. The
// prover reasons about forms, so that a part that two schemas share is one and
// the same: two versions of a contract differ in few places, and everything
// else is contained in itself without proof.
type form struct {
	node   *ir.Node
	schema *schema.Schema // to which node belongs
	side   Side
	alone  *verdict.Validator // of node as a schema of its own; made when first needed

	// The parts, as forms; -1 where absent.
	items, additional, not int32
	props                  []formProperty
	oneOf, anyOf, allOf    []int32
	constant, enum         *literalSet
	full                   *fullForm // nil in the subset

	like []*ir.Node // all schemas of this form, for their examples

	// What the form means, and its negation, once opened.
	opened [2]termID
	isOpen [2]bool
}

type formProperty struct {
	name nameID
	form int32
}

// classifier finds the forms of the schemas that are compared. Schemas without
// recursion are numbered from the leaves up, in one pass. With recursion, the
// forms of parts are not known when a schema is reached, and the classes are
// refined until they are stable, as in minimising an automaton.
type classifier struct {
	p      *prover
	nodes  []*ir.Node // those reachable, parts before wholes
	owner  []Side
	at     map[*ir.Node]int32
	size   int // of all nodes: one for each, and for each of its parts
	cyclic bool
	fixed  []byte  // for each node what its key holds beside the forms of its parts
	ends   []int   // where that ends in fixed
	form   []int32 // by node
	key    []byte
}

// classify fills the prover's forms and those of the roots.
func (p *prover) classify() {
	most := 0
	for _, s := range p.schemas {
		most += len(s.Compiled(ir.Key{}).Nodes)
	}
	c := &classifier{p: p, at: make(map[*ir.Node]int32, most), nodes: make([]*ir.Node, 0, most), owner: make([]Side, 0, most)}
	p.classifier = c
	c.list()
	c.fixed, c.ends = make([]byte, 0, 32*len(c.nodes)), make([]int, 0, len(c.nodes))
	for _, n := range c.nodes {
		c.appendFixed(n)
		c.ends = append(c.ends, len(c.fixed))
	}
	c.form = make([]int32, len(c.nodes))
	count := c.assign()
	if c.cyclic {
		count = c.refine(count)
	}
	p.forms = make([]form, count)
	like := c.byForm(count)
	for i, n := range c.nodes {
		f := &p.forms[c.form[i]]
		// The first schema of a form represents it; the others add their
		// examples.
		if f.node == nil {
			c.fill(f, n, c.owner[i])
			f.like = like[c.form[i]]
		}
		f.like = append(f.like, n)
	}
	for _, s := range p.schemas {
		p.roots = append(p.roots, c.of(s.Compiled(ir.Key{}).Root))
	}
}

// byForm returns an empty list for each form, with room for its schemas.
func (c *classifier) byForm(count int) [][]*ir.Node {
	ends := make([]int, count)
	for _, f := range c.form {
		ends[f]++
	}
	all, lists := make([]*ir.Node, len(c.nodes)), make([][]*ir.Node, count)
	start := 0
	for f, size := range ends {
		lists[f] = all[start : start : start+size]
		start += size
	}
	return lists
}

// list lists the schemas of both sides, parts before wholes, and notes whether
// there is recursion. References are followed: forms are of what they lead to.
func (c *classifier) list() {
	side := SideA
	walk := ir.Walk{
		Next: func(n *ir.Node) []*ir.Node {
			all := n.Edges()
			for i := range all {
				all[i] = all[i].Target()
			}
			c.size += 1 + len(all)
			return all
		},
		Edge: func(_, _ *ir.Node, closes bool) { c.cyclic = c.cyclic || closes },
		Leave: func(n *ir.Node) {
			c.at[n] = int32(len(c.nodes))
			c.nodes = append(c.nodes, n)
			c.owner = append(c.owner, side)
		},
	}
	// Both schemas go into one list, so that equal parts of them meet.
	for i, s := range c.p.schemas {
		side = Side(i)
		walk.From(s.Compiled(ir.Key{}).Root.Target())
	}
}

// of returns the form of a schema, or -1 for an absent one.
func (c *classifier) of(n *ir.Node) int32 {
	if n == nil {
		return -1
	}
	return c.form[c.at[n.Target()]]
}

// assign gives nodes with equal keys the same form, reading the forms of the
// parts as they stand, and returns the number of forms.
func (c *classifier) assign() int {
	known := make(map[string]int32, len(c.nodes))
	// With recursion, all keys must be written from the forms of the last
	// round; without, parts come first and their forms are final.
	next := c.form
	if c.cyclic {
		next = make([]int32, len(c.nodes))
	}
	for i, n := range c.nodes {
		start := 0
		if i > 0 {
			start = c.ends[i-1]
		}
		c.key = append(c.key[:0], c.fixed[start:c.ends[i]]...)
		c.appendParts(n)
		id, ok := known[string(c.key)]
		if !ok {
			id = int32(len(known))
			known[string(c.key)] = id
		}
		next[i] = id
	}
	c.form = next
	return len(known)
}

// refine splits the forms until the parts of equal nodes are equal. A chain of
// definitions can take as many rounds as it is long. Where that would be too
// much, every node gets a form of its own, which is always right and only costs
// proofs.
func (c *classifier) refine(count int) int {
	// The number of rounds is bounded by the work that they take together.
	const most = 1 << 20
	for work := c.size; ; work += c.size {
		next := c.assign()
		switch {
		case next == count:
			return count
		case work > most:
			for i := range c.form {
				c.form[i] = int32(i)
			}
			return len(c.nodes)
		}
		count = next
	}
}

// appendFixed writes what a schema asserts apart from its parts: two schemas with
// equal keys, and parts of equal forms, accept the same values. The order of
// required and the spelling of numbers leave no trace.
func (c *classifier) appendFixed(n *ir.Node) {
	start := len(c.fixed)
	key := append(c.fixed, byte(n.Types), 0)
	for i, rule := range []*ir.EnumRule{n.Constant, n.Enum} {
		if rule == nil {
			continue
		}
		key[start+1] |= 1 << i
		for _, id := range c.p.literalSet(rule).ids {
			key = binary.AppendUvarint(key, uint64(id)+1)
		}
		key = append(key, 0)
	}
	if n.Num != nil {
		// Bounds are written by value: 1.0 and 1 are the same limit.
		for i, b := range []*ir.Bound{n.Num.Min, n.Num.Max, n.Num.Above, n.Num.Below} {
			if b != nil {
				key = append(b.Decimal.AppendKey(append(key, 'a'+byte(i))), 0)
			}
		}
	}
	// Patterns are compared by their translation, in which \d and [0-9] are the
	// same. Whoever writes a pattern chooses its characters, so that its length comes
	// first, and 0 where there is none: nothing else can then read the same.
	if s := n.Str; s != nil {
		key = append(key, 's')
		key = binary.AppendUvarint(key, uint64(s.Min))
		key = binary.AppendUvarint(key, uint64(s.Max))
		key = append(append(key, s.Format...), 0)
		if s.Pattern == nil {
			key = append(key, 0)
		} else {
			key = append(binary.AppendUvarint(key, uint64(len(s.Pattern.RE2))+1), s.Pattern.RE2...)
		}
	}
	if a := n.Arr; a != nil {
		key = append(key, 'i')
		key = binary.AppendUvarint(key, uint64(a.Min))
		key = binary.AppendUvarint(key, uint64(a.Max))
		if a.Unique {
			key = append(key, 'u')
		}
	}
	if o := n.Obj; o != nil {
		// The order in which names are required means nothing.
		required := make([]nameID, 0, len(o.Required))
		for _, name := range o.Required {
			required = append(required, c.p.name(name))
		}
		slices.Sort(required)
		key = append(key, 'o')
		for _, name := range required {
			key = binary.AppendUvarint(key, uint64(name)+1)
		}
		key = append(key, 0)
	}
	c.fixed = c.appendFullKey(key, n)
}

// appendParts writes the forms of a schema's parts. Branches are sorted; those of
// anyOf and allOf also count once, while a branch that oneOf has twice makes its
// values fail.
func (c *classifier) appendParts(n *ir.Node) {
	if n.Arr != nil {
		c.append('i', c.of(n.Arr.Items))
	}
	if n.Obj != nil {
		c.append('p', c.of(n.Obj.Additional))
		for _, p := range c.props(n) {
			c.append('p', int32(p.name))
			c.append('f', p.form)
		}
	}
	c.appendBranches('1', n.OneOf, false)
	c.appendBranches('?', n.AnyOf, true)
	c.appendBranches('&', n.AllOf, true)
	c.append('!', c.of(n.Not))
	c.appendFullParts(n)
}

// append writes a tagged form to the key.
func (c *classifier) append(tag byte, form int32) {
	c.key = append(c.key, tag)
	c.key = binary.AppendVarint(c.key, int64(form))
}

// appendBranches writes the forms of a combinator.
func (c *classifier) appendBranches(tag byte, comb *ir.Combinator, once bool) {
	if comb == nil {
		return
	}
	forms := c.branches(comb)
	slices.Sort(forms)
	// anyOf and allOf of a schema and itself is that schema.
	if once {
		forms = slices.Compact(forms)
	}
	c.append(tag, int32(len(forms)))
	for _, f := range forms {
		c.append(tag, f)
	}
}

// branches returns the forms of the branches, in the order of the source.
func (c *classifier) branches(comb *ir.Combinator) []int32 {
	if comb == nil {
		return nil
	}
	forms := make([]int32, 0, len(comb.Branches))
	for _, b := range comb.Branches {
		forms = append(forms, c.of(b))
	}
	return forms
}

// props returns the declared properties by name.
func (c *classifier) props(n *ir.Node) []formProperty {
	// Names that only required lists come after the declared ones and have no
	// schema.
	declared := n.Obj.Props[:n.Obj.Declared]
	props := make([]formProperty, 0, len(declared))
	for i := range declared {
		props = append(props, formProperty{c.p.name(declared[i].Name), c.of(declared[i].Node)})
	}
	slices.SortFunc(props, func(a, b formProperty) int { return int(a.name - b.name) })
	return props
}

// fill makes the form of which n is the first schema.
func (c *classifier) fill(f *form, n *ir.Node, side Side) {
	*f = form{
		node: n, side: side, schema: c.p.schemas[side],
		items: -1, additional: -1, not: c.of(n.Not),
		oneOf: c.branches(n.OneOf), anyOf: c.branches(n.AnyOf), allOf: c.branches(n.AllOf),
	}
	if n.Arr != nil {
		f.items = c.of(n.Arr.Items)
	}
	if n.Obj != nil {
		f.additional = c.of(n.Obj.Additional)
		f.props = c.props(n)
	}
	if n.Constant != nil {
		f.constant = c.p.literalSet(n.Constant)
	}
	if n.Enum != nil {
		f.enum = c.p.literalSet(n.Enum)
	}
	f.full = c.fullForm(n)
}

// standalone returns the validator of the form as a schema of its own.
func (f *form) standalone() *verdict.Validator {
	if f.alone == nil {
		limits := f.schema.Limits()
		f.alone = &verdict.Validator{
			Schema: f.schema.Compiled(ir.Key{}), Root: f.node,
			MaxDepth: limits.MaxDepth, MaxBytes: limits.MaxBytes, MaxSteps: limits.MaxSteps,
		}
	}
	return f.alone
}

// check judges a value by the form, with the production validator.
func (f *form) check(ctx context.Context, raw []byte) schema.Verdict {
	switch j := f.standalone().Judge(ctx, raw); {
	case j.Valid:
		return schema.Valid
	case j.Malformed != nil:
		return schema.Malformed
	case j.Exceeded:
		return schema.Exceeded
	}
	return schema.Invalid
}

// nameID numbers the property names that occur, in the order of the sources.
type nameID int32

// name returns the number of a property name, new or known.
func (p *prover) name(text string) nameID {
	id, ok := p.nameIDs[text]
	if !ok {
		id = nameID(len(p.names))
		p.names = append(p.names, text)
		if p.nameIDs == nil {
			p.nameIDs = map[string]nameID{}
		}
		p.nameIDs[text] = id
	}
	return id
}
