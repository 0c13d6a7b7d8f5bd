package codegen

import (
	"strconv"
	"strings"
	"unicode"
)

// A Scope gives out names, each once. Names that differ only in case count as
// the same, so that they also make files on every system.
type Scope struct{ taken map[string]bool }

// NewScope makes a scope in which the reserved names are taken.
func NewScope(reserved ...string) *Scope {
	s := &Scope{taken: map[string]bool{}}
	for _, name := range reserved {
		s.taken[strings.ToLower(name)] = true
	}
	return s
}

// Unique is name, with the lowest number from 2 behind it that makes it new.
func (s *Scope) Unique(name string) string {
	out := name
	for n := 2; s.taken[strings.ToLower(out)]; n++ {
		if last := name[len(name)-1]; last >= '0' && last <= '9' {
			out = name + "_" + strconv.Itoa(n)
		} else {
			out = name + strconv.Itoa(n)
		}
	}
	s.taken[strings.ToLower(out)] = true
	return out
}

// Words splits a name at everything but letters and digits of ASCII.
func Words(name string) []string {
	return strings.FieldsFunc(name, func(r rune) bool {
		return r >= unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}

// CamelWords is [Words] split once more before a capital that follows a small
// letter or a digit: prUrl is pr and Url.
func CamelWords(name string) []string {
	var words []string
	for _, w := range Words(name) {
		start := 0
		for i := 1; i < len(w); i++ {
			if w[i] >= 'A' && w[i] <= 'Z' && (w[i-1] < 'A' || w[i-1] > 'Z') {
				words = append(words, w[start:i])
				start = i
			}
		}
		words = append(words, w[start:])
	}
	return words
}

// Pascal joins the capitalised words of a name: review-pr is ReviewPr. One that
// would start with a digit gets an X before it, and one without any word is X.
func Pascal(name string) string {
	var b strings.Builder
	for _, w := range Words(name) {
		b.WriteString(strings.ToUpper(w[:1]) + w[1:])
	}
	return startWithLetter(b.String(), "X")
}

func startWithLetter(name, prefix string) string {
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		return prefix + name
	}
	return name
}

// names gives every type that needs a name a unique one.
type names struct{ scope *Scope }

func newNames() *names {
	return &names{scope: NewScope("Capabilities")}
}

// assignAll names the types of all, and what is in them.
func (s *names) assignAll(all []*Named) {
	for _, n := range all {
		s.set(n.Type, func() string { return n.Name })
	}
	for _, n := range all {
		rest, nullable := n.Type.Nullable()
		if nullable && rest.Kind == Object {
			n.NotNull = s.scope.Unique(n.Name + "Object")
		}
		s.inside(rest, n.Name)
	}
}

// set gives t a name if it is to have one and has none. A type that several
// lead to keeps its first.
func (s *names) set(t *Type, name func() string) (isNew bool) {
	rest, _ := t.Nullable()
	if t = t.Flatten(); t.Kind == Union {
		t.notNull = rest // the same one from now on, so that it keeps its name
	}
	switch rest.Kind {
	case Object, Enum, Union:
		if rest.Name != "" {
			return false
		}
		rest.Name = name()
		if t.Kind == Union {
			t.Name = rest.Name
		}
	}
	return true
}

// name names t, which is found at path, and what is in it.
func (s *names) name(t *Type, path string) {
	if s.set(t, func() string { return s.scope.Unique(path) }) {
		rest, _ := t.Nullable()
		s.inside(rest, path)
	}
}

func (s *names) inside(t *Type, path string) {
	switch t.Kind {
	case Array:
		s.name(t.Elem, path+"Item")
	case Object:
		for _, m := range t.Members {
			s.name(m.Type, path+Pascal(m.Name))
		}
		if t.Elem != nil {
			s.name(t.Elem, path+"Value")
		}
	case Union:
		for _, m := range t.Of {
			s.name(m, path+m.Label())
		}
	}
}

// Label is a word for t among the parts of a union.
func (t *Type) Label() string {
	switch t := t.Flatten(); t.Kind {
	case Null:
		return "Null"
	case Boolean:
		return "Boolean"
	case Integer:
		return "Integer"
	case Number:
		return "Number"
	case String:
		return "String"
	case Enum:
		if len(t.Values) == 1 {
			return Pascal(t.Values[0])
		}
		return "Enum"
	case Array:
		return "Array"
	case Object:
		return t.objectLabel()
	case Ref:
		return t.Named.Name
	}
	return "Value"
}

// objectLabel is the value of the first member that has but one, as the
// branches of a tagged union do.
func (t *Type) objectLabel() string {
	for _, m := range t.Members {
		if e := m.Type.Flatten(); m.Required && e.Kind == Enum && e.Base == String && len(e.Values) == 1 {
			return Pascal(e.Values[0])
		}
	}
	return "Object"
}

// markRecursive finds the types that lead back to themselves.
func markRecursive(types []*Named) {
	leads := map[*Named][]*Named{}
	for _, n := range types {
		seen := map[*Type]bool{}
		var walk func(t *Type)
		walk = func(t *Type) {
			if t == nil || seen[t] {
				return
			}
			seen[t] = true
			if t.Kind == Ref {
				leads[n] = append(leads[n], t.Named)
			}
			for _, m := range t.Members {
				walk(m.Type)
			}
			for _, m := range t.Of {
				walk(m)
			}
			walk(t.Elem)
			walk(t.Flat)
		}
		walk(n.Type)
	}
	for _, start := range types {
		seen := map[*Named]bool{}
		var reach func(n *Named)
		reach = func(n *Named) {
			for _, next := range leads[n] {
				start.Recursive = start.Recursive || next == start
				if !seen[next] {
					seen[next] = true
					reach(next)
				}
			}
		}
		reach(start)
	}
}
