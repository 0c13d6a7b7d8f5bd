package schema

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// form is a class of schemas that accept the same values because they are
// written the same way, whatever their place, order and annotations. The
// prover reasons about forms, so that a part that two schemas share is one and
// the same: two versions of a contract differ in few places, and everything
// else is contained in itself without proof.
type form struct {
	node   *node
	schema *Schema // to which node belongs
	side   Side
	alone  *validator // of node as a schema of its own; made when first needed

	// The parts, as forms; -1 where absent.
	items, additional, not int32
	props                  []formProperty
	oneOf, anyOf, allOf    []int32
	constant, enum         *literalSet

	like []*node // all schemas of this form, for their examples

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
	nodes  []*node // those reachable, parts before wholes
	owner  []Side
	at     map[*node]int32
	open   map[*node]bool
	cyclic bool
	fixed  [][]byte // what a node's key holds beside the forms of its parts
	form   []int32  // by node
	key    []byte
}

// classify fills the prover's forms and those of the roots.
func (p *prover) classify() {
	c := &classifier{p: p, at: map[*node]int32{}, open: map[*node]bool{}}
	p.classifier = c
	// Both schemas go into one list, so that equal parts of them meet.
	for side, s := range p.schemas {
		c.visit(s.Compiled(formKey{}).root, Side(side))
	}
	for _, n := range c.nodes {
		c.fixed = append(c.fixed, c.fixedKey(n))
	}
	c.form = make([]int32, len(c.nodes))
	count := c.assign()
	if c.cyclic {
		count = c.refine(count)
	}
	p.forms = make([]form, count)
	for i, n := range c.nodes {
		f := &p.forms[c.form[i]]
		// The first schema of a form represents it; the others add their
		// examples.
		if f.node == nil {
			c.fill(f, n, c.owner[i])
		}
		f.like = append(f.like, n)
	}
	for _, s := range p.schemas {
		p.roots = append(p.roots, c.of(s.Compiled(formKey{}).root))
	}
}

// visit lists n and everything below it, parts before wholes, and notes whether
// there is recursion.
func (c *classifier) visit(n *node, side Side) {
	n = n.target()
	if _, done := c.at[n]; done {
		return
	}
	// n is being visited further up: the schema refers to itself.
	if c.open[n] {
		c.cyclic = true
		return
	}
	c.open[n] = true
	for _, next := range n.here() {
		c.visit(next, side)
	}
	for _, next := range n.below() {
		c.visit(next, side)
	}
	c.at[n] = int32(len(c.nodes))
	c.nodes = append(c.nodes, n)
	c.owner = append(c.owner, side)
}

// of returns the form of a schema, or -1 for an absent one.
func (c *classifier) of(n *node) int32 {
	if n == nil {
		return -1
	}
	return c.form[c.at[n.target()]]
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
		c.key = append(c.key[:0], c.fixed[i]...)
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
	for work := len(c.nodes); ; work += len(c.nodes) {
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

// fixedKey writes what a schema asserts apart from its parts: two schemas with
// equal keys, and parts of equal forms, accept the same values. The order of
// required and the spelling of numbers leave no trace.
func (c *classifier) fixedKey(n *node) []byte {
	key := []byte{byte(n.types), 0}
	for i, rule := range []*enumRule{n.constant, n.enum} {
		if rule == nil {
			continue
		}
		key[1] |= 1 << i
		for _, id := range c.p.literalSet(rule).ids {
			key = binary.AppendUvarint(key, uint64(id)+1)
		}
		key = append(key, 0)
	}
	if n.num != nil {
		// Bounds are written by value: 1.0 and 1 are the same limit.
		for i, b := range []*bound{n.num.min, n.num.max, n.num.above, n.num.below} {
			if b != nil {
				key = append(b.decimal.appendKey(append(key, 'a'+byte(i))), 0)
			}
		}
	}
	// Patterns are compared by their translation, in which \d and [0-9] are the
	// same.
	if s := n.str; s != nil {
		key = append(key, 's')
		key = binary.AppendUvarint(key, uint64(s.min))
		key = binary.AppendUvarint(key, uint64(s.max))
		key = append(append(key, s.format...), 0)
		if s.pattern != nil {
			key = binary.AppendUvarint(key, uint64(len(s.pattern.re2)))
			key = append(key, s.pattern.re2...)
		}
	}
	if a := n.arr; a != nil {
		key = append(key, 'i')
		key = binary.AppendUvarint(key, uint64(a.min))
		key = binary.AppendUvarint(key, uint64(a.max))
		if a.unique {
			key = append(key, 'u')
		}
	}
	if o := n.obj; o != nil {
		// The order in which names are required means nothing.
		required := make([]nameID, 0, len(o.required))
		for _, name := range o.required {
			required = append(required, c.p.name(name))
		}
		slices.Sort(required)
		key = append(key, 'o')
		for _, name := range required {
			key = binary.AppendUvarint(key, uint64(name)+1)
		}
		key = append(key, 0)
	}
	return key
}

// appendParts writes the forms of a schema's parts. Branches are sorted; those of
// anyOf and allOf also count once, while a branch that oneOf has twice makes its
// values fail.
func (c *classifier) appendParts(n *node) {
	if n.arr != nil {
		c.append('i', c.of(n.arr.items))
	}
	if n.obj != nil {
		c.append('p', c.of(n.obj.additional))
		for _, p := range c.props(n) {
			c.append('p', int32(p.name))
			c.append('f', p.form)
		}
	}
	c.appendBranches('1', n.oneOf, false)
	c.appendBranches('?', n.anyOf, true)
	c.appendBranches('&', n.allOf, true)
	c.append('!', c.of(n.not))
}

// append writes a tagged form to the key.
func (c *classifier) append(tag byte, form int32) {
	c.key = append(c.key, tag)
	c.key = binary.AppendVarint(c.key, int64(form))
}

// appendBranches writes the forms of a combinator.
func (c *classifier) appendBranches(tag byte, comb *combinator, once bool) {
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
func (c *classifier) branches(comb *combinator) []int32 {
	if comb == nil {
		return nil
	}
	forms := make([]int32, 0, len(comb.branches))
	for _, b := range comb.branches {
		forms = append(forms, c.of(b))
	}
	return forms
}

// props returns the declared properties by name.
func (c *classifier) props(n *node) []formProperty {
	// Names that only required lists come after the declared ones and have no
	// schema.
	declared := n.obj.props[:n.obj.declared]
	props := make([]formProperty, 0, len(declared))
	for i := range declared {
		props = append(props, formProperty{c.p.name(declared[i].name), c.of(declared[i].node)})
	}
	slices.SortFunc(props, func(a, b formProperty) int { return int(a.name - b.name) })
	return props
}

// fill makes the form of which n is the first schema.
func (c *classifier) fill(f *form, n *node, side Side) {
	*f = form{
		node: n, side: side, schema: c.p.schemas[side],
		items: -1, additional: -1, not: c.of(n.not),
		oneOf: c.branches(n.oneOf), anyOf: c.branches(n.anyOf), allOf: c.branches(n.allOf),
	}
	if n.arr != nil {
		f.items = c.of(n.arr.items)
	}
	if n.obj != nil {
		f.additional = c.of(n.obj.additional)
		f.props = c.props(n)
	}
	if n.constant != nil {
		f.constant = c.p.literalSet(n.constant)
	}
	if n.enum != nil {
		f.enum = c.p.literalSet(n.enum)
	}
}

// standalone returns the validator of the form as a schema of its own.
func (f *form) standalone() *validator {
	if f.alone == nil {
		limits := f.schema.Limits()
		f.alone = &validator{
			schema: f.schema.Compiled(formKey{}), root: f.node,
			maxDepth: limits.MaxDepth, maxBytes: limits.MaxBytes,
		}
	}
	return f.alone
}

// valid reports whether a value passes the form, by the production validator.
func (f *form) valid(raw []byte) bool { return f.standalone().valid(raw) }

// check is valid with the full verdict: a value that exceeds the limits of the
// validator is malformed, which shows nothing about the schema.
func (f *form) check(raw []byte) Verdict {
	valid, malformed := f.standalone().judge(raw)
	switch {
	case valid:
		return Valid
	case malformed != nil:
		return Malformed
	}
	return Invalid
}

// nameID numbers the property names that occur, in the order of the sources.
type nameID int32

// name returns the number of a property name, new or known.
func (p *prover) name(text string) nameID {
	id, ok := p.nameIDs[text]
	if !ok {
		id = nameID(len(p.names))
		p.names = append(p.names, text)
		p.nameIDs[text] = id
	}
	return id
}

// literalSet is a set of JSON values, by number: equal values have one number,
// however they are written.
type literalSet struct {
	ids   []uint32            // ascending, as numbered by the prover
	sorts sorts               // those that occur
	big   map[uint32]struct{} // the same ids, if there are more than eight
}

func (s *literalSet) has(id uint32) bool {
	if s.big != nil {
		_, ok := s.big[id]
		return ok
	}
	return slices.Contains(s.ids, id)
}

// literalSet returns the values of const or enum.
func (p *prover) literalSet(rule *enumRule) *literalSet {
	if set := p.ruleSets[rule]; set != nil {
		return set
	}
	ids := make([]uint32, 0, len(rule.values))
	for _, l := range rule.values {
		if !p.spend(1 + len(l.raw)/64) {
			break // the set is cut short, and contained answers nothing after that
		}
		ids = append(ids, p.identify(l.raw))
	}
	set := p.newLiteralSet(ids)
	p.ruleSets[rule] = set
	return set
}

// newLiteralSet makes a set of numbered values; it takes over ids.
func (p *prover) newLiteralSet(ids []uint32) *literalSet {
	slices.Sort(ids)
	set := &literalSet{ids: slices.Compact(ids)}
	for _, id := range set.ids {
		set.sorts |= sortOf(p.values[id])
	}
	// Few values are compared faster than hashed.
	if len(set.ids) > 8 {
		set.big = make(map[uint32]struct{}, len(set.ids))
		for _, id := range set.ids {
			set.big[id] = struct{}{}
		}
	}
	return set
}

// identify numbers a JSON value, so that equal values have equal numbers, and
// remembers it.
func (p *prover) identify(raw []byte) uint32 {
	// identify cannot fail: the table is not frozen, and raw has been checked.
	id, _, _ := p.ident.identify(raw, 0)
	if _, known := p.values[id]; !known {
		t, _ := buildTree(raw, 0)
		p.values[id] = t
	}
	return id
}

// sorts is a set of the kinds of value that the prover distinguishes. Integers
// and fractions are two of them, since the keyword type separates them and the
// searches for one and the other have little in common.
type sorts uint8

const (
	sortString sorts = 1 << iota
	sortInteger
	sortObject
	sortArray
	sortBoolean
	sortFraction // a number that is no integer
	sortNull

	sortNumber = sortInteger | sortFraction
	allSorts   = 1<<7 - 1
)

// sortsOf converts the keyword type.
func sortsOf(t typeSet) sorts {
	var s sorts
	for _, pair := range [...]struct {
		types typeSet
		sorts sorts
	}{
		{typeNull, sortNull}, {typeBoolean, sortBoolean}, {typeNumber, sortNumber}, {typeInteger, sortInteger},
		{typeString, sortString}, {typeArray, sortArray}, {typeObject, sortObject},
	} {
		if t&pair.types != 0 {
			s |= pair.sorts
		}
	}
	return s
}

// sortOf returns the sort of a value. 1.0 is an integer.
func sortOf(t *tree) sorts {
	if t.kind != kindNumber {
		return sortsOf(typeOf(t.kind))
	}
	if parseDecimal(bytes.TrimSpace(t.raw)).isInteger() {
		return sortInteger
	}
	return sortFraction
}
