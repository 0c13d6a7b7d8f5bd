package fleetlint

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/skill/sandbox"
)

// skills reports programs that cannot be started on this machine, in the way in
// which skill.Process starts them.
func (c *checker) skills() {
	for _, m := range c.fleet.Members {
		for _, s := range m.Agent.Programs() {
			c.program(m, s)
			c.sandbox(m, s)
		}
		for _, s := range m.Agent.Skills {
			c.service(m, s)
		}
	}
}

// service reports files of a skill that is a web service: without them the agent does not start.
func (c *checker) service(m *fleet.Member, s fleet.Skill) {
	if s.HTTP == nil {
		return
	}
	for _, path := range []string{s.HTTP.TLS.CA, s.HTTP.TLS.Cert, s.HTTP.TLS.Key} {
		if _, err := os.Stat(path); path != "" && err != nil {
			c.warn(SkillProgram, s.Position, "the agent does not start without it", "the skill %q of agent %q has its service proven by %s, which is not there", s.Name, m.ID, c.show(path))
		}
	}
}

func (c *checker) program(m *fleet.Member, s fleet.Skill) {
	const machine = "on this machine"
	p := s.Process
	if info, err := os.Stat(p.Dir); err != nil || !info.IsDir() {
		c.warn(SkillProgram, s.Position, "", "the skill %q of agent %q runs in the folder %s, which is not there", s.Name, m.ID, c.show(p.Dir))
		return
	}
	name := p.Command[0]
	if strings.ContainsRune(name, filepath.Separator) {
		// The system resolves such a path in the folder that the process starts in.
		if path := p.Path(name); !executable(path) {
			c.warn(SkillProgram, s.Position, "", "the skill %q of agent %q runs %s, which is no program %s", s.Name, m.ID, c.show(path), machine)
			return
		}
	} else if _, err := exec.LookPath(name); err != nil && !errors.Is(err, exec.ErrDot) {
		c.warn(SkillProgram, s.Position, "", "the skill %q of agent %q runs %q, which is no program in $PATH %s", s.Name, m.ID, name, machine)
		return
	}
	if script := p.Script(); script != "" {
		if _, err := os.Stat(p.Path(script)); errors.Is(err, fs.ErrNotExist) {
			c.warn(SkillProgram, s.Position, "relative paths begin at dir, which is the fleet's root unless the skill says otherwise",
				"the skill %q of agent %q runs the script %s, which is not there", s.Name, m.ID, c.show(p.Path(script)))
		}
	}
}

// sandbox reports skills that nothing holds, and grants of what is not there: calls would
// fail with them.
func (c *checker) sandbox(m *fleet.Member, s fleet.Skill) {
	granted := s.Sandbox
	if granted == nil {
		return
	}
	if granted.Off {
		c.warn(SandboxOff, granted.Position, "grant what it needs with read, write and connect",
			"the skill %q of agent %q has no sandbox: it may read and change whatever the user of agentd may, the keys of agents too", s.Name, m.ID)
	}
	if granted.User != nil {
		// Whose agentd it will be is not known here: that the users differ is checked at its start.
		fault := (*sandbox.UserError)(nil)
		if _, err := sandbox.FindUser(granted.User.Name); errors.As(err, &fault) && fault.Err != nil {
			c.warn(SandboxUser, granted.User.Position, fault.Remedy,
				"the skill %q of agent %q is to run as another user, and %s: the agent does not start here", s.Name, m.ID, fault.Cause)
		}
	}
	for _, path := range slices.Concat(granted.Read, granted.Write) {
		if _, err := os.Stat(path.Path); err != nil {
			c.warn(SandboxPath, path.Position, "", "the sandbox of the skill %q of agent %q grants %s, which is not there: its calls fail", s.Name, m.ID, c.show(path.Path))
		}
	}
}

func executable(path string) bool {
	const anyExecute = 0o111
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&anyExecute != 0
}
