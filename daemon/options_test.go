package daemon_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/capability/gojsonschema"
	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/fleet"
)

// An agent that agentd runs may select either validator.
func TestLoadOptions(t *testing.T) {
	for validator, want := range map[string]func(capability.Validator) bool{
		"native":       func(v capability.Validator) bool { _, ok := v.(*gojsonschema.Validator); return !ok },
		"gojsonschema": func(v capability.Validator) bool { _, ok := v.(*gojsonschema.Validator); return ok },
	} {
		root := t.TempDir()
		for name, text := range map[string]string{
			"fleet.yaml":        "version: 1\nname: f\nagents: [{id: a, path: .}]\n",
			"agent.yaml":        "name: a\nvalidator: " + validator + "\n",
			"capabilities.yaml": "version: 1\nagent: agent://a\ntransports: [{kind: memory, topics: {requests: r}}]\ncapabilities: [{name: x, inputSchema: {type: object}}]\n",
		} {
			if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		f, err := fleet.Load(root, daemon.LoadOptions())
		if err != nil {
			t.Fatal(err)
		}
		if v := f.Members[0].Capabilities.Capabilities[0].Input.Validator; !want(v) {
			t.Errorf("%s: the validator is a %T", validator, v)
		}
	}
}
