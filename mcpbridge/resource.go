package mcpbridge

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The resources of a client: what there is to know of the fleet, the contract of each
// tool, and the records of the client's own calls.
const (
	fleetURI     = "agentd://fleet"
	contractURI  = "agentd://contracts/" // <agent>/<capability>
	callURI      = "agentd://calls/"     // <correlation id>
	jsonMIMEType = "application/json"
)

// A contract is what a file declares of a capability, as a client reads it.
type contract struct {
	Agent        string          `json:"agent"`
	Capability   string          `json:"capability"`
	Tool         string          `json:"tool"`
	Description  string          `json:"description,omitempty"`
	Since        string          `json:"since,omitempty"`
	Digest       string          `json:"digest,omitempty"`
	Idempotent   bool            `json:"idempotent,omitempty"`
	Asks         bool            `json:"asks,omitempty"`
	Progress     bool            `json:"progress,omitempty"`
	Delivery     string          `json:"delivery,omitempty"`
	TimeoutMs    int64           `json:"timeoutMs,omitempty"`
	Permissions  []string        `json:"permissions,omitempty"`
	InputSchema  json.RawMessage `json:"inputSchema,omitempty"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
}

func (t *tool) contractURI() string {
	return contractURI + t.Address.ID() + "/" + t.Capability.Name
}

// contract is the tool's contract as its file declares it: whole, whatever a projection
// made of the tool's schema.
func (t *tool) contract() ([]byte, error) {
	c := t.Capability
	out := contract{
		Agent: string(t.Address), Capability: c.Name, Tool: t.name, Description: c.Description, Since: c.Since, Digest: c.Digest,
		Idempotent: c.Idempotent, Asks: t.Asks, Progress: c.Progress, Delivery: string(c.Delivery), TimeoutMs: c.Timeout.Milliseconds(), Permissions: c.Permissions,
	}
	if c.Input != nil {
		out.InputSchema = c.Input.Declared()
	}
	if c.Output != nil {
		out.OutputSchema = c.Output.Declared()
	}
	return marshal(out)
}

// marshal is json.Marshal without HTML escaping, so that schemas appear as they were
// written.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// addResources registers what does not depend on the files.
func (f *face) addResources() {
	if m, ok := f.bridge.backend.(Mapper); ok {
		f.server.AddResource(&mcp.Resource{
			URI: fleetURI, Name: "fleet", Title: "Map of the fleet", MIMEType: jsonMIMEType,
			Description: "The agents that may be called, and what they are for.",
		}, func(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			text, err := m.FleetMap(ctx, f.client)
			return f.read(ctx, req, text, err)
		})
	}
	if r, ok := f.bridge.backend.(Recorder); ok {
		f.server.AddResourceTemplate(&mcp.ResourceTemplate{
			URITemplate: callURI + "{correlationId}", Name: "call", Title: "Records of a call", MIMEType: jsonMIMEType,
			Description: "What this agent has recorded of a call that this client made. The result of a call names its correlation id.",
		}, func(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			text, ok, err := r.Records(ctx, f.client, strings.TrimPrefix(req.Params.URI, callURI))
			if err == nil && !ok {
				return nil, mcp.ResourceNotFoundError(req.Params.URI)
			}
			return f.read(ctx, req, text, err)
		})
	}
}

// refreshContracts makes the list of contracts that of the tools. Those that are as they
// were are left alone, because the library notifies of every one that it is given.
func (f *face) refreshContracts(tools map[string]*tool) error {
	contracts := map[string][]byte{}
	for _, t := range sorted(tools) {
		text, err := t.contract()
		if err != nil {
			return fmt.Errorf("the contract of %s: %w", t.what(), err)
		}
		contracts[t.contractURI()] = text
		if bytes.Equal(f.contracts[t.contractURI()], text) {
			continue
		}
		f.server.AddResource(&mcp.Resource{
			URI: t.contractURI(), Name: t.name, Title: "Contract of " + t.Capability.Name + " of " + t.Address.ID(), MIMEType: jsonMIMEType,
			Description: "What the tool " + t.name + " takes and answers, as its agent declares it.",
		}, func(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return f.read(ctx, req, text, nil)
		})
	}
	var gone []string
	for uri := range f.contracts {
		if _, still := contracts[uri]; !still {
			gone = append(gone, uri)
		}
	}
	f.server.RemoveResources(gone...)
	f.contracts = contracts
	return nil
}

// read is the result of reading a resource. What went wrong is for the log.
func (f *face) read(ctx context.Context, req *mcp.ReadResourceRequest, text []byte, err error) (*mcp.ReadResourceResult, error) {
	if err != nil {
		f.bridge.opts.Logger.LogAttrs(ctx, slog.LevelError, "an MCP client's resource cannot be read",
			slog.String("client", f.client.Name), slog.Any("error", err))
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the resource cannot be read"}
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI, MIMEType: jsonMIMEType, Text: string(text)}}}, nil
}
