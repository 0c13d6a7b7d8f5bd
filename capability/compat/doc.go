// Package compat judges a change of an agent's capabilities for the callers that
// were built against the old ones, and keeps lock files of what they were built
// against.
//
// Two rules decide. Requests of old callers must still be accepted, so the old
// input must be contained in the new input. New responses must meet old
// expectations, so the new output must be contained in the old output.
// [contain.Explain] names the differences, with a value that shows the break where
// it finds one; a few rules about capabilities as a whole are added here.
//
// [Compare] judges two documents. A [Lock] stores the published forms of a
// fleet's agents, and [Lock.Check] judges what they offer now against it.
package compat
