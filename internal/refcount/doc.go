// Package refcount keeps things open for as long as somebody uses them: a reload that changes
// nothing about a connection goes on with the one that is there.
package refcount
