package schema

import (
	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/schema/internal/ir"
)

// Arguments returns what is judged in place of payload where s is the schema of
// a function's arguments. It is the one rule for calls without arguments:
//
// A payload that is null or absent, white space aside, is judged as {} if s
// rejects null and objects are among the types that its keywords type, const and
// enum leave, through $ref, allOf, anyOf and oneOf. Otherwise it is judged as
// null. Any other payload is returned as it is.
//
// It follows that such a payload is valid exactly if s accepts null or {}, and
// that its violations are those of an object wherever s is about objects. Both
// are decided when s is compiled. Only the check sees {}: what travels is the
// payload itself.
func (s *Schema) Arguments(payload []byte) []byte {
	switch {
	case len(payload) > 0 && payload[0] == '{', !ijson.IsAbsent(payload):
		return payload
	case s.objects:
		return []byte("{}")
	}
	return []byte("null")
}

// takesObjects decides for [Schema.Arguments] whether {} stands for null. It is
// called once s can validate.
func (s *Schema) takesObjects() bool {
	return !s.Valid([]byte("null")) && mayBeObject(s.form.Root, map[*ir.Node]bool{})
}

// mayBeObject reports whether type, const and enum leave objects. It does not ask
// whether one passes the other keywords: a call without arguments to a function
// that requires some is told which, and not that null is no object. Nodes on the
// same value form no cycles; known keeps what is shared from
// being asked again.
func mayBeObject(n *ir.Node, known map[*ir.Node]bool) bool {
	n = n.Target()
	if may, ok := known[n]; ok {
		return may
	}
	may := n.Types&ir.TypeObject != 0 && listsObject(n.Constant) && listsObject(n.Enum)
	if may && n.AllOf != nil {
		for _, b := range n.AllOf.To {
			may = may && mayBeObject(b, known)
		}
	}
	may = may && someObject(n.AnyOf, known) && someObject(n.OneOf, known)
	known[n] = may
	return may
}

// listsObject reports whether an object is among the values; an absent rule
// excludes none.
func listsObject(r *ir.EnumRule) bool { return r == nil || r.Kinds&ir.TypeObject != 0 }

// someObject reports whether a branch may take an object; an absent combinator
// excludes none.
func someObject(c *ir.Combinator, known map[*ir.Node]bool) bool {
	if c == nil {
		return true
	}
	for _, b := range c.To {
		if mayBeObject(b, known) {
			return true
		}
	}
	return false
}
