package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/output"
	"github.com/agentd/agentd/registry/external"
)

// errDiffers is the error of a check that finds other contracts than those that are pinned.
var errDiffers = errors.New("the servers serve other contracts than those that are pinned: read what has changed, and run it without --check")

// Pin asks each MCP server of an agent once what it serves, and keeps that beside the agent's
// file. With check, it keeps nothing, and fails where something has changed.
func Pin(ctx context.Context, env *cli.Env, agent string, check bool) error {
	log, err := env.Logger()
	if err != nil {
		return err
	}
	f, err := env.LoadFleet(fleet.LoadOptions{})
	if err != nil {
		return err
	}
	paths, err := env.Paths(f)
	if err != nil {
		return err
	}
	lock, pinned, err := daemon.PinServers(ctx, daemon.Config{Fleet: f, Paths: paths, Logger: log, OwnsProcess: true, Confines: env.Confines}, agent)
	if err != nil {
		return err // nothing is kept of the other servers: half a lock would take tools away
	}
	changed := false
	for _, p := range pinned {
		changed = changed || !p.Same()
	}
	if err := writePinned(env, pinned); err != nil {
		return err
	}
	if check && changed {
		return errDiffers
	}
	member, _ := f.Member(agent) // PinServers has found it
	if check {
		return nil
	}
	return external.WriteLock(member.Dir, lock)
}

func writePinned(env *cli.Env, pinned []external.Pinned) error {
	if env.Format != output.Table {
		return cli.WriteList(env, pinned)
	}
	return env.WriteText(func(w io.Writer) error {
		for _, p := range pinned {
			if _, err := fmt.Fprintf(w, "%s (%s): %d tools\n", p.Server, output.Printable(p.Implementation), len(p.Tools)); err != nil {
				return err
			}
			if err := writeDifferences(w, p); err != nil {
				return err
			}
		}
		return nil
	})
}

func writeDifferences(w io.Writer, p external.Pinned) error {
	var lines []string
	for _, name := range p.New {
		lines = append(lines, "+ "+name)
	}
	for _, name := range p.Gone {
		lines = append(lines, "- "+name)
	}
	for _, d := range p.Changed {
		for _, c := range d.Changes {
			lines = append(lines, "~ "+d.Tool+": "+c.String())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Unusable)) {
		lines = append(lines, "! "+name+" is left out: "+p.Unusable[name])
	}
	for _, line := range lines {
		if _, err := fmt.Fprintf(w, "  %s\n", output.Printable(line)); err != nil {
			return err
		}
	}
	return nil
}
