package compile

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/agentd/agentd/schema/internal/decimal"
	"github.com/agentd/agentd/schema/internal/ir"
	"github.com/agentd/agentd/schema/internal/jsonptr"
	"github.com/agentd/agentd/schema/internal/jsontree"
)

const fewLiterals = 8

// values compiles enum and const: draft-07 validation sections 6.1.2 and 6.1.3.
// An enum that is empty or repeats a value is legal there but not sensible; it
// is refused as the mistake it most likely is.
func (c *compiler) values(n *ir.Node, name string, v *jsontree.Tree, at string) {
	rule := &ir.EnumRule{IDs: map[uint32]struct{}{}}
	items := []*jsontree.Tree{v}
	if name == "enum" {
		switch {
		case v.Kind != jsontree.Array:
			c.fault(at, "enum must be an array, not "+describe(v.Kind), "")
			return
		case len(v.Items) == 0 && c.full == nil:
			c.fault(at, "enum must list at least one value", "write false to refuse every value")
			return
		}
		items = v.Items
		n.Enum = rule
	} else {
		n.Constant = rule
	}
	if len(items) > fewLiterals {
		rule.IDs = make(map[uint32]struct{}, len(items))
		rule.Values = make([]ir.Literal, 0, len(items))
	}
	for i, item := range items {
		// Only faults have a place: an enum may list a hundred thousand values.
		where := func() string {
			if name == "enum" {
				return jsonptr.Element(at, i)
			}
			return at
		}
		if !c.spend(stepsOfLiteral) {
			return
		}
		if !c.exact(item, where) {
			continue
		}
		l := c.literal(item)
		// Equal values have one number, so that 1 and 1.0 are found to repeat
		// each other.
		if _, twice := rule.IDs[l.ID]; twice {
			if c.full != nil {
				c.full.remark(where(), "enum lists the same value twice")
				continue
			}
			c.fault(where(), "enum lists the same value twice", "remove one of them")
			continue
		}
		rule.Add(l)
	}
	rule.Index()
}

// exact reports whether all numbers in a literal can be compared exactly. With
// exponents of up to 18 digits on the side of the schema, any payload can be
// compared with it in machine words. Two longer exponents could only be compared
// digit by digit, for the sake of numbers that nobody means.
func (c *compiler) exact(t *jsontree.Tree, at func() string) bool {
	all := inexact(t)
	for _, where := range all {
		c.fault(at()+where, "the exponent of this number has more than 18 digits", "")
	}
	return len(all) == 0
}

// inexact returns where a literal holds numbers that are not exact. The pointers
// are built on the way back, and only for faults: a literal of a megabyte may
// nest so deep that the pointers to all its parts would take hundreds.
func inexact(t *jsontree.Tree) (all []string) {
	if t.Kind == jsontree.Number && decimal.Parse(t.Raw).Huge != nil {
		return []string{""}
	}
	for i, item := range t.Items {
		for _, at := range inexact(item) {
			all = append(all, jsonptr.Element("", i)+at)
		}
	}
	for _, m := range t.Members {
		for _, at := range inexact(m.Value) {
			all = append(all, jsonptr.Child("", m.Name)+at)
		}
	}
	return all
}

// literal keeps a value of const or enum, under its number among the literals
// of the schema: equal values share one.
func (c *compiler) literal(t *jsontree.Tree) ir.Literal {
	id, _, _ := c.ident.Identify(t.Raw, 0)
	return ir.Literal{Raw: compact(t.Raw), Kind: t.Kind, ID: id, Text: t.Text}
}

// compact removes white space from a checked JSON text. Most texts have none, and stay
// a part of the source: a buffer for each value of a long enum would take many times
// its room.
func compact(raw []byte) []byte {
	if !bytes.ContainsAny(raw, " \t\r\n") {
		return raw
	}
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return slices.Clone(raw) // deeper than encoding/json goes
	}
	return b.Bytes()
}
