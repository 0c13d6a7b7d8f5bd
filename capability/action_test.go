package capability_test

import (
	"testing"

	"github.com/agentd/agentd/capability"
)

// A call may name a capability by its id, where that means one.
func TestLookupID(t *testing.T) {
	doc, err := capability.Parse("c.yaml", []byte("version: 1\nagent: agent://a\ntransports: [{kind: memory, topics: {requests: t}}]\n"+
		"capabilities: [{name: x, id: one}, {name: y, id: two}, {name: z, id: two}, {name: n}]\n"), capability.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{"one": "x", "two": "", "": "", "x": "", "three": ""} {
		got := ""
		if c, ok := doc.LookupID(id); ok {
			got = c.Name
		}
		if got != want {
			t.Errorf("%q is %q, want %q", id, got, want)
		}
	}
}
