// Package sqlread runs queries that somebody else writes, a language model or a peer, and
// that read: on SQLite and on Postgres.
//
// What a query may do is decided by the database, not by reading its text:
//
//   - SQLite opens the file read-only and with query_only, cannot attach another one, and
//     asks an authorizer about each thing that a statement does while it compiles it.
//   - Postgres runs the query as a cursor in a READ ONLY transaction that is always rolled
//     back, on a session that is reset after each query. A role that reaches beyond the
//     database, to the server's files, programs or network, is refused: a transaction
//     cannot undo what such a role does.
//
// A query is one statement, which returns rows. Its parameters are bound and never part
// of the text. Rows, bytes and time are bounded; a result says when rows are missing.
//
// Where to look: config.go and query.go are what both have in common, sqlite.go and authorizer.go are
// SQLite, postgres.go, role.go and pgvalue.go are Postgres, and value.go writes values.
package sqlread
