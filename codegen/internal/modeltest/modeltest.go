package modeltest

import (
	"fmt"
	"testing"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/codegen/internal/model"
)

// API is the model of an agent with one capability, named x, whose request has
// the given JSON Schema: its type is XRequest.
func API(t testing.TB, schema string) *model.API {
	t.Helper()
	return Capabilities(t, fmt.Sprintf(`{"name":"x","inputSchema":%s}`, schema))
}

// Capabilities is the model of agent://agent with capabilities, written as the
// members of the list in a capabilities file.
func Capabilities(t testing.TB, capabilities string) *model.API {
	t.Helper()
	file := []byte(`{"version":1,"agent":"agent://agent","transports":[{"kind":"memory","topics":{"requests":"t"}}],
		"capabilities":[` + capabilities + `]}`)
	doc, err := capability.Parse("capabilities.json", file, capability.LoadOptions{ValidateSchemas: true})
	if err != nil {
		t.Fatal(err)
	}
	api, err := model.New(doc)
	if err != nil {
		t.Fatal(err)
	}
	return api
}
