package permissions

import (
	"fmt"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/output"
	"github.com/agentd/agentd/policy"
)

// Explain prints whether from may call a capability of to, and which rule
// decides at each end. from and to are addresses, or ids alone. by says who asks from for the
// call. The error is a finding when the call would be denied.
func Explain(env *cli.Env, from string, by Client, to, capability string) error {
	origin, err := by.origin()
	if err != nil {
		return err
	}
	caller, err := parseAddress("<from>", from)
	if err != nil {
		return err
	}
	callee, err := parseAddress("<to>", to)
	if err != nil {
		return err
	}
	f, err := env.LoadFleet(fleet.LoadOptions{InspectOnly: true})
	if err != nil {
		return err
	}
	e, err := policy.ExplainFor(f, caller, origin, callee, capability)
	if err != nil {
		return err
	}
	if err := write(env, e); err != nil {
		return err
	}
	if !e.Allowed {
		// The explanation is already on standard output; the finding carries only
		// the exit status.
		return cli.Finding(nil)
	}
	return nil
}

// A Client asks an agent for a call: by MCP, or by its control API. At most one of the names is
// set; without one the agent calls by itself.
type Client struct{ MCP, Control string }

// origin is what rules call the client.
func (c Client) origin() (string, error) {
	for flag, name := range map[string]string{"--mcp-client": c.MCP, "--client": c.Control} {
		if name != "" && !fleet.IsMCPClient(name) {
			return "", cli.Usage("%s: %q can name no client: 1 to 32 lower-case letters, digits and hyphens", flag, name)
		}
	}
	switch {
	case c.MCP != "" && c.Control != "":
		return "", cli.Usage("--mcp-client and --client: a call is one client's")
	case c.MCP != "":
		return policy.OriginMCP(c.MCP), nil
	case c.Control != "":
		return policy.OriginClient(c.Control), nil
	}
	return "", nil
}

// parseAddress reads an agent's address or id. Errors name the argument.
func parseAddress(argument, text string) (envelope.Address, error) {
	address, err := envelope.ParseAddress(string(envelope.AddressFor(text)))
	if err != nil {
		return "", cli.Usage("%s: %s", argument, err)
	}
	return address, nil
}

// write prints the verdict, the decision at each end, and the notes of the
// explanation. Capability comes from the command line and may hold control
// characters.
func write(env *cli.Env, e *policy.Explanation) error {
	if env.Format != output.Table {
		return env.WriteJSON(e)
	}
	colors := env.Colors()
	verdict := colors.Good("✓ allowed")
	if !e.Allowed {
		verdict = colors.Bad("✗ denied")
	}
	from := string(e.From)
	if e.Client != nil {
		from = e.Origin() + " at " + from
	}
	fmt.Fprintf(env.Stdout, "%s  %s → %s/%s\n", verdict, from, e.To, output.Printable(e.Capability))
	rows := [][]string{decisionRow("caller", e.Caller)}
	if e.Client != nil {
		rows = append(rows, decisionRow("client", *e.Client))
	}
	if e.Callee != nil { // the fleet knows the callee's rules
		rows = append(rows, decisionRow("callee", *e.Callee))
	}
	if err := env.WriteTable([]string{"END", "ALLOWED", "RULE", "AT", "REASON"}, rows); err != nil {
		return err
	}
	for _, note := range e.Notes {
		fmt.Fprintln(env.Stdout, "!", note)
	}
	return nil
}

// decisionRow has dashes where no rule decided, only a default.
func decisionRow(end string, d policy.Decision) []string {
	allowed, rule, at := "no", "-", "-"
	if d.Allowed {
		allowed = "yes"
	}
	if d.Rule != (policy.Rule{}) {
		rule = fmt.Sprintf("%s %s", d.Rule.Effect, d.Rule.Pattern)
		at = fmt.Sprintf("%s:%d", d.Rule.Position.File, d.Rule.Position.Line)
	}
	return []string{end, allowed, rule, at, d.Reason.String()}
}
