package schema

import (
	"slices"
	"strconv"
	"strings"

	"github.com/agentd/agentd/internal/truncate"
)

// view is a schema together with the branches of its allOf, at any depth. All
// of them judge the same value and all must hold, so that moving a keyword into
// an allOf changes nothing. Differences are therefore looked for between views
// and not between the schemas as written.
type view struct {
	base  *node
	nodes []*node
}

// viewOf collects the view of a schema. It ends because Compile refuses a
// schema that leads back to itself through allOf alone.
func viewOf(n *node) view {
	v := view{base: n.target()}
	var add func(n *node)
	add = func(n *node) {
		n = n.target()
		v.nodes = append(v.nodes, n)
		if n.allOf != nil {
			for _, b := range n.allOf.branches {
				add(b)
			}
		}
	}
	add(n)
	return v
}

// at points to the first keyword of some that the view has, or to its base.
func (v view) at(keywords []string, has func(n *node, keyword string) bool) string {
	for _, n := range v.nodes {
		for _, k := range keywords {
			if has(n, k) {
				return child(n.pointer, k)
			}
		}
	}
	return v.base.pointer
}

// compare lists the differences between two schemas that judge the values at
// a site. A pair of definitions is visited at most eight times and never inside
// itself: recursive schemas would not end, and a definition that is used in a
// thousand places would repeat its differences a thousand times.
func (e *explainer) compare(a, b *node, at site) {
	pair := [2]int32{e.p.classifier.of(a), e.p.classifier.of(b)}
	const most = 8
	if pair[0] == pair[1] || e.open[pair] || e.visits[pair] == most {
		return
	}
	// A pair inside itself is left out: what differs there is reported at the
	// outer one.
	e.open[pair] = true
	defer delete(e.open, pair)
	e.visits[pair]++
	x, y := viewOf(a), viewOf(b)
	for _, f := range facets() {
		e.facet(f, x, y, at)
	}
	// No value has a type that both accept: the finding about the types has
	// said it all.
	if e.sorts(x)&e.sorts(y) == 0 {
		return // what follows could only repeat that the types differ
	}
	e.arrays(x, y, at)
	e.objects(x, y, at)
	e.unions(x, y, at)
	e.negations(x, y, at)
}

// sorts returns the kinds of value that pass the keyword type throughout a
// view.
func (e *explainer) sorts(v view) sorts {
	s := sorts(allSorts)
	for _, n := range v.nodes {
		s &= sortsOf(n.types)
	}
	return s
}

// facet is a group of keywords that constrain one aspect of a value together.
// They are compared as a group, because minimum 1 and exclusiveMinimum 0 mean
// the same for integers, and const is an enum with one value.
type facet struct {
	keywords []string
	absent   string // what a schema without them says
	// The rules for a facet that says less, more, or something else.
	narrowed, widened, changed Rule
	added                      bool // narrowed and widened mean new and gone
	terms                      func(p *prover, n *node) []termID
}

// facets lists all groups in the order of the report. Each has a function that
// returns the terms of one schema for that aspect alone; the prover then
// decides which of two sets of terms is stricter.
func facets() []facet {
	return []facet{
		{[]string{"type"}, "any type", RuleTypeNarrowed, RuleTypeWidened, RuleTypeChanged, false, typeTerms},
		{[]string{"const", "enum"}, "any value", RuleEnumNarrowed, RuleEnumWidened, RuleEnumChanged, false, enumTerms},
		{
			[]string{"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"}, "any number",
			RuleRangeNarrowed, RuleRangeWidened, RuleRangeChanged, false, rangeTerms,
		},
		{
			[]string{"minLength", "maxLength"}, "any length", RuleLengthNarrowed, RuleLengthWidened, RuleLengthChanged, false,
			stringTerms(func(r *stringRule) stringRule { return stringRule{min: r.min, max: r.max} }),
		},
		{
			[]string{"pattern"}, "no pattern", RulePatternAdded, RulePatternRemoved, RulePatternChanged, true,
			stringTerms(func(r *stringRule) stringRule { return stringRule{max: unbounded, pattern: r.pattern} }),
		},
		{
			[]string{"format"}, "no format", RuleFormatAdded, RuleFormatRemoved, RuleFormatChanged, true,
			stringTerms(func(r *stringRule) stringRule { return stringRule{max: unbounded, format: r.format} }),
		},
		{[]string{"minItems", "maxItems"}, "any number of elements", RuleCountNarrowed, RuleCountWidened, RuleCountChanged, false, countTerms},
		{[]string{"uniqueItems"}, "elements may be equal", RuleUniqueAdded, RuleUniqueRemoved, RuleSchemaChanged, true, uniqueTerms},
	}
}

// typeTerms and the functions after it return what a schema asserts about one
// facet, as terms of the prover.
func typeTerms(p *prover, n *node) []termID { return []termID{p.ofSorts(sortsOf(n.types))} }

// enumTerms returns the terms for const and enum.
func enumTerms(p *prover, n *node) []termID {
	var all []termID
	for _, rule := range []*enumRule{n.constant, n.enum} {
		if rule != nil {
			all = append(all, p.intern(term{op: opIn, lits: p.literalSet(rule)}))
		}
	}
	return all
}

// rangeTerms returns the terms for the four bounds.
func rangeTerms(p *prover, n *node) []termID {
	if n.num == nil {
		return nil
	}
	return p.appendNumber(nil, n.num)
}

// countTerms returns the term for minItems and maxItems.
func countTerms(p *prover, n *node) []termID {
	if n.arr == nil || n.arr.min == 0 && n.arr.max == unbounded {
		return nil
	}
	return []termID{p.intern(term{op: opCount, low: n.arr.min, high: n.arr.max})}
}

// uniqueTerms returns the term for uniqueItems.
func uniqueTerms(p *prover, n *node) []termID {
	if n.arr == nil || !n.arr.unique {
		return nil
	}
	return []termID{p.intern(term{op: opUnique})}
}

// stringTerms makes the terms of a part of the assertions on strings.
func stringTerms(part func(r *stringRule) stringRule) func(p *prover, n *node) []termID {
	return func(p *prover, n *node) []termID {
		if n.str == nil {
			return nil
		}
		r := part(n.str)
		return p.appendString(nil, &r, place{pointer: n.pointer})
	}
}

// facet compares one facet. Whether the second schema accepts less or more is
// decided by proof within the types that the schema accepts at all: a bound on
// numbers says nothing to a schema of strings. Where the prover cannot decide,
// the difference counts as both.
func (e *explainer) facet(f facet, x, y view, at site) {
	p := e.p
	before, after := e.meaning(f, x), e.meaning(f, y)
	if before == after {
		return
	}
	less := p.sat(p.conjunction(nil, p.ofSorts(e.sorts(x)), before, p.negate(after))).status != statusUnsat
	more := p.sat(p.conjunction(nil, p.ofSorts(e.sorts(y)), after, p.negate(before))).status != statusUnsat
	// Where neither includes the other, or the prover gave up, it is a change
	// without direction.
	found := Finding{Rule: f.changed, Direction: Changed}
	switch {
	case !less && !more:
		return // another wording, or of no type that occurs
	case less && !more:
		found.Direction = Narrowed
		if !f.added || before == termTrue {
			found.Rule = f.narrowed
		}
	case more && !less:
		found.Direction = Widened
		if !f.added || after == termTrue {
			found.Rule = f.widened
		}
	}
	// The pointers name the keyword on each side, or the schema where it is
	// missing.
	has := func(n *node, keyword string) bool { return keywordText(n, keyword) != "" }
	found.A, found.B = x.at(f.keywords, has), y.at(f.keywords, has)
	found.Message = x.text(f) + ", now " + y.text(f)
	e.report(found, at, p.negate(after))
}

// meaning is the conjunction of what all schemas of a view assert about a facet.
func (e *explainer) meaning(f facet, v view) termID {
	var all []termID
	for _, n := range v.nodes {
		all = append(all, f.terms(e.p, n)...)
	}
	return e.p.and(all...)
}

// text writes out the keywords of a facet, for the message of a finding.
func (v view) text(f facet) string {
	var parts []string
	for _, n := range v.nodes {
		for _, k := range f.keywords {
			if text := keywordText(n, k); text != "" {
				parts = append(parts, k+" "+truncate.String(text, 120))
			}
		}
	}
	if len(parts) == 0 {
		return f.absent
	}
	return strings.Join(parts, ", ")
}

// arrays compares items. As with members, the comparison goes on inside if
// there is exactly one schema on each side.
func (e *explainer) arrays(x, y view, at site) {
	before, after := x.items(), y.items()
	found := Finding{A: x.base.pointer, B: y.base.pointer}
	switch {
	case len(before) == 1 && len(after) == 1:
		e.compare(before[0], after[0], at.element())
		return
	case len(before) > 0:
		found.A = before[0].pointer
	}
	if len(after) > 0 {
		found.B = after[0].pointer
	}
	e.parts(found, before, after, at.element(), RuleItemsNarrowed, RuleItemsWidened)
}

// parts compares schemas that judge the same part but do not correspond one to
// one. Only their conjunctions can be compared, so that the finding cannot name
// a keyword.
func (e *explainer) parts(found Finding, before, after []*node, at site, narrowed, widened Rule) {
	p := e.p
	was, is := e.all(before), e.all(after)
	if was == is {
		return
	}
	less := p.sat(p.conjunction(nil, was, p.negate(is))).status != statusUnsat
	more := p.sat(p.conjunction(nil, is, p.negate(was))).status != statusUnsat
	switch {
	case less && more:
		found.Rule, found.Direction, found.Message = RuleSchemaChanged, Changed, "other values are accepted here"
	case less:
		found.Rule, found.Direction, found.Message = narrowed, Narrowed, "fewer values are accepted here"
	case more:
		found.Rule, found.Direction, found.Message = widened, Widened, "more values are accepted here"
	default:
		return
	}
	e.report(found, at, p.negate(is))
}

// all is the conjunction of schemas.
func (e *explainer) all(nodes []*node) termID {
	terms := make([]termID, 0, len(nodes))
	for _, n := range nodes {
		terms = append(terms, e.p.formOf(e.p.classifier.of(n), false))
	}
	return e.p.and(terms...)
}

// items returns the schemas of items in a view.
func (v view) items() []*node {
	var all []*node
	for _, n := range v.nodes {
		if n.arr != nil && n.arr.items != nil {
			all = append(all, n.arr.items)
		}
	}
	return all
}

// negations compares not. What lies inside is not compared further: a value
// that a negated schema accepts less readily is accepted more readily outside,
// which would make every finding inside read the wrong way round.
func (e *explainer) negations(x, y view, at site) {
	before, after := x.nots(), y.nots()
	// A schema without not rules out nothing.
	was, is := termTrue, termTrue
	for _, n := range before {
		was = e.p.and(was, e.p.formOf(e.p.classifier.of(n), true))
	}
	for _, n := range after {
		is = e.p.and(is, e.p.formOf(e.p.classifier.of(n), true))
	}
	if was == is {
		return
	}
	found := Finding{
		Rule: RuleNotChanged, Direction: Changed, A: x.base.pointer, B: y.base.pointer, Message: "not rules out other values",
	}
	if len(before) > 0 {
		found.A = before[0].pointer
	} else {
		found.Rule, found.Direction, found.Message = RuleNotAdded, Narrowed, "not rules out values now"
	}
	if len(after) > 0 {
		found.B = after[0].pointer
	} else {
		found.Rule, found.Direction, found.Message = RuleNotRemoved, Widened, "not no longer rules out any value"
	}
	e.report(found, at, e.p.negate(is))
}

// nots returns the negated schemas in a view.
func (v view) nots() []*node {
	var all []*node
	for _, n := range v.nodes {
		if n.not != nil {
			all = append(all, n.not)
		}
	}
	return all
}

// keywordText writes out the value of a keyword of this node, or returns "" if
// it is absent. At most ten values of an enum are shown.
func keywordText(n *node, keyword string) string {
	switch keyword {
	case "type":
		return strings.Join(n.typeList, "|")
	case "const", "enum":
		rule := n.enum
		if keyword == "const" {
			rule = n.constant
		}
		if rule == nil {
			return ""
		}
		values := make([]string, 0, len(rule.values))
		// A message is for people: ten values show what the enum is about.
		for _, l := range rule.values[:min(len(rule.values), 10)] {
			values = append(values, string(l.raw))
		}
		if len(rule.values) > len(values) {
			values = append(values, "…")
		}
		return strings.Join(values, "|")
	}
	if text := stringText(n.str, keyword); text != "" {
		return text
	}
	switch {
	case keyword == "uniqueItems" && n.arr != nil && n.arr.unique:
		return "true"
	case n.num != nil:
		if text := boundText(n.num, keyword); text != "" {
			return text
		}
	}
	return sizeText(n, keyword)
}

// stringText writes out pattern or format.
func stringText(r *stringRule, keyword string) string {
	switch {
	case r == nil:
	case keyword == "pattern" && r.pattern != nil:
		return r.pattern.source
	case keyword == "format":
		return string(r.format)
	}
	return ""
}

// boundText writes out a limit of numbers.
func boundText(r *numberRule, keyword string) string {
	switch keyword {
	case "minimum":
		return boundRaw(r.min)
	case "maximum":
		return boundRaw(r.max)
	case "exclusiveMinimum":
		return boundRaw(r.above)
	case "exclusiveMaximum":
		return boundRaw(r.below)
	}
	return ""
}

// boundRaw is a limit as written; "" where it is absent.
func boundRaw(b *bound) string {
	if b == nil {
		return ""
	}
	return b.raw
}

// sizeText writes out a limit of lengths or of elements. A least size of 0 says
// nothing, however it is written.
func sizeText(n *node, keyword string) string {
	least, most := 0, unbounded
	switch {
	case strings.HasSuffix(keyword, "Length") && n.str != nil:
		least, most = n.str.min, n.str.max
	case strings.HasSuffix(keyword, "Items") && n.arr != nil:
		least, most = n.arr.min, n.arr.max
	}
	switch {
	case strings.HasPrefix(keyword, "min") && least > 0:
		return strconv.Itoa(least)
	case strings.HasPrefix(keyword, "max") && most != unbounded:
		return strconv.Itoa(most)
	}
	return ""
}

// requiredNames returns the names that some node of the view requires.
func (v view) requiredNames() []string {
	var all []string
	for _, n := range v.nodes {
		if n.obj == nil {
			continue
		}
		for _, name := range n.obj.required {
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all
}
