package verdict

import (
	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/schema/internal/decimal"
	"github.com/agentd/agentd/schema/internal/ir"
	"github.com/agentd/agentd/schema/internal/jsontree"
)

// Among reports whether the checked value at i is one of the rule's. Strings, by
// far the most frequent, are compared as text, and other values one by one while there
// are few. Otherwise they are numbered, so that 1.0 equals 1 and the order of members
// does not count.
func (r *Run) Among(rule *ir.EnumRule, kind jsontree.Kind, i, end int) bool {
	if rule.Kinds&ir.TypeOf(kind) == 0 {
		return false
	}
	if kind == jsontree.String {
		text := r.data[i+1 : end-1]
		for _, c := range text {
			if c == '\\' {
				text = r.Unescape(text)
				break
			}
		}
		return hasString(rule, text)
	}
	if rule.Trees != nil {
		for _, t := range rule.Trees {
			if _, same := r.equals(t, i); same {
				return true
			}
		}
		return false
	}
	// The value equals one of the rule's exactly if it has the same number. A
	// value that occurs nowhere in the schema has none.
	id, _, ok := r.known.Identify(r.data, i)
	if !ok {
		return false
	}
	_, ok = rule.IDs[id]
	return ok
}

// hasString reports whether a string is one of the rule's. Up to eight strings
// are compared one by one, more are looked up.
func hasString(r *ir.EnumRule, text []byte) bool {
	if r.Strings != nil {
		_, ok := r.Strings[string(text)]
		return ok
	}
	for _, s := range r.Small {
		if s == string(text) {
			return true
		}
	}
	return false
}

// equals reports whether the checked value at i equals t, and where it ends if it
// does. It reads no more of the value than t has parts.
func (r *Run) equals(t *jsontree.Tree, i int) (end int, same bool) {
	if jsontree.KindOf(r.data[i]) != t.Kind {
		return 0, false
	}
	switch t.Kind {
	case jsontree.String:
		end, escaped, _ := ijson.ScanString(r.data, i)
		return end, string(r.nameOf(r.data[i+1:end-1], escaped)) == t.Text
	case jsontree.Number:
		end, _, _ := ijson.ScanNumber(r.data, i)
		token := r.data[i:end]
		return end, sameNumber(token, t.Raw)
	case jsontree.Array:
		return r.equalItems(t.Items, i)
	case jsontree.Object:
		return r.equalMembers(t.Members, i)
	}
	end, _ = ijson.ScanLiteral(r.data, i)
	return end, r.data[i] == t.Raw[0]
}

// sameNumber reports whether two tokens stand for one number, of which the second is a
// schema's.
func sameNumber(a, b []byte) bool {
	if v, ok := decimal.Plain(a); ok {
		if w, ok := decimal.Plain(b); ok {
			return v == w
		}
	}
	return decimal.Parse(a).Compare(decimal.Parse(b)) == 0
}

// equalItems is equals for arrays.
func (r *Run) equalItems(items []*jsontree.Tree, i int) (end int, same bool) {
	i = ijson.SkipSpace(r.data, i+1)
	for _, item := range items {
		if r.data[i] == ']' {
			return 0, false
		}
		if i, same = r.equals(item, i); !same {
			return 0, false
		}
		if i = ijson.SkipSpace(r.data, i); r.data[i] == ',' {
			i = ijson.SkipSpace(r.data, i+1)
		}
	}
	return i + 1, r.data[i] == ']'
}

// equalMembers is equals for objects. No name is repeated on either side, so that they
// are equal if each member of the value is one of t, and there are as many.
func (r *Run) equalMembers(members []jsontree.Member, i int) (end int, same bool) {
	count := 0
	for i = ijson.SkipSpace(r.data, i+1); r.data[i] != '}'; count++ {
		raw, escaped, value := r.key(i)
		m := memberOf(members, r.nameOf(raw, escaped))
		if m == nil {
			return 0, false
		}
		if i, same = r.equals(m, value); !same {
			return 0, false
		}
		if i = ijson.SkipSpace(r.data, i); r.data[i] == ',' {
			i = ijson.SkipSpace(r.data, i+1)
		}
	}
	return i + 1, count == len(members)
}

// memberOf returns the value of the member with a name, or nil.
func memberOf(members []jsontree.Member, name []byte) *jsontree.Tree {
	for k := range members {
		if members[k].Name == string(name) {
			return members[k].Value
		}
	}
	return nil
}
