package fleet

import (
	"fmt"
	"math"
	"time"

	"github.com/agentd/agentd/internal/capabilitylist"
	"github.com/agentd/agentd/internal/strictyaml"
	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/schema/contain"
)

// An AgentFile holds what agent.yaml tells agentd. The reference runtime
// reads the same file, so its keys that promise no protection (model,
// systemPrompt, plugins and so on) are accepted and ignored, and so are keys
// that start with x-. Any other key is a fault.
type AgentFile struct {
	// Path is the file's absolute path.
	Path string
	// Name equals the member's id.
	Name string
	// Version and Description are the owner's; "" when not given.
	Version, Description string
	// Validator names the engine that checks payloads, see [capability.Engine].
	Validator string
	// Drift selects what the drift gate does about a peer whose contract no
	// longer fits: enforce, the default, refuses the call; warn reports it
	// and lets the call go on; off skips the gate.
	Drift string
	// Skills are in declared order, after them those of the actions. The list is empty if
	// the file names skill documents of the reference runtime instead; SkillFiles holds
	// those.
	Skills []Skill
	// MCPServers are the servers whose tools run skills: those of the key mcpServers, and
	// those that skills have for themselves.
	MCPServers []MCPServer
	// SkillFiles are the paths of skill documents, as written.
	SkillFiles []string
	// Actions are those of layers.capabilities, in declared order. What they take and
	// need is in [Member.Capabilities], and what runs them in Skills.
	Actions []Action
	// Permissions is nil if the file has no such block. The member may then
	// call its peers and nobody else.
	Permissions *Permissions
	// Scopes are what the member's capabilities may use, such as
	// network:read. They come from the keys scopes and defaultPermissions, of security and
	// of layers.capabilities.security, together. Nil, when the file has neither,
	// grants every scope; an empty list grants none.
	Scopes []PermissionRule
	// Uses lists what the member may use, such as its memory or files, in declared order:
	// the key capabilities. Package registry resolves it. What the member offers to
	// others is [Member.Capabilities].
	Uses []Use
	// Tenants are those whose calls the member serves, with [envelope.NoTenant] for calls
	// that name none. Nil, when the file has no such list, serves only the latter.
	Tenants []string
	// Security holds the block security.
	Security Security
	// Audit holds the block audit.
	Audit Audit
	// Limits holds the block limits, with defaults for what the file leaves
	// out.
	Limits Limits
	// Durable holds the block durable.
	Durable Durable
	// Idempotency holds the block idempotency.
	Idempotency Idempotency
	// Breaker holds the block breaker, with defaults for what the file leaves out.
	Breaker Breaker
	// MCP holds the block mcp, with defaults for what the file leaves out.
	MCP MCP
	// Control holds the block control, with defaults for what the file leaves out.
	Control Control
	// Monitoring holds the block monitoring.
	Monitoring Monitoring
	// Ignored are the keys of the file that agentd accepts for the sake of the
	// reference runtime, and does not act on.
	Ignored []IgnoredKey

	validatorAt Position
	auditLogAt  Position // of security.auditLog, zero without it
	offered     offer
}

// A Use is one entry of the key capabilities: a capability of package registry with its
// configuration.
type Use = capabilitylist.Capability

// An IgnoredKey is a key that the reference runtime reads, and that agentd carries.
type IgnoredKey struct {
	// Key is the path of the key, such as model or audit.export.
	Key string
	// Position is where the key stands.
	Position Position
}

// ignore accepts keys that agentd does not act on, and returns those that the file
// has. prefix is the path of the block.
func ignore(o *strictyaml.Object, prefix string, keys ...string) (found []IgnoredKey) {
	for _, key := range keys {
		if v := o.Get(key); v.Present() {
			found = append(found, IgnoredKey{Key: prefix + key, Position: v.Position()})
		}
	}
	return found
}

// Skill returns the skill of that name.
func (a *AgentFile) Skill(name string) (Skill, bool) {
	for _, s := range a.Skills {
		if s.Name == name {
			return s, true
		}
	}
	return Skill{}, false
}

// A Skill is the code behind a capability, or code that only calls others.
type Skill struct {
	// Name is what a capability's skill key refers to.
	Name string
	// Process is the program that runs the skill: one process per call, unless Worker says
	// more. It is nil where HTTP, Action or MCP is not, and where Inline is set.
	Process *Process
	// Worker is set for a program that stays. It is nil for one that is started for each
	// call.
	Worker *Worker
	// HTTP runs the skill as requests to a web service.
	HTTP *HTTPSkill
	// MCP runs the skill as a tool of an MCP server.
	MCP *ServerTool
	// Action runs the skill as an action that agentd has, in its own process.
	Action *BuiltIn
	// Inline is set for a Go function of the program that agentd is a part of, which has
	// promised to be quick. All of the above is nil then.
	Inline bool
	// Sandbox grants the program more, or is nil.
	Sandbox *Sandbox
	// Position is where the file declares the skill.
	Position Position
}

// A Process describes the program that runs a skill, once for each call or as a worker.
type Process struct {
	// Command is the program and its arguments. At least one.
	Command []string
	// Dir is the working directory: absolute, and inside the fleet's root,
	// which is the default.
	Dir string
	// Env are variables to set, as KEY=value, in declared order.
	Env []string
	// InheritEnv names variables to pass on from agentd's own environment; a
	// name that ends in * is a prefix.
	InheritEnv []string
	// MaxOutputBytes bounds standard output. The default is 4 MiB.
	MaxOutputBytes int
	// KillGrace is how long the program may clean up between the request to
	// stop and the kill. The default is 2 s.
	KillGrace time.Duration
}

// Permissions decides which calls a member may make, and which that it serves
// wait for a person. Deny wins over Ask, and Ask over Allow; where there are
// rules about calls that it makes, those that no list matches are denied. Package policy reads the
// patterns and decides.
type Permissions struct {
	// Allow permits calls, Ask holds them for a person's approval, Deny
	// refuses them.
	Allow, Ask, Deny []PermissionRule
	// Serve holds calls of others to the member for a person's approval: the rules of Ask
	// that begin with ServeAgent.
	Serve []PermissionRule
	// Clients decides about clients of the member's face for MCP: the rules of Allow, Ask
	// and Deny that begin with MCP. Control does about those of its control API: the rules that
	// begin with CLIENT.
	Clients, Control ClientPermissions
}

// A PermissionRule is one pattern of agent.yaml.
type PermissionRule struct {
	Pattern string
	// Position is where the pattern stands.
	Position Position
}

// Security holds the block security, except for defaultPermissions, which is
// part of [AgentFile.Scopes].
type Security struct {
	// RequireAuth refuses messages from agents without a known identity. It is
	// the key requireAuth, or rpc.auth.required, the reference runtime's. Nil
	// means that the file does not say; nothing is refused then.
	RequireAuth *bool
	// ApprovalTimeout is how long a call waits for a person's approval before
	// it is denied. The default is 5 min.
	ApprovalTimeout time.Duration
	// Approvers are the people who may decide, by their keys. Nil, when the file
	// has no such list, lets whoever has the agent's control socket decide.
	Approvers []Approver
	// ClockSkew is how far behind the callers' clocks may be. The default is
	// 0.
	ClockSkew time.Duration
	// KeyFile is the absolute path of a file that has the agent's own keys, and that
	// something else than agentd provides, such as a mounted secret. "" means the one in
	// the state folder.
	KeyFile string
	// NoAuditLog turns off the access record that each call leaves. Refusals
	// and violations are recorded all the same.
	NoAuditLog bool
}

// Limits bounds the work that a member accepts.
type Limits struct {
	// MaxPayloadBytes bounds one payload, sent or received. The default is 1
	// MiB.
	MaxPayloadBytes int
	// MaxInFlight bounds the calls served at once. The default is 256.
	MaxInFlight int
	// MaxQueued bounds the calls of one capability that wait to be served. The
	// default is 2,048; with 0, none waits.
	MaxQueued int
	// MaxQueuedBytes bounds their messages. The default is 64 MiB.
	MaxQueuedBytes int
	// MaxPending bounds the calls that wait for a reply. The default is
	// 10,000.
	MaxPending int
	// MaxViolations bounds the violations that a result and a record list. The
	// default is 100, the most [MostViolations].
	MaxViolations int
	// RedactNames hides names in violations that the sender of a payload chose.
	RedactNames bool
	// MaxValidationSteps bounds the work on one payload, see [schema.Limits]. The
	// default is [schema.DefaultMaxSteps].
	MaxValidationSteps int
	// MaxSchemaBytes, MaxCompileSteps and MaxPatternSteps bound the work on a schema
	// that a peer publishes, see [schema.CompileLimits]. The defaults are 2 MiB,
	// [schema.DefaultMaxCompileSteps] and [schema.DefaultMaxPatternSteps].
	MaxSchemaBytes, MaxCompileSteps, MaxPatternSteps int
	// MaxProofSteps bounds the work of a proof that two contracts agree, see
	// [contain.Budget]. The default is [contain.DefaultSteps].
	MaxProofSteps int
	// IdempotencyTTL is how long responses to requests with an idempotency
	// key are kept. The default is 24 h.
	IdempotencyTTL time.Duration
	// ShutdownTimeout is how long accepted calls may take to finish. The
	// default is 15 s.
	ShutdownTimeout time.Duration
}

// DefaultLimits returns the limits of a member whose file sets none.
func DefaultLimits() Limits {
	return Limits{
		MaxPayloadBytes: 1 << 20, MaxInFlight: 256, MaxQueued: 2048, MaxQueuedBytes: 64 << 20, MaxPending: 10_000,
		MaxViolations: schema.DefaultMaxViolations, MaxValidationSteps: schema.DefaultMaxSteps,
		MaxSchemaBytes: 2 << 20, MaxCompileSteps: schema.DefaultMaxCompileSteps,
		MaxPatternSteps: schema.DefaultMaxPatternSteps, MaxProofSteps: contain.DefaultSteps,
		IdempotencyTTL: 24 * time.Hour, ShutdownTimeout: 15 * time.Second,
	}
}

// MostViolations is the highest [Limits.MaxViolations]: what a caller takes from a
// peer.
const MostViolations = 1000

const (
	defaultMaxOutput = 4 << 20
	defaultKillGrace = 2 * time.Second
	maxDuration      = 24 * time.Hour
)

// decodeAgent reads the agent.yaml of the member with this id. The file
// repeats the id, so that a copied directory with a forgotten name is
// noticed.
func decodeAgent(file *strictyaml.File, id string, p paths, actions actionOptions) *AgentFile {
	o := file.Root().Object()
	layers := o.Get("layers")
	name := o.Get("name")
	if !name.Present() && !layers.Present() {
		name = o.Need("name")
	}
	a := &AgentFile{Name: name.Text()}
	if !name.Present() { // the file of a framework in which the folder names the agent
		a.Name = id
	}
	if a.Name != "" && a.Name != id {
		o.Get("name").Fault(fmt.Sprintf("agent id mismatch: fleet.yaml declares %q but this file names %q", id, a.Name), "make them equal")
	}
	// Reading a key also declares it: Done reports every key that no line here asks
	// for.
	a.Version = o.Get("version").Text()
	a.Description = o.Get("description").String()
	validator := o.Get("validator")
	a.Validator, a.validatorAt = validator.Enum("native", "gojsonschema"), validator.Position()
	a.Drift = o.Get("drift").Enum("enforce", "warn", "off")
	a.decodeMCPServers(o.Get("mcpServers"), p)
	a.decodeSkills(o.Get("skills"), p, actions)
	a.checkMCPServers()
	a.Uses = capabilitylist.Read(o.Get("capabilities"))
	a.Permissions = decodePermissions(o.Get("permissions"))
	a.Scopes = decodeScopes(o.Get("scopes"))
	a.Tenants = decodeTenants(o.Get("tenants"), true)
	a.decodeSecurity(o.Get("security"), p)
	a.decodeLayers(layers, p, actions)
	a.Audit, a.Ignored = decodeAudit(o.Get("audit"))
	a.Limits = decodeLimits(o.Get("limits"))
	a.Durable = decodeDurable(o.Get("durable"))
	a.Idempotency = decodeIdempotency(o.Get("idempotency"))
	a.Breaker = decodeBreaker(o.Get("breaker"))
	var ignored []IgnoredKey
	a.MCP, ignored = decodeMCP(o.Get("mcp"), p)
	a.Ignored = append(a.Ignored, ignored...)
	a.Control = decodeControl(o.Get("control"), p)
	a.Monitoring = decodeMonitoring(o.Get("monitoring"), p)
	a.checkClientRules(o.Get("permissions"))
	a.checkControlRules(o.Get("permissions"))
	a.decodeReference(o)
	o.PassOverPrefix("x-")
	o.Done()
	return a
}

// decodeSkills reads the key skills: a list of documents in files for the
// reference runtime, a mapping from names to runners in files for agentd.
func (a *AgentFile) decodeSkills(v strictyaml.Value, p paths, actions actionOptions) {
	switch v.Kind() {
	case strictyaml.Absent:
	case strictyaml.List:
		a.SkillFiles = v.Texts()
	case strictyaml.Map:
		for _, e := range v.Entries() {
			a.Skills = append(a.Skills, a.decodeSkill(e, p, actions))
		}
	default:
		v.Fault(fmt.Sprintf("expected a mapping from skill names to runners, or a list of files, but got %s", v.Kind()), "")
	}
}

// decodeSkill reads one skill and its runner.
func (a *AgentFile) decodeSkill(e strictyaml.Entry, p paths, actions actionOptions) Skill {
	s := Skill{Name: e.Name, Position: e.Value.Position()}
	if e.Name == "" {
		e.Value.Fault("a skill's name must not be empty", "")
	}
	o := e.Value.Object()
	defer o.Done()
	process, worker, service, action, tool := o.Get("process"), o.Get("worker"), o.Get("http"), o.Get("action"), o.Get("mcp")
	inline := o.Get("inline")
	s.Inline = inline.Bool()
	var chosen bool
	for _, runner := range []strictyaml.Value{tool, action, service, worker, process} {
		if chosen && runner.Present() {
			runner.Fault("a skill is a process, a worker, a web service, an action or a tool of an MCP server", "keep one of the keys")
		}
		chosen = chosen || runner.Present()
	}
	switch {
	case s.Inline && chosen:
		inline.Fault("only a Go function runs inline", "leave it out: every other skill runs on its own")
		return s
	case s.Inline:
		return s
	case tool.Present():
		s.MCP = a.decodeMCPTool(tool, e.Name, p)
		return s
	case action.Present():
		s.Action = actions.use(action, o.Get("config"))
		return s
	case service.Present():
		s.HTTP = decodeHTTPSkill(service, p)
		return s
	case worker.Present():
		s.Process, s.Worker = decodeWorker(worker, p)
	case process.Present():
		s.Process = decodeProcess(process, p)
	default:
		o.Need("process")
		return s
	}
	s.Sandbox = decodeSandbox(o.Get("sandbox"), s.Process.Dir)
	return s
}

// decodeProcess reads a process runner and fills in the defaults.
func decodeProcess(v strictyaml.Value, p paths) *Process {
	o := v.Object()
	defer o.Done()
	return decodeProgram(o, p)
}

// decodeProgram reads the keys of a runner that say what runs.
func decodeProgram(o *strictyaml.Object, p paths) *Process {
	out := &Process{
		Dir:            p.root,
		InheritEnv:     decodeEnvNames(o.Get("inheritEnv")),
		MaxOutputBytes: int(o.Get("maxOutputBytes").Int(1, 1<<30)),
		KillGrace:      o.Get("killGraceMs").Millis(maxDuration),
	}
	for i, arg := range o.Need("command").AtLeastOne("word: the program").List() {
		// The program must not be empty; an argument may be.
		if i == 0 {
			out.Command = append(out.Command, arg.Text())
		} else {
			out.Command = append(out.Command, arg.String())
		}
	}
	if dir := o.Get("dir"); dir.Present() {
		out.Dir = p.inside(dir, p.root)
	}
	out.Env = decodeEnv(o.Get("env"))
	if out.MaxOutputBytes == 0 {
		out.MaxOutputBytes = defaultMaxOutput
	}
	if out.KillGrace == 0 {
		out.KillGrace = defaultKillGrace
	}
	return out
}

// decodeEnv reads variables to set.
func decodeEnv(v strictyaml.Value) (env []string) {
	for _, e := range v.Entries() {
		if !envName(e.Name) {
			e.Value.Fault(fmt.Sprintf("%q is not the name of an environment variable", e.Name), "letters, digits and _, no digit first")
		}
		env = append(env, e.Name+"="+e.Value.String())
	}
	return env
}

// decodeEnvNames reads names of variables. A name that ends in * is a prefix.
func decodeEnvNames(v strictyaml.Value) []string {
	var names []string
	for _, item := range v.List() {
		name := item.Text()
		if bare := trimStar(name); name != "" && !envName(bare) {
			item.Fault(fmt.Sprintf("%q is not the name of an environment variable, or a prefix with * at its end", name), "")
		}
		names = append(names, name)
	}
	return names
}

// trimStar removes the star of a prefix. It keeps a star that stands alone,
// which the caller then refuses: it would pass agentd's whole environment,
// secrets included, to the skill.
func trimStar(name string) string {
	if n := len(name); n > 1 && name[n-1] == '*' {
		return name[:n-1]
	}
	return name
}

// envName matches ^[A-Za-z_][A-Za-z0-9_]*$ (POSIX.1-2017, section 8.1, and the
// lower-case names that programs use anyway).
func envName(s string) bool {
	for i := range len(s) {
		// Setting this bit makes letters small. Digits and _ are compared as they
		// are.
		c := s[i] | 0x20
		if (c < 'a' || c > 'z') && s[i] != '_' && (i == 0 || s[i] < '0' || s[i] > '9') {
			return false
		}
	}
	return s != ""
}

// decodeLimits reads the block limits on top of the defaults.
func decodeLimits(v strictyaml.Value) Limits {
	limits := DefaultLimits()
	if !v.Present() {
		return limits
	}
	o := v.Object()
	defer o.Done()
	for name, limit := range map[string]*int{
		"maxPayloadBytes": &limits.MaxPayloadBytes, "maxInFlight": &limits.MaxInFlight, "maxPending": &limits.MaxPending,
		"maxQueuedBytes": &limits.MaxQueuedBytes, "maxValidationSteps": &limits.MaxValidationSteps,
		"maxSchemaBytes": &limits.MaxSchemaBytes, "maxCompileSteps": &limits.MaxCompileSteps, "maxPatternSteps": &limits.MaxPatternSteps, "maxProofSteps": &limits.MaxProofSteps,
	} {
		// 0 stands for absent or faulty: the default stays.
		if n := o.Get(name).Int(1, math.MaxInt32); n != 0 {
			*limit = int(n)
		}
	}
	if v := o.Get("maxQueued"); v.Present() {
		limits.MaxQueued = int(v.Int(0, math.MaxInt32))
	}
	if n := o.Get("maxViolations").Int(1, MostViolations); n != 0 {
		limits.MaxViolations = int(n)
	}
	limits.RedactNames = o.Get("redactNames").Bool()
	if d := o.Get("shutdownTimeoutMs").Millis(maxDuration); d != 0 {
		limits.ShutdownTimeout = d
	}
	const month = 31 * 24 * time.Hour
	if d := o.Get("idempotencyTtlMs").Millis(month); d != 0 {
		limits.IdempotencyTTL = d
	}
	return limits
}
