package main

import (
	"path/filepath"
	"testing"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/codegen"
)

// The clients in peers/ are made from what the peers declare now. `go generate
// ./agents/...` makes them anew.
func TestGeneratedClientsAreUpToDate(t *testing.T) {
	lang, err := codegen.Find("go")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"pr-reviewer", "librarian"} {
		doc, err := capability.Load(filepath.Join("..", id, "capabilities.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		api, err := codegen.NewAPI(doc)
		if err != nil {
			t.Fatal(err)
		}
		if err := lang.Generate(api).Check("peers", id); err != nil {
			t.Error(err)
		}
	}
}
