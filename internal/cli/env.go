package cli

import (
	"cmp"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/output"
)

// An Env is what a command runs in: the standard streams and environment
// variables of the process, and the global flags. Commands touch nothing else
// of the process, so a test can run them side by side.
type Env struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Getenv is [os.Getenv] in the program.
	Getenv func(string) string
	// Confines says that the program is agentd itself, which confines skills by starting
	// itself in their place; see package skill/sandbox.
	Confines bool

	// FleetDir is --fleet: the fleet's folder, or one below it. "" means
	// $AGENTD_FLEET_ROOT, then the working directory.
	FleetDir string
	// Format is --output.
	Format output.Format
	// LogLevel and LogFormat are --log-level and --log-format.
	LogLevel, LogFormat string
	// LogCalls is --log-calls, nil where it is not given.
	LogCalls *bool
	// Listen is --listen, nil where it is not given, and Profiles is --pprof.
	Listen   *string
	Profiles bool
}

// FleetRoot returns the folder of the fleet's fleet.yaml. The path is relative
// where the fleet is in or below the working directory, so that errors name
// files the way the user would.
func (e *Env) FleetRoot() (string, error) {
	dir := e.FleetDir
	if dir == "" {
		dir = e.Getenv("AGENTD_FLEET_ROOT")
	}
	if dir == "" {
		dir = "."
	}
	root, err := fleet.FindRoot(dir)
	if err != nil {
		return "", err
	}
	// Without a working directory, or with the fleet outside of it, the absolute
	// path is still right, only longer.
	if cwd, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(cwd, root); err == nil && filepath.IsLocal(rel) {
			return rel, nil
		}
	}
	return root, nil
}

// LoadFleet loads the fleet at [Env.FleetRoot], with the validators of
// [FleetOptions].
func (e *Env) LoadFleet(opts fleet.LoadOptions) (*fleet.Fleet, error) {
	root, err := e.FleetRoot()
	if err != nil {
		return nil, err
	}
	return fleet.Load(root, FleetOptions(opts))
}

// FleetOptions adds the validators and the actions that agents run with to the options of a
// command, so that it judges a fleet as they do.
func FleetOptions(opts fleet.LoadOptions) fleet.LoadOptions {
	all := daemon.LoadOptions()
	opts.Engines, opts.SecondOpinion, opts.Actions = all.Engines, all.SecondOpinion, all.Actions
	return opts
}

// FileOptions are those for a capabilities file outside of a fleet: the same checks
// as in one.
func FileOptions() capability.LoadOptions {
	return capability.LoadOptions{ValidateSchemas: true, SecondOpinion: daemon.LoadOptions().SecondOpinion}
}

// Paths returns where the agents of f keep their state and sockets.
func (e *Env) Paths(f *fleet.Fleet) (daemon.Paths, error) {
	return daemon.DefaultPaths(f.Name, f.Root, e.Getenv)
}

// InspectFleet loads the fleet for looking at it, not for running it, together
// with its paths.
func (e *Env) InspectFleet() (*fleet.Fleet, daemon.Paths, error) {
	f, err := e.LoadFleet(fleet.LoadOptions{InspectOnly: true})
	if err != nil {
		return nil, daemon.Paths{}, err
	}
	paths, err := e.Paths(f)
	return f, paths, err
}

// Colors returns the styles for standard output.
func (e *Env) Colors() output.Colors { return output.ColorsFor(e.Stdout, e.Getenv) }

// Logger returns a logger that writes diagnostics to standard error, at the
// level of --log-level, else of $AGENTD_LOG_LEVEL, else at info, and in the format of
// --log-format, else of $AGENTD_LOG_FORMAT, else as text.
func (e *Env) Logger() (*slog.Logger, error) {
	level := e.LogLevel
	if level == "" {
		level = e.Getenv("AGENTD_LOG_LEVEL")
	}
	opts := &slog.HandlerOptions{}
	if level != "" {
		var l slog.Level
		if err := l.UnmarshalText([]byte(level)); err != nil {
			return nil, Usage("--log-level: must be debug, info, warn or error, not %q", level)
		}
		opts.Level = l
	}
	switch e.logFormat() {
	case "text":
		return slog.New(slog.NewTextHandler(e.Stderr, opts)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(e.Stderr, opts)), nil
	}
	return nil, Usage("--log-format: must be text or json, not %q", e.logFormat())
}

// LogsJSON reports whether every line on standard error is to be JSON.
func (e *Env) LogsJSON() bool { return e.logFormat() == "json" }

// logFormat is --log-format, else $AGENTD_LOG_FORMAT, else text.
func (e *Env) logFormat() string { return cmp.Or(e.LogFormat, e.Getenv("AGENTD_LOG_FORMAT"), "text") }

// LogsCalls returns whether each call gets a line in the log: what --log-calls says,
// else $AGENTD_LOG_CALLS, else false.
func (e *Env) LogsCalls() (bool, error) {
	text := e.Getenv("AGENTD_LOG_CALLS")
	switch {
	case e.LogCalls != nil:
		return *e.LogCalls, nil
	case text == "":
		return false, nil
	}
	on, err := strconv.ParseBool(text)
	if err != nil {
		return false, Usage("AGENTD_LOG_CALLS: must be true or false, not %q", text)
	}
	return on, nil
}

// Listens returns where probes and metrics are served: what --listen says, else $AGENTD_LISTEN,
// else "", which leaves it to the files.
func (e *Env) Listens() (string, error) {
	address, source := e.Getenv("AGENTD_LISTEN"), "AGENTD_LISTEN"
	if e.Listen != nil {
		address, source = *e.Listen, "--listen"
	}
	if _, _, err := net.SplitHostPort(address); address != "" && err != nil {
		return "", Usage("%s: must be <host>:<port>, such as 127.0.0.1:9464, not %q", source, address)
	}
	return address, nil
}

// WriteJSON writes v to standard output, as one value in the chosen format.
func (e *Env) WriteJSON(v any) error { return output.WriteJSON(e.Stdout, e.Format, v) }

// WriteText writes what write does to standard output, without the characters that a
// terminal would act on: files of other owners hold names and descriptions.
func (e *Env) WriteText(write func(io.Writer) error) error {
	var text strings.Builder
	if err := write(&text); err != nil {
		return err
	}
	_, err := io.WriteString(e.Stdout, output.PrintableText(text.String()))
	return err
}

// WriteTable writes an aligned table to standard output.
func (e *Env) WriteTable(header []string, rows [][]string) error {
	return output.WriteTable(e.Stdout, header, rows)
}

// WriteList writes a list to standard output: one array with -o json, one value
// a line with -o jsonl. An empty list is [] and no line.
func WriteList[T any](e *Env, list []T) error {
	if e.Format == output.JSON {
		if list == nil {
			list = []T{}
		}
		return e.WriteJSON(list)
	}
	for i := range list {
		if err := e.WriteJSON(list[i]); err != nil {
			return err
		}
	}
	return nil
}
