package schema

import (
	"strconv"

	"github.com/agentd/agentd/schema/internal/ir"
	"github.com/agentd/agentd/schema/internal/jsontree"
)

// combinators lists how oneOf, anyOf, allOf and not fail. A failing allOf has no
// violation of its own: those of its branches say it all. For oneOf and anyOf,
// the branch that was most likely meant is listed as well.
func (p *reporter) combinators(n *ir.Node, i int) {
	if n.OneOf != nil {
		if matched := p.matches(n.OneOf, i); matched != 1 {
			p.add(KeywordOneOf, "oneOf matched "+strconv.Itoa(matched)+" schemas (expected exactly 1)")
			if matched == 0 {
				p.closest(n.OneOf, i)
			}
		}
	}
	if n.AnyOf != nil && p.matches(n.AnyOf, i) == 0 {
		p.add(KeywordAnyOf, "anyOf matched zero schemas")
		p.closest(n.AnyOf, i)
	}
	if n.AllOf != nil {
		for _, b := range n.AllOf.To {
			p.anew(b, i)
		}
	}
	if n.NotTo != nil && p.judge(n.NotTo, i) >= 0 {
		p.add(KeywordNot, "not-schema matched")
	}
	if n.Beyond != nil {
		p.beyond(n, i)
	}
}

// matches counts the branches that the value passes.
func (p *reporter) matches(c *ir.Combinator, i int) int {
	count := 0
	for _, b := range c.To {
		if p.judge(b, i) >= 0 {
			count++
		}
	}
	return count
}

// closest lists, within bounds, how the value at i fails the branch that it
// comes closest to: the one that the deciding property names, or else of those
// that take its type the one whose first fault comes last.
func (p *reporter) closest(c *ir.Combinator, i int) {
	// The causes get a limit of their own, so that one value that fits nothing
	// does not crowd out the faults of others.
	limit := p.limit
	p.limit = min(limit, p.count+maxCauses)
	// A tag that belongs to no branch is the fault itself; the branches would
	// only report that the tag is another.
	if k, decided := p.run.Pick(c.Dispatch, i, p.limits.MaxDepth); !decided {
		p.anew(p.furthest(c.To, i), i)
	} else if k >= 0 {
		p.anew(c.To[k], i)
	} else {
		p.under(c.Dispatch.Property, func() {
			p.add(KeywordEnum, "value not in enum "+tagText(c.Dispatch, c.To))
		})
	}
	// The list may go on unless the limit around this one is met as well.
	p.limit, p.full = limit, p.count >= limit
}

// furthest returns the branch that accepts the type of the value and whose first
// fault comes last in the text; among equals, the first. An author who gets one
// member wrong has most likely got the members before it right.
func (p *reporter) furthest(branches []*ir.Node, i int) *ir.Node {
	best, reach := branches[0], -1
	kind, end := jsontree.KindOf(p.data[i]), p.end(i)
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
func tagText(d *ir.Dispatch, branches []*ir.Node) string {
	all := &ir.EnumRule{}
	for _, b := range branches {
		tag := b.Obj.Props[b.Obj.Index.Find(b.Obj.Props, []byte(d.Property))].Node.Target()
		rule := tag.Constant
		if rule == nil {
			rule = tag.Enum
		}
		all.Values = append(all.Values, rule.Values...)
	}
	return enumText(all)
}
