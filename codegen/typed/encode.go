package typed

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"github.com/agentd/agentd/internal/ijson"
)

// Marshal encodes a generated type, or one made of them.
func Marshal(v any) ([]byte, error) { return encodeAny(nil, v) }

// encodeAny is encode, without reflection for the common types.
func encodeAny(dst []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case string:
		return ijson.AppendQuoted(dst, v), nil
	case int64:
		return strconv.AppendInt(dst, v, 10), nil
	case bool:
		return strconv.AppendBool(dst, v), nil
	}
	return encode(dst, reflect.ValueOf(v))
}

// encode writes any value of a generated type. An invalid Value is an untyped nil.
func encode(dst []byte, v reflect.Value) ([]byte, error) {
	if !v.IsValid() {
		return append(dst, "null"...), nil
	}
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return append(dst, "null"...), nil
		}
		return encode(dst, v.Elem())
	}
	if m, ok := marshaler(v); ok {
		data, err := m.MarshalJSON()
		return append(dst, data...), err
	}
	switch v.Kind() {
	case reflect.String:
		if n, ok := v.Interface().(json.Number); ok {
			return encodeNumber(dst, n)
		}
		return ijson.AppendQuoted(dst, v.String()), nil
	case reflect.Slice:
		return encodeSlice(dst, v)
	case reflect.Map:
		o := EncodeObject()
		o.Rest(v.Interface())
		data, err := o.Bytes()
		return append(dst, data...), err
	}
	data, err := json.Marshal(v.Interface())
	if err != nil {
		return nil, fault(fmt.Sprintf("cannot be encoded: %v", err))
	}
	return append(dst, data...), nil
}

// marshaler is v as a [json.Marshaler]. Where v is part of a larger value, its
// address serves: an interface with v itself would be a copy of it.
func marshaler(v reflect.Value) (m json.Marshaler, ok bool) {
	if v.CanAddr() {
		v = v.Addr()
	}
	m, ok = v.Interface().(json.Marshaler)
	return m, ok
}

// encodeNumber writes the zero json.Number as 0, as encoding/json does.
func encodeNumber(dst []byte, n json.Number) ([]byte, error) {
	if n == "" {
		n = "0"
	}
	data, err := json.Marshal(n)
	if err != nil {
		return nil, fault("is not a number")
	}
	return append(dst, data...), nil
}

// encodeSlice writes a nil slice as [], see the package comment.
func encodeSlice(dst []byte, v reflect.Value) ([]byte, error) {
	dst = append(dst, '[')
	for i := range v.Len() {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = encode(dst, v.Index(i)); err != nil {
			return nil, at(fmt.Sprint(i), err)
		}
	}
	return append(dst, ']'), nil
}

// sortedKeys makes the output of maps the same every time.
func sortedKeys(m reflect.Value) []string {
	var keys []string
	for _, k := range m.MapKeys() {
		keys = append(keys, k.String())
	}
	slices.Sort(keys)
	return keys
}

// EncodeUnion writes the one non-nil pointer of parts.
func EncodeUnion(parts ...any) ([]byte, error) {
	var set []any
	for _, p := range parts {
		if !reflect.ValueOf(p).IsNil() {
			set = append(set, p)
		}
	}
	if len(set) != 1 {
		return nil, fault(fmt.Sprintf("%d fields of the union are set; set exactly one", len(set)))
	}
	return Marshal(set[0])
}
