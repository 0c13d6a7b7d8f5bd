package fleet_test

import "testing"

// The entries come in the order of the file, each with its place and that of what it says.
func TestUses(t *testing.T) {
	a, err := agentWith(t, "capabilities:\n  memory: {}\n  files: {dirs: [/data/reports], tools: [read_file]}")
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Uses) != 2 || a.Uses[0].Key != "memory" || string(a.Uses[0].Config) != "{}" ||
		a.Uses[1].Key != "files" || string(a.Uses[1].Config) != `{"dirs":["/data/reports"],"tools":["read_file"]}` {
		t.Errorf("uses %+v", a.Uses)
	}
	if at, here := a.Uses[1].At("/dirs/0"), a.Uses[1].Position; at.Pointer != "/capabilities/files/dirs/0" || at.Line != here.Line || at.Column <= here.Column {
		t.Errorf("the entry stands at %+v, and its first folder at %+v", here, at)
	}
	for text, want := range map[string][2]string{
		"capabilities: [memory]":          {"/capabilities", "expected a mapping"},
		"capabilities: {memory: }":        {"/capabilities/memory", "write memory: {}"},
		"capabilities: {memory: [x]}":     {"/capabilities/memory", "is a mapping, not"},
		"capabilities: {a: {}, a: {}}":    {"/capabilities/a", "duplicate key"},
		"capabilities: {a: {b: 1, b: 2}}": {"/capabilities/a/b", "duplicate key"},
	} {
		_, err := agentWith(t, text)
		wantFault(t, err, want[0], want[1])
	}
}
