package contain

import (
	"strconv"

	"github.com/agentd/agentd/schema/internal/ir"
)

// fullKeywords are the keywords of the full profile that are compared as one facet: they
// say together which members and elements there may be.
func fullKeywords() []string {
	return []string{
		"minProperties", "maxProperties", "patternProperties", "propertyNames", "dependentRequired", "if",
		"prefixItems", "contains", "unevaluatedProperties", "unevaluatedItems",
	}
}

// fullTerms returns the terms for these keywords.
func fullTerms(p *prover, n *ir.Node) (all []termID) {
	index := p.classifier.of(n)
	f := p.forms[index]
	if f.full == nil {
		return nil
	}
	if f.node.Arr != nil && f.node.Arr.Full != nil {
		all = p.appendTuple(all, &f)
	}
	if f.node.Obj != nil && f.node.Obj.Full != nil {
		all = p.appendKeyed(all, &f)
	}
	return append(all, p.assertsFull(termID(index))...)
}

// fullText writes out a keyword of the full profile. Of those that hold schemas, it only
// says that they are there: the witness shows what they do.
func fullText(n *ir.Node, keyword string) string {
	switch {
	case keyword == "multipleOf" && n.Num != nil && n.Num.Multiple != nil:
		return n.Num.Multiple.Raw
	case keyword == "minProperties" && n.Obj != nil && n.Obj.Full != nil:
		return positive(n.Obj.Full.Min)
	case keyword == "maxProperties" && n.Obj != nil && n.Obj.Full != nil:
		return bounded(n.Obj.Full.Max)
	case hasMembers(n, keyword), hasElements(n, keyword), hasBeyond(n, keyword):
		return "…"
	}
	return ""
}

// hasMembers reports whether a node has a keyword about members that holds schemas or
// names.
func hasMembers(n *ir.Node, keyword string) bool {
	if n.Obj == nil || n.Obj.Full == nil {
		return false
	}
	o := n.Obj.Full
	return keyword == "patternProperties" && len(o.Patterns) > 0 || keyword == "propertyNames" && o.Names != nil ||
		keyword == "dependentRequired" && len(o.Dependents) > 0
}

// hasElements is hasMembers for elements.
func hasElements(n *ir.Node, keyword string) bool {
	if n.Arr == nil || n.Arr.Full == nil {
		return false
	}
	return keyword == "prefixItems" && len(n.Arr.Full.Prefix) > 0 || keyword == "contains" && n.Arr.Full.Contains != nil
}

// hasBeyond is hasMembers for the keywords about a whole value.
func hasBeyond(n *ir.Node, keyword string) bool {
	b := n.Beyond
	return b != nil && (keyword == "if" && len(b.Conditionals) > 0 ||
		keyword == "unevaluatedProperties" && b.Members != nil || keyword == "unevaluatedItems" && b.Elements != nil)
}

// positive writes out a count, or "" for 0.
func positive(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// bounded writes out a maximum, or "" where there is none.
func bounded(n int) string {
	if n == ir.Unbounded {
		return ""
	}
	return strconv.Itoa(n)
}
