package model

import "github.com/agentd/agentd/codegen/internal/ident"

// names gives every type that needs a name a unique one.
type names struct{ scope *ident.Scope }

func newNames() *names {
	return &names{scope: ident.NewScope("Capabilities")}
}

// assignAll names all named types, and then the types inside them. The order
// makes a payload's own name win over a name derived from a path.
func (s *names) assignAll(all []*Named) {
	for _, n := range all {
		s.set(n.Type, func() string { return n.Name })
	}
	for _, n := range all {
		// For languages whose classes cannot include null: the class needs a name
		// beside that of the nullable alias.
		rest, nullable := n.Type.Nullable()
		if nullable && rest.Kind == Object {
			n.NotNull = s.scope.Unique(n.Name + "Object")
		}
		s.inside(rest, n.Name)
	}
}

// set gives t a name if its kind needs one and it has none. A type reached by
// several paths keeps its first name.
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
			// The union with null has no other name; emitters look at either.
			t.Name = rest.Name
		}
	}
	return true
}

// name names t, found at path, and the types inside it.
func (s *names) name(t *Type, path string) {
	if s.set(t, func() string { return s.scope.Unique(path) }) {
		rest, _ := t.Nullable()
		s.inside(rest, path)
	}
}

// inside names the parts of t. A path is the words that lead to a part: the
// members' names, Item for an element, Value for members of any name.
func (s *names) inside(t *Type, path string) {
	switch t.Kind {
	case Array:
		s.name(t.Elem, path+"Item")
	case Object:
		for _, m := range t.Members {
			s.name(m.Type, path+ident.Pascal(m.Name))
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
