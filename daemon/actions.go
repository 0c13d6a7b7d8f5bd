package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/agentd/agentd/action"
	"github.com/agentd/agentd/action/builtin"
	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/secretref"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
)

// An actionSet is what runs the actions of an agent, as of one load of its files. Calls
// hold it while they use it; what it has open is closed after the last of them.
type actionSet struct {
	member   *fleet.Member
	handlers map[string]rpc.Handler   // of all skills; set before the set is used
	builtIn  map[string]*builtInSkill // by skill
	servers  []*toolServer            // of skills that are tools; set before the set is used
	services []*httpUse               // of skills that are web services; set before the set is used
	logClose func(skill string, err error)

	mu      sync.Mutex
	users   int
	retired bool
	closed  bool
}

// A builtInSkill is a built-in action with the configuration of one skill.
type builtInSkill struct {
	opened   *builtin.Opened
	registry *action.Registry // has that action alone, for calls
}

// executions count those of each skill that is a built-in action, which may be the action
// of another skill too, under another limit. They outlive reloads: nobody gets a fresh
// limit by one. The zero value is usable.
type executions struct {
	mu      sync.Mutex
	bySkill map[string]*policy.RateLimiter
}

// limiter returns what counts for a skill, or for the operator, whose name is "".
func (e *executions) limiter(skill string) *policy.RateLimiter {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.bySkill[skill]
	if l == nil {
		if e.bySkill == nil {
			e.bySkill = map[string]*policy.RateLimiter{}
		}
		l = policy.NewRateLimiter(0)
		e.bySkill[skill] = l
	}
	return l
}

// acquire keeps the set open until release. It fails once the set is retired.
func (s *actionSet) acquire() bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.retired {
		return false
	}
	s.users++
	return true
}

func (s *actionSet) release() { s.leave(func() { s.users-- }) }

// retire closes the set once nobody uses it. It may be called on nil, and twice.
func (s *actionSet) retire() {
	if s != nil {
		s.leave(func() { s.retired = true })
	}
}

// leave changes the set under its lock, and closes it where that was the end of it.
func (s *actionSet) leave(change func()) {
	s.mu.Lock()
	change()
	over := s.retired && s.users == 0 && !s.closed
	s.closed = s.closed || over
	s.mu.Unlock()
	if !over {
		return
	}
	for _, server := range s.servers {
		server.release()
	}
	for _, service := range s.services {
		service.release()
	}
	for name, b := range s.builtIn {
		if err := b.opened.Close(); err != nil {
			s.logClose(name, err)
		}
	}
}

// openActions opens the built-in actions that the skills of a member are. The error names
// the place of the configuration that cannot be put in force.
func (d *Daemon) openActions(f *fleet.Fleet, m *fleet.Member) (*actionSet, error) {
	set := &actionSet{
		member: m, builtIn: map[string]*builtInSkill{},
		logClose: func(skill string, err error) { d.log.Warn("an action did not close", "skill", skill, "error", err) },
	}
	variables, err := f.EnvFileVariables(m)
	if err != nil {
		return nil, err
	}
	env := builtin.Env{Dir: m.Dir, Secret: func(ref string) (string, error) { return secretref.Resolve(ref, lookup(variables)) }}
	for _, s := range m.Agent.Skills {
		if s.Action == nil || d.cfg.Handlers[s.Name] != nil {
			continue
		}
		b, err := d.openBuiltIn(m, s, env)
		if err != nil {
			set.retire()
			return nil, fmt.Errorf("%s:%d: %w", s.Action.Position.File, s.Action.Position.Line, err)
		}
		set.builtIn[s.Name] = b
	}
	return set, nil
}

// lookup returns a variable of agentd's own environment, else of the .env files, as skills
// get them.
func lookup(variables []fleet.Variable) func(string) string {
	return func(name string) string {
		if value, ok := os.LookupEnv(name); ok {
			return value
		}
		for _, v := range variables {
			if v.Name == name {
				return v.Value
			}
		}
		return ""
	}
}

// openBuiltIn opens the action that one skill is. Where the skill is that of an entry of
// layers.capabilities, its limits are those of the entry.
func (d *Daemon) openBuiltIn(m *fleet.Member, s fleet.Skill, env builtin.Env) (*builtInSkill, error) {
	opened, err := builtin.Open(s.Action.ID, s.Action.Config, env)
	if err != nil {
		return nil, err
	}
	a := opened.Action
	if c, ok := actionCapability(m, s.Name); ok {
		entry := action.FromCapability(c)
		a.RateLimit, a.TimeoutMS = entry.RateLimit, entry.TimeoutMS
	}
	if a.TimeoutMS == 0 { // the call has a deadline of its own, which no default may cut short
		a.TimeoutMS = rpc.MaxTimeout.Milliseconds()
	}
	b := &builtInSkill{opened: opened, registry: action.New(action.Options{
		Logger: d.log, Limiter: d.executions.limiter(s.Name), MaxResultBytes: m.Agent.Limits.MaxPayloadBytes,
	})}
	if err := b.registry.Register(a, opened.Run); err != nil {
		_ = opened.Close()
		return nil, err
	}
	return b, nil
}

// actionCapability returns the capability that an action of layers.capabilities is.
func actionCapability(m *fleet.Member, id string) (*capability.Capability, bool) {
	if m.Capabilities == nil || !slices.ContainsFunc(m.Agent.Actions, func(a fleet.Action) bool { return a.ID == id }) {
		return nil, false
	}
	return m.Capabilities.Lookup(id)
}

// useActions puts the actions of a load in force. Executions that run keep those that
// they began with.
func (d *Daemon) useActions(next *actionSet) { d.actions.Swap(next).retire() }

// actionsOf returns the actions for a call whose skill stands in the files of set, which the
// caller releases: those, or the ones in force, if the call has waited while a reload put
// others in their place.
func (d *Daemon) actionsOf(set *actionSet) (*actionSet, error) {
	if set.acquire() {
		return set, nil
	}
	set, ok := d.currentActions()
	if !ok {
		return nil, &rpc.SkillError{Message: "the agent is stopping", Retryable: true}
	}
	return set, nil
}

// currentActions returns the actions in force, which the caller releases.
func (d *Daemon) currentActions() (*actionSet, bool) {
	for {
		set := d.actions.Load()
		if set.acquire() {
			return set, true
		}
		if d.actions.Load() == set { // no reload has swapped it meanwhile: the agent stops
			return nil, false
		}
	}
}

// An actionSkill is a skill that is a built-in action. The path of the call has made the
// checks of a capability; what is left are those of the action itself, which a capability
// of another contract may not know.
type actionSkill struct {
	d    *Daemon
	set  *actionSet // of the files that the skill stands in
	name string
}

// Handle implements [rpc.Handler].
func (s actionSkill) Handle(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
	set, err := s.d.actionsOf(s.set)
	if err != nil {
		return nil, err
	}
	defer set.release()
	b := set.builtIn[s.name]
	if b == nil {
		return nil, &rpc.SkillError{Message: "the agent no longer has this action", Retryable: false}
	}
	a := b.opened.Action
	result, _ := b.registry.Execute(ctx, a.ID, inv.Payload, action.Context{
		User:      action.User{ID: string(inv.From), Tenant: inv.TenantID, Permissions: a.Permissions},
		Workspace: set.member.Dir, TraceID: inv.TraceID(),
	}) // a refusal is in the result, too
	if result.Success {
		return result.Data, nil
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx) // the callee has the words for the end of a call
	}
	return nil, skillError(result.Error)
}

// skillError is the failure of an action as that of a skill.
func skillError(e *action.Error) error {
	cause := e.Unwrap()
	switch e.Code {
	case action.Internal: // for the log: the callee gives the caller an incident's id
		if cause != nil {
			return cause
		}
		return e
	case action.BadResult:
		return &rpc.SkillError{Code: rpc.CodeBadSkillOutput, Message: e.Message, Err: cause}
	}
	return &rpc.SkillError{Message: fmt.Sprintf("%s: %s", e.Code, e.Message), Retryable: e.Retryable, Failure: string(e.Code), Err: cause}
}

// referredFiles returns the files that the references in a configuration lead to: no skill
// may read them.
func referredFiles(config []byte) (paths []string) {
	var v any
	if json.Unmarshal(config, &v) != nil {
		return nil
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			paths = append(paths, secretref.Files(v)...)
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			for _, item := range v {
				walk(item)
			}
		}
	}
	walk(v)
	return paths
}

// The first version of Node.js that runs TypeScript.
const nodeMajor, nodeMinor = 22, 6

// checkTypeScript makes sure that the Node.js of this machine runs a handler in
// TypeScript, before calls find out that it does not. Where there is no Node.js at all,
// validation says so, and the calls.
func checkTypeScript(ctx context.Context, s fleet.Skill) error {
	if !slices.Contains(s.Process.Command, fleet.StripTypes) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "node", "--version").Output()
	version := strings.TrimSpace(string(out))
	if err != nil || runsTypeScript(version) {
		return nil
	}
	return fmt.Errorf("%s:%d: the handler of %s is TypeScript, which Node.js runs from version %d.%d on, and this machine has %s",
		s.Position.File, s.Position.Line, s.Name, nodeMajor, nodeMinor, version)
}

// runsTypeScript judges a version such as v22.6.0. One that it cannot read may.
func runsTypeScript(version string) bool {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(parts) < 2 {
		return true
	}
	major, err := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	if err != nil || err2 != nil {
		return true
	}
	return major > nodeMajor || major == nodeMajor && minor >= nodeMinor
}
