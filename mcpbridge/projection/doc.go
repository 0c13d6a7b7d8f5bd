// Package projection writes the schema of a tool's arguments for the limits of a model
// provider.
//
// Providers that hold a model to a schema while it writes take a part of JSON Schema
// only, and answer a request with any other schema by an error. A projection is the
// nearest schema that the provider takes:
//
//   - Rules that it cannot take are left out, and said in words in the description.
//   - Where it wants each property required, one that is optional may be null instead.
//   - References are replaced by what they lead to.
//   - A value that it has no schema for, such as a map or one that contains itself, is a
//     string with the JSON text of the value.
//
// [Projected.Restore] turns what a model wrote by the projection back into arguments for
// the schema itself, which alone decides whether they are valid. Numbers keep their text.
//
// A projection says what it leaves out ([Drop]). Nearly all of it makes the projection
// accept more than the schema; a Drop that Narrows tells of arguments that the schema
// accepts and that a model cannot write by the projection.
//
// The limits are those of the providers' documentation and libraries in 2026; limits.go
// has them.
package projection
