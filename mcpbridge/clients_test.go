package mcpbridge_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/internal/npmtest"
	"github.com/agentd/agentd/mcpbridge"
	"github.com/agentd/agentd/mcpbridge/projection"
)

// libraries are what testdata/clients.mjs asks, and the Node.js that some of them need: that of
// the machine is often older.
const libraries = "node@22.23.3 @modelcontextprotocol/sdk@1.32.2 openai@7.57.0 @anthropic-ai/sdk@1.12.0 @google/genai@3.1.0 zod@4.6.7"

// Tools of the sample fleet, of the examples, of a file with every shape that a schema can have, and with
// schemas that are odd, are accepted by the libraries of clients and providers: as they
// are, and for each provider by its projection.
func TestClientLibraries(t *testing.T) {
	for library := range strings.FieldsSeq(libraries) {
		name := library[:strings.LastIndexByte(library, '@')]
		if _, err := os.Stat(filepath.Join(os.Getenv(npmtest.Env), name)); err != nil || os.Getenv(npmtest.Env) == "" {
			t.Skipf("SKIPPED: client libraries are not asked; run `npm install %s` in a folder and set %s to its node_modules", libraries, npmtest.Env)
		}
	}
	a := &agent{}
	a.offer(manyTools(t)...)
	profiles := append([]string{""}, projection.Names()...)
	args := []string{filepath.Join("testdata", "clients.mjs")}
	for _, profile := range profiles {
		args = append(args, serve(t, a, profile), profile)
	}
	node := filepath.Join(os.Getenv(npmtest.Env), "node", "bin", "node")
	cmd := exec.CommandContext(t.Context(), node, args...) // one for all: loading takes its time
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("node: %v\n%s", err, out)
	}
	answers := json.NewDecoder(bytes.NewReader(out))
	for _, profile := range profiles {
		var answer struct{ Tools, Faults []string }
		if err := answers.Decode(&answer); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if len(answer.Tools) != len(a.callables) {
			t.Errorf("%d tools with the profile %q, want %d", len(answer.Tools), profile, len(a.callables))
		}
		for _, fault := range answer.Faults {
			t.Error(fault)
		}
	}
}

// serve returns the address of a server with a profile.
func serve(t *testing.T, a *agent, profile string) string {
	t.Helper()
	o := mcpbridge.Options{}
	if profile != "" {
		var err error
		if o.Profile, err = projection.Named(profile); err != nil {
			t.Fatal(err)
		}
	}
	server, err := open(t, a, o).Server(desk)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	t.Cleanup(s.Close)
	return s.URL
}

// manyTools are the capabilities of all files.
func manyTools(t *testing.T) (all []mcpbridge.Callable) {
	t.Helper()
	var files []string
	for _, pattern := range []string{"../agents/*/capabilities.yaml", "../examples/*/agents/*/capabilities.yaml"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		files = append(files, found...)
	}
	for _, path := range append(files, "../codegen/testdata/shapes.yaml") {
		doc, err := capability.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range doc.Capabilities {
			if c.Name == "enums" || c.Name == "literal" {
				continue // they have 1e400, which the protocol's Go library does not take
			}
			all = append(all, mcpbridge.Callable{Address: doc.Agent, Capability: c})
		}
	}
	data, err := os.ReadFile("testdata/odd-schemas.json")
	if err != nil {
		t.Fatal(err)
	}
	var odd []json.RawMessage
	if err := json.Unmarshal(data, &odd); err != nil {
		t.Fatal(err)
	}
	if len(odd) < 50 {
		t.Errorf("%d odd schemas", len(odd))
	}
	var b strings.Builder
	for i, s := range odd {
		fmt.Fprintf(&b, "- {name: odd-%d, description: Odd., schemaProfile: full, inputSchema: %s, outputSchema: %s}\n", i, s, s)
	}
	return append(all, peer(t, "odd", b.String())...)
}
