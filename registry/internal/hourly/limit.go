package hourly

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/agentd/agentd/action"
	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/registry/internal/statedb"
)

// full is when all of the hour will have come back. One row is enough.
const tables = `CREATE TABLE hour (
  one  INTEGER PRIMARY KEY CHECK (one = 1),
  full INTEGER NOT NULL -- ns since the Unix epoch
) STRICT`

// A Limit allows a number of things an hour. What was not used comes back evenly over the
// hour. It is safe for concurrent use.
type Limit struct {
	most int
	what string
	now  func() time.Time
	db   *statedb.DB // nil without a state folder

	mu   sync.Mutex
	full time.Time // guarded by mu; the file has it where there is one
}

// Open returns the limit of a capability: most things an hour. what is their name in
// errors, such as "mails". now is nil for [time.Now]. What was used is kept in the agent's
// state folder, if it has one: the hour of an agent goes on when the agent is reloaded or
// started again, and is that of all its processes on this machine.
func Open(ctx registry.Context, capability string, most int, what string, now func() time.Time) (*Limit, error) {
	if now == nil {
		now = time.Now
	}
	l := &Limit{most: most, what: what, now: now}
	if ctx.StateDir == "" {
		return l, nil
	}
	var err error
	l.db, err = statedb.Open(ctx, statedb.Options{
		Capability: capability, Path: filepath.Join(ctx.StateDir, capability+".db"), Schema: tables, Version: 1, Logger: ctx.Logger,
	})
	return l, err
}

// Take takes n things from the hour, or none and returns an error for the caller.
func (l *Limit) Take(ctx context.Context, n int) error {
	if n > l.most {
		return registry.Errorf(registry.TooLarge, "this agent may send %d %s an hour, and these are %d at once", l.most, l.what, n)
	}
	if l.db == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		full, err := l.take(l.full, n)
		if err == nil {
			l.full = full
		}
		return err
	}
	return l.db.Write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		var ns int64
		if err := tx.QueryRowContext(ctx, "SELECT full FROM hour").Scan(&ns); err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		full, err := l.take(time.Unix(0, ns), n)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO hour VALUES (1, ?) ON CONFLICT DO UPDATE SET full = excluded.full", full.UnixNano())
		return err
	})
}

// take returns when the hour is whole again after n more things. Each takes its part of an
// hour to come back, and no more than an hour may be on its way.
func (l *Limit) take(full time.Time, n int) (time.Time, error) {
	now := l.now()
	switch most := now.Add(time.Hour); {
	case full.Before(now):
		full = now
	case full.After(most): // the clock was set back
		full = most
	}
	next := full.Add(time.Hour / time.Duration(l.most) * time.Duration(n))
	if wait := next.Sub(now) - time.Hour; wait > 0 {
		return full, l.exceeded(wait, full.Sub(now), now)
	}
	return next, nil
}

// exceeded is the refusal of what may come after wait. All of the hour is there after
// whole.
func (l *Limit) exceeded(wait, whole time.Duration, now time.Time) error {
	seconds := int64((wait + time.Second - 1) / time.Second)
	details, _ := json.Marshal(action.RateLimitBody{ // numbers and strings always marshal
		Error: action.RateLimitExceeded, Message: "Too many requests", RetryAfterSeconds: seconds, Limit: l.most,
		Remaining: int((time.Hour - whole) / (time.Hour / time.Duration(l.most))),
		ResetAt:   now.Add(whole).Add(time.Second - 1).Truncate(time.Second).UTC().Format(time.RFC3339),
	})
	return &registry.Error{
		Code: registry.RateLimitExceeded, Message: fmt.Sprintf("this agent may send %d %s an hour; try again in %d s", l.most, l.what, seconds),
		Retryable: true, Details: details,
	}
}

// Close closes the file.
func (l *Limit) Close() error {
	if l.db == nil {
		return nil
	}
	return l.db.Close()
}
