package verdict

import (
	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/schema/internal/ir"
)

// array judges the array at i. rule is nil where nothing constrains arrays;
// depth is what remains inside it.
func (r *Run) array(rule *ir.ArrayRule, i, depth int) int {
	if depth < 0 {
		return ^i
	}
	if rule == nil {
		if !r.memoise {
			return r.Skip(i, depth+1)
		}
		rule = &r.anyArray
	}
	if !rule.Unique {
		return r.elements(rule, 0, i, depth)
	}
	end := r.elements(rule, r.OpenUnique(), i, depth)
	r.CloseUnique()
	return end
}

// elements judges the array at i. serial is its number if elements must differ.
func (r *Run) elements(rule *ir.ArrayRule, serial uint32, i, depth int) int {
	if rule.Full != nil {
		return r.fullArray(rule, serial, i, depth)
	}
	i = ijson.SkipSpace(r.data, i+1)
	if i < len(r.data) && r.data[i] == ']' {
		return atLeast(rule, 0, i)
	}
	// The loop ends at the first fault, so that an array far beyond maxItems is
	// not read to its end.
	for count := 1; ; count++ {
		// The offset of the element is what a fault of the count or of
		// uniqueItems points to.
		start := i
		i = r.item(rule, i, depth)
		if i < 0 {
			return i
		}
		if count > rule.Max || rule.Unique && !r.First(serial, start, i) {
			return ^start
		}
		i = ijson.SkipSpace(r.data, i)
		switch {
		case i >= len(r.data):
			return ^i
		case r.data[i] == ',':
			i = ijson.SkipSpace(r.data, i+1)
		case r.data[i] == ']':
			return atLeast(rule, count, i)
		default:
			return ^i
		}
	}
}

// item judges one element.
func (r *Run) item(rule *ir.ArrayRule, i, depth int) int {
	// No schema for the elements: reading over them is faster than judging.
	if rule.To == nil {
		return r.Skip(i, depth)
	}
	return r.value(rule.To, i, depth)
}

// atLeast ends the array whose bracket stands at i, if it has enough elements.
func atLeast(rule *ir.ArrayRule, count, i int) int {
	if count < rule.Min {
		return ^i
	}
	return i + 1
}

// members is the state of one open object. A declared name is found repeated
// by its bit; only names that the schema does not declare are compared.
type members struct {
	rule   *ir.ObjectRule
	seen   uint64 // which of the first 64 properties occurred
	wide   int    // where the bits of the others start in Run.wide
	next   int    // the property that is due if the payload keeps their order
	scope  ijson.Scope
	scoped bool // scope is open
}

// object judges the object at i. rule is nil where nothing constrains objects;
// depth is what remains inside it.
func (r *Run) object(rule *ir.ObjectRule, i, depth int) int {
	if depth < 0 {
		return ^i
	}
	if rule == nil {
		if !r.memoise {
			return r.Skip(i, depth+1)
		}
		rule = &r.anyObject
	}
	if rule.Full != nil {
		return r.fullObject(rule, i, depth)
	}
	m := members{rule: rule}
	if len(rule.Props) > 64 {
		r.openWide(&m)
	}
	i = ijson.SkipSpace(r.data, i+1)
	if i < len(r.data) && r.data[i] == '}' {
		return r.close(&m, i)
	}
	for {
		if i = r.member(&m, i, depth); i < 0 {
			return i
		}
		i = ijson.SkipSpace(r.data, i)
		switch {
		case i >= len(r.data):
			return ^i
		case r.data[i] == ',':
			i = ijson.SkipSpace(r.data, i+1)
		case r.data[i] == '}':
			return r.close(&m, i)
		default:
			return ^i
		}
	}
}

// openWide makes room for the bits of properties beyond the first 64. It is a
// stack shared by nested objects, so that none allocates its own.
func (r *Run) openWide(m *members) {
	m.wide = len(r.wide)
	for range (len(m.rule.Props) - 1) / 64 {
		r.wide = append(r.wide, 0)
	}
}

// key reads the member name at i and its colon. It returns the raw content of
// the name and the offset of the value, which is negative at a fault.
func (r *Run) key(i int) (raw []byte, escaped bool, value int) {
	data := r.data
	if i >= len(data) || data[i] != '"' {
		return nil, false, ^i
	}
	end, escaped, err := ijson.ScanString(data, i)
	if err != nil {
		return nil, false, ^i
	}
	raw = data[i+1 : end-1]
	end = ijson.SkipSpace(data, end)
	if end >= len(data) || data[end] != ':' {
		return nil, false, ^end
	}
	return raw, escaped, ijson.SkipSpace(data, end+1)
}

// member judges one member, whose name starts at i.
func (r *Run) member(m *members, i, depth int) int {
	// Most payloads keep the order of the schema: ask first for the property
	// after the last one, in its usual spelling.
	if m.next < len(m.rule.Props) {
		if value := r.expected(&m.rule.Props[m.next], i); value >= 0 {
			return r.declared(m, m.next, i, value, depth)
		}
	}
	raw, escaped, value := r.key(i)
	if value < 0 {
		return value
	}
	name := raw
	if escaped {
		name = r.Unescape(raw)
	}
	if at := m.rule.Index.Find(m.rule.Props, name); at >= 0 {
		return r.declared(m, at, i, value, depth)
	}
	// additionalProperties: false refuses the name without looking at the
	// value.
	if m.rule.Closed || !r.undeclared(m, raw, escaped) {
		return ^i
	}
	return r.judge(m.rule.Rest, value, depth)
}

// expected returns the offset of the value if p is the member at i, and a negative
// number if that takes a closer look.
func (r *Run) expected(p *ir.Property, i int) int {
	end := i + len(p.Spelled)
	if p.Spelled == "" || end > len(r.data) || string(r.data[i:end]) != p.Spelled {
		return -1
	}
	return ijson.SkipSpace(r.data, end)
}

// declared judges the member at i, which is the property with number at.
func (r *Run) declared(m *members, at, i, value, depth int) int {
	if !r.mark(m, at) {
		return ^i // a repeated name
	}
	m.next = at + 1
	return r.judge(m.rule.Props[at].To, value, depth)
}

// judge judges a member's value by its schema; nil lets anything pass.
func (r *Run) judge(to *ir.Node, i, depth int) int {
	if to == nil {
		return r.Skip(i, depth)
	}
	return r.value(to, i, depth)
}

// undeclared records a name that the schema does not declare, and reports
// whether it is new to the object.
func (r *Run) undeclared(m *members, raw []byte, escaped bool) bool {
	if !m.scoped {
		m.scope, m.scoped = r.names.Open(), true
	}
	return r.names.Add(&m.scope, raw, escaped)
}

// mark records that a property occurred, and reports whether it is the first
// time.
func (r *Run) mark(m *members, at int) bool {
	// Objects with more than 64 properties are rare; theirs go to a stack that
	// nested objects share.
	word, bit := &m.seen, uint64(1)<<(at&63)
	if at >= 64 {
		word = &r.wide[m.wide+at/64-1]
	}
	if *word&bit != 0 {
		return false
	}
	*word |= bit
	return true
}

// close ends the object whose brace stands at i, if no required member is missing.
// The mask holds the required ones among the first 64.
func (r *Run) close(m *members, i int) int {
	if m.seen&m.rule.Mask != m.rule.Mask || len(m.rule.Props) > 64 && !r.closeWide(m) {
		return ^i
	}
	if m.scoped {
		r.names.Close(m.scope)
	}
	return i + 1
}

// closeWide reports whether the required properties beyond the first 64
// occurred.
func (r *Run) closeWide(m *members) bool {
	// The mask has no bit for these, so each is looked at.
	for at := 64; at < len(m.rule.Props); at++ {
		if m.rule.Props[at].Required && r.wide[m.wide+at/64-1]>>(at&63)&1 == 0 {
			return false
		}
	}
	r.wide = r.wide[:m.wide]
	return true
}
