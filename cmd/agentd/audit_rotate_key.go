package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/internal/output"
)

func (a *app) auditRotateKeyCommand() *cobra.Command {
	var choice logChoice
	cmd := &cobra.Command{
		Use:   "rotate-key",
		Short: "Change the key that signs a log, and print the new public key",
		Long: "Make a new signing key for a log, and print the new verifier key. The change is a record,\n" +
			"signed with the old key: whoever trusts the old key can go on to the new one by the log\n" +
			"itself. Old public keys stay in the .pub file; the old private key is removed.",
		Example: "  agentd audit rotate-key --agent reviewer",
		Args:    cobra.NoArgs,
		RunE: a.do(func(ctx context.Context, _ []string) error {
			var source logSource
			// Opened for reading first, which never creates a log.
			err := a.openLog(ctx, choice, func(log namedLog) error { source = log.logSource; return nil })
			if err != nil {
				return err
			}
			var key string
			err = daemon.KeepAudit(ctx, source.path, source.socket, func(keeper control.AuditKeeper) (err error) {
				key, err = keeper.RotateKey(ctx)
				return err
			})
			if err != nil {
				return err
			}
			if a.output != output.Table {
				return output.WriteJSON(a.stdout, a.output, struct {
					Agent       string `json:"agent"`
					VerifierKey string `json:"verifierKey"`
				}{source.agent, key})
			}
			_, err = fmt.Fprintln(a.stdout, key)
			return err
		}),
	}
	choice.register(cmd)
	return cmd
}
