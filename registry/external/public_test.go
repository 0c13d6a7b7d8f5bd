package external_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/registry/external"
)

// publicServer is the program of a server that npm has installed.
func publicServer(t *testing.T, name string) string {
	t.Helper()
	modules := os.Getenv("AGENTD_NODE_MODULES")
	program := filepath.Join(modules, "@modelcontextprotocol", "server-"+name, "dist", "index.js")
	if _, err := os.Stat(program); modules == "" || err != nil {
		t.Skipf("AGENTD_NODE_MODULES has no @modelcontextprotocol/server-%s", name)
	}
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("node is not installed")
	}
	return program
}

// Servers that everybody uses are pinned and called.
func TestPublicServers(t *testing.T) {
	data := t.TempDir()
	if err := os.WriteFile(filepath.Join(data, "note.txt"), []byte("the blue door\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	type step struct{ tool, args, want string }
	for name, row := range map[string]struct {
		args  []string
		env   string
		steps []step
	}{
		"everything": {steps: []step{
			{"echo", `{"message": "hello"}`, "Echo: hello"},
			{"get-sum", `{"a": 2, "b": 40}`, "42"},
			{"get-structured-content", `{"location": "Chicago"}`, `"temperature"`},
			{"get-sum", `{"a": "2", "b": 40}`, "/a"},
		}},
		"filesystem": {args: []string{data}, steps: []step{
			{"read_text_file", fmt.Sprintf(`{"path": %q}`, filepath.Join(data, "note.txt")), "the blue door"},
			{"list_directory", fmt.Sprintf(`{"path": %q}`, data), "note.txt"},
			{"read_text_file", `{"path": "/etc/passwd"}`, "failed"},
		}},
		"memory": {env: fmt.Sprintf(`"MEMORY_FILE_PATH": %q`, filepath.Join(data, "memory.json")), steps: []step{
			{"create_entities", `{"entities": [{"name": "Ulm", "entityType": "city", "observations": ["on the Danube"]}]}`, "Danube"},
			{"search_nodes", `{"query": "Ulm"}`, "Danube"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command, err := json.Marshal(append([]string{"node", publicServer(t, name)}, row.args...))
			if err != nil {
				t.Fatal(err)
			}
			config := fmt.Sprintf(`{"servers": {"x": {"command": %s, "env": {%s}}}}`, command, row.env)
			ctx, dir, log := agent(t)
			_, r := known(t)
			lock, found, err := r.Pin(ctx, json.RawMessage(config))
			if err != nil {
				t.Fatal(err)
			}
			if len(found[0].Unusable) > 0 {
				t.Errorf("tools are left out: %v", found[0].Unusable)
			}
			if err := external.WriteLock(dir, lock); err != nil {
				t.Fatal(err)
			}
			tools := resolve(t, ctx, config)
			for _, s := range row.steps {
				r := tools.Call(t.Context(), "x__"+s.tool, json.RawMessage(s.args))
				text := string(registry.FailureCode(r))
				for _, part := range r.Content {
					if c, ok := part.(*mcp.TextContent); ok {
						text += " " + c.Text
					}
				}
				if !strings.Contains(text, s.want) {
					t.Errorf("%s %s: %s", s.tool, s.args, text)
				}
			}
			if all := tools.Troubles(); len(all) > 0 {
				t.Errorf("%+v", all)
			}
			if strings.Contains(log.String(), "level=ERROR") {
				t.Errorf("the log is %s", log)
			}
		})
	}
}
