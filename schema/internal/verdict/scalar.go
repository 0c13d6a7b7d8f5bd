package verdict

import (
	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/schema/internal/decimal"
	"github.com/agentd/agentd/schema/internal/ir"
)

// stringValue judges the string at i. rule is nil where nothing constrains
// strings. The length comes first and ends the judgement if it is wrong: with a
// maxLength, pattern and format never read more than that.
func (r *Run) stringValue(rule *ir.StringRule, i int) int {
	end, escaped, err := ijson.ScanString(r.data, i)
	if err != nil {
		return ^i
	}
	if rule == nil {
		return end
	}
	raw := r.data[i+1 : end-1]
	if !hasLength(rule, raw, escaped) {
		return ^i
	}
	if rule.Pattern == nil && rule.Format == "" {
		return end
	}
	if escaped {
		raw = r.Unescape(raw)
	}
	if !r.HasBudget(rule, raw) || !hasText(rule, raw) {
		return ^i
	}
	return end
}

// HasBudget pays for matching the pattern of a rule, if that takes more than a look-up
// for each character, and reports whether the budget suffices.
func (r *Run) HasBudget(s *ir.StringRule, text []byte) bool {
	return s.Pattern == nil || s.Pattern.Work == 0 || r.Spend(s.Pattern.Work*len(text))
}

// hasText reports whether the characters of a string fit pattern and format.
func hasText(s *ir.StringRule, text []byte) bool {
	return (s.Pattern == nil || s.Pattern.Match(text)) && (s.Format == "" || s.Format.Match(text))
}

// Unescape returns the characters of a string, until the next call.
func (r *Run) Unescape(raw []byte) []byte {
	r.text = ijson.AppendUnquoted(r.text[:0], raw)
	return r.text
}

// hasLength reports whether a string has an acceptable number of code points. A
// code point takes at most four bytes unless it is escaped, so that most
// strings need no counting.
func hasLength(s *ir.StringRule, raw []byte, escaped bool) bool {
	if s.Min == 0 && len(raw) <= s.Max {
		return true
	}
	if !escaped {
		if len(raw) < s.Min {
			return false
		}
		if len(raw) <= s.Max && len(raw)/4 >= s.Min {
			return true
		}
	}
	n := ijson.CodePoints(raw)
	return s.Min <= n && n <= s.Max
}

// numberValue judges the number at i.
func (r *Run) numberValue(n *ir.Node, i int) int {
	end, integer, err := ijson.ScanNumber(r.data, i)
	if err != nil {
		return ^i
	}
	token := r.data[i:end]
	// Only a token with a fraction or an exponent needs a closer look: 1.0 and
	// 1e2 are integers (draft-07 section 6.1.1).
	if n.Types&ir.TypeNumber == 0 && !integer && !decimal.Parse(token).IsInteger() {
		return ^i
	}
	if n.Num != nil && !within(n.Num, token, integer) {
		return ^i
	}
	return end
}

// within reports whether a number is within the bounds. Most numbers and most
// bounds are integers of up to 18 digits, which compare as such.
func within(b *ir.NumberRule, token []byte, integer bool) bool {
	if integer && b.Fast {
		if v, ok := decimal.SmallInt(token); ok {
			return b.Low <= v && v <= b.High
		}
	}
	return withinExactly(b, token)
}

// withinExactly is within for every number. Its large frame is kept out of within: stacks
// that validate grow less.
func withinExactly(b *ir.NumberRule, token []byte) bool {
	d := decimal.Parse(token)
	return b.Min.Order(d) >= 0 && b.Max.Order(d) <= 0 &&
		(b.Above == nil || b.Above.Order(d) > 0) &&
		(b.Below == nil || b.Below.Order(d) < 0) &&
		(b.Multiple == nil || b.Multiple.Divides(d))
}
