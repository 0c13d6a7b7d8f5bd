package schema

import (
	"slices"
	"strings"
)

// stringKeyword compiles the assertions on strings: draft-07 validation
// sections 6.3 and 7. Each asserts nothing about values of other kinds, so
// that "minLength" alone accepts every number.
func (c *compiler) stringKeyword(n *node, name string, v *tree, at string) {
	if n.str == nil {
		n.str = &stringRule{max: unbounded}
	}
	switch name {
	case "minLength":
		n.str.min = c.count(v, at, name)
	case "maxLength":
		n.str.max = c.count(v, at, name)
	case "pattern":
		source, ok := c.text(v, at)
		if !ok {
			return
		}
		p, err := compilePattern(source, &c.patterns)
		if err != nil {
			c.fault(at, err.message, err.hint)
			return
		}
		n.str.pattern = p
	case "format":
		name, ok := c.text(v, at)
		if !ok {
			return
		}
		if n.str.format = formatName(name); !slices.Contains(formatNames(), name) {
			c.fault(at, "unknown format "+quote(name), suggest(name, formatNames()))
		}
	}
}

// numberKeyword compiles the bounds of numbers: draft-07 validation sections
// 6.2.2 to 6.2.5. The bounds are independent of one another; all must hold.
func (c *compiler) numberKeyword(n *node, name string, v *tree, at string) {
	if n.num == nil {
		n.num = &numberRule{}
	}
	b := c.bound(v, at, name)
	switch name {
	case "minimum":
		n.num.min = b
	case "maximum":
		n.num.max = b
	case "exclusiveMinimum":
		n.num.above = b
	case "exclusiveMaximum":
		n.num.below = b
	}
}

// bound reads a numeric limit. Its text is kept for messages, and its value as
// a small integer where it is one, because most are.
func (c *compiler) bound(v *tree, at, name string) *bound {
	if v.kind != kindNumber {
		hint := ""
		if v.kind == kindBoolean && strings.HasPrefix(name, "exclusive") {
			hint = "since draft-06 it holds the bound itself, in place of minimum or maximum"
		}
		c.fault(at, name+" must be a number, not "+describe(v.kind), hint)
		return nil
	}
	if !c.exact(v, at) {
		return nil
	}
	raw := slices.Clone(v.raw)
	b := &bound{raw: string(raw), decimal: parseDecimal(raw)}
	if !strings.ContainsAny(b.raw, ".eE") {
		b.small, b.isSmall = smallInt(raw)
	}
	return b
}

// count reads a length: an integer that is not negative, however written. The
// draft allows 2.0 and 2e0 where it asks for an integer.
func (c *compiler) count(v *tree, at, name string) int {
	if v.kind != kindNumber {
		c.fault(at, name+" must be a number, not "+describe(v.kind), "")
		return 0
	}
	d := parseDecimal(v.raw)
	if !d.isInteger() || d.neg {
		c.fault(at, name+" must be an integer from 0 up", "")
		return 0
	}
	// 10^18 code points are more than any payload holds.
	if d.exp > 18 {
		return unbounded // no text is that long
	}
	value, digits := 0, 0
	for _, ch := range d.digits {
		if ch != '.' {
			value, digits = value*10+int(ch-'0'), digits+1
		}
	}
	for ; digits < int(d.exp); digits++ { // zeros that the exponent stands for
		value *= 10
	}
	return value
}

// arrayKeyword compiles the assertions on arrays: draft-07 validation sections
// 6.4.1 and 6.4.3 to 6.4.5.
func (c *compiler) arrayKeyword(n *node, name string, v *tree, at string) {
	if n.arr == nil {
		n.arr = &arrayRule{max: unbounded}
	}
	switch name {
	case "items":
		// The tuple form is the one place where draft-07 gives a keyword two
		// meanings, and later drafts have renamed it.
		if v.kind == kindArray {
			c.fault(at, "items as an array (tuple form) is not supported",
				"write one schema for all elements, or an object with a property for each")
			return
		}
		n.arr.items = c.schema(v, at)
	case "minItems":
		n.arr.min = c.count(v, at, name)
	case "maxItems":
		n.arr.max = c.count(v, at, name)
	case "uniqueItems":
		if v.kind != kindBoolean {
			c.fault(at, "uniqueItems must be a boolean, not "+describe(v.kind), "")
			return
		}
		n.arr.unique = v.raw[0] == 't'
	}
}

// objectKeyword compiles the assertions on objects: draft-07 validation
// sections 6.5.3, 6.5.4 and 6.5.6.
func (c *compiler) objectKeyword(n *node, name string, v *tree, at string) {
	if n.obj == nil {
		n.obj = &objectRule{}
	}
	switch name {
	case "properties":
		if v.kind != kindObject {
			c.fault(at, "properties must be an object, not "+describe(v.kind), "")
			return
		}
		for _, m := range v.members {
			p := property{name: m.name, node: c.schema(m.value, child(at, m.name))}
			n.obj.props = append(n.obj.props, p)
		}
		n.obj.declared = len(n.obj.props)
	case "required":
		c.required(n.obj, v, at)
	case "additionalProperties":
		n.obj.additional = c.schema(v, at)
	}
}

// required compiles the names that must occur. Draft-04 allowed true beside the
// property itself, which is common enough to deserve a hint.
func (c *compiler) required(obj *objectRule, v *tree, at string) {
	if v.kind != kindArray {
		hint := ""
		if v.kind == kindBoolean {
			hint = "list the names on the object that holds the property"
		}
		c.fault(at, "required must be an array of names, not "+describe(v.kind), hint)
		return
	}
	listed := map[string]bool{}
	for i, item := range v.items {
		name, ok := c.text(item, element(at, i))
		if ok && listed[name] {
			c.fault(element(at, i), "required lists "+quote(name)+" twice", "")
			continue
		}
		if ok {
			listed[name] = true
			obj.required = append(obj.required, name)
		}
	}
}

// finish computes what depends on several keywords of a schema, once all of them
// have been read: their order must not matter.
func (c *compiler) finish(n *node) {
	if n.obj != nil {
		finishObject(n.obj)
	}
	if n.num != nil {
		finishNumber(n.num)
	}
	if n.types&typeNumber != 0 {
		n.types &^= typeInteger // every integer is a number
	}
	// The validator skips nodes that accept anything, and goes straight to the
	// combinators of nodes that have nothing else.
	own := assertsItself(n)
	n.combines = n.oneOf != nil || n.anyOf != nil || n.allOf != nil || n.not != nil
	n.pure = n.combines && !own
	n.any = !own && !n.combines
}

// assertsItself reports whether any keyword but the combinators can fail.
func assertsItself(n *node) bool {
	return n.types != anyType || n.constant != nil || n.enum != nil ||
		n.str != nil || n.num != nil || n.arr != nil || n.obj != nil
}

// finishObject merges required into the properties: a required name that is not
// declared becomes a property without a schema of its own. One look-up for each
// member then answers both questions. The mask holds the required ones among the
// first 64 properties, which are checked with one comparison at the end.
func finishObject(o *objectRule) {
	at := make(map[string]int, len(o.props))
	for i := range o.props {
		at[o.props[i].name] = i
	}
	for _, name := range o.required {
		i, ok := at[name]
		if !ok {
			i = len(o.props)
			o.props = append(o.props, property{name: name})
		}
		o.props[i].required = true
		if i < 64 {
			o.mask |= 1 << i
		}
	}
	for i := range o.props {
		o.props[i].spelled = spelled(o.props[i].name)
	}
	o.index.build(o.props)
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
func finishNumber(r *numberRule) {
	const most = 1<<63 - 1
	r.low, r.high, r.fast = -most-1, most, true
	for _, b := range []*bound{r.min, r.max, r.above, r.below} {
		if b != nil && !b.isSmall {
			r.fast = false
			return
		}
	}
	// Small values have at most 18 digits, so that one more or less fits.
	if r.min != nil {
		r.low = r.min.small
	}
	if r.above != nil {
		r.low = max(r.low, r.above.small+1)
	}
	if r.max != nil {
		r.high = r.max.small
	}
	if r.below != nil {
		r.high = min(r.high, r.below.small-1)
	}
}
