// Package compat judges a change of an agent's capabilities for the callers that
// were built against the old ones, and keeps lock files of what they were built
// against.
//
// A caller's requests must still be accepted: the old input is contained in the
// new input. Its expectations must still be met: the new output is contained
// in the old output. What a change does is explained by the rules of
// [schema.Explain], with a value that shows it wherever there is one, and by
// a few rules about capabilities as a whole.
package compat
