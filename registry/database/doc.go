// Package database is the capability database: queries that read, from the SQLite or
// Postgres database that the agent's file names.
//
// Package internal/sqlread does the work and says what it guards against.
package database
