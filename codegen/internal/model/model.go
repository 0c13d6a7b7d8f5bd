package model

import (
	"slices"
	"time"

	"github.com/agentd/agentd/envelope"
)

// An API is what an emitter reads: one agent's capabilities as types.
type API struct {
	// Agent is whose capabilities they are.
	Agent envelope.Address
	// Digest covers the contracts, as [capability.Document.Digest] does.
	Digest string
	// Capabilities stand in declared order.
	Capabilities []Capability
	// Types are all named types: each capability's request and response, each
	// followed by the definitions that it was the first to use.
	Types []*Named
}

// Names returns the names of the capabilities, in declared order.
func (a *API) Names() []string {
	names := make([]string, len(a.Capabilities))
	for i, c := range a.Capabilities {
		names[i] = c.Name
	}
	return names
}

// ObjectTakers returns the names of those that are set [Capability.TakesObject], sorted.
func (a *API) ObjectTakers() []string {
	var names []string
	for _, c := range a.Capabilities {
		if c.TakesObject {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	return names
}

// A Capability is one function of an API.
type Capability struct {
	// Name is what callers put into a request.
	Name string
	// Ident is Name as one word of capitalised parts. No two capabilities of an
	// API have idents that differ only in case.
	Ident string
	// Skill names the code behind it.
	Skill string
	// Doc is the description, as declared.
	Doc string
	// TakesObject is set where a call without arguments is judged as {}: null and
	// an absent payload then become {} for the skill; see [schema.Schema.Arguments].
	TakesObject bool
	// Timeout is 0 where the capability leaves it to the caller.
	Timeout time.Duration
	// Request and Response are the payloads. Without a schema their type is Any.
	Request, Response *Named
}

// A Named is a type with a name of its own.
type Named struct {
	// Name starts with a capital letter and holds letters and digits of ASCII,
	// and underscores before what tells it apart from others.
	// No other Named, and no Type.Name that does not belong to it, is equal.
	Name string
	// NotNull is set where the type is an Object or null: a name, unique as Name
	// is, for the Object alone.
	NotNull string
	// Doc is the description, as declared, and then what the schema says of values
	// that the type does not.
	Doc string
	// Type is what the name stands for.
	Type *Type
	// Recursive is set where a value of the type can hold another one.
	Recursive bool

	// root is the payload whose definition this is, by the name of definition; nil
	// for a payload. The name of the root itself cannot be a definition's.
	root       *Named
	definition string
}

// A Kind determines which fields of a [Type] are used.
type Kind uint8

// The kinds of a type.
const (
	Any     Kind = iota // every JSON value
	Never               // no value
	Null                // null
	Boolean             // true and false
	Integer             // numbers without fraction; see Big
	Number              // numbers
	String              // strings
	Enum                // Values, all of kind Base
	Array               // arrays of Elem
	Object              // Members, and others as Elem says
	Union               // what any type of Of accepts
	// Intersection is what every type of Of accepts. Flat is the same set of
	// values, or a larger one, written without an intersection.
	Intersection
	Ref // what Named accepts
)

// A Type is a set of JSON values. Types are shared: emitters do not change them.
type Type struct {
	Kind Kind
	// Name is set for Object, Enum and Union: the name for languages that cannot
	// write such a type in place. It is unique like [Named.Name].
	Name string
	// Base is String, Integer, Number or Boolean.
	Base Kind
	// Values are the texts of an Enum: the characters of strings, JSON for others.
	Values []string
	// Big is set for an Integer whose bounds do not fit 64 bits.
	Big bool
	// Elem is an Array's element. For an Object it is what further members
	// hold; nil means that there are none.
	Elem *Type
	// Tuple are the elements of an Array that always has these, one after the other, for
	// languages that can say so; nil for others. Elem accepts each of them.
	Tuple []*Type
	// Members are an Object's, in declared order.
	Members []Member
	// Of are the parts of a Union or an Intersection, at least two.
	Of []*Type
	// Flat is set for an Intersection.
	Flat *Type
	// Named is set for a Ref.
	Named *Named

	// notNull is what Nullable makes of a Union. It is set with the names.
	notNull *Type
}

// A Member is one member of an Object.
type Member struct {
	// Name is the member's name in JSON: any characters.
	Name string
	// Description is as declared; see [Member.Doc].
	Description string
	Type        *Type
	// Required members are always there.
	Required bool

	notes []string // see the function notes
}

// Others accepts what any member of an Object does, named or not. The order of named
// members has no part in it.
func (t *Type) Others() *Type {
	var all []*Type
	if t.Elem != nil {
		all = append(all, t.Elem)
	}
	for _, m := range t.sorted() {
		all = append(all, m.Type)
	}
	return UnionOf(all...)
}

// Resolve follows references to a type that is none.
func (t *Type) Resolve() *Type {
	for t.Kind == Ref {
		t = t.Named.Type
	}
	return t
}

// Flatten is t without an intersection at its top.
func (t *Type) Flatten() *Type {
	for t.Kind == Intersection {
		t = t.Flat
	}
	return t
}

// Nullable splits null off: rest accepts what t does, but for null. A reference
// to a nullable type stays a reference, to what that type is without null.
// Null alone is not nullable, nor is Any.
func (t *Type) Nullable() (rest *Type, nullable bool) {
	t = t.Flatten()
	switch t.Kind {
	case Ref:
		_, nullable = t.Named.Type.Nullable()
		return t, nullable
	case Union:
		if t.notNull != nil {
			return t.notNull, t.notNull != t
		}
		var others []*Type
		for _, m := range t.Of {
			if m.Kind == Null {
				nullable = true
				continue
			}
			m, null := m.Nullable()
			nullable = nullable || null
			others = append(others, m)
		}
		if !nullable {
			return t, false
		}
		if len(others) == 1 {
			return others[0], true
		}
		return &Type{Kind: Union, Name: t.Name, Of: others}, true
	}
	return t, false
}

// IsMap reports whether t is an Object of unnamed members only.
func (t *Type) IsMap() bool { return t.Kind == Object && len(t.Members) == 0 && t.Elem != nil }

//nolint:gochecknoglobals // constants: a shared Type is never changed
var (
	anyType   = &Type{Kind: Any}
	neverType = &Type{Kind: Never}
)
