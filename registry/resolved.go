package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/internal/spelling"
)

// Resolved is what an agent may use: the servers of its capabilities. It is safe for
// concurrent use.
type Resolved struct {
	status  []Status
	servers []*Server // of the capabilities first, then of the injections
	merged  *mcp.Server

	mu    sync.RWMutex // guards tools, which injections add to
	tools map[string]owned

	users users
}

// owned is a tool with the server that it belongs to.
type owned struct {
	*tool
	server *Server
}

// Status is what became of one capability.
type Status struct {
	Key string `json:"key"`
	// Tools are the keys of those that the agent has.
	Tools []string `json:"tools"`
	// Skipped says why the capability was left out; "" where it was not.
	Skipped string `json:"skipped,omitempty"`
}

// Status lists the capabilities in the order of the agent's file, those that were
// skipped too. Injections are not part of it.
func (r *Resolved) Status() []Status {
	out := slices.Clone(r.status)
	for i := range out {
		out[i].Tools = append([]string{}, out[i].Tools...)
	}
	return out
}

// MCPServers returns the server of each capability and injection, by key.
func (r *Resolved) MCPServers() map[string]*mcp.Server {
	r.mu.RLock()
	defer r.mu.RUnlock()
	all := map[string]*mcp.Server{}
	for _, s := range r.servers {
		all[s.name] = s.server
	}
	return all
}

// MCP is one server with all tools, injections included. A context of [Bind] ties a
// session of it to the call that it is part of.
func (r *Resolved) MCP() *mcp.Server { return r.merged }

// Tools lists all tools, injections included, by their keys. They must not be changed.
func (r *Resolved) Tools() []*mcp.Tool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	all := make([]*mcp.Tool, 0, len(r.tools))
	for _, key := range slices.Sorted(maps.Keys(r.tools)) {
		all = append(all, r.tools[key].def)
	}
	return all
}

// Call calls a tool. Whatever goes wrong is a result with IsError set, see
// [FailureCode].
func (r *Resolved) Call(ctx context.Context, key string, args json.RawMessage) *mcp.CallToolResult {
	r.mu.RLock()
	t, ok := r.tools[key]
	known := slices.Sorted(maps.Keys(r.tools))
	r.mu.RUnlock()
	if !ok {
		return Failure(&Error{Code: NotFound, Message: fmt.Sprintf("there is no tool %q; there are: %s", key, spelling.Among(key, known))})
	}
	if !r.users.enter() {
		return Failure(&Error{Code: Unavailable, Message: "the agent's capabilities have been closed"})
	}
	defer r.users.leave()
	return t.server.call(ctx, t.tool, args)
}

// Connect opens a session of the protocol, in memory, with [Resolved.MCP]. It is part
// of the call that ctx is about: calls of tools end with ctx and see its values.
// The caller closes the session.
func (r *Resolved) Connect(ctx context.Context) (*mcp.ClientSession, error) {
	return connect(Bind(ctx), r.merged)
}

// connect is a session without capabilities of the client: tools cannot ask it back.
func connect(ctx context.Context, server *mcp.Server) (*mcp.ClientSession, error) {
	theirs, ours := mcp.NewInMemoryTransports()
	if _, err := server.Connect(ctx, theirs, nil); err != nil {
		return nil, err
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "agentd", Version: "1"}, &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}})
	return client.Connect(ctx, ours, nil)
}

// Inject adds servers that the run-time makes for this agent, and that its file can
// neither list nor configure. They work like capabilities, but are in no status. A
// name or a tool that is taken is refused, and nothing is added then.
func (r *Resolved) Inject(ctx Context, servers ...*Server) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	names, tools := map[string]bool{}, map[string]bool{}
	for _, s := range r.servers {
		names[s.name] = true
	}
	for _, st := range r.status {
		names[st.Key] = true // those that were skipped too
	}
	for key := range r.tools {
		tools[key] = true
	}
	for _, s := range servers {
		if names[s.name] {
			return fmt.Errorf("inject %s: there is a capability of that name", s.name)
		}
		names[s.name] = true
		if err := s.verify(ctx); err != nil {
			return fmt.Errorf("inject %s: %w", s.name, err)
		}
		for _, t := range s.tools {
			if tools[t.def.Name] {
				return fmt.Errorf("inject %s: there is a tool %q already", s.name, t.def.Name)
			}
			tools[t.def.Name] = true
		}
	}
	for _, s := range servers {
		if err := r.add(ctx, s); err != nil {
			return fmt.Errorf("inject %s: %w", s.name, err)
		}
	}
	return nil
}

// add takes a server in. The caller holds the lock, or is alone.
func (r *Resolved) add(ctx Context, s *Server) error {
	ctx.Logger = loggerOf(ctx)
	s.start(ctx)
	for _, t := range s.tools {
		handle := s.handler(t)
		if err := addTo(r.merged, t.def, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if !r.users.enter() {
				return Failure(&Error{Code: Unavailable, Message: "the agent's capabilities have been closed"}), nil
			}
			defer r.users.leave()
			return handle(ctx, req)
		}); err != nil {
			return fmt.Errorf("tool %s: %w", t.def.Name, err)
		}
		r.tools[t.def.Name] = owned{t, s}
	}
	r.servers = append(r.servers, s)
	return nil
}

// Acquire keeps the servers open until release is called, so that a call has the same
// tools from its beginning to its end. ok is false where they are about to be closed.
func (r *Resolved) Acquire() (release func(), ok bool) {
	if !r.users.acquire() {
		return nil, false
	}
	return sync.OnceFunc(r.users.leave), true
}

// Hold is Acquire for a caller that calls Release exactly once: it allocates nothing.
func (r *Resolved) Hold() bool { return r.users.acquire() }

// Release ends what a successful Hold has begun.
func (r *Resolved) Release() { r.users.leave() }

// Close waits until everybody who has acquired the servers has released them, and no
// call runs any more, or until ctx ends. Then it closes them.
func (r *Resolved) Close(ctx context.Context) error {
	var errs []error
	select {
	case <-r.users.close():
	case <-ctx.Done():
		errs = append(errs, fmt.Errorf("tools are still in use: %w", ctx.Err()))
		r.users.end()
	}
	r.mu.RLock()
	servers := slices.Clone(r.servers)
	r.mu.RUnlock()
	for _, s := range slices.Backward(servers) {
		errs = append(errs, s.idle(ctx), s.Close())
	}
	return errors.Join(errs...)
}

// idle waits until no handler runs, or ctx ends.
func (s *Server) idle(ctx context.Context) error {
	idle := make(chan struct{})
	go func() { // ends with the last handler, which its own context has ended
		s.calls.running.Wait()
		close(idle)
	}()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("a tool of %s is still running: %w", s.name, ctx.Err())
	}
}

// users counts who uses the servers.
type users struct {
	mu      sync.Mutex
	n       int
	closing bool
	ended   bool          // nobody may enter any more
	none    chan struct{} // made by close, closed with the last user
}

// acquire counts somebody who comes from outside.
func (u *users) acquire() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closing {
		return false
	}
	u.n++
	return true
}

// enter counts a call. While others hold the servers open, they may call.
func (u *users) enter() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ended || u.closing && u.n == 0 {
		return false
	}
	u.n++
	return true
}

func (u *users) leave() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.n--
	u.settle()
}

// close lets nobody in any more, and returns what is closed with the last user.
func (u *users) close() <-chan struct{} {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.none == nil {
		u.none = make(chan struct{})
		u.closing = true
		u.settle()
	}
	return u.none
}

// settle closes none once. The caller holds the lock.
func (u *users) settle() {
	if u.closing && u.n == 0 && !u.ended {
		u.ended = true
		close(u.none)
	}
}

// end lets nobody in, whoever is left.
func (u *users) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.ended {
		u.ended = true
		close(u.none)
	}
}

// contextKey is the key of the tools of a call.
type contextKey struct{}

// WithResolved returns a context that has an agent's tools, for what runs in its calls.
func WithResolved(ctx context.Context, r *Resolved) context.Context {
	return context.WithValue(ctx, contextKey{}, r)
}

// FromContext returns the tools of the agent whose call ctx serves, or nil. They stay
// open until that call ends.
func FromContext(ctx context.Context) *Resolved {
	r, _ := ctx.Value(contextKey{}).(*Resolved)
	return r
}
