// Package filelock locks a file for one process at a time, and tells the others
// which process holds it.
package filelock
