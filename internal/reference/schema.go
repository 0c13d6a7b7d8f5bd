package reference

import (
	"bytes"
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/agentd/agentd/internal/strictyaml"
	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/registry/builtin"
)

// An ordered is a JSON object whose members stay in their order, for people who read diffs.
type ordered []member

type member struct {
	name  string
	value any
}

func (o *ordered) set(name string, value any) { *o = append(*o, member{name, value}) }

// MarshalJSON implements [json.Marshaler].
func (o ordered) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(m.name)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		value, err := marshal(m.value)
		if err != nil {
			return nil, err
		}
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// marshal is [json.Marshal] without escapes that only HTML needs.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}

// indented is JSON for a file.
func indented(v any) ([]byte, error) {
	text, err := marshal(v)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", "  "); err != nil {
		return nil, err
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

// Schema is the JSON Schema of a file: draft-07, which every editor knows.
func (f File) Schema() ([]byte, error) {
	s := ordered{
		{"$schema", "http://json-schema.org/draft-07/schema#"},
		{"title", f.Name + " of agentd"},
	}
	body, err := f.shape("", f.Root)
	if err != nil {
		return nil, err
	}
	return indented(append(s, body...))
}

// kindNames are the types of JSON Schema.
func kindNames(k *strictyaml.Key) (names []string) {
	for _, kind := range k.Kinds {
		switch kind {
		case strictyaml.Map:
			names = append(names, "object")
		case strictyaml.List:
			names = append(names, "array")
		case strictyaml.String:
			names = append(names, "string")
		case strictyaml.Bool:
			names = append(names, "boolean")
		case strictyaml.Number:
			if k.Whole {
				names = append(names, "integer")
			} else {
				names = append(names, "number")
			}
		case strictyaml.Absent, strictyaml.Null: // no decoder asks for them
		}
	}
	slices.Sort(names)
	return names
}

// shape is the schema of the value at a place.
func (f File) shape(path string, k *strictyaml.Key) (ordered, error) {
	kinds := kindNames(k)
	if len(kinds) == 1 {
		return f.form(path, k, kinds[0])
	}
	if len(kinds) == 0 {
		return ordered{}, nil
	}
	var forms []ordered
	for _, kind := range kinds {
		form, err := f.form(path, k, kind)
		if err != nil {
			return nil, err
		}
		forms = append(forms, form)
	}
	return ordered{{"anyOf", forms}}, nil
}

// form is the schema of the values of one type.
func (f File) form(path string, k *strictyaml.Key, kind string) (ordered, error) {
	s := ordered{{"type", kind}}
	switch kind {
	case "string":
		if k.Enum != nil {
			s.set("enum", k.Enum)
		} else if k.NonEmpty {
			s.set("minLength", 1)
		}
	case "integer", "number":
		if k.Bounded && k.Low > math.MinInt64 {
			s.set("minimum", k.Low)
		}
		if k.Bounded && k.High < math.MaxInt64 {
			s.set("maximum", k.High)
		}
	case "array":
		if k.AtLeastOne {
			s.set("minItems", 1)
		}
		if k.Item != nil {
			items, err := f.shape(path+"[]", k.Item)
			if err != nil {
				return nil, err
			}
			s.set("items", items)
		}
	case "object":
		return f.object(s, path, k)
	}
	return s, nil
}

func (f File) object(s ordered, path string, k *strictyaml.Key) (ordered, error) {
	if path == "capabilities" && f.Name == "agent.yaml" {
		return usable(s)
	}
	if k.Raw {
		return s, nil
	}
	if k.Entry != nil && !k.Closed {
		entry, err := f.shape(path+".*", k.Entry)
		if err != nil {
			return nil, err
		}
		s.set("additionalProperties", entry)
		return s, nil
	}
	properties, required := ordered{}, []string{}
	for _, m := range k.Members {
		at := strings.TrimPrefix(path+"."+m.Name, ".")
		row := f.rows[at]
		if row.Default == Refused {
			continue
		}
		own := ordered{{"description", Plain(row.Meaning)}}
		if v, ok := row.machine(kindNames(m)); ok {
			own.set("default", v)
		}
		shape, err := f.shape(at, m)
		if err != nil {
			return nil, err
		}
		own = append(own, shape...)
		properties.set(m.Name, own)
		for _, alias := range m.Aliases {
			properties.set(alias, own)
		}
		if m.RequiredIn(k) && row.Default == "" {
			required = append(required, m.Name)
		}
	}
	// Decoders may ask in any order.
	slices.SortStableFunc(properties, func(a, b member) int { return f.rank(path, a.name) - f.rank(path, b.name) })
	slices.Sort(required)
	s.set("properties", properties)
	if len(required) > 0 {
		s.set("required", required)
	}
	if k.Prefix != "" {
		s.set("patternProperties", ordered{{"^" + regexp.QuoteMeta(k.Prefix), true}})
	}
	if k.Closed {
		s.set("additionalProperties", false)
	}
	return s, nil
}

// rank is the place of a key in the table; other spellings go with it.
func (f File) rank(path, name string) int {
	at := strings.TrimPrefix(path+"."+name, ".")
	for i, k := range f.Keys {
		parent, _ := split(k.Path)
		if k.Path == at || parent == path && slices.Contains(k.Aliases, name) {
			return i
		}
	}
	return len(f.Keys)
}

// usable has the schemas of what an agent may use, which each capability of the registry has.
func usable(s ordered) (ordered, error) {
	known := registry.New()
	for _, r := range builtin.All(builtin.Deps{}) {
		if err := known.Register(r); err != nil {
			return nil, err
		}
	}
	properties := ordered{}
	for _, c := range known.KnownCapabilities() {
		var config map[string]json.RawMessage
		if len(c.ConfigSchema) > 0 {
			if err := json.Unmarshal(c.ConfigSchema, &config); err != nil {
				return nil, err
			}
		}
		members := map[string]json.RawMessage{}
		if config["properties"] != nil {
			if err := json.Unmarshal(config["properties"], &members); err != nil {
				return nil, err
			}
		}
		members["tools"] = json.RawMessage(`{"type":"array","items":{"type":"string"},"description":"those of its tools that the agent has; all, if left out"}`)
		own := ordered{{"type", "object"}, {"properties", members}}
		for _, name := range []string{"required", "additionalProperties"} {
			if config[name] != nil {
				own.set(name, config[name])
			}
		}
		if config == nil {
			own.set("additionalProperties", false)
		}
		properties.set(c.Key, own)
	}
	s.set("properties", properties) // a program that embeds agentd may have more
	return s, nil
}

var link = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// Plain is a text without its links.
func Plain(markdown string) string {
	text := link.ReplaceAllString(markdown, "see $1")
	return strings.ReplaceAll(text, "(see ", "(")
}
