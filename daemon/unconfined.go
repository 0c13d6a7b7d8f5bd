package daemon

import (
	"fmt"
	"strings"

	"github.com/agentd/agentd/daemon/health"
	"github.com/agentd/agentd/fleet"
)

// unconfined lists what the agent's skills are not held to: all that is missing on this
// system, and the skills whose sandbox is off.
func (d *Daemon) unconfined() (all []health.Condition) {
	skills := d.processSkills(d.Member())
	if len(skills) == 0 {
		return nil
	}
	condition := health.Condition{
		Kind: health.Sandbox, Code: "not-separated", Advisory: true, Since: d.started,
		Effect: "skills are not separated from the operator",
		Remedy: "run agents that do not trust each other, or their skills, as users of their own",
	}
	c := d.confinement.Load()
	switch {
	case !d.cfg.Confines:
		condition.Cause = "the program that runs the agent does not confine skills: agentd does"
	case c == nil:
		condition.Cause = "this system has no means to confine programs that agentd knows"
	default:
		condition.Cause = "they cannot be held to " + strings.Join(c.layers.Missing(), ", ")
	}
	if c == nil || len(c.layers.Missing()) > 0 {
		all = append(all, condition)
	}
	for _, s := range skills {
		if c != nil && s.Sandbox != nil && s.Sandbox.Off {
			all = append(all, health.Condition{
				Kind: health.Sandbox, Subject: s.Name, Code: "off", Advisory: true, Since: d.started,
				Effect: fmt.Sprintf("the skill %s may do whatever the user of agentd may", s.Name),
				Cause:  "agent.yaml says `sandbox: off`",
				Remedy: "grant what it needs with sandbox.read, write and connect",
			})
		}
	}
	return all
}

// processSkills are the skills of a member that are programs.
func (d *Daemon) processSkills(m *fleet.Member) (skills []fleet.Skill) {
	for _, s := range m.Agent.Programs() { // those of MCP servers, too
		if d.cfg.Handlers[s.Name] == nil { // a Go function replaces the process of the same name
			skills = append(skills, s)
		}
	}
	return skills
}

// warnOfUnconfined logs what skills are not held to.
func (d *Daemon) warnOfUnconfined() {
	for _, c := range d.unconfined() {
		d.log.Warn(c.Effect, "condition", string(c.Kind), "code", c.Code, "cause", c.Cause, "remedy", c.Remedy)
	}
}
