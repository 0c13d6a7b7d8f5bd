// Package dbquery is the action db-query: a query that the caller writes, which reads from
// the SQLite or Postgres database that the operator names.
//
// Package internal/sqlread does the work and says what it guards against.
package dbquery
