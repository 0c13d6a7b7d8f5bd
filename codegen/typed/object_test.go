package typed_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/codegen/typed"
)

// pair has members of the kinds that take a way of their own.
type pair struct {
	A     string
	B     typed.Optional[*int64]
	List  []bool
	Extra map[string]int64
}

func (v *pair) UnmarshalJSON(data []byte) error {
	var n pair
	o := typed.DecodeObject(data)
	o.Required("a", &n.A)
	o.Optional("b", &n.B)
	o.Optional("list", &n.List)
	o.Rest(&n.Extra)
	if err := o.Err(); err != nil {
		return err
	}
	*v = n
	return nil
}

func (v pair) MarshalJSON() ([]byte, error) {
	o := typed.EncodeObject()
	o.Required("a", v.A)
	o.Optional("b", v.B)
	o.Optional("list", v.List)
	o.Rest(v.Extra)
	return o.Bytes()
}

func TestAbsentIsNotNullAndNotEmpty(t *testing.T) {
	one := int64(1)
	for _, tt := range []struct {
		text string
		want pair
	}{
		{`{"a":""}`, pair{}},
		{`{"a":"","b":null}`, pair{B: typed.Some[*int64](nil)}},
		{`{"a":"","b":1}`, pair{B: typed.Some(&one)}},
		{`{"a":"","list":[]}`, pair{List: []bool{}}},
		{`{"a":"","list":[true,false]}`, pair{List: []bool{true, false}}},
		{`{"a":"","x":1,"y":2}`, pair{Extra: map[string]int64{"x": 1, "y": 2}}},
	} {
		var got pair
		if err := typed.Unmarshal([]byte(tt.text), &got); err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %+v, %v, want %+v", tt.text, got, err, tt.want)
		}
		if again, err := typed.Marshal(got); err != nil || string(again) != tt.text {
			t.Errorf("%s comes back as %s, %v", tt.text, again, err)
		}
	}
}

// Names are compared by what they stand for, whatever their order and however
// they are written.
func TestMembersInAnyOrderAndSpelling(t *testing.T) {
	order := rapid.Permutation([]string{`"a":"x"`, ` "b" : 7 `, `"list":[true]`, `"more":5`, `"z":-1`})
	rapid.Check(t, func(t *rapid.T) {
		text := "{" + strings.Join(order.Draw(t, "order"), ",") + "}"
		if rapid.Bool().Draw(t, "escaped") {
			text = strings.NewReplacer(`"a"`, `"\u0061"`, `"list"`, `"l\u0069st"`, `"more"`, `"mor\u0065"`).Replace(text)
		}
		var got pair
		err := typed.Unmarshal([]byte(text), &got)
		if err != nil || got.A != "x" || *got.B.Value != 7 || !reflect.DeepEqual(got.List, []bool{true}) ||
			!reflect.DeepEqual(got.Extra, map[string]int64{"more": 5, "z": -1}) {
			t.Fatalf("%s: %+v, %v", text, got, err)
		}
	})
}

// More members than the decoder has room for without an allocation.
func TestManyMembers(t *testing.T) {
	want := map[string]int64{}
	parts := []string{`"a":""`}
	for i := range int64(40) {
		name := strings.Repeat("n", int(i)+1)
		want[name] = i
		text, err := json.Marshal(i)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, `"`+name+`":`+string(text))
	}
	var got pair
	if err := typed.Unmarshal([]byte("{"+strings.Join(parts, ",")+"}"), &got); err != nil || !reflect.DeepEqual(got.Extra, want) {
		t.Errorf("%+v, %v", got.Extra, err)
	}
}

// The methods of a generated type can be called with bytes that nobody has
// checked: they answer with an error, at the latest where the value is needed.
func TestMethodsRefuseWhatIsNotJSON(t *testing.T) {
	for _, text := range []string{
		``, ` `, `{`, `{"a"`, `{"a":`, `{"a":"x"`, `{"a":"x",`, `{"a":"x"]`, `{"a" "x"}`, `{a:1}`, `{"a":"\ud800"}`, "{\"a\":\"\xff\"}",
		`{"a":"x","list":[true}`, `{"a":"x","list":[true`, `{"a":"x","list":[`, `{"a":"x","b":`, `[`, `nul`, `"`,
	} {
		var value *typed.ValueError
		if err := new(pair).UnmarshalJSON([]byte(text)); !errors.As(err, &value) {
			t.Errorf("%q: %v, want a *ValueError", text, err)
		}
		if err := typed.Unmarshal([]byte(text), new(pair)); !errors.As(err, &value) {
			t.Errorf("Unmarshal(%q): %v, want a *ValueError", text, err)
		}
	}
	for _, decode := range []func([]byte) error{
		func(data []byte) error { return typed.DecodeEnum(data, new(level), "low") },
		func(data []byte) error { var a *string; return typed.DecodeUnion(data, &a) },
	} {
		for _, text := range []string{``, " \n", `x`, `"`, `"low`} {
			if err := decode([]byte(text)); err == nil {
				t.Errorf("%q is accepted", text)
			}
		}
	}
	if err := typed.DecodeEnum([]byte(" \"low\"\r\n"), new(level), "low"); err != nil {
		t.Errorf("space around a value: %v", err)
	}
}

// A member that is there twice is at fault even where the text was not checked
// before: with Rest it is named, with Closed it is one that the object has not.
func TestRepeatedMemberInUncheckedText(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":"x","a":"y"}`:      "typed: /a: is there twice",
		`{"a":"x","\u0061":"y"}`: "typed: /a: is there twice",
	} {
		if err := new(pair).UnmarshalJSON([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	o := typed.DecodeObject([]byte(`{"a":"x","a":"y"}`))
	o.Required("a", new(string))
	o.Closed()
	if err := o.Err(); err == nil || err.Error() != "typed: /a: is not a member of this object" {
		t.Errorf("in a closed object: %v", err)
	}
}

// The first fault stays, and nothing is decoded after it.
func TestDecoderStopsAtTheFirstFault(t *testing.T) {
	o := typed.DecodeObject([]byte(`{"a":1,"b":"x","c":2}`))
	var a, c int64
	o.Required("missing", new(string))
	o.Required("a", &a)
	o.Boxed("b", new(*string))
	o.Optional("c", new(*int64))
	o.Rest(new(map[string]int64))
	o.Closed()
	if err := o.Err(); err == nil || err.Error() != "typed: /missing: is required" || a != 0 || c != 0 {
		t.Errorf("%v, with a = %d and c = %d", err, a, c)
	}
}

func TestEncoderStopsAtTheFirstFault(t *testing.T) {
	o := typed.EncodeObject()
	o.Boxed("next", (*item)(nil))
	o.Required("bad", func() {})
	o.Rest(map[string]int64{"next": 1})
	if out, err := o.Bytes(); out != nil || err == nil || err.Error() != "typed: /next: is required" {
		t.Errorf("%s, %v", out, err)
	}
}

// Strings are written as JSON.stringify writes them, names as well, and what is
// not UTF-8 does not reach the wire.
func TestStringsOnTheWire(t *testing.T) {
	for text, want := range map[string]string{
		"<&>": `"<&>"`, "\"\\\n\x01": `"\"\\\n\u0001"`, "é\u2028😀": "\"é\u2028😀\"", "a\xffb": "\"a\ufffdb\"",
	} {
		if got, err := typed.Marshal(text); err != nil || string(got) != want {
			t.Errorf("%q is written %s, %v, want %s", text, got, err, want)
		}
		if got, err := typed.Marshal(map[string]int64{text: 1}); err != nil || string(got) != "{"+want+":1}" {
			t.Errorf("the name %q is written %s, %v", text, got, err)
		}
		if got, err := typed.Marshal([]level{level(text)}); err != nil || string(got) != "["+want+"]" {
			t.Errorf("the enum %q is written %s, %v", text, got, err)
		}
	}
}

// Any string survives the way to JSON and back.
func TestStringsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := map[string]string{rapid.String().Draw(t, "name"): rapid.String().Draw(t, "text")}
		data, err := typed.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]string
		if err := typed.Unmarshal(data, &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%q became %s, then %q, %v", want, data, got, err)
		}
	})
}

func TestUnionsTakeTheFirstThatFits(t *testing.T) {
	for _, tt := range []struct {
		text string
		part int // of integer, number, list; -1 is none
		err  string
	}{
		{`1`, 0, ""}, {`1.0`, 0, ""}, {`1.5`, 1, ""}, {`1e400`, -1, "typed: fits none of the union's types"}, {`[1]`, 2, ""},
		{`["x"]`, -1, "typed: /0: must be an integer, in the closest of the union's types"},
		{`null`, -1, "typed: fits none of the union's types"}, {` [ ] `, 2, ""},
	} {
		var a *int64
		var b *float64
		var c *[]int64
		err := typed.DecodeUnion([]byte(tt.text), &a, &b, &c)
		if tt.err != "" {
			if err == nil || err.Error() != tt.err {
				t.Errorf("%s: %v, want %s", tt.text, err, tt.err)
			}
			continue
		}
		if set := []bool{a != nil, b != nil, c != nil}; err != nil || !set[tt.part] || set[(tt.part+1)%3] || set[(tt.part+2)%3] {
			t.Errorf("%s: %v, %v, want part %d alone", tt.text, set, err, tt.part)
		}
	}
}

// Enums have every scalar base.
func TestEnumBases(t *testing.T) {
	var i int64
	var f float64
	var b bool
	for text, decode := range map[string]func([]byte) error{
		`2.0`:  func(d []byte) error { return typed.DecodeEnum(d, &i, 1, 2) },
		`0.5`:  func(d []byte) error { return typed.DecodeEnum(d, &f, 0.5) },
		`true`: func(d []byte) error { return typed.DecodeEnum(d, &b, true) },
	} {
		if err := decode([]byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		for _, other := range []string{`3`, `false`, `null`, `"2"`} {
			if err := decode([]byte(other)); err == nil {
				t.Errorf("%s is accepted where %s is", other, text)
			}
		}
	}
	if i != 2 || f != 0.5 || !b {
		t.Errorf("decoded %d, %v, %v; a refused value must not replace them", i, f, b)
	}
}

func TestDepthIsBounded(t *testing.T) {
	deep := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	var v any
	if err := typed.Unmarshal(deep(512), &v); err != nil {
		t.Errorf("512 levels: %v", err)
	}
	if err := typed.Unmarshal(deep(513), &v); err == nil || !strings.Contains(err.Error(), "nested too deeply") {
		t.Errorf("513 levels: %v", err)
	}
}

// A number that is kept as text is the text that was sent.
func TestNumbersThatStayText(t *testing.T) {
	var got []json.Number
	if err := typed.Unmarshal([]byte(`[12345678901234567890, -0.50, 1E400]`), &got); err != nil ||
		!reflect.DeepEqual(got, []json.Number{"12345678901234567890", "-0.50", "1E400"}) {
		t.Errorf("%q, %v", got, err)
	}
}

// guarded has a member with one value, and one without any.
type guarded struct {
	Kind  string
	Size  int64
	Extra map[string]int64
}

func (v *guarded) UnmarshalJSON(data []byte) error {
	o := typed.DecodeObject(data)
	o.Required("kind", &v.Kind)
	o.Optional("absent", new(*string))
	o.Forbidden("never")
	o.Rest(&v.Extra)
	return o.Err()
}

func (v guarded) MarshalJSON() ([]byte, error) {
	o := typed.EncodeObject()
	o.Constant("kind", v.Kind, "one")
	o.Constant("size", v.Size, int64(1))
	o.Forbidden("never")
	o.Rest(v.Extra)
	return o.Bytes()
}

func TestConstantAndForbidden(t *testing.T) {
	for _, tt := range []struct {
		v    guarded
		want string // "" is a fault
	}{
		{guarded{}, `{"kind":"one","size":1}`},
		{guarded{Kind: "two", Size: 2}, `{"kind":"two","size":2}`},
		{guarded{Extra: map[string]int64{"other": 3}}, `{"kind":"one","size":1,"other":3}`},
		{guarded{Extra: map[string]int64{"never": 3}}, ""},
		{guarded{Extra: map[string]int64{"kind": 3}}, ""},
	} {
		if got, err := typed.Marshal(tt.v); string(got) != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%+v: %s, %v, want %q", tt.v, got, err, tt.want)
		}
	}
	for text, want := range map[string]string{
		`{"kind":"x","other":1}`:           "",
		`{"kind":"x","never":1}`:           "/never: no value is allowed here",
		`{"never":1}`:                      "/kind: is required", // the first fault
		`{"kind":"x","never":1,"other":1}`: "/never: no value is allowed here",
	} {
		err := typed.Unmarshal([]byte(text), new(guarded))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
