package typed

import (
	"encoding/json"
	"errors"
	"math/big"
	"reflect"
	"strconv"
	"strings"

	"github.com/agentd/agentd/internal/ijson"
)

// Unmarshal decodes one JSON value into what v points to, strictly; see the
// package comment. The error is a [*ValueError], or what encoding/json says of
// a type that is neither generated nor made of generated ones.
func Unmarshal(data []byte, v any) error {
	if err := ijson.Check(data, ijson.DefaultMaxDepth); err != nil {
		return invalid(err)
	}
	data, err := trim(data)
	if err != nil {
		return err
	}
	return decodeInto(data, v)
}

// decodeInto fills what v points to with one JSON value without white space
// around it. The common types are decoded without reflection.
func decodeInto(data []byte, v any) (err error) {
	switch v := v.(type) {
	case json.Unmarshaler:
		return v.UnmarshalJSON(data)
	case *string:
		*v, err = parseString(data)
	case *int64:
		*v, err = parseInteger(data)
	case *float64:
		*v, err = parseFloat(data)
	case *bool:
		*v, err = parseBool(data)
	default:
		return decode(data, reflect.ValueOf(v).Elem())
	}
	return err
}

// decode is decodeInto for every type. A type that implements json.Unmarshaler,
// as generated objects, enums and unions do, decodes itself.
func decode(data []byte, v reflect.Value) error {
	// Pointers come first below: null must become nil, not reach the element's
	// UnmarshalJSON.
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

// decodeSlice makes an empty slice rather than nil for [], which encodes to []
// again.
func decodeSlice(data []byte, v reflect.Value) error {
	if data[0] != '[' {
		return fault("must be an array")
	}
	v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	return eachElement(data, func(i int, element []byte) error {
		if i == v.Cap() {
			v.Grow(1)
		}
		v.SetLen(i + 1)
		// Growing may reuse memory that holds an older value.
		v.Index(i).SetZero()
		if err := decode(element, v.Index(i)); err != nil {
			return at(strconv.Itoa(i), err)
		}
		return nil
	})
}

// decodeMap fills a map, whose keys may be of any string type.
func decodeMap(data []byte, v reflect.Value) error {
	if data[0] != '{' {
		return fault("must be an object")
	}
	all, err := appendMembers(nil, data)
	if err != nil {
		return err
	}
	return fillMap(all, v)
}

// fillMap is decodeMap for members that are split already.
func fillMap(all []member, v reflect.Value) error {
	v.Set(reflect.MakeMapWithSize(v.Type(), len(all)))
	for _, m := range all {
		name := string(m.name)
		elem := reflect.New(v.Type().Elem()).Elem()
		if err := decode(m.value, elem); err != nil {
			return at(name, err)
		}
		v.SetMapIndex(reflect.ValueOf(name).Convert(v.Type().Key()), elem)
	}
	return nil
}

// decodeScalar fills a string, number or boolean, whatever its type's name.
func decodeScalar(data []byte, v reflect.Value) error {
	switch v.Kind() {
	case reflect.String:
		// json.Number is a string to reflection, but holds a JSON number.
		if v.Type() == reflect.TypeFor[json.Number]() {
			if !isNumber(data) {
				return fault("must be a number")
			}
			v.SetString(string(data))
			return nil
		}
		s, err := parseString(data)
		v.SetString(s)
		return err
	case reflect.Int64:
		n, err := parseInteger(data)
		v.SetInt(n)
		return err
	case reflect.Float64:
		f, err := parseFloat(data)
		v.SetFloat(f)
		return err
	case reflect.Bool:
		b, err := parseBool(data)
		v.SetBool(b)
		return err
	}
	return json.Unmarshal(data, v.Addr().Interface())
}

// parseString returns the characters of a JSON string.
func parseString(data []byte) (string, error) {
	if data[0] != '"' {
		return "", fault("must be a string")
	}
	end, escaped, err := ijson.ScanString(data, 0)
	if err != nil {
		return "", invalid(err)
	}
	raw := data[1 : end-1]
	if escaped {
		raw = ijson.AppendUnquoted(nil, raw)
	}
	return string(raw), nil
}

func parseBool(data []byte) (bool, error) {
	switch string(data) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, fault("must be true or false")
}

func isNumber(data []byte) bool { return data[0] == '-' || data[0] >= '0' && data[0] <= '9' }

func parseFloat(data []byte) (float64, error) {
	if !isNumber(data) {
		return 0, fault("must be a number")
	}
	f, err := strconv.ParseFloat(string(data), 64)
	if err != nil {
		return 0, fault("is beyond the range of float64")
	}
	return f, nil
}

// parseInteger reads a number without a fractional part, however it is written:
// in JSON Schema, 1.0 and 1e2 are integers (draft 6 and later).
func parseInteger(data []byte) (int64, error) {
	if !isNumber(data) {
		return 0, fault("must be an integer")
	}
	if n, err := strconv.ParseInt(string(data), 10, 64); err == nil {
		return n, nil
	}
	const beyond = "is beyond the range of int64"
	const mostDigits = 400 // expanding 1e999999999 would cost memory without bound
	mantissa, exponent, _ := strings.Cut(strings.ToLower(string(data)), "e")
	// Zero with any exponent, such as 0e999999999.
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
	data, err := trim(data)
	if err != nil {
		return err
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
	data, err := trim(data)
	if err != nil {
		return err
	}
	var deepest *ValueError
	depth := -1
	for _, p := range parts {
		to := reflect.ValueOf(p).Elem()
		v := reflect.New(to.Type().Elem())
		err := decode(data, v.Elem())
		if err == nil {
			to.Set(v)
			return nil
		}
		// The part that decoded deepest before failing is most likely the one the
		// sender meant: its error is the useful one.
		if e := new(ValueError); errors.As(err, &e) && strings.Count(e.Path, "/") > depth {
			deepest, depth = e, strings.Count(e.Path, "/")
		}
	}
	if depth > 0 {
		return &ValueError{Path: deepest.Path, Message: deepest.Message + ", in the closest of the union's types"}
	}
	return fault("fits none of the union's types")
}
