// Command agentd runs beside each agent of a fleet and lets agents call each
// other like typed functions.
//
// # Exit status
//
//	0    done; for run, fleet run and broker also: stopped gracefully by SIGINT or SIGTERM
//	1    the command failed; standard error says why
//	2    the command line is wrong
//	3    the command did its work, and what it checked is bad: invalid files, a broken chain
//	4    the call was made, and its status is not ok
//	130  the command was interrupted before it was done
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/skill/sandbox"
)

func main() {
	// agentd starts itself in place of a skill's program, to confine it: each call waits
	// for this.
	if sandbox.IsHelper(os.Args) {
		os.Exit(sandbox.Main(os.Args))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal asks for a graceful stop. It also restores the default
	// handling, so that a second one kills a process that hangs.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], &app{Env: cli.Env{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv, Confines: true,
	}}))
}
