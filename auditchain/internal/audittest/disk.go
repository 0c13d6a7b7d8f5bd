package audittest

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"
	"sync"

	"modernc.org/sqlite"
)

// A Disk stands between a log and the driver. It fails statements as a disk
// would: before they have any effect, or after.
type Disk struct {
	// Strike, if set, runs in place of a statement that is to fail.
	Strike func()

	mu     sync.Mutex
	prefix string // of the statements that fail; guarded by mu
	after  bool   // guarded by mu
	skip   int    // how many to let pass first; guarded by mu
}

// ErrDisk is the error of a statement that a [Disk] fails.
var ErrDisk = errors.New("injected disk error")

// FailNext makes the next statement with the prefix fail, after letting skip of
// them pass. If after is true, the statement takes effect first.
func (d *Disk) FailNext(prefix string, skip int, after bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.prefix, d.skip, d.after = prefix, skip, after
}

// strikes reports whether a statement fails, and whether it takes effect first.
func (d *Disk) strikes(query string) (fails, after bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.prefix == "" || !strings.HasPrefix(query, d.prefix) {
		return false, false
	}
	if d.skip > 0 {
		d.skip--
		return false, false
	}
	d.prefix = ""
	if d.Strike != nil {
		d.Strike()
	}
	return true, d.after
}

// Connect connects to the driver through the disk.
func (d *Disk) Connect(dsn string) (driver.Connector, error) {
	base, err := sqlite.NewConnector(dsn)
	return faultyConnector{base, d}, err
}

type faultyConnector struct {
	driver.Connector
	disk *Disk
}

func (c faultyConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &faultyConn{conn.(sqliteConn), c.disk}, nil
}

// sqliteConn is what database/sql uses of the driver's connection.
type sqliteConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

type faultyConn struct {
	sqliteConn
	disk *Disk
}

func (c *faultyConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return c.disk.exec(query, func() (driver.Result, error) { return c.sqliteConn.ExecContext(ctx, query, args) })
}

func (c *faultyConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if fails, _ := c.disk.strikes(query); fails { // a query has no effect
		return nil, ErrDisk
	}
	return c.sqliteConn.QueryContext(ctx, query, args)
}

func (c *faultyConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	stmt, err := c.sqliteConn.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	return &faultyStmt{stmt.(sqliteStmt), query, c.disk}, nil
}

type sqliteStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

type faultyStmt struct {
	sqliteStmt
	query string
	disk  *Disk
}

func (s *faultyStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return s.disk.exec(s.query, func() (driver.Result, error) { return s.sqliteStmt.ExecContext(ctx, args) })
}

func (d *Disk) exec(query string, run func() (driver.Result, error)) (driver.Result, error) {
	fails, after := d.strikes(query)
	if fails && !after {
		return nil, ErrDisk
	}
	result, err := run()
	if fails && err == nil {
		err = ErrDisk
	}
	return result, err
}
