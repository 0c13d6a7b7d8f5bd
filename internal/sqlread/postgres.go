package sqlread

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/agentd/agentd/internal/failure"
)

const (
	// grace is how long the server's own timeout may take to be heard of. A session
	// whose query ended by it is kept; one that is given up is closed.
	grace = 2 * time.Second
	// cleanup bounds what brings a session back to its beginning.
	cleanup = 5 * time.Second
	// fetchRows is how many rows are asked for at once.
	fetchRows = 100
	// declare stands before the query: its rows are then fetched a few at a time, and the
	// server refuses whatever is no SELECT.
	declare = "DECLARE agentd_rows NO SCROLL CURSOR FOR "
)

// Postgres is a database on a server.
type Postgres struct {
	pool   *pgxpool.Pool
	limits Limits
}

// OpenPostgres returns the database that a connection string leads to. It connects when a
// query needs it, so that a server that is down delays nothing and is found when it is
// back. trustRole accepts a role that reaches beyond the database.
func OpenPostgres(connString string, trustRole bool, limits Limits) (*Postgres, error) {
	limits = limits.withDefaults()
	config, err := pgxpool.ParseConfig(connString)
	if err != nil {
		// The error shows parts of the string.
		return nil, errors.New("the connection string is not one of Postgres, such as postgres://user@host/database")
	}
	config.MaxConns, config.MinConns = maxConns, 0
	config.ConnConfig.ConnectTimeout = limits.Timeout
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		// A row is one message, which is read whole.
		conn.PgConn().Frontend().SetMaxBodyLen(int(min(4*limits.Bytes+(64<<10), 1<<30)))
		if trustRole {
			return nil
		}
		return checkRole(ctx, conn.PgConn())
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return nil, errors.New("the connection string cannot be used")
	}
	return &Postgres{pool: pool, limits: limits}, nil
}

// Close closes the connections.
func (p *Postgres) Close() error {
	p.pool.Close()
	return nil
}

// Query implements [Database]. Parameters are written as $1, and have the type that the
// query needs.
func (p *Postgres) Query(ctx context.Context, query string, raw []json.RawMessage) (*Result, error) {
	if err := checkQuery(query, raw); err != nil {
		return nil, err
	}
	params, err := readParams(raw)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, p.limits.Timeout+grace)
	defer cancel()
	conn, err := p.pool.Acquire(ctx)
	if err != nil {
		return nil, postgresError(ctx, err)
	}
	defer p.release(ctx, conn)
	result, err := p.query(ctx, conn.Conn(), query, pgArgs(params))
	if err != nil {
		return nil, postgresError(ctx, err)
	}
	return result, nil
}

func (p *Postgres) query(ctx context.Context, conn *pgx.Conn, query string, args [][]byte) (*Result, error) {
	session, deadline := conn.PgConn(), time.Now().Add(p.limits.Timeout)
	// Constants and numbers alone: this is the one text that may hold several statements.
	err := session.Exec(ctx, fmt.Sprintf("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;"+
		"SET LOCAL statement_timeout = %[1]d; SET LOCAL lock_timeout = %[1]d; SET LOCAL idle_in_transaction_session_timeout = %[2]d;"+
		"SET LOCAL TimeZone = 'UTC'; SET LOCAL DateStyle = 'ISO'; SET LOCAL IntervalStyle = 'iso_8601'; SET LOCAL bytea_output = 'hex'; SET LOCAL extra_float_digits = 1",
		p.limits.Timeout.Milliseconds(), (p.limits.Timeout+grace).Milliseconds())).Close()
	if err != nil {
		return nil, err
	}
	// The extended protocol takes one statement, and parameters beside it. pgx's own Exec
	// falls back to the simple one, which takes several, where there are no parameters.
	if _, err := session.ExecParams(ctx, declare+query, args, nil, nil, nil).Close(); err != nil {
		return nil, err
	}
	var c *collector
	for {
		if time.Now().After(deadline) {
			return nil, failure.Errorf(failure.Timeout, "the query took longer than it may")
		}
		reader := session.ExecParams(ctx, fmt.Sprintf("FETCH FORWARD %d FROM agentd_rows", fetchRows), nil, nil, nil, nil)
		if c == nil {
			c = newCollector(pgColumns(conn.TypeMap(), reader.FieldDescriptions()), p.limits)
		}
		var full error
		for reader.NextRow() {
			if full != nil {
				continue // at most fetchRows are left; the session is kept
			}
			values, fields := reader.Values(), reader.FieldDescriptions()
			full = c.add(func(dst []byte, i int) ([]byte, error) {
				return appendPostgres(dst, conn.TypeMap(), fields[i].DataTypeOID, values[i]), nil
			})
		}
		tag, err := reader.Close()
		switch {
		case err != nil:
			return nil, err
		case full != nil && !errors.Is(full, errFull):
			return nil, full
		case full != nil || tag.RowsAffected() < fetchRows:
			return &c.result, nil
		}
	}
}

// release ends the transaction, undoes everything that a query can do to its session,
// from settings to advisory locks, and puts it back. A session that this fails on, or
// whose query was given up, is closed.
func (p *Postgres) release(ctx context.Context, conn *pgxpool.Conn) {
	defer conn.Release()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanup)
	defer cancel()
	session := conn.Conn().PgConn()
	for _, statement := range []string{"ROLLBACK", "DISCARD ALL"} {
		if session.IsClosed() {
			return
		}
		if err := session.Exec(ctx, statement).Close(); err != nil {
			_ = conn.Conn().Close(ctx)
			return
		}
	}
}

// pgArgs writes parameters as text. The server reads them as the type that the query
// needs, so that no digit is lost on the way.
func pgArgs(params []param) [][]byte {
	args := make([][]byte, len(params))
	for i, p := range params {
		if p != nil {
			args[i] = fmt.Append(nil, p)
		}
	}
	return args
}

// postgresError makes an error of the server, which shows rows and names, into one for
// the caller: its class, its SQLSTATE and where in the query it is.
func postgresError(ctx context.Context, err error) error {
	if shown := failure.As(err); shown != nil {
		return shown
	}
	var server *pgconn.PgError
	if !errors.As(err, &server) {
		var tooLarge *pgproto3.ExceededMaxBodyLenErr
		switch {
		case errors.As(err, &tooLarge):
			return failure.Errorf(failure.TooLarge, "a row of the result is over the limit: select fewer columns, or parts of them").Because(err)
		case ctx.Err() != nil:
			return failure.Ended(ctx, "the query").Because(err)
		}
		return failure.Errorf(failure.Unavailable, "the database cannot be reached at present").Because(err)
	}
	where := fmt.Sprintf("(SQLSTATE %s)", server.Code)
	if at := int(server.Position) - utf8.RuneCountInString(declare); at > 0 {
		where = fmt.Sprintf("at character %d %s", at, where)
	}
	class := ""
	if len(server.Code) == 5 {
		class = server.Code[:2]
	}
	switch class {
	case "08", "28", "3D", "53", "57", "58": // of the connection and the server: the operator needs the words
	default:
		err = fmt.Errorf("SQLSTATE %s", server.Code) // the words repeat values
	}
	shown := func(code failure.Code, text string) error {
		return failure.Errorf(code, "%s %s", text, where).Because(err)
	}
	switch server.Code {
	case "57014":
		if errors.Is(ctx.Err(), context.Canceled) {
			return failure.Ended(ctx, "the query").Because(err)
		}
		return shown(failure.Timeout, "the query took longer than it may")
	case "25006", "0A000":
		return errOnlySelect().Because(err)
	case "42501":
		return shown(failure.NotAllowed, "the role of this agent may not read that")
	case "42601":
		return shown(failure.InvalidArgument, "the query has an error of syntax, or is not one SELECT (or VALUES, or WITH … SELECT)")
	case "08P01":
		return shown(failure.InvalidArgument, "the number of parameters is not that of the placeholders")
	case "55P03":
		return shown(failure.Unavailable, "somebody else has locked what the query reads")
	}
	switch class {
	case "42":
		return shown(failure.InvalidArgument, "the query names something that is not there (information_schema lists what is), or uses it as another type")
	case "22", "21", "54":
		return shown(failure.InvalidArgument, "a value does not fit where the query or a parameter has it")
	case "25":
		return errOnlySelect().Because(err)
	case "40":
		return shown(failure.Unavailable, "the query met a change that somebody else made")
	}
	return failure.Errorf(failure.Unavailable, "the database cannot answer at present %s", strings.TrimSpace(where)).Because(err)
}
