package memory

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/agentd/agentd/internal/truncate"
	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/registry/internal/statedb"
)

// tables has the notes, the index of their words and the room that they take. Triggers
// keep the latter two in step, so that they agree after a crash as well.
const tables = `
CREATE TABLE note (
  id      INTEGER PRIMARY KEY AUTOINCREMENT, -- no id is used twice
  tenant  TEXT    NOT NULL,
  text    TEXT    NOT NULL,
  tags    TEXT    NOT NULL, -- a JSON array
  created INTEGER NOT NULL, -- ms since the Unix epoch
  updated INTEGER NOT NULL
) STRICT;
CREATE INDEX note_tenant ON note (tenant, id);

CREATE TABLE room (
  tenant TEXT PRIMARY KEY,
  notes  INTEGER NOT NULL,
  bytes  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE VIRTUAL TABLE note_index USING fts5(text, tags, content='note', content_rowid='id', tokenize='porter unicode61 remove_diacritics 2');
INSERT INTO note_index(note_index, rank) VALUES('secure-delete', 1);

CREATE TRIGGER note_added AFTER INSERT ON note BEGIN
  INSERT INTO note_index(rowid, text, tags) VALUES (new.id, new.text, new.tags);
  INSERT INTO room VALUES (new.tenant, 1, octet_length(new.text))
    ON CONFLICT DO UPDATE SET notes = notes + 1, bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER note_changed AFTER UPDATE ON note BEGIN
  INSERT INTO note_index(note_index, rowid, text, tags) VALUES ('delete', old.id, old.text, old.tags);
  INSERT INTO note_index(rowid, text, tags) VALUES (new.id, new.text, new.tags);
  UPDATE room SET bytes = bytes + octet_length(new.text) - octet_length(old.text) WHERE tenant = new.tenant;
END;
CREATE TRIGGER note_deleted AFTER DELETE ON note BEGIN
  INSERT INTO note_index(note_index, rowid, text, tags) VALUES ('delete', old.id, old.text, old.tags);
  UPDATE room SET notes = notes - 1, bytes = bytes - octet_length(old.text) WHERE tenant = old.tenant;
END`

// excerptBytes bounds what is shown of a note in a list.
const excerptBytes = 300

// notes are those of one agent.
type notes struct {
	db     *statedb.DB
	config config
	now    func() time.Time
}

// A note is one as it is shown. A list has an excerpt in place of the text.
type note struct {
	ID      int64           `json:"id"`
	Text    *string         `json:"text,omitempty"`
	Excerpt *string         `json:"excerpt,omitempty"`
	Tags    json.RawMessage `json:"tags"`
	Created time.Time       `json:"created"`
	Updated time.Time       `json:"updated"`
}

// A reference names a note.
type reference struct {
	ID int64 `json:"id"`
}

func errNoNote(id int64) error { return registry.Errorf(registry.NotFound, "there is no note %d", id) }

func (n *notes) remember(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
	var a struct {
		ID   int64    `json:"id"`
		Text string   `json:"text"`
		Tags []string `json:"tags"`
	}
	if err := json.Unmarshal(args, &a); err != nil {
		return nil, err
	}
	if len(a.Text) > n.config.MaxNoteBytes {
		return nil, registry.Errorf(registry.TooLarge, "the text has %d bytes, and a note may have %d: keep it shorter, or in several notes", len(a.Text), n.config.MaxNoteBytes)
	}
	tags, err := json.Marshal(append([]string{}, a.Tags...)) // [] rather than null
	if err != nil {
		return nil, err
	}
	tenant, now := statedb.Tenant(ctx), n.now().UnixMilli()
	err = n.db.Write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if a.ID == 0 {
			result, err := tx.ExecContext(ctx, "INSERT INTO note (tenant, text, tags, created, updated) VALUES (?, ?, ?, ?, ?)", tenant, a.Text, string(tags), now, now)
			if err != nil {
				return err
			}
			if a.ID, err = result.LastInsertId(); err != nil {
				return err
			}
		} else {
			result, err := tx.ExecContext(ctx, "UPDATE note SET text = ?, tags = ?, updated = ? WHERE id = ? AND tenant = ?", a.Text, string(tags), now, a.ID, tenant)
			if err := foundOne(result, err, a.ID); err != nil {
				return err
			}
		}
		return n.checkRoom(ctx, tx, tenant)
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(reference{a.ID})
}

// checkRoom undoes, by its error, what leaves a tenant with more than it may have.
func (n *notes) checkRoom(ctx context.Context, tx *sql.Tx, tenant string) error {
	var count, bytes int64
	if err := tx.QueryRowContext(ctx, "SELECT notes, bytes FROM room WHERE tenant = ?", tenant).Scan(&count, &bytes); err != nil {
		return err
	}
	switch {
	case count > n.config.MaxNotes:
		return registry.Errorf(registry.TooLarge, "the memory is full: there are %d notes, and no more are allowed; forget some first", n.config.MaxNotes)
	case bytes > n.config.MaxBytes:
		return registry.Errorf(registry.TooLarge, "the memory is full: the notes may have %d bytes together; forget some first", n.config.MaxBytes)
	}
	return nil
}

// foundOne is the error of a statement that was to change the note id.
func foundOne(result sql.Result, err error, id int64) error {
	if err != nil {
		return err
	}
	if changed, err := result.RowsAffected(); err != nil || changed > 0 {
		return err
	}
	return errNoNote(id)
}

func (n *notes) forget(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
	var a reference
	if err := json.Unmarshal(args, &a); err != nil {
		return nil, err
	}
	tenant := statedb.Tenant(ctx)
	if err := n.db.Write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, "DELETE FROM note WHERE id = ? AND tenant = ?", a.ID, tenant)
		return foundOne(result, err, a.ID)
	}); err != nil {
		return nil, err
	}
	return json.Marshal(a)
}

func (n *notes) get(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
	var a reference
	if err := json.Unmarshal(args, &a); err != nil {
		return nil, err
	}
	var found note
	tenant := statedb.Tenant(ctx)
	err := n.db.Read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		var text string
		err := found.scan(tx.QueryRowContext(ctx, "SELECT id, text, tags, created, updated FROM note WHERE id = ? AND tenant = ?", a.ID, tenant), &text)
		if errors.Is(err, sql.ErrNoRows) {
			return errNoNote(a.ID)
		}
		found.Text = &text
		return err
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(found)
}

func (n *notes) search(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
	var a struct {
		Query, Match, Tag string
		Limit             int
	}
	if err := json.Unmarshal(args, &a); err != nil {
		return nil, err
	}
	query := ftsQuery(a.Query, a.Match == "all")
	if query == "" {
		return nil, registry.Errorf(registry.InvalidArguments, "the query has no word to search for")
	}
	var out struct {
		Notes []note `json:"notes"`
	}
	tenant := statedb.Tenant(ctx)
	err := n.db.Read(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
		out.Notes, err = excerpts(tx.QueryContext(ctx, `
			SELECT id, snippet(note_index, 0, '', '', '…', 40), note.tags, created, updated
			FROM note_index JOIN note ON note.id = note_index.rowid
			WHERE note_index MATCH ? AND tenant = ? AND (? = '' OR EXISTS (SELECT 1 FROM json_each(note.tags) WHERE value = ?))
			ORDER BY rank, id DESC LIMIT ?`, query, tenant, a.Tag, a.Tag, cmp.Or(a.Limit, 10)))
		return err
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(out)
}

func (n *notes) list(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
	var a struct {
		Tag    string
		Before int64
		Limit  int
	}
	if err := json.Unmarshal(args, &a); err != nil {
		return nil, err
	}
	a.Limit = cmp.Or(a.Limit, 20)
	var out struct {
		Notes      []note `json:"notes"`
		Total      int64  `json:"total"`
		NextBefore int64  `json:"nextBefore,omitempty"`
	}
	tenant := statedb.Tenant(ctx)
	err := n.db.Read(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
		err = tx.QueryRowContext(ctx, "SELECT notes FROM room WHERE tenant = ?", tenant).Scan(&out.Total)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		// One more than is shown, to see whether there are more.
		out.Notes, err = excerpts(tx.QueryContext(ctx, `
			SELECT id, substr(text, 1, ?), tags, created, updated FROM note
			WHERE tenant = ? AND (? = 0 OR id < ?) AND (? = '' OR EXISTS (SELECT 1 FROM json_each(tags) WHERE value = ?))
			ORDER BY id DESC LIMIT ?`, excerptBytes+1, tenant, a.Before, a.Before, a.Tag, a.Tag, a.Limit+1))
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(out.Notes) > a.Limit {
		out.Notes = out.Notes[:a.Limit]
		out.NextBefore = out.Notes[a.Limit-1].ID
	}
	return json.Marshal(out)
}

// excerpts reads the rows of a list.
func excerpts(rows *sql.Rows, err error) ([]note, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := []note{}
	for rows.Next() {
		var one note
		var text string
		if err := one.scan(rows, &text); err != nil {
			return nil, err
		}
		text = truncate.String(text, excerptBytes)
		one.Excerpt = &text
		all = append(all, one)
	}
	return all, rows.Err()
}

// scan reads a note; text is the whole one, or a part.
func (n *note) scan(row interface{ Scan(...any) error }, text *string) error {
	var tags string
	var created, updated int64
	err := row.Scan(&n.ID, text, &tags, &created, &updated)
	n.Tags, n.Created, n.Updated = json.RawMessage(tags), time.UnixMilli(created).UTC(), time.UnixMilli(updated).UTC()
	return err
}
