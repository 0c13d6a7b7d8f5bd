package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/agentd/agentd/daemon/health"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/descendants"
	"github.com/agentd/agentd/internal/mcpclient"
	"github.com/agentd/agentd/internal/strictyaml"
	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/registry/external"
	"github.com/agentd/agentd/skill/sandbox"
)

// confineServers returns what confines the MCP servers of a member: as its skills, and with
// no way to the API for skills.
func (d *Daemon) confineServers(f *fleet.Fleet, m *fleet.Member) external.Confine {
	return func(ctx registry.Context, server, dir string, granted json.RawMessage) (*sandbox.Sandbox, *descendants.Member, error) {
		box, err := d.confineServer(ctx, f, m, server, dir, granted)
		if faults := (*strictyaml.Error)(nil); errors.As(err, &faults) {
			first := faults.Faults[0]
			return nil, nil, &registry.ConfigError{Pointer: "/servers/" + server + "/sandbox", Message: first.Message, Hint: first.Hint}
		}
		return box, d.descendants, err
	}
}

func (d *Daemon) confineServer(ctx context.Context, f *fleet.Fleet, m *fleet.Member, server, dir string, granted json.RawMessage) (*sandbox.Sandbox, error) {
	s := fleet.Skill{Name: "MCP server " + server, Process: &fleet.Process{Dir: dir}}
	if granted != nil {
		var err error
		if s.Sandbox, err = fleet.ParseSandbox(granted, dir); err != nil {
			return nil, err
		}
		if s.Sandbox.User != nil {
			return nil, &strictyaml.Error{Faults: []strictyaml.Fault{s.Sandbox.User.Position.Fault("an MCP server runs as the user of agentd", "leave the key user out")}}
		}
		if err := f.CheckGrants(s); err != nil {
			return nil, err
		}
		if s.Sandbox.Off {
			d.log.Warn("an MCP server is not confined: agent.yaml says `sandbox: off`", "server", server)
		}
	}
	c, err := d.openConfinement(ctx, false)
	if err != nil {
		return nil, err
	}
	return d.confine(c, f, m, s, nil, "", d.privateFiles())
}

// usedTrouble lists what is wrong with tools. It begins and ends with what they depend on,
// which the log has, so the list is made when it is asked for.
func (d *Daemon) usedTrouble() (all []health.Condition) {
	tools := d.tools.Load()
	if tools == nil {
		return nil
	}
	for _, t := range tools.Troubles() {
		all = append(all, usedCondition(t))
	}
	return all
}

// usedCondition is the condition of one trouble with tools.
func usedCondition(t registry.Trouble) health.Condition {
	c := health.Condition{
		Kind: health.ToolServer, Subject: t.Subject, Code: t.Code, Advisory: true, Since: t.Since, Cause: t.Cause,
		Effect: "calls of " + strings.Join(t.Tools, ", ") + " are refused", Remedy: "the agent's log says more; it ends by itself when the cause does",
	}
	switch {
	case t.Code == "login":
		c.Effect, c.Remedy = "calls of "+strings.Join(t.Tools, ", ")+" fail: their MCP server lets nobody in without a login", "log in; the server is then used again by itself"
	case len(t.Tools) == 0:
		c.Effect = "a model may be led by a description that nobody has read"
		fallthrough
	case t.Code == "changed":
		c.Remedy = "read what has changed; `agentd registry pin` accepts it"
	}
	return c
}

// refusedTools says why tools cannot be called now, by their keys.
func refusedTools(tools *registry.Resolved) map[string]string {
	refused := map[string]string{}
	for _, t := range tools.Troubles() {
		for _, key := range t.Tools {
			refused[key] = t.Subject + ": " + t.Cause
		}
	}
	return refused
}

// usesServers reports whether a member has MCP servers, which are processes as skills are.
func usesServers(m *fleet.Member) bool {
	for _, use := range m.Agent.Uses {
		if use.Key == external.Key {
			return true
		}
	}
	return false
}

// declaredServers are those of mcpServers, for the capability mcp.
func (d *Daemon) declaredServers(f *fleet.Fleet, m *fleet.Member) ([]external.Declared, error) {
	all := make([]external.Declared, 0, len(m.Agent.MCPServers))
	for i, s := range serversOf(m.Agent) {
		key, err := json.Marshal(s)
		if err != nil {
			return nil, err
		}
		all = append(all, external.Declared{Name: s.Name, Refuse: s.PinWords, Key: string(key), Options: func(ctx registry.Context) (mcpclient.Options, error) {
			return d.serverOptions(ctx, f, m, m.Agent.MCPServers[i])
		}})
	}
	return all, nil
}

// externalTools is the capability mcp of a member.
func (d *Daemon) externalTools(f *fleet.Fleet, m *fleet.Member) (*external.Resolver, error) {
	declared, err := d.declaredServers(f, m)
	return external.New(d.confineServers(f, m)).Declare(declared...), err
}

// aside has do work for a member with what confines its programs, whether or not the agent runs.
// Nothing else is started, and nothing is left.
func aside(cfg Config, id string, do func(d *Daemon, m *fleet.Member) error) (err error) {
	member, ok := cfg.Fleet.Member(id)
	if !ok {
		return fmt.Errorf("the fleet has no agent %q", id)
	}
	cfg.ownProcess()
	d := &Daemon{cfg: cfg, log: cfg.Logger.With("agent", id), descendants: cfg.family.Member()}
	// The agent may be running, and opening its folders would empty them.
	d.apart = fmt.Sprintf("\x00pin %d", os.Getpid())
	d.loaded.Store(cfg.Fleet)
	d.member.Store(member)
	defer func() {
		err = errors.Join(err, d.closeDescendants())
		if c := d.confinement.Load(); c != nil {
			c.Close()
			err = errors.Join(err, os.RemoveAll(filepath.Join(c.own.calls, d.agentFolder())))
		}
	}()
	return do(d, member)
}

// ListServer connects once to an MCP server, confined and with the variables that it has when the
// agent runs, and returns what it serves. The agent's file need not have the server yet.
func ListServer(ctx context.Context, cfg Config, id string, s fleet.MCPServer) (listing *mcpclient.Listing, err error) {
	err = aside(cfg, id, func(d *Daemon, m *fleet.Member) error {
		if s.Process != nil {
			if err := cfg.Fleet.CheckGrants(s.Program()); err != nil {
				return err
			}
		}
		options, err := d.serverOptions(ctx, cfg.Fleet, m, s)
		if err != nil {
			return err
		}
		options.Logger = slog.New(slog.DiscardHandler) // the error has what the program said last
		listing, err = mcpclient.List(ctx, options)
		return err
	})
	return listing, err
}

// PinServers connects once to each MCP server of an agent, confined as when the agent runs,
// and returns the lock with what they serve, which the caller may write. It starts nothing
// else. The error names the servers that could not be asked.
func PinServers(ctx context.Context, cfg Config, id string) (lock *external.Lock, pinned []external.Pinned, err error) {
	err = aside(cfg, id, func(d *Daemon, m *fleet.Member) error {
		lock, pinned, err = d.pinServers(ctx, m)
		return err
	})
	return lock, pinned, err
}

func (d *Daemon) pinServers(ctx context.Context, member *fleet.Member) (*external.Lock, []external.Pinned, error) {
	cfg, id := d.cfg, member.ID
	tools, err := d.toolContext(ctx, cfg.Fleet, member)
	if err != nil {
		return nil, nil, err
	}
	resolver, err := d.externalTools(cfg.Fleet, member)
	if err != nil {
		return nil, nil, err
	}
	for _, use := range member.Agent.Uses {
		if use.Key != external.Key {
			continue
		}
		known := registry.New()
		if err := known.Register(resolver); err != nil {
			return nil, nil, err
		}
		// The schema first, and with its faults the places of the file.
		if err := known.CheckConfig(use); err != nil {
			return nil, nil, err
		}
		return resolver.Pin(tools, use.Config)
	}
	lock, pinned, err := resolver.Pin(tools, json.RawMessage("{}")) // of servers whose tools were imported
	if err == nil && len(pinned) == 0 {
		err = fmt.Errorf("the agent %s has no MCP servers to pin: its agent.yaml has no capabilities.%s, and no tool was imported", id, external.Key)
	}
	return lock, pinned, err
}
