package external_test

import (
	"fmt"
	"log"

	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/registry/external"
)

// A server whose tools nobody has looked at gives none.
func Example() {
	known := registry.New()
	if err := known.Register(external.New(nil)); err != nil {
		log.Fatal(err)
	}
	uses, err := registry.Parse("agent.yaml", []byte(`capabilities: {mcp: {servers: {files: {command: [mcp-files, /srv]}}}}`))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(known.Check(registry.Context{Agent: "reviewer"}, uses))
	// Output:
	// agent.yaml:1:32: /capabilities/mcp/servers/files: the tools of the server "files" are not pinned: mcp.lock.json has no such server (run `agentd registry pin --agent reviewer`, and read what it writes)
}
