// Package sidecar reads and writes the files beside an audit database: the
// signing key, the public keys, the newest signed checkpoint, and the lock that
// keeps a second writer out. Each is replaced atomically.
//
// The checkpoint file exists to outlive the database's state: a database that
// is replaced by an older copy contradicts it.
package sidecar
