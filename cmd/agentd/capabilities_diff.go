package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/capability/compat"
	"github.com/agentd/agentd/internal/output"
)

func (a *app) capabilitiesDiffCommand() *cobra.Command {
	var against, direction, format string
	cmd := &cobra.Command{
		Use:   "diff <old> <new> | --against git:<ref> <file>",
		Short: "Judge a change for callers built against the old file; exit status 3 when it breaks them",
		Long: "Judge a change of a capabilities file for callers that were built against the old one: what they\n" +
			"send must still be accepted, and what they get must still be what they expect. Every\n" +
			"breaking difference is shown with a value that breaks, wherever there is one.",
		Example: "  agentd capabilities diff old.yaml new.yaml\n" +
			"  agentd capabilities diff --against git:main agents/pr-reviewer/capabilities.yaml -o sarif",
		Args: cobra.RangeArgs(1, 2),
		RunE: a.do(func(ctx context.Context, args []string) error {
			old, new, err := loadPair(ctx, against, args)
			if err != nil {
				return err
			}
			switch compat.Direction(direction) {
			case compat.Both, compat.Request, compat.Response:
			default:
				return usage("--direction: must be request, response or both, not %q", direction)
			}
			report := compat.Compare(old.Published(), new.Published(), compat.Direction(direction))
			return a.writeCompat(report, format, new.Path)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&against, "against", "", "take the old file from git: git:<ref>")
	f.StringVar(&direction, "direction", string(compat.Both), "request, response or both")
	f.StringVarP(&format, "output", "o", "text", "text, json, sarif or junit")
	return cmd
}

// loadPair loads the two files of a diff.
func loadPair(ctx context.Context, against string, args []string) (old, new *capability.Document, err error) {
	if against == "" {
		if len(args) != 2 {
			return nil, nil, usage("diff needs two files, or one and --against git:<ref>")
		}
		old, errOld := capability.LoadWith(args[0], loadOptions())
		new, errNew := capability.LoadWith(args[1], loadOptions())
		return old, new, errors.Join(errOld, errNew)
	}
	ref, ok := strings.CutPrefix(against, "git:")
	if !ok || ref == "" || len(args) != 1 {
		return nil, nil, usage("--against: must be git:<ref>, with one file, not %q with %d", against, len(args))
	}
	if new, err = capability.LoadWith(args[0], loadOptions()); err != nil {
		return nil, nil, err
	}
	old, err = loadFromGit(ctx, ref, args[0])
	return old, new, err
}

// loadFromGit loads a file as it was at ref.
func loadFromGit(ctx context.Context, ref, path string) (*capability.Document, error) {
	if strings.HasPrefix(ref, "-") {
		return nil, usage("--against: %q is no ref", ref)
	}
	var out, complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, "git", "show", ref+":./"+filepath.ToSlash(filepath.Base(path)))
	cmd.Dir, cmd.Stdout, cmd.Stderr = filepath.Dir(path), &out, &complaint
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("git show %s:%s: %w: %s", ref, path, err, strings.TrimSpace(complaint.String()))
	}
	return capability.Parse(ref+":"+path, out.Bytes(), loadOptions())
}

// writeCompat writes a report; exit status 3 says that it breaks callers.
func (a *app) writeCompat(report *compat.Report, format, uri string) (err error) {
	switch format {
	case "text", "table":
		err = report.WriteText(a.stdout, output.ColorsFor(a.stdout, a.getenv))
	case "json", "jsonl":
		err = report.WriteJSON(a.stdout, output.Format(format))
	case "sarif":
		err = report.WriteSARIF(a.stdout, uri, version())
	case "junit":
		err = report.WriteJUnit(a.stdout)
	default:
		return usage("--output: must be text, json, sarif or junit, not %q", format)
	}
	if err == nil && report.Breaking() {
		err = &exitError{code: exitFinding}
	}
	return err
}
