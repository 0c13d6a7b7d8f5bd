package schema

import (
	"slices"
	"strings"

	"github.com/agentd/agentd/internal/truncate"
)

// view is a schema with the branches of its allOf, which say more about the
// same value.
type view struct {
	base  *node
	nodes []*node
}

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
// a site.
func (e *explainer) compare(a, b *node, at site) {
	pair := [2]int32{e.p.classifier.of(a), e.p.classifier.of(b)}
	const most = 8
	if pair[0] == pair[1] || e.open[pair] || e.visits[pair] == most {
		return
	}
	e.open[pair] = true
	defer delete(e.open, pair)
	e.visits[pair]++
	x, y := viewOf(a), viewOf(b)
	for _, f := range facets() {
		e.facet(f, x, y, at)
	}
	if e.sorts(x)&e.sorts(y) == 0 {
		return // what follows could only repeat that the types differ
	}
	e.arrays(x, y, at)
	e.objects(x, y, at)
	e.unions(x, y, at)
	e.negations(x, y, at)
}

func (e *explainer) sorts(v view) sorts {
	s := sorts(allSorts)
	for _, n := range v.nodes {
		s &= sortsOf(n.types)
	}
	return s
}

// facet is a group of keywords that say one thing together.
type facet struct {
	keywords []string
	absent   string // what a schema without them says
	// The rules for a facet that says less, more, or something else.
	narrowed, widened, changed Rule
	added                      bool // narrowed and widened mean new and gone
	terms                      func(p *prover, n *node) []termID
}

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

func typeTerms(p *prover, n *node) []termID { return []termID{p.ofSorts(sortsOf(n.types))} }

func enumTerms(p *prover, n *node) []termID {
	var all []termID
	for _, rule := range []*enumRule{n.constant, n.enum} {
		if rule != nil {
			all = append(all, p.intern(term{op: opIn, lits: p.literalSet(rule)}))
		}
	}
	return all
}

func rangeTerms(p *prover, n *node) []termID {
	if n.num == nil {
		return nil
	}
	return p.appendNumber(nil, n.num)
}

func countTerms(p *prover, n *node) []termID {
	if n.arr == nil || n.arr.min == 0 && n.arr.max == unbounded {
		return nil
	}
	return []termID{p.intern(term{op: opCount, low: n.arr.min, high: n.arr.max})}
}

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

// facet compares one facet.
func (e *explainer) facet(f facet, x, y view, at site) {
	p := e.p
	before, after := e.meaning(f, x), e.meaning(f, y)
	if before == after {
		return
	}
	less := p.sat(p.conjunction(nil, p.ofSorts(e.sorts(x)), before, p.negate(after))).status != statusUnsat
	more := p.sat(p.conjunction(nil, p.ofSorts(e.sorts(y)), after, p.negate(before))).status != statusUnsat
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
	has := func(n *node, keyword string) bool { return n.keywordText(keyword) != "" }
	found.A, found.B = x.at(f.keywords, has), y.at(f.keywords, has)
	found.Message = x.text(f) + ", now " + y.text(f)
	e.report(found, at, p.negate(after))
}

// meaning is what a view says by a facet.
func (e *explainer) meaning(f facet, v view) termID {
	var all []termID
	for _, n := range v.nodes {
		all = append(all, f.terms(e.p, n)...)
	}
	return e.p.and(all...)
}

// text spells the keywords of a facet.
func (v view) text(f facet) string {
	var parts []string
	for _, n := range v.nodes {
		for _, k := range f.keywords {
			if text := n.keywordText(k); text != "" {
				parts = append(parts, k+" "+truncate.String(text, 120))
			}
		}
	}
	if len(parts) == 0 {
		return f.absent
	}
	return strings.Join(parts, ", ")
}

// arrays compares items.
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

// parts compares schemas for the same part that have no counterpart one by one.
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

func (v view) items() []*node {
	var all []*node
	for _, n := range v.nodes {
		if n.arr != nil && n.arr.items != nil {
			all = append(all, n.arr.items)
		}
	}
	return all
}

// negations compares not.
func (e *explainer) negations(x, y view, at site) {
	before, after := x.nots(), y.nots()
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
		found.Rule, found.Direction, found.Message = RuleNotRemoved, Widened, "not rules out no values any more"
	}
	e.report(found, at, e.p.negate(is))
}

func (v view) nots() []*node {
	var all []*node
	for _, n := range v.nodes {
		if n.not != nil {
			all = append(all, n.not)
		}
	}
	return all
}

// keywordText spells the value of a keyword of this node, or "" without it.
func (n *node) keywordText(keyword string) string {
	switch keyword {
	case "type":
		names := make([]string, 0, len(n.typeList))
		for _, t := range n.typeList {
			names = append(names, string(t))
		}
		return strings.Join(names, "|")
	case "const", "enum":
		rule := n.enum
		if keyword == "const" {
			rule = n.constant
		}
		if rule == nil {
			return ""
		}
		values := make([]string, 0, len(rule.values))
		for _, l := range rule.values[:min(len(rule.values), 10)] {
			values = append(values, string(l.raw))
		}
		if len(rule.values) > len(values) {
			values = append(values, "…")
		}
		return strings.Join(values, "|")
	}
	switch public := (Node{n}); keyword {
	case "pattern":
		return public.Pattern()
	case "format":
		return string(public.Format())
	case "uniqueItems":
		if public.UniqueItems() {
			return "true"
		}
		return ""
	}
	return n.limitText(keyword)
}

// limitText spells a limit of numbers, lengths or sizes.
func (n *node) limitText(keyword string) string {
	bounds := Node{n}.Bounds()
	switch keyword {
	case "minimum":
		return bounds.Minimum
	case "maximum":
		return bounds.Maximum
	case "exclusiveMinimum":
		return bounds.ExclusiveMinimum
	case "exclusiveMaximum":
		return bounds.ExclusiveMaximum
	}
	least, most := Node{n}.Length()
	if strings.HasSuffix(keyword, "Items") {
		least, most = Node{n}.ItemCount()
	}
	switch {
	case strings.HasPrefix(keyword, "min") && least > 0:
		return itoa(least)
	case strings.HasPrefix(keyword, "max") && most >= 0:
		return itoa(most)
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
