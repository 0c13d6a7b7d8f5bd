// Package agentd holds kits for skills and clients as files, so that the program can put them
// into a new fleet without a network: that for TypeScript, and of this module what a skill in Go
// is built from. Package sdk has that for Python.
package agentd
