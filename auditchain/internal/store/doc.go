// Package store is the SQLite database of an audit log: its schema, how it is
// opened for writing ([OpenWriter]) and for reading ([OpenReader]), and its
// rows. It neither computes hashes nor decides whether a row is genuine.
//
// Every statement that runs on the path of an append is here and prepared once.
// Packages that read for one purpose of their own, such as query and verify,
// keep their statements beside the code that interprets the result, and run
// them on a [DB].
package store
