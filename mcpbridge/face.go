package mcpbridge

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
)

// A face is what one client sees: its server, with its tools.
type face struct {
	bridge *Bridge
	client Client
	server *mcp.Server
	slots  slots
	turns  turns
	parked parking
	asked  uint64 // when the face was asked for last; guarded by Bridge.mu

	changing sync.Mutex // held while the lists are made anew, so that the latest wins

	mu    sync.RWMutex
	tools map[string]*tool  // by name; guarded by mu
	shown map[string][]byte // each tool's definition as JSON; guarded by changing
	// contracts are the texts of those resources, by their URIs; guarded by changing.
	contracts map[string][]byte
}

func newFace(b *Bridge, c Client) (*face, error) {
	f := &face{bridge: b, client: c, turns: turns{most: b.opts.MaxRepairs}}
	f.slots.most, f.slots.mostOfSession = b.opts.MaxPending, b.opts.MaxSessionPending
	capabilities := &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}, Resources: &mcp.ResourceCapabilities{ListChanged: true}}
	if b.awaits() {
		capabilities.AddExtension(tasksExtension, nil)
	}
	f.server = mcp.NewServer(&mcp.Implementation{Name: b.opts.Name, Version: b.opts.Version}, &mcp.ServerOptions{
		Instructions: b.opts.Instructions,
		Capabilities: capabilities,
		// What one client may call is nobody else's to keep.
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope = "private" },
	})
	f.server.AddReceivingMiddleware(f.guard)
	if b.awaits() {
		if err := f.addTasks(); err != nil {
			return nil, err
		}
	}
	f.addResources()
	return f, f.refresh()
}

// idle reports whether the client has neither sessions nor calls, nor answers that it may
// still fetch.
func (f *face) idle() bool {
	for range f.server.Sessions() {
		return false
	}
	return f.slots.empty() && f.parked.empty()
}

// refresh makes the lists anew. Tools that are as they were are left alone, because the
// library notifies of every one that it is given.
func (f *face) refresh() error {
	f.changing.Lock()
	defer f.changing.Unlock()
	tools, err := f.bridge.list(f.client)
	if err != nil {
		return err
	}
	shown := map[string][]byte{}
	definitions := f.ownTools(tools)
	for _, t := range sorted(tools) {
		definitions = append(definitions, offered{t.definition(), f.callTool})
	}
	var changed []offered
	for _, d := range definitions {
		text, err := json.Marshal(d.tool)
		if err != nil {
			return fmt.Errorf("the tool %s: %w", d.tool.Name, err)
		}
		shown[d.tool.Name] = text
		if !bytes.Equal(f.shown[d.tool.Name], text) {
			changed = append(changed, d)
		}
	}
	var gone []string
	for name := range f.shown {
		if _, still := shown[name]; !still {
			gone = append(gone, name)
		}
	}
	// Calls of a tool that has gone end as unknown even before the library knows.
	f.mu.Lock()
	f.tools = tools
	f.mu.Unlock()
	f.server.RemoveTools(gone...)
	for _, d := range changed {
		if err := f.add(d); err != nil {
			delete(shown, d.tool.Name) // so that the next refresh tries again
			return fmt.Errorf("the tool %s: %w", d.tool.Name, err)
		}
	}
	f.shown = shown
	return f.refreshContracts(tools)
}

// tool returns the tool with a name.
func (f *face) tool(name string) (*tool, bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	t, ok := f.tools[name]
	return t, ok
}

// capability returns what is declared of a capability that the client may call.
func (f *face) capability(of envelope.Address, name string) (*capability.Capability, bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	for _, t := range f.tools {
		if t.Address == of && t.Capability.Name == name {
			return t.Capability, true
		}
	}
	return nil, false
}

// An offered tool is one with what runs it.
type offered struct {
	tool    *mcp.Tool
	handler mcp.ToolHandler
}

// add registers a tool. One whose schemas the library does not take, such as with a number
// beyond its floats, is offered without them, and says so: one contract must not keep all
// the others from a client, and it judges the calls all the same.
func (f *face) add(d offered) error {
	err := addTool(f.server, d)
	if err == nil {
		return nil
	}
	f.bridge.opts.Logger.Warn("an MCP tool is offered without its schemas", "client", f.client.Name, "tool", d.tool.Name, "error", err)
	loose := *d.tool
	loose.InputSchema, loose.OutputSchema = json.RawMessage(`{"type":"object"}`), nil
	loose.Meta = maps.Clone(loose.Meta)
	if loose.Meta == nil {
		loose.Meta = mcp.Meta{}
	}
	loose.Meta[metaDropped] = []string{"both schemas: the library that serves tools does not take them"}
	return addTool(f.server, offered{&loose, d.handler})
}

// addTool registers a tool with a server of the library, which panics where it does not
// like the tool's schema.
func addTool(server *mcp.Server, d offered) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	server.AddTool(d.tool, d.handler)
	return nil
}
