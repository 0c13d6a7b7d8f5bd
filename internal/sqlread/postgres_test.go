package sqlread_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/failure"
	"github.com/agentd/agentd/internal/pgtest"
	"github.com/agentd/agentd/internal/sqlread"
)

func openPostgres(t testing.TB, url string, limits sqlread.Limits) *sqlread.Postgres {
	t.Helper()
	if limits.Timeout == 0 {
		limits.Timeout = time.Minute
	}
	db, err := sqlread.OpenPostgres(url, false, limits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// admin runs statements as the superuser.
func admin(t testing.TB, url func(string) string, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	for _, s := range statements {
		if _, err := conn.Exec(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// One server serves all parts: it takes seconds to make.
func TestPostgres(t *testing.T) {
	url := pgtest.Start(t)
	admin(t, url,
		`CREATE TABLE t (id bigint PRIMARY KEY, name text, price numeric, data bytea, at timestamptz, made timestamp, day date, ok boolean, doc jsonb, tags text[], f float8, u uuid)`,
		`INSERT INTO t VALUES (9007199254740993, 'one', 12345678901234567890.10, '\x00ff', '2026-05-01 14:30:00.5+02', '2026-05-01 12:30:00', '2026-05-01', true, '{"n": 1.10, "a": [1]}', '{a,"b,c",NULL,""}', 0.1, '0190a5b0-7c1e-7000-8000-000000000001')`,
		`INSERT INTO t (id) VALUES (2)`,
		`CREATE TABLE closed (a int)`, `CREATE SEQUENCE s`,
		`CREATE ROLE reader LOGIN`, `CREATE ROLE writer LOGIN`, `CREATE ROLE files LOGIN IN ROLE pg_read_server_files`, `CREATE ROLE indirect LOGIN NOINHERIT IN ROLE files`,
		`CREATE ROLE replica LOGIN REPLICATION`, `CREATE ROLE caller LOGIN`, `GRANT EXECUTE ON FUNCTION pg_read_file(text) TO caller`,
		`GRANT SELECT ON t TO reader, files`, `GRANT ALL ON t, closed TO writer`, `GRANT ALL ON SEQUENCE s TO writer`, `GRANT CREATE, USAGE ON SCHEMA public TO writer`,
	)
	t.Run("values", func(t *testing.T) { postgresValues(t, openPostgres(t, url("reader"), sqlread.Limits{})) })
	t.Run("adversary", func(t *testing.T) { postgresAdversary(t, url) })
	t.Run("limits", func(t *testing.T) { postgresLimits(t, url) })
	t.Run("roles", func(t *testing.T) { postgresRoles(t, url) })
	t.Run("sessions", func(t *testing.T) { postgresSessions(t, url) })
	t.Run("cancel", func(t *testing.T) { postgresCancel(t, url) })
}

func postgresValues(t *testing.T, db sqlread.Database) {
	for _, row := range []struct {
		query  string
		params []string
		want   string
	}{
		{"SELECT * FROM t WHERE id > $1 ORDER BY id", []string{"2"}, `{"id":9007199254740993,"name":"one","price":12345678901234567890.10,"data":"AP8=","at":"2026-05-01T12:30:00.5Z",` +
			`"made":"2026-05-01T12:30:00Z","day":"2026-05-01","ok":true,"doc":{"a": [1], "n": 1.10},"tags":["a","b,c",null,""],"f":0.1,"u":"0190a5b0-7c1e-7000-8000-000000000001"}`},
		{"SELECT name, ok FROM t WHERE id = 2", nil, `{"name":null,"ok":null}`},
		{"SELECT 1 AS a, 2 AS a;", nil, `{"a":1,"a_2":2}`},
		{"SELECT 'NaN'::float8 AS a, '-Infinity'::float8 AS b, 'NaN'::numeric AS c, 1e300::float8 AS d, 'infinity'::timestamptz AS e, '0044-03-15 BC'::timestamp AS f", nil,
			`{"a":"NaN","b":"-Infinity","c":"NaN","d":1e+300,"e":"infinity","f":"0044-03-15 00:00:00 BC"}`},
		{"SELECT ARRAY[1,NULL,3] AS a, ARRAY[[1,2],[3,4]] AS b, '[2:3]={1,2}'::int[] AS c, '{}'::text[] AS d, ARRAY['{{x'] AS e, ARRAY[true] AS f, ARRAY['\\x00'::bytea] AS g", nil,
			`{"a":[1,null,3],"b":"{{1,2},{3,4}}","c":"[2:3]={1,2}","d":[],"e":["{{x"],"f":[true],"g":["AA=="]}`},
		{"SELECT interval '1 day 2 hours' AS a, '10.0.0.0/8'::cidr AS b, '[1,3)'::int4range AS c, ROW(1,'x') AS d, point(1,2) AS e, time '12:30' AS f", nil,
			`{"a":"P1DT2H","b":"10.0.0.0/8","c":"[1,3)","d":"(1,x)","e":"(1,2)","f":"12:30:00"}`},
		{"SELECT $1::numeric AS a, $2::text AS b, $3::bool AS c, $4::int AS d, $5::jsonb AS e", []string{"12345678901234567890.12345", `"'; DROP TABLE t; --"`, "true", "null", `"{\"x\": 1}"`},
			`{"a":12345678901234567890.12345,"b":"'; DROP TABLE t; --","c":true,"d":null,"e":{"x": 1}}`},
		{"SELECT id FROM t WHERE id = ANY($1)", []string{`"{2,3}"`}, `{"id":2}`},
		{"SELECT $1 AS a", []string{`"x"`}, `{"a":"x"}`},
		{"VALUES (1, 'a'), (2, 'b')", nil, `{"column1":1,"column2":"a"}{"column1":2,"column2":"b"}`},
		{"TABLE t LIMIT 0", nil, ``},
		{"WITH x AS (SELECT 1 AS a) SELECT a FROM x -- the end", nil, `{"a":1}`},
		{"SELECT ';' AS a", nil, `{"a":";"}`},
		{"SELECT count(*) AS n FROM generate_series(1, 1000)", nil, `{"n":1000}`},
		{"SELECT current_setting('transaction_read_only') AS a", nil, `{"a":"on"}`},
	} {
		got, err := query(t, db, row.query, row.params...)
		if err != nil || got != row.want {
			t.Errorf("%s:\ngot  %s, %v (%v)\nwant %s", row.query, got, err, errors.Unwrap(err), row.want)
		}
	}
	result, err := db.Query(t.Context(), "SELECT id, name AS n, tags, ROW(1) AS r FROM t", nil)
	want := []sqlread.Column{{Name: "id", Type: "int8"}, {Name: "n", Type: "text"}, {Name: "tags", Type: "_text"}, {Name: "r", Type: "record"}}
	if err != nil || fmt.Sprint(result.Columns) != fmt.Sprint(want) {
		t.Errorf("%v, %v", result, err)
	}
}

// Every row is refused, or ends with the query's time, with a role that may write where
// the database let it.
func postgresAdversary(t *testing.T, url func(string) string) {
	admin(t, url, `CREATE FUNCTION writes() RETURNS int LANGUAGE plpgsql AS 'BEGIN DELETE FROM t; RETURN 1; END'`)
	db := openPostgres(t, url("writer"), sqlread.Limits{Rows: 10, Bytes: 10_000, Timeout: time.Minute})
	hurried := openPostgres(t, url("writer"), sqlread.Limits{Timeout: 100 * time.Millisecond})
	for _, row := range []struct {
		query string
		want  failure.Code
	}{
		{"DROP TABLE t", failure.InvalidArgument},
		{"DELETE FROM t", failure.InvalidArgument},
		{"UPDATE t SET name = 'x'", failure.InvalidArgument},
		{"INSERT INTO t (id) VALUES (7) RETURNING id", failure.InvalidArgument},
		{"CREATE TABLE u (a int)", failure.InvalidArgument},
		{"CREATE TEMP TABLE u AS SELECT 1", failure.InvalidArgument},
		{"SELECT * INTO u FROM t", failure.InvalidArgument},
		{"WITH x AS (DELETE FROM t RETURNING id) SELECT * FROM x", failure.NotAllowed},
		{"WITH x AS (INSERT INTO t (id) VALUES (7) RETURNING id) SELECT * FROM x", failure.NotAllowed},
		{"WITH x AS (UPDATE t SET name = 'x' RETURNING id) SELECT * FROM x", failure.NotAllowed},
		{"SELECT 1; DROP TABLE t", failure.InvalidArgument},
		{"SELECT 1; COMMIT; DROP TABLE t", failure.InvalidArgument},
		{"SELECT 1;; SELECT 2", failure.InvalidArgument},
		{"COMMIT", failure.InvalidArgument},
		{"ROLLBACK", failure.InvalidArgument},
		{"SET TRANSACTION READ WRITE", failure.InvalidArgument},
		{"SELECT set_config('transaction_read_only', 'off', false)", failure.NotAllowed},
		{"SELECT writes()", failure.NotAllowed},
		{"SELECT nextval('s')", failure.NotAllowed},
		{"SELECT setval('s', 100)", failure.NotAllowed},
		{"SELECT id FROM t FOR UPDATE", failure.NotAllowed},
		{"COPY t TO PROGRAM 'touch /tmp/x'", failure.InvalidArgument},
		{"COPY t TO '/tmp/x'", failure.InvalidArgument},
		{"COPY t FROM '/etc/passwd'", failure.InvalidArgument},
		{"COPY t TO STDOUT", failure.InvalidArgument},
		{"DO $$ BEGIN DELETE FROM t; END $$", failure.InvalidArgument},
		{"CALL x()", failure.InvalidArgument},
		{"LISTEN x", failure.InvalidArgument},
		{"VACUUM", failure.InvalidArgument},
		{"LOCK TABLE t", failure.InvalidArgument},
		{"EXPLAIN ANALYZE DELETE FROM t", failure.InvalidArgument},
		{"PREPARE x AS SELECT 1", failure.InvalidArgument},
		{"FETCH ALL FROM agentd_rows", failure.InvalidArgument},
		{"SELECT pg_read_file('/etc/passwd')", failure.NotAllowed},
		{"SELECT pg_read_binary_file('/etc/passwd')", failure.NotAllowed},
		{"SELECT * FROM pg_ls_dir('/')", failure.NotAllowed},
		{"SELECT * FROM pg_stat_file('/etc/passwd')", failure.NotAllowed},
		{"SELECT lo_import('/etc/passwd')", failure.NotAllowed},
		{"SELECT lo_export(1, '/tmp/x')", failure.NotAllowed},
		{"SELECT dblink('host=/tmp', 'DROP TABLE t')", failure.InvalidArgument},
		{"SELECT pg_reload_conf()", failure.NotAllowed},
		{"SELECT pg_switch_wal()", failure.NotAllowed},
		{"SELECT pg_create_physical_replication_slot('x')", failure.NotAllowed},
		{"SELECT * FROM pg_authid", failure.NotAllowed},
		{"SELECT * FROM pg_hba_file_rules", failure.NotAllowed},
		{"SELECT set_config('role', 'postgres', false)", failure.NotAllowed},
		{"SELECT set_config('session_authorization', 'postgres', false)", failure.NotAllowed},
		{"SELECT set_config('log_statement', 'none', false)", failure.NotAllowed},
		{"SELECT repeat('x', 10000000)", failure.TooLarge},
		{"SELECT repeat('x', 20000)", failure.TooLarge},
		{"SELECT $1", failure.InvalidArgument},
		{"SELECT $1::int", failure.InvalidArgument},
		{"SELECT 'x'::int", failure.InvalidArgument},
		{"SELECT 1 / 0", failure.InvalidArgument},
		{"SELECT * FROM none", failure.InvalidArgument},
		{"SELECT none FROM t", failure.InvalidArgument},
		{"SELEC 1", failure.InvalidArgument},
		{"SELECT 1 /* not closed", failure.InvalidArgument},
		{"SELECT 1\x00; DROP TABLE t", failure.InvalidArgument},
		{"", failure.InvalidArgument},
	} {
		got, err := query(t, db, row.query)
		if code(err) != row.want {
			t.Errorf("%.80s: %.100s, %v (%v); want %s", row.query, got, err, errors.Unwrap(err), row.want)
			continue
		}
		for _, internal := range []string{"relation", "ERROR", "permission denied", "agentd_rows", "DECLARE"} {
			if strings.Contains(err.Error(), internal) {
				t.Errorf("%.80s: the error shows %q: %v", row.query, internal, err)
			}
		}
	}
	for _, text := range []string{
		"SELECT pg_sleep(3600)",
		"SELECT pg_sleep_for('1 hour')",
		"SELECT count(*) FROM generate_series(1, 1000000000000)",
		"WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT 1 FROM c) SELECT count(*) FROM c",
		"SELECT set_config('statement_timeout', '0', false), pg_sleep(3600)",
		"SELECT pg_sleep(0.01), set_config('statement_timeout', '0', true) FROM generate_series(1, 100000)",
	} {
		start := time.Now()
		if got, err := query(t, hurried, text); code(err) != failure.Timeout {
			t.Errorf("%s: %s, %v (%v)", text, got, err, errors.Unwrap(err))
		}
		if took := time.Since(start); took > 30*time.Second {
			t.Errorf("%s took %v", text, took)
		}
	}
	if got, err := query(t, db, "SELECT count(*) AS n FROM t"); err != nil || got != `{"n":2}` {
		t.Errorf("afterwards: %s, %v", got, err)
	}
	if _, err := query(t, openPostgres(t, url("reader"), sqlread.Limits{}), "SELECT * FROM closed"); code(err) != failure.NotAllowed {
		t.Errorf("a table that the role may not read: %v", err)
	}
	if _, err := query(t, db, "SELECT $1::int", `"a payload"`); code(err) != failure.InvalidArgument || strings.Contains(err.Error()+errors.Unwrap(err).Error(), "payload") {
		t.Errorf("a value that does not fit: %v (%v)", err, errors.Unwrap(err))
	}
	if _, err := query(t, db, "SELECT 1,\n  oops FROM t"); err == nil || !strings.Contains(err.Error(), "at character 13 (SQLSTATE 42703)") {
		t.Errorf("the place of a fault: %v", err)
	}
}

func postgresLimits(t *testing.T, url func(string) string) {
	db := openPostgres(t, url("reader"), sqlread.Limits{Rows: 250, Bytes: 100_000})
	for n, want := range map[int]int{0: 0, 1: 1, 99: 99, 100: 100, 101: 101, 249: 249, 250: 250, 251: 250, 1_000_000_000: 250} {
		// The rows are made one by one: a function in FROM would make them all first.
		result, err := db.Query(t.Context(), fmt.Sprintf("SELECT generate_series(1, %d) AS x", n), nil)
		if err != nil || len(result.Rows) != want || result.Truncated != (n > 250) {
			t.Errorf("%d rows: %v, %v", n, result, err)
		}
	}
	small := openPostgres(t, url("reader"), sqlread.Limits{Bytes: 20})
	if got, err := query(t, small, "SELECT generate_series(1, 10) AS x"); err != nil || got != `{"x":1}{"x":2}…` {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := query(t, small, "SELECT 'twenty characters in all' AS a"); code(err) != failure.TooLarge {
		t.Errorf("one row over the limit: %v", err)
	}
}

// A role that reaches the server's files is refused before it runs anything, and is
// accepted once it is an ordinary one: without a restart.
func postgresRoles(t *testing.T, url func(string) string) {
	for role, why := range map[string]string{"postgres": "postgres", "files": "pg_read_server_files", "indirect": "pg_read_server_files", "replica": "replica", "caller": "pg_read_file"} {
		_, err := query(t, openPostgres(t, url(role), sqlread.Limits{}), "SELECT 1")
		if code(err) != failure.Unavailable || !strings.Contains(err.Error(), "role") || strings.Contains(err.Error(), why) && role != why {
			t.Errorf("%s: %v", role, err)
		}
		if cause := errors.Unwrap(err); cause == nil || !strings.Contains(cause.Error(), why) {
			t.Errorf("%s: the log would not say why: %v", role, cause)
		}
	}
	db := openPostgres(t, url("files"), sqlread.Limits{})
	admin(t, url, `REVOKE pg_read_server_files FROM files`)
	if got, err := query(t, db, "SELECT 1 AS a"); err != nil || got != `{"a":1}` {
		t.Errorf("with an ordinary role: %s, %v", got, err)
	}
	trusted, err := sqlread.OpenPostgres(url("postgres"), true, sqlread.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer trusted.Close()
	if _, err := query(t, trusted, "SELECT 1"); err != nil {
		t.Errorf("a role that the operator trusts: %v", err)
	}
	if _, err := sqlread.OpenPostgres("postgres://u:s3cret@host:port/db", false, sqlread.Limits{}); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("a connection string that is none: %v", err)
	}
}

// What one query does to its session is gone for the next one, and a session that the
// server ends is replaced.
func postgresSessions(t *testing.T, url func(string) string) {
	db := openPostgres(t, url("reader"), sqlread.Limits{})
	for _, text := range []string{
		"SELECT set_config('search_path', 'pg_catalog', false)", "SELECT set_config('work_mem', '1GB', false)",
		"SELECT pg_advisory_lock(42)", "SELECT lo_create(4242)", "SELECT pg_notify('x', 'y')",
	} {
		if _, err := query(t, db, text); err != nil && code(err) != failure.NotAllowed { // newer servers refuse lo_create
			t.Errorf("%s: %v", text, err)
		}
	}
	got, err := query(t, db, `SELECT current_setting('search_path') AS p, current_setting('work_mem') AS m,
		(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory') AS l, (SELECT count(*) FROM pg_largeobject_metadata) AS o`)
	if want := `{"p":"\"$user\", public","m":"4MB","l":0,"o":0}`; err != nil || got != want {
		t.Errorf("%s, %v", got, err)
	}
	admin(t, url, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'reader'`)
	// The pool asks a session that was idle for a second whether it is there; one that was
	// not fails one query at most.
	if got, err := query(t, db, "SELECT 1 AS a"); code(err) == failure.Unavailable {
		if got, err = query(t, db, "SELECT 1 AS a"); err != nil {
			t.Errorf("after the sessions ended: %s, %v", got, err)
		}
	} else if err != nil {
		t.Errorf("after the sessions ended: %s, %v", got, err)
	}
}

// A caller who gives up ends the query on the server too.
func postgresCancel(t *testing.T, url func(string) string) {
	db := openPostgres(t, url("reader"), sqlread.Limits{})
	watch, err := pgx.Connect(t.Context(), url("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Close(context.WithoutCancel(t.Context()))
	running := func() (n int) {
		if err := watch.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE usename = 'reader' AND state = 'active' AND query LIKE 'FETCH%'`).Scan(&n); err != nil {
			t.Error(err)
		}
		return n
	}
	until := func(n int) {
		t.Helper()
		eventually.Holds(t, fmt.Sprintf("%d queries run", n), func() bool { return running() == n })
	}
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() { _, err := db.Query(ctx, "SELECT pg_sleep(3600)", nil); failed <- err }()
	until(1)
	cancel()
	if err := <-failed; code(err) != failure.Cancelled {
		t.Error(err)
	}
	until(0)
}

// A server that is not there fails the query, soon, and not the start.
func TestPostgresUnreachable(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "postgres://u:s3cret@" + listener.Addr().String() + "/db?sslmode=disable"
	silent := openPostgres(t, url, sqlread.Limits{Timeout: 200 * time.Millisecond})
	if _, err := query(t, silent, "SELECT 1"); code(err) != failure.Unavailable && code(err) != failure.Timeout || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("a server that says nothing: %v", err)
	}
	listener.Close()
	if _, err := query(t, openPostgres(t, url, sqlread.Limits{}), "SELECT 1"); code(err) != failure.Unavailable || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("no server: %v", err)
	}
}
