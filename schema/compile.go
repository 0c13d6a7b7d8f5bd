package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/internal/truncate"
)

// maxSource is the size of the largest schema, in bytes. Peers publish schemas,
// and a compiled one takes many times the room of its source.
const maxSource = 8 << 20

// compiler turns a parsed schema into nodes and collects every fault.
//
// It works in three rounds. The first walks the source once, checks the form
// of every keyword and makes a node of every schema. The second finds the
// target of each $ref, which may stand anywhere, and refuses loops. Only a
// schema without faults reaches the third, which fills in what the passes
// over payloads read: targets, dispatch, and whether a memo is needed.
type compiler struct {
	faults   []compileFault
	nodes    []*node    // every schema, in the order of the source
	literals interner   // the values of const and enum
	ident    identifier // numbers the literals
	refs     []pendingRef
	patterns patternBudget
}

// pendingRef is a $ref whose target may not be compiled yet.
type pendingRef struct {
	node    *node
	text    string // the reference as written
	pointer string // where it stands
}

// compileFault is one reason to refuse a schema.
type compileFault struct {
	Pointer string // where it stands, as an RFC 6901 pointer into the schema
	Message string // what is wrong
	Hint    string // what to do about it; may be empty
}

// compileSource compiles a schema, given as JSON, or returns all its faults. src is
// not kept.
func compileSource(src []byte) (*compiledSchema, []compileFault) {
	t, err := parseTree(src)
	if err != nil {
		var syntax *ijson.SyntaxError
		hint := ""
		if errors.As(err, &syntax) {
			hint = position(src, syntax.Offset)
		}
		return nil, []compileFault{{Message: err.Error(), Hint: hint}}
	}
	if len(src) > maxSource {
		hint := "split it; a contract is not a database"
		return nil, []compileFault{{Message: "the schema is larger than 8 MiB", Hint: hint}}
	}
	c := &compiler{patterns: newPatternBudget()}
	// All literals of the schema share one table, which the validator later
	// only reads.
	c.ident.table = &c.literals
	if t.kind != kindObject {
		// A capability whose contract is true or false says nothing; more
		// likely a file was cut short.
		c.fault("", "the root of a schema must be an object", "write {} to accept every value")
		return nil, c.faults
	}
	root := c.schema(t, "")
	c.resolve(root)
	if len(c.faults) == 0 {
		c.refuseLoops()
	}
	if len(c.faults) == 0 {
		c.refuseNesting()
	}
	if len(c.faults) > 0 {
		return nil, c.faults
	}
	// The schema is sound from here on: the following rounds cannot fail.
	c.link()
	share(root, c.nodes)
	return &compiledSchema{
		root: root, nodes: c.nodes, source: slices.Clone(src), literals: c.literals, memoise: needsMemo(c.nodes),
	}, nil
}

// position names the line and column of an offset, both counted from 1, in bytes.
func position(src []byte, offset int) string {
	before := src[:min(offset, len(src))]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return fmt.Sprintf("line %d, column %d", line, column)
}

// fault records a reason to refuse the schema; compiling goes on, so that every
// fault shows at once.
func (c *compiler) fault(pointer, message, hint string) {
	c.faults = append(c.faults, compileFault{pointer, message, hint})
}

// schema compiles one schema, which may be a boolean. It recurses with the
// source, whose depth parseTree has bounded. A schema in which there is a fault
// still gets a node, so that the rest can be checked as well.
func (c *compiler) schema(t *tree, pointer string) *node {
	// Keys of the memo have room for so many nodes.
	if len(c.nodes) == maxNodes {
		c.fault(pointer, "the schema is too large", "")
		return c.nodes[0]
	}
	n := &node{id: uint32(firstID + len(c.nodes)), pointer: pointer, types: anyType}
	c.nodes = append(c.nodes, n)
	switch {
	case t.kind == kindBoolean:
		// true is the empty node, which accepts everything.
		n.boolean = true
		if t.raw[0] == 'f' {
			n.never, n.types = true, 0 // no value has a type in the empty set
		}
	case t.kind != kindObject:
		c.fault(pointer, "a schema must be an object or a boolean, not "+describe(t.kind), "")
	case t.get("$ref") != nil:
		c.reference(n, t, pointer)
	default:
		for _, m := range t.members {
			c.keyword(n, m.name, m.value, child(pointer, m.name))
		}
	}
	c.finish(n)
	return n
}

// reference compiles a schema that holds $ref. Draft-07 ignores what stands
// beside $ref (core section 8.3), and authors expect the opposite, as later
// drafts have it. Whatever would assert something there is refused; annotations
// are kept, since both readings of them agree.
func (c *compiler) reference(n *node, t *tree, pointer string) {
	for _, m := range t.members {
		at := child(pointer, m.name)
		switch m.name {
		case "$ref":
			if text, ok := c.text(m.value, at); ok {
				c.refs = append(c.refs, pendingRef{n, text, at})
			}
		case "title", "description", "default", "examples":
			c.keyword(n, m.name, m.value, at)
		case "definitions", "$schema":
			if pointer == "" {
				c.keyword(n, m.name, m.value, at)
				continue
			}
			fallthrough
		default:
			c.fault(at, "draft-07 ignores "+m.name+" beside $ref",
				`write {"allOf": [{"$ref": …}, {"`+m.name+`": …}]}`)
		}
	}
}

// keyword compiles one keyword of a schema object. Keywords are independent of
// their order; what depends on several of them is left to finish.
func (c *compiler) keyword(n *node, name string, v *tree, at string) {
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
func (c *compiler) types(n *node, v *tree, at string) {
	list := v.items
	switch {
	case v.kind == kindString:
		list = []*tree{v}
	case v.kind != kindArray:
		c.fault(at, "type must be a string or an array of strings, not "+describe(v.kind), "")
		return
	case len(list) == 0:
		c.fault(at, "type must not be an empty array", "leave type out to accept every type")
		return
	}
	n.types = 0
	for i, item := range list {
		where := at
		if v.kind == kindArray {
			where = element(at, i)
		}
		name, ok := c.text(item, where)
		if !ok {
			continue
		}
		bit := typeBit(name)
		switch {
		case bit == 0:
			c.fault(where, "unknown type "+quote(name), suggest(name, typeNames()))
		case slices.Contains(n.typeList, name):
			c.fault(where, "type "+quote(name)+" is listed twice", "")
		default:
			n.types |= bit
			n.typeList = append(n.typeList, name)
		}
	}
}

// values compiles enum and const: draft-07 validation sections 6.1.2 and 6.1.3.
// An enum that is empty or repeats a value is legal there but not sensible; it
// is refused as the mistake it most likely is.
func (c *compiler) values(n *node, name string, v *tree, at string) {
	rule := &enumRule{ids: map[uint32]struct{}{}}
	items := []*tree{v}
	if name == "enum" {
		switch {
		case v.kind != kindArray:
			c.fault(at, "enum must be an array, not "+describe(v.kind), "")
			return
		case len(v.items) == 0:
			c.fault(at, "enum must list at least one value", "write false to refuse every value")
			return
		}
		items = v.items
		n.enum = rule
	} else {
		n.constant = rule
	}
	for i, item := range items {
		where := at
		if name == "enum" {
			where = element(at, i)
		}
		if !c.exact(item, where) {
			continue
		}
		l := c.literal(item)
		// Equal values have one number, so that 1 and 1.0 are found to repeat
		// each other.
		if _, twice := rule.ids[l.id]; twice {
			c.fault(where, "enum lists the same value twice", "remove one of them")
			continue
		}
		rule.add(l)
	}
	rule.index()
}

// exact reports whether all numbers in a literal can be compared exactly. With
// exponents of up to 18 digits on the side of the schema, any payload can be
// compared with it in machine words. Two longer exponents could only be compared
// digit by digit, for the sake of numbers that nobody means.
func (c *compiler) exact(t *tree, at string) bool {
	all := inexact(t)
	for _, where := range all {
		c.fault(at+where, "the exponent of this number has more than 18 digits", "")
	}
	return len(all) == 0
}

// inexact returns where a literal holds numbers that are not exact. The pointers
// are built on the way back, and only for faults: a literal of a megabyte may
// nest so deep that the pointers to all its parts would take hundreds.
func inexact(t *tree) (all []string) {
	if t.kind == kindNumber && parseDecimal(t.raw).huge != nil {
		return []string{""}
	}
	for i, item := range t.items {
		for _, at := range inexact(item) {
			all = append(all, element("", i)+at)
		}
	}
	for _, m := range t.members {
		for _, at := range inexact(m.value) {
			all = append(all, child("", m.name)+at)
		}
	}
	return all
}

// literal keeps a value of const or enum, under its number among the literals
// of the schema: equal values share one.
func (c *compiler) literal(t *tree) literal {
	id, _, _ := c.ident.identify(t.raw, 0)
	return literal{raw: compact(t.raw), kind: t.kind, id: id, text: t.text}
}

// add takes in one more value that may match.
func (r *enumRule) add(l literal) {
	r.values = append(r.values, l)
	r.kinds |= typeOf(l.kind)
	r.ids[l.id] = struct{}{}
}

// index prepares the look-up of strings: a map for many of them, and a list for up
// to eight, which is faster to compare than to hash.
func (r *enumRule) index() {
	count := 0
	for _, l := range r.values {
		if l.kind == kindString {
			count++
		}
	}
	if count > 8 {
		r.strings = make(map[string]struct{}, count)
	}
	for _, l := range r.values {
		switch {
		case l.kind != kindString:
		case r.strings != nil:
			r.strings[l.text] = struct{}{}
		default:
			r.small = append(r.small, l.text)
		}
	}
}

// combinator compiles oneOf, anyOf, allOf or not, whose branches are schemas for
// the same value.
func (c *compiler) combinator(n *node, name string, v *tree, at string) {
	switch name {
	case "oneOf":
		n.oneOf = c.branches(v, at)
	case "anyOf":
		n.anyOf = c.branches(v, at)
	case "allOf":
		n.allOf = c.branches(v, at)
	case "not":
		n.not = c.schema(v, at)
	}
}

// branches compiles the array of schemas of a combinator, of which there must
// be one at least (draft-07 validation section 6.7).
func (c *compiler) branches(v *tree, at string) *combinator {
	switch {
	case v.kind != kindArray:
		c.fault(at, "must be an array of schemas, not "+describe(v.kind), "")
		return nil
	case len(v.items) == 0:
		c.fault(at, "must hold at least one schema", "")
		return nil
	}
	comb := &combinator{}
	for i, item := range v.items {
		comb.branches = append(comb.branches, c.schema(item, element(at, i)))
	}
	return comb
}

// annotation compiles a keyword that asserts nothing. Its form is checked all
// the same: a title that is no string is a mistake worth knowing of.
func (c *compiler) annotation(n *node, name string, v *tree, at string) {
	switch name {
	case "title":
		n.notes.title, _ = c.text(v, at)
	case "description":
		n.notes.description, _ = c.text(v, at)
	case "default":
		n.notes.fallback = compact(v.raw)
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
func (c *compiler) examples(n *node, v *tree, at string) {
	if v.kind != kindArray {
		c.fault(at, "examples must be an array, not "+describe(v.kind), "")
		return
	}
	n.notes.examples = [][]byte{}
	for _, item := range v.items {
		n.notes.examples = append(n.notes.examples, compact(item.raw))
	}
}

// definitions compiles definitions wherever they stand, so that their faults
// show, although $ref reaches only those at the root. A mistake in a schema that
// nothing uses yet is still a mistake.
func (c *compiler) definitions(n *node, v *tree, at string) {
	if v.kind != kindObject {
		c.fault(at, "definitions must be an object, not "+describe(v.kind), "")
		return
	}
	for _, m := range v.members {
		def := definition{m.name, c.schema(m.value, child(at, m.name))}
		n.notes.definitions = append(n.notes.definitions, def)
	}
}

// dialect accepts $schema if it names draft-07, at the root, with or without the
// empty fragment. Under another draft the same keywords could mean other things.
func (c *compiler) dialect(v *tree, at string) {
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
func (c *compiler) text(v *tree, at string) (string, bool) {
	if v.kind != kindString {
		c.fault(at, "must be a string, not "+describe(v.kind), "")
		return "", false
	}
	return v.text, true
}

// compact removes white space from a checked JSON text.
func compact(raw []byte) []byte {
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return slices.Clone(raw) // deeper than encoding/json goes
	}
	return b.Bytes()
}

// quote shows a name in a message: in quotes, with control characters escaped and
// cut to a readable length.
func quote(s string) string {
	const most = 64
	if len(s) > most {
		s = truncate.String(s, most)
	}
	return strconv.Quote(s)
}

// describe names a kind with its article.
func describe(k kind) string {
	switch k {
	case kindNull:
		return "null"
	case kindArray, kindObject:
		return "an " + k.String()
	default:
		return "a " + k.String()
	}
}
