package sqlitetest

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// Lock keeps others from writing to a file until unlock is called, or the test ends.
func Lock(t testing.TB, path string) (unlock func() error) {
	t.Helper()
	db, err := sql.Open("sqlite", path+"?_pragma=busy_timeout(30000)") // whoever owns the file may be writing
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	conn, err := db.Conn(t.Context())
	if err == nil {
		_, err = conn.ExecContext(t.Context(), "BEGIN IMMEDIATE")
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() error {
		_, err := conn.ExecContext(context.Background(), "ROLLBACK")
		return errors.Join(err, conn.Close(), db.Close())
	}
}
