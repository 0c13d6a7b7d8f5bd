package schema

import (
	"context"
	"strconv"
	"strings"

	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/internal/truncate"
	"github.com/agentd/agentd/schema/internal/decimal"
	"github.com/agentd/agentd/schema/internal/ir"
	"github.com/agentd/agentd/schema/internal/jsonptr"
	"github.com/agentd/agentd/schema/internal/jsontree"
	"github.com/agentd/agentd/schema/internal/verdict"
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
// be invalid. Nearly all parts of most of those are valid: it asks a [verdict.Run]
// about each part and goes only into those that fail. From where one failed it knows
// which of its parts passed, so that none is judged again on each level. Where several
// schemas lead to one, the run answers from its memo.
//
// Within one value the order is that of the reference system: type, which
// ends the matter, const, enum, the keywords for the kind of value, oneOf,
// anyOf, allOf, not; in an object first the missing members, in the order of
// required, then those present, in the order of the payload.
type reporter struct {
	run    *verdict.Run
	data   []byte
	limits Limits
	found  []Violation            // the first of them, at most Limits.MaxViolations
	size   int                    // the bytes of their paths and messages
	count  int                    // all violations
	limit  int                    // how many violations may be counted here
	full   bool                   // the limit was met; what follows is not looked at
	path   []byte                 // the pointer to the value in hand
	room   [96]byte               // of a path of usual length
	done   map[judgement]struct{} // what has been listed
	key    int                    // where the name of the member in hand starts
	ends   map[int]int            // where large arrays and objects end
	// fault is where the first fault of the value around showed when it was judged. Its
	// parts that end before have passed; those that start behind have not been judged.
	// A negative number means that it was not judged.
	fault    int
	thorough bool // go into every part; for tests
}

// judgement is one value judged by one schema. Each is listed once, however many
// ways lead to it.
type judgement struct {
	node   uint32
	offset int
}

// explain lists the violations of doc, which is known to be strict JSON but
// invalid, with the first fault at a place. It may allocate, and take as much work as
// the judging was allowed: by now the call has failed.
func (s *Schema) explain(ctx context.Context, doc []byte, fault int) (report Report) {
	s.validator.Explain(ctx, doc, func(r *verdict.Run) {
		p := &reporter{
			run: r, data: doc, limits: s.limits, fault: fault,
			// Without MaxOmitted where the sum would overflow.
			limit: max(s.limits.MaxViolations, s.limits.MaxViolations+MaxOmitted),
		}
		p.path = p.room[:0]
		p.value(s.form.Root, ijson.SkipSpace(doc, 0))
		report = p.report()
	})
	return report
}

// report returns the answer once all has been looked at.
func (p *reporter) report() Report {
	if p.count == 0 { // no list of violations may look like that of a valid payload
		p.add(KeywordFalse, "the value is invalid")
	}
	omitted := p.count - len(p.found)
	if p.run.Over() { // there may be more
		omitted = max(omitted, 1)
		if len(p.found) == 0 {
			p.found = []Violation{{Message: "the payload is invalid; saying why takes too long", Keyword: KeywordLimit}}
		}
	}
	return Report{Verdict: Invalid, Violations: p.found, Truncated: omitted > 0, Omitted: omitted}
}

// add lists a violation of the value at the current path, or only counts it if the
// list is full.
func (p *reporter) add(k Keyword, message string) {
	if p.run.Over() {
		p.full = true // the branches that were asked about did not fail
		return
	}
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
	p.path = append(append(p.path, '/'), jsonptr.Escape(truncate.String(segment, maxPathSegment))...)
	f()
	p.path = p.path[:size]
}

// shown is the name of a member that the schema does not declare, as paths show it.
func (p *reporter) shown(name string) string {
	if p.limits.RedactNames {
		return "*"
	}
	return name
}

// quoted is such a name as messages show it, followed by a space; or nothing.
func (p *reporter) quoted(name string) string {
	if p.limits.RedactNames {
		return ""
	}
	var room [maxNameShown + 16]byte
	return string(append(strconv.AppendQuote(room[:0], truncate.String(name, maxNameShown)), ' '))
}

// judge returns the end of the value at i if it passes n, or a negative
// number that tells where it fails.
func (p *reporter) judge(n *ir.Node, i int) int { return p.run.Branch(n, i, p.limits.MaxDepth) }

// passes reports whether the value at i passes n, and then where it ends.
func (p *reporter) passes(n *ir.Node, i int) (end int, ok bool) {
	if p.thorough {
		return 0, false
	}
	if i <= p.fault {
		end = p.end(i)
		return end, end <= p.fault
	}
	if end = p.judge(n.Target(), i); end >= 0 {
		return end, true
	}
	p.fault = ^end
	return 0, false
}

// anew is value for a schema by which the value at i was not judged.
func (p *reporter) anew(n *ir.Node, i int) {
	p.fault = -1
	p.value(n, i)
}

// value lists how the value at i fails n.
func (p *reporter) value(n *ir.Node, i int) {
	// A node that several lead to is asked first whether it fails at all:
	// without that, a value deep inside would be walked once for each way to
	// it.
	n = n.Target()
	// Nothing can be listed, or nothing can be wrong.
	p.full = p.full || !p.run.Spend(1)
	if p.full || n.Any || n.Shared && !p.first(n, i) {
		return
	}
	if n.Never {
		p.add(KeywordFalse, "schema `false` rejects all values")
		return
	}
	kind, end := jsontree.KindOf(p.data[i]), i
	if kind < jsontree.Array || n.Constant != nil || n.Enum != nil {
		end = p.end(i)
	}
	if !accepts(n, kind, p.data[i:end]) {
		p.add(KeywordType, "expected type "+typeText(n)+" but got "+kind.String())
		return
	}
	if n.Constant != nil && !p.run.Among(n.Constant, kind, i, end) {
		p.add(KeywordConst, "expected const "+truncate.String(string(n.Constant.Values[0].Raw), maxShown))
	}
	if n.Enum != nil && !p.run.Among(n.Enum, kind, i, end) {
		p.add(KeywordEnum, "value not in enum "+enumText(n.Enum))
	}
	p.byKind(n, kind, i, end)
	p.combinators(n, i)
}

// first reports whether the value at i fails n, and this has not been listed.
func (p *reporter) first(n *ir.Node, i int) bool {
	if p.judge(n, i) >= 0 {
		return false
	}
	if _, again := p.done[judgement{n.ID, i}]; again {
		return false
	}
	if p.done == nil {
		p.done = map[judgement]struct{}{}
	}
	p.done[judgement{n.ID, i}] = struct{}{}
	return true
}

// byKind lists how the value breaks the keywords for values of its kind.
func (p *reporter) byKind(n *ir.Node, kind jsontree.Kind, i, end int) {
	switch {
	case kind == jsontree.String && n.Str != nil:
		p.stringValue(n.Str, p.data[i+1:end-1])
	case kind == jsontree.Number && n.Num != nil:
		p.numberValue(n.Num, p.data[i:end])
	case kind == jsontree.Object && n.Obj != nil:
		p.object(n.Obj, i)
	case kind == jsontree.Array && n.Arr != nil:
		p.array(n.Arr, i)
	}
}

// accepts applies the keyword type.
func accepts(n *ir.Node, kind jsontree.Kind, text []byte) bool {
	if n.Types&ir.TypeOf(kind) != 0 {
		return true
	}
	return kind == jsontree.Number && n.Types&ir.TypeInteger != 0 && decimal.Parse(text).IsInteger()
}

// typeText shows the types as the reference system does, in the order of the
// schema.
func typeText(n *ir.Node) string {
	var b strings.Builder
	for i, t := range n.TypeList {
		if i > 0 {
			b.WriteByte('|')
		}
		b.WriteString(t)
	}
	return b.String()
}

// enumText shows the values of an enum, as many as fit.
func enumText(r *ir.EnumRule) string {
	var b strings.Builder
	b.WriteByte('[')
	for i, l := range r.Values {
		if i > 0 {
			b.WriteByte(',')
		}
		if b.Len()+len(l.Raw) > maxShown {
			b.WriteString("…")
			break
		}
		b.Write(l.Raw)
	}
	b.WriteByte(']')
	return b.String()
}

// stringValue lists how a string breaks the keywords for strings. One of the
// wrong length is judged no further, as in a run: maxLength bounds what pattern
// and format read.
func (p *reporter) stringValue(s *ir.StringRule, raw []byte) {
	n := ijson.CodePoints(raw)
	switch {
	case n < s.Min:
		p.add(KeywordMinLength, "string length "+strconv.Itoa(n)+" < minLength "+strconv.Itoa(s.Min))
		return
	case n > s.Max:
		p.add(KeywordMaxLength, "string length "+strconv.Itoa(n)+" > maxLength "+strconv.Itoa(s.Max))
		return
	}
	text := p.run.Unescape(raw)
	if s.Pattern != nil && p.run.HasBudget(s, text) && !s.Pattern.Match(text) {
		p.add(KeywordPattern, "string does not match pattern /"+truncate.String(s.Pattern.Source, maxShown)+"/")
	}
	if s.Format != "" && !s.Format.Match(text) {
		p.add(KeywordFormat, "format "+string(s.Format)+": "+s.Format.Complaint())
	}
}

// numberValue lists the bounds that a number breaks. The message names the bound,
// which is from the schema, and never the number, which is from the payload.
func (p *reporter) numberValue(b *ir.NumberRule, token []byte) {
	d := decimal.Parse(token)
	if b.Min.Order(d) < 0 {
		p.add(KeywordMinimum, "number < minimum "+truncate.String(b.Min.Raw, maxShown))
	}
	if b.Max.Order(d) > 0 {
		p.add(KeywordMaximum, "number > maximum "+truncate.String(b.Max.Raw, maxShown))
	}
	if b.Above != nil && b.Above.Order(d) <= 0 {
		p.add(KeywordExclusiveMinimum, "number <= exclusiveMinimum "+truncate.String(b.Above.Raw, maxShown))
	}
	if b.Below != nil && b.Below.Order(d) >= 0 {
		p.add(KeywordExclusiveMaximum, "number >= exclusiveMaximum "+truncate.String(b.Below.Raw, maxShown))
	}
	if b.Multiple != nil && !b.Multiple.Divides(d) {
		p.add(KeywordMultipleOf, "number is not a multiple of "+b.Multiple.Raw)
	}
}

// object lists missing members first, then goes through those present. It reads
// the names twice rather than keep them: an object may have a million members.
func (p *reporter) object(o *ir.ObjectRule, i int) {
	if len(o.Required) > 0 || o.Full != nil {
		p.missing(o, i)
	}
	// A name that only required lists is judged by additionalProperties, like
	// one that occurs nowhere in the schema.
	p.members(i, func(name []byte, value int) (end int) {
		if p.full {
			return -1
		}
		at := o.Index.Find(o.Props, name)
		if o.Full != nil {
			p.fullMember(o, at, string(name), p.key, value)
			return -1
		}
		if at >= 0 && o.Props[at].Node != nil {
			end, passes := p.passes(o.Props[at].Node, value)
			if passes {
				return end
			}
			p.under(o.Props[at].Name, func() { p.value(o.Props[at].Node, value) })
			return -1
		}
		return p.undeclared(o, name, value)
	})
}

// missing lists the members that an object lacks, which have no place in the payload, and
// so come first.
func (p *reporter) missing(o *ir.ObjectRule, i int) {
	var few [64]bool
	present := few[:]
	if len(o.Props) > len(few) {
		present = make([]bool, len(o.Props))
	}
	count := 0
	p.members(i, func(name []byte, _ int) int {
		count++
		if at := o.Index.Find(o.Props, name); at >= 0 {
			present[at] = true
		}
		return -1
	})
	for _, name := range o.Required {
		if !present[o.Index.Find(o.Props, []byte(name))] {
			p.under(name, func() {
				p.add(KeywordRequired, "missing required property "+strconv.Quote(truncate.String(name, maxNameShown)))
			})
		}
	}
	if o.Full != nil {
		p.sizes(o, present, count)
	}
}

// undeclared lists what is wrong with a member that the schema does not declare, and
// returns the end of its value if that is known.
func (p *reporter) undeclared(o *ir.ObjectRule, name []byte, value int) (end int) {
	if o.Additional == nil {
		return -1
	}
	if !o.Closed {
		if end, passes := p.passes(o.Additional, value); passes {
			return end
		}
	}
	text := string(name)
	p.under(p.shown(text), func() {
		if o.Closed {
			p.add(KeywordAdditionalProperties, "additional property "+p.quoted(text)+"is not allowed")
			return
		}
		p.value(o.Additional, value)
	})
	return -1
}

// array lists how an array breaks its own keywords, then how its elements do.
func (p *reporter) array(a *ir.ArrayRule, i int) {
	items := p.items(i)
	if len(items) < a.Min {
		p.add(KeywordMinItems, "array length "+strconv.Itoa(len(items))+" < minItems "+strconv.Itoa(a.Min))
	}
	if len(items) > a.Max {
		p.add(KeywordMaxItems, "array length "+strconv.Itoa(len(items))+" > maxItems "+strconv.Itoa(a.Max))
	}
	if a.Unique {
		p.uniqueItems(p.run.OpenUnique(), items)
		defer p.run.CloseUnique()
	}
	var prefix []*ir.Node
	if a.Full != nil {
		p.contains(a.Full, items)
		prefix = a.Full.Prefix
	}
	for k, item := range items {
		if k+1 < len(items) && items[k+1] <= p.fault && !p.thorough {
			continue // it has passed
		}
		judge := a.Items
		if k < len(prefix) {
			judge = prefix[k]
		}
		if p.full || judge == nil {
			return
		}
		if _, passes := p.passes(judge, item); !passes {
			p.under(strconv.Itoa(k), func() { p.value(judge, item) })
		}
	}
}

// uniqueItems lists the second element of the first equal pair. One is enough: a
// list of a thousand zeros would otherwise be reported 999 times.
func (p *reporter) uniqueItems(serial uint32, items []int) {
	for k, item := range items {
		if !p.run.First(serial, item, p.end(item)) {
			p.under(strconv.Itoa(k), func() { p.add(KeywordUniqueItems, "duplicate item") })
			return
		}
	}
}
