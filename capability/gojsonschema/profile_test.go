package gojsonschema_test

import (
	"strings"
	"testing"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/capability/gojsonschema"
)

// Contracts of the full profile pass the review, which is about draft-07, and are refused by
// the engine, which would not see all of them.
func TestFullProfileContracts(t *testing.T) {
	const file = `{version: 1, agent: agent://a, transports: [{kind: memory, topics: {requests: r}}], capabilities: [
  {name: x, schemaProfile: full, inputSchema: {type: object, patternProperties: {"^a": {type: string, default: 7}}}}]}`
	doc, err := capability.Parse("f.yaml", []byte(file), capability.LoadOptions{ValidateSchemas: true, SecondOpinion: gojsonschema.NewSecondOpinion()})
	if err != nil {
		t.Fatal(err)
	}
	_, err = doc.WithEngine(gojsonschema.Engine{})
	if err == nil || !strings.Contains(err.Error(), `capability "x" inputSchema`) || !strings.Contains(err.Error(), "keywords of the full profile") || !strings.Contains(err.Error(), "use the native validator") {
		t.Errorf("got %v", err)
	}
}
