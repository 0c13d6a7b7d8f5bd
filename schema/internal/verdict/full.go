package verdict

import (
	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/schema/internal/ir"
	"github.com/agentd/agentd/schema/internal/pattern"
)

// fullArray is elements for rules with keywords outside of the subset: the first elements
// may have schemas of their own, and those that contains accepts are counted.
func (r *Run) fullArray(rule *ir.ArrayRule, serial uint32, i, depth int) int {
	full := rule.Full
	i = ijson.SkipSpace(r.data, i+1)
	if i < len(r.data) && r.data[i] == ']' {
		return fullEnd(rule, 0, 0, i)
	}
	matches := 0
	for count := 1; ; count++ {
		start := i
		if count <= len(full.Prefix) {
			i = r.value(full.Prefix[count-1].Target(), i, depth)
		} else {
			i = r.item(rule, i, depth)
		}
		if i < 0 {
			return i
		}
		if count > rule.Max || rule.Unique && !r.First(serial, start, i) {
			return ^start
		}
		// Once there are enough and there cannot be too many, the rest is not asked.
		if full.Contains != nil && (matches < full.Least || full.Most != ir.Unbounded) &&
			r.Branch(full.Contains.Target(), start, depth) >= 0 {
			if matches++; matches > full.Most {
				return ^start
			}
		}
		i = ijson.SkipSpace(r.data, i)
		switch {
		case i >= len(r.data):
			return ^i
		case r.data[i] == ',':
			i = ijson.SkipSpace(r.data, i+1)
		case r.data[i] == ']':
			return fullEnd(rule, count, matches, i)
		default:
			return ^i
		}
	}
}

// fullEnd ends the array whose bracket stands at i, if it has enough elements and
// enough of those that contains asks for.
func fullEnd(rule *ir.ArrayRule, count, matches, i int) int {
	if rule.Full.Contains != nil && matches < rule.Full.Least {
		return ^i
	}
	return atLeast(rule, count, i)
}

// fullObject is object for rules with keywords outside of the subset.
func (r *Run) fullObject(rule *ir.ObjectRule, i, depth int) int {
	m := members{rule: rule}
	if len(rule.Props) > 64 {
		r.openWide(&m)
	}
	i = ijson.SkipSpace(r.data, i+1)
	if i < len(r.data) && r.data[i] == '}' {
		return r.closeFull(&m, 0, i)
	}
	for count := 1; ; count++ {
		start := i
		if i = r.fullMember(&m, i, depth); i < 0 {
			return i
		}
		if count > rule.Full.Max {
			return ^start
		}
		i = ijson.SkipSpace(r.data, i)
		switch {
		case i >= len(r.data):
			return ^i
		case r.data[i] == ',':
			i = ijson.SkipSpace(r.data, i+1)
		case r.data[i] == '}':
			return r.closeFull(&m, count, i)
		default:
			return ^i
		}
	}
}

// fullMember judges the member whose name starts at i: the name by propertyNames, and
// the value by properties and by each pattern that the name matches, or else by
// additionalProperties.
func (r *Run) fullMember(m *members, i, depth int) int {
	raw, escaped, value := r.key(i)
	if value < 0 {
		return value
	}
	at := m.rule.Index.Find(m.rule.Props, r.nameOf(raw, escaped))
	if at >= 0 && !r.mark(m, at) || at < 0 && !r.undeclared(m, raw, escaped) {
		return ^i // a repeated name
	}
	if names := m.rule.Full.Names; names != nil && r.Branch(names.Target(), i, depth) < 0 {
		return ^i
	}
	end, judged := -1, false
	if at >= 0 && m.rule.Props[at].Node != nil {
		if end = r.judge(m.rule.Props[at].To, value, depth); end < 0 {
			return end
		}
		judged = true
	}
	for k := range m.rule.Full.Patterns {
		p := &m.rule.Full.Patterns[k]
		// The buffer of the characters may hold those of the value by now.
		if !r.MatchesName(p.Pattern, r.nameOf(raw, escaped)) {
			continue
		}
		if end = r.Branch(p.Node.Target(), value, depth); end < 0 {
			return end
		}
		judged = true
	}
	switch {
	case judged:
		return end
	case m.rule.Closed:
		return ^i
	}
	return r.judge(m.rule.Rest, value, depth)
}

// MatchesName reports whether a member's name matches a pattern, and pays for that: a
// schema may have many patterns, of which each reads the name once more. To begin takes
// as long as some characters, and most names are short. Without a budget none matches.
func (r *Run) MatchesName(p *pattern.Pattern, name []byte) bool {
	const begin = 16
	return r.Spend(begin+max(p.Work, 1)*len(name)) && p.Match(name)
}

// nameOf returns the characters of a member's name, until the next string is unescaped.
func (r *Run) nameOf(raw []byte, escaped bool) []byte {
	if escaped {
		return r.Unescape(raw)
	}
	return raw
}

// closeFull ends the object whose brace stands at i.
func (r *Run) closeFull(m *members, count, i int) int {
	if count < m.rule.Full.Min {
		return ^i
	}
	for k := range m.rule.Full.Dependents {
		d := &m.rule.Full.Dependents[k]
		if !r.saw(m, d.At) {
			continue
		}
		for _, at := range d.Needs {
			if !r.saw(m, at) {
				return ^i
			}
		}
	}
	return r.close(m, i)
}

// saw reports whether a property occurred.
func (r *Run) saw(m *members, at int) bool {
	if at >= 64 {
		return r.wide[m.wide+at/64-1]>>(at&63)&1 != 0
	}
	return m.seen>>at&1 != 0
}

// beyond judges by the keywords about a whole value that are outside of the subset. end
// is the end of the value, or negative while it is unknown.
func (r *Run) beyond(n *ir.Node, i, depth, end int) int {
	for k := range n.Beyond.Conditionals {
		c := &n.Beyond.Conditionals[k]
		passes := r.Branch(c.If.Target(), i, depth)
		if passes >= 0 {
			end = passes
		}
		if arm := c.Arm(passes >= 0); arm != nil {
			if end = r.Branch(arm.Target(), i, depth); end < 0 {
				return end
			}
		}
	}
	if end < 0 {
		if end = r.Skip(i, depth); end < 0 {
			return end
		}
	}
	if fault := r.unevaluated(n, i, depth); fault >= 0 {
		return ^fault
	}
	return end
}
