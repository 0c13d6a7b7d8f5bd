package contain

import (
	"slices"

	"github.com/agentd/agentd/schema/internal/ir"
	"github.com/agentd/agentd/schema/internal/jsonptr"
)

// view is a schema together with the branches of its allOf, at any depth. All
// of them judge the same value and all must hold, so that moving a keyword into
// an allOf changes nothing. Differences are therefore looked for between views
// and not between the schemas as written.
type view struct {
	base  *ir.Node
	nodes []*ir.Node
}

// viewOf collects the view of a schema. It ends because Compile refuses a
// schema that leads back to itself through allOf alone.
func viewOf(n *ir.Node) view {
	v := view{base: n.Target()}
	var add func(n *ir.Node)
	add = func(n *ir.Node) {
		n = n.Target()
		v.nodes = append(v.nodes, n)
		if n.AllOf != nil {
			for _, b := range n.AllOf.Branches {
				add(b)
			}
		}
	}
	add(n)
	return v
}

// at points to the first keyword of some that the view has, or to its base.
func (v view) at(keywords []string, has func(n *ir.Node, keyword string) bool) string {
	for _, n := range v.nodes {
		for _, k := range keywords {
			if has(n, k) {
				return jsonptr.Child(n.Pointer, k)
			}
		}
	}
	return v.base.Pointer
}

// compare lists the differences between two schemas that judge the values at
// a site. A pair of definitions is visited at most eight times and never inside
// itself: recursive schemas would not end, and a definition that is used in a
// thousand places would repeat its differences a thousand times.
func (e *explainer) compare(a, b *ir.Node, at site) {
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
		s &= sortsOf(n.Types)
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
	terms                      func(p *prover, n *ir.Node) []termID
}

// facets lists all groups in the order of the report. Each has a function that
// returns the terms of one schema for that aspect alone; the prover then
// decides which of two sets of terms is stricter.
func facets() []facet {
	return []facet{
		{[]string{"type"}, "any type", RuleTypeNarrowed, RuleTypeWidened, RuleTypeChanged, false, typeTerms},
		{[]string{"const", "enum"}, "any value", RuleEnumNarrowed, RuleEnumWidened, RuleEnumChanged, false, enumTerms},
		{
			[]string{"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf"}, "any number",
			RuleRangeNarrowed, RuleRangeWidened, RuleRangeChanged, false, rangeTerms,
		},
		{
			[]string{"minLength", "maxLength"}, "any length", RuleLengthNarrowed, RuleLengthWidened, RuleLengthChanged, false,
			stringTerms(func(r *ir.StringRule) ir.StringRule { return ir.StringRule{Min: r.Min, Max: r.Max} }),
		},
		{
			[]string{"pattern"}, "no pattern", RulePatternAdded, RulePatternRemoved, RulePatternChanged, true,
			stringTerms(func(r *ir.StringRule) ir.StringRule { return ir.StringRule{Max: ir.Unbounded, Pattern: r.Pattern} }),
		},
		{
			[]string{"format"}, "no format", RuleFormatAdded, RuleFormatRemoved, RuleFormatChanged, true,
			stringTerms(func(r *ir.StringRule) ir.StringRule { return ir.StringRule{Max: ir.Unbounded, Format: r.Format} }),
		},
		{[]string{"minItems", "maxItems"}, "any number of elements", RuleCountNarrowed, RuleCountWidened, RuleCountChanged, false, countTerms},
		{[]string{"uniqueItems"}, "elements may be equal", RuleUniqueAdded, RuleUniqueRemoved, RuleSchemaChanged, true, uniqueTerms},
		{fullKeywords(), "nothing more", RuleSchemaChanged, RuleSchemaChanged, RuleSchemaChanged, false, fullTerms},
	}
}

// typeTerms and the functions after it return what a schema asserts about one
// facet, as terms of the prover.
func typeTerms(p *prover, n *ir.Node) []termID { return []termID{p.ofSorts(sortsOf(n.Types))} }

// enumTerms returns the terms for const and enum.
func enumTerms(p *prover, n *ir.Node) []termID {
	var all []termID
	for _, rule := range []*ir.EnumRule{n.Constant, n.Enum} {
		if rule != nil {
			all = append(all, p.intern(term{op: opIn, lits: p.literalSet(rule)}))
		}
	}
	return all
}

// rangeTerms returns the terms for the four bounds.
func rangeTerms(p *prover, n *ir.Node) []termID {
	if n.Num == nil {
		return nil
	}
	return p.appendNumber(nil, n.Num)
}

// countTerms returns the term for minItems and maxItems.
func countTerms(p *prover, n *ir.Node) []termID {
	if n.Arr == nil || n.Arr.Min == 0 && n.Arr.Max == ir.Unbounded {
		return nil
	}
	return []termID{p.intern(term{op: opCount, low: n.Arr.Min, high: n.Arr.Max})}
}

// uniqueTerms returns the term for uniqueItems.
func uniqueTerms(p *prover, n *ir.Node) []termID {
	if n.Arr == nil || !n.Arr.Unique {
		return nil
	}
	return []termID{p.intern(term{op: opUnique})}
}

// stringTerms makes the terms of a part of the assertions on strings.
func stringTerms(part func(r *ir.StringRule) ir.StringRule) func(p *prover, n *ir.Node) []termID {
	return func(p *prover, n *ir.Node) []termID {
		if n.Str == nil {
			return nil
		}
		r := part(n.Str)
		return p.appendString(nil, &r, place{pointer: n.Pointer})
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
	has := func(n *ir.Node, keyword string) bool { return keywordText(n, keyword) != "" }
	found.A, found.B = x.at(f.keywords, has), y.at(f.keywords, has)
	found.Message = e.say(x.text(f)+", now "+y.text(f), y.text(f)+", now "+x.text(f))
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

// arrays compares items. As with members, the comparison goes on inside if
// there is exactly one schema on each side.
func (e *explainer) arrays(x, y view, at site) {
	before, after := x.items(), y.items()
	found := Finding{A: x.base.Pointer, B: y.base.Pointer}
	switch {
	case len(before) == 1 && len(after) == 1:
		e.compare(before[0], after[0], at.element())
		return
	case len(before) > 0:
		found.A = before[0].Pointer
	}
	if len(after) > 0 {
		found.B = after[0].Pointer
	}
	e.parts(found, before, after, at.element(), RuleItemsNarrowed, RuleItemsWidened)
}

// parts compares schemas that judge the same part but do not correspond one to
// one. Only their conjunctions can be compared, so that the finding cannot name
// a keyword.
func (e *explainer) parts(found Finding, before, after []*ir.Node, at site, narrowed, widened Rule) {
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
		found.Rule, found.Direction = narrowed, Narrowed
		found.Message = e.say("fewer values are accepted here", "more values are accepted here")
	case more:
		found.Rule, found.Direction = widened, Widened
		found.Message = e.say("more values are accepted here", "fewer values are accepted here")
	default:
		return
	}
	e.report(found, at, p.negate(is))
}

// all is the conjunction of schemas.
func (e *explainer) all(nodes []*ir.Node) termID {
	terms := make([]termID, 0, len(nodes))
	for _, n := range nodes {
		terms = append(terms, e.p.formOf(e.p.classifier.of(n), false))
	}
	return e.p.and(terms...)
}

// items returns the schemas of items in a view.
func (v view) items() []*ir.Node {
	var all []*ir.Node
	for _, n := range v.nodes {
		if n.Arr != nil && n.Arr.Items != nil {
			all = append(all, n.Arr.Items)
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
		Rule: RuleNotChanged, Direction: Changed, A: x.base.Pointer, B: y.base.Pointer, Message: "not rules out other values",
	}
	if len(before) > 0 {
		found.A = before[0].Pointer
	} else {
		found.Rule, found.Direction = RuleNotAdded, Narrowed
		found.Message = e.say("not rules out values now", "not no longer rules out any value")
	}
	if len(after) > 0 {
		found.B = after[0].Pointer
	} else {
		found.Rule, found.Direction = RuleNotRemoved, Widened
		found.Message = e.say("not no longer rules out any value", "not rules out values now")
	}
	e.report(found, at, e.p.negate(is))
}

// nots returns the negated schemas in a view.
func (v view) nots() []*ir.Node {
	var all []*ir.Node
	for _, n := range v.nodes {
		if n.Not != nil {
			all = append(all, n.Not)
		}
	}
	return all
}

// requiredNames returns the names that some node of the view requires.
func (v view) requiredNames() []string {
	var all []string
	for _, n := range v.nodes {
		if n.Obj == nil {
			continue
		}
		for _, name := range n.Obj.Required {
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all
}
