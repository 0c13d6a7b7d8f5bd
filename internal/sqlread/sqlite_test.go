package sqlread_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/agentd/agentd/internal/failure"
	"github.com/agentd/agentd/internal/sqlread"
	"github.com/agentd/agentd/schema"
)

// sqliteFile makes a database with a few tables.
func sqliteFile(t testing.TB, statements ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a b?c#d.db")
	fill(t, path, append([]string{
		`CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, price REAL, data BLOB, at DATETIME, ok BOOLEAN, day DATE)`,
		`INSERT INTO t VALUES (1, 'one', 1.5, x'00ff', '2026-05-01 12:30:00', 1, '2026-05-01')`,
		`INSERT INTO t VALUES (9007199254740993, 'two', 1e300, NULL, NULL, 0, NULL)`,
	}, statements...)...)
	return path
}

func fill(t testing.TB, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+strings.NewReplacer("?", "%3f", "#", "%23").Replace(path))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func openSQLite(t testing.TB, path string, limits sqlread.Limits) *sqlread.SQLite {
	t.Helper()
	if limits.Timeout == 0 {
		limits.Timeout = time.Minute
	}
	db, err := sqlread.OpenSQLite(path, false, limits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func code(err error) failure.Code {
	if e := failure.As(err); e != nil {
		return e.Code
	}
	return ""
}

// query runs a query with parameters as JSON texts and shows the result in one line.
func query(t testing.TB, db sqlread.Database, text string, params ...string) (string, error) {
	t.Helper()
	var raw []json.RawMessage
	for _, p := range params {
		raw = append(raw, json.RawMessage(p))
	}
	result, err := db.Query(t.Context(), text, raw)
	if err != nil {
		if code(err) == "" {
			t.Fatalf("%s: an error of another kind: %v", text, err)
		}
		return "", err
	}
	s, compileErr := schema.Compile([]byte(sqlread.ResultSchema))
	if compileErr != nil {
		t.Fatal(compileErr)
	}
	encoded, marshalErr := json.Marshal(result)
	if v := s.Validate(encoded); marshalErr != nil || len(v) > 0 {
		t.Fatalf("%s: %v, %v", encoded, marshalErr, v)
	}
	var b strings.Builder
	for _, row := range result.Rows {
		b.Write(row)
	}
	if result.Truncated {
		b.WriteString("…")
	}
	return b.String(), nil
}

func TestSQLiteValues(t *testing.T) {
	db := openSQLite(t, sqliteFile(t), sqlread.Limits{})
	for _, row := range []struct {
		query  string
		params []string
		want   string
	}{
		{"SELECT * FROM t WHERE id = ?", []string{"1"}, `{"id":1,"name":"one","price":1.5,"data":"AP8=","at":"2026-05-01T12:30:00Z","ok":1,"day":"2026-05-01T00:00:00Z"}`},
		{"select id, data, price from t where id = ?1", []string{"9007199254740993"}, `{"id":9007199254740993,"data":null,"price":1e+300}`},
		{"SELECT id FROM t ORDER BY id DESC;", nil, `{"id":9007199254740993}{"id":1}`},
		{"SELECT name FROM (SELECT name FROM t ORDER BY price DESC)", nil, `{"name":"two"}{"name":"one"}`},
		{"SELECT 1 AS a, 2 AS a, 3 AS a_2", nil, `{"a":1,"a_2":2,"a_2_2":3}`},
		{"SELECT count(*), 'ü', 9e999, -9e999, NULL", nil, `{"count(*)":1,"'ü'":"ü","9e999":"Infinity","-9e999":"-Infinity","NULL":null}`},
		{"SELECT ? AS a, ? AS b, ? AS c, ? AS d", []string{"null", "true", "1.5", `"'; DROP TABLE t; --"`}, `{"a":null,"b":1,"c":1.5,"d":"'; DROP TABLE t; --"}`},
		{"SELECT name FROM t WHERE name = ?", []string{`"x' OR 1=1 --"`}, ``},
		{"WITH x(n) AS (VALUES (1), (2)) SELECT sum(n) AS s FROM x", nil, `{"s":3}`},
		{"VALUES (1, 'a'), (2, 'b')", nil, `{"column1":1,"column2":"a"}{"column1":2,"column2":"b"}`},
		{"SELECT 1 AS a -- a comment; with a semicolon", nil, `{"a":1}`},
		{"/* first */ SELECT ';' AS a", nil, `{"a":";"}`},
		{"SELECT cast(x'ff41' AS TEXT) AS a", nil, `{"a":"�A"}`},
		{"SELECT name, type FROM pragma_table_info('t') LIMIT 2", nil, `{"name":"id","type":"INTEGER"}{"name":"name","type":"TEXT"}`},
		{"SELECT name FROM sqlite_schema", nil, `{"name":"t"}`},
		{"WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 3) SELECT x FROM c", nil, `{"x":1}{"x":2}{"x":3}`},
	} {
		got, err := query(t, db, row.query, row.params...)
		if err != nil || got != row.want {
			t.Errorf("%s:\ngot  %s, %v\nwant %s", row.query, got, err, row.want)
		}
	}
	result, err := db.Query(t.Context(), "SELECT id, name AS n, 1 FROM t", nil)
	want := []sqlread.Column{{Name: "id", Type: "integer"}, {Name: "n", Type: "text"}, {Name: "1", Type: ""}}
	if err != nil || fmt.Sprint(result.Columns) != fmt.Sprint(want) {
		t.Errorf("%v, %v", result, err)
	}
}

// Every row is refused and changes nothing.
func TestSQLiteAdversary(t *testing.T) {
	path := sqliteFile(t, `CREATE VIRTUAL TABLE f USING fts5(body)`, `INSERT INTO f VALUES ('hello world')`)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(t.TempDir(), "other.db")
	fill(t, outside, "CREATE TABLE secret (a)")
	db := openSQLite(t, path, sqlread.Limits{Rows: 10, Bytes: 10_000, Timeout: time.Minute})
	for _, row := range []struct {
		query string
		want  failure.Code
	}{
		{"DROP TABLE t", failure.NotAllowed},
		{"DELETE FROM t", failure.NotAllowed},
		{"UPDATE t SET name = 'x'", failure.NotAllowed},
		{"INSERT INTO t (name) VALUES ('x')", failure.NotAllowed},
		{"INSERT INTO t (name) VALUES ('x') RETURNING id", failure.NotAllowed},
		{"REPLACE INTO t (id) VALUES (1)", failure.NotAllowed},
		{"CREATE TABLE u (a)", failure.NotAllowed},
		{"CREATE TEMP TABLE u (a)", failure.NotAllowed},
		{"CREATE VIEW v AS SELECT 1", failure.NotAllowed},
		{"CREATE VIRTUAL TABLE v USING fts5(a)", failure.NotAllowed},
		{"ALTER TABLE t RENAME TO u", failure.NotAllowed},
		{"WITH x AS (DELETE FROM t RETURNING id) SELECT * FROM x", failure.InvalidArgument},
		{"WITH x AS (SELECT 1) DELETE FROM t", failure.NotAllowed},
		{"SELECT 1; DROP TABLE t", failure.InvalidArgument},
		{"SELECT 1; SELECT 2", failure.InvalidArgument},
		{"SELECT 1;;", failure.InvalidArgument},
		{"; DROP TABLE t", failure.NotAllowed},
		{"SELECT 1) LIMIT 1) SELECT 2; DROP TABLE t; --", failure.InvalidArgument},
		{"SELECT 1) LIMIT 1), r AS (WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x FROM c) SELECT x FROM c) SELECT * FROM r --", failure.InvalidArgument},
		{"SELECT 1; ) LIMIT 1), r AS (SELECT 2) SELECT * FROM r --", failure.InvalidArgument},
		{"SELECT 1 /* not closed", failure.InvalidArgument},
		{"SELECT * FROM agentd_rows_of_query", failure.InvalidArgument},
		{"PRAGMA query_only = 0", failure.NotAllowed},
		{"PRAGMA writable_schema = 1", failure.NotAllowed},
		{"PRAGMA table_info(t)", failure.InvalidArgument},
		{"PRAGMA database_list", failure.NotAllowed},
		{"SELECT * FROM pragma_database_list", failure.NotAllowed}, // the path of the file
		{"SELECT * FROM pragma_query_only", failure.NotAllowed},
		{"EXPLAIN SELECT 1", failure.InvalidArgument},
		{"EXPLAIN QUERY PLAN SELECT 1", failure.InvalidArgument},
		{"ATTACH '" + outside + "' AS o", failure.NotAllowed},
		{"ATTACH ':memory:' AS o", failure.NotAllowed},
		{"DETACH main", failure.NotAllowed},
		{"VACUUM", failure.NotAllowed},
		{"VACUUM INTO '" + outside + ".copy'", failure.NotAllowed},
		{"REINDEX", failure.NotAllowed},
		{"ANALYZE", failure.NotAllowed},
		{"BEGIN", failure.NotAllowed},
		{"BEGIN IMMEDIATE", failure.NotAllowed},
		{"SAVEPOINT a", failure.NotAllowed},
		{"SELECT load_extension('/tmp/evil.so')", failure.NotAllowed},
		{"SELECT fts3_tokenizer('x', x'00')", failure.InvalidArgument}, // this build has none
		{"SELECT readfile('/etc/passwd')", failure.InvalidArgument},
		{"SELECT writefile('/tmp/x', 'y')", failure.InvalidArgument},
		{"SELECT edit('x')", failure.InvalidArgument},
		{"SELECT * FROM fsdir('/')", failure.InvalidArgument},
		{"INSERT INTO f(f) VALUES ('rebuild')", failure.NotAllowed},
		{"SELECT zeroblob(1000000000)", failure.TooLarge},
		{"SELECT length(randomblob(1000000000))", failure.TooLarge},
		{"SELECT printf('%1000000000d', 1)", failure.TooLarge},
		{"SELECT replace(replace(hex(zeroblob(9000)), '0', hex(zeroblob(9000))), '0', 'xxxxxxxxxx')", failure.TooLarge},
		{"SELECT hex(zeroblob(6000))", failure.TooLarge},
		{"SELECT 'a' LIKE '" + strings.Repeat("%a", 500) + "'", failure.InvalidArgument},
		{"SELECT " + strings.Repeat("1+(", 1000) + "1" + strings.Repeat(")", 1000), failure.InvalidArgument},
		{"SELECT 1" + strings.Repeat(" UNION SELECT 1", 1000), failure.InvalidArgument},
		{"SELECT 1 /*" + strings.Repeat(" ", 70_000) + "*/", failure.InvalidArgument},
		{"SELECT \"no such column\"", failure.InvalidArgument},
		{"SELECT * FROM none", failure.InvalidArgument},
		{"SELECT 1\x00; DROP TABLE t", failure.InvalidArgument},
		{"SELECT '\xff'", failure.InvalidArgument},
		{"SELECT ?", failure.InvalidArgument},
		{"SELECT :name", failure.InvalidArgument},
		{"", failure.InvalidArgument},
		{"-- nothing", failure.NotAllowed},
		{"hello", failure.InvalidArgument},
	} {
		got, err := query(t, db, row.query)
		if code(err) != row.want {
			t.Errorf("%.80s: %.100s, %v; want %s", row.query, got, err, row.want)
			continue
		}
		if cause := errors.Unwrap(err); cause != nil && row.query != "" && strings.Contains(cause.Error(), strings.Fields(row.query)[0]) {
			t.Errorf("%.80s: the log would have parts of the query: %v", row.query, cause)
		}
		for _, internal := range []string{path, "SQL logic", "near", "no such", "syntax error:", "agentd_rows"} {
			if strings.Contains(err.Error(), internal) {
				t.Errorf("%.80s: the error shows %q: %v", row.query, internal, err)
			}
		}
	}
	for want, params := range map[failure.Code][]string{
		failure.InvalidArgument: {`[1]`, `{"a":1}`, `"a\u0000b"`, `12345678901234567890`, `1e999`, `x`, ``, `"` + "\xff" + `"`},
	} {
		for _, p := range params {
			if got, err := query(t, db, "SELECT ?", p); code(err) != want {
				t.Errorf("parameter %s: %s, %v", p, got, err)
			}
		}
	}
	// The connections still read, full-text search included, and nothing has changed.
	if got, err := query(t, db, "SELECT body FROM f WHERE f MATCH 'hello' ORDER BY rank"); err != nil || got != `{"body":"hello world"}` {
		t.Errorf("full-text search: %s, %v", got, err)
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("the file changed, %v", err)
	}
	if files, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); len(files) != 1 {
		t.Errorf("there are %v", files)
	}
	if _, err := os.Stat(outside + ".copy"); err == nil {
		t.Error("a copy was written")
	}
}

// Rows and bytes end a result, and it says so.
func TestSQLiteLimits(t *testing.T) {
	path := sqliteFile(t)
	many := "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT %d) SELECT x FROM c"
	db := openSQLite(t, path, sqlread.Limits{Rows: 3, Bytes: 1000})
	for n, want := range map[int]string{2: `{"x":1}{"x":2}`, 3: `{"x":1}{"x":2}{"x":3}`, 4: `{"x":1}{"x":2}{"x":3}…`, 1_000_000: `{"x":1}{"x":2}{"x":3}…`} {
		if got, err := query(t, db, fmt.Sprintf(many, n)); err != nil || got != want {
			t.Errorf("%d rows: %s, %v", n, got, err)
		}
	}
	db = openSQLite(t, path, sqlread.Limits{Rows: 1000, Bytes: 20})
	if got, err := query(t, db, fmt.Sprintf(many, 100)); err != nil || got != `{"x":1}{"x":2}…` {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := query(t, db, "SELECT 'twenty characters in all' AS a"); code(err) != failure.TooLarge {
		t.Errorf("one row over the limit: %v", err)
	}
}

// A query ends with its time wherever it is: before the first row, and after it, which
// the driver alone would not notice.
func TestSQLiteTime(t *testing.T) {
	db := openSQLite(t, sqliteFile(t), sqlread.Limits{Rows: 10, Timeout: 200 * time.Millisecond})
	const forever = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) "
	for _, text := range []string{
		forever + "SELECT count(*) FROM c",
		forever + "SELECT x FROM c WHERE x = 1 OR x < 0",
		forever + "SELECT a.x FROM c a, c b WHERE a.x + b.x < 0",
		forever + "SELECT x FROM c ORDER BY x DESC",
		forever + "SELECT group_concat(hex(zeroblob(1000))) FROM c",
		"SELECT count(*) FROM t a, t b, t c, t d, t e, t f, t g, t h, t i, t j, t k, t l, t m, t n, t o, t p, t q, t r, t s, t u, t v, t w, t x, t y, t z, t aa, t bb, t cc, t dd, t ee",
	} {
		start := time.Now()
		if got, err := query(t, db, text); code(err) != failure.Timeout {
			t.Errorf("%s: %s, %v", text, got, err)
		}
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("%s took %v", text, took)
		}
	}
	// As many rows as there may be are there at once, so this one does not run out.
	if got, err := query(t, db, forever+"SELECT x FROM c LIMIT 2"); err != nil || got != `{"x":1}{"x":2}` {
		t.Errorf("afterwards: %s, %v", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := db.Query(ctx, "SELECT 1", nil); code(err) != failure.Cancelled {
		t.Error(err)
	}
}

// What SQLite cannot end, one call of a function whose time is the product of the lengths
// of its arguments, gets short ones, in a view too. Other queries keep their limit.
func TestSQLiteFunctionsWithoutEnd(t *testing.T) {
	path := sqliteFile(t, `CREATE TABLE long (a)`, `INSERT INTO long VALUES (printf('%.*c', 20000, 'b'))`,
		`CREATE VIEW trimmed AS SELECT rtrim(a, printf('%.*c', 20000, 'a') || 'b') AS a FROM long`)
	db := openSQLite(t, path, sqlread.Limits{Bytes: 4 << 20})
	const long, longer = "printf('%.*c', 20000, 'b')", "printf('%.*c', 600000, 'b')"
	for text, want := range map[string]failure.Code{
		"SELECT trim(" + long + ", " + long + ")":                failure.TooLarge,
		"SELECT \"lTrim\"(a, a) FROM long":                       failure.TooLarge,
		"SELECT a FROM trimmed":                                  failure.TooLarge,
		"SELECT unhex(" + long + ", " + long + ")":               failure.TooLarge,
		"SELECT json_patch('\"' || " + long + " || '\"', '{}')":  failure.TooLarge,
		"SELECT jsonb_patch('\"' || " + long + " || '\"', '{}')": failure.TooLarge,
		"SELECT instr(" + longer + ", 'x')":                      failure.TooLarge,
		"SELECT replace(" + longer + ", 'x', 'y')":               failure.TooLarge,
		"SELECT instr(" + long + ", 'x')":                        "",
		"SELECT trim(name, 'o'), trim(name) FROM t":              "",
		"SELECT length(a), " + longer + " FROM long":             "",
	} {
		if _, err := query(t, db, text); code(err) != want {
			t.Errorf("%s: %v; want %q", text, err, want)
		}
	}
}

// The file may come later, go, and be replaced; a writer at work is no obstacle.
func TestSQLiteFileComesAndGoes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "later.db")
	db := openSQLite(t, path, sqlread.Limits{})
	if _, err := query(t, db, "SELECT 1"); code(err) != failure.Unavailable {
		t.Errorf("no file: %v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Fatal("the file was made")
	}
	if err := os.WriteFile(path, []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := query(t, db, "SELECT * FROM t"); code(err) != failure.Unavailable {
		t.Errorf("no database: %v", err)
	}
	os.Remove(path)
	fill(t, path, "PRAGMA journal_mode = WAL", "CREATE TABLE t (a)", "INSERT INTO t VALUES (1)")
	if got, err := query(t, db, "SELECT a FROM t"); err != nil || got != `{"a":1}` {
		t.Errorf("when it is there: %s, %v", got, err)
	}
	other := path + ".new"
	fill(t, other, "CREATE TABLE t (a)", "INSERT INTO t VALUES (7)")
	if err := os.Rename(other, path); err != nil {
		t.Fatal(err)
	}
	if got, err := query(t, db, "SELECT a FROM t"); err != nil || got != `{"a":7}` {
		t.Errorf("replaced: %s, %v", got, err)
	}
	writer, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	tx, err := writer.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(t.Context(), "INSERT INTO t VALUES (2)"); err != nil {
		t.Fatal(err)
	}
	if got, err := query(t, db, "SELECT a FROM t"); err != nil || got != `{"a":7}` {
		t.Errorf("while somebody writes: %s, %v", got, err)
	}
}

// A database of write-ahead logging on storage that cannot be written.
func TestSQLiteImmutable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "wal.db")
	fill(t, path, "PRAGMA journal_mode = WAL", "CREATE TABLE t (a)", "INSERT INTO t VALUES (1)", "PRAGMA wal_checkpoint(TRUNCATE)")
	db, err := sqlread.OpenSQLite(path, true, sqlread.Limits{Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if got, err := query(t, db, "SELECT a FROM t"); err != nil || got != `{"a":1}` {
		t.Errorf("%s, %v", got, err)
	}
	if files, _ := filepath.Glob(path + "*"); len(files) != 1 {
		t.Errorf("reading left %v", files)
	}
}

// The authorizer is on the databases of this package, not on every one of the process.
func TestSQLiteLeavesOthersAlone(t *testing.T) {
	path := sqliteFile(t)
	if _, err := query(t, openSQLite(t, path, sqlread.Limits{}), "SELECT 1"); err != nil {
		t.Fatal(err)
	}
	fill(t, path, "INSERT INTO t (name) VALUES ('three')")
}

func FuzzSQLite(f *testing.F) {
	for _, seed := range []string{
		"SELECT 1", "SELECT * FROM t; DROP TABLE t", "SELECT 1) --", "VALUES (1) /*", "PRAGMA user_version = 7", "WITH x AS (SELECT 1) SELECT * FROM x",
		"ATTACH 'x' AS y", "SELECT load_extension('x')", "INSERT INTO t (name) VALUES ('x') RETURNING *", "SELECT ';' AS \"a\"\"b\" FROM t -- ;",
	} {
		f.Add(seed)
	}
	path := sqliteFile(f)
	before, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	db := openSQLite(f, path, sqlread.Limits{Rows: 5, Timeout: 2 * time.Second})
	f.Fuzz(func(t *testing.T, text string) {
		result, err := db.Query(t.Context(), text, nil)
		if err != nil && code(err) == "" {
			t.Fatalf("an error of another kind: %v", err)
		}
		if err == nil && (len(result.Rows) > 5 || len(result.Columns) == 0) {
			t.Fatalf("%v", result)
		}
		if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
			t.Fatalf("%q changed the file, %v", text, err)
		}
	})
}
