package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/capability/compat"
	"github.com/agentd/agentd/capability/lint"
	"github.com/agentd/agentd/internal/cli/capabilities"
)

// capabilitiesCommand returns `agentd capabilities`. Its commands read files only, but for
// import-mcp.
func (a *app) capabilitiesCommand() *cobra.Command {
	return a.group(&cobra.Command{
		Use: "capabilities", Aliases: []string{"caps"}, Short: "Look at capability files and their schemas",
	},
		a.capabilitiesShowCommand(), a.capabilitiesValidateCommand(), a.capabilitiesSampleCommand(),
		a.capabilitiesLintCommand(), a.capabilitiesGenCommand(), a.capabilitiesDiffCommand(),
		a.capabilitiesLockCommand(), a.capabilitiesCheckCommand(), a.capabilitiesImportMCPCommand(),
	)
}

// contractFlags adds the flags that select a capabilities file.
func contractFlags(cmd *cobra.Command, c *capabilities.Choice) {
	cmd.Flags().StringVar(&c.Peer, "peer", "", "the capabilities of this member of the fleet")
	cmd.Flags().StringVar(&c.File, "capabilities", "", "the capabilities file at this path")
	cmd.MarkFlagsMutuallyExclusive("peer", "capabilities")
}

func (a *app) capabilitiesShowCommand() *cobra.Command {
	var choice capabilities.Choice
	cmd := &cobra.Command{
		Use:   "show <capability>",
		Short: "Show what a capability declares, and what its callers see of it",
		Example: "  agentd capabilities show review-pr\n" +
			"  agentd capabilities show review-pr --capabilities ./capabilities.yaml -o json",
		Args: arguments(1, "capability"),
		RunE: a.do(func(_ context.Context, args []string) error {
			return capabilities.Show(&a.Env, choice, args[0])
		}),
	}
	contractFlags(cmd, &choice)
	return cmd
}

// capabilitiesValidateCommand returns `agentd capabilities validate`, which checks
// a payload by the same code as a call does.
func (a *app) capabilitiesValidateCommand() *cobra.Command {
	var choice capabilities.Choice
	var payload, side string
	cmd := &cobra.Command{
		Use:   "validate <capability> --payload <json | @file | ->",
		Short: "Check a payload against a capability's schema; exit status 3 when it is invalid",
		Example: "  agentd capabilities validate review-pr --payload @pr.json\n" +
			"  agentd capabilities validate review-pr --side response --payload '{\"verdict\":\"approve\"}'",
		Args: arguments(1, "capability"),
		RunE: a.do(func(_ context.Context, args []string) error {
			return capabilities.Validate(&a.Env, choice, args[0], side, payload)
		}),
	}
	contractFlags(cmd, &choice)
	cmd.Flags().StringVar(&payload, "payload", "", "the payload, @file, or - for standard input (required)")
	cmd.Flags().StringVar(&side, "side", "request", "request or response")
	required(cmd, "payload")
	return cmd
}

func (a *app) capabilitiesSampleCommand() *cobra.Command {
	var choice capabilities.Choice
	var side string
	cmd := &cobra.Command{
		Use:     "sample <capability>",
		Short:   "Print a payload that the capability's schema accepts",
		Example: "  agentd capabilities sample review-pr | agentd request pr-reviewer review-pr -",
		Args:    arguments(1, "capability"),
		RunE: a.do(func(_ context.Context, args []string) error {
			return capabilities.Sample(&a.Env, choice, args[0], side)
		}),
	}
	contractFlags(cmd, &choice)
	cmd.Flags().StringVar(&side, "side", "request", "request or response")
	return cmd
}

func (a *app) capabilitiesLintCommand() *cobra.Command {
	var profile string
	var opts lint.Options
	cmd := &cobra.Command{
		Use:   "lint <file>",
		Short: "Find what a capabilities file allows and its readers do not; exit status 3 on errors",
		Long: "Find what a capabilities file allows and its readers do not.\n\n" +
			"A schema that agentd enforces to the letter may still be refused by a model provider that\n" +
			"is given the capability as a tool. The profiles are draft-07-subset (agentd itself),\n" +
			"openai-strict, anthropic and gemini.",
		Example: "  agentd capabilities lint agents/pr-reviewer/capabilities.yaml --profile openai-strict",
		Args:    arguments(1, "file"),
		RunE: a.do(func(_ context.Context, args []string) error {
			return capabilities.Lint(&a.Env, args[0], profile, opts)
		}),
	}
	cmd.Flags().StringVar(&profile, "profile", string(lint.Draft07Subset), "draft-07-subset, openai-strict, anthropic or gemini")
	cmd.Flags().BoolVar(&opts.Outputs, "outputs", false, "apply a provider's rules to output schemas, too")
	return cmd
}

// capabilitiesGenCommand returns `agentd capabilities gen`, meant for go:generate
// and, with --check, for CI.
func (a *app) capabilitiesGenCommand() *cobra.Command {
	var r capabilities.GenRequest
	cmd := &cobra.Command{
		Use: "gen", Short: "Write a typed client for a peer's capabilities", Args: arguments(0),
		Long: "Write a typed client for the capabilities of one agent. The same capabilities give the\n" +
			"same bytes everywhere, so that the file can be kept under version control; --check writes\n" +
			"nothing and exits with 3 when the file differs from what would be written.\n\n" +
			"Clients stand on the kit of their language (agentd sdk); --standalone ones need none.",
		Example: "  agentd capabilities gen --peer pr-reviewer\n" +
			"  agentd capabilities gen --capabilities vendor/reviewer.yaml --lang go --out internal/peers --check",
		RunE: a.do(func(context.Context, []string) error { return capabilities.Gen(&a.Env, r) }),
	}
	names := capabilities.Languages()
	f := cmd.Flags()
	f.StringVar(&r.Peer, "peer", "", "id of a member of the fleet")
	f.StringVar(&r.File, "capabilities", "", "capabilities file of any agent")
	f.StringVar(&r.Lang, "lang", names[0], strings.Join(names, ", "))
	f.StringVar(&r.Out, "out", "generated", "folder to write below")
	f.BoolVar(&r.Standalone, "standalone", false, "in Python and TypeScript, bring along what the client runs on")
	f.BoolVar(&r.Server, "server", false, "write a skill to be filled in as well, unless there is one")
	f.BoolVar(&r.Check, "check", false, "write nothing; exit with 3 when the file differs")
	f.BoolVar(&r.JSON, "json", false, "the same as -o json")
	return cmd
}

// diffFormatUsage describes the -o of diff and check, which replaces the global
// flag: reports of contract changes are also read by code review and CI.
const diffFormatUsage = "text, json, sarif or junit"

func (a *app) capabilitiesDiffCommand() *cobra.Command {
	var r capabilities.DiffRequest
	cmd := &cobra.Command{
		Use:   "diff <old> <new> | --against git:<ref> <file>",
		Short: "Judge a change for callers built against the old file; exit status 3 when it breaks them",
		Long: "Judge a change of a capabilities file for callers that were built against the old one: what they\n" +
			"send must still be accepted, and what they get must still be what they expect. Every\n" +
			"breaking difference is shown with a value that breaks, wherever there is one.",
		Example: "  agentd capabilities diff old.yaml new.yaml\n" +
			"  agentd capabilities diff --against git:main agents/pr-reviewer/capabilities.yaml -o sarif",
		Args: arguments(1, "old", "new"),
		RunE: a.do(func(ctx context.Context, args []string) error {
			r.Files = args
			return capabilities.Diff(ctx, &a.Env, r)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&r.Against, "against", "", "take the old file from git: git:<ref>")
	f.StringVar(&r.Direction, "direction", string(compat.Both), "request, response or both")
	f.BoolVar(&r.PinWords, "pin-descriptions", false, pinWordsUsage)
	f.StringVarP(&r.Format, "output", "o", "text", diffFormatUsage)
	return cmd
}

const pinWordsUsage = "also exit with 3 when words changed that models read: descriptions and titles"

const lockFileUsage = "the lock file (default: " + capabilities.LockName + " beside fleet.yaml)"

func (a *app) capabilitiesLockCommand() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use: "lock", Short: "Record the full contracts of every peer, for `capabilities check`", Args: arguments(0),
		RunE: a.do(func(context.Context, []string) error { return capabilities.Lock(&a.Env, path) }),
	}
	cmd.Flags().StringVar(&path, "lock", "", lockFileUsage)
	return cmd
}

func (a *app) capabilitiesCheckCommand() *cobra.Command {
	var path, format string
	var pinWords bool
	cmd := &cobra.Command{
		Use: "check", Short: "Explain what has changed since `capabilities lock`; exit status 3 when it breaks callers", Args: arguments(0),
		RunE: a.do(func(context.Context, []string) error { return capabilities.Check(&a.Env, path, format, pinWords) }),
	}
	cmd.Flags().StringVar(&path, "lock", "", lockFileUsage)
	cmd.Flags().BoolVar(&pinWords, "pin-descriptions", false, pinWordsUsage)
	cmd.Flags().StringVarP(&format, "output", "o", "text", diffFormatUsage)
	return cmd
}

func (a *app) capabilitiesImportMCPCommand() *cobra.Command {
	var r capabilities.ImportRequest
	var command string
	cmd := &cobra.Command{
		Use:   "import-mcp --agent <id> (--command <command> | --url <url> | --server <name>) [-- <program> <argument>…]",
		Short: "Make the tools of an MCP server capabilities of an agent; exit status 3 when some differ from what was imported",
		Long: "Make the tools of an MCP server capabilities of an agent: their contracts are written into its\n" +
			"capabilities.yaml as the server has them, the server and the skills into its agent.yaml, and the\n" +
			"lock is made. What the files have keeps its place and its comments. A tool that was imported\n" +
			"before and differs now is shown with its differences, and written with --update only.\n\n" +
			"The command is run as the agent runs it: confined as a skill is, with PATH, LANG, a home of its\n" +
			"own and the variables of --env. --read and --write say what it may besides.",
		Example: "  agentd capabilities import-mcp --agent desk --server memory --read /srv/mcp -- node /srv/mcp/memory/dist/index.js\n" +
			"  agentd capabilities import-mcp --agent desk --url https://mcp.example.com/mcp --tool create_issue\n" +
			"  agentd capabilities import-mcp --agent desk --server memory --update",
		Args: cobra.ArbitraryArgs,
		RunE: a.do(func(ctx context.Context, args []string) error {
			r.Command = append(strings.Fields(command), args...)
			return capabilities.ImportMCP(ctx, &a.Env, r)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&r.Agent, "agent", "", "id of the member that is to offer the tools (required)")
	f.StringVar(&r.Server, "server", "", "name of the server under mcpServers of agent.yaml")
	f.StringVar(&command, "command", "", "the server program and its arguments, separated by spaces; or write them after --")
	f.StringVar(&r.URL, "url", "", "the URL of a server that others run")
	f.StringArrayVar(&r.Env, "env", nil, "a variable of the program, NAME=value; a value env:NAME or file:/path is a reference")
	f.StringArrayVar(&r.Read, "read", nil, "a file or folder that the program may read, such as where it was installed")
	f.StringArrayVar(&r.Write, "write", nil, "a file or folder that the program may write")
	f.StringArrayVar(&r.Tools, "tool", nil, "import this tool; all of them if none is named")
	f.StringVar(&r.Prefix, "prefix", "", "put this before the names of new capabilities")
	f.BoolVar(&r.Update, "update", false, "write tools that differ from what was imported, too")
	f.BoolVar(&r.DryRun, "dry-run", false, "print the files instead of writing them")
	f.DurationVar(&r.Timeout, "timeout", time.Minute, "how long the server may take")
	cmd.MarkFlagsMutuallyExclusive("command", "url")
	required(cmd, "agent")
	return cmd
}
