package codegen_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/agentd/agentd/codegen/testdata/golden/shapes/shapes"
	"github.com/agentd/agentd/codegen/typed"
)

// The tag of a part of a union follows from the part: nobody has to write it twice.
func TestGoFillsInTags(t *testing.T) {
	circle := shapes.TaggedUnionRequest{Circle: &shapes.TaggedUnionRequestCircle{Radius: 2}}
	if got, err := typed.Marshal(circle); err != nil || string(got) != `{"kind":"circle","radius":2}` {
		t.Errorf("got %s, %v", got, err)
	}
	circle.Circle.Kind = "square" // what is filled in stays, and agentd refuses it
	if got, err := typed.Marshal(circle); err != nil || string(got) != `{"kind":"square","radius":2}` {
		t.Errorf("got %s, %v", got, err)
	}
}

// A member that the schema forbids does not pass as one that it does not name.
func TestGoRefusesForbiddenMembers(t *testing.T) {
	var v shapes.CornersResponse
	if err := typed.Unmarshal([]byte(`{"other":1}`), &v); err != nil {
		t.Error(err)
	}
	for _, value := range []string{`1`, `null`} {
		err := typed.Unmarshal([]byte(`{"forbidden":`+value+`}`), &v)
		if err == nil || !strings.Contains(err.Error(), "/forbidden: no value is allowed here") {
			t.Errorf("%s: %v", value, err)
		}
	}
	v.Extra = map[string]json.RawMessage{"forbidden": json.RawMessage("1")}
	if got, err := typed.Marshal(v); err == nil || !strings.Contains(err.Error(), "/forbidden: no value is allowed here") {
		t.Errorf("it is encoded as %s, %v", got, err)
	}
}
