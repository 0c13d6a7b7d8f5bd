// Package ctxkey holds the context key of an invocation. Package rpc reads it, and
// the callee's own context type answers to it without the allocation that
// context.WithValue costs.
package ctxkey

// Invocation is the key whose value is an *rpc.Invocation.
type Invocation struct{}
