package fleet

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/internal/spelling"
	"github.com/agentd/agentd/internal/strictyaml"
	"github.com/agentd/agentd/schema"
)

// An Action is an entry of layers.capabilities.actions: a capability of the member of the
// same name, with what runs it.
type Action struct {
	// ID is the capability's name, and that of the skill that runs it.
	ID string
	// Handler is the path of the program as written; "" for an action that agentd has.
	Handler string
	// Limited says that the entry has a rate limit of its own.
	Limited bool
	// Position is where the entry stands.
	Position Position
}

// A BuiltIn is the use of an action that the program has.
type BuiltIn struct {
	// ID is one of [LoadOptions].Actions.
	ID string
	// Config is its configuration, a JSON object that fits the action's schema.
	Config string
	// Position is where the configuration stands, or the action if there is none.
	Position Position
}

// A KnownAction is an action that the program has.
type KnownAction struct {
	// Capability is what the action offers; its name is the action's id.
	Capability *capability.Capability
	// Config is the schema of its configuration. Nil takes none.
	Config *schema.Schema
}

// An offer is what a file says of actions, before it becomes a part of the member's
// capabilities.
type offer struct {
	capabilities []*capability.Capability
	transports   []capability.TransportSpec
	transportsAt Position
}

// actionOptions are what the actions of a file are read with.
type actionOptions struct {
	known   []KnownAction
	dir     string // the member's
	schemas capability.LoadOptions
}

func (a actionOptions) find(id string) (KnownAction, bool) {
	for _, k := range a.known {
		if k.Capability.Name == id {
			return k, true
		}
	}
	return KnownAction{}, false
}

// use reads the key action of a skill, or the id of an action without a handler.
func (a actionOptions) use(id, config strictyaml.Value) *BuiltIn {
	name := id.Text()
	if name == "" {
		return nil
	}
	known, ok := a.find(name)
	if !ok {
		var ids []string
		for _, k := range a.known {
			ids = append(ids, k.Capability.Name)
		}
		hint := spelling.DidYouMean(name, ids)
		if hint == "" && len(ids) > 0 {
			hint = "agentd has " + strings.Join(ids, ", ")
		}
		id.Fault(fmt.Sprintf("agentd has no action %q", name), hint)
		return nil
	}
	return known.use(id, config)
}

// use checks the configuration of an action.
func (k KnownAction) use(id, config strictyaml.Value) *BuiltIn {
	out := &BuiltIn{ID: k.Capability.Name, Config: "{}", Position: id.Position()}
	if config.Present() {
		out.Config, out.Position = string(config.AppendJSON(nil)), config.Position()
	}
	prefix := fmt.Sprintf("the configuration of the action %q: ", out.ID)
	switch {
	case config.Present() && config.Kind() != strictyaml.Map:
		config.Fault(fmt.Sprintf("expected a mapping but got %s", config.Kind()), "")
	case k.Config == nil && out.Config != "{}":
		config.Fault(prefix+"it takes none", "remove the key")
	case k.Config != nil:
		at := id
		if config.Present() {
			at = config
		}
		for _, v := range k.Config.Validate([]byte(out.Config)) {
			at.FaultBelow(v.Path, prefix+v.Message, k.configHint(v))
		}
	}
	return out
}

// configHint proposes the key that a misspelt one was meant to be.
func (k KnownAction) configHint(v schema.Violation) string {
	if v.Keyword != schema.KeywordAdditionalProperties || strings.Count(v.Path, "/") != 1 {
		return ""
	}
	var keys []string
	for _, p := range k.Config.Root().Properties() {
		keys = append(keys, p.Name)
	}
	if hint := spelling.DidYouMean(v.Path[1:], keys); hint != "" {
		return hint
	}
	return "known keys: " + strings.Join(keys, ", ")
}

// decodeLayers reads layers.capabilities, the form in which the ARAL standard's guide to
// its third layer configures actions. The other layers are not agentd's.
func (a *AgentFile) decodeLayers(v strictyaml.Value, p paths, opts actionOptions) {
	if !v.Present() {
		return
	}
	layers := v.Object()
	defer layers.Done()
	block := layers.Get("capabilities")
	if !block.Present() {
		return
	}
	o := block.Object()
	defer o.Done()
	seen := map[string]bool{}
	for _, s := range a.Skills {
		seen[s.Name] = true
	}
	for _, item := range o.Get("actions").List() {
		a.decodeAction(item, p, opts, seen)
	}
	if transports := o.Get("transports"); transports.Present() {
		a.offered.transports = capability.DecodeTransports(transports, capability.ServerSide)
		a.offered.transportsAt = transports.Position()
	}
	a.decodeActionSecurity(o.Get("security"))
}

// decodeAction reads one action: as a capability, and as a skill that runs it.
func (a *AgentFile) decodeAction(item strictyaml.Value, p paths, opts actionOptions, seen map[string]bool) {
	o := item.Object()
	defer o.Done()
	id, handler, config := o.Need("id"), o.Get("handler"), o.Get("config")
	name := id.String()
	s := Skill{Name: name, Position: item.Position()}
	var builtIn *capability.Capability
	if handler.Present() {
		s.Process = decodeHandler(handler, o, p, opts.dir)
		s.Sandbox = decodeSandbox(o.Get("sandbox"), opts.dir)
		if config.Present() {
			config.Fault("only the actions that agentd has take a configuration", "pass it to the handler with env")
		}
	} else if known, ok := opts.find(name); ok {
		builtIn = known.Capability
		s.Action = known.use(id, config)
	} else if name != "" {
		s.Action = opts.use(id, config)    // the fault,
		builtIn = &capability.Capability{} // which is enough
	}
	c := capability.DecodeAction(o, opts.schemas, builtIn)
	if name == "" {
		return
	}
	if seen[name] {
		id.Fault(fmt.Sprintf("the name %q is taken, by another action or by a skill", name), "rename one of them")
		return
	}
	seen[name] = true
	a.Actions = append(a.Actions, Action{
		ID: name, Handler: handler.String(), Limited: o.GetAny("rateLimit", "rate_limit").Present(), Position: item.Position(),
	})
	a.Skills = append(a.Skills, s)
	a.offered.capabilities = append(a.offered.capabilities, c)
}

// decodeHandler reads the program of an action: a file in the agent's folder. Its suffix
// says what runs it; a file with another suffix runs by itself. No shell reads its name.
func decodeHandler(v strictyaml.Value, o *strictyaml.Object, p paths, dir string) *Process {
	out := &Process{
		Dir: dir, InheritEnv: decodeEnvNames(o.Get("inheritEnv")), Env: decodeEnv(o.Get("env")),
		MaxOutputBytes: int(o.Get("maxOutputBytes").Int(1, 1<<30)), KillGrace: o.Get("killGraceMs").Millis(maxDuration),
	}
	if out.MaxOutputBytes == 0 {
		out.MaxOutputBytes = defaultMaxOutput
	}
	if out.KillGrace == 0 {
		out.KillGrace = defaultKillGrace
	}
	path := p.inside(v, dir)
	if path == "" {
		return out
	}
	if real := realPath(path); !within(dir, path) || path == dir || !within(realPath(dir), real) {
		v.Fault("the handler is not in the agent's folder", "move it below "+p.name(dir))
		return out
	}
	rel, _ := filepath.Rel(dir, path) // within has judged it
	// With ./ in front, a name that begins with - is no option of the interpreter.
	script := "." + string(filepath.Separator) + rel
	switch strings.ToLower(filepath.Ext(path)) {
	case ".js", ".mjs", ".cjs":
		out.Command = []string{"node", script}
	case ".ts", ".mts":
		out.Command = []string{"node", StripTypes, script}
	case ".py":
		out.Command = []string{"python3", script}
	case ".sh":
		out.Command = []string{"sh", script}
	default:
		out.Command = []string{path}
	}
	return out
}

// StripTypes is the option with which Node.js, from version 22.6 on, runs TypeScript.
const StripTypes = "--experimental-strip-types"

// decodeActionSecurity reads layers.capabilities.security: the keys of security of
// the same names, for all calls to the agent.
func (a *AgentFile) decodeActionSecurity(v strictyaml.Value) {
	if !v.Present() {
		return
	}
	o := v.Object()
	defer o.Done()
	if granted := decodeScopes(o.Get("defaultPermissions")); granted != nil {
		a.Scopes = append(granted, a.Scopes...)
	}
	if auth := o.Get("requireAuth"); auth.Present() {
		a.requireAuth(auth)
	}
	if log := o.Get("auditLog"); log.Kind() == strictyaml.Bool && a.auditLogAt != (Position{}) && a.Security.NoAuditLog == log.Bool() {
		log.Fault("security.auditLog and layers.capabilities.security.auditLog mean the same, and they differ", "keep one of them")
	} else if log.Present() {
		a.Security.NoAuditLog = !log.Bool()
	}
}

// offer adds the actions of a member to its capabilities, and what the built-in actions
// behind others need to those.
func (l *loader) offer(m *Member) {
	if m.Agent == nil {
		return
	}
	offered := m.Agent.offered
	if m.Capabilities != nil {
		if offered.transports != nil {
			l.failed(&strictyaml.Error{Faults: []Fault{offered.transportsAt.Fault("capabilities.yaml has the agent's transports already", "keep those")}})
		}
		m.Capabilities = l.withNeeds(m)
	}
	if offered.capabilities == nil {
		return
	}
	transports := offered.transports
	if transports == nil {
		transports = []capability.TransportSpec{{Kind: capability.Memory, Requests: "agents." + m.ID + ".requests", Position: m.Agent.Actions[0].Position}}
	}
	doc, err := capability.Offer(m.Capabilities, offered.capabilities, l.name(m.Agent.Path), m.Address, transports)
	if !l.failed(err) {
		m.Capabilities = doc
	}
}

// withNeeds returns the member's document, in which a capability that a built-in action
// runs needs what that action needs: its owner cannot forget to say so.
func (l *loader) withNeeds(m *Member) *capability.Document {
	needs := map[string][]string{}
	for _, s := range m.Agent.Skills {
		if s.Action == nil {
			continue
		}
		if known, ok := (actionOptions{known: l.opts.Actions}).find(s.Action.ID); ok {
			needs[s.Name] = known.Capability.Permissions
		}
	}
	if len(needs) == 0 {
		return m.Capabilities
	}
	return m.Capabilities.Replaced(func(c *capability.Capability) *capability.Capability {
		also, ok := needs[c.Skill]
		if !ok {
			return c
		}
		changed := *c
		changed.NeedAlso(also)
		return &changed
	})
}
