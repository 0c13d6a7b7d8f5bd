package daemon

import (
	"reflect"
	"slices"
	"strings"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/fleet"
)

// An effect is what a reload does with a changed key.
type effect string

const (
	// swapped: in force for calls that begin after the reload.
	swapped effect = "swapped"
	// restart: the process was assembled around it. The reload swaps the rest, and
	// says that this key waits.
	restart effect = "restart"
	// refused: nothing is swapped; the error says why.
	refused effect = "refused"
)

// A setting is one key of a member's files, with what a reload does when it has
// changed.
type setting struct {
	file, key string
	effect    effect
	// value returns what the key says, without its place in the file.
	value func(f *fleet.Fleet, m *fleet.Member) any
}

// settings is the whole table. A test holds that every field of the decoded files is
// seen by one row, so that no new key is forgotten.
func settings() []setting {
	return slices.Concat(agentSettings(), peerSettings(), otherSettings())
}

// agentSettings are the keys of agent.yaml.
func agentSettings() []setting {
	row := func(key string, e effect, value func(a *fleet.AgentFile) any) setting {
		return setting{"agent.yaml", key, e, func(_ *fleet.Fleet, m *fleet.Member) any { return value(m.Agent) }}
	}
	return []setting{
		row("name", refused, func(a *fleet.AgentFile) any { return a.Name }), // by the load: it is the member's id
		row("version", swapped, func(a *fleet.AgentFile) any { return a.Version }),
		row("description", swapped, func(a *fleet.AgentFile) any { return a.Description }),
		row("validator", swapped, func(a *fleet.AgentFile) any { return a.Validator }),
		row("drift", swapped, func(a *fleet.AgentFile) any { return a.Drift }),
		row("breaker", swapped, func(a *fleet.AgentFile) any { return a.Breaker }),
		row("skills", swapped, func(a *fleet.AgentFile) any { return []any{skillsOf(a), a.SkillFiles} }),
		row("mcpServers", swapped, func(a *fleet.AgentFile) any { return serversOf(a) }),
		row("capabilities", swapped, func(a *fleet.AgentFile) any { return usesOf(a.Uses) }),
		row("layers.capabilities.actions", swapped, func(a *fleet.AgentFile) any { return actionsOf(a) }),
		row("permissions", swapped, func(a *fleet.AgentFile) any { return permissionsOf(a.Permissions) }),
		row("scopes", swapped, func(a *fleet.AgentFile) any { return patterns(a.Scopes) }), // with security.defaultPermissions
		row("tenants", swapped, func(a *fleet.AgentFile) any { return a.Tenants }),
		row("security.requireAuth", swapped, func(a *fleet.AgentFile) any { return a.Security.RequireAuth }),
		row("security.approvalTimeoutMs", swapped, func(a *fleet.AgentFile) any { return a.Security.ApprovalTimeout }),
		row("security.approvers", swapped, func(a *fleet.AgentFile) any { return approversOf(a.Security.Approvers) }), // for calls that wait, too
		row("security.clockSkewMs", swapped, func(a *fleet.AgentFile) any { return a.Security.ClockSkew }),
		row("security.identity.keyFile", swapped, func(a *fleet.AgentFile) any { return a.Security.KeyFile }),
		row("security.auditLog", restart, func(a *fleet.AgentFile) any { return a.Security.NoAuditLog }),
		row("audit.witnesses", restart, func(a *fleet.AgentFile) any { return witnessesOf(&a.Audit) }),
		row("audit.witnessQuorum", swapped, func(a *fleet.AgentFile) any { return a.Audit.WitnessQuorum }),
		row("audit.capture", swapped, func(a *fleet.AgentFile) any { return a.Audit.Capture }),
		row("audit.captureMaxBytes", swapped, func(a *fleet.AgentFile) any { return a.Audit.CaptureBytes }),
		row("audit.onFailure", restart, func(a *fleet.AgentFile) any { return a.Audit.FailOpen }),
		row("limits.maxPayloadBytes", swapped, func(a *fleet.AgentFile) any { return a.Limits.MaxPayloadBytes }),
		row("limits.maxInFlight", swapped, func(a *fleet.AgentFile) any { return a.Limits.MaxInFlight }),
		row("limits.maxQueued", swapped, func(a *fleet.AgentFile) any { return a.Limits.MaxQueued }),
		row("limits.maxQueuedBytes", swapped, func(a *fleet.AgentFile) any { return a.Limits.MaxQueuedBytes }),
		row("limits.maxPending", swapped, func(a *fleet.AgentFile) any { return a.Limits.MaxPending }),
		row("limits.maxViolations", swapped, func(a *fleet.AgentFile) any { return a.Limits.MaxViolations }),
		row("limits.redactNames", swapped, func(a *fleet.AgentFile) any { return a.Limits.RedactNames }),
		row("limits.maxValidationSteps", swapped, func(a *fleet.AgentFile) any { return a.Limits.MaxValidationSteps }),
		row("limits.maxSchemaBytes", restart, func(a *fleet.AgentFile) any { return a.Limits.MaxSchemaBytes }),
		row("limits.maxCompileSteps", restart, func(a *fleet.AgentFile) any { return a.Limits.MaxCompileSteps }),
		row("limits.maxPatternSteps", restart, func(a *fleet.AgentFile) any { return a.Limits.MaxPatternSteps }),
		row("limits.maxProofSteps", restart, func(a *fleet.AgentFile) any { return a.Limits.MaxProofSteps }),
		row("limits.idempotencyTtlMs", restart, func(a *fleet.AgentFile) any { return a.Limits.IdempotencyTTL }),
		row("idempotency", restart, func(a *fleet.AgentFile) any {
			i := a.Idempotency
			i.Position = fleet.Position{}
			return i
		}),
		row("mcp", swapped, func(a *fleet.AgentFile) any { return mcpOf(a.MCP) }),
		row("control", swapped, func(a *fleet.AgentFile) any { return controlOf(a.Control) }),
		row("monitoring.listen", restart, func(a *fleet.AgentFile) any { return a.Monitoring.Listen }),
		row("monitoring", swapped, func(a *fleet.AgentFile) any {
			m := a.Monitoring
			m.Listen = ""
			return m
		}),
		row("limits.shutdownTimeoutMs", swapped, func(a *fleet.AgentFile) any { return a.Limits.ShutdownTimeout }),
		row("durable", restart, func(a *fleet.AgentFile) any {
			d := a.Durable
			d.Position = fleet.Position{}
			return d
		}),
	}
}

// peerSettings are the keys of the peers file. A key's value is that of all peers.
func peerSettings() []setting {
	row := func(key string, value func(p *fleet.Peer) any) setting {
		return setting{"rpc-peers.yaml", key, swapped, func(_ *fleet.Fleet, m *fleet.Member) any {
			all := make([]any, len(m.Peers))
			for i, p := range m.Peers {
				all[i] = value(p)
			}
			return all
		}}
	}
	return []setting{
		row("peers.agent", func(p *fleet.Peer) any { return []any{p.Address, p.InFleet, p.Foreign} }),
		row("peers.transports", func(p *fleet.Peer) any { return transportsOf(p.Transports, false) }),
		{"rpc-peers.yaml", "peers.transports.servers", restart, func(_ *fleet.Fleet, m *fleet.Member) any {
			// One connection serves all peers, and the first that needs it names the
			// servers; see openTransports.
			for _, p := range m.Peers {
				for _, t := range p.Transports {
					if t.Kind == capability.NATS {
						return t.Servers
					}
				}
			}
			return []string(nil)
		}},
		row("peers.auth", func(p *fleet.Peer) any {
			if p.Auth == nil {
				return nil
			}
			a := *p.Auth
			a.Position = fleet.Position{}
			return a
		}),
		row("peers.capabilities", func(p *fleet.Peer) any {
			if p.Document == nil {
				return nil
			}
			return []any{p.Document.Path, p.Document.Digest(), p.Pinned}
		}),
		row("peers.replyTopics", func(p *fleet.Peer) any { return p.ReplyTopics }),
		row("peers.tenants", func(p *fleet.Peer) any { return p.Tenants }),
		row("peers.minSchemaVersion", func(p *fleet.Peer) any { return p.MinSchemaVersion }),
	}
}

// otherSettings are the keys of other files that take a restart, or are refused.
// What these files say besides is swapped.
func otherSettings() []setting {
	return []setting{
		{"capabilities.yaml", "capabilities", refused, func(_ *fleet.Fleet, m *fleet.Member) any { return m.ClientOnly() }}, // to begin or cease to offer any
		{"capabilities.yaml", "transports", restart, func(_ *fleet.Fleet, m *fleet.Member) any {
			if m.ClientOnly() {
				return nil
			}
			return transportsOf(m.Capabilities.Transports, true)
		}},
		{"capabilities.yaml", "delivery: durable", restart, func(_ *fleet.Fleet, m *fleet.Member) any {
			return !m.ClientOnly() && m.Capabilities.KeepsRequests()
		}},
		{"fleet.yaml", "name", restart, func(f *fleet.Fleet, _ *fleet.Member) any { return f.Name }},
		{"fleet.yaml", "broker.names", restart, func(f *fleet.Fleet, _ *fleet.Member) any { return f.Broker.FleetNames }},
		{"fleet.yaml", "agents.auditDb", restart, func(_ *fleet.Fleet, m *fleet.Member) any { return m.AuditDB }},
		{"fleet.yaml", "rpc.stampFleetVersion", restart, func(f *fleet.Fleet, _ *fleet.Member) any { return f.RPC.StampFleetVersion }},
		{"fleet.yaml", "rpc.minFleetVersion", restart, func(f *fleet.Fleet, _ *fleet.Member) any { return f.RPC.MinFleetVersion }},
	}
}

// changed lists the keys with an effect whose value differs between two loads, as
// <file>: <key>.
func changed(e effect, before, after reloadedState) (keys []string) {
	for _, s := range settings() {
		if s.effect == e && !reflect.DeepEqual(s.value(before.fleet, before.member), s.value(after.fleet, after.member)) {
			keys = append(keys, s.file+": "+s.key)
		}
	}
	return keys
}

// skillsOf is what a file says about skills, without places.
func skillsOf(a *fleet.AgentFile) []fleet.Skill {
	skills := slices.Clone(a.Skills)
	for i := range skills {
		skills[i].Position = fleet.Position{}
		skills[i].Sandbox = placelessSandbox(skills[i].Sandbox)
		if s := skills[i].MCP; s != nil {
			skills[i].MCP = &fleet.ServerTool{Server: s.Server, Tool: s.Tool, Text: s.Text, PinWords: s.PinWords}
		}
		if s := skills[i].HTTP; s != nil {
			placeless := *s
			placeless.Position = fleet.Position{}
			skills[i].HTTP = &placeless
		}
		if s := skills[i].Action; s != nil {
			skills[i].Action = &fleet.BuiltIn{ID: s.ID, Config: s.Config}
		}
	}
	return skills
}

// serversOf is what a file says about MCP servers, without places.
func serversOf(a *fleet.AgentFile) []fleet.MCPServer {
	servers := slices.Clone(a.MCPServers)
	for i := range servers {
		servers[i].Position = fleet.Position{}
		servers[i].Sandbox = placelessSandbox(servers[i].Sandbox)
	}
	return servers
}

func placelessSandbox(s *fleet.Sandbox) *fleet.Sandbox {
	if s == nil {
		return nil
	}
	placeless := *s
	placeless.Position = fleet.Position{}
	placeless.Read, placeless.Write = placelessPaths(s.Read), placelessPaths(s.Write)
	if s.User != nil {
		placeless.User = &fleet.SandboxUser{Name: s.User.Name}
	}
	return &placeless
}

// usesOf is what a file says about capabilities, without places.
func usesOf(all []fleet.Use) (uses [][2]string) {
	for _, u := range all {
		uses = append(uses, [2]string{u.Key, string(u.Config)})
	}
	return uses
}

// actionsOf is what a file says about actions, without places.
func actionsOf(a *fleet.AgentFile) []fleet.Action {
	actions := slices.Clone(a.Actions)
	for i := range actions {
		actions[i].Position = fleet.Position{}
	}
	return actions
}

func placelessPaths(granted []fleet.SandboxPath) []fleet.SandboxPath {
	paths := slices.Clone(granted)
	for i := range paths {
		paths[i].Position = fleet.Position{}
	}
	return paths
}

// permissionsOf tells an absent block from an empty one, which denies everything.
func permissionsOf(p *fleet.Permissions) any {
	if p == nil {
		return nil
	}
	return [][]string{
		patterns(p.Allow), patterns(p.Ask), patterns(p.Deny), patterns(p.Serve),
		patterns(p.Clients.Allow), patterns(p.Clients.Ask), patterns(p.Clients.Deny),
		patterns(p.Control.Allow), patterns(p.Control.Ask), patterns(p.Control.Deny),
	}
}

// mcpOf is what a file says about the face for MCP, without places.
func mcpOf(m fleet.MCP) fleet.MCP {
	m.Clients = slices.Clone(m.Clients)
	for i := range m.Clients {
		m.Clients[i].Position = fleet.Position{}
	}
	return m
}

// controlOf is what a file says about the control API, without places.
func controlOf(c fleet.Control) fleet.Control {
	c.Clients = slices.Clone(c.Clients)
	for i := range c.Clients {
		c.Clients[i].Position = fleet.Position{}
	}
	return c
}

// approversOf is who may decide, without places.
func approversOf(all []fleet.Approver) (who [][3]string) {
	for _, a := range all {
		who = append(who, [3]string{a.Name, a.Key, a.KeyFile})
	}
	return who
}

// patterns tells an absent list from an empty one, too.
func patterns(rules []fleet.PermissionRule) []string {
	if rules == nil {
		return nil
	}
	all := make([]string, len(rules))
	for i, r := range rules {
		all[i] = r.Pattern
	}
	return all
}

func witnessesOf(a *fleet.Audit) []string {
	var all []string
	for _, w := range a.Witnesses {
		all = append(all, strings.Join(append([]string{string(w.Address)}, w.Keys...), " "))
	}
	return all
}

// transportsOf are transports without their places, and without servers unless those
// are asked for.
func transportsOf(specs []capability.TransportSpec, servers bool) []capability.TransportSpec {
	all := slices.Clone(specs)
	for i := range all {
		all[i].Position = fleet.Position{}
		if !servers {
			all[i].Servers = nil
		}
	}
	return all
}
