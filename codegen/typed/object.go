package typed

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// An ObjectDecoder takes the members of one object apart. After the first fault
// it does nothing more.
type ObjectDecoder struct {
	members map[string]json.RawMessage // those not taken yet
	err     error
}

// DecodeObject starts to decode an object.
func DecodeObject(data []byte) *ObjectDecoder {
	d := &ObjectDecoder{}
	if data = bytes.TrimSpace(data); len(data) == 0 || data[0] != '{' {
		d.err = fault("must be an object")
		return d
	}
	d.err = json.Unmarshal(data, &d.members)
	return d
}

func (d *ObjectDecoder) take(name string) (json.RawMessage, bool) {
	raw, ok := d.members[name]
	delete(d.members, name)
	return raw, ok && d.err == nil
}

func (d *ObjectDecoder) decode(name string, raw []byte, v reflect.Value) {
	if err := decode(raw, v); err != nil {
		d.err = at(name, err)
	}
}

// Required decodes a member that must be there into what v points to.
func (d *ObjectDecoder) Required(name string, v any) {
	raw, ok := d.take(name)
	switch {
	case ok:
		d.decode(name, raw, reflect.ValueOf(v).Elem())
	case d.err == nil:
		d.err = at(name, fault("is required"))
	}
}

// Boxed is Required for a pointer that must not be nil.
func (d *ObjectDecoder) Boxed(name string, v any) {
	before := d.err
	if _, ok := d.members[name]; !ok && before == nil {
		d.err = at(name, fault("is required"))
	}
	d.Optional(name, v)
}

// Optional decodes a member that may be absent. v points to a pointer, which
// stays nil where it is absent, or to an [Optional].
func (d *ObjectDecoder) Optional(name string, v any) {
	raw, ok := d.take(name)
	if !ok {
		return
	}
	if o, ok := v.(interface{ target() any }); ok {
		d.decode(name, raw, reflect.ValueOf(o.target()).Elem())
		return
	}
	to := reflect.ValueOf(v).Elem()
	if to.Kind() != reflect.Pointer { // json.RawMessage, nil where absent
		d.decode(name, raw, to)
		return
	}
	value := reflect.New(to.Type().Elem())
	d.decode(name, raw, value.Elem())
	to.Set(value)
}

// Rest decodes the members that are left into what v points to, a map.
func (d *ObjectDecoder) Rest(v any) {
	if d.err == nil && len(d.members) > 0 {
		d.err = fillMap(d.members, reflect.ValueOf(v).Elem())
	}
}

// Closed refuses members that are left.
func (d *ObjectDecoder) Closed() {
	if d.err != nil || len(d.members) == 0 {
		return
	}
	names := make([]string, 0, len(d.members))
	for name := range d.members {
		names = append(names, name)
	}
	first := slices.Min(names)
	if len(first) > 64 {
		first = strings.ToValidUTF8(first[:64], "") + "…"
	}
	d.err = at(first, fault("is not a member of this object"))
}

// Err returns the first fault.
func (d *ObjectDecoder) Err() error { return d.err }

// An ObjectEncoder writes one object. After the first fault it does nothing
// more.
type ObjectEncoder struct {
	out  []byte
	seen map[string]bool
	err  error
}

// EncodeObject starts to write an object.
func EncodeObject() *ObjectEncoder {
	return &ObjectEncoder{out: []byte{'{'}, seen: map[string]bool{}}
}

func (e *ObjectEncoder) member(name string, v reflect.Value) {
	switch {
	case e.err != nil:
		return
	case e.seen[name]:
		e.err = at(name, fault("is set twice"))
		return
	}
	e.seen[name] = true
	if len(e.out) > 1 {
		e.out = append(e.out, ',')
	}
	out, err := encodeString(e.out, name)
	if err == nil {
		out, err = encode(append(out, ':'), v)
	}
	e.out, e.err = out, at(name, err)
}

// Required writes a member.
func (e *ObjectEncoder) Required(name string, v any) { e.member(name, reflect.ValueOf(v)) }

// Boxed writes a member whose pointer must not be nil.
func (e *ObjectEncoder) Boxed(name string, v any) {
	if reflect.ValueOf(v).IsNil() && e.err == nil {
		e.err = at(name, fault("is required"))
	}
	e.Required(name, v)
}

// Optional writes a member unless it is a nil pointer or an unset [Optional].
func (e *ObjectEncoder) Optional(name string, v any) {
	if o, ok := v.(interface{ value() (any, bool) }); ok {
		if value, set := o.value(); set {
			e.member(name, reflect.ValueOf(value))
		}
		return
	}
	if value := reflect.ValueOf(v); !value.IsNil() {
		e.member(name, value)
	}
}

// Rest writes the members of a map, in the order of their names.
func (e *ObjectEncoder) Rest(v any) {
	m := reflect.ValueOf(v)
	for _, name := range sortedKeys(m) {
		e.member(name, m.MapIndex(reflect.ValueOf(name)))
	}
}

// Bytes ends the object.
func (e *ObjectEncoder) Bytes() ([]byte, error) {
	if e.err != nil {
		return nil, e.err
	}
	return append(e.out, '}'), nil
}
