// Package codegen writes typed clients for the capabilities of an agent, from
// the same compiled schemas that validate its payloads.
//
// [NewAPI] turns a document into one model: names are resolved, schemas have
// become types, recursion goes through named types. An emitter turns the model
// into one source file of a language; [Languages] lists them, and a further
// language is a file with its emitter and its line there.
//
// # Soundness
//
// Every value that a schema accepts is a value of the type made from it; the
// type may accept more, since no type system counts the characters of a string.
// Where a language cannot say what a schema says, its type is wider:
// docs/codegen.md lists where.
//
// # Determinism
//
// The output depends on nothing but the document's content. It holds no time,
// no path and no version of this program, and lines end in LF everywhere, so
// that generated files can be kept under version control and compared.
package codegen
