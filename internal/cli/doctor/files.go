package doctor

import (
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/fleetlint"
)

// files judges the fleet's files as `agentd fleet validate` does. sound is false where they do
// not load, so that nothing else can be examined. The error is that there is no fleet.
func (x *examination) files() (sound bool, err error) {
	root, err := x.env.FleetRoot()
	if err != nil {
		return false, err
	}
	findings, err := fleetlint.Validate(root, cli.FleetOptions(fleet.LoadOptions{}))
	if err != nil {
		return false, err
	}
	sound = true
	for _, f := range findings {
		l := warn
		switch f.Severity {
		case fleet.SeverityError:
			l = fail
		case fleet.SeverityNote:
			continue // what is taken as intended
		case fleet.SeverityWarning:
		}
		if f.Code == fleet.ConfigInvalid {
			sound = false
		}
		x.add("", checkConfig, l, f.Hint, "[%s] %s", f.Code, f.Position.Fault(f.Message, ""))
	}
	if x.count(fail)+x.count(warn) == 0 {
		x.add("", checkConfig, ok, "", "the fleet's files are in order (%s)", root)
	}
	return sound, nil
}
