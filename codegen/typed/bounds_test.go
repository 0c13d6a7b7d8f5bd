package typed_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/codegen/typed"
)

// Any number is read as an integer exactly if it is one that 64 bits hold.
func TestIntegersAgreeWithExactArithmetic(t *testing.T) {
	text := rapid.StringMatching(`-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,4}0{0,3})?([eE][-+]?[0-9]{1,2})?`)
	rapid.Check(t, func(t *rapid.T) {
		text := text.Draw(t, "number")
		exact, ok := new(big.Rat).SetString(text)
		if !ok {
			t.Skip(text)
		}
		var got int64
		err := typed.Unmarshal([]byte(text), &got)
		if want := exact.IsInt() && exact.Num().IsInt64(); (err == nil) != want {
			t.Fatalf("%s: %v, want an integer: %v", text, err, want)
		}
		if err == nil && big.NewInt(got).Cmp(exact.Num()) != 0 {
			t.Fatalf("%s is read as %d", text, got)
		}
	})
}

func TestNumberFaults(t *testing.T) {
	for _, tt := range []struct {
		text string
		into any
		want string
	}{
		{"9223372036854775808", new(int64), "typed: is beyond the range of int64"},
		{"-9223372036854775809", new(int64), "typed: is beyond the range of int64"},
		{"1e400", new(int64), "typed: is beyond the range of int64"},
		{"1e401", new(int64), "typed: is beyond the range of int64"},
		{"1e-401", new(int64), "typed: is beyond the range of int64"}, // not expanded, though it is no integer
		{"1e-400", new(int64), "typed: must be an integer"},
		{"1e99999999999999999999", new(int64), "typed: is beyond the range of int64"},
		{"0.5", new(int64), "typed: must be an integer"},
		{`"1"`, new(int64), "typed: must be an integer"},
		{"true", new(int64), "typed: must be an integer"},
		{"1e309", new(float64), "typed: is beyond the range of float64"},
		{"-1e309", new(float64), "typed: is beyond the range of float64"},
		{`"1"`, new(float64), "typed: must be a number"},
		{"null", new(float64), "typed: must be a number"},
		{`"1"`, new(json.Number), "typed: must be a number"},
		{"null", new(json.Number), "typed: must be a number"},
		{"1", new(bool), "typed: must be true or false"},
		{`"true"`, new(bool), "typed: must be true or false"},
		{"null", new(string), "typed: must be a string"},
		{"null", new(typed.Never), "typed: no value is allowed here"},
		{"0", new(typed.Null), "typed: must be null"},
		{"[]", new(map[string]int64), "typed: must be an object"},
		{"{}", new([]int64), "typed: must be an array"},
		{`{"a/b~":[1,true]}`, new(map[string][]int64), "typed: /a~1b~0/1: must be an integer"},
	} {
		if err := typed.Unmarshal([]byte(tt.text), tt.into); err == nil || err.Error() != tt.want {
			t.Errorf("%s into %T: %v, want %s", tt.text, tt.into, err, tt.want)
		}
	}
	var smallest float64
	if err := typed.Unmarshal([]byte("1e-400"), &smallest); err != nil || smallest != 0 {
		t.Errorf("a number too small for a double is %v, %v", smallest, err)
	}
}

// Floats and integers of 64 bits come back as they were.
func TestNumbersRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := struct {
			I []int64
			F []float64
		}{rapid.SliceOf(rapid.Int64()).Draw(t, "integers"), rapid.SliceOf(rapid.Float64()).Draw(t, "floats")}
		var integers []int64
		var floats []float64
		for _, trip := range []struct{ from, to any }{{want.I, &integers}, {want.F, &floats}} {
			data, err := typed.Marshal(trip.from)
			if err != nil {
				t.Fatal(err)
			}
			if err := typed.Unmarshal(data, trip.to); err != nil || !reflect.DeepEqual(reflect.ValueOf(trip.to).Elem().Interface(), trip.from) {
				t.Fatalf("%v became %s, then %v, %v", trip.from, data, trip.to, err)
			}
		}
	})
	for _, f := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		var value *typed.ValueError
		if data, err := typed.Marshal([]float64{f}); !errors.As(err, &value) || value.Path != "/0" {
			t.Errorf("%v is written %s, %v", f, data, err)
		}
	}
}

// A value that is decoded into replaces what was there, so that nothing of an
// earlier one shows through.
func TestDecodingReplaces(t *testing.T) {
	list, numbers, pointer := []int64{1, 2, 3}, map[string]int64{"old": 1}, typed.Ptr("old")
	for text, into := range map[string]any{`[7]`: &list, `{"new":2}`: &numbers, `null`: &pointer} {
		if err := typed.Unmarshal([]byte(text), into); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	if !reflect.DeepEqual(list, []int64{7}) || !reflect.DeepEqual(numbers, map[string]int64{"new": 2}) || pointer != nil {
		t.Errorf("%v, %v, %v", list, numbers, pointer)
	}
	old := "kept"
	shared := &old
	if err := typed.Unmarshal([]byte(`"other"`), &shared); err != nil || *shared != "other" || old != "kept" {
		t.Errorf("a pointer is decoded into what it pointed to: %q, now %q, %v", *shared, old, err)
	}
	var nested [][]*int64
	if err := typed.Unmarshal([]byte(` [ [ 1 , null ] , [ ] ] `), &nested); err != nil || len(nested) != 2 || *nested[0][0] != 1 || nested[0][1] != nil || nested[1] == nil {
		t.Errorf("%v, %v", nested, err)
	}
}

// Among several failures, that of the part which went deepest is reported, and the
// first of equals.
func TestUnionReportsTheClosestPart(t *testing.T) {
	for text, want := range map[string]string{
		`{"id":"a","level":"low","size":"x"}`: "typed: /size: must be an integer, in the closest of the union's types",
		`{"next":{"id":"a","level":"mid"}}`:   "typed: /next/level: is not one of the values of the enum, in the closest of the union's types",
		`[{}]`:                                "typed: fits none of the union's types",
		`7`:                                   "typed: fits none of the union's types",
		`{"next":{"id":"a","level":"low"},"z":1}`:                  "typed: /id: is required, in the closest of the union's types",
		`{"id":"a","level":"low","next":{"id":"b","level":"mid"}}`: "typed: /next/level: is not one of the values of the enum, in the closest of the union's types",
	} {
		var a *item
		var b *closed
		if err := typed.DecodeUnion([]byte(text), &a, &b); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
		if a != nil || b != nil {
			t.Errorf("%s: a part that does not fit is set", text)
		}
	}
}

// A decoder without a Rest or a Closed passes members over that it was not asked for.
func TestOtherMembersArePassedOver(t *testing.T) {
	var b *bool
	var c []string
	o := typed.DecodeObject([]byte(` {"x":{},"c":["p"],"b":true,"y":1} `))
	o.Optional("b", &b)
	o.Optional("c", &c)
	o.Optional("absent", new(*int64))
	if err := o.Err(); err != nil || b == nil || !*b || !reflect.DeepEqual(c, []string{"p"}) {
		t.Errorf("%v, %v, %v", b, c, err)
	}
	for text, want := range map[string]string{`null`: "typed: must be an object", `[]`: "typed: must be an object", ``: "typed: must be an object"} {
		o := typed.DecodeObject([]byte(text))
		o.Rest(new(map[string]any))
		if err := o.Err(); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// Skills are run as often as they are called, and the list of them is the reader's
// own.
func TestMuxKeepsItsSkills(t *testing.T) {
	var m typed.Mux
	if len(m.Skills()) != 0 {
		t.Error("an empty mux has skills")
	}
	double := func(_ context.Context, n int64) (int64, error) { return 2 * n, nil }
	typed.Handle(&m, "double", "math", double)
	typed.Handle(&m, "twice", "math", double)
	skills := m.Skills()
	skills[0].Capability = "changed"
	for i, want := range []string{"double", "twice"} {
		s := m.Skills()[i]
		out, err := s.Run(t.Context(), json.RawMessage(` 21.0 `))
		if s.Capability != want || s.Name != "math" || err != nil || string(out) != "42" {
			t.Errorf("%s, %s: %s, %v", s.Capability, s.Name, out, err)
		}
	}
	_, err := m.Skills()[0].Run(t.Context(), json.RawMessage(`"21"`))
	if want := "decode the request of double: typed: must be an integer"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
