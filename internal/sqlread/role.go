package sqlread

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/agentd/agentd/internal/failure"
)

// reach finds what lets a role leave the database: being a superuser, the attribute
// REPLICATION, roles that are given the server's files and programs, and functions that
// use files or open connections. dblink and postgres_fdw would also write, in transactions
// of their own, and functions of replication make slots, which no rollback removes and
// which keep the server's log until its disk is full.
// Members of a role count, since SET ROLE is one function call away.
const reach = `
SELECT 'is a member of ' || rolname, rolsuper FROM pg_catalog.pg_roles
WHERE (rolsuper OR rolreplication OR rolname IN ('pg_read_server_files', 'pg_write_server_files', 'pg_execute_server_program', 'pg_signal_backend', 'pg_maintain', 'pg_checkpoint'))
  AND pg_catalog.pg_has_role(session_user, oid, 'MEMBER')
UNION ALL
SELECT 'may call ' || proname, false FROM pg_catalog.pg_proc
WHERE (proname LIKE 'dblink%' OR proname LIKE 'postgres_fdw%' OR proname IN ('pg_file_write', 'pg_file_unlink', 'pg_file_rename', 'pg_read_file', 'pg_read_binary_file', 'pg_ls_dir', 'pg_stat_file', 'lo_import', 'lo_export', 'http_get', 'http_post', 'http'))
  AND pg_catalog.has_function_privilege(session_user, oid, 'EXECUTE')
ORDER BY 2 DESC, 1 LIMIT 5`

// checkRole refuses a role that reaches beyond the database. The caller learns that it
// is so, the operator's log why.
func checkRole(ctx context.Context, session *pgconn.PgConn) error {
	result := session.ExecParams(ctx, reach, nil, nil, nil, nil).Read()
	if result.Err != nil {
		return result.Err
	}
	if len(result.Rows) == 0 {
		return nil
	}
	var why []string
	for _, row := range result.Rows {
		why = append(why, string(row[0]))
	}
	return failure.Errorf(failure.Unavailable, "the database role of this agent may do more than to read the database: its operator has to give it another").
		Because(fmt.Errorf("the role %q; give it SELECT on what it may read, or set trustRole", why))
}
