package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/internal/output"
	"github.com/agentd/agentd/rpc"
)

func (a *app) progressCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "progress <json | @file | ->",
		Short: "Inside a skill: tell the caller how far it is",
		Long: "Inside a skill: tell the caller of the running call how far it is, by any JSON value of at most 64 KiB.\n" +
			"The capability must say `progress: true`. A caller that does not ask hears nothing, and that is no error.",
		Example: "  agentd progress '{\"done\":3,\"of\":10}'",
		Args:    cobra.ExactArgs(1),
		RunE: a.do(func(ctx context.Context, args []string) error {
			socket, call := a.getenv("AGENTD_SOCKET"), a.getenv("AGENTD_CALL")
			if socket == "" || call == "" {
				return errors.New("AGENTD_SOCKET and AGENTD_CALL are not set: this is for skills, which agentd starts with both")
			}
			value, err := a.payload(args[0])
			if err != nil {
				return err
			}
			client := control.NewClient(socket)
			defer client.Close()
			_, err = client.Progress(ctx, value, call)
			return err
		}),
	}
}

// sayProgress prints one event of `agentd request --progress`.
func (a *app) sayProgress(e rpc.ProgressEvent) {
	if a.output == output.Table {
		fmt.Fprintf(a.stderr, "progress %d: %s\n", e.Seq, e.Value)
		return
	}
	_ = output.WriteJSON(a.stderr, output.JSONL, e) // what cannot be said is not the call's failure
}
