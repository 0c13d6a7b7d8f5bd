package projection

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/schema"
)

// builder makes one projection. It writes each value that the schema describes as a
// place: that is, with all the schemas that apply to the value at once.
type builder struct {
	limits
	dropped []Drop
	told    map[Drop]bool
	// open counts the schemas that the place being written is inside of. A reference to
	// one of them is a recursion.
	open        map[schema.Node]int
	definitions map[schema.Node]*definition
	queue       []*definition // in the order of their names
	branches    []*branch     // of all unions, to be compiled at the end

	// What has been written, for the limits on whole schemas.
	places, properties, enumValues, text, itemsSum, optional, unions int
}

// maxPlaces bounds the work: references are replaced by what they lead to, and each can
// double what is written.
const maxPlaces = 20_000

// lowered is a value as the provider takes it.
type lowered struct {
	fields  []field // of its schema, in order
	plan    *plan   // nil: the value is written as it is
	strings bool    // a string may be valid
	null    bool    // null may be valid
	compact bool    // its type alone decides whether null is valid
}

// field is one keyword of a schema, or a member of another object.
type field struct {
	name string
	json []byte
}

func (l *lowered) add(name string, json []byte) { l.fields = append(l.fields, field{name, json}) }

// take removes a keyword and returns its value, or nil.
func (l *lowered) take(name string) []byte {
	at := slices.IndexFunc(l.fields, func(f field) bool { return f.name == name })
	if at < 0 {
		return nil
	}
	json := l.fields[at].json
	l.fields = slices.Delete(slices.Clone(l.fields), at, at+1)
	return json
}

func (l *lowered) has(name string) bool {
	return slices.ContainsFunc(l.fields, func(f field) bool { return f.name == name })
}

// json writes the schema.
func (l *lowered) json() []byte { return writeObject(l.fields) }

func writeObject(fields []field) []byte {
	out := []byte{'{'}
	for i, f := range fields {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(ijson.AppendQuoted(out, f.name), ':')
		out = append(out, f.json...)
	}
	return append(out, '}')
}

func writeArray(parts [][]byte) []byte {
	return slices.Concat([]byte{'['}, bytes.Join(parts, []byte{','}), []byte{']'})
}

func quoted(s string) []byte { return ijson.AppendQuoted(nil, s) }

func quotedAll(all []string) []byte {
	parts := make([][]byte, len(all))
	for i, s := range all {
		parts[i] = quoted(s)
	}
	return writeArray(parts)
}

// drop reports something that lets more arguments through.
func (b *builder) drop(at schema.Node, keyword, reason string) {
	b.report(Drop{Pointer: pointer(at), Keyword: keyword, Reason: reason})
}

// narrow reports something that keeps valid arguments from being written.
func (b *builder) narrow(at schema.Node, keyword, reason string) {
	b.report(Drop{Pointer: pointer(at), Keyword: keyword, Reason: reason, Narrows: true})
}

// report adds a drop once, however often the schema in which it stands is written.
func (b *builder) report(d Drop) {
	if !b.told[d] {
		b.told[d] = true
		b.dropped = append(b.dropped, d)
	}
}

func pointer(n schema.Node) string {
	if n.IsZero() {
		return ""
	}
	return n.Pointer()
}

// wrapper is the member that holds arguments whose schema cannot stand at the root.
const wrapper = "arguments"

// arguments writes the whole projection: an object, as the arguments of a tool are.
func (b *builder) arguments(root schema.Node) (*Projected, error) {
	// Below a depth of 1, because there may be a wrapper around it.
	at := place{only: []schema.Type{schema.TypeObject}, depth: 1}
	l := b.value(at, root)
	if kind := l.take("type"); string(kind) != `"object"` {
		b.drop(root, "type", "sent as the one member "+wrapper+" of an object, because no other schema can stand at the root")
		if kind != nil {
			l.fields = slices.Insert(l.fields, 0, field{"type", kind})
		}
		inner := l
		l = lowered{plan: &plan{kind: wrapped, rest: inner.plan}}
		l.add("properties", writeObject([]field{{wrapper, inner.json()}}))
		l.add("required", quotedAll([]string{wrapper}))
		l.add("additionalProperties", []byte("false"))
	}
	l.fields = slices.Insert(l.fields, 0, field{"type", quoted("object")})
	if err := b.finish(&l); err != nil {
		return nil, err
	}
	return &Projected{Schema: json.RawMessage(l.json()), Dropped: b.dropped, plan: l.plan}, nil
}

// finish adds the definitions, compiles what tells the branches of unions apart, and
// reports what the provider counts over all tools of a request.
func (b *builder) finish(l *lowered) error {
	var defs []field
	for i := 0; i < len(b.queue); i++ { // one definition can add another
		d := b.queue[i]
		clear(b.open)
		made := b.value(place{depth: 2}, d.target)
		if made.plan != nil {
			*d.plan = *made.plan
		}
		defs = append(defs, field{d.name, made.json()})
	}
	if defs != nil {
		l.add("$defs", writeObject(defs))
	}
	for _, br := range b.branches {
		src := writeObject([]field{{"$defs", writeObject(defs)}, {"allOf", writeArray([][]byte{br.json})}})
		var err error
		if br.fits, err = schema.CompileWith(src, schema.CompileOptions{Profile: schema.ProfileFull}); err != nil {
			return fmt.Errorf("project a schema for %s: a branch of a union: %w", b.name, err)
		}
	}
	if b.maxOptional > 0 && b.optional > b.maxOptional {
		b.drop(schema.Node{}, "required", fmt.Sprintf("%d members are optional, and the provider takes %d in all strict tools of a request together", b.optional, b.maxOptional))
	}
	if b.maxUnions > 0 && b.unions > b.maxUnions {
		b.drop(schema.Node{}, "anyOf", fmt.Sprintf("there are %d unions, and the provider takes %d in all strict tools of a request together", b.unions, b.maxUnions))
	}
	return nil
}

// definition is a schema that contains itself, where the provider takes those.
type definition struct {
	name   string
	target schema.Node
	plan   *plan // filled in when the definition is written
}

// reference writes a recursion as a reference to a definition.
func (b *builder) reference(target schema.Node) lowered {
	d := b.definitions[target]
	if d == nil {
		d = &definition{name: "r" + strconv.Itoa(len(b.queue)+1), target: target, plan: &plan{}}
		b.definitions[target] = d
		b.queue = append(b.queue, d)
	}
	types := target.Types()
	untyped := types == nil
	l := lowered{
		plan:    d.plan,
		strings: untyped || slices.Contains(types, schema.TypeString),
		null:    untyped || slices.Contains(types, schema.TypeNull),
	}
	l.add("$ref", quoted("#/$defs/"+d.name))
	return l
}
