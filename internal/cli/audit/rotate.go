package audit

import (
	"context"
	"fmt"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/output"
)

// RotateKey gives a log a new signing key, and prints the new verifier key.
func RotateKey(ctx context.Context, env *cli.Env, choice Choice) error {
	var source Source
	// Opening for reading first reports a missing database; opening for writing
	// would create it.
	err := withOneLog(ctx, env, choice, func(log Log) error { source = log.Source; return nil })
	if err != nil {
		return err
	}
	var key string
	err = daemon.WithAuditKeeper(ctx, source.DB, source.Socket, func(keeper control.AuditKeeper) (err error) {
		key, err = keeper.RotateKey(ctx)
		return err
	})
	if err != nil {
		return err
	}
	if env.Format != output.Table {
		return env.WriteJSON(struct {
			Agent       string `json:"agent"`
			VerifierKey string `json:"verifierKey"`
		}{source.Agent, key})
	}
	_, err = fmt.Fprintln(env.Stdout, key)
	return err
}
