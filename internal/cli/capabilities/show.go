package capabilities

import (
	"fmt"
	"strings"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/output"
	"github.com/agentd/agentd/schema/contain"
)

// Show prints one capability: what its callers see of it, and what else its file
// declares.
func Show(env *cli.Env, choice Choice, name string) error {
	doc, c, err := choice.find(env, name)
	if err != nil {
		return err
	}
	if env.Format == output.Table {
		return writeCapability(env, doc, c)
	}
	return env.WriteJSON(struct {
		Agent string `json:"agent"`
		Name  string `json:"name"`
		capability.ToolSchema
		declared
	}{string(doc.Agent), c.Name, doc.Published().ToolSchemas[c.Name], declaredOf(doc, c)})
}

// writeCapability prints a table of the fields that are set, and below it the two
// schemas as they stand in the file.
func writeCapability(env *cli.Env, doc *capability.Document, c *capability.Capability) error {
	colors := env.Colors()
	fmt.Fprintf(env.Stdout, "%s  %s\n", colors.Bold(c.Name), output.Printable(c.Description))
	rows := [][]string{
		{"agent", string(doc.Agent)}, {"file", doc.Path}, {"skill", c.Skill}, {"digest", c.Digest},
		{"idempotent", fmt.Sprint(c.Idempotent)},
	}
	if c.Timeout > 0 {
		rows = append(rows, []string{"timeoutMs", fmt.Sprint(c.Timeout.Milliseconds())})
	}
	if c.SchemaProfile != capability.ProfileSubset {
		rows = append(rows, []string{"schemaProfile", c.SchemaProfile.String()})
	}
	if c.Result != capability.ResultJSON {
		rows = append(rows, []string{"result", c.Result.String()})
	}
	for i, kind := range c.Asks {
		label := ""
		if i == 0 {
			label = "asks the client"
		}
		rows = append(rows, []string{label, string(kind)})
	}
	if c.Progress {
		rows = append(rows, []string{"progress", "true"})
	}
	own := declaredOf(doc, c)
	for _, f := range append([][]string{
		{"since", c.Since}, {"id", c.ID}, {"version", c.Version}, {"category", c.Category}, {"permissions", strings.Join(c.Permissions, ", ")},
	}, own.rows()...) {
		if f[1] != "" {
			rows = append(rows, f)
		}
	}
	if err := env.WriteTable([]string{"FIELD", "VALUE"}, rows); err != nil {
		return err
	}
	for _, side := range []struct {
		name     string
		contract *capability.Contract
	}{{"inputSchema", c.Input}, {"outputSchema", c.Output}} {
		fmt.Fprintf(env.Stdout, "\n%s\n", colors.Bold(side.name))
		if side.contract == nil {
			fmt.Fprintln(env.Stdout, "none: any JSON is accepted")
			continue
		}
		if err := output.WriteJSONBytes(env.Stdout, output.JSON, side.contract.Source); err != nil {
			return err
		}
	}
	return nil
}

// Sample prints a payload that the schema of one side of a capability accepts.
func Sample(env *cli.Env, choice Choice, name, side string) error {
	_, c, err := choice.find(env, name)
	if err != nil {
		return err
	}
	contract, err := contract(c, side)
	if err != nil {
		return err
	}
	if contract == nil {
		return fmt.Errorf("capability %q has no schema for the %s: any JSON is accepted", c.Name, side)
	}
	value, err := contain.Sample(contract.Schema)
	if err != nil {
		return fmt.Errorf("capability %q, %s: %w", c.Name, side, err)
	}
	return output.WriteJSONBytes(env.Stdout, env.Format, value)
}
