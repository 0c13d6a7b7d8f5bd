package schema

import (
	"github.com/agentd/agentd/internal/ijson"
)

// array judges the array at i. rule is nil where nothing constrains arrays;
// depth is what remains inside it.
func (r *run) array(rule *arrayRule, i, depth int) int {
	if depth < 0 {
		return ^i
	}
	if rule == nil {
		if !r.memoise {
			return r.skip(i, depth+1)
		}
		rule = &r.anyArray
	}
	var serial uint32
	if rule.unique {
		serial = r.nextArray()
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
		if count > rule.max || rule.unique && !r.first(serial, start, i) {
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
func (r *run) item(rule *arrayRule, i, depth int) int {
	// No schema for the elements: reading over them is faster than judging.
	if rule.to == nil {
		return r.skip(i, depth)
	}
	return r.value(rule.to, i, depth)
}

// atLeast ends the array whose bracket stands at i, if it has enough elements.
func atLeast(rule *arrayRule, count, i int) int {
	if count < rule.min {
		return ^i
	}
	return i + 1
}

// nextArray begins an array with uniqueItems and returns its number.
func (r *run) nextArray() uint32 {
	r.arrays++
	return r.arrays
}

// first reports whether the checked value from i to end occurs in the array
// for the first time. All arrays of a payload share one table: the serial number
// of the array is part of the key, so that nothing needs clearing between them.
func (r *run) first(serial uint32, i, end int) bool {
	var id uint32
	if r.data[i] == '"' {
		id, _ = r.unique.text(r.data[i+1 : end-1])
	} else {
		id, _, _ = r.unique.identify(r.data, i)
	}
	// Numbers of arrays and of values fit 32 bits each: both count values of
	// one payload.
	key := uint64(serial)<<32 | uint64(id)
	if _, again := r.seen.get(key); again {
		return false
	}
	r.seen.put(key, 0)
	return true
}

// members is the state of one open object. A declared name is found repeated
// by its bit; only names that the schema does not declare are compared.
type members struct {
	rule   *objectRule
	seen   uint64 // which of the first 64 properties occurred
	wide   int    // where the bits of the others start in run.wide
	next   int    // the property that is due if the payload keeps their order
	scope  ijson.Scope
	scoped bool // scope is open
}

// object judges the object at i. rule is nil where nothing constrains objects;
// depth is what remains inside it.
func (r *run) object(rule *objectRule, i, depth int) int {
	if depth < 0 {
		return ^i
	}
	if rule == nil {
		if !r.memoise {
			return r.skip(i, depth+1)
		}
		rule = &r.anyObject
	}
	m := members{rule: rule}
	if len(rule.props) > 64 {
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
func (r *run) openWide(m *members) {
	m.wide = len(r.wide)
	for range (len(m.rule.props) - 1) / 64 {
		r.wide = append(r.wide, 0)
	}
}

// key reads the member name at i and its colon. It returns the raw content of
// the name and the offset of the value, which is negative at a fault.
func (r *run) key(i int) (raw []byte, escaped bool, value int) {
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
func (r *run) member(m *members, i, depth int) int {
	// Most payloads keep the order of the schema: ask first for the property
	// after the last one, in its usual spelling.
	if m.next < len(m.rule.props) {
		if value := r.expected(&m.rule.props[m.next], i); value >= 0 {
			return r.declared(m, m.next, i, value, depth)
		}
	}
	raw, escaped, value := r.key(i)
	if value < 0 {
		return value
	}
	name := raw
	if escaped {
		name = r.unescape(raw)
	}
	if at := m.rule.index.find(m.rule.props, name); at >= 0 {
		return r.declared(m, at, i, value, depth)
	}
	// additionalProperties: false refuses the name without looking at the
	// value.
	if m.rule.closed || !r.undeclared(m, raw, escaped) {
		return ^i
	}
	return r.judge(m.rule.rest, value, depth)
}

// expected returns the offset of the value if p is the member at i, and a negative
// number if that takes a closer look.
func (r *run) expected(p *property, i int) int {
	end := i + len(p.spelled)
	if p.spelled == "" || end > len(r.data) || string(r.data[i:end]) != p.spelled {
		return -1
	}
	return ijson.SkipSpace(r.data, end)
}

// declared judges the member at i, which is the property with number at.
func (r *run) declared(m *members, at, i, value, depth int) int {
	if !r.mark(m, at) {
		return ^i // a repeated name
	}
	m.next = at + 1
	return r.judge(m.rule.props[at].to, value, depth)
}

// judge judges a member's value by its schema; nil lets anything pass.
func (r *run) judge(to *node, i, depth int) int {
	if to == nil {
		return r.skip(i, depth)
	}
	return r.value(to, i, depth)
}

// undeclared records a name that the schema does not declare, and reports
// whether it is new to the object.
func (r *run) undeclared(m *members, raw []byte, escaped bool) bool {
	if !m.scoped {
		m.scope, m.scoped = r.names.Open(), true
	}
	return r.names.Add(&m.scope, raw, escaped)
}

// mark records that a property occurred, and reports whether it is the first
// time.
func (r *run) mark(m *members, at int) bool {
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
func (r *run) close(m *members, i int) int {
	if m.seen&m.rule.mask != m.rule.mask || len(m.rule.props) > 64 && !r.closeWide(m) {
		return ^i
	}
	if m.scoped {
		r.names.Close(m.scope)
	}
	return i + 1
}

// closeWide reports whether the required properties beyond the first 64
// occurred.
func (r *run) closeWide(m *members) bool {
	// The mask has no bit for these, so each is looked at.
	for at := 64; at < len(m.rule.props); at++ {
		if m.rule.props[at].required && r.wide[m.wide+at/64-1]>>(at&63)&1 == 0 {
			return false
		}
	}
	r.wide = r.wide[:m.wide]
	return true
}
