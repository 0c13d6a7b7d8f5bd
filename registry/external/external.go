package external

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agentd/agentd/internal/descendants"
	"github.com/agentd/agentd/internal/mcpclient"
	"github.com/agentd/agentd/internal/peertool"
	"github.com/agentd/agentd/internal/refcount"
	"github.com/agentd/agentd/internal/spelling"
	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/skill/sandbox"
)

// A Confine returns what holds the program of a server whose working folder is dir, and what
// ends the processes that it leaves; both may be nil. granted is the key sandbox of its
// configuration, nil where it is left out. Its errors are those of a resolver.
type Confine func(ctx registry.Context, server, dir string, granted json.RawMessage) (*sandbox.Sandbox, *descendants.Member, error)

// Connections are those to servers that are in use. The zero value is ready.
type Connections struct {
	pool refcount.Pool[*mcpclient.Client]
}

// A Resolver is the capability.
type Resolver struct {
	confine Confine
	open    *Connections
	besides string

	declared []Declared
}

// New returns the capability. Without confine, programs of servers may do whatever this
// process may.
func New(confine Confine) *Resolver { return &Resolver{confine: confine, open: &Connections{}} }

// Share has the resolver use the connections that others with the same ones have opened, as long
// as nothing about a server differs. besides names what its connections depend on that neither
// its configuration nor the lock says, such as the variables that secrets come from.
func (r *Resolver) Share(open *Connections, besides string) *Resolver {
	r.open, r.besides = open, besides
	return r
}

var _ registry.AgentResolver = (*Resolver)(nil)

// Key is the key of the capability.
const Key = "mcp"

// Key implements [registry.Resolver].
func (*Resolver) Key() string { return Key }

// Tools implements [registry.Resolver]. They are those of the servers.
func (*Resolver) Tools() []registry.Tool { return nil }

// ConfigSchema implements [registry.Resolver].
func (*Resolver) ConfigSchema() json.RawMessage { return json.RawMessage(configSchema) }

// An offer is a tool of a server with the name by which the agent has it.
type offer struct {
	name   string
	server string
	mcpclient.Contract
}

func (o offer) title() string { return o.Name + " of " + o.server }

func (o offer) describe() string {
	if o.Description != "" {
		return o.Description
	}
	return "Calls " + o.Name + " of the MCP server " + o.server + "."
}

// read reads a configuration with the pinned contracts, and lists the tools that both give.
func (r *Resolver) read(ctx registry.Context, raw json.RawMessage) (config, *Lock, []offer, error) {
	var conf config
	if err := json.Unmarshal(raw, &conf); err != nil {
		return conf, nil, nil, err
	}
	names, err := r.names(&conf)
	if err != nil {
		return conf, nil, nil, err
	}
	lock, err := ReadLock(ctx.AgentDir)
	if err != nil {
		return conf, nil, nil, fault("/servers", err.Error(), "")
	}
	var all []offer
	taken := map[string]string{}
	for _, name := range names {
		pinned, ok := lock.Servers[name]
		if !ok {
			return conf, nil, nil, fault(pointer(name), fmt.Sprintf("the tools of the server %q are not pinned: %s has no such server", name, LockName),
				fmt.Sprintf("run `agentd registry pin --agent %s`, and read what it writes", ctx.Agent))
		}
		offers, err := choose(name, conf.Servers[name].Tools, pinned)
		if err != nil {
			return conf, nil, nil, err
		}
		for _, o := range offers {
			if other, ok := taken[o.name]; ok {
				return conf, nil, nil, fault(pointer(name), fmt.Sprintf("%s and %s would both be the tool %q", other, o.title(), o.name), "leave one of them out by its server's tools")
			}
			taken[o.name] = o.title()
			all = append(all, o)
		}
	}
	return conf, lock, all, nil
}

// choose returns the pinned tools of a server that its list allows.
func choose(name string, allowed []string, pinned LockedServer) (all []offer, err error) {
	var known []string
	for _, t := range pinned.Tools {
		known = append(known, t.Name)
		if allowed == nil || slices.Contains(allowed, t.Name) {
			all = append(all, offer{peertool.Name(name, t.Name), name, t.Contract})
		}
	}
	for i, tool := range allowed {
		if !slices.Contains(known, tool) {
			return nil, fault(fmt.Sprintf("%s/tools/%d", pointer(name), i), fmt.Sprintf("no tool %q of the server %q is pinned", tool, name), "pinned: "+spelling.Among(tool, known))
		}
	}
	return all, nil
}

// AgentTools implements [registry.AgentResolver].
func (r *Resolver) AgentTools(ctx registry.Context, raw json.RawMessage) ([]registry.Tool, error) {
	conf, _, offers, err := r.read(ctx, raw)
	if err != nil {
		return nil, err
	}
	if len(conf.Servers) == 0 {
		return nil, registry.Skip("no server is configured")
	}
	tools := make([]registry.Tool, len(offers))
	for i, o := range offers {
		tools[i] = registry.Tool{Key: o.name, Name: o.title(), Description: o.describe()}
	}
	return tools, nil
}

// Resolve implements [registry.Resolver]. The servers are connected to in the background:
// one that is away keeps no agent from starting.
func (r *Resolver) Resolve(ctx registry.Context, c registry.Config) (*registry.Server, error) {
	conf, lock, offers, err := r.read(ctx, c.JSON)
	if err != nil {
		return nil, err
	}
	s := registry.NewServer(Key, "1", c.Tools)
	clients := map[string]*connection{}
	for _, o := range offers {
		if !slices.Contains(c.Tools, o.name) {
			continue
		}
		conn := clients[o.server]
		if conn == nil {
			if conn, err = r.connection(ctx, o.server, conf.Servers[o.server], lock.Servers[o.server]); err != nil {
				return nil, errors.Join(err, s.Close())
			}
			clients[o.server] = conn
			s.OnClose(conn.release)
			s.OnTrouble(conn.troubles)
		}
		conn.names[o.Name] = o.name
		if err := r.add(s, conn, o, conf.Servers[o.server]); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	for _, conn := range clients {
		conn.client.Start()
	}
	return s, nil
}

// connection is that to a server. A new one is not started yet.
func (r *Resolver) connection(ctx registry.Context, name string, s server, pinned LockedServer) (*connection, error) {
	o, err := r.options(ctx, name, s)
	if err != nil {
		return nil, err
	}
	o.Pinned = pinned.contracts()
	var policy *sandbox.Policy
	if o.Command != nil && o.Command.Sandbox != nil {
		policy = &o.Command.Sandbox.Policy
	}
	declared, _ := r.find(name)
	key, err := json.Marshal([]any{name, s, declared.Key, pinned, policy, r.besides})
	if err != nil {
		return nil, err
	}
	ref, err := r.open.pool.Use(string(key), func() (*mcpclient.Client, error) { return mcpclient.New(o) })
	if err != nil {
		return nil, err
	}
	return &connection{name: name, client: ref.Value, release: ref.Release, log: ctx.Logger, names: map[string]string{}}, nil
}

// add adds a tool.
func (r *Resolver) add(s *registry.Server, conn *connection, o offer, conf server) error {
	_, out, err := o.Compile()
	if err != nil {
		return err
	}
	hints := o.Hints()
	timeout := time.Minute
	if ms := max(conf.Limits.TimeoutMs, conf.TimeoutMs); ms > 0 {
		timeout = time.Duration(ms) * time.Millisecond
	}
	return s.AddResult(registry.ToolSpec{
		Key: o.name, Title: o.title(), Description: o.describe(), Input: o.InputSchema, Output: o.OutputSchema,
		Schemas:  schema.CompileOptions{Profile: schema.ProfileFull},
		ReadOnly: hints.ReadOnly, Idempotent: hints.Idempotent, Destructive: hints.Destructive, OpenWorld: hints.OpenWorld,
		Timeout: timeout + 5*time.Second, // within which the client says what was wrong
		Bounded: true,                    // by the limit pending of each server
	}, conn.handler(o, out))
}
