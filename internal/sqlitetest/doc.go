// Package sqlitetest does to SQLite files what other programs on the machine may do.
package sqlitetest
