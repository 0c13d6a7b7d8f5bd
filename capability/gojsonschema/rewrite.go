package gojsonschema

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/agentd/agentd/schema"
)

// formatPrefix marks the formats of package schema in the library's table.
const formatPrefix = "agentd-"

// A dialect selects the reader of a rewritten schema. The library needs RE2
// patterns and prefixed formats, package schema the original ones.
type dialect int

const (
	forLibrary dialect = iota
	forNative
)

// object is a JSON object under construction.
type object map[string]any

// writer turns compiled schemas back into JSON.
type writer struct {
	dialect dialect
	names   map[string]string // definitions under names that need no escapes
	queue   []definition      // in the order in which they were met
}

// standAlone returns the schema at n as a document of its own, with every
// definition that it refers to.
func standAlone(n schema.Node, d dialect) ([]byte, error) {
	w := writer{dialect: d, names: make(map[string]string)}
	top := w.schema(n)
	// Writing a definition may meet further references, which join the queue.
	definitions := object{}
	for i := 0; i < len(w.queue); i++ {
		definitions[w.queue[i].name] = w.schema(w.queue[i].target)
	}
	// The top may be a reference or a boolean, beside which definitions cannot
	// stand; allOf takes any schema.
	return json.Marshal(object{"definitions": definitions, "allOf": []any{top}})
}

// definition is the target of a reference, under its new name.
type definition struct {
	name   string
	target schema.Node
}

// ref returns the new name of a reference's target, and queues the target for
// writing if it is new. Numbered names replace the original ones, so that no
// name needs escaping in a pointer.
func (w *writer) ref(name string, target schema.Node) string {
	key := "#" + name // the root's name is empty, and so may a definition's be
	if target.Pointer() == "" {
		key = ""
	}
	if _, ok := w.names[key]; !ok {
		w.names[key] = "d" + strconv.Itoa(len(w.names))
		w.queue = append(w.queue, definition{w.names[key], target})
	}
	return "#/definitions/" + w.names[key]
}

// schema writes one schema, without its annotations.
func (w *writer) schema(n schema.Node) any {
	if value, ok := n.Boolean(); ok {
		return value
	}
	if name, target, ok := n.Ref(); ok {
		return object{"$ref": w.ref(name, target)}
	}
	out := object{}
	if types := n.Types(); types != nil {
		out["type"] = types
	}
	if enum := n.Enum(); enum != nil {
		values := make([]json.RawMessage, len(enum))
		for i, l := range enum {
			values[i] = l.JSON
		}
		out["enum"] = values
	}
	if value, ok := n.Const(); ok {
		out["const"] = json.RawMessage(value.JSON)
	}
	w.strings(n, out)
	w.numbers(n, out)
	w.arrays(n, out)
	w.objects(n, out)
	w.combinators(n, out)
	return out
}

// strings writes the keywords for strings.
func (w *writer) strings(n schema.Node, out object) {
	least, most := n.Length()
	count(out, "minLength", least, "maxLength", most)
	if pattern := n.Pattern(); pattern != "" {
		if w.dialect == forLibrary {
			pattern = n.PatternRE2()
		}
		out["pattern"] = pattern
	}
	if format := string(n.Format()); format != "" {
		if w.dialect == forLibrary {
			format = formatPrefix + format
		}
		out["format"] = format
	}
}

// count writes a pair of bounds; -1 is no maximum.
func count(out object, minimum string, least int, maximum string, most int) {
	if least > 0 {
		out[minimum] = least
	}
	if most >= 0 {
		out[maximum] = most
	}
}

// numbers writes the bounds of numbers with every digit of the source.
func (w *writer) numbers(n schema.Node, out object) {
	b := n.Bounds()
	for keyword, token := range map[string]string{
		"minimum": b.Minimum, "maximum": b.Maximum,
		"exclusiveMinimum": b.ExclusiveMinimum, "exclusiveMaximum": b.ExclusiveMaximum,
	} {
		if token != "" {
			out[keyword] = json.Number(token)
		}
	}
}

// arrays writes the keywords for arrays.
func (w *writer) arrays(n schema.Node, out object) {
	if items, ok := n.Items(); ok {
		out["items"] = w.schema(items)
	}
	least, most := n.ItemCount()
	count(out, "minItems", least, "maxItems", most)
	if n.UniqueItems() {
		out["uniqueItems"] = true
	}
}

// objects writes the keywords for objects.
func (w *writer) objects(n schema.Node, out object) {
	if properties := n.Properties(); len(properties) > 0 {
		members := object{}
		for _, p := range properties {
			members[p.Name] = w.schema(p.Schema)
		}
		out["properties"] = members
	}
	if required := n.Required(); len(required) > 0 {
		out["required"] = required
	}
	if additional, ok := n.Additional(); ok {
		out["additionalProperties"] = w.schema(additional)
	}
}

// combinators writes oneOf, anyOf, allOf and not.
func (w *writer) combinators(n schema.Node, out object) {
	for keyword, branches := range map[string][]schema.Node{"oneOf": n.OneOf(), "anyOf": n.AnyOf(), "allOf": n.AllOf()} {
		if branches == nil {
			continue
		}
		list := make([]any, len(branches))
		for i, b := range branches {
			list[i] = w.schema(b)
		}
		out[keyword] = list
	}
	if not, ok := n.Not(); ok {
		out["not"] = w.schema(not)
	}
}

// compileNative compiles the schema at a node by itself, so that package
// schema can check a default or an example against the part that it stands
// in.
func compileNative(n schema.Node) (*schema.Schema, error) {
	text, err := standAlone(n, forNative)
	if err != nil {
		return nil, fmt.Errorf("gojsonschema: %w", err)
	}
	return schema.Compile(text)
}
