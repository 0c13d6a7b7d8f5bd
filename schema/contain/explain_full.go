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
	if keyword == "multipleOf" && n.Num != nil && n.Num.Multiple != nil {
		return n.Num.Multiple.Raw
	}
	present := false
	if o := n.Obj; o != nil && o.Full != nil {
		switch keyword {
		case "minProperties":
			return positive(o.Full.Min)
		case "maxProperties":
			return bounded(o.Full.Max)
		case "patternProperties":
			present = len(o.Full.Patterns) > 0
		case "propertyNames":
			present = o.Full.Names != nil
		case "dependentRequired":
			present = len(o.Full.Dependents) > 0
		}
	}
	if a := n.Arr; a != nil && a.Full != nil {
		present = present || keyword == "prefixItems" && len(a.Full.Prefix) > 0 || keyword == "contains" && a.Full.Contains != nil
	}
	if b := n.Beyond; b != nil {
		present = present || keyword == "if" && len(b.Conditionals) > 0 ||
			keyword == "unevaluatedProperties" && b.Members != nil || keyword == "unevaluatedItems" && b.Elements != nil
	}
	if present {
		return "…"
	}
	return ""
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
