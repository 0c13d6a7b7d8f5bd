package schema

import (
	"github.com/agentd/agentd/internal/ijson"
)

// run is the scratch space of one pass over one payload. It decides whether
// the payload is valid, reading each byte once unless combinators ask for
// more, and stops at the first fault of any kind.
//
// The pass is a recursive descent over the bytes that carries the schema
// along: no tree of values is built, because what a value was is of no
// interest once its schema has passed it. Syntax and schema are judged
// together, so that bytes the schema accepts have also been checked to be
// strict JSON. What must look at a value as a whole (const, enum and
// uniqueItems with arrays or objects, the later branches of a combinator)
// reads it again, and then knows that the bytes are sound.
//
// Methods that judge a value return the offset after it. A negative result r
// means that it does not pass, or is not JSON, and that the fault shows at
// offset ^r.
type run struct {
	data    []byte
	memoise bool
	memo    memo
	any     *node // accepts everything; its id is endID

	anyArray  arrayRule
	anyObject objectRule

	names   ijson.Names   // names of members that no schema declares
	skipper ijson.Scanner // values that no schema constrains
	wide    []uint64      // which properties were seen, beyond the first 64
	text    []byte        // a string without its escapes

	known  identifier // finds values of const and enum
	unique identifier // numbers the elements of arrays with uniqueItems
	ids    interner   // the table of unique
	seen   memo       // which numbers occurred in which array
	arrays uint32     // the number of the last array with uniqueItems
}

// newRun returns scratch space for payloads of one schema, one at a time.
func newRun(s *compiledSchema) *run {
	r := &run{any: &node{id: endID, any: true, shared: true, types: anyType}}
	r.any.final = r.any
	r.anyArray.max = unbounded
	r.known = identifier{table: &s.literals, frozen: true}
	r.unique = identifier{table: &r.ids, memo: &r.memo, memoID: identityID}
	r.remember(s.memoise)
	return r
}

// remember chooses whether to judge through the memo.
func (r *run) remember(yes bool) {
	r.memoise = yes
	r.known.memo, r.known.memoID = nil, literalID
	if yes {
		r.known.memo = &r.memo
	}
}

// begin prepares for a payload. What the last one left behind has been cleared
// by end, except for the names of objects that were open at a fault.
func (r *run) begin(data []byte) {
	r.data = data
	r.names.Reset()
	r.wide = r.wide[:0]
	r.arrays = 0
}

// end gives up the payload, and scratch space that it made grow beyond reason.
func (r *run) end() {
	r.data = nil
	r.memo.reset()
	r.names.Trim()
	r.skipper.Trim()
	if r.arrays > 0 {
		r.ids.trim()
		r.seen.reset()
	}
	if cap(r.text) > maxKeptBytes {
		r.text = nil
	}
	if cap(r.unique.key) > maxKeptBytes || cap(r.unique.pairs) > maxKeptSlots {
		r.unique.key, r.unique.pairs = nil, nil
	}
}

// document judges the whole payload: one value, with white space around it.
func (r *run) document(root *node, depth int) bool {
	end := r.value(root, ijson.SkipSpace(r.data, 0), depth)
	return end >= 0 && ijson.SkipSpace(r.data, end) == len(r.data)
}

// value judges the value at i, where no white space stands. depth is the
// number of containers that may still open.
func (r *run) value(n *node, i, depth int) int {
	if n.combines || r.memoise {
		return r.combined(n, i, depth)
	}
	return r.own(n, i, depth)
}

// skip passes over a value that no schema constrains.
func (r *run) skip(i, depth int) int {
	if r.memoise {
		return r.combined(r.any, i, depth)
	}
	end, err := r.skipper.Skip(r.data, i, depth)
	if err != nil {
		return ^i
	}
	return end
}

// own judges by all keywords but the combinators. The type comes first: it is
// known from the first byte, and most wrong values and most branches of
// unions fail it.
func (r *run) own(n *node, i, depth int) int {
	if i >= len(r.data) {
		return ^i
	}
	kind := kindOf(r.data[i])
	if n.types&typeOf(kind) == 0 && (kind != kindNumber || n.types&typeInteger == 0) {
		return ^i
	}
	var end int
	switch kind {
	case kindString:
		end = r.stringValue(n.str, i)
	case kindNumber:
		end = r.numberValue(n, i)
	case kindObject:
		end = r.object(n.obj, i, depth-1)
	case kindArray:
		end = r.array(n.arr, i, depth-1)
	default:
		end = r.word(i)
	}
	if end < 0 || n.enum == nil && n.constant == nil {
		return end
	}
	if n.enum != nil && !r.among(n.enum, kind, i, end) || n.constant != nil && !r.among(n.constant, kind, i, end) {
		return ^i
	}
	return end
}

// word passes over true, false or null. A byte that starts no JSON value has the
// kind null and is refused here.
func (r *run) word(i int) int {
	end, err := ijson.ScanLiteral(r.data, i)
	if err != nil {
		return ^i
	}
	return end
}

// stringValue judges the string at i. rule is nil where nothing constrains
// strings. The length comes first and ends the judgement if it is wrong: with a
// maxLength, pattern and format never read more than that.
func (r *run) stringValue(rule *stringRule, i int) int {
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
	if rule.pattern == nil && rule.format == "" {
		return end
	}
	if escaped {
		raw = r.unescape(raw)
	}
	if !hasText(rule, raw) {
		return ^i
	}
	return end
}

// hasText reports whether the characters of a string fit pattern and format.
func hasText(s *stringRule, text []byte) bool {
	return (s.pattern == nil || s.pattern.match(text)) && (s.format == "" || s.format.match(text))
}

// unescape returns the characters of a string, until the next call.
func (r *run) unescape(raw []byte) []byte {
	r.text = ijson.AppendUnquoted(r.text[:0], raw)
	return r.text
}

// hasLength reports whether a string has an acceptable number of code points. A
// code point takes at most four bytes unless it is escaped, so that most
// strings need no counting.
func hasLength(s *stringRule, raw []byte, escaped bool) bool {
	if s.min == 0 && len(raw) <= s.max {
		return true
	}
	if !escaped {
		if len(raw) < s.min {
			return false
		}
		if len(raw) <= s.max && len(raw)/4 >= s.min {
			return true
		}
	}
	n := ijson.CodePoints(raw)
	return s.min <= n && n <= s.max
}

// numberValue judges the number at i.
func (r *run) numberValue(n *node, i int) int {
	end, integer, err := ijson.ScanNumber(r.data, i)
	if err != nil {
		return ^i
	}
	token := r.data[i:end]
	// Only a token with a fraction or an exponent needs a closer look: 1.0 and
	// 1e2 are integers (draft-07 section 6.1.1).
	if n.types&typeNumber == 0 && !integer && !parseDecimal(token).isInteger() {
		return ^i
	}
	if n.num != nil && !within(n.num, token, integer) {
		return ^i
	}
	return end
}

// within reports whether a number is within the bounds. Most numbers and most
// bounds are integers of up to 18 digits, which compare as such.
func within(b *numberRule, token []byte, integer bool) bool {
	if integer && b.fast {
		if v, ok := smallInt(token); ok {
			return b.low <= v && v <= b.high
		}
	}
	return withinExactly(b, token)
}

// withinExactly is within for every number. Its large frame is kept out of within: stacks
// that validate grow less.
func withinExactly(b *numberRule, token []byte) bool {
	d := parseDecimal(token)
	return b.min.order(d) >= 0 && b.max.order(d) <= 0 &&
		(b.above == nil || b.above.order(d) > 0) &&
		(b.below == nil || b.below.order(d) < 0)
}

// order compares a number with the bound: -1, 0 or 1. An absent bound equals every
// number, which suits inclusive bounds; exclusive ones are tested for nil first.
func (b *bound) order(d decimal) int {
	if b == nil {
		return 0
	}
	return d.compare(b.decimal)
}

// among reports whether the checked value at i is one of the rule's. Strings, by
// far the most frequent, are compared as text. Everything else is numbered, so
// that 1.0 equals 1 and the order of members does not count.
func (r *run) among(rule *enumRule, kind kind, i, end int) bool {
	if rule.kinds&typeOf(kind) == 0 {
		return false
	}
	if kind == kindString {
		text := r.data[i+1 : end-1]
		for _, c := range text {
			if c == '\\' {
				text = r.unescape(text)
				break
			}
		}
		return hasString(rule, text)
	}
	// The value equals one of the rule's exactly if it has the same number. A
	// value that occurs nowhere in the schema has none.
	id, _, ok := r.known.identify(r.data, i)
	if !ok {
		return false
	}
	_, ok = rule.ids[id]
	return ok
}

// hasString reports whether a string is one of the rule's. Up to eight strings
// are compared one by one, more are looked up.
func hasString(r *enumRule, text []byte) bool {
	if r.strings != nil {
		_, ok := r.strings[string(text)]
		return ok
	}
	for _, s := range r.small {
		if s == string(text) {
			return true
		}
	}
	return false
}
