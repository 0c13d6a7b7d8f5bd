// Command agentd runs beside each agent of a fleet and lets agents call each
// other like typed functions.
//
// # Exit status
//
//	0  done; for run and fleet run also: stopped gracefully by SIGINT or SIGTERM
//	1  it could not be done; standard error says why
//	2  the command line is wrong
//	3  it was done, and what was checked is bad: invalid files, a broken chain
//	4  the call was made, and its status is not ok
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal asks; after it, a second one kills.
	context.AfterFunc(ctx, stop)
	code := run(ctx, os.Args[1:], &app{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv,
	})
	os.Exit(code)
}
