package fleet

import (
	"errors"

	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/fleetlint"
	"github.com/agentd/agentd/internal/output"
)

// Validate checks every file of the fleet, and prints all that it finds. The
// error is a finding when one of them is an error, or with strict a warning.
func Validate(env *cli.Env, strict bool) error {
	root, err := env.FleetRoot()
	if err != nil {
		return err
	}
	findings, err := fleetlint.Validate(root, cli.FleetOptions(fleet.LoadOptions{}))
	if err != nil {
		return err
	}
	bad := findings.Failed() || strict && findings.Count(fleet.SeverityWarning) > 0
	if env.Format == output.Table {
		err = env.WriteText(findings.WriteText)
	} else {
		if findings == nil {
			findings = fleet.Findings{} // an empty array, never null
		}
		err = env.WriteJSON(struct {
			OK       bool           `json:"ok"`
			Findings fleet.Findings `json:"findings"`
		}{!bad, findings})
	}
	switch {
	case err != nil || !bad:
		return err
	case findings.Failed():
		return cli.Finding(nil)
	}
	return cli.Finding(errors.New("--strict: warnings fail the validation"))
}

// List prints the members of the fleet.
func List(env *cli.Env) error {
	f, err := env.LoadFleet(fleet.LoadOptions{InspectOnly: true})
	if err != nil {
		return err
	}
	if env.Format == output.Table {
		return env.WriteText(f.List().WriteText)
	}
	return env.WriteJSON(f.List())
}

// Capabilities prints what the members offer.
func Capabilities(env *cli.Env) error {
	f, err := env.LoadFleet(fleet.LoadOptions{InspectOnly: true})
	if err != nil {
		return err
	}
	if env.Format == output.Table {
		return env.WriteText(f.Capabilities().WriteText)
	}
	return env.WriteJSON(f.Capabilities())
}

// Graph draws who may call whom, as mermaid, dot or json. With -o json or jsonl
// the format does not matter.
func Graph(env *cli.Env, format fleet.GraphFormat) error {
	f, err := env.LoadFleet(fleet.LoadOptions{InspectOnly: true})
	if err != nil {
		return err
	}
	g := f.Graph(fleet.GraphOptions{})
	if env.Format != output.Table {
		return env.WriteJSON(g)
	}
	switch format {
	case fleet.FormatMermaid, fleet.FormatDOT, fleet.FormatJSON:
		return g.Write(env.Stdout, format)
	}
	return cli.Usage("--format: must be mermaid, dot or json, not %q", format)
}
