package schema

import (
	"strconv"
	"strings"

	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/internal/truncate"
)

// Bounds of what a report can hold, whatever the payload. Member names come from
// the payload and end up in messages and logs, and may be megabytes long.
const (
	maxCauses      = 8    // violations of the closest branch that a combinator lists
	maxPathSegment = 128  // bytes of one member name in a path
	maxPath        = 2048 // bytes of a path
	maxNameShown   = 64   // bytes of a member name in a message
	maxShown       = 200  // bytes of schema text in a message
	// maxListed is bytes of all paths and messages. Six times as many, which is what
	// JSON makes of control characters, still fit a record and a message of 1 MiB:
	// otherwise a payload could keep its violation out of the audit log.
	maxListed = 128 << 10
)

// reporter lists the violations of a payload that is strict JSON and known to
// be invalid. Where several schemas lead to one, it asks run, which judges
// through its memo, whether something is wrong and walks no value twice, so
// that the walk stays linear.
//
// Within one value the order is that of the reference system: type, which
// ends the matter, const, enum, the keywords for the kind of value, oneOf,
// anyOf, allOf, not; in an object first the missing members, in the order of
// required, then those present, in the order of the payload.
type reporter struct {
	run    *run
	data   []byte
	limits Limits
	found  []Violation            // the first of them, at most Limits.MaxViolations
	size   int                    // the bytes of their paths and messages
	count  int                    // all violations
	limit  int                    // how many violations may be counted here
	full   bool                   // the limit was met; what follows is not looked at
	path   []byte                 // the pointer to the value in hand
	done   map[judgement]struct{} // what has been listed
}

// judgement is one value judged by one schema. Each is listed once, however many
// ways lead to it.
type judgement struct {
	node   uint32
	offset int
}

// explain lists the violations of doc, which is known to be strict JSON but
// invalid. It may take its time and allocate: by now the call has failed.
func (s *Schema) explain(doc []byte) Report {
	// A run of its own, with the memo: the pool belongs to the fast path.
	r := newRun(s.form)
	r.remember(true)
	r.begin(doc)
	p := &reporter{
		run: r, data: doc, limits: s.limits,
		// Without MaxOmitted where the sum would overflow.
		limit: max(s.limits.MaxViolations, s.limits.MaxViolations+MaxOmitted),
		done:  map[judgement]struct{}{},
	}
	p.value(s.form.root, ijson.SkipSpace(doc, 0))
	omitted := p.count - len(p.found)
	return Report{Verdict: Invalid, Violations: p.found, Truncated: omitted > 0, Omitted: omitted}
}

// add lists a violation of the value at the current path, or only counts it if the
// list is full.
func (p *reporter) add(k Keyword, message string) {
	if p.count >= p.limit {
		p.full = true
		return
	}
	p.count++
	if p.listing() {
		v := Violation{truncate.String(string(p.path), maxPath), message, k}
		p.found = append(p.found, v)
		p.size += len(v.Path) + len(v.Message)
	}
}

// listing reports whether there is room for another violation.
func (p *reporter) listing() bool {
	return len(p.found) < p.limits.MaxViolations && p.size < maxListed
}

// under runs f with one more segment on the path. The path is one buffer that
// grows and shrinks, because most of the paths walked have no violation. Where
// violations are only counted, nobody reads it.
func (p *reporter) under(segment string, f func()) {
	if !p.listing() {
		f()
		return
	}
	size := len(p.path)
	p.path = append(append(p.path, '/'), escapeSegment(truncate.String(segment, maxPathSegment))...)
	f()
	p.path = p.path[:size]
}

// judge returns the end of the value at i if it passes n, or a negative
// number that tells where it fails.
func (p *reporter) judge(n *node, i int) int { return p.run.branch(n, i, p.limits.MaxDepth) }

// end returns the end of the value at i.
func (p *reporter) end(i int) int { return p.run.skip(i, p.limits.MaxDepth) }

// value lists how the value at i fails n.
func (p *reporter) value(n *node, i int) {
	// A node that several lead to is asked first whether it fails at all:
	// without that, a value deep inside would be walked once for each way to
	// it.
	n = n.target()
	// Nothing can be listed, or nothing can be wrong.
	if p.full || n.any || n.shared && !p.first(n, i) {
		return
	}
	if n.never {
		p.add(KeywordFalse, "schema `false` rejects all values")
		return
	}
	kind, end := kindOf(p.data[i]), p.end(i)
	if !accepts(n, kind, p.data[i:end]) {
		p.add(KeywordType, "expected type "+typeText(n)+" but got "+kind.String())
		return
	}
	if n.constant != nil && !p.run.among(n.constant, kind, i, end) {
		p.add(KeywordConst, "expected const "+truncate.String(string(n.constant.values[0].raw), maxShown))
	}
	if n.enum != nil && !p.run.among(n.enum, kind, i, end) {
		p.add(KeywordEnum, "value not in enum "+enumText(n.enum))
	}
	p.byKind(n, kind, i, end)
	p.combinators(n, i)
}

// first reports whether the value at i fails n, and this has not been listed.
func (p *reporter) first(n *node, i int) bool {
	if p.judge(n, i) >= 0 {
		return false
	}
	if _, again := p.done[judgement{n.id, i}]; again {
		return false
	}
	p.done[judgement{n.id, i}] = struct{}{}
	return true
}

// byKind lists how the value breaks the keywords for values of its kind.
func (p *reporter) byKind(n *node, kind kind, i, end int) {
	switch {
	case kind == kindString && n.str != nil:
		p.stringValue(n.str, p.data[i+1:end-1])
	case kind == kindNumber && n.num != nil:
		p.numberValue(n.num, p.data[i:end])
	case kind == kindObject && n.obj != nil:
		p.object(n.obj, i)
	case kind == kindArray && n.arr != nil:
		p.array(n.arr, i)
	}
}

// accepts applies the keyword type.
func accepts(n *node, kind kind, text []byte) bool {
	if n.types&typeOf(kind) != 0 {
		return true
	}
	return kind == kindNumber && n.types&typeInteger != 0 && parseDecimal(text).isInteger()
}

// typeText shows the types as the reference system does, in the order of the
// schema.
func typeText(n *node) string {
	var b strings.Builder
	for i, t := range n.typeList {
		if i > 0 {
			b.WriteByte('|')
		}
		b.WriteString(t)
	}
	return b.String()
}

// enumText shows the values of an enum, as many as fit.
func enumText(r *enumRule) string {
	var b strings.Builder
	b.WriteByte('[')
	for i, l := range r.values {
		if i > 0 {
			b.WriteByte(',')
		}
		if b.Len()+len(l.raw) > maxShown {
			b.WriteString("…")
			break
		}
		b.Write(l.raw)
	}
	b.WriteByte(']')
	return b.String()
}

// stringValue lists how a string breaks the keywords for strings. One of the
// wrong length is judged no further, as in a run: maxLength bounds what pattern
// and format read.
func (p *reporter) stringValue(s *stringRule, raw []byte) {
	n := ijson.CodePoints(raw)
	switch {
	case n < s.min:
		p.add(KeywordMinLength, "string length "+strconv.Itoa(n)+" < minLength "+strconv.Itoa(s.min))
		return
	case n > s.max:
		p.add(KeywordMaxLength, "string length "+strconv.Itoa(n)+" > maxLength "+strconv.Itoa(s.max))
		return
	}
	text := p.run.unescape(raw)
	if s.pattern != nil && !s.pattern.match(text) {
		p.add(KeywordPattern, "string does not match pattern /"+truncate.String(s.pattern.source, maxShown)+"/")
	}
	if s.format != "" && !s.format.match(text) {
		p.add(KeywordFormat, "format "+string(s.format)+": "+s.format.complaint())
	}
}

// numberValue lists the bounds that a number breaks. The message names the bound,
// which is from the schema, and never the number, which is from the payload.
func (p *reporter) numberValue(b *numberRule, token []byte) {
	d := parseDecimal(token)
	if b.min.order(d) < 0 {
		p.add(KeywordMinimum, "number < minimum "+truncate.String(b.min.raw, maxShown))
	}
	if b.max.order(d) > 0 {
		p.add(KeywordMaximum, "number > maximum "+truncate.String(b.max.raw, maxShown))
	}
	if b.above != nil && b.above.order(d) <= 0 {
		p.add(KeywordExclusiveMinimum, "number <= exclusiveMinimum "+truncate.String(b.above.raw, maxShown))
	}
	if b.below != nil && b.below.order(d) >= 0 {
		p.add(KeywordExclusiveMaximum, "number >= exclusiveMaximum "+truncate.String(b.below.raw, maxShown))
	}
}

// object lists missing members first, then goes through those present. It reads
// the names twice rather than keep them: an object may have a million members.
func (p *reporter) object(o *objectRule, i int) {
	// Missing members have no place in the payload, so they come first.
	present := make([]bool, len(o.props))
	p.members(i, func(name []byte, _ int) {
		if at := o.index.find(o.props, name); at >= 0 {
			present[at] = true
		}
	})
	for _, name := range o.required {
		if !present[o.index.find(o.props, []byte(name))] {
			p.under(name, func() {
				p.add(KeywordRequired, "missing required property "+strconv.Quote(truncate.String(name, maxNameShown)))
			})
		}
	}
	// A name that only required lists is judged by additionalProperties, like
	// one that occurs nowhere in the schema.
	p.members(i, func(name []byte, value int) {
		if p.full {
			return
		}
		at := o.index.find(o.props, name)
		if at >= 0 && o.props[at].node != nil {
			p.under(o.props[at].name, func() { p.value(o.props[at].node, value) })
			return
		}
		if o.additional == nil {
			return
		}
		text := string(name)
		p.under(text, func() {
			if o.closed {
				p.add(KeywordAdditionalProperties,
					"additional property "+strconv.Quote(truncate.String(text, maxNameShown))+" is not allowed")
				return
			}
			p.value(o.additional, value)
		})
	})
}

// members calls f with the name and the offset of the value of each member of
// the object at i. name is valid only during the call.
func (p *reporter) members(i int, f func(name []byte, value int)) {
	data := p.data
	var name []byte
	for i = ijson.SkipSpace(data, i+1); data[i] != '}'; {
		end, _, _ := ijson.ScanString(data, i)
		name = ijson.AppendUnquoted(name[:0], data[i+1:end-1])
		value := ijson.SkipSpace(data, ijson.SkipSpace(data, end)+1)
		f(name, value)
		if i = ijson.SkipSpace(data, p.end(value)); data[i] == ',' {
			i = ijson.SkipSpace(data, i+1)
		}
	}
}

// array lists how an array breaks its own keywords, then how its elements do.
func (p *reporter) array(a *arrayRule, i int) {
	var items []int
	data := p.data
	for i = ijson.SkipSpace(data, i+1); data[i] != ']'; {
		items = append(items, i)
		if i = ijson.SkipSpace(data, p.end(i)); data[i] == ',' {
			i = ijson.SkipSpace(data, i+1)
		}
	}
	if len(items) < a.min {
		p.add(KeywordMinItems, "array length "+strconv.Itoa(len(items))+" < minItems "+strconv.Itoa(a.min))
	}
	if len(items) > a.max {
		p.add(KeywordMaxItems, "array length "+strconv.Itoa(len(items))+" > maxItems "+strconv.Itoa(a.max))
	}
	if a.unique {
		p.uniqueItems(items)
	}
	if a.items == nil {
		return
	}
	for k, item := range items {
		if p.full {
			return
		}
		p.under(strconv.Itoa(k), func() { p.value(a.items, item) })
	}
}

// uniqueItems lists the second element of the first equal pair. One is enough: a
// list of a thousand zeros would otherwise be reported 999 times.
func (p *reporter) uniqueItems(items []int) {
	serial := p.run.nextArray()
	for k, item := range items {
		if !p.run.first(serial, item, p.end(item)) {
			p.under(strconv.Itoa(k), func() { p.add(KeywordUniqueItems, "duplicate item") })
			return
		}
	}
}

// combinators lists how oneOf, anyOf, allOf and not fail. A failing allOf has no
// violation of its own: those of its branches say it all. For oneOf and anyOf,
// the branch that was most likely meant is listed as well.
func (p *reporter) combinators(n *node, i int) {
	if n.oneOf != nil {
		if matched := p.matches(n.oneOf, i); matched != 1 {
			p.add(KeywordOneOf, "oneOf matched "+strconv.Itoa(matched)+" schemas (expected exactly 1)")
			if matched == 0 {
				p.closest(n.oneOf, i)
			}
		}
	}
	if n.anyOf != nil && p.matches(n.anyOf, i) == 0 {
		p.add(KeywordAnyOf, "anyOf matched zero schemas")
		p.closest(n.anyOf, i)
	}
	if n.allOf != nil {
		for _, b := range n.allOf.to {
			p.value(b, i)
		}
	}
	if n.notTo != nil && p.judge(n.notTo, i) >= 0 {
		p.add(KeywordNot, "not-schema matched")
	}
}

// matches counts the branches that the value passes.
func (p *reporter) matches(c *combinator, i int) int {
	count := 0
	for _, b := range c.to {
		if p.judge(b, i) >= 0 {
			count++
		}
	}
	return count
}

// closest lists, within bounds, how the value at i fails the branch that it
// comes closest to: the one that the deciding property names, or else of those
// that take its type the one whose first fault comes last.
func (p *reporter) closest(c *combinator, i int) {
	// The causes get a limit of their own, so that one value that fits nothing
	// does not crowd out the faults of others.
	limit := p.limit
	p.limit = min(limit, p.count+maxCauses)
	// A tag that belongs to no branch is the fault itself; the branches would
	// only report that the tag is another.
	if k, decided := p.run.pick(c.dispatch, i, p.limits.MaxDepth); !decided {
		p.value(p.furthest(c.to, i), i)
	} else if k >= 0 {
		p.value(c.to[k], i)
	} else {
		p.under(c.dispatch.property, func() {
			p.add(KeywordEnum, "value not in enum "+tagText(c.dispatch, c.to))
		})
	}
	// The list may go on unless the limit around this one is met as well.
	p.limit, p.full = limit, p.count >= limit
}

// furthest returns the branch that accepts the type of the value and whose first
// fault comes last in the text; among equals, the first. An author who gets one
// member wrong has most likely got the members before it right.
func (p *reporter) furthest(branches []*node, i int) *node {
	best, reach := branches[0], -1
	kind, end := kindOf(p.data[i]), p.end(i)
	for _, b := range branches {
		if !accepts(b, kind, p.data[i:end]) {
			continue
		}
		if at := ^p.judge(b, i); at > reach {
			best, reach = b, at
		}
	}
	return best
}

// tagText shows the values that pick a branch, as many as fit.
func tagText(d *dispatch, branches []*node) string {
	all := &enumRule{}
	for _, b := range branches {
		tag := b.obj.props[b.obj.index.find(b.obj.props, []byte(d.property))].node.target()
		rule := tag.constant
		if rule == nil {
			rule = tag.enum
		}
		all.values = append(all.values, rule.values...)
	}
	return enumText(all)
}
