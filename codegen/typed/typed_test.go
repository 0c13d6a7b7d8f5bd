package typed_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/agentd/agentd/codegen/typed"
)

// level is an enum as generated code has it.
type level string

func (v *level) UnmarshalJSON(data []byte) error {
	return typed.DecodeEnum(data, v, "low", "high")
}

// choice is a union as generated code has it.
type choice struct {
	Text *string
	List *[]int64
}

func (v *choice) UnmarshalJSON(data []byte) error {
	var n choice
	if err := typed.DecodeUnion(data, &n.Text, &n.List); err != nil {
		return err
	}
	*v = n
	return nil
}

func (v choice) MarshalJSON() ([]byte, error) { return typed.EncodeUnion(v.Text, v.List) }

// item is an object as generated code has it.
type item struct {
	ID     string
	Level  level
	Size   *int64
	Note   typed.Optional[*string]
	Tags   []string
	Choice *choice
	Next   *item
	Extra  map[string]json.RawMessage
}

func (v *item) UnmarshalJSON(data []byte) error {
	var n item
	o := typed.DecodeObject(data)
	o.Required("id", &n.ID)
	o.Required("level", &n.Level)
	o.Optional("size", &n.Size)
	o.Optional("note", &n.Note)
	o.Optional("tags", &n.Tags)
	o.Optional("choice", &n.Choice)
	o.Optional("next", &n.Next)
	o.Rest(&n.Extra)
	if err := o.Err(); err != nil {
		return err
	}
	*v = n
	return nil
}

func (v item) MarshalJSON() ([]byte, error) {
	o := typed.EncodeObject()
	o.Required("id", v.ID)
	o.Required("level", v.Level)
	o.Optional("size", v.Size)
	o.Optional("note", v.Note)
	o.Optional("tags", v.Tags)
	o.Optional("choice", v.Choice)
	o.Optional("next", v.Next)
	o.Rest(v.Extra)
	return o.Bytes()
}

// closed is an object without other members, one of which must not be nil.
type closed struct{ Next *item }

func (v *closed) UnmarshalJSON(data []byte) error {
	o := typed.DecodeObject(data)
	o.Boxed("next", &v.Next)
	o.Closed()
	return o.Err()
}

func (v closed) MarshalJSON() ([]byte, error) {
	o := typed.EncodeObject()
	o.Boxed("next", v.Next)
	return o.Bytes()
}

func TestRoundTrip(t *testing.T) {
	for _, text := range []string{
		`{"id":"","level":"low"}`,
		`{"id":"<&>","level":"high","size":0}`,
		`{"id":"a","level":"low","note":null}`,
		`{"id":"a","level":"low","note":"text"}`,
		`{"id":"a","level":"low","tags":[]}`,
		`{"id":"a","level":"low","choice":[1,2]}`,
		`{"id":"a","level":"low","choice":"x"}`,
		`{"id":"a","level":"low","next":{"id":"b","level":"low"}}`,
		`{"id":"a","level":"low","other":{"deep":[1e400]},"zoo":null}`,
	} {
		var v item
		if err := typed.Unmarshal([]byte(text), &v); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got, err := typed.Marshal(v)
		if err != nil || string(got) != text {
			t.Errorf("%s becomes %s, %v", text, got, err)
		}
		var again item
		if err := json.Unmarshal([]byte(text), &again); err != nil || !reflect.DeepEqual(v, again) {
			t.Errorf("encoding/json makes %+v of it, %v", again, err)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	tests := []struct {
		text          string
		into          any
		path, message string
	}{
		{`{"level":"low"}`, new(item), "/id", "is required"},
		{`{"ID":"a","level":"low"}`, new(item), "/id", "is required"},
		{`{"id":null,"level":"low"}`, new(item), "/id", "must be a string"},
		{`{"id":"a","level":"mid"}`, new(item), "/level", "is not one of the values of the enum"},
		{`{"id":"a","level":1}`, new(item), "/level", "must be a string"},
		{`{"id":"a","level":"low","size":null}`, new(item), "/size", "must be an integer"},
		{`{"id":"a","level":"low","size":1.5}`, new(item), "/size", "must be an integer"},
		{`{"id":"a","level":"low","size":1e30}`, new(item), "/size", "is beyond the range of int64"},
		{`{"id":"a","level":"low","size":1e999999999}`, new(item), "/size", "is beyond the range of int64"},
		{`{"id":"a","level":"low","tags":null}`, new(item), "/tags", "must be an array"},
		{`{"id":"a","level":"low","tags":["x",null]}`, new(item), "/tags/1", "must be a string"},
		{`{"id":"a","level":"low","choice":{}}`, new(item), "/choice", "fits none of the union's types"},
		{`{"id":"a","level":"low","choice":[1,"x"]}`, new(item), "/choice/1", "must be an integer, in the closest of the union's types"},
		{`{"id":"a","level":"low","next":{"id":"b"}}`, new(item), "/next/level", "is required"},
		{`{"id":"a","level":"low","i\u0064":"b"}`, new(item), "", "invalid JSON at byte 24: duplicate key"},
		{`{"id":"\ud800","level":"low"}`, new(item), "", "invalid JSON at byte 7: lone surrogate in a string"},
		{`{"id":"a","level":"low","x":{"deep":1,"deep":2}}`, new(item), "", "invalid JSON at byte 38: duplicate key"},
		{`{"id":`, new(item), "", "invalid JSON at byte 6: unexpected end of input"},
		{` `, new(item), "", "invalid JSON at byte 1: unexpected end of input"},
		{`[]`, new(item), "", "must be an object"},
		{`null`, new(item), "", "must be an object"},
		{`{}`, new(closed), "/next", "is required"},
		{`{"next":null}`, new(closed), "/next", "must be an object"},
		{`{"next":{"id":"a","level":"low"},"a/b~":1}`, new(closed), "/a~1b~0", "is not a member of this object"},
		{`{"a":true}`, new(map[string]string), "/a", "must be a string"},
		{`[]`, new(map[string]string), "", "must be an object"},
		{`1`, new(bool), "", "must be true or false"},
		{`"1"`, new(float64), "", "must be a number"},
		{`1e400`, new(float64), "", "is beyond the range of float64"},
		{`"1"`, new(json.Number), "", "must be a number"},
		{`0`, new(typed.Null), "", "must be null"},
		{`null`, new(typed.Never), "", "no value is allowed here"},
	}
	for _, tt := range tests {
		err := typed.Unmarshal([]byte(tt.text), tt.into)
		var value *typed.ValueError
		if !errors.As(err, &value) || value.Path != tt.path || value.Message != tt.message {
			t.Errorf("%s: %v, want %q at %q", tt.text, err, tt.message, tt.path)
		}
	}
	if err := typed.Unmarshal([]byte(`{"id":`), new(item)); err == nil {
		t.Error("half a value is accepted")
	}
	long := `{"next":{"id":"a","level":"low"},"` + strings.Repeat("x", 500) + `":1}`
	if err := typed.Unmarshal([]byte(long), new(closed)); err == nil || len(err.Error()) > 200 {
		t.Errorf("a long name gives %v", err)
	}
}

func TestIntegersAreIntegersHoweverWritten(t *testing.T) {
	for text, want := range map[string]int64{
		"1.0": 1, "1e2": 100, "10": 10, "-21": -21, "-2.50e1": -25, "0e-999999999": 0, "-0.0": 0,
		"9223372036854775807": 1<<63 - 1, "-9223372036854775808": -1 << 63,
	} {
		var got int64
		if err := typed.Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s is %d, %v; want %d", text, got, err, want)
		}
	}
}

func TestNilEncodesAsTheSchemaHasIt(t *testing.T) {
	tests := []struct {
		value any
		want  string
	}{
		{[]string(nil), `[]`},
		{[][]string{nil}, `[[]]`},
		{map[string]int64(nil), `{}`},
		{(*[]string)(nil), `null`},
		{[]*string{nil, typed.Ptr("x")}, `[null,"x"]`},
		{json.RawMessage(nil), `null`},
		{json.Number("12345678901234567890"), `12345678901234567890`},
		{json.Number(""), `0`},
		{map[string]any{"b": 1, "a": nil}, `{"a":null,"b":1}`},
		{typed.Null{}, `null`},
		{typed.Some(typed.Ptr("x")).Value, `"x"`},
	}
	for _, tt := range tests {
		if got, err := typed.Marshal(tt.value); err != nil || string(got) != tt.want {
			t.Errorf("%#v becomes %s, %v; want %s", tt.value, got, err, tt.want)
		}
	}
}

func TestEncodeRefuses(t *testing.T) {
	tests := []struct {
		value any
		want  string
	}{
		{choice{}, "0 fields of the union are set"},
		{choice{Text: typed.Ptr("x"), List: typed.Ptr([]int64{1})}, "2 fields of the union are set"},
		{item{Choice: &choice{}}, "/choice: 0 fields"},
		{item{Extra: map[string]json.RawMessage{"id": json.RawMessage(`1`)}}, "/id: is set twice"},
		{closed{}, "/next: is required"},
		{typed.Never{}, "no value is allowed here"},
		{json.Number("x"), "is not a number"},
		{[]any{1, func() {}}, "/1: cannot be encoded"},
	}
	for _, tt := range tests {
		if got, err := typed.Marshal(tt.value); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%#v becomes %s, %v; want an error with %q", tt.value, got, err, tt.want)
		}
	}
}

func TestRequest(t *testing.T) {
	var made typed.Call
	answer, failure := `{"id":"b","level":"high"}`, error(nil)
	caller := typed.CallerFunc(func(_ context.Context, c typed.Call) (json.RawMessage, error) {
		made = c
		return json.RawMessage(answer), failure
	})
	request := func(c typed.Caller, in any) (item, error) {
		return typed.Request[item](t.Context(), c, "agent://b", "x", in, []typed.CallOption{typed.WithTimeout(5), typed.WithIdempotencyKey("k")})
	}
	got, err := request(caller, item{ID: "a", Level: "low"})
	if err != nil || got.ID != "b" {
		t.Fatalf("%+v, %v", got, err)
	}
	want := typed.Call{To: "agent://b", Capability: "x", Payload: json.RawMessage(`{"id":"a","level":"low"}`), Timeout: 5, IdempotencyKey: "k"}
	if !reflect.DeepEqual(made, want) {
		t.Errorf("the call is %+v, want %+v", made, want)
	}
	if _, err := request(nil, item{}); err == nil {
		t.Error("no caller is no error")
	}
	var value *typed.ValueError
	if _, err := request(caller, choice{}); !errors.As(err, &value) || !strings.Contains(err.Error(), "agent://b/x") {
		t.Errorf("a request that cannot be encoded: %v", err)
	}
	failure = errors.New("no route")
	if _, err := request(caller, item{}); !errors.Is(err, failure) {
		t.Errorf("a failed call: %v", err)
	}
	answer, failure = `{"id":"half","level":"mid"}`, nil
	if got, err := request(caller, item{}); !errors.As(err, &value) || got.ID != "" {
		t.Errorf("a strange answer: %+v, %v", got, err)
	}
}

func TestHandle(t *testing.T) {
	var m typed.Mux
	broken := errors.New("disk full")
	typed.Handle(&m, "x", "skill", func(_ context.Context, in item) (choice, error) {
		switch in.ID {
		case "broken":
			return choice{}, broken
		case "empty":
			return choice{}, nil
		}
		return choice{Text: &in.ID}, nil
	})
	skills := m.Skills()
	if len(skills) != 1 || skills[0].Capability != "x" || skills[0].Name != "skill" {
		t.Fatalf("skills = %+v", skills)
	}
	call := func(payload string) (json.RawMessage, error) {
		return skills[0].Run(t.Context(), json.RawMessage(payload))
	}
	if out, err := call(`{"id":"a","level":"low"}`); err != nil || string(out) != `"a"` {
		t.Errorf("%s, %v", out, err)
	}
	if _, err := call(`{"id":"broken","level":"low"}`); !errors.Is(err, broken) {
		t.Errorf("err = %v", err)
	}
	for _, payload := range []string{`{"id":"empty","level":"low"}`, `{}`} {
		var value *typed.ValueError
		if _, err := call(payload); !errors.As(err, &value) {
			t.Errorf("%s: err = %v", payload, err)
		}
	}
}

// Whatever decodes encodes again, to something that decodes to the same.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"id":"a","level":"low","size":1.0,"note":null,"tags":[],"choice":[1],"next":{"id":"b","level":"high"},"x":[1]}`))
	f.Add([]byte(` {"id":"","level":"low","choice":"\u2028"} `))
	f.Add([]byte(`{"id":"a","level":"low","size":1e999999999}`))
	f.Add([]byte(`{"id":"a","level":`))
	f.Add([]byte(`{"a":}[,"\`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var v item
		_ = new(item).UnmarshalJSON(data) // without a check before: no panic
		if typed.Unmarshal(data, &v) != nil {
			return
		}
		out, err := typed.Marshal(v)
		if err != nil {
			t.Fatalf("%s decodes, and then: %v", data, err)
		}
		var again item
		if err := typed.Unmarshal(out, &again); err != nil {
			t.Fatalf("%s becomes %s: %v", data, out, err)
		}
		twice, err := typed.Marshal(again)
		if err != nil || string(twice) != string(out) {
			t.Fatalf("%s becomes %s, then %s, %v", data, out, twice, err)
		}
	})
}
