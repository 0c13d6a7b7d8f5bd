// Package gojsonschema puts the library github.com/xeipuuv/gojsonschema behind
// the seams of package capability, with the dangerous ends covered.
//
// It does two jobs. [NewSecondOpinion] reviews every schema at load: against the
// draft-07 meta-schema, and each default and example against its own schema,
// with the library and with package schema, which must agree. [Engine]
// validates payloads instead of package schema where agent.yaml says
// "validator: gojsonschema".
//
// The library sees only what it can answer safely and correctly:
//
//   - Text passes our strict JSON check first, so duplicate keys, bad UTF-8 and
//     deep nesting never reach it.
//   - It gets a schema rewritten from the compiled one: patterns in RE2 syntax,
//     counts as plain integers, references inside the document only. It never
//     touches a network or a disk.
//   - Formats are those of package schema. The library has one table of formats
//     for the whole process and no other way to add one. [Compile] therefore
//     adds names with the prefix "agentd-" and changes no existing one: other
//     users of the library in the process notice nothing.
//   - [Compile] refuses schemas on which the library takes exponential time:
//     recursion through oneOf, anyOf, allOf or not, and references that unfold
//     to more than [MaxUnfolded] schemas.
//   - It refuses schemas of the full profile, of which it would not see all keywords.
//   - Numbers that the library cannot hold, or would compare inexactly, make a
//     payload invalid, with keyword "limit": the engine fails closed.
//   - A panic of the library is contained and makes the payload invalid.
package gojsonschema
