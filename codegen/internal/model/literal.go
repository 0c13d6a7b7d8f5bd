package model

import (
	"bytes"
	"encoding/json"
	"math"
	"math/big"
	"strconv"

	"github.com/agentd/agentd/schema"
)

// literalType returns the type of one value of a const or an enum, given as JSON
// and, for a string, as its characters. Numbers that neither 64-bit integers nor
// doubles hold get wider types.
func literalType(raw []byte, t schema.Type, text string) *Type {
	switch t {
	case schema.TypeNull:
		return &Type{Kind: Null}
	case schema.TypeBoolean:
		return &Type{Kind: Enum, Base: Boolean, Values: []string{string(raw)}}
	case schema.TypeString:
		return &Type{Kind: Enum, Base: String, Values: []string{text}}
	case schema.TypeInteger:
		if s, ok := integerText(raw); ok {
			return &Type{Kind: Enum, Base: Integer, Values: []string{s}}
		}
		return &Type{Kind: Integer, Big: true}
	case schema.TypeNumber:
		f, err := strconv.ParseFloat(string(raw), 64)
		// A float that rounds to infinity or to a whole number is not the value
		// that the schema means.
		if err != nil || math.IsInf(f, 0) || f == math.Trunc(f) {
			return &Type{Kind: Number}
		}
		return &Type{Kind: Enum, Base: Number, Values: []string{strconv.FormatFloat(f, 'g', -1, 64)}}
	case schema.TypeArray:
		return literalArray(raw)
	}
	return literalObject(raw)
}

// literalArray returns the type of arrays of a literal's elements.
func literalArray(raw []byte) *Type {
	var elems []json.RawMessage
	if json.Unmarshal(raw, &elems) != nil {
		return &Type{Kind: Array, Elem: anyType}
	}
	types := []*Type{} // not nil: no element is a tuple too
	for _, e := range elems {
		types = append(types, jsonType(e))
	}
	return &Type{Kind: Array, Elem: UnionOf(types...), Tuple: types}
}

// literalObject returns an object with exactly the members of a literal. It reads
// tokens rather than a map, to keep their order.
func literalObject(raw []byte) *Type {
	open := &Type{Kind: Object, Elem: anyType}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.Token(); err != nil {
		return open
	}
	t := &Type{Kind: Object}
	for dec.More() {
		name, err := dec.Token()
		var value json.RawMessage
		if err != nil || dec.Decode(&value) != nil {
			return open
		}
		t.Members = append(t.Members, Member{Name: name.(string), Type: jsonType(value), Required: true})
	}
	return t
}

// jsonType is literalType for a value inside another one.
func jsonType(raw []byte) *Type {
	switch raw[0] {
	case 'n':
		return literalType(raw, schema.TypeNull, "")
	case 't', 'f':
		return literalType(raw, schema.TypeBoolean, "")
	case '[':
		return literalType(raw, schema.TypeArray, "")
	case '{':
		return literalType(raw, schema.TypeObject, "")
	case '"':
		var text string
		if json.Unmarshal(raw, &text) != nil {
			return &Type{Kind: String}
		}
		return literalType(raw, schema.TypeString, text)
	}
	if _, ok := integerText(raw); ok {
		return literalType(raw, schema.TypeInteger, "")
	}
	return literalType(raw, schema.TypeNumber, "")
}

// integerText returns a JSON number in plain digits if it is an integer that 64
// bits hold: 1e2 is 100.
func integerText(text []byte) (string, bool) {
	const mostDigits = 400 // doubles have no more, and more would cost memory
	_, exponent, _ := bytes.Cut(bytes.ToLower(text), []byte("e"))
	if e, err := strconv.Atoi(string(exponent)); len(exponent) > 0 && (err != nil || max(e, -e) > mostDigits) {
		return "", false
	}
	r, ok := new(big.Rat).SetString(string(text))
	if !ok || !r.IsInt() || !r.Num().IsInt64() {
		return "", false
	}
	return r.Num().String(), true
}
