package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/internal/output"
	"github.com/agentd/agentd/rpc"
)

func (a *app) awaitCommand() *cobra.Command {
	var flags requestFlags
	cmd := &cobra.Command{
		Use:   "await <correlation-id>",
		Short: "Wait for the answer to an asynchronous call, and print the result as JSON",
		Long: "Wait for the answer to a call that `agentd request --mode async` has made, and print the result\n" +
			"as that command does. The answer is kept for a day, and may be fetched more than once, by any\n" +
			"process of the calling agent.\n\n" +
			"The exit status is 0 when the status is ok, and 4 when the call ended otherwise, or has not yet.",
		Example: "  id=$(agentd request --mode async indexer reindex @job.json -o json | jq -r .correlationId)\n" +
			"  agentd await $id --timeout 10m",
		Args: cobra.ExactArgs(1),
		RunE: a.do(func(ctx context.Context, args []string) error {
			if flags.timeout < time.Millisecond || flags.timeout > time.Hour {
				return usage("--timeout: must be from 1ms to 1h")
			}
			socket, err := a.findSocket(ctx, flags)
			if err != nil {
				return err
			}
			client := control.NewClient(socket)
			defer client.Close()
			result, err := client.Await(ctx, args[0], flags.timeout)
			if err != nil {
				return err
			}
			return a.writeResult(result)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&flags.as, "as", "", "id of the agent that has called (default: the only one that runs)")
	f.StringVar(&flags.socket, "socket", "", "control socket of the agent that has called (default: $AGENTD_SOCKET)")
	f.DurationVar(&flags.timeout, "timeout", 30*time.Second, "how long to wait, 1ms to 1h")
	return cmd
}

// writeResult prints a result; the exit status tells how the call ended.
func (a *app) writeResult(result *rpc.Result) error {
	if err := output.WriteJSON(a.stdout, a.output, result); err != nil {
		return err
	}
	if result.Status != rpc.StatusOK {
		return &exitError{code: exitCall}
	}
	return nil
}
