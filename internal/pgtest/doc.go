// Package pgtest starts a Postgres server for tests: a cluster of the test's own, which
// listens on a Unix socket and is gone when the test ends.
package pgtest
