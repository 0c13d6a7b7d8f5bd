// Package gojsonschema is a second opinion: the library
// github.com/xeipuuv/gojsonschema as an engine behind the schemas that package
// schema has compiled, with the dangerous ends covered.
//
// The library is asked only about what it can answer safely and correctly:
//
//   - Text is checked by our strict JSON pass first, so duplicate keys, bad
//     UTF-8 and deep nesting never reach it.
//   - It sees a schema written anew from the compiled one: patterns in RE2
//     syntax, counts as plain integers, references inside the document only. It
//     never touches a network or a disk.
//   - Formats are those of package schema. The library has one table of formats
//     for the whole process and no other way to add one. [Compile] therefore
//     adds names with the prefix "agentd-" to that table and changes none that
//     is there: another user of the library in the same process notices nothing.
//   - [Compile] refuses schemas on which the library takes exponential time:
//     recursion through oneOf, anyOf, allOf or not, and references that unfold
//     to more than [MaxUnfolded] schemas.
//   - Numbers that the library cannot hold, or would compare inexactly, make a
//     payload invalid, with keyword "limit": the engine fails closed.
//   - A panic of the library is contained and makes the payload invalid.
package gojsonschema
