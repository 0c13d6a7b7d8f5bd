// Package auditerr is the error that every operation on an audit log returns,
// and its closed set of codes. SQLite's and the file system's own errors become
// one here, in [Wrap], so that callers never match on driver error numbers.
package auditerr
