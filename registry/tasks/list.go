package tasks

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/registry/internal/statedb"
)

// tables has the tasks. Nothing is written when a lease ends: [task.at] sees that it has.
const tables = `
CREATE TABLE task (
  id           INTEGER PRIMARY KEY AUTOINCREMENT, -- no id is used twice
  tenant       TEXT    NOT NULL,
  title        TEXT    NOT NULL,
  details      TEXT    NOT NULL,
  key          TEXT,
  state        TEXT    NOT NULL CHECK (state IN ('open', 'claimed', 'done', 'failed')),
  priority     INTEGER NOT NULL,
  attempts     INTEGER NOT NULL,
  max_attempts INTEGER NOT NULL,
  not_before   INTEGER NOT NULL, -- times are ms since the Unix epoch
  lease        TEXT    NOT NULL, -- the last one, also after its end
  lease_ends   INTEGER NOT NULL,
  result       TEXT    NOT NULL,
  reason       TEXT    NOT NULL,
  created      INTEGER NOT NULL,
  updated      INTEGER NOT NULL
) STRICT;
CREATE INDEX task_order ON task (tenant, state, priority DESC, id);
CREATE UNIQUE INDEX task_key ON task (tenant, key) WHERE key IS NOT NULL AND state IN ('open', 'claimed')`

const columns = "id, title, details, key, state, priority, attempts, max_attempts, not_before, lease, lease_ends, result, reason, created, updated"

// The states of a task.
const (
	stateOpen    = "open"
	stateClaimed = "claimed"
	stateDone    = "done"
	stateFailed  = "failed"
)

// leaseEnded is the reason of a task that nobody who claimed it has finished.
const leaseEnded = "its last lease ended without a result"

// list is that of one agent.
type list struct {
	db     *statedb.DB
	config config
	now    func() time.Time
}

// A task is a row.
type task struct {
	id                           int64
	title, details, state, lease string
	key                          sql.NullString
	priority                     int
	attempts, maxAttempts        int
	notBefore, leaseEnds         int64
	result, reason               string
	created, updated             int64
}

func (t *task) scan(row interface{ Scan(...any) error }) error {
	return row.Scan(&t.id, &t.title, &t.details, &t.key, &t.state, &t.priority, &t.attempts, &t.maxAttempts,
		&t.notBefore, &t.lease, &t.leaseEnds, &t.result, &t.reason, &t.created, &t.updated)
}

// at is the task as it is at a time: a lease may have ended since the row was written.
func (t task) at(now int64) task {
	if t.state != stateClaimed || t.leaseEnds > now {
		return t
	}
	t.state = stateOpen
	if t.attempts >= t.maxAttempts {
		t.state, t.reason = stateFailed, leaseEnded
	}
	return t
}

// A view is a task as it is shown.
type view struct {
	ID          int64      `json:"id"`
	Title       string     `json:"title"`
	Details     string     `json:"details,omitempty"`
	Key         string     `json:"key,omitempty"`
	State       string     `json:"state"`
	Priority    int        `json:"priority"`
	Attempts    int        `json:"attempts"`
	MaxAttempts int        `json:"maxAttempts"`
	NotBefore   *time.Time `json:"notBefore,omitempty"`
	LeaseEnds   *time.Time `json:"leaseEnds,omitempty"`
	Result      string     `json:"result,omitempty"`
	Reason      string     `json:"reason,omitempty"`
	Created     time.Time  `json:"created"`
	Updated     time.Time  `json:"updated"`
}

// view shows all but the lease, which is for whoever holds it.
func (t task) view(now int64) view {
	t = t.at(now)
	v := view{
		ID: t.id, Title: t.title, Details: t.details, Key: t.key.String, State: t.state, Priority: t.priority,
		Attempts: t.attempts, MaxAttempts: t.maxAttempts, Result: t.result, Reason: t.reason,
		Created: instant(t.created), Updated: instant(t.updated),
	}
	if at := instant(t.notBefore); t.state == stateOpen && t.notBefore > now {
		v.NotBefore = &at
	}
	if at := instant(t.leaseEnds); t.state == stateClaimed {
		v.LeaseEnds = &at
	}
	return v
}

func instant(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

func after(now int64, seconds int64) int64 { return now + seconds*1000 }

// find returns a row of the tenant.
func find(ctx context.Context, tx *sql.Tx, tenant string, id int64) (t task, err error) {
	err = t.scan(tx.QueryRowContext(ctx, "SELECT "+columns+" FROM task WHERE id = ? AND tenant = ?", id, tenant))
	if errors.Is(err, sql.ErrNoRows) {
		return t, registry.Errorf(registry.NotFound, "there is no task %d", id)
	}
	return t, err
}

// checkText bounds a text of a task.
func (l *list) checkText(name, text string) error {
	if len(text) > l.config.MaxTextBytes {
		return registry.Errorf(registry.TooLarge, "the %s: %d bytes are too many, %d are allowed", name, len(text), l.config.MaxTextBytes)
	}
	return nil
}

func (l *list) add(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
	var a struct {
		Title, Details, Key       string
		Priority                  int
		DelaySeconds, MaxAttempts int64
	}
	if err := json.Unmarshal(args, &a); err != nil {
		return nil, err
	}
	if err := l.checkText("details", a.Details); err != nil {
		return nil, err
	}
	var out struct {
		ID    int64 `json:"id"`
		Added bool  `json:"added"`
	}
	tenant, now := statedb.Tenant(ctx), l.now().UnixMilli()
	key := sql.NullString{String: a.Key, Valid: a.Key != ""}
	err := l.db.Write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if err := l.settle(ctx, tx, tenant, now); err != nil {
			return err
		}
		if key.Valid {
			err := tx.QueryRowContext(ctx, "SELECT id FROM task WHERE tenant = ? AND key = ? AND state IN ('open', 'claimed')", tenant, a.Key).Scan(&out.ID)
			if !errors.Is(err, sql.ErrNoRows) {
				return err
			}
		}
		var unfinished int64
		if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM task WHERE tenant = ? AND state IN ('open', 'claimed')", tenant).Scan(&unfinished); err != nil {
			return err
		}
		if unfinished >= l.config.MaxTasks {
			return registry.Errorf(registry.TooLarge, "the list is full: there are %d unfinished tasks, and no more are allowed", unfinished)
		}
		result, err := tx.ExecContext(ctx, `
			INSERT INTO task (tenant, title, details, key, state, priority, attempts, max_attempts, not_before, lease, lease_ends, result, reason, created, updated)
			VALUES (?, ?, ?, ?, 'open', ?, 0, ?, ?, '', 0, '', '', ?, ?)`,
			tenant, a.Title, a.Details, key, a.Priority, cmp.Or(a.MaxAttempts, 3), after(now, a.DelaySeconds), now, now)
		if err != nil {
			return err
		}
		out.Added = true
		out.ID, err = result.LastInsertId()
		return err
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(out)
}

// settle writes down which tasks have failed by the end of their last lease, and removes
// the oldest of those that are finished.
func (l *list) settle(ctx context.Context, tx *sql.Tx, tenant string, now int64) error {
	if _, err := tx.ExecContext(ctx, `
		UPDATE task SET state = 'failed', lease = '', reason = ?, updated = lease_ends
		WHERE tenant = ? AND state = 'claimed' AND lease_ends <= ? AND attempts >= max_attempts`, leaseEnded, tenant, now); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `
		DELETE FROM task WHERE id IN (
			SELECT id FROM task WHERE tenant = ? AND state IN ('done', 'failed') ORDER BY updated DESC, id DESC LIMIT -1 OFFSET ?)`, tenant, l.config.MaxFinished)
	return err
}

func (l *list) get(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
	var a struct{ ID int64 }
	if err := json.Unmarshal(args, &a); err != nil {
		return nil, err
	}
	var t task
	tenant := statedb.Tenant(ctx)
	if err := l.db.Read(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
		t, err = find(ctx, tx, tenant, a.ID)
		return err
	}); err != nil {
		return nil, err
	}
	return json.Marshal(t.view(l.now().UnixMilli()))
}

func (l *list) remove(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
	var a struct {
		ID int64 `json:"id"`
	}
	if err := json.Unmarshal(args, &a); err != nil {
		return nil, err
	}
	tenant, now := statedb.Tenant(ctx), l.now().UnixMilli()
	err := l.db.Write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		t, err := find(ctx, tx, tenant, a.ID)
		if err != nil {
			return err
		}
		if t.at(now).state == stateClaimed {
			return errClaimed(t)
		}
		_, err = tx.ExecContext(ctx, "DELETE FROM task WHERE id = ?", a.ID)
		return err
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(a)
}

func errClaimed(t task) error {
	return registry.Errorf(registry.Conflict, "task %d is claimed until %s", t.id, instant(t.leaseEnds).Format(time.RFC3339))
}

func (l *list) list(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
	var a struct {
		State  string
		Before int64
		Limit  int
	}
	if err := json.Unmarshal(args, &a); err != nil {
		return nil, err
	}
	a.Limit = cmp.Or(a.Limit, 20)
	var out struct {
		Tasks      []view         `json:"tasks"`
		Counts     map[string]int `json:"counts"`
		NextBefore int64          `json:"nextBefore,omitempty"`
	}
	tenant, now := statedb.Tenant(ctx), l.now().UnixMilli()
	err := l.db.Read(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
		if out.Counts, err = counts(ctx, tx, tenant, now); err != nil {
			return err
		}
		// One more than is shown, to see whether there are more.
		rows, err := tx.QueryContext(ctx, "SELECT "+columns+` FROM task
			WHERE tenant = ? AND (? = 0 OR id < ?) AND (? = '' OR `+stateNow+` = ?) ORDER BY id DESC LIMIT ?`,
			tenant, a.Before, a.Before, a.State, now, a.State, a.Limit+1)
		out.Tasks, err = views(rows, err, now)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(out.Tasks) > a.Limit {
		out.Tasks = out.Tasks[:a.Limit]
		out.NextBefore = out.Tasks[a.Limit-1].ID
	}
	return json.Marshal(out)
}

// stateNow is [task.at] for a query. Its parameter is the time.
const stateNow = `CASE WHEN state = 'claimed' AND lease_ends <= ? THEN iif(attempts >= max_attempts, 'failed', 'open') ELSE state END`

// views reads the rows of a list, without their texts.
func views(rows *sql.Rows, err error, now int64) ([]view, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := []view{}
	for rows.Next() {
		var t task
		if err := t.scan(rows); err != nil {
			return nil, err
		}
		v := t.view(now)
		v.Details, v.Result, v.Reason = "", "", ""
		all = append(all, v)
	}
	return all, rows.Err()
}

func counts(ctx context.Context, tx *sql.Tx, tenant string, now int64) (map[string]int, error) {
	all := map[string]int{stateOpen: 0, stateClaimed: 0, stateDone: 0, stateFailed: 0}
	rows, err := tx.QueryContext(ctx, fmt.Sprintf("SELECT %s AS s, count(*) FROM task WHERE tenant = ? GROUP BY s", stateNow), now, tenant)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var state string
		var n int
		if err := rows.Scan(&state, &n); err != nil {
			return nil, err
		}
		all[state] = n
	}
	return all, rows.Err()
}
