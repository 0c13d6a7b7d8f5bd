package capabilities

import (
	"encoding/json"
	"fmt"

	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/output"
	"github.com/agentd/agentd/schema"
)

// Validate checks a payload, given like the payload of a call, against the
// schema of one side of a capability; "" is the payload of a call without
// arguments. The error is a finding when it is invalid.
func Validate(env *cli.Env, choice Choice, name, side, payload string) error {
	_, c, err := choice.find(env, name)
	if err != nil {
		return err
	}
	contract, err := contract(c, side)
	if err != nil {
		return err
	}
	var data []byte
	if payload != "" {
		if data, err = env.Payload(payload); err != nil {
			return err
		}
	}
	check := contract.Check
	if side == "request" {
		check = contract.CheckArguments // as a call does
	}
	report := check(data)
	if err := writeReport(env, report); err != nil {
		return err
	}
	if report.Verdict != schema.Valid {
		return cli.Finding(nil)
	}
	return nil
}

// writeReport prints the verdict and the violations. A payload that is not JSON has
// no violations, so its syntax error takes their place.
func writeReport(env *cli.Env, report schema.Report) error {
	violations := report.Violations
	if report.Verdict == schema.Malformed {
		violations = []schema.Violation{{Message: report.Syntax.Error()}}
	}
	if env.Format != output.Table {
		if violations == nil {
			violations = []schema.Violation{} // an empty array, never null
		}
		return env.WriteJSON(struct {
			Verdict    string             `json:"verdict"`
			Violations []schema.Violation `json:"violations"`
			Truncated  bool               `json:"truncated"`
			Omitted    int                `json:"violationsOmitted,omitempty"`
		}{report.Verdict.String(), violations, report.Truncated, report.Omitted})
	}
	colors := env.Colors()
	if report.Verdict == schema.Valid {
		fmt.Fprintf(env.Stdout, "%s valid\n", colors.Good("✓"))
		return nil
	}
	fmt.Fprintf(env.Stdout, "%s %s\n", colors.Bad("✗"), report.Verdict)
	for _, v := range violations {
		// Quoted, so that the root, whose pointer is empty, is visible and control
		// characters in member names are escaped.
		path, _ := json.Marshal(v.Path) // a string always marshals
		fmt.Fprintf(env.Stdout, "  %s %s\n", path, output.Printable(v.Message))
	}
	if report.Truncated {
		fmt.Fprintf(env.Stdout, "  … and %s\n", omitted(report.Omitted))
	}
	return nil
}

// omitted says how many violations are not listed. Counting ends at a bound.
func omitted(n int) string {
	if n >= schema.MaxOmitted {
		return fmt.Sprintf("at least %d more", n)
	}
	return fmt.Sprintf("%d more", n)
}
