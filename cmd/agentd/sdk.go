package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/internal/cli/sdk"
)

// sdkCommand returns `agentd sdk`.
func (a *app) sdkCommand() *cobra.Command {
	return a.group(&cobra.Command{
		Use:   "sdk",
		Short: "Write the kits for skills and clients in other languages",
	}, a.sdkPythonCommand(), a.sdkTypeScriptCommand())
}

// sdkPythonCommand returns `agentd sdk python`.
func (a *app) sdkPythonCommand() *cobra.Command {
	var out, format string
	cmd := &cobra.Command{
		Use:   "python [flags]",
		Short: "Write the kit for Python",
		Long: "Write the distribution agentd-sdk, which this program carries: as a wheel, as a source distribution, or as the\n" +
			"folder of the package agentd. It needs Python 3.10 and nothing else. docs/kits.md describes it.",
		Example: "  agentd sdk python --out dist && pip install --no-index dist/agentd_sdk-*.whl",
		Args:    cobra.NoArgs,
		RunE: a.do(func(context.Context, []string) error {
			return sdk.Python(&a.Env, out, sdk.Format(format))
		}),
	}
	f := cmd.Flags()
	f.StringVar(&out, "out", ".", "the folder to write to")
	f.StringVar(&format, "format", string(sdk.Wheel), "wheel, sdist or dir")
	return cmd
}

// sdkTypeScriptCommand returns `agentd sdk typescript`.
func (a *app) sdkTypeScriptCommand() *cobra.Command {
	var out, format string
	cmd := &cobra.Command{
		Use:   "typescript [flags]",
		Short: "Write the kit for TypeScript",
		Long: "Write the package @agentd/sdk, which this program carries: as a tarball for npm, or as the folder that stands in\n" +
			"node_modules. It needs Node.js 20, Deno or Bun and nothing else. docs/kits.md describes it.",
		Example: "  agentd sdk typescript --out dist && npm install --offline dist/agentd-sdk-*.tgz",
		Args:    cobra.NoArgs,
		RunE: a.do(func(context.Context, []string) error {
			return sdk.TypeScript(&a.Env, out, sdk.Format(format))
		}),
	}
	f := cmd.Flags()
	f.StringVar(&out, "out", ".", "the folder to write to")
	f.StringVar(&format, "format", string(sdk.Tarball), "tarball or dir")
	return cmd
}
