package gojsonschema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/capability/gojsonschema"
	"github.com/agentd/agentd/schema"
)

// TestRedactNames holds that the library's reports hide what the sender chose as well.
func TestRedactNames(t *testing.T) {
	s, err := schema.Compile([]byte(`{"type":"object","properties":{"known":{"type":"string"}},"additionalProperties":false}`))
	if err != nil {
		t.Fatal(err)
	}
	v, err := capability.Limited(gojsonschema.Engine{}, schema.Limits{RedactNames: true}).Compile(s)
	if err != nil {
		t.Fatal(err)
	}
	report := v.CheckWithin(t.Context(), []byte(`{"known":1,"hidden":2}`))
	if text := fmt.Sprint(report.Violations); strings.Contains(text, "hidden") || !strings.Contains(text, "/known") {
		t.Errorf("got %s", text)
	}
}
