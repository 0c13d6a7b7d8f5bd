package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/daemon/health"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/mcpaccess"
	"github.com/agentd/agentd/internal/mcpclient"
	"github.com/agentd/agentd/internal/mcptool"
	"github.com/agentd/agentd/internal/refcount"
	"github.com/agentd/agentd/internal/secretref"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/schema/contain"
	"github.com/agentd/agentd/skill/sandbox"
)

// toolServers are the connections to the MCP servers whose tools run skills. A reload that
// changes nothing about a server keeps its connection. The zero value is ready.
type toolServers struct {
	open    refcount.Pool[*mcptool.Server] // by what they were opened with
	closing sync.WaitGroup

	mu       sync.Mutex
	recorded map[string]time.Time // by capability, since when it is refused, as its newest record says; guarded by mu
}

// A toolServer is open as long as a set of handlers has it.
type toolServer struct {
	*mcptool.Server
	from *toolServers
	ref  *refcount.Ref[*mcptool.Server]
}

// use returns the server that was opened with key, or opens and starts it.
func (t *toolServers) use(key string, o mcptool.Options) (*toolServer, error) {
	ref, err := t.open.Use(key, func() (*mcptool.Server, error) { return mcptool.Open(o) })
	if err != nil {
		return nil, err
	}
	ref.Value.Start()
	return &toolServer{ref.Value, t, ref}, nil
}

// release ends the use, without a wait for the server's end: a program may take its time.
func (s *toolServer) release() {
	s.from.closing.Go(func() { _ = s.ref.Release() }) // it has nothing to say
}

// close closes all servers, whoever uses them: no call does any more.
func (t *toolServers) close() {
	_ = t.open.CloseAll() // as in release, which may follow
	t.closing.Wait()
}

// toolSkills opens the servers of a member's skills, and returns what runs these. The servers
// are closed with the set of actions, after the last call that uses them.
func (d *Daemon) toolSkills(ctx context.Context, f *fleet.Fleet, m *fleet.Member, set *actionSet) (map[string]rpc.Handler, error) {
	handlers := map[string]rpc.Handler{}
	bindings := map[string][]mcptool.Binding{} // by server
	for _, s := range m.Agent.Skills {
		if s.MCP == nil || d.cfg.Handlers[s.Name] != nil {
			continue
		}
		handlers[s.Name] = mcpSkill{d, set, s.MCP.Server}
		bindings[s.MCP.Server] = append(bindings[s.MCP.Server], bindingsOf(m, s)...)
	}
	for _, s := range m.Agent.MCPServers {
		if len(bindings[s.Name]) == 0 {
			continue // no capability has a skill of it
		}
		server, err := d.openToolServer(ctx, f, m, s, bindings[s.Name])
		if err != nil {
			return nil, fmt.Errorf("%s:%d: the MCP server %s: %w", s.Position.File, s.Position.Line, s.Name, err)
		}
		set.servers = append(set.servers, server)
	}
	return handlers, nil
}

// bindingsOf are the capabilities of a member that a skill runs.
func bindingsOf(m *fleet.Member, s fleet.Skill) (all []mcptool.Binding) {
	if m.Capabilities == nil {
		return nil
	}
	for _, c := range m.Capabilities.Capabilities {
		if c.Skill == s.Name {
			all = append(all, mcptool.Binding{Capability: c, Tool: s.MCP.Tool, Text: mcptool.Text(s.MCP.Text), PinWords: s.MCP.PinWords})
		}
	}
	return all
}

func (d *Daemon) openToolServer(ctx context.Context, f *fleet.Fleet, m *fleet.Member, s fleet.MCPServer, bindings []mcptool.Binding) (*toolServer, error) {
	variables, err := f.EnvFileVariables(m)
	if err != nil {
		return nil, err
	}
	client, err := d.serverOptions(ctx, f, m, s)
	if err != nil {
		return nil, err
	}
	client.Limits.Timeout = rpc.MaxTimeout // each call has its own
	options := mcptool.Options{
		Client:   client,
		Bindings: bindings,
		Compile: schema.CompileLimits{
			MaxBytes: m.Agent.Limits.MaxSchemaBytes, MaxSteps: m.Agent.Limits.MaxCompileSteps, MaxPatternSteps: m.Agent.Limits.MaxPatternSteps,
		},
		Budget: contain.Budget{Steps: m.Agent.Limits.MaxProofSteps},
	}
	key, err := toolServerKey(s, options, variables)
	if err != nil {
		return nil, err
	}
	return d.toolServers.use(key, options)
}

// serverOptions are how a server of mcpServers is reached, whoever uses it: for skills, for the
// agent's own tools, and to read its contracts.
func (d *Daemon) serverOptions(ctx context.Context, f *fleet.Fleet, m *fleet.Member, s fleet.MCPServer) (mcpclient.Options, error) {
	options := mcpclient.Options{
		Name: s.Name, Era: s.Era, Logger: d.log, Tracer: d.tracerOrNil(),
		Limits: mcpclient.Limits{Pending: s.Pending, PerMinute: s.PerMinute, MessageBytes: s.MaxMessageBytes, StartTimeout: s.StartTimeout},
	}
	for _, dir := range s.Roots {
		root := url.URL{Scheme: "file", Path: filepath.ToSlash(dir)}
		options.Roots = append(options.Roots, root.String())
	}
	variables, err := f.EnvFileVariables(m)
	if err != nil {
		return options, err
	}
	if s.Process == nil {
		options.URL = mcptool.Endpoint(s, lookup(variables))
		resolve := func(ref string) (string, error) { return secretref.Resolve(ref, lookup(variables)) }
		options.URL.Auth = mcpaccess.To(s.Name, s.OAuth, options.URL, resolve, d.logins(m))
		return options, nil
	}
	options.Command, err = d.toolProgram(ctx, f, m, s, variables)
	return options, err
}

// logins are where a member keeps its logins at MCP servers.
func (d *Daemon) logins(m *fleet.Member) mcpaccess.Logins {
	return mcpaccess.Logins{Dir: d.cfg.Paths.MCPLogins(m.ID), Agent: m.Address, Logger: d.log}
}

// toolServerKey names all that a connection was opened with: where it is the same, a reload
// keeps the connection.
func toolServerKey(s fleet.MCPServer, options mcptool.Options, variables []fleet.Variable) (string, error) {
	type bound struct {
		Name, Description, Digest, Tool string
		Result                          capability.ResultForm
		Text                            mcptool.Text
		Idempotent, PinWords            bool
		Input, Output                   []byte // with their words, which a digest may not cover
	}
	s.Position, s.Sandbox = fleet.Position{}, placelessSandbox(s.Sandbox)
	var policy *sandbox.Policy
	if c := options.Client.Command; c != nil && c.Sandbox != nil {
		policy = &c.Sandbox.Policy
	}
	all := make([]bound, len(options.Bindings))
	for i, b := range options.Bindings {
		of := b.Capability
		all[i] = bound{of.Name, of.Description, of.Digest, b.Tool, of.Result, b.Text, of.Idempotent, b.PinWords, of.Input.SourceOf(), of.Output.SourceOf()}
	}
	key, err := json.Marshal([]any{s, all, variables, policy, options.Compile, options.Budget})
	return string(key), err
}

// toolProgram is the program of a server, confined as skills are.
func (d *Daemon) toolProgram(ctx context.Context, f *fleet.Fleet, m *fleet.Member, s fleet.MCPServer, variables []fleet.Variable) (*mcpclient.Command, error) {
	p, getenv := s.Process, lookup(variables)
	out := &mcpclient.Command{
		Args: p.Command, Dir: p.Dir, Grace: p.KillGrace, Descendants: d.descendants,
		Env: func() ([]string, error) { return toolEnvironment(p, variables, getenv) },
	}
	program := s.Program()
	c, err := d.openConfinement(ctx, program.Sandbox != nil && program.Sandbox.User != nil)
	if err != nil {
		return nil, err
	}
	user, err := d.userOf(ctx, c, program)
	if err != nil {
		return nil, err
	}
	out.Sandbox, err = d.confine(c, f, m, program, user, "", d.privateFiles()) // it serves many calls, and acts for none
	return out, err
}

// toolEnvironment are the variables that a server's file names. A value that is a reference is
// that of the secret.
func toolEnvironment(p *fleet.Process, variables []fleet.Variable, getenv func(string) string) ([]string, error) {
	env := namedVariables(p, variables, os.LookupEnv)
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); named(p.InheritEnv, name) {
			env = append(env, kv)
		}
	}
	own, err := mcptool.Variables(p.Env, getenv)
	return append(env, own...), err
}

// An mcpSkill is a skill that is a tool of an MCP server.
type mcpSkill struct {
	d      *Daemon
	set    *actionSet // of the files that the skill stands in
	server string
}

// Handle implements [rpc.Handler].
func (s mcpSkill) Handle(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
	set, err := s.d.actionsOf(s.set)
	if err != nil {
		return nil, err
	}
	defer set.release()
	for _, server := range set.servers {
		if server.Name() == s.server && slices.Contains(server.Capabilities(), inv.Capability) {
			out, err := server.Handle(ctx, inv)
			if drift, ok := errors.AsType[*mcptool.DriftError](err); ok {
				s.d.recordToolDrift(ctx, inv, drift)
			}
			return out, err
		}
	}
	return nil, &rpc.SkillError{Message: "the agent no longer has this tool"}
}

// driftRecordTimeout bounds the record of a drift, for which the call that met it waits.
const driftRecordTimeout = 5 * time.Second

// recordToolDrift records that a tool does not keep its contract, as the gate does of a peer:
// with the first call that is refused for it, and once until it keeps it again.
func (d *Daemon) recordToolDrift(ctx context.Context, inv *rpc.Invocation, e *mcptool.DriftError) {
	t := &d.toolServers
	t.mu.Lock()
	before := t.recorded[e.Capability]
	if t.recorded == nil {
		t.recorded = map[string]time.Time{}
	}
	t.recorded[e.Capability] = e.Since
	t.mu.Unlock()
	if before.Equal(e.Since) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), driftRecordTimeout)
	defer cancel()
	if err := d.audit.recordToolDrift(ctx, inv, e); err != nil {
		d.log.Error("the drift of an MCP server's tool has no record", "capability", e.Capability, "correlationId", inv.CorrelationID, "traceId", inv.TraceID(), "error", err)
		t.mu.Lock()
		delete(t.recorded, e.Capability) // the next call tries again
		t.mu.Unlock()
	}
}

// toolTrouble lists what is wrong with the servers of skills. Their clients log it as it begins
// and ends.
func (d *Daemon) toolTrouble() (all []health.Condition) {
	set, ok := d.currentActions()
	if !ok {
		return nil
	}
	defer set.release()
	for _, server := range set.servers {
		state := server.State()
		calls := strings.Join(server.Capabilities(), ", ")
		if !state.Connected {
			cause := state.Cause
			if cause == "" {
				cause = "it has not been reached yet"
			}
			away := health.Condition{
				Kind: health.ToolServer, Subject: server.Name(), Code: "away", Since: orNow(state.Since),
				Effect: "calls of " + calls + " fail: their MCP server is away", Cause: cause,
				Remedy: "it is tried again by itself; see its command, with what its sandbox lets it read, or its URL under mcpServers of agent.yaml",
			}
			if state.NeedsLogin {
				away.Code, away.Effect = "login", "calls of "+calls+" fail: their MCP server lets nobody in without a login"
				away.Remedy = "log in; the server is then used again by itself"
			}
			all = append(all, away)
		}
		for _, f := range state.Refused {
			all = append(all, toolCondition(server.Name(), f, "changed", false, "calls of "+f.Capability+" are refused: the tool does not keep its contract",
				"review the tool, and import its contract again: `agentd capabilities import-mcp --update`"))
		}
		for _, f := range state.Reworded {
			all = append(all, toolCondition(server.Name(), f, "description-changed", true, "models are told something else of "+f.Capability+" than its contract says",
				"review the words, and import them again: `agentd capabilities import-mcp --update`; descriptions: refuse keeps them from passing"))
		}
	}
	return all
}

func toolCondition(server string, f mcptool.Fault, code string, advisory bool, effect, remedy string) health.Condition {
	return health.Condition{
		Kind: health.ToolServer, Subject: server + "/" + f.Tool, Code: code, Advisory: advisory, Since: f.Since,
		Effect: effect, Cause: f.Reason, Remedy: remedy,
	}
}

func orNow(t time.Time) time.Time {
	if t.IsZero() {
		return time.Now()
	}
	return t
}

// advisories are the conditions with which an agent stays ready.
func advisories(all []health.Condition) []health.Condition {
	return slices.DeleteFunc(all, func(c health.Condition) bool { return !c.Advisory })
}

// toolsReady is why calls fail for want of a server or a web service, or nil.
func (d *Daemon) toolsReady() error {
	var all []error
	for _, c := range slices.Concat(d.toolTrouble(), d.httpTrouble()) {
		if !c.Advisory {
			all = append(all, errors.New(c.String()))
		}
	}
	return errors.Join(all...)
}
