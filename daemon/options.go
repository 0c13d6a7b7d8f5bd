package daemon

import (
	"github.com/agentd/agentd/action/builtin"
	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/capability/gojsonschema"
	"github.com/agentd/agentd/fleet"
)

// LoadOptions returns the options with which a program should load the fleet of
// agents that it runs. They plug in capability/gojsonschema, both as a validator
// that agent.yaml can select and for the second opinion on every schema, and they
// know the actions of package action/builtin. Without them a fleet is validated by package
// schema alone, and agents have no action but those with handlers.
func LoadOptions() fleet.LoadOptions {
	return fleet.LoadOptions{
		Engines:       []capability.Engine{gojsonschema.Engine{}},
		SecondOpinion: gojsonschema.NewSecondOpinion(),
		Actions:       builtin.Known(),
	}
}
