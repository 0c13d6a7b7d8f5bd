package failure_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"
	"time"

	"github.com/agentd/agentd/internal/failure"
)

// A cause names paths of the operator: the caller does not see it, the log does.
func TestCauseIsNotShown(t *testing.T) {
	cause := &fs.PathError{Op: "open", Path: "/srv/secret", Err: fs.ErrPermission}
	err := fmt.Errorf("wrapped: %w", failure.Errorf(failure.NotAllowed, "%q cannot be read", "a.txt").Because(cause))
	shown := failure.As(err)
	if shown == nil || shown.Error() != `"a.txt" cannot be read` || shown.Code != failure.NotAllowed {
		t.Fatalf("As = %v", shown)
	}
	if !errors.Is(err, fs.ErrPermission) {
		t.Error("the cause is lost")
	}
	if failure.As(cause) != nil {
		t.Error("an error of the system is taken for one of ours")
	}
}

// unnoticed is a context that is late, and whose timer has not fired yet.
type unnoticed struct{ context.Context }

func (unnoticed) Deadline() (time.Time, bool) { return time.Now().Add(-time.Millisecond), true }

func TestEnded(t *testing.T) {
	if err := failure.Ended(unnoticed{t.Context()}, "the query"); err == nil || err.Code != failure.Timeout {
		t.Errorf("late, and not noticed: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := failure.Ended(ctx, "the query"); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := failure.Ended(ctx, "the query"); err == nil || err.Code != failure.Cancelled || err.Code.Retryable() {
		t.Errorf("cancelled: %v", err)
	}
	late, stop := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer stop()
	if err := failure.Ended(late, "the query"); err == nil || err.Code != failure.Timeout || !err.Code.Retryable() {
		t.Errorf("late: %v", err)
	}
}
