package mcpbridge_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/mcpbridge"
)

// An archive shows what it knows.
type archive struct{ agent }

func (*archive) FleetMap(_ context.Context, c mcpbridge.Client) (json.RawMessage, error) {
	return json.RawMessage(`{"client":"` + c.String() + `"}`), nil
}

func (*archive) Records(_ context.Context, c mcpbridge.Client, id string) (json.RawMessage, bool, error) {
	switch id {
	case "c-1":
		return json.RawMessage(`[{"of":"` + c.String() + `"}]`), true, nil
	case "broken":
		return nil, false, errors.New("secret")
	case "panic":
		panic("secret")
	}
	return nil, false, nil
}

func TestResources(t *testing.T) {
	eras(t, func(t *testing.T, era string) {
		a := &archive{}
		a.offer(peer(t, "librarian", search)...)
		b := open(t, a, mcpbridge.Options{})
		s := connect(t, b, era, nil)
		list, err := s.ListResources(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Resources) != 2 || list.Resources[0].URI != "agentd://contracts/librarian/search" || list.Resources[1].URI != "agentd://fleet" {
			t.Fatalf("resources %+v", list.Resources)
		}
		templates, err := s.ListResourceTemplates(t.Context(), nil)
		if err != nil || len(templates.ResourceTemplates) != 1 || templates.ResourceTemplates[0].URITemplate != "agentd://calls/{correlationId}" {
			t.Errorf("templates %+v %v", templates, err)
		}
		for uri, want := range map[string]string{
			"agentd://fleet":                      `{"client":"MCP:desk-host"}`,
			"agentd://calls/c-1":                  `[{"of":"MCP:desk-host"}]`,
			"agentd://contracts/librarian/search": `"inputSchema":{"$schema":"http://json-schema.org/draft-07/schema#"`,
		} {
			r, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
			if err != nil {
				t.Errorf("%s: %v", uri, err)
				continue
			}
			if got := r.Contents[0]; !strings.Contains(got.Text, want) || got.MIMEType != "application/json" || era == era2026 && r.CacheScope != "private" {
				t.Errorf("%s: %+v for %q", uri, got, r.CacheScope)
			}
		}
		for uri, code := range map[string]int64{
			"agentd://calls/c-2": -32602, "agentd://nothing": -32602, "file:///etc/passwd": -32602, "agentd://calls/broken": -32603, "agentd://calls/panic": -32603,
		} {
			if _, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); !isCode(err, code) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: %v", uri, err)
			}
		}
		a.offer()
		if err := b.Changed(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "agentd://contracts/librarian/search"}); !isCode(err, -32602) {
			t.Errorf("a contract that has gone: %v", err)
		}
	})
}
