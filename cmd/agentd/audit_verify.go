package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/internal/output"
)

func (a *app) auditVerifyCommand() *cobra.Command {
	var choice logChoice
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Recompute every hash of the logs; exit status 3 when a chain is broken",
		Args:  cobra.NoArgs,
		RunE: a.do(func(ctx context.Context, _ []string) error {
			return a.openLogs(ctx, choice, func(logs []namedLog) error { return a.verifyLogs(ctx, logs) })
		}),
	}
	choice.register(cmd)
	return cmd
}

// A verified log is one line of the answer.
type verifiedLog struct {
	Agent string `json:"agent"`
	OK    bool   `json:"ok"`
	*auditchain.Report
}

func (a *app) verifyLogs(ctx context.Context, logs []namedLog) error {
	var all []verifiedLog
	broken := false
	for _, l := range logs {
		report, err := l.Verify(ctx, auditchain.VerifyOptions{})
		if err != nil {
			return err
		}
		all = append(all, verifiedLog{Agent: l.agent, OK: report.OK(), Report: report})
		broken = broken || !report.OK()
	}
	if err := a.writeVerified(all); err != nil {
		return err
	}
	if broken {
		return &exitError{code: exitFinding}
	}
	return nil
}

func (a *app) writeVerified(all []verifiedLog) error {
	switch a.output {
	case output.JSON:
		return output.WriteJSON(a.stdout, a.output, all)
	case output.JSONL:
		for _, v := range all {
			if err := output.WriteJSON(a.stdout, a.output, v); err != nil {
				return err
			}
		}
		return nil
	}
	colors := output.ColorsFor(a.stdout, a.getenv)
	for _, v := range all {
		if v.OK {
			fmt.Fprintf(a.stdout, "%s %s: chain intact — %d records verified, %d of them under a signed checkpoint\n",
				colors.Good("✓"), v.Agent, v.Records, v.Signed)
			continue
		}
		fmt.Fprintf(a.stdout, "%s %s: chain verification failed: %d faults\n", colors.Bad("✗"), v.Agent, v.FaultCount)
		for _, f := range v.Faults {
			fmt.Fprintf(a.stdout, "    %s\n", output.Printable(f.String()))
		}
	}
	return nil
}
