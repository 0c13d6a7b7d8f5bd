package verdict

import (
	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/schema/internal/ir"
	"github.com/agentd/agentd/schema/internal/memo"
)

// combined judges by all keywords, through the memo where that may save work:
// for a node that several others lead to, and a value with parts or a node that
// takes many steps. A node that only one other leads to needs no entry of its
// own: it is judged again only if that one is, which has an entry.
func (r *Run) combined(n *ir.Node, i, depth int) int {
	if !r.memoise || !n.Shared || !n.Heavy && !hasParts(r.data, i) {
		return r.whole(n, i, depth)
	}
	if result, ok := r.memo.Get(memo.Key(n.ID, i)); ok {
		r.spared += max(result, ^result) - i
		return result
	}
	end := r.whole(n, i, depth)
	r.memo.Put(memo.Key(n.ID, i), end)
	return end
}

// hasParts reports whether a container that is not empty starts at i.
func hasParts(data []byte, i int) bool {
	return i+1 < len(data) && (data[i] == '[' && data[i+1] != ']' || data[i] == '{' && data[i+1] != '}')
}

// whole judges by all keywords.
func (r *Run) whole(n *ir.Node, i, depth int) int {
	// A branch that passes has read the whole value, so that only what a
	// combinator cannot vouch for is read beforehand.
	end := -1
	if !n.Pure {
		end = r.own(n, i, depth)
	}
	if n.Combines && (n.Pure || end >= 0) {
		end = r.combine(n, i, depth, end)
	}
	return end
}

// combine judges by the combinators. end is the end of the value, or negative
// while it is unknown. The keyword not comes last: where it holds, the value
// may not have been read to its end.
func (r *Run) combine(n *ir.Node, i, depth, end int) int {
	if n.AllOf != nil {
		if end = r.allOf(n.AllOf, i, depth); end < 0 {
			return end
		}
	}
	if n.AnyOf != nil {
		if end = r.anyOf(n.AnyOf, i, depth); end < 0 {
			return end
		}
	}
	if n.OneOf != nil {
		if end = r.oneOf(n.OneOf, i, depth); end < 0 {
			return end
		}
	}
	if n.NotTo != nil {
		if r.Branch(n.NotTo, i, depth) >= 0 {
			return ^i
		}
		if end < 0 { // what not rejects has not been read to its end
			end = r.Skip(i, depth)
		}
	}
	if n.Beyond != nil {
		return r.beyond(n, i, depth, end)
	}
	return end
}

// Branch judges by a schema whose failure need not be the end. A fault leaves
// the objects around it open on the shared stacks; they are cut back, since the
// next branch opens the same objects again.
//
// Branches read bytes that others have read, and so pay for them. Without a budget
// none is looked at any more, which ends the run soon.
func (r *Run) Branch(n *ir.Node, i, depth int) int {
	if r.over {
		return ^i
	}
	mark, wide, before := r.names.Mark(), len(r.wide), r.account()
	end := r.value(n, i, depth)
	read := end
	if end < 0 {
		read = ^end
		r.names.Rewind(mark)
		r.wide = r.wide[:wide]
	}
	// What branches inside this one have read is paid for, and what the memo knew has
	// not been read.
	r.Spend(max(read-i-(before-r.account()), 0) + 1)
	return end
}

// allOf returns the end of the value if all branches match, or else the first
// fault.
func (r *Run) allOf(c *ir.Combinator, i, depth int) (end int) {
	for _, b := range c.To {
		if end = r.Branch(b, i, depth); end < 0 {
			return end
		}
	}
	return end
}

// anyOf returns the end of the value if some branch matches, or else the
// fault of the branch that got furthest, which is most likely the one that was
// meant.
func (r *Run) anyOf(c *ir.Combinator, i, depth int) int {
	if k, decided := r.Pick(c.Dispatch, i, depth); decided {
		if k < 0 {
			return ^i
		}
		return r.Branch(c.To[k], i, depth)
	}
	// How far a branch came is what the report goes by when none matches.
	furthest := i
	for _, b := range c.To {
		end := r.Branch(b, i, depth)
		if end >= 0 {
			return end
		}
		furthest = max(furthest, ^end)
	}
	return ^furthest
}

// oneOf returns the end of the value if exactly one branch matches. Where a
// property decides, the other branches need not be tried: the compiler has shown
// that they fail.
func (r *Run) oneOf(c *ir.Combinator, i, depth int) int {
	if k, decided := r.Pick(c.Dispatch, i, depth); decided {
		if k < 0 {
			return ^i
		}
		return r.Branch(c.To[k], i, depth)
	}
	// All branches are tried until two match: one match is not the answer yet.
	matched, furthest := -1, i
	for _, b := range c.To {
		end := r.Branch(b, i, depth)
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

// Pick finds the only branch that the value at i can match: k, or -1 where
// none can. It reports false where that cannot be told in advance, because the
// value is no object or lacks the deciding property.
func (r *Run) Pick(d *ir.Dispatch, i, depth int) (k int, decided bool) {
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
			name = r.Unescape(name)
		}
		if string(name) == d.Property {
			return r.tag(d, value), true
		}
		// Members before the deciding one are read over here and read again by
		// the branch; most schemas put the tag first.
		if i = r.Skip(value, depth-1); i < 0 {
			return -1, true
		}
		r.Spend(i - value)
		if i = ijson.SkipSpace(r.data, i); i < len(r.data) && r.data[i] == ',' {
			i = ijson.SkipSpace(r.data, i+1)
		}
	}
	return 0, false
}

// tag returns the branch for the value of the deciding property, or -1. Only
// strings pick a branch; the compiler saw to it that no branch takes another
// value.
func (r *Run) tag(d *ir.Dispatch, i int) int {
	if i >= len(r.data) || r.data[i] != '"' {
		return -1
	}
	end, escaped, err := ijson.ScanString(r.data, i)
	if err != nil {
		return -1
	}
	text := r.data[i+1 : end-1]
	if escaped {
		text = r.Unescape(text)
	}
	if k, ok := d.Branch[string(text)]; ok {
		return k
	}
	return -1
}
