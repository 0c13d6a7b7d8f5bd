package contain

import (
	"strconv"
	"strings"

	"github.com/agentd/agentd/internal/truncate"
	"github.com/agentd/agentd/schema/internal/ir"
)

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

// keywordText writes out the value of a keyword of this node, or returns "" if
// it is absent. At most ten values of an enum are shown.
func keywordText(n *ir.Node, keyword string) string {
	switch keyword {
	case "type":
		return strings.Join(n.TypeList, "|")
	case "const", "enum":
		rule := n.Enum
		if keyword == "const" {
			rule = n.Constant
		}
		if rule == nil {
			return ""
		}
		values := make([]string, 0, len(rule.Values))
		// A message is for people: ten values show what the enum is about.
		for _, l := range rule.Values[:min(len(rule.Values), 10)] {
			values = append(values, string(l.Raw))
		}
		if len(rule.Values) > len(values) {
			values = append(values, "…")
		}
		return strings.Join(values, "|")
	}
	if text := stringText(n.Str, keyword); text != "" {
		return text
	}
	if text := fullText(n, keyword); text != "" {
		return text
	}
	switch {
	case keyword == "uniqueItems" && n.Arr != nil && n.Arr.Unique:
		return "true"
	case n.Num != nil:
		if text := boundText(n.Num, keyword); text != "" {
			return text
		}
	}
	return sizeText(n, keyword)
}

// stringText writes out pattern or format.
func stringText(r *ir.StringRule, keyword string) string {
	switch {
	case r == nil:
	case keyword == "pattern" && r.Pattern != nil:
		return r.Pattern.Source
	case keyword == "format":
		return string(r.Format)
	}
	return ""
}

// boundText writes out a limit of numbers.
func boundText(r *ir.NumberRule, keyword string) string {
	switch keyword {
	case "minimum":
		return boundRaw(r.Min)
	case "maximum":
		return boundRaw(r.Max)
	case "exclusiveMinimum":
		return boundRaw(r.Above)
	case "exclusiveMaximum":
		return boundRaw(r.Below)
	}
	return ""
}

// boundRaw is a limit as written; "" where it is absent.
func boundRaw(b *ir.Bound) string {
	if b == nil {
		return ""
	}
	return b.Raw
}

// sizeText writes out a limit of lengths or of elements. A least size of 0 says
// nothing, however it is written.
func sizeText(n *ir.Node, keyword string) string {
	least, most := 0, ir.Unbounded
	switch {
	case strings.HasSuffix(keyword, "Length") && n.Str != nil:
		least, most = n.Str.Min, n.Str.Max
	case strings.HasSuffix(keyword, "Items") && n.Arr != nil:
		least, most = n.Arr.Min, n.Arr.Max
	}
	switch {
	case strings.HasPrefix(keyword, "min") && least > 0:
		return strconv.Itoa(least)
	case strings.HasPrefix(keyword, "max") && most != ir.Unbounded:
		return strconv.Itoa(most)
	}
	return ""
}
