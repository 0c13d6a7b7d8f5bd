// Package codegen writes typed clients for the capabilities of an agent, from
// the same compiled schemas that validate its payloads.
//
// [NewAPI] turns a document into types; [Language.Generate] writes them down in
// one language, and [File.Write] puts the result into a folder. Inside,
// codegen/internal/model holds the types, and there is a package for each
// language that reads them and nothing else: golang, python and typescript.
//
// A client stands on the kit of its language: codegen/typed and skill/sdk, or the packages
// in the folder sdk. [Language.Standalone] writes one that brings with it what it runs on.
//
// # Soundness
//
// Every value that a schema accepts is a value of the type made from it; the
// type may accept more, since no type system counts the characters of a string.
// Where a language cannot express a schema, its type is wider: docs/codegen.md
// lists where.
//
// # Determinism
//
// The output depends on nothing but the document's content. It holds no time,
// no path and no version of this program, and lines end in LF everywhere, so
// that generated files can be kept under version control and compared.
package codegen
