package schema

import (
	"github.com/agentd/agentd/internal/ijson"
)

// array judges the array at i. rule is nil where nothing constrains arrays.
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
	data, open, count := r.data, i, 0
	var serial uint32
	if rule.unique {
		r.arrays++
		serial = r.arrays
	}
	i = ijson.SkipSpace(data, i+1)
	if i < len(data) && data[i] == ']' {
		if rule.min > 0 {
			return ^open
		}
		return i + 1
	}
	for {
		start := i
		if rule.to == nil || rule.to.any {
			i = r.skip(i, depth)
		} else {
			i = r.value(rule.to, i, depth)
		}
		if i < 0 {
			return i
		}
		if count++; count > rule.max || rule.unique && !r.first(serial, start) {
			return ^start
		}
		i = ijson.SkipSpace(data, i)
		if i >= len(data) {
			return ^i
		}
		switch data[i] {
		case ',':
			i = ijson.SkipSpace(data, i+1)
		case ']':
			if count < rule.min {
				return ^i
			}
			return i + 1
		default:
			return ^i
		}
	}
}

// first reports whether the checked value at i occurs in the array for the
// first time.
func (r *run) first(serial uint32, i int) bool {
	id, _, _ := r.unique.identify(r.data, i)
	key := uint64(serial)<<32 | uint64(id)
	if _, again := r.seen.get(key); again {
		return false
	}
	r.seen.put(key, 0)
	return true
}

// members is the state of one open object.
type members struct {
	rule   *objectRule
	seen   uint64 // which of the first 64 properties occurred
	wide   int    // where the bits of the others start in run.wide
	next   int    // the property that is due if the payload keeps their order
	scope  ijson.Scope
	scoped bool // scope is open
}

// object judges the object at i. rule is nil where nothing constrains objects.
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
	data := r.data
	m := members{rule: rule}
	if len(rule.props) > 64 {
		m.wide = len(r.wide)
		for range (len(rule.props) - 1) / 64 {
			r.wide = append(r.wide, 0)
		}
	}
	i = ijson.SkipSpace(data, i+1)
	if i < len(data) && data[i] == '}' {
		return r.close(&m, i)
	}
	for {
		if i = r.member(&m, i, depth); i < 0 {
			return i
		}
		i = ijson.SkipSpace(data, i)
		if i >= len(data) {
			return ^i
		}
		switch data[i] {
		case ',':
			i = ijson.SkipSpace(data, i+1)
		case '}':
			return r.close(&m, i)
		default:
			return ^i
		}
	}
}

// member judges one member, whose name starts at i.
func (r *run) member(m *members, i, depth int) int {
	data := r.data
	if i >= len(data) || data[i] != '"' {
		return ^i
	}
	end, escaped, err := ijson.ScanString(data, i)
	if err != nil {
		return ^i
	}
	raw := data[i+1 : end-1]
	name := raw
	if escaped {
		name = r.unescape(raw)
	}
	start := ijson.SkipSpace(data, end)
	if start >= len(data) || data[start] != ':' {
		return ^start
	}
	start = ijson.SkipSpace(data, start+1)
	to := m.rule.rest
	at := m.next
	if at >= len(m.rule.props) || m.rule.props[at].name != string(name) {
		at = m.rule.index.find(m.rule.props, name)
	}
	if at >= 0 {
		if !r.mark(m, at) {
			return ^i
		}
		m.next = at + 1
		to = m.rule.props[at].to
	} else {
		if m.rule.closed {
			return ^i
		}
		if !m.scoped {
			m.scope, m.scoped = r.names.Open(), true
		}
		if !r.names.Add(&m.scope, raw, escaped) {
			return ^i
		}
	}
	if to == nil {
		return r.skip(start, depth)
	}
	return r.value(to, start, depth)
}

// mark records that a property occurred, and reports whether it is the first
// time.
func (r *run) mark(m *members, at int) bool {
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

// close ends the object whose brace stands at i.
func (r *run) close(m *members, i int) int {
	if m.seen&m.rule.mask != m.rule.mask {
		return ^i
	}
	if len(m.rule.props) > 64 {
		for at := 64; at < len(m.rule.props); at++ {
			if m.rule.props[at].required && r.wide[m.wide+at/64-1]>>(at&63)&1 == 0 {
				return ^i
			}
		}
		r.wide = r.wide[:m.wide]
	}
	if m.scoped {
		r.names.Close(m.scope)
	}
	return i + 1
}
