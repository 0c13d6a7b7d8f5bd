// Package progress shows on a terminal how far long work has come: one line on standard
// error that says what is done, at which rate, which share and how long it will take, and
// that is gone when the work is over. Where standard error is no terminal, it writes
// nothing at all.
package progress
