package schema

import (
	"github.com/agentd/agentd/internal/ijson"
)

// combined judges by all keywords, through the memo where that may save work:
// for a node that several others lead to, and a value with parts or a node that
// takes many steps. A node that only one other leads to needs no entry of its
// own: it is judged again only if that one is, which has an entry.
func (r *run) combined(n *node, i, depth int) int {
	if !r.memoise || !n.shared || !n.heavy && !hasParts(r.data, i) {
		return r.whole(n, i, depth)
	}
	if result, ok := r.memo.get(memoKey(n.id, i)); ok {
		return result
	}
	end := r.whole(n, i, depth)
	r.memo.put(memoKey(n.id, i), end)
	return end
}

// hasParts reports whether a container that is not empty starts at i.
func hasParts(data []byte, i int) bool {
	return i+1 < len(data) && (data[i] == '[' && data[i+1] != ']' || data[i] == '{' && data[i+1] != '}')
}

// whole judges by all keywords.
func (r *run) whole(n *node, i, depth int) int {
	// A branch that passes has read the whole value, so that only what a
	// combinator cannot vouch for is read beforehand.
	end := -1
	if !n.pure {
		end = r.own(n, i, depth)
	}
	if n.combines && (n.pure || end >= 0) {
		end = r.combine(n, i, depth, end)
	}
	return end
}

// combine judges by the combinators. end is the end of the value, or negative
// while it is unknown. The keyword not comes last: where it holds, the value
// may not have been read to its end.
func (r *run) combine(n *node, i, depth, end int) int {
	if n.allOf != nil {
		if end = r.allOf(n.allOf, i, depth); end < 0 {
			return end
		}
	}
	if n.anyOf != nil {
		if end = r.anyOf(n.anyOf, i, depth); end < 0 {
			return end
		}
	}
	if n.oneOf != nil {
		if end = r.oneOf(n.oneOf, i, depth); end < 0 {
			return end
		}
	}
	if n.notTo != nil {
		if r.branch(n.notTo, i, depth) >= 0 {
			return ^i
		}
		if end < 0 { // what not rejects has not been read to its end
			end = r.skip(i, depth)
		}
	}
	return end
}

// branch judges by a schema whose failure need not be the end. A fault leaves
// the objects around it open on the shared stacks; they are cut back, since the
// next branch opens the same objects again.
func (r *run) branch(n *node, i, depth int) int {
	mark, wide := r.names.Mark(), len(r.wide)
	end := r.value(n, i, depth)
	if end < 0 {
		r.names.Rewind(mark)
		r.wide = r.wide[:wide]
	}
	return end
}

// allOf returns the end of the value if all branches match, or else the first
// fault.
func (r *run) allOf(c *combinator, i, depth int) (end int) {
	for _, b := range c.to {
		if end = r.branch(b, i, depth); end < 0 {
			return end
		}
	}
	return end
}

// anyOf returns the end of the value if some branch matches, or else the
// fault of the branch that got furthest, which is most likely the one that was
// meant.
func (r *run) anyOf(c *combinator, i, depth int) int {
	if k, decided := r.pick(c.dispatch, i, depth); decided {
		if k < 0 {
			return ^i
		}
		return r.branch(c.to[k], i, depth)
	}
	// How far a branch came is what the report goes by when none matches.
	furthest := i
	for _, b := range c.to {
		end := r.branch(b, i, depth)
		if end >= 0 {
			return end
		}
		furthest = max(furthest, ^end)
	}
	return ^furthest
}

// oneOf returns the end of the value if exactly one branch matches. Where a
// property decides, the other branches need not be tried: newDispatch has shown
// that they fail.
func (r *run) oneOf(c *combinator, i, depth int) int {
	if k, decided := r.pick(c.dispatch, i, depth); decided {
		if k < 0 {
			return ^i
		}
		return r.branch(c.to[k], i, depth)
	}
	// All branches are tried until two match: one match is not the answer yet.
	matched, furthest := -1, i
	for _, b := range c.to {
		end := r.branch(b, i, depth)
		switch {
		case end < 0:
			furthest = max(furthest, ^end)
		case matched >= 0:
			return ^i
		default:
			matched = end
		}
	}
	if matched < 0 {
		return ^furthest
	}
	return matched
}

// pick finds the only branch that the value at i can match: k, or -1 where
// none can. It reports false where that cannot be told in advance, because the
// value is no object or lacks the deciding property.
func (r *run) pick(d *dispatch, i, depth int) (k int, decided bool) {
	if d == nil || depth <= 0 || i >= len(r.data) || r.data[i] != '{' {
		return 0, false
	}
	for i = ijson.SkipSpace(r.data, i+1); i < len(r.data) && r.data[i] == '"'; {
		name, escaped, value := r.key(i)
		// The object is malformed at this place, so that no branch can match.
		if value < 0 {
			return -1, true
		}
		if escaped {
			name = r.unescape(name)
		}
		if string(name) == d.property {
			return r.tag(d, value), true
		}
		// Members before the deciding one are read over here and read again by
		// the branch; most schemas put the tag first.
		if i = r.skip(value, depth-1); i < 0 {
			return -1, true
		}
		if i = ijson.SkipSpace(r.data, i); i < len(r.data) && r.data[i] == ',' {
			i = ijson.SkipSpace(r.data, i+1)
		}
	}
	return 0, false
}

// tag returns the branch for the value of the deciding property, or -1. Only
// strings pick a branch; newDispatch saw to it that no branch takes another
// value.
func (r *run) tag(d *dispatch, i int) int {
	if i >= len(r.data) || r.data[i] != '"' {
		return -1
	}
	end, escaped, err := ijson.ScanString(r.data, i)
	if err != nil {
		return -1
	}
	text := r.data[i+1 : end-1]
	if escaped {
		text = r.unescape(text)
	}
	if k, ok := d.branch[string(text)]; ok {
		return k
	}
	return -1
}
