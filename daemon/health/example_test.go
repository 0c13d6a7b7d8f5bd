package health_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/agentd/agentd/daemon/health"
)

// A monitor ends the trouble that a use has met as soon as a check succeeds.
func ExampleWatch() {
	board := health.NewBoard(slog.New(slog.DiscardHandler))
	over := make(chan struct{})
	m := health.Watch(board, health.Watched{
		Describe: func(err error) health.Condition {
			return health.Condition{
				Kind: health.AuditLog, Code: "disk-full", Effect: "calls are refused", Cause: err.Error(), Remedy: "free some disk space",
			}
		},
		Check:    func(context.Context, bool) error { return nil }, // there is room again
		Interval: time.Minute,
		Ended:    func() { close(over) },
	})
	defer m.Close()

	m.Fail(errors.New("no space left on device"))
	fmt.Println(board.Err())
	<-over
	fmt.Println(board.Err())
	// Output:
	// audit-log: calls are refused: no space left on device (free some disk space)
	// <nil>
}
