package typed_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"github.com/agentd/agentd/codegen/typed"
)

// handled returns what a skill for In gets of a payload.
func handled[In any](t *testing.T, payload string) (any, error) {
	t.Helper()
	var m typed.Mux
	var got any = "nothing"
	typed.Handle(&m, "x", "x", func(_ context.Context, in In) (bool, error) {
		got = in
		return true, nil
	})
	_, err := m.Skills()[0].Run(t.Context(), json.RawMessage(payload))
	return got, err
}

// A call without arguments is null to a type that takes it, and {} to any other that
// takes that.
func TestSkillsTakeCallsWithoutArguments(t *testing.T) {
	for _, payload := range []string{"", "null", " null\n", "\t"} {
		for name, test := range map[string]struct {
			run  func(*testing.T, string) (any, error)
			want any // nil: the skill does not run
		}{
			"nullable":       {handled[*item], (*item)(nil)},
			"map":            {handled[map[string]int64], map[string]int64{}},
			"null":           {handled[typed.Null], typed.Null{}},
			"any JSON":       {handled[json.RawMessage], json.RawMessage("null")},
			"optional parts": {handled[options], options{}},
			"required parts": {handled[item], nil},
			"list":           {handled[[]string], nil},
			"text":           {handled[string], nil},
			"union":          {handled[choice], nil},
		} {
			got, err := test.run(t, payload)
			if test.want == nil {
				var misfit *typed.RequestError
				var value *typed.ValueError
				if !errors.As(err, &misfit) || misfit.Capability != "x" || !errors.As(err, &value) || got != "nothing" {
					t.Errorf("%s, %q: %v, %v", name, payload, got, err)
				}
			} else if err != nil || !reflect.DeepEqual(got, test.want) {
				t.Errorf("%s, %q: %#v, %v, want %#v", name, payload, got, err, test.want)
			}
		}
	}
	// What is left out is told, and not that null is no object.
	if _, err := handled[item](t, "null"); err == nil || err.Error() != `decode the request of x: typed: /id: is required` {
		t.Errorf("%v", err)
	}
	if got, err := handled[options](t, `{"level":"high"}`); err != nil || got.(options).Level == nil {
		t.Errorf("%v, %v", got, err)
	}
}

// options is a generated type without required members.
type options struct{ Level *level }

func (v *options) UnmarshalJSON(data []byte) error {
	d := typed.DecodeObject(data)
	d.Optional("level", &v.Level)
	d.Closed()
	return d.Err()
}
