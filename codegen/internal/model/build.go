package model

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/schema"
)

// New builds the model of a document. The error is for a document that was
// loaded without compiling its schemas.
func New(doc *capability.Document) (*API, error) {
	api := &API{Agent: doc.Agent, Digest: doc.Digest()}
	idents := capabilityIdents(doc.Names())
	for _, c := range doc.Capabilities {
		ident := idents[c.Name]
		out := Capability{Name: c.Name, Ident: ident, Skill: c.Skill, Doc: c.Description, Timeout: c.Timeout}
		for _, side := range []struct {
			name     string
			contract *capability.Contract
			to       **Named
		}{{"Request", c.Input, &out.Request}, {"Response", c.Output, &out.Response}} {
			if side.contract != nil && side.contract.Schema == nil {
				return nil, fmt.Errorf("capability %q was loaded without its schemas", c.Name)
			}
			if err := refuseUnread(side.contract); err != nil {
				return nil, fmt.Errorf("capability %q, %s: %w", c.Name, strings.ToLower(side.name), err)
			}
			types := buildSide(ident+side.name, side.contract)
			*side.to = types[0]
			api.Types = append(api.Types, types...)
		}
		out.TakesObject = c.Input != nil && string(c.Input.Schema.Arguments(nil)) == "{}"
		api.Capabilities = append(api.Capabilities, out)
	}
	assignNames(api.Types)
	markRecursive(api.Types)
	return api, nil
}

// refuseUnread refuses a schema of the full profile with keywords that types do not
// express and that this package does not read: a client would offer what the contract
// refuses, or refuse what it offers.
func refuseUnread(c *capability.Contract) error {
	if c == nil || c.Schema.Profile() != schema.ProfileFull {
		return nil
	}
	seen := map[schema.Node]bool{}
	var walk func(n schema.Node) error
	walk = func(n schema.Node) error {
		if seen[n] {
			return nil
		}
		seen[n] = true
		for _, keyword := range n.Unread() {
			if !narrows(keyword) {
				return fmt.Errorf("the keyword %s of the full schema profile, at %q, has no type in a generated client", keyword, n.Pointer()+"/"+keyword)
			}
		}
		for _, child := range n.Children() {
			if err := walk(child); err != nil {
				return err
			}
		}
		return nil
	}
	return walk(c.Schema.Root())
}

// narrows reports whether a keyword leaves the type of a value as it is: like a pattern or
// a length, it is for validation alone.
func narrows(keyword string) bool {
	switch keyword {
	case "multipleOf", "minProperties", "maxProperties", "propertyNames", "contains", "minContains", "maxContains",
		"dependentRequired", "if", "then", "else", "dependentSchemas", "dependencies", "unevaluatedProperties", "unevaluatedItems":
		return true
	}
	return false
}

// buildSide builds the types of one schema, the root's first. Intersections are
// worked out after all types exist, because one may refer to a definition that
// contains it; unions are pruned after that, because a part may turn out to
// accept nothing.
func buildSide(name string, c *capability.Contract) []*Named {
	root := &Named{Name: name, Type: anyType}
	if c == nil {
		return []*Named{root}
	}
	start := c.Schema.Root()
	b := &builder{
		root: root, types: []*Named{root},
		named: map[schema.Node]*Named{start: root}, memo: map[schema.Node]kinds{},
	}
	root.Doc = docOf(start.Description(), notes(start))
	root.Type = b.build(start, allKinds)
	for _, t := range b.intersections {
		newMerger().flatten(t)
	}
	pruned := map[*Type]bool{}
	for _, n := range b.types {
		prune(n.Type, pruned)
	}
	return b.types
}

// A builder builds the types of one schema.
type builder struct {
	root          *Named
	types         []*Named // in order of discovery
	named         map[schema.Node]*Named
	memo          map[schema.Node]kinds
	intersections []*Type
}

// build builds the type of those values of n whose kind is in among. Passing the
// kinds down means that {"type": "string", "anyOf": [...]} is built from the
// string branches alone.
func (b *builder) build(n schema.Node, among kinds) *Type {
	k := among & b.kinds(n)
	if k == 0 {
		return neverType
	}
	if _, ok := n.Boolean(); ok {
		return anyOf(kindOrder(), k)
	}
	if name, target, ok := n.Ref(); ok {
		ref := &Type{Kind: Ref, Named: b.define(name, target)}
		// The whole target fits among the kinds. Otherwise the surrounding schema
		// narrows it, which only an intersection can express.
		if b.kinds(target)&^among == 0 {
			return ref
		}
		return b.intersection(anyOf(kindOrder(), k), ref)
	}
	own, asserts := b.own(n, k)
	var parts []*Type
	// Without assertions of its own, a schema is what its branches are.
	if asserts {
		parts = append(parts, own)
	}
	for _, branch := range n.AllOf() {
		parts = append(parts, b.build(branch, k))
	}
	for _, branches := range [][]schema.Node{n.OneOf(), n.AnyOf()} {
		var types []*Type
		for _, branch := range branches {
			types = append(types, b.build(branch, k))
		}
		if types != nil {
			parts = append(parts, UnionOf(types...))
		}
	}
	if parts == nil {
		return own
	}
	return b.intersection(parts...)
}

// define returns the named type of a definition. The name is entered before the
// type is built: a recursive definition finds it.
func (b *builder) define(name string, target schema.Node) *Named {
	if n := b.named[target]; n != nil {
		// The full profile can refer to one schema by several names. Which of them is
		// met first depends on the order of members.
		n.definition = min(n.definition, name)
		return n
	}
	// No other type has this name, which is not the last one: see assignNames.
	n := &Named{Name: b.root.Name + "#" + strconv.Itoa(len(b.types)), Doc: docOf(target.Description(), notes(target)), root: b.root, definition: name}
	b.named[target] = n
	b.types = append(b.types, n)
	n.Type = b.build(target, allKinds)
	return n
}

// own builds the type of n's own assertions, without its branches, among the
// kinds of k. asserts is false if the kinds alone express it.
func (b *builder) own(n schema.Node, k kinds) (t *Type, asserts bool) {
	if values := literals(n); values != nil {
		var types []*Type
		for _, l := range values {
			if literalKind(l)&k != 0 {
				types = append(types, literalType(l.JSON, l.Type, l.Text))
			}
		}
		return UnionOf(types...), true
	}
	asserts = n.HasObject() && k&kindObject != 0
	if _, ok := n.Items(); ok && k&kindArray != 0 {
		asserts = true
	}
	big := k&kindNumber == kindInteger && bigBounds(n.Bounds())
	asserts = asserts || big
	if !asserts {
		return anyOf(order(n), k), false
	}
	var types []*Type
	for _, t := range order(n) {
		switch {
		case kindOf(t)&k == 0:
		case t == schema.TypeObject:
			types = append(types, b.object(n))
		case t == schema.TypeArray:
			types = append(types, b.array(n))
		case kindOf(t)&k == kindInteger:
			types = append(types, &Type{Kind: Integer, Big: big})
		default:
			types = append(types, anyOf([]schema.Type{t}, k&kindOf(t)))
		}
	}
	return UnionOf(types...), true
}

// order returns the types in declared order, or else in the fixed one, so that the
// same schema always gives the same text.
func order(n schema.Node) []schema.Type {
	if types := n.Types(); types != nil {
		return types
	}
	return kindOrder()
}

// anyOf is the type of all values of the kinds of k, in the order of types.
func anyOf(types []schema.Type, k kinds) *Type {
	if k == allKinds {
		return anyType
	}
	var of []*Type
	for _, t := range types {
		if k&kindOf(t) == 0 {
			continue
		}
		switch t {
		case schema.TypeNull:
			of = append(of, &Type{Kind: Null})
		case schema.TypeBoolean:
			of = append(of, &Type{Kind: Boolean})
		case schema.TypeInteger:
			of = append(of, &Type{Kind: Integer})
		case schema.TypeNumber:
			kind := Number
			if k&kindFraction == 0 {
				kind = Integer
			}
			of = append(of, &Type{Kind: kind})
		case schema.TypeString:
			of = append(of, &Type{Kind: String})
		case schema.TypeArray:
			of = append(of, &Type{Kind: Array, Elem: anyType})
		case schema.TypeObject:
			of = append(of, &Type{Kind: Object, Elem: anyType})
		}
	}
	return UnionOf(of...)
}

// array builds the type of n's arrays. Their length is left to validation.
func (b *builder) array(n schema.Node) *Type {
	elem := anyType
	if items, ok := n.Items(); ok {
		elem = b.build(items, allKinds)
	}
	return &Type{Kind: Array, Elem: elem}
}

// object builds the type of n's objects, or Never where a required member can have
// no value.
func (b *builder) object(n schema.Node) *Type {
	t := &Type{Kind: Object, Elem: anyType}
	if more, ok := n.Additional(); ok {
		if t.Elem = b.build(more, allKinds); t.Elem.Kind == Never {
			t.Elem = nil
		}
	}
	declared := map[string]bool{}
	for _, p := range n.Properties() {
		declared[p.Name] = true
		m := Member{Name: p.Name, Description: p.Schema.Description(), Type: b.build(p.Schema, allKinds), Required: p.Required, notes: notes(p.Schema)}
		// An optional member without values stays: it keeps others from using the
		// name.
		if m.Required && m.Type.Kind == Never {
			return neverType
		}
		t.Members = append(t.Members, m)
	}
	// required may name members that properties does not; their type is that of any
	// further member.
	for _, name := range n.Required() {
		if declared[name] {
			continue
		}
		declared[name] = true
		if t.Elem == nil {
			return neverType
		}
		t.Members = append(t.Members, Member{Name: name, Type: t.Elem, Required: true})
	}
	return t
}

// bigBounds reports whether the bounds name integers that 64 bits do not hold.
func bigBounds(b schema.Bounds) bool {
	for _, text := range []string{b.Minimum, b.Maximum, b.ExclusiveMinimum, b.ExclusiveMaximum} {
		f, _ := strconv.ParseFloat(text, 64)
		if _, fits := integerText([]byte(text)); math.Abs(f) >= 1<<63 && !fits {
			return true
		}
	}
	return false
}
