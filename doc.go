// Package agentd holds the kits for skills and clients as files, so that the program can put
// them into a new fleet without a network: those for Python and TypeScript, and of this module
// what a skill in Go is built from.
package agentd
