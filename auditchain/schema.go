package auditchain

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

const (
	// applicationID marks a database as an audit log (PRAGMA application_id).
	applicationID = 0x41475443 // "AGTC"
	// schemaVersion is the newest schema (PRAGMA user_version).
	schemaVersion = 1
)

// migrations[v] brings a database from schema version v to v+1. The text is
// what `.schema` shows to whoever opens the file by hand.
func migrations() [schemaVersion][]string {
	return [schemaVersion][]string{{
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
	}}
}

// querier is what *sql.DB, *sql.Conn and *sql.Tx have in common.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// readVersion returns the schema version, 0 for an empty database. A database
// that is no audit log, or too new a one, is an error.
func readVersion(ctx context.Context, q querier, path string) (int, error) {
	var application, version, objects int
	err := q.QueryRowContext(ctx, `SELECT (SELECT application_id FROM pragma_application_id),
		(SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_schema)`).
		Scan(&application, &version, &objects)
	switch {
	case err != nil:
		return 0, fault(path, "reading the schema version", err)
	case application == 0 && version == 0 && objects == 0:
		return 0, nil
	case application != applicationID:
		return 0, &Error{Code: CodeNotAuditLog, Path: path, Msg: "the database is not an audit log",
			Hint: "give the path of an audit database"}
	case version > schemaVersion:
		return 0, &Error{Code: CodeVersion, Path: path,
			Msg:  fmt.Sprintf("the log has schema version %d, this program knows versions up to %d", version, schemaVersion),
			Hint: "use a newer agentd"}
	}
	return version, nil
}

// migrate brings the database from version to the newest in one transaction,
// of which finish, if any, is the last part.
func migrate(ctx context.Context, conn *sql.Conn, path string, version int, finish func(*sql.Tx) error) error {
	if version == schemaVersion {
		return nil
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return fault(path, "migrating the schema", err)
	}
	defer tx.Rollback()
	steps := migrations()
	for _, step := range steps[version:] {
		for _, statement := range step {
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return fault(path, "migrating the schema", err)
			}
		}
	}
	pragmas := fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, schemaVersion)
	if _, err := tx.ExecContext(ctx, pragmas); err != nil {
		return fault(path, "migrating the schema", err)
	}
	if finish != nil {
		if err := finish(tx); err != nil {
			return fault(path, "migrating the schema", err)
		}
	}
	return fault(path, "migrating the schema", tx.Commit())
}

// checkSchema makes sure that the database has the tables of the current
// version as this package made them, and no trigger, which could change or
// drop what is written. Further views, tables and indexes do no harm.
func checkSchema(ctx context.Context, q querier, path string) error {
	rows, err := q.QueryContext(ctx, `SELECT type, name, coalesce(sql, '') FROM sqlite_schema`)
	if err != nil {
		return fault(path, "reading the schema", err)
	}
	defer rows.Close()
	found := map[string]bool{}
	for rows.Next() {
		var kind, name, text string
		if err := rows.Scan(&kind, &name, &text); err != nil {
			return fault(path, "reading the schema", err)
		}
		if kind == "trigger" {
			return schemaAltered(path, "trigger "+name+" was added")
		}
		found[text] = true
	}
	if err := rows.Err(); err != nil {
		return fault(path, "reading the schema", err)
	}
	for _, step := range migrations() {
		for _, statement := range step {
			if !found[statement] {
				subject, _, _ := strings.Cut(strings.TrimPrefix(statement, "CREATE "), "(")
				return schemaAltered(path, strings.TrimSpace(subject)+" was changed or removed")
			}
		}
	}
	return nil
}

func schemaAltered(path, what string) error {
	return &Error{Code: CodeTampered, Path: path, Msg: "the schema was altered: " + what,
		Hint: "keep the file as evidence and restore a backup"}
}
