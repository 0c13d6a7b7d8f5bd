package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/agentd/agentd/daemon/health"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/descendants"
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
	return d.confine(c, f, m, s, nil, "")
}

// usedTrouble lists what is wrong with tools. It begins and ends with what they depend on,
// which the log has, so the list is made when it is asked for.
func (d *Daemon) usedTrouble() (all []health.Condition) {
	tools := d.tools.Load()
	if tools == nil {
		return nil
	}
	for _, t := range tools.Troubles() {
		c := health.Condition{
			Kind: health.ToolServer, Subject: t.Subject, Code: t.Code, Advisory: true, Since: t.Since, Cause: t.Cause,
			Effect: "calls of " + strings.Join(t.Tools, ", ") + " are refused", Remedy: "the agent's log says more; it ends by itself when the cause does",
		}
		switch {
		case len(t.Tools) == 0:
			c.Effect = "a model may be led by a description that nobody has read"
			fallthrough
		case t.Code == "changed":
			c.Remedy = "read what has changed; `agentd registry pin` accepts it"
		}
		all = append(all, c)
	}
	return all
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

// PinServers connects once to each MCP server of an agent, confined as when the agent runs,
// and returns the lock with what they serve, which the caller may write. It starts nothing
// else. The error names the servers that could not be asked.
func PinServers(ctx context.Context, cfg Config, id string) (lock *external.Lock, pinned []external.Pinned, err error) {
	member, ok := cfg.Fleet.Member(id)
	if !ok {
		return nil, nil, fmt.Errorf("the fleet has no agent %q", id)
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
	tools, err := d.toolContext(ctx, cfg.Fleet, member)
	if err != nil {
		return nil, nil, err
	}
	for _, use := range member.Agent.Uses {
		if use.Key != external.Key {
			continue
		}
		resolver := external.New(d.confineServers(cfg.Fleet, member))
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
	return nil, nil, fmt.Errorf("the agent %s has no MCP servers: its agent.yaml has no capabilities.%s", id, external.Key)
}
