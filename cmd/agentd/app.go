package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/output"
)

// The exit statuses; see the package comment.
const (
	exitFailed  = 1
	exitUsage   = 2
	exitFinding = 3
	exitCall    = 4
)

// An exitError ends the command with a status. A nil err means that all has
// been said.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usage is an error in the command line itself.
func usage(format string, args ...any) error {
	return &exitError{code: exitUsage, err: fmt.Errorf(format, args...)}
}

// An app is what every command shares: the process's edges and the global flags.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) string

	fleetDir  string
	output    output.Format
	logLevel  string
	logFormat string
	started   bool // a command's own code has begun: errors are no longer usage errors
}

// run executes one command line and returns the exit status.
func run(ctx context.Context, args []string, a *app) int {
	root := a.rootCommand()
	root.SetArgs(args)
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	code := exitFailed
	var exit *exitError
	switch {
	case errors.As(err, &exit):
		code = exit.code
	case !a.started:
		code = exitUsage
	}
	if exit == nil || exit.err != nil {
		fmt.Fprintf(a.stderr, "agentd: %s\n", strings.ReplaceAll(err.Error(), "\n", "\n  "))
	}
	if code == exitUsage {
		fmt.Fprintln(a.stderr, "Run `agentd --help`, or --help after the command, for how to use it.")
	}
	return code
}

// action is a command's own code.
type action func(ctx context.Context, args []string) error

// do adapts an action for cobra.
func (a *app) do(run action) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		a.started = true
		return run(cmd.Context(), args)
	}
}

// loadFleet loads the fleet that the working directory or --fleet is in.
func (a *app) loadFleet(opts fleet.LoadOptions) (*fleet.Fleet, error) {
	root, err := a.fleetRoot()
	if err != nil {
		return nil, err
	}
	return fleet.Load(root, plugged(opts))
}

// plugged adds the validators that agents run with to the options of a command.
func plugged(opts fleet.LoadOptions) fleet.LoadOptions {
	all := daemon.LoadOptions()
	opts.Engines, opts.SecondOpinion = all.Engines, all.SecondOpinion
	return opts
}

func (a *app) fleetRoot() (string, error) {
	dir := a.fleetDir
	if dir == "" {
		dir = a.getenv("AGENTD_FLEET_ROOT")
	}
	if dir == "" {
		dir = "."
	}
	root, err := fleet.FindRoot(dir)
	if err != nil {
		return "", err
	}
	// Faults name files as the user would: from where the user is.
	if cwd, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(cwd, root); err == nil && filepath.IsLocal(rel) {
			return rel, nil
		}
	}
	return root, nil
}

func (a *app) paths(f *fleet.Fleet) (daemon.Paths, error) {
	return daemon.DefaultPaths(f.Name, f.Root, a.getenv)
}

// logger writes diagnostics to standard error.
func (a *app) logger() (*slog.Logger, error) {
	level := a.logLevel
	if level == "" {
		level = a.getenv("AGENTD_LOG_LEVEL")
	}
	opts := &slog.HandlerOptions{}
	if level != "" {
		var l slog.Level
		if err := l.UnmarshalText([]byte(level)); err != nil {
			return nil, usage("--log-level: must be debug, info, warn or error, not %q", level)
		}
		opts.Level = l
	}
	switch a.logFormat {
	case "text":
		return slog.New(slog.NewTextHandler(a.stderr, opts)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(a.stderr, opts)), nil
	}
	return nil, usage("--log-format: must be text or json, not %q", a.logFormat)
}
