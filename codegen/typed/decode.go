package typed

import (
	"bytes"
	"encoding/json"
	"math/big"
	"reflect"
	"strconv"
	"strings"
)

// Unmarshal decodes one JSON value into what v points to, strictly; see the
// package comment. The error is a [*ValueError] or of encoding/json.
func Unmarshal(data []byte, v any) error {
	if !json.Valid(data) {
		return json.Unmarshal(data, new(any)) // its error says where
	}
	return decode(bytes.TrimSpace(data), reflect.ValueOf(v).Elem())
}

// decode fills v with one valid JSON value without space around it.
func decode(data []byte, v reflect.Value) error {
	if v.Kind() != reflect.Pointer {
		if u, ok := v.Addr().Interface().(json.Unmarshaler); ok {
			return u.UnmarshalJSON(data)
		}
	}
	switch v.Kind() {
	case reflect.Pointer:
		if string(data) == "null" {
			v.SetZero()
			return nil
		}
		v.Set(reflect.New(v.Type().Elem()))
		return decode(data, v.Elem())
	case reflect.Slice:
		return decodeSlice(data, v)
	case reflect.Map:
		return decodeMap(data, v)
	}
	return decodeScalar(data, v)
}

func decodeSlice(data []byte, v reflect.Value) error {
	if data[0] != '[' {
		return fault("must be an array")
	}
	var raw []json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	v.Set(reflect.MakeSlice(v.Type(), len(raw), len(raw)))
	for i, e := range raw {
		if err := decode(e, v.Index(i)); err != nil {
			return at(strconv.Itoa(i), err)
		}
	}
	return nil
}

func decodeMap(data []byte, v reflect.Value) error {
	if data[0] != '{' {
		return fault("must be an object")
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	return fillMap(raw, v)
}

func fillMap(raw map[string]json.RawMessage, v reflect.Value) error {
	v.Set(reflect.MakeMapWithSize(v.Type(), len(raw)))
	for name, e := range raw {
		elem := reflect.New(v.Type().Elem()).Elem()
		if err := decode(e, elem); err != nil {
			return at(name, err)
		}
		v.SetMapIndex(reflect.ValueOf(name), elem)
	}
	return nil
}

// decodeScalar fills a string, number or boolean, whatever its type's name.
func decodeScalar(data []byte, v reflect.Value) error {
	isNumber := data[0] == '-' || data[0] >= '0' && data[0] <= '9'
	switch {
	case v.Type() == reflect.TypeFor[json.Number]():
		if !isNumber {
			return fault("must be a number")
		}
		v.SetString(string(data))
	case v.Kind() == reflect.String:
		var s string
		if data[0] != '"' || json.Unmarshal(data, &s) != nil {
			return fault("must be a string")
		}
		v.SetString(s)
	case v.Kind() == reflect.Int64:
		n, err := parseInteger(data, isNumber)
		if err != nil {
			return err
		}
		v.SetInt(n)
	case v.Kind() == reflect.Float64:
		if !isNumber {
			return fault("must be a number")
		}
		f, err := strconv.ParseFloat(string(data), 64)
		if err != nil {
			return fault("is beyond the range of float64")
		}
		v.SetFloat(f)
	case v.Kind() == reflect.Bool:
		if data[0] != 't' && data[0] != 'f' {
			return fault("must be true or false")
		}
		v.SetBool(data[0] == 't')
	default:
		return json.Unmarshal(data, v.Addr().Interface())
	}
	return nil
}

// parseInteger reads a number without fraction, however it is written.
func parseInteger(data []byte, isNumber bool) (int64, error) {
	if !isNumber {
		return 0, fault("must be an integer")
	}
	if n, err := strconv.ParseInt(string(data), 10, 64); err == nil {
		return n, nil
	}
	const beyond = "is beyond the range of int64"
	const mostDigits = 400 // an exponent must not cost memory
	mantissa, exponent, _ := strings.Cut(strings.ToLower(string(data)), "e")
	if strings.Trim(mantissa, "-0.") == "" {
		return 0, nil
	}
	if e, err := strconv.Atoi(exponent); exponent != "" && (err != nil || max(e, -e) > mostDigits) {
		return 0, fault(beyond)
	}
	r, ok := new(big.Rat).SetString(string(data))
	switch {
	case !ok || !r.IsInt():
		return 0, fault("must be an integer")
	case !r.Num().IsInt64():
		return 0, fault(beyond)
	}
	return r.Num().Int64(), nil
}

// DecodeEnum decodes a value of an enum: one of allowed.
func DecodeEnum[T ~string | ~int64 | ~float64 | ~bool](data []byte, v *T, allowed ...T) error {
	var got T
	if data = bytes.TrimSpace(data); len(data) == 0 {
		return fault("is empty")
	}
	if err := decodeScalar(data, reflect.ValueOf(&got).Elem()); err != nil {
		return err
	}
	for _, a := range allowed {
		if a == got {
			*v = got
			return nil
		}
	}
	return fault("is not one of the values of the enum")
}

// DecodeUnion decodes data into the first of parts that it fits; each is a
// pointer to a pointer. The others stay nil.
func DecodeUnion(data []byte, parts ...any) error {
	if data = bytes.TrimSpace(data); len(data) == 0 {
		return fault("is empty")
	}
	var deepest error
	depth := -1
	for _, p := range parts {
		to := reflect.ValueOf(p).Elem()
		v := reflect.New(to.Type().Elem())
		err := decode(data, v.Elem())
		if err == nil {
			to.Set(v)
			return nil
		}
		// The part that got furthest is most likely the one that was meant.
		if e, ok := err.(*ValueError); ok && strings.Count(e.Path, "/") > depth {
			deepest, depth = err, strings.Count(e.Path, "/")
		}
	}
	if e, ok := deepest.(*ValueError); ok && depth > 0 {
		return &ValueError{Path: e.Path, Message: e.Message + ", in the closest of the union's types"}
	}
	return fault("fits none of the union's types")
}
