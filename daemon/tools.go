package daemon

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/secretref"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/registry/builtin"
	"github.com/agentd/agentd/registry/peers"
	"github.com/agentd/agentd/rpc"
)

const (
	// resolveTimeout bounds the start of what an agent may use, at a reload.
	resolveTimeout = 30 * time.Second
	// drainTimeout bounds the wait for calls that use the tools from before a reload. No
	// call runs longer.
	drainTimeout = rpc.MaxTimeout + time.Minute
)

// openTools resolves what the agent may use. A fault of the configuration keeps the
// agent from starting.
func (d *Daemon) openTools(ctx context.Context) error {
	rules := d.permissions.caller.Load()
	tools, err := d.resolveTools(ctx, d.cfg.Fleet, d.Member(), rules)
	if err != nil {
		return err
	}
	d.tools.Store(tools)
	d.logSkipped(tools)
	return nil
}

// resolveTools resolves the capabilities of a member, with the peers and permissions that
// are to be in force beside them.
func (d *Daemon) resolveTools(ctx context.Context, f *fleet.Fleet, m *fleet.Member, rules *policy.CallerRules) (*registry.Resolved, error) {
	tools, err := d.toolContext(ctx, f, m)
	if err != nil {
		return nil, err
	}
	variables, err := f.EnvFileVariables(m)
	if err != nil {
		return nil, err
	}
	besides, err := json.Marshal(variables) // which secrets are looked up in
	if err != nil {
		return nil, err
	}
	servers, err := d.externalTools(f, m)
	if err != nil {
		return nil, err
	}
	known := registry.New()
	for _, r := range slices.Concat(builtin.All(builtin.Deps{
		History: d.audit.log, Peers: peers.Callable(f, m, rules), Caller: d.client,
		External: servers.Share(&d.external, string(besides)),
	}), d.cfg.Resolvers) {
		if err := known.Register(r); err != nil {
			return nil, err
		}
	}
	return known.Resolve(tools, m.Agent.Uses)
}

// toolContext is what the capabilities of a member are resolved with.
func (d *Daemon) toolContext(ctx context.Context, f *fleet.Fleet, m *fleet.Member) (registry.Context, error) {
	variables, err := f.EnvFileVariables(m)
	if err != nil {
		return registry.Context{}, err
	}
	return registry.Context{
		Context: ctx, Agent: m.ID, AgentDir: m.Dir, WorkspaceDir: f.Root, StateDir: filepath.Join(d.cfg.Paths.State, m.ID), Logger: d.log,
		Secret: func(_ context.Context, ref string) (string, error) { return secretref.Resolve(ref, lookup(variables)) }, Wrap: d.recordTools,
		Limits: registry.Limits{MaxArgumentBytes: m.Agent.Limits.MaxPayloadBytes, MaxResultBytes: m.Agent.Limits.MaxPayloadBytes},
	}, nil
}

// logSkipped says what the agent lists and does not have.
func (d *Daemon) logSkipped(tools *registry.Resolved) {
	for _, c := range tools.Status() {
		if c.Skipped != "" {
			d.log.Warn("a capability was skipped", "capability", c.Key, "reason", c.Skipped)
		}
	}
}

// useTools puts the tools of a reload in force. Calls that run keep those that they
// began with, which are closed once the last of them has ended.
func (d *Daemon) useTools(next *registry.Resolved) {
	before := d.tools.Swap(next)
	d.logSkipped(next)
	d.closing.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
		defer cancel()
		if err := before.Close(ctx); err != nil {
			d.log.Warn("tools from before a reload did not close", "error", err)
		}
	})
}

// abandonTools closes the tools of a reload that is refused.
func (d *Daemon) abandonTools(tools *registry.Resolved) error {
	ctx, cancel := context.WithTimeout(context.Background(), resolveTimeout)
	defer cancel()
	return tools.Close(ctx)
}

// closeTools closes all tools. Skills have ended by now, or are not waited for.
func (d *Daemon) closeTools(ctx context.Context) error {
	tools := d.tools.Load()
	if tools == nil {
		return nil
	}
	err := tools.Close(ctx)
	earlier := make(chan struct{})
	go func() { // ends within drainTimeout
		d.closing.Wait()
		close(earlier)
	}()
	select {
	case <-earlier:
	case <-ctx.Done():
	}
	if err != nil {
		return fmt.Errorf("tools: %w", err)
	}
	return nil
}

// Tools returns what the agent may use, for a program that runs it. They stay open until
// release is called, which a reload and Stop wait for. ok is false while the agent
// starts or stops. Skills find theirs with [registry.FromContext].
func (d *Daemon) Tools() (tools *registry.Resolved, release func(), ok bool) {
	tools, ok = d.holdTools()
	if !ok {
		return nil, nil, false
	}
	return tools, sync.OnceFunc(tools.Release), true
}

// holdTools is Tools for a caller that calls the tools' Release exactly once.
func (d *Daemon) holdTools() (tools *registry.Resolved, ok bool) {
	for {
		tools := d.tools.Load()
		if tools == nil {
			return nil, false
		}
		if tools.Hold() {
			return tools, true
		}
		if d.tools.Load() == tools { // no reload has swapped them meanwhile
			return nil, false
		}
	}
}

// toolSets lists the tools in full, for the control API.
func (d *Daemon) toolSets() ([]control.ToolSet, error) {
	tools, release, ok := d.Tools()
	if !ok {
		return nil, errNotReady
	}
	defer release()
	defs := map[string]*mcp.Tool{}
	for _, def := range tools.Tools() {
		defs[def.Name] = def
	}
	refused := refusedTools(tools)
	all := []control.ToolSet{}
	for _, c := range tools.Status() {
		set := control.ToolSet{Key: c.Key, Skipped: c.Skipped, Tools: []control.Tool{}}
		for _, key := range c.Tools {
			def := defs[key]
			input, err := json.Marshal(def.InputSchema)
			if err != nil {
				return nil, err
			}
			t := control.Tool{Name: def.Name, Title: def.Title, Description: def.Description, InputSchema: input, Refused: refused[key]}
			if def.OutputSchema != nil {
				if t.OutputSchema, err = json.Marshal(def.OutputSchema); err != nil {
					return nil, err
				}
			}
			set.Tools = append(set.Tools, t)
		}
		all = append(all, set)
	}
	return all, nil
}

// A toolSkill is a skill with the tools that are in force when its call begins.
type toolSkill struct {
	d      *Daemon
	skill  rpc.Handler
	inline bool
}

// Inline implements [rpc.InlineHandler].
func (s toolSkill) Inline() bool { return s.inline }

// Handle implements [rpc.Handler].
func (s toolSkill) Handle(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
	if tools, ok := s.d.holdTools(); ok {
		defer tools.Release()
		ctx = registry.WithResolved(ctx, tools)
	}
	return s.skill.Handle(ctx, inv)
}

// toolsHandler serves the tools of a call to its process. There are no sessions: the
// token of the call says everything.
func toolsHandler() http.Handler {
	handler := mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server {
		if tools := registry.FromContext(r.Context()); tools != nil {
			return tools.MCP()
		}
		return nil // the agent stops
	}, &mcp.StreamableHTTPOptions{
		Stateless: true, PropagateRequestCancellation: true,
		JSONResponse: true, // for programs that speak the protocol by hand; tools report no progress
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && !oneMessage(r) {
			http.Error(w, "the body is not one JSON-RPC message: send each in a request of its own", http.StatusBadRequest)
			return
		}
		handler.ServeHTTP(w, r.WithContext(registry.Bind(r.Context())))
	})
}

// oneMessage reports whether the body of a request begins as an object. The library takes
// batches from clients of an older protocol: thousands of calls in one request, whose
// results it holds in memory until the last of them is there.
func oneMessage(r *http.Request) bool {
	body := bufio.NewReader(r.Body)
	first, err := body.ReadByte()
	for err == nil && (first == ' ' || first == '\t' || first == '\r' || first == '\n') {
		first, err = body.ReadByte()
	}
	if err != nil || first != '{' || body.UnreadByte() != nil {
		return false
	}
	r.Body = struct {
		io.Reader
		io.Closer
	}{body, r.Body}
	return true
}
