package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/agentd/agentd/daemon"
)

// untilDone waits for ctx, and reloads the agents whenever SIGHUP comes. A
// reload that fails is said, and changes nothing.
func (a *app) untilDone(ctx context.Context, agents ...*daemon.Daemon) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	for {
		select {
		case <-ctx.Done():
			return
		case <-hup:
		}
		var errs []error
		for _, d := range agents {
			errs = append(errs, d.Reload())
		}
		if err := errors.Join(errs...); err != nil {
			fmt.Fprintf(a.stderr, "agentd: %s\nThe agents go on as they were.\n", err)
			continue
		}
		fmt.Fprintln(a.stderr, "reloaded.")
	}
}
