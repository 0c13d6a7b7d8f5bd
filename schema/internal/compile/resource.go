package compile

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/agentd/agentd/internal/truncate"
	"github.com/agentd/agentd/schema/internal/ir"
	"github.com/agentd/agentd/schema/internal/jsonptr"
	"github.com/agentd/agentd/schema/internal/jsontree"
)

// A document is one or more resources: the root, and every schema with an $id. Each
// has a base URI, against which the references in it are resolved, and anchors. All
// of them are found before anything is compiled, so that references can be.

// resource is one of the schemas that a document consists of.
type resource struct {
	uri     *url.URL // absolute where the document says so; without fragment
	length  int      // of the URI, which every URI resolved against it takes over
	root    *jsontree.Tree
	pointer string
	dialect Dialect
	anchors map[string]*jsontree.Tree
	dynamic map[string]*jsontree.Tree // those of $dynamicAnchor, which are anchors as well
}

// recursiveAnchor is the name under which $recursiveAnchor of 2019-09 is kept among
// the dynamic anchors. No anchor can have it.
const recursiveAnchor = "#"

// place is where a schema stands.
type place struct {
	resource *resource
	pointer  string
}

// index knows the places of all schemas in a document.
type index struct {
	places    map[*jsontree.Tree]place
	members   map[*jsontree.Tree]map[string]*jsontree.Tree // of large objects that references lead through
	resources map[string]*resource                         // by URI
	dynamic   bool                                         // some reference may be dynamic
}

func newIndex() index {
	return index{places: map[*jsontree.Tree]place{}, members: map[*jsontree.Tree]map[string]*jsontree.Tree{}, resources: map[string]*resource{}}
}

// member is Get in about the same time for an object of any size.
func (x *index) member(t *jsontree.Tree, name string) *jsontree.Tree {
	const few = 16
	if len(t.Members) <= few {
		return t.Get(name)
	}
	known := x.members[t]
	if known == nil {
		known = make(map[string]*jsontree.Tree, len(t.Members))
		for _, m := range t.Members {
			known[m.Name] = m.Value
		}
		x.members[t] = known
	}
	return known[name]
}

// readIndex finds the resources, anchors and places of a document.
func (f *fullProfile) readIndex(root *jsontree.Tree) {
	r := f.newResource(&url.URL{}, root, "", f.opts.Dialect)
	f.index.dynamic = namesDynamic(root)
	f.walk(root, r, "")
}

// namesDynamic reports whether a dynamic reference is anywhere in a value. A reference
// can make any place a schema, and by then others have been compiled.
func namesDynamic(t *jsontree.Tree) bool {
	return slices.ContainsFunc(t.Items, namesDynamic) || slices.ContainsFunc(t.Members, func(m jsontree.Member) bool {
		return m.Name == "$dynamicRef" || m.Name == "$recursiveRef" || namesDynamic(m.Value)
	})
}

// newResource registers a resource under its URI.
func (f *fullProfile) newResource(uri *url.URL, root *jsontree.Tree, pointer string, d Dialect) *resource {
	text := uri.String()
	r := &resource{
		uri: uri, length: len(text), root: root, pointer: pointer, dialect: d,
		anchors: map[string]*jsontree.Tree{}, dynamic: map[string]*jsontree.Tree{},
	}
	switch known := f.index.resources[text]; {
	case known == nil:
	case known.root == root:
		return known // a reference leads to what holds the target of another
	default:
		f.c.fault(pointer, "two schemas have the URI "+truncate.Quote(text), "")
	}
	f.index.resources[text] = r
	return r
}

// walk notes the places of a schema and of all schemas inside. Other values, such as
// those of const, hold no schemas, whatever they look like.
func (f *fullProfile) walk(t *jsontree.Tree, r *resource, pointer string) {
	if !f.c.spendAt(pointer, len(t.Members)) {
		return
	}
	if t.Kind == jsontree.Object {
		r = f.identify(t, r, pointer)
	}
	f.index.places[t] = place{r, pointer}
	for _, m := range t.Members {
		at := jsonptr.Child(pointer, m.Name)
		switch m.Name {
		case "additionalItems", "contains", "additionalProperties", "propertyNames", "not", "if", "then", "else",
			"unevaluatedItems", "unevaluatedProperties":
			f.walk(m.Value, r, at)
		case "items", "allOf", "anyOf", "oneOf", "prefixItems":
			if m.Value.Kind != jsontree.Array {
				f.walk(m.Value, r, at)
			}
			for i, item := range m.Value.Items {
				if f.c.exceeded != nil {
					return
				}
				f.walk(item, r, jsonptr.Element(at, i))
			}
		case "properties", "patternProperties", "definitions", "$defs", "dependentSchemas", "dependencies":
			for _, entry := range m.Value.Members {
				if f.c.exceeded != nil {
					return
				}
				f.walk(entry.Value, r, jsonptr.Child(at, entry.Name))
			}
		}
	}
}

// identify reads the keywords that give a schema a name, and returns the resource to
// which what is inside belongs.
func (f *fullProfile) identify(t *jsontree.Tree, r *resource, pointer string) *resource {
	d := r.dialect
	if v := t.Get("$schema"); v != nil && (t == r.root || t.Get("$id") != nil) {
		d = f.dialect(v, jsonptr.Child(pointer, "$schema"))
	}
	// Draft-07 ignores all that stands beside $ref.
	if d == Draft07 && t.Get("$ref") != nil {
		if t == r.root {
			r.dialect = d
		}
		return r
	}
	if v := t.Get("$id"); v != nil && v.Kind == jsontree.String {
		r = f.resource(t, v.Text, r, pointer, d)
	}
	if t == r.root {
		r.dialect = d
	}
	if d == Draft07 {
		return r
	}
	f.anchor(t, "$anchor", r, pointer)
	if d == Draft202012 {
		f.anchor(t, "$dynamicAnchor", r, pointer)
	} else if t == r.root && isTrue(t.Get("$recursiveAnchor")) {
		r.dynamic[recursiveAnchor] = t
	}
	return r
}

// resource reads $id: the URI of a resource or, in draft-07, also an anchor.
func (f *fullProfile) resource(t *jsontree.Tree, id string, outer *resource, pointer string, d Dialect) *resource {
	at := jsonptr.Child(pointer, "$id")
	if !f.c.spend(outer.length + len(id)) {
		return outer
	}
	u, err := url.Parse(id)
	if err != nil {
		f.c.fault(at, "$id is not a URI reference", "")
		return outer
	}
	fragment := u.Fragment
	u.Fragment, u.RawFragment = "", ""
	r := outer
	switch {
	case u.String() == "" && t != outer.root: // an anchor alone
	case t == outer.root:
		// The root exists already, under the empty URI.
		delete(f.index.resources, r.uri.String())
		r.uri = r.uri.ResolveReference(u)
		text := r.uri.String()
		r.length = len(text)
		f.index.resources[text] = r
	default:
		r = f.newResource(outer.uri.ResolveReference(u), t, pointer, d)
	}
	switch {
	case fragment == "":
	case d != Draft07:
		f.c.fault(at, "$id must not have a fragment", "use $anchor")
	default:
		f.addAnchor(fragment, t, r, at)
	}
	return r
}

// anchor reads $anchor or $dynamicAnchor.
func (f *fullProfile) anchor(t *jsontree.Tree, keyword string, r *resource, pointer string) {
	v := t.Get(keyword)
	if v == nil {
		return
	}
	at := jsonptr.Child(pointer, keyword)
	name, ok := f.c.text(v, at)
	if !ok {
		return
	}
	f.addAnchor(name, t, r, at)
	if keyword == "$dynamicAnchor" {
		r.dynamic[name] = t
	}
}

// addAnchor records an anchor, which leads to one schema only.
func (f *fullProfile) addAnchor(name string, t *jsontree.Tree, r *resource, at string) {
	if other := r.anchors[name]; other != nil && other != t {
		f.c.fault(at, "two schemas have the anchor "+truncate.Quote(name), "")
	}
	r.anchors[name] = t
}

// dialect reads $schema.
func (f *fullProfile) dialect(v *jsontree.Tree, at string) Dialect {
	text, ok := f.c.text(v, at)
	if !ok {
		return f.opts.Dialect
	}
	name := strings.TrimSuffix(text, "#")
	name = strings.TrimPrefix(strings.TrimPrefix(name, "https:"), "http:")
	switch name {
	case "//json-schema.org/draft-07/schema":
		return Draft07
	case "//json-schema.org/draft/2019-09/schema":
		return Draft201909
	case "//json-schema.org/draft/2020-12/schema":
		return Draft202012
	}
	f.c.fault(at, "$schema names the unknown dialect "+truncate.Quote(text), "known are draft-07, 2019-09 and 2020-12; nothing is fetched")
	return f.opts.Dialect
}

// scope is the dynamic scope of a schema, as far as it matters: the outermost schema
// with each dynamic anchor on the way that led to it.
type scope map[string]*jsontree.Tree

// enter returns the scope inside of a resource. Without any dynamic reference, all
// scopes are one.
func (f *fullProfile) enter(outer int, r *resource) int {
	if !f.index.dynamic {
		return outer
	}
	key := entry{outer, r}
	inner, known := f.entered[key]
	if !known {
		inner = f.scopeInside(outer, r)
		f.entered[key] = inner
	}
	return inner
}

// entry is a resource that is entered from a scope.
type entry struct {
	scope    int
	resource *resource
}

// scopeInside returns the scope inside of a resource with some dynamic anchors, seen
// from an outer scope.
func (f *fullProfile) scopeInside(outer int, r *resource) int {
	inner := scope{}
	for name, t := range r.dynamic {
		inner[name] = t
	}
	for name, t := range f.scopes[outer] { // outer anchors win
		inner[name] = t
	}
	if !f.c.spend(len(inner) * (8 + len(f.scopes)/8)) {
		return outer
	}
	for i, known := range f.scopes {
		if equalScopes(known, inner) {
			return i
		}
	}
	// Every scope can hold every schema: many of them would make any document large.
	const most = 256
	if len(f.scopes) == most {
		f.c.fault(r.pointer, "too many dynamic scopes", "use $ref in place of $dynamicRef")
		return outer
	}
	f.scopes = append(f.scopes, inner)
	return len(f.scopes) - 1
}

// equalScopes compares two scopes.
func equalScopes(a, b scope) bool {
	if len(a) != len(b) {
		return false
	}
	for name, t := range a {
		if b[name] != t {
			return false
		}
	}
	return true
}

// fullRef is a reference whose target is not compiled yet.
type fullRef struct {
	node    *ir.Node
	keyword string
	text    string
	pointer string
	from    *resource
	scope   int
}

// resolve compiles the targets of all references, and of those in them.
func (f *fullProfile) resolve() {
	for i := 0; i < len(f.refs); i++ {
		r := f.refs[i]
		if !f.c.spend(stepsOfSchema + len(r.text)) {
			return
		}
		target := f.target(r)
		if target == nil {
			continue
		}
		f.scope = r.scope
		r.node.Ref = f.c.schema(target, "")
		for _, prefix := range []string{"/$defs/", "/definitions/"} {
			if name, ok := strings.CutPrefix(r.node.Ref.Pointer, prefix); ok && !strings.Contains(name, "/") {
				r.node.RefName = jsonptr.Unescape(name)
			}
		}
	}
}

// target finds the schema that a reference names, or records why there is none.
func (f *fullProfile) target(r fullRef) *jsontree.Tree {
	u, err := url.Parse(r.text)
	if err != nil {
		f.c.fault(r.pointer, r.keyword+" is not a URI reference", "")
		return nil
	}
	fragment := u.Fragment
	u.Fragment, u.RawFragment = "", ""
	in := r.from
	if u.String() != "" {
		if !f.c.spend(r.from.length + len(r.text)) {
			return nil
		}
		full := r.from.uri.ResolveReference(u)
		if in = f.index.resources[full.String()]; in == nil {
			f.c.fault(r.pointer, r.keyword+" names "+truncate.Quote(r.text)+", which is not in this document",
				"nothing is fetched: copy the schema into $defs, with its $id")
			return nil
		}
	}
	t, anchored := f.inside(in, fragment)
	if t == nil {
		f.c.fault(r.pointer, r.keyword+" names "+truncate.Quote(r.text)+", which does not exist", "")
		return nil
	}
	return f.dynamicTarget(r, in, t, fragment, anchored)
}

// dynamicTarget replaces the target of a dynamic reference by the outermost schema
// with the same dynamic anchor. Only a target with such an anchor invites that.
func (f *fullProfile) dynamicTarget(r fullRef, in *resource, t *jsontree.Tree, fragment string, anchored bool) *jsontree.Tree {
	name := ""
	switch {
	case r.keyword == "$dynamicRef" && anchored:
		name = fragment
	case r.keyword == "$recursiveRef":
		name = recursiveAnchor
	}
	if in.dynamic[name] != t {
		return t
	}
	if outermost := f.scopes[r.scope][name]; outermost != nil {
		return outermost
	}
	return t
}

// inside finds what a fragment names in a resource: the whole, an anchor, or a JSON
// pointer, which may lead on into resources inside.
func (f *fullProfile) inside(in *resource, fragment string) (t *jsontree.Tree, anchored bool) {
	if fragment == "" {
		return in.root, false
	}
	if !strings.HasPrefix(fragment, "/") {
		return in.anchors[fragment], true
	}
	t = in.root
	at := place{in, in.pointer}
	for segment := range strings.SplitSeq(fragment[1:], "/") {
		segment = jsonptr.Unescape(segment)
		if known, ok := f.index.places[t]; ok {
			at = known
		}
		if !f.c.spendAt(at.pointer, 0) {
			return nil, false
		}
		switch t.Kind {
		case jsontree.Object:
			t = f.index.member(t, segment)
		case jsontree.Array:
			i, err := strconv.Atoi(segment)
			if err != nil || i < 0 || i >= len(t.Items) {
				return nil, false
			}
			t = t.Items[i]
		default:
			return nil, false
		}
		if t == nil {
			return nil, false
		}
		at.pointer = jsonptr.Child(at.pointer, segment)
	}
	// A place that no keyword makes a schema is one by being referred to.
	if _, ok := f.index.places[t]; !ok {
		f.walk(t, at.resource, at.pointer)
	}
	if f.c.exceeded != nil {
		return nil, false // the place may not be known
	}
	return t, false
}
