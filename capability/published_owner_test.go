package capability_test

import (
	"reflect"
	"testing"

	"github.com/agentd/agentd/capability"
)

// What the owner says of a capability besides its contract is published, and changes
// no digest.
func TestPublishedOwnersKeys(t *testing.T) {
	const plain = `{version: 1, agent: agent://a, transports: [{kind: memory, topics: {requests: r}}], capabilities: [{name: x, `
	parse := func(keys string) *capability.Document {
		doc, err := capability.Parse("f.yaml", []byte(plain+keys+`}]}`), capability.LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return doc
	}
	doc := parse(`id: capability-uuid, version: 1.0.0, category: information_retrieval, permissions: [network:read, "secrets:read"]`)
	data, err := doc.Published().JSON()
	if err != nil {
		t.Fatal(err)
	}
	read, err := capability.ParsePublished(data)
	if err != nil {
		t.Fatal(err)
	}
	got := read.ToolSchemas["x"]
	if got.ID != "capability-uuid" || got.Version != "1.0.0" || got.Category != "information_retrieval" ||
		!reflect.DeepEqual(got.Permissions, []string{"network:read", "secrets:read"}) {
		t.Errorf("published %s", data)
	}
	if doc.Digest() != parse(`idempotent: false`).Digest() {
		t.Error("the digest covers what the owner says")
	}
}
