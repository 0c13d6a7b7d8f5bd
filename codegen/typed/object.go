package typed

import (
	"reflect"
	"slices"

	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/internal/truncate"
)

// An ObjectDecoder decodes the members of one object. Generated code calls it
// once per declared member, then Rest or Closed, then Err. After the first fault
// it does nothing more.
type ObjectDecoder struct {
	left  []member // those that no method has decoded yet
	taken []string
	err   error

	// Backing arrays of left and taken: an object with few members needs no
	// memory beyond the decoder itself.
	room      [8]member
	takenRoom [8]string
}

// DecodeObject starts to decode an object.
func DecodeObject(data []byte) *ObjectDecoder {
	d := &ObjectDecoder{}
	data, err := trim(data)
	if err != nil || data[0] != '{' {
		d.err = fault("must be an object")
		return d
	}
	d.taken = d.takenRoom[:0]
	d.left, d.err = appendMembers(d.room[:0], data)
	return d
}

// take removes the member called name from those that are left.
func (d *ObjectDecoder) take(name string) (value []byte, ok bool) {
	if d.err != nil {
		return nil, false
	}
	for i, m := range d.left {
		if string(m.name) == name {
			// Senders usually write members in declared order. The one found is then
			// the first that is left, and nothing moves.
			copy(d.left[1:i+1], d.left[:i])
			d.left = d.left[1:]
			d.taken = append(d.taken, name)
			return m.value, true
		}
	}
	return nil, false
}

// decode decodes one member and keeps the first fault, under the member's name.
func (d *ObjectDecoder) decode(name string, raw []byte, v any) {
	if err := decodeInto(raw, v); err != nil {
		d.err = at(name, err)
	}
}

// Required decodes a member that must be there into what v points to.
func (d *ObjectDecoder) Required(name string, v any) {
	raw, ok := d.take(name)
	switch {
	case ok:
		d.decode(name, raw, v)
	case d.err == nil:
		d.err = at(name, fault("is required"))
	}
}

// Boxed is Required for a pointer that must not be nil.
func (d *ObjectDecoder) Boxed(name string, v any) {
	raw, ok := d.take(name)
	switch {
	case ok:
		d.decodeNew(name, raw, reflect.ValueOf(v).Elem())
	case d.err == nil:
		d.err = at(name, fault("is required"))
	}
}

// Optional decodes a member that may be absent. v points to a pointer, which
// stays nil where it is absent, or to an [Optional].
func (d *ObjectDecoder) Optional(name string, v any) {
	raw, ok := d.take(name)
	if !ok {
		return
	}
	if o, ok := v.(interface{ target() any }); ok {
		d.decode(name, raw, o.target())
		return
	}
	if to := reflect.ValueOf(v).Elem(); to.Kind() == reflect.Pointer {
		d.decodeNew(name, raw, to)
		return
	}
	d.decode(name, raw, v) // a slice or a map, nil where absent
}

// Forbidden makes a member that no value is allowed for a fault.
func (d *ObjectDecoder) Forbidden(name string) {
	if _, ok := d.take(name); ok {
		d.err = at(name, fault("no value is allowed here"))
	}
}

// decodeNew decodes into what the pointer to then points to.
func (d *ObjectDecoder) decodeNew(name string, raw []byte, to reflect.Value) {
	value := reflect.New(to.Type().Elem())
	d.decode(name, raw, value.Interface())
	to.Set(value)
}

// Rest decodes the members that are left into what v points to, a map.
func (d *ObjectDecoder) Rest(v any) {
	if d.err != nil || len(d.left) == 0 {
		return
	}
	// A repeated member would be left in d.left and pass as one that the schema
	// does not name. UnmarshalJSON may be called without the check of Unmarshal.
	for _, name := range d.taken {
		if _, twice := d.take(name); twice {
			d.err = at(name, fault("is there twice"))
			return
		}
	}
	d.err = fillMap(d.left, reflect.ValueOf(v).Elem())
}

// Closed makes members that are left a fault.
func (d *ObjectDecoder) Closed() {
	if d.err != nil || len(d.left) == 0 {
		return
	}
	const shown = 64 // bytes of a name that the sender has chosen
	d.err = at(truncate.String(string(d.left[0].name), shown), fault("is not a member of this object"))
}

// Err returns the first fault.
func (d *ObjectDecoder) Err() error { return d.err }

// An ObjectEncoder writes one object. After the first fault it does nothing
// more.
type ObjectEncoder struct {
	out   []byte
	names []string // written so far
	err   error

	forbidden []string
}

// EncodeObject starts to write an object.
func EncodeObject() *ObjectEncoder {
	return &ObjectEncoder{out: append(make([]byte, 0, 256), '{'), names: make([]string, 0, 8)}
}

// member writes a name and a value, with a comma before all but the first.
func (e *ObjectEncoder) member(name string, v any) {
	if e.err != nil {
		return
	}
	e.names = append(e.names, name)
	if len(e.out) > 1 {
		e.out = append(e.out, ',')
	}
	out, err := encodeAny(append(ijson.AppendQuoted(e.out, name), ':'), v)
	e.out, e.err = out, at(name, err)
}

// Required writes a member.
func (e *ObjectEncoder) Required(name string, v any) { e.member(name, v) }

// Boxed writes a member whose pointer must not be nil.
func (e *ObjectEncoder) Boxed(name string, v any) {
	if reflect.ValueOf(v).IsNil() && e.err == nil {
		e.err = at(name, fault("is required"))
	}
	e.Required(name, v)
}

// Constant writes a member that has one value only. A zero v stands for it: what can only
// be one value need not be filled in.
func (e *ObjectEncoder) Constant(name string, v, constant any) {
	if reflect.ValueOf(v).IsZero() {
		v = constant
	}
	e.Required(name, v)
}

// Forbidden keeps [ObjectEncoder.Rest] from writing a member that no value is allowed for.
func (e *ObjectEncoder) Forbidden(name string) { e.forbidden = append(e.forbidden, name) }

// Optional writes a member unless it is a nil pointer or an unset [Optional].
func (e *ObjectEncoder) Optional(name string, v any) {
	if o, ok := v.(interface{ value() (any, bool) }); ok {
		if value, set := o.value(); set {
			e.member(name, value)
		}
		return
	}
	if !reflect.ValueOf(v).IsNil() {
		e.member(name, v)
	}
}

// Rest writes the members of a map, in the order of their names.
func (e *ObjectEncoder) Rest(v any) {
	m := reflect.ValueOf(v)
	if m.Len() == 0 {
		return
	}
	// Only declared names can collide: a map holds each of its own once.
	declared := len(e.names)
	for _, name := range sortedKeys(m) {
		switch {
		case e.err != nil:
		case slices.Contains(e.names[:declared], name):
			e.err = at(name, fault("is set twice"))
		case slices.Contains(e.forbidden, name):
			e.err = at(name, fault("no value is allowed here"))
		}
		e.member(name, m.MapIndex(reflect.ValueOf(name)).Interface())
	}
}

// Bytes ends the object.
func (e *ObjectEncoder) Bytes() ([]byte, error) {
	if e.err != nil {
		return nil, e.err
	}
	return append(e.out, '}'), nil
}
