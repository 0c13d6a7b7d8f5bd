package daemon

import (
	"strings"

	"github.com/agentd/agentd/fleet"
)

// namedVariables returns the variables of the .env files that a skill names, as
// KEY=value. What agentd's own environment sets goes before them: it is nearer to the
// process, and an operator changes it on purpose.
func namedVariables(p *fleet.Process, variables []fleet.Variable, own func(string) (string, bool)) []string {
	var env []string
	for _, v := range variables {
		if _, set := own(v.Name); !set && named(p.InheritEnv, v.Name) {
			env = append(env, v.Name+"="+v.Value)
		}
	}
	return env
}

// named reports whether one of the patterns of inheritEnv is a variable's name, or a
// prefix of it.
func named(patterns []string, name string) bool {
	for _, pattern := range patterns {
		prefix, isPrefix := strings.CutSuffix(pattern, "*")
		if name == pattern || isPrefix && strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// warnOfMissingFiles logs the files that the agent's environment names and that are
// not there.
func (d *Daemon) warnOfMissingFiles() {
	for _, f := range d.Member().MissingFiles() {
		d.log.Warn("a file that fleet.yaml names is missing", "file", f.Position.File, "line", f.Position.Line, "reason", f.Message)
	}
}
