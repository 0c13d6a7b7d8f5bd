package model

import "github.com/agentd/agentd/codegen/internal/ident"

// names gives every type that needs a name a unique one.
type names struct{ scope *ident.Scope }

func newNames() *names {
	return &names{scope: ident.NewScope("Capabilities")}
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
