package sqlread

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/agentd/agentd/internal/failure"
)

// connLifetime is how long a connection serves, so that what it is wrong about, such as
// a file that was replaced, heals by itself.
const connLifetime = 30 * time.Second

// SQLite is a database in a file.
type SQLite struct {
	db     *sql.DB
	path   string
	limits Limits

	mu   sync.Mutex
	seen os.FileInfo // the file that the connections are to
}

// OpenSQLite returns the database in the file at path, which is opened when a query needs
// it. immutable says that nobody changes the file: it is then read without locks, and
// may lie on read-only storage although it was written with a write-ahead log.
func OpenSQLite(path string, immutable bool, limits Limits) (*SQLite, error) {
	if path == "" || strings.ContainsRune(path, 0) {
		return nil, errors.New("the path of the database is empty, or has a NUL")
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	options := url.Values{
		"mode":          {"ro"},
		"_defensive":    {"1"},
		"_query_only":   {"1"},
		"_busy_timeout": {"2000"},
		"_dqs":          {"0"}, // a misspelt column is an error, not a text
		"_pragma":       {"trusted_schema(0)", "cell_size_check(1)", "mmap_size(0)"},
	}
	if immutable {
		options.Set("immutable", "1")
	}
	c := &connector{dsn: (&url.URL{Scheme: "file", Path: absolute}).String() + "?" + options.Encode()}
	c.driver.RegisterConnectionHook(func(conn sqlite.ExecQuerierContext, _ string) error {
		registerer, ok := conn.(sqlite.AuthorizerRegisterer)
		if !ok {
			return errors.New("the driver has no authorizer")
		}
		return registerer.RegisterAuthorizer(authorize)
	})
	s := &SQLite{db: sql.OpenDB(c), path: absolute, limits: limits.withDefaults()}
	s.db.SetMaxOpenConns(maxConns)
	s.db.SetMaxIdleConns(maxConns)
	s.db.SetConnMaxLifetime(connLifetime)
	return s, nil
}

// connector opens connections with a driver of its own: the one that modernc.org/sqlite
// registers would put the authorizer on every database of the process.
type connector struct {
	driver sqlite.Driver
	dsn    string
}

func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return c.driver.Open(c.dsn)
}

func (c *connector) Driver() driver.Driver { return &c.driver }

// Close closes the connections.
func (s *SQLite) Close() error { return s.db.Close() }

// Query implements [Database]. Parameters are written as ? or ?1.
func (s *SQLite) Query(ctx context.Context, query string, raw []json.RawMessage) (*Result, error) {
	if err := checkQuery(query, raw); err != nil {
		return nil, err
	}
	params, err := readParams(raw)
	if err != nil {
		return nil, err
	}
	args, err := sqliteArgs(params)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.limits.Timeout)
	defer cancel()
	s.renew()
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return nil, sqliteError(ctx, err)
	}
	defer conn.Close() //nolint:errcheck // it goes back to the pool
	result, err := s.query(ctx, conn, query, args)
	if err != nil {
		shown := sqliteError(ctx, err)
		if shown.Code == failure.Unavailable {
			// A connection that cannot read the file does not serve the next query.
			_ = conn.Raw(func(any) error { return driver.ErrBadConn })
		}
		return nil, shown
	}
	return result, nil
}

func (s *SQLite) query(ctx context.Context, conn *sql.Conn, query string, args []any) (*Result, error) {
	if err := s.limit(conn); err != nil {
		return nil, err
	}
	columns, longest, err := compile(conn, query)
	if err != nil {
		return nil, err
	}
	if longest < s.longest() {
		if _, err := sqlite.Limit(conn, sqlite3.SQLITE_LIMIT_LENGTH, longest); err != nil {
			return nil, err
		}
	}
	rows, err := conn.QueryContext(ctx, s.wrap(query), args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	if names, err := rows.Columns(); err != nil || len(names) != len(columns) {
		return nil, errOnlySelect().Because(err)
	}
	c := newCollector(columns, s.limits)
	values, targets := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		targets[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return nil, err
		}
		err := c.add(func(dst []byte, i int) ([]byte, error) { return appendSQLite(dst, values[i]), nil })
		if errors.Is(err, errFull) {
			return &c.result, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return &c.result, rows.Err()
}

// renew drops the connections to a file that another one has taken the place of.
func (s *SQLite) renew() {
	info, err := os.Stat(s.path)
	if err != nil {
		return // those that are open still read what they have
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen != nil && !os.SameFile(info, s.seen) {
		s.db.SetMaxIdleConns(0)
		s.db.SetMaxIdleConns(maxConns)
	}
	s.seen = info
}

// longest returns how long a value may be: that of a result, and the statement.
func (s *SQLite) longest() int { return int(min(s.limits.Bytes, 1<<30)) + maxQueryBytes }

// limit bounds what one statement may make SQLite do. The limits belong to a connection,
// and the driver sets them on one that is in use only.
func (s *SQLite) limit(conn *sql.Conn) error {
	for id, value := range map[int]int{
		sqlite3.SQLITE_LIMIT_ATTACHED:            0,
		sqlite3.SQLITE_LIMIT_LENGTH:              s.longest(),
		sqlite3.SQLITE_LIMIT_SQL_LENGTH:          2 * maxQueryBytes,
		sqlite3.SQLITE_LIMIT_EXPR_DEPTH:          200,
		sqlite3.SQLITE_LIMIT_COMPOUND_SELECT:     100,
		sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 200,
		sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER:     maxParams,
		sqlite3.SQLITE_LIMIT_WORKER_THREADS:      0,
	} {
		if _, err := sqlite.Limit(conn, id, value); err != nil {
			return err
		}
	}
	return nil
}

// compile compiles the query by itself and returns its columns, and how long its values
// may be for the functions that it calls. The authorizer judges it here, and what passes
// is whole: its parentheses, quotes and comments are its own.
func compile(conn *sql.Conn, query string) (columns []Column, longest int, err error) {
	longest = math.MaxInt
	err = conn.Raw(func(raw any) error {
		describer, ok := raw.(interface {
			sqlite.AuthorizerRegisterer
			ColumnInfo(query string) ([]sqlite.ColumnInfo, error)
		})
		if !ok {
			return fmt.Errorf("the driver does not describe statements: %T", raw)
		}
		// In place of the connection's, until the next query: it sees the functions of
		// views as well.
		err := describer.RegisterAuthorizer(func(action sqlite.AuthorizerActionCode, arg1, arg2, arg3, arg4 string) sqlite.AuthorizerReturnCode {
			if n := quadratic(arg2); action == sqlite.AuthFunction && n > 0 {
				longest = min(longest, n)
			}
			return authorize(action, arg1, arg2, arg3, arg4)
		})
		if err != nil {
			return err
		}
		infos, err := describer.ColumnInfo(query)
		for _, info := range infos {
			columns = append(columns, Column{Name: info.Name, Type: strings.ToLower(info.DeclType)})
		}
		return err
	})
	if err == nil && len(columns) == 0 {
		err = errOnlySelect()
	}
	return columns, longest, err
}

// wrap makes the query a part of a statement that computes all rows, up to the limit,
// before it returns the first one. The driver watches a context only until then: a
// query that finds one row at once and looks for the next one for ever would not end.
//
// A second statement in the query, which compile did not see, is a fault of syntax
// here, within the parentheses, and so is everything that is no SELECT.
func (s *SQLite) wrap(query string) string {
	query = strings.TrimSpace(query)
	query = strings.TrimSuffix(query, ";")
	return "WITH agentd_rows_of_query AS MATERIALIZED (SELECT * FROM (\n" + query + "\n) LIMIT " +
		strconv.Itoa(s.limits.Rows+1) + ") SELECT * FROM agentd_rows_of_query"
}

func sqliteArgs(params []param) ([]any, error) {
	args := make([]any, len(params))
	for i, p := range params {
		args[i] = p
		number, ok := p.(json.Number)
		if !ok {
			continue
		}
		if n, err := strconv.ParseInt(number.String(), 10, 64); err == nil {
			args[i] = n
			continue
		}
		f, err := number.Float64()
		if err != nil || !strings.ContainsAny(number.String(), ".eE") {
			// An integer beyond 64 bits would be rounded, and compare as another one.
			return nil, failure.Errorf(failure.InvalidArgument, "parameter %d is a number beyond what the database has", i+1)
		}
		args[i] = f
	}
	return args, nil
}

func appendSQLite(dst []byte, value any) []byte {
	switch v := value.(type) {
	case nil:
		return append(dst, "null"...)
	case int64:
		return strconv.AppendInt(dst, v, 10)
	case float64:
		return appendFloat(dst, v)
	case bool:
		return strconv.AppendBool(dst, v)
	case string:
		return appendText(dst, v)
	case []byte:
		return appendBytes(dst, v)
	case time.Time:
		return appendTime(dst, v)
	}
	return appendText(dst, fmt.Sprint(value))
}

// sqliteError makes an error of the driver, which repeats the query and names files, into
// one for the caller.
func sqliteError(ctx context.Context, err error) *failure.Error {
	if shown := failure.As(err); shown != nil {
		return shown
	}
	if ended := failure.Ended(ctx, "the query"); ended != nil {
		return ended.Because(err)
	}
	code := -1
	var coded *sqlite.Error
	if errors.As(err, &coded) {
		code = coded.Code() & 0xff
	}
	if strings.Contains(err.Error(), "not authorized") {
		code = sqlite3.SQLITE_AUTH // a function that is denied has the code of a fault of syntax
	}
	unbound := strings.Contains(err.Error(), "missing argument") || strings.Contains(err.Error(), "missing named argument")
	if code != -1 {
		err = fmt.Errorf("SQLite: error %d", coded.Code()) // the text repeats parts of the query
	}
	switch code {
	case sqlite3.SQLITE_AUTH, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		return errOnlySelect().Because(err)
	case sqlite3.SQLITE_TOOBIG:
		return failure.Errorf(failure.TooLarge, "a value of the query is over the limit, which is lower for a query that uses instr, replace, trim, unhex or json_patch").Because(err)
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return failure.Errorf(failure.Unavailable, "the database is busy").Because(err)
	case sqlite3.SQLITE_ERROR, sqlite3.SQLITE_RANGE, sqlite3.SQLITE_MISMATCH:
		return failure.Errorf(failure.InvalidArgument,
			"the query is not valid: its syntax, the name of a table, column or function (sqlite_schema lists them), or a second statement").Because(err)
	case -1:
		if unbound {
			return failure.Errorf(failure.InvalidArgument, "the query has more placeholders than there are parameters")
		}
	}
	return failure.Errorf(failure.Unavailable, "the database cannot be read at present").Because(err)
}
