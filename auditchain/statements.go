package auditchain

import (
	"context"
	"database/sql"
	"errors"

	"golang.org/x/mod/sumdb/tlog"
)

// statements are what the writer runs for every batch, prepared once.
type statements struct {
	begin, commit, insert *sql.Stmt
}

// prepare prepares all statements on a connection whose schema is current.
func (s *statements) prepare(ctx context.Context, conn *sql.Conn) error {
	for _, p := range []struct {
		stmt **sql.Stmt
		text string
	}{
		{&s.begin, `BEGIN IMMEDIATE`},
		{&s.commit, `COMMIT`},
		{&s.insert, `INSERT INTO records
			(seq, ts, tenant, kind, peer, capability, side, correlation, session, body, salt, digest, hash)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`},
	} {
		var err error
		if *p.stmt, err = conn.PrepareContext(ctx, p.text); err != nil {
			return err
		}
	}
	return nil
}

// close releases the statements. SQLite does not close a connection that has an
// open one, and then leaves the write-ahead log behind.
func (s *statements) close() error {
	var errs []error
	for _, stmt := range []*sql.Stmt{s.begin, s.commit, s.insert} {
		if stmt != nil {
			errs = append(errs, stmt.Close())
		}
	}
	return errors.Join(errs...)
}

// run runs a statement without parameters. Nothing interrupts the writer in
// the middle of a transaction, so there is no context.
func (*statements) run(stmt *sql.Stmt) error {
	_, err := stmt.ExecContext(context.Background())
	return err
}

// insertRecord writes one row of the table records.
func (s *statements) insertRecord(p *prepared, hash tlog.Hash) error {
	h, c := &p.header, &p.content
	_, err := s.insert.ExecContext(context.Background(), h.Seq, h.Time, h.Tenant, h.Kind,
		nullable(c.Peer), nullable(c.Capability), nullable(c.Side), nullable(c.Correlation), nullable(c.Session),
		string(c.Body), p.salt[:], h.Digest[:], hash[:])
	return err
}

// nullable is NULL for an absent column.
func nullable(s string) any {
	if s == "" {
		return nil
	}
	return s
}
