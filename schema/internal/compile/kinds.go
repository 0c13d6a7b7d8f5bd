package compile

import (
	"slices"
	"strings"

	"github.com/agentd/agentd/internal/truncate"
	"github.com/agentd/agentd/schema/internal/decimal"
	"github.com/agentd/agentd/schema/internal/format"
	"github.com/agentd/agentd/schema/internal/ir"
	"github.com/agentd/agentd/schema/internal/jsonptr"
	"github.com/agentd/agentd/schema/internal/jsontree"
	"github.com/agentd/agentd/schema/internal/pattern"
)

// stringKeyword compiles the assertions on strings: draft-07 validation
// sections 6.3 and 7. Each asserts nothing about values of other kinds, so
// that "minLength" alone accepts every number.
func (c *compiler) stringKeyword(n *ir.Node, name string, v *jsontree.Tree, at string) {
	if n.Str == nil {
		n.Str = &ir.StringRule{Max: ir.Unbounded}
	}
	switch name {
	case "minLength":
		n.Str.Min = c.count(v, at, name)
	case "maxLength":
		n.Str.Max = c.count(v, at, name)
	case "pattern":
		source, ok := c.text(v, at)
		if !ok {
			return
		}
		p, err := pattern.Compile(source, &c.patterns)
		if err != nil {
			c.fault(at, err.Message, err.Hint)
			return
		}
		n.Str.Pattern = p
	case "format":
		name, ok := c.text(v, at)
		if !ok {
			return
		}
		n.Notes.Format = name
		if c.full != nil {
			c.full.format(n.Str, name)
			return
		}
		if n.Str.Format = format.Name(name); !slices.Contains(format.Names(), name) {
			c.fault(at, "unknown format "+truncate.Quote(name), c.suggest(name, format.Names()))
		}
	}
}

// numberKeyword compiles the bounds of numbers: draft-07 validation sections
// 6.2.2 to 6.2.5. The bounds are independent of one another; all must hold.
func (c *compiler) numberKeyword(n *ir.Node, name string, v *jsontree.Tree, at string) {
	if n.Num == nil {
		n.Num = &ir.NumberRule{}
	}
	b := c.bound(v, at, name)
	switch name {
	case "minimum":
		n.Num.Min = b
	case "maximum":
		n.Num.Max = b
	case "exclusiveMinimum":
		n.Num.Above = b
	case "exclusiveMaximum":
		n.Num.Below = b
	}
}

// bound reads a numeric limit. Its text is kept for messages, and its value as
// a small integer where it is one, because most are.
func (c *compiler) bound(v *jsontree.Tree, at, name string) *ir.Bound {
	if v.Kind != jsontree.Number {
		hint := ""
		if v.Kind == jsontree.Boolean && strings.HasPrefix(name, "exclusive") {
			hint = "since draft-06 it holds the bound itself, in place of minimum or maximum"
		}
		c.fault(at, name+" must be a number, not "+describe(v.Kind), hint)
		return nil
	}
	if !c.exact(v, func() string { return at }) {
		return nil
	}
	raw := slices.Clone(v.Raw)
	b := &ir.Bound{Raw: string(raw), Decimal: decimal.Parse(raw)}
	if !strings.ContainsAny(b.Raw, ".eE") {
		b.Small, b.IsSmall = decimal.SmallInt(raw)
	}
	return b
}

// count reads a length: an integer that is not negative, however written. The
// draft allows 2.0 and 2e0 where it asks for an integer.
func (c *compiler) count(v *jsontree.Tree, at, name string) int {
	if v.Kind != jsontree.Number {
		c.fault(at, name+" must be a number, not "+describe(v.Kind), "")
		return 0
	}
	d := decimal.Parse(v.Raw)
	if !d.IsInteger() || d.Neg {
		c.fault(at, name+" must be an integer from 0 up", "")
		return 0
	}
	// 10^18 code points are more than any payload holds.
	if d.Exp > 18 {
		return ir.Unbounded // no text is that long
	}
	value, digits := 0, 0
	for _, ch := range d.Digits {
		if ch != '.' {
			value, digits = value*10+int(ch-'0'), digits+1
		}
	}
	for ; digits < int(d.Exp); digits++ { // zeros that the exponent stands for
		value *= 10
	}
	return value
}

// arrayKeyword compiles the assertions on arrays: draft-07 validation sections
// 6.4.1 and 6.4.3 to 6.4.5.
func (c *compiler) arrayKeyword(n *ir.Node, name string, v *jsontree.Tree, at string) {
	if n.Arr == nil {
		n.Arr = &ir.ArrayRule{Max: ir.Unbounded}
	}
	switch name {
	case "items":
		// The tuple form is the one place where draft-07 gives a keyword two
		// meanings, and later drafts have renamed it.
		if v.Kind == jsontree.Array {
			c.fault(at, "items as an array (tuple form) is not supported",
				"write one schema for all elements, or an object with a property for each")
			return
		}
		n.Arr.Items = c.schema(v, at)
	case "minItems":
		n.Arr.Min = c.count(v, at, name)
	case "maxItems":
		n.Arr.Max = c.count(v, at, name)
	case "uniqueItems":
		if v.Kind != jsontree.Boolean {
			c.fault(at, "uniqueItems must be a boolean, not "+describe(v.Kind), "")
			return
		}
		n.Arr.Unique = v.Raw[0] == 't'
	}
}

// objectKeyword compiles the assertions on objects: draft-07 validation
// sections 6.5.3, 6.5.4 and 6.5.6.
func (c *compiler) objectKeyword(n *ir.Node, name string, v *jsontree.Tree, at string) {
	if n.Obj == nil {
		n.Obj = &ir.ObjectRule{}
	}
	switch name {
	case "properties":
		if v.Kind != jsontree.Object {
			c.fault(at, "properties must be an object, not "+describe(v.Kind), "")
			return
		}
		for _, m := range v.Members {
			if c.exceeded != nil {
				return
			}
			p := ir.Property{Name: m.Name, Node: c.schema(m.Value, jsonptr.Child(at, m.Name))}
			n.Obj.Props = append(n.Obj.Props, p)
		}
		n.Obj.Declared = len(n.Obj.Props)
	case "required":
		c.required(n.Obj, v, at)
	case "additionalProperties":
		n.Obj.Additional = c.schema(v, at)
	}
}

// required compiles the names that must occur. Draft-04 allowed true beside the
// property itself, which is common enough to deserve a hint.
func (c *compiler) required(obj *ir.ObjectRule, v *jsontree.Tree, at string) {
	if v.Kind != jsontree.Array {
		hint := ""
		if v.Kind == jsontree.Boolean {
			hint = "list the names on the object that holds the property"
		}
		c.fault(at, "required must be an array of names, not "+describe(v.Kind), hint)
		return
	}
	listed := map[string]bool{}
	for i, item := range v.Items {
		if !c.spendAt(at, 0) {
			return
		}
		name, ok := c.text(item, jsonptr.Element(at, i))
		if ok && listed[name] {
			if c.full != nil {
				c.full.remark(jsonptr.Element(at, i), "required lists "+truncate.Quote(name)+" twice")
				continue
			}
			c.fault(jsonptr.Element(at, i), "required lists "+truncate.Quote(name)+" twice", "")
			continue
		}
		if ok {
			listed[name] = true
			obj.Required = append(obj.Required, name)
		}
	}
}

// finish computes what depends on several keywords of a schema, once all of them
// have been read: their order must not matter.
func (c *compiler) finish(n *ir.Node) {
	if n.Obj != nil {
		nameDependents(n.Obj)
		finishObject(n.Obj)
	}
	if n.Num != nil {
		finishNumber(n.Num)
	}
	if n.Types&ir.TypeNumber != 0 {
		n.Types &^= ir.TypeInteger // every integer is a number
	}
	// The validator skips nodes that accept anything, and goes straight to the
	// combinators of nodes that have nothing else.
	own := assertsItself(n)
	n.Combines = n.OneOf != nil || n.AnyOf != nil || n.AllOf != nil || n.Not != nil || n.Beyond != nil
	n.Pure = n.Combines && !own
	n.Any = !own && !n.Combines
}

// assertsItself reports whether any keyword but the combinators can fail.
func assertsItself(n *ir.Node) bool {
	return n.Types != ir.AnyType || n.Constant != nil || n.Enum != nil ||
		n.Str != nil || n.Num != nil || n.Arr != nil || n.Obj != nil
}

// finishObject merges required into the properties: a required name that is not
// declared becomes a property without a schema of its own. One look-up for each
// member then answers both questions. The mask holds the required ones among the
// first 64 properties, which are checked with one comparison at the end.
func finishObject(o *ir.ObjectRule) {
	at := make(map[string]int, len(o.Props))
	for i := range o.Props {
		at[o.Props[i].Name] = i
	}
	for _, name := range o.Required {
		i, ok := at[name]
		if !ok {
			i = len(o.Props)
			o.Props = append(o.Props, ir.Property{Name: name})
		}
		o.Props[i].Required = true
		if i < 64 {
			o.Mask |= 1 << i
		}
	}
	for i := range o.Props {
		o.Props[i].Spelled = spelled(o.Props[i].Name)
	}
	o.Index.Build(o.Props)
}

// spelled is a name as most encoders write it, with quotes and colon, or "" where
// JSON needs escapes. The validator compares it with the payload's bytes before
// it looks anything up.
func spelled(name string) string {
	for i := range len(name) {
		// These are the characters that RFC 8259 section 7 says must be
		// escaped.
		if c := name[i]; c < ' ' || c == '"' || c == '\\' {
			return ""
		}
	}
	return `"` + name + `":`
}

// finishNumber finds the range of integers that pass, if all bounds are small
// integers. An exclusive bound then is an inclusive one moved by one.
func finishNumber(r *ir.NumberRule) {
	const most = 1<<63 - 1
	r.Low, r.High, r.Fast = -most-1, most, true
	for _, b := range []*ir.Bound{r.Min, r.Max, r.Above, r.Below} {
		if b != nil && !b.IsSmall || r.Multiple != nil {
			r.Fast = false
			return
		}
	}
	// Small values have at most 18 digits, so that one more or less fits.
	if r.Min != nil {
		r.Low = r.Min.Small
	}
	if r.Above != nil {
		r.Low = max(r.Low, r.Above.Small+1)
	}
	if r.Max != nil {
		r.High = r.Max.Small
	}
	if r.Below != nil {
		r.High = min(r.High, r.Below.Small-1)
	}
}
