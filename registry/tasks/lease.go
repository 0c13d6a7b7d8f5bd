package tasks

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/registry/internal/statedb"
)

// defaultLease is how long one runs, in seconds, where its holder does not say.
const defaultLease = 300

// claimable are the rows that can be claimed. The parameters are the tenant, and the
// time, twice.
const claimable = ` FROM task WHERE tenant = ? AND (
	state = 'open' AND not_before <= ? OR
	state = 'claimed' AND lease_ends <= ? AND attempts < max_attempts)`

// claim takes a task. The transaction has the file for itself from its beginning, so
// that whoever comes next sees the lease.
func (l *list) claim(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
	var a struct{ ID, LeaseSeconds int64 }
	if err := json.Unmarshal(args, &a); err != nil {
		return nil, err
	}
	var out struct {
		Claimed bool       `json:"claimed"`
		Task    *view      `json:"task,omitempty"`
		Lease   string     `json:"lease,omitempty"`
		NextAt  *time.Time `json:"nextAt,omitempty"`
	}
	tenant := statedb.Tenant(ctx)
	err := l.db.Write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		now := l.now().UnixMilli() // only here: waiting for the file is no part of the lease
		if err := l.settle(ctx, tx, tenant, now); err != nil {
			return err
		}
		t, ok, err := next(ctx, tx, tenant, a.ID, now)
		if err != nil {
			return err
		}
		if !ok {
			out.NextAt, err = nextAt(ctx, tx, tenant)
			return err
		}
		t.state, t.lease, t.leaseEnds, t.updated = stateClaimed, rand.Text(), after(now, cmp.Or(a.LeaseSeconds, defaultLease)), now
		t.attempts++
		shown := t.view(now)
		out.Claimed, out.Task, out.Lease = true, &shown, t.lease
		return t.save(ctx, tx)
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(out)
}

// next chooses what is claimed: the task id, which must be claimable, or, where id is 0,
// the first that is.
func next(ctx context.Context, tx *sql.Tx, tenant string, id, now int64) (t task, ok bool, err error) {
	if id == 0 {
		err = t.scan(tx.QueryRowContext(ctx, "SELECT "+columns+claimable+" ORDER BY priority DESC, id LIMIT 1", tenant, now, now))
		if errors.Is(err, sql.ErrNoRows) {
			return t, false, nil
		}
		return t, err == nil, err
	}
	if t, err = find(ctx, tx, tenant, id); err != nil {
		return t, false, err
	}
	switch at := t.at(now); {
	case at.state == stateClaimed:
		return t, false, errClaimed(t)
	case at.state != stateOpen:
		return t, false, registry.Errorf(registry.Conflict, "task %d is finished: it is %s", id, at.state)
	case t.notBefore > now:
		return t, false, registry.Errorf(registry.Conflict, "task %d is not to be claimed before %s", id, instant(t.notBefore).Format(time.RFC3339))
	}
	return t, true, nil
}

// nextAt is when a task becomes claimable of which none is now, or nil.
func nextAt(ctx context.Context, tx *sql.Tx, tenant string) (*time.Time, error) {
	var ms sql.NullInt64
	err := tx.QueryRowContext(ctx, `
		SELECT min(iif(state = 'open', not_before, lease_ends)) FROM task
		WHERE tenant = ? AND (state = 'open' OR state = 'claimed' AND attempts < max_attempts)`, tenant).Scan(&ms)
	if err != nil || !ms.Valid {
		return nil, err
	}
	at := instant(ms.Int64)
	return &at, nil
}

// save writes what a lease changes.
func (t task) save(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, `
		UPDATE task SET state = ?, attempts = ?, not_before = ?, lease = ?, lease_ends = ?, result = ?, reason = ?, updated = ? WHERE id = ?`,
		t.state, t.attempts, t.notBefore, t.lease, t.leaseEnds, t.result, t.reason, t.updated, t.id)
	return err
}

// A holder names a task and the lease on it.
type holder struct {
	ID    int64
	Lease string
}

// held runs change on a task that the lease is on, and saves it. A repetition of what
// was done with a lease, which change reports by repeated, does nothing and succeeds.
func (l *list) held(ctx context.Context, h holder, repeated func(task) bool, change func(t *task, now int64)) (t task, err error) {
	tenant := statedb.Tenant(ctx)
	err = l.db.Write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		now := l.now().UnixMilli()
		if t, err = find(ctx, tx, tenant, h.ID); err != nil {
			return err
		}
		switch at := t.at(now); {
		case t.lease != h.Lease:
			return registry.Errorf(registry.Conflict, "this is not the lease on task %d: it ended and somebody else has claimed the task, or there never was one", h.ID)
		case t.state != stateClaimed && repeated(t):
			return nil
		case at.state == stateDone || at.state == stateFailed:
			return registry.Errorf(registry.Conflict, "task %d is finished: it is %s", h.ID, at.state)
		case t.state != stateClaimed:
			return registry.Errorf(registry.Conflict, "the lease on task %d was given back: claim it again", h.ID)
		}
		t.updated = now
		change(&t, now)
		if err := t.save(ctx, tx); err != nil {
			return err
		}
		return l.settle(ctx, tx, tenant, now)
	})
	return t, err
}

func (l *list) extend(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
	var a struct {
		holder
		LeaseSeconds int64
	}
	if err := json.Unmarshal(args, &a); err != nil {
		return nil, err
	}
	t, err := l.held(ctx, a.holder, func(task) bool { return false }, func(t *task, now int64) {
		t.leaseEnds = after(now, cmp.Or(a.LeaseSeconds, defaultLease))
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(struct {
		ID        int64     `json:"id"`
		LeaseEnds time.Time `json:"leaseEnds"`
	}{t.id, instant(t.leaseEnds)})
}

// An outcomeOf a task is what became of it.
type outcomeOf struct {
	ID    int64  `json:"id"`
	State string `json:"state"`
}

func (l *list) complete(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
	var a struct {
		holder
		Result string
	}
	if err := json.Unmarshal(args, &a); err != nil {
		return nil, err
	}
	if err := l.checkText("result", a.Result); err != nil {
		return nil, err
	}
	t, err := l.held(ctx, a.holder, func(t task) bool { return t.state == stateDone }, func(t *task, _ int64) {
		t.state, t.result, t.reason = stateDone, a.Result, ""
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(outcomeOf{t.id, t.state})
}

func (l *list) fail(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
	a := struct {
		holder
		Reason       string
		Retry        bool
		DelaySeconds int64
	}{Retry: true}
	if err := json.Unmarshal(args, &a); err != nil {
		return nil, err
	}
	if err := l.checkText("reason", a.Reason); err != nil {
		return nil, err
	}
	t, err := l.held(ctx, a.holder, func(t task) bool { return t.state != stateDone }, func(t *task, now int64) {
		t.state, t.reason, t.notBefore = stateOpen, a.Reason, after(now, a.DelaySeconds)
		if !a.Retry || t.attempts >= t.maxAttempts {
			t.state = stateFailed
		}
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(outcomeOf{t.id, t.state})
}
