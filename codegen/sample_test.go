package codegen_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/schema/contain"
)

// A schemaMaker makes random schemas of every shape that types can have. Each
// is made of a seed, so that tests do not differ from run to run.
type schemaMaker struct{ *rand.Rand }

type object = map[string]any

func (m schemaMaker) pick(of ...string) string { return of[m.IntN(len(of))] }

func (m schemaMaker) name() string {
	return m.pick("a", "b", "c", "kind", "a-b", "class", "日本", "*/", "list", "extra")
}

// document is a schema with definitions, as JSON.
func (m schemaMaker) document() []byte {
	s := m.schema(3)
	if _, ok := s["$ref"]; ok {
		s = object{"allOf": []any{s}}
	}
	definitions := object{}
	for _, name := range []string{"x", "y"} {
		definitions[name] = m.schema(2)
	}
	s["definitions"] = definitions
	data, err := json.Marshal(s)
	if err != nil {
		panic(err) // only maps, slices and strings are in it
	}
	return data
}

func (m schemaMaker) sub(depth int) any {
	if m.IntN(20) == 0 {
		return m.IntN(3) > 0
	}
	return m.schema(depth - 1)
}

func (m schemaMaker) schema(depth int) object {
	if depth <= 0 {
		return m.leaf()
	}
	switch m.IntN(10) {
	case 0:
		return m.leaf()
	case 1:
		return object{"$ref": m.pick("#/definitions/x", "#/definitions/y", "#")}
	case 2:
		return object{"type": "array", "items": m.sub(depth)}
	case 3, 4, 5, 6:
		return m.object(depth)
	case 7:
		return m.tagged(depth)
	}
	s := object{m.pick("oneOf", "anyOf", "allOf"): m.subs(depth)}
	if m.IntN(2) == 0 {
		s["type"] = m.pick("object", "string", "array")
	}
	return s
}

func (m schemaMaker) subs(depth int) []any {
	var all []any
	for range 1 + m.IntN(3) {
		all = append(all, m.sub(depth))
	}
	return all
}

func (m schemaMaker) object(depth int) object {
	s := object{"type": "object"}
	if m.IntN(12) == 0 {
		delete(s, "type")
	}
	properties := object{}
	var required []any
	for range m.IntN(4) {
		name := m.name()
		properties[name] = m.sub(depth)
		if m.IntN(2) == 0 && !slices.Contains(required, any(name)) {
			required = append(required, name)
		}
	}
	if len(properties) > 0 {
		s["properties"] = properties
	}
	if required != nil {
		s["required"] = required
	}
	switch m.IntN(6) {
	case 0, 1, 2:
		s["additionalProperties"] = false
	case 3:
		s["additionalProperties"] = m.sub(depth)
	}
	if m.IntN(8) == 0 {
		s[m.pick("oneOf", "anyOf", "allOf")] = m.subs(depth)
	}
	if m.IntN(10) == 0 {
		s["type"] = []any{"object", "null"}
	}
	return s
}

func (m schemaMaker) tagged(depth int) object {
	var branches []any
	for _, tag := range []string{"one", "two"} {
		branch := m.object(depth - 1)
		properties, _ := branch["properties"].(object)
		if properties == nil {
			properties = object{}
		}
		properties["kind"] = object{"const": tag}
		branch["properties"], branch["required"] = properties, []any{"kind"}
		branches = append(branches, branch)
	}
	return object{"oneOf": branches}
}

func (m schemaMaker) leaf() object {
	switch m.IntN(9) {
	case 0:
		return object{"type": "string", "minLength": m.IntN(3)}
	case 1:
		return object{"type": "integer", "minimum": -5}
	case 2:
		return object{"type": "number", "exclusiveMaximum": 100}
	case 3:
		return object{"type": m.pick("boolean", "null")}
	case 4:
		return object{"enum": []any{"low", "a b", "*/"}}
	case 5:
		return object{"enum": []any{"x", 1, nil, 2.5, true}[:1+m.IntN(5)]}
	case 6:
		return object{"type": []any{m.pick("string", "integer"), "null"}}
	case 7:
		return object{"const": []any{"c", 7, object{"a": []any{1}}, false}[m.IntN(4)]}
	}
	return object{"type": "object", "additionalProperties": object{"type": m.pick("string", "integer", "boolean")}}
}

// A sampler makes values that a schema may accept; whoever uses them asks the
// schema whether it does.
type sampler struct {
	*rand.Rand
	extras bool // members that an open object does not name
}

// values are up to most distinct valid values of s, as JSON.
func (p sampler) values(s *schema.Schema, most int) []string {
	var out []string
	add := func(data []byte) {
		if text := string(data); s.Valid(data) && !slices.Contains(out, text) && len(out) < most {
			out = append(out, text)
		}
	}
	for range 60 {
		data, err := json.Marshal(p.value(s.Root(), 5))
		if err == nil && len(data) < 4000 {
			add(data)
		}
	}
	return out
}

func (p sampler) value(n schema.Node, depth int) any {
	n = n.Resolve()
	if _, ok := n.Boolean(); ok {
		return []any{"any", 1, nil, []any{}, true}[p.IntN(5)]
	}
	if c, ok := n.Const(); ok {
		return json.RawMessage(c.JSON)
	}
	if e := n.Enum(); e != nil {
		return json.RawMessage(e[p.IntN(len(e))].JSON)
	}
	v := p.own(n, depth)
	for _, branches := range [][]schema.Node{n.OneOf(), n.AnyOf()} {
		if branches != nil {
			v = blend(v, p.value(branches[p.IntN(len(branches))], depth-1))
		}
	}
	for _, b := range n.AllOf() {
		v = blend(v, p.value(b, depth-1))
	}
	return v
}

// blend joins two objects; of other values the second counts.
func blend(a, b any) any {
	x, ok := a.(object)
	y, also := b.(object)
	if !ok || !also {
		return b
	}
	for name, v := range y {
		x[name] = v
	}
	return x
}

func (p sampler) own(n schema.Node, depth int) any {
	types := n.Types()
	t := schema.TypeObject
	if types != nil {
		t = types[p.IntN(len(types))]
	} else if p.IntN(3) == 0 {
		t = schema.TypeString
	}
	switch t {
	case schema.TypeNull:
		return nil
	case schema.TypeBoolean:
		return p.IntN(2) == 0
	case schema.TypeInteger:
		return p.IntN(9) - 3
	case schema.TypeNumber:
		return []any{0.5, -3, 1e21, json.Number("2.0")}[p.IntN(4)]
	case schema.TypeString:
		return []string{"", "text", "\u2028 \"*/\n", "😀 日本"}[p.IntN(4)]
	case schema.TypeArray:
		return p.array(n, depth)
	}
	return p.object(n, depth)
}

func (p sampler) array(n schema.Node, depth int) any {
	out := []any{}
	items, ok := n.Items()
	for range p.IntN(3) {
		switch {
		case depth <= 0:
		case ok:
			out = append(out, p.value(items, depth-1))
		default:
			out = append(out, "item")
		}
	}
	return out
}

func (p sampler) object(n schema.Node, depth int) any {
	out := object{}
	for _, m := range n.Properties() {
		if m.Required || depth > 0 && p.IntN(2) == 0 {
			if depth > -4 {
				out[m.Name] = p.value(m.Schema, depth-1)
			}
		}
	}
	more, ok := n.Additional()
	for _, name := range n.Required() {
		if _, has := out[name]; !has {
			out[name] = 1
		}
	}
	if p.extras && p.IntN(2) == 0 && depth > 0 {
		out["surplus"] = 1
		if ok {
			out["surplus"] = p.value(more, depth-1)
		}
	}
	if len(n.Properties()) == 0 && ok && depth > 0 && p.IntN(2) == 0 {
		out["named"] = p.value(more, depth-1)
	}
	return out
}

// A contract is a random schema with values for it.
type contract struct {
	name   string
	schema *schema.Schema
	source []byte
	values []string // valid
	plain  []string // valid, without members that an open object does not name

	refused []string // invalid for a reason that types know, beside those of invalid
}

// contracts makes n schemas that have valid values, the same for each seed.
func contracts(seed uint64, n int) []contract {
	var out []contract
	for i := uint64(0); len(out) < n && i < 20*uint64(n); i++ {
		r := rand.New(rand.NewPCG(seed, i))
		source := schemaMaker{r}.document()
		s, err := schema.Compile(source)
		if err != nil {
			continue // a loop that consumes no input
		}
		c := contract{name: fmt.Sprintf("c%d", len(out)), schema: s, source: source}
		c.values = sampler{Rand: r, extras: true}.values(s, 6)
		c.plain = slices.DeleteFunc(sampler{Rand: r}.values(s, 8), func(v string) bool { return !withoutExtras(source, v) })
		if sample, err := contain.Sample(s); err == nil {
			c.values = append(c.values, string(sample))
		}
		if c.values != nil {
			out = append(out, c)
		}
	}
	return out
}

// withoutExtras reports whether a schema accepts value even where its open
// objects are closed.
func withoutExtras(source []byte, value string) bool {
	var s any
	if json.Unmarshal(source, &s) != nil {
		return false
	}
	closeObjects(s)
	data, err := json.Marshal(s)
	if err != nil {
		return false
	}
	closed, err := schema.Compile(data)
	return err == nil && closed.Valid([]byte(value))
}

func closeObjects(v any) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			closeObjects(e)
		}
	case object:
		for _, e := range v {
			closeObjects(e)
		}
		_, named := v["properties"]
		more, has := v["additionalProperties"]
		if named && (!has || more == true) {
			v["additionalProperties"] = false
		}
	}
}

// capabilities is a capabilities file, as JSON, with a capability for each
// contract.
func capabilities(contracts []contract) []byte {
	var caps []string
	for _, c := range contracts {
		caps = append(caps, fmt.Sprintf(`{"name":%q,"inputSchema":%s}`, c.name, c.source))
	}
	return []byte(`{"version":1,"agent":"agent://fuzz","transports":[{"kind":"memory","topics":{"requests":"agents.fuzz.requests"}}],
		"capabilities":[` + strings.Join(caps, ",\n") + `]}`)
}

// invalid returns values that break a rule which types can state: a surplus
// member in a closed object, a missing one, a value outside of an enum. It makes them
// for schemas of an object and nothing else.
func (c contract) invalid() []string {
	if c.refused != nil {
		return c.refused
	}
	root := c.schema.Root()
	types := root.Types()
	if len(types) != 1 || types[0] != schema.TypeObject || root.OneOf() != nil || root.AnyOf() != nil || root.AllOf() != nil {
		return nil
	}
	var out []string
	for _, text := range c.plain {
		mutate := func(change func(map[string]json.RawMessage)) {
			var members map[string]json.RawMessage
			if json.Unmarshal([]byte(text), &members) != nil {
				return
			}
			change(members)
			data, err := json.Marshal(members)
			if err == nil && !c.schema.Valid(data) && !slices.Contains(out, string(data)) {
				out = append(out, string(data))
			}
		}
		if more, ok := root.Additional(); ok {
			if isFalse(more) {
				mutate(func(m map[string]json.RawMessage) { m["surplus"] = json.RawMessage("1") })
			}
		}
		for _, name := range root.Required() {
			mutate(func(m map[string]json.RawMessage) { delete(m, name) })
		}
		for _, p := range root.Properties() {
			if e := p.Schema.Enum(); e != nil && e[0].Type == schema.TypeString {
				mutate(func(m map[string]json.RawMessage) { m[p.Name] = json.RawMessage(`"none of them"`) })
			}
		}
	}
	return out
}
