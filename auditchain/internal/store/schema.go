package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/agentd/agentd/auditchain/internal/auditerr"
)

const (
	// applicationID marks a database as an audit log (PRAGMA application_id).
	applicationID = 0x41475443 // "AGTC"
	// SchemaVersion is the newest schema (PRAGMA user_version).
	SchemaVersion = 3
)

// migrations returns the steps from one schema version to the next: element v
// leads from version v to v+1. SQLite keeps the text of each statement, and
// prints it with its comments to anyone who runs `.schema`. [DB.CheckSchema]
// compares the text literally, so released steps never change.
func migrations() [SchemaVersion][]string {
	return [SchemaVersion][]string{{
		`CREATE TABLE meta (
  name  TEXT PRIMARY KEY, -- origin: the log's name; verifier_key: its first public key
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID`,
		`CREATE TABLE records (
  seq         INTEGER PRIMARY KEY, -- 1, 2, 3, ... without gaps
  ts          INTEGER NOT NULL,    -- Unix milliseconds, never decreasing
  tenant      TEXT NOT NULL,
  kind        TEXT NOT NULL,
  peer        TEXT,                -- these five are copied from the body
  capability  TEXT,
  side        TEXT,
  correlation TEXT,
  session     TEXT,
  body        TEXT,                -- canonical JSON (RFC 8785); NULL when erased
  salt        BLOB,                -- 16 random bytes; NULL when erased
  digest      BLOB NOT NULL,       -- SHA-256 over salt, the five columns and body
  hash        BLOB NOT NULL,       -- SHA-256 over seq, ts, tenant, kind, digest and the hash before
  erased_by   INTEGER              -- seq of the redaction record that allows the erasure
) STRICT`,
		`CREATE INDEX records_tenant ON records(tenant)`,
		`CREATE INDEX records_kind ON records(kind)`,
		`CREATE INDEX records_peer ON records(peer) WHERE peer IS NOT NULL`,
		`CREATE INDEX records_capability ON records(capability) WHERE capability IS NOT NULL`,
		`CREATE INDEX records_correlation ON records(correlation) WHERE correlation IS NOT NULL`,
		`CREATE INDEX records_session ON records(session) WHERE session IS NOT NULL`,
		`CREATE INDEX records_erased ON records(erased_by) WHERE erased_by IS NOT NULL`,
		`CREATE TABLE tree (
  level    INTEGER NOT NULL, -- 0: the hash of a pruned record; 8, 16, ...: a node over 2^level records
  position INTEGER NOT NULL, -- from the left, from 0
  hash     BLOB NOT NULL,
  PRIMARY KEY (level, position)
) STRICT, WITHOUT ROWID`,
		`CREATE TABLE checkpoints (
  size INTEGER PRIMARY KEY, -- how many records it covers
  ts   INTEGER NOT NULL,    -- when it was signed, Unix milliseconds
  note TEXT NOT NULL        -- C2SP checkpoint: origin, size, root, signatures
) STRICT`,
		`CREATE VIEW audit AS
  SELECT seq, strftime('%Y-%m-%dT%H:%M:%fZ', ts / 1000.0, 'unixepoch') AS time,
         tenant, kind, peer, capability, side, correlation, session, body, lower(hex(hash)) AS hash
  FROM records`,
	}, {
		`CREATE TABLE packs (
  first   INTEGER PRIMARY KEY, -- seq of the first of the records that this row stands for
  last    INTEGER NOT NULL,    -- seq of the last one
  ts      INTEGER NOT NULL,    -- of all
  tenants TEXT NOT NULL,       -- JSON array: the tenant of all, or one for each
  kinds   TEXT NOT NULL,       -- JSON array: the kind of all, or one for each
  hashes  BLOB NOT NULL,       -- 32 bytes for each
  salts   BLOB NOT NULL,       -- 16 bytes for each
  bodies  TEXT NOT NULL        -- JSON array of the bodies, from which the other columns follow
) STRICT`,
		`CREATE TABLE terms (
  field   TEXT NOT NULL,    -- tenant, kind, peer, capability or side
  value   TEXT NOT NULL,
  pack    INTEGER NOT NULL, -- first of a row of packs
  records INTEGER NOT NULL, -- how many of its records have that value
  PRIMARY KEY (field, value, pack)
) STRICT, WITHOUT ROWID`,
		`CREATE TABLE filters (
  pack INTEGER PRIMARY KEY, -- first of a row of packs
  bits BLOB NOT NULL        -- Bloom filter of the correlation ids and sessions of its records
) STRICT`,
		`DROP VIEW audit`,
		`CREATE VIEW audit AS
  SELECT seq, strftime('%Y-%m-%dT%H:%M:%fZ', ts / 1000.0, 'unixepoch') AS time,
         tenant, kind, peer, capability, side, correlation, session, body, lower(hex(hash)) AS hash
  FROM records
  UNION ALL
  SELECT first + b.key, strftime('%Y-%m-%dT%H:%M:%fZ', ts / 1000.0, 'unixepoch'),
         coalesce(tenants ->> b.key, tenants ->> 0), coalesce(kinds ->> b.key, kinds ->> 0),
         iif(json_type(b.value, '$.peerId') = 'text', nullif(b.value ->> 'peerId', ''), NULL),
         iif(json_type(b.value, '$.capabilityName') = 'text', nullif(b.value ->> 'capabilityName', ''), NULL),
         iif(json_type(b.value, '$.side') = 'text', nullif(b.value ->> 'side', ''), NULL),
         iif(json_type(b.value, '$.correlationId') = 'text', nullif(b.value ->> 'correlationId', ''), NULL),
         iif(json_type(b.value, '$.sessionId') = 'text', nullif(b.value ->> 'sessionId', ''), NULL),
         b.value, lower(hex(substr(hashes, b.key * 32 + 1, 32)))
  FROM packs, json_each(bodies) AS b`,
	}, {
		`ALTER TABLE terms ADD COLUMN positions /* of those records in the pack; NULL: not known */ BLOB`,
	}}
}

// schemaOf returns the statements of the tables, indexes and views that a database of a
// version has.
func schemaOf(version int) []string {
	var all []string
	steps := migrations()
	for _, statement := range slices.Concat(steps[:version]...) {
		if dropped, ok := strings.CutPrefix(statement, "DROP "); ok {
			all = slices.DeleteFunc(all, func(s string) bool { return strings.HasPrefix(s, "CREATE "+dropped+" ") })
			continue
		}
		if altered, ok := strings.CutPrefix(statement, "ALTER TABLE "); ok {
			table, column, _ := strings.Cut(altered, " ADD COLUMN ")
			i := slices.IndexFunc(all, func(s string) bool { return strings.HasPrefix(s, "CREATE TABLE "+table+" ") })
			all[i] = addColumn(all[i], column)
			continue
		}
		all = append(all, statement)
	}
	return all
}

// addColumn returns the statement of a table that ends with its primary key, as SQLite keeps it
// once a column was added: the column is behind the last one, and before the comment on that.
func addColumn(table, column string) string {
	columns := table[:strings.Index(table, "\n  PRIMARY KEY")]
	last := strings.LastIndexByte(columns, '\n')
	at := last + strings.IndexByte(columns[last:], ',')
	return table[:at] + ", " + column + table[at:]
}

// Version returns the schema version of the database, 0 if it is empty. A
// database that is not an audit log, or a newer one, is an error.
func (db *DB) Version(ctx context.Context) (int, error) {
	var application, version, objects int
	err := db.QueryRowContext(ctx, `SELECT (SELECT application_id FROM pragma_application_id),
		(SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_schema)`).
		Scan(&application, &version, &objects)
	switch {
	case err != nil:
		return 0, db.Wrap("reading the schema version", err)
	case application == 0 && version == 0 && objects == 0:
		return 0, nil
	case application != applicationID:
		return 0, &auditerr.Error{Code: auditerr.CodeNotAuditLog, Path: db.Path, Msg: "the database is not an audit log",
			Hint: "give the path of an audit database"}
	}
	return version, db.known(version)
}

// StillKnown fails with [auditerr.CodeVersion] if a newer program has brought the schema to a
// version that this one does not know. That may happen while a reader has the log open, which
// then misses records: what it has read before StillKnown succeeds is whole.
func (db *DB) StillKnown(ctx context.Context) error {
	var version int
	if err := db.QueryRowContext(ctx, `SELECT user_version FROM pragma_user_version`).Scan(&version); err != nil {
		return db.Wrap("reading the schema version", err)
	}
	return db.known(version)
}

func (db *DB) known(version int) error {
	if version <= SchemaVersion {
		return nil
	}
	return &auditerr.Error{Code: auditerr.CodeVersion, Path: db.Path,
		Msg:  fmt.Sprintf("the log has schema version %d, this program knows versions up to %d", version, SchemaVersion),
		Hint: "use a newer agentd"}
}

// migrate brings the database from version to the newest in one transaction. It
// runs finish, if not nil, as the last part of that transaction.
func (w *Writer) migrate(ctx context.Context, version int, finish func(*sql.Tx) error) error {
	if version == SchemaVersion {
		return nil
	}
	tx, err := w.conn.BeginTx(ctx, nil)
	if err != nil {
		return w.Wrap("migrating the schema", err)
	}
	defer tx.Rollback()
	steps := migrations()
	for _, step := range steps[version:] {
		for _, statement := range step {
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return w.Wrap("migrating the schema", err)
			}
		}
	}
	pragmas := fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, SchemaVersion)
	if _, err := tx.ExecContext(ctx, pragmas); err != nil {
		return w.Wrap("migrating the schema", err)
	}
	if finish != nil {
		if err := finish(tx); err != nil {
			return w.Wrap("migrating the schema", err)
		}
	}
	return w.Wrap("migrating the schema", tx.Commit())
}

// CheckSchema checks that the database has the tables, indexes and views of its
// version under their names, unaltered, and no trigger, which could change or
// drop rows as they are written. Additional views, tables and indexes are harmless.
func (db *DB) CheckSchema(ctx context.Context) error {
	rows, err := db.QueryContext(ctx, `SELECT type, name, coalesce(sql, '') FROM sqlite_schema`)
	if err != nil {
		return db.Wrap("reading the schema", err)
	}
	defer rows.Close()
	found := map[string]bool{}
	for rows.Next() {
		var kind, name, text string
		if err := rows.Scan(&kind, &name, &text); err != nil {
			return db.Wrap("reading the schema", err)
		}
		if kind == "trigger" {
			return db.schemaAltered("trigger " + name + " was added")
		}
		// A statement begins with the type and the name, unless somebody has edited
		// the one and not the other.
		if strings.HasPrefix(text, "CREATE "+strings.ToUpper(kind)+" "+name) {
			found[text] = true
		}
	}
	if err := rows.Err(); err != nil {
		return db.Wrap("reading the schema", err)
	}
	version, err := db.Version(ctx)
	if err != nil {
		return err
	}
	for _, statement := range schemaOf(version) {
		if !found[statement] {
			subject, _, _ := strings.Cut(strings.TrimPrefix(statement, "CREATE "), "(")
			return db.schemaAltered(strings.TrimSpace(subject) + " was changed or removed")
		}
	}
	return nil
}

func (db *DB) schemaAltered(what string) error {
	return &auditerr.Error{Code: auditerr.CodeTampered, Path: db.Path, Msg: "the schema was altered: " + what,
		Hint: "keep the file as evidence and restore a backup"}
}

// CheckIndexes compares the indexes of the records with the records: each row must be
// in each index that its definition covers, and no index may have more. It returns the
// first finding in SQLite's words, "" for none. It reads the whole table.
func (db *DB) CheckIndexes(ctx context.Context) (finding string, err error) {
	err = db.QueryRowContext(ctx, `SELECT integrity_check FROM pragma_integrity_check('records')`).Scan(&finding)
	if err != nil {
		return "", db.Wrap("checking the indexes", err)
	}
	if finding == "ok" {
		return "", nil
	}
	return finding, nil
}
