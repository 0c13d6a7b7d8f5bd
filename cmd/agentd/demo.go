package main

import (
	"context"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/cli/demo"
	"github.com/agentd/agentd/internal/output"
)

func (a *app) demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Run the sample fleet in this process and show four calls and their audit records",
		Args:  arguments(0),
		RunE:  a.do(func(ctx context.Context, _ []string) error { return demo.Run(ctx, &a.Env) }),
	}
}

// versionCommand returns `agentd version`. It is a command and not a flag, so that
// -o json applies to it.
func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: arguments(0),
		RunE: a.do(func(context.Context, []string) error {
			v := map[string]string{"version": cli.Version(), "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH}
			if a.Format != output.Table {
				return a.WriteJSON(v)
			}
			_, err := fmt.Fprintf(a.Stdout, "agentd %s (%s, %s)\n", v["version"], v["go"], v["platform"])
			return err
		}),
	}
}
