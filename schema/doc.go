// Package schema compiles a subset of JSON Schema draft-07 and validates
// payloads against it straight from their bytes.
//
// [Compile] turns a schema into one compiled form that serves validation,
// proofs of containment, samples and code generation; a [Node] is its
// read-only view. [Schema.Valid] answers yes or no, reads the payload once and
// allocates nothing when it is valid; [Schema.Check] and [Schema.Validate]
// also say what is wrong. [Schema.Arguments] is the rule for calls without
// arguments.
//
// # The subset
//
// The keywords are type, enum, const, properties, required,
// additionalProperties, items (one schema), minimum, maximum,
// exclusiveMinimum, exclusiveMaximum, minLength, maxLength, pattern, minItems,
// maxItems, uniqueItems, oneOf, anyOf, allOf, not, $ref, format, and the
// annotations title, description, default, examples and definitions. $schema
// may name draft-07 at the root. Booleans are schemas anywhere but the root.
//
// Compile refuses everything else, with every fault and where it stands:
// unknown keywords, malformed values, unknown formats, patterns that RE2
// cannot express, and a $ref that leads nowhere, leads back to itself without
// consuming input, or has keywords beside it that draft-07 would ignore. A
// $ref is "#/definitions/name" or, for the root, "#". Nothing is ever fetched.
//
// # The full profile
//
// [CompileWith] also takes in what others wrote, if asked for [ProfileFull]: draft-07,
// 2019-09 and 2020-12, told apart by $schema, which is 2020-12 where it is absent. It
// knows the whole vocabulary of validation: beyond the subset multipleOf,
// minProperties and maxProperties, patternProperties, propertyNames, dependentRequired,
// dependentSchemas and dependencies, if, then and else, contains with minContains and
// maxContains, prefixItems, additionalItems, unevaluatedProperties and
// unevaluatedItems. A $ref may lead anywhere in the document, by JSON pointer, $anchor
// or $id, and has siblings where the dialect lets it; $dynamicRef and $recursiveRef are
// resolved by compiling a schema once for each dynamic scope that leads to it.
//
// Nothing is fetched: a reference that leads out of the document is refused by name,
// and so is a $schema other than the three. Keywords that the dialect does not know are
// ignored, as the drafts ask, and [Schema.Remarks] lists them. The content keywords are
// annotations, and so is format unless [CompileOptions] says otherwise.
//
// A [Node] shows all of it to those who translate schemas: [Node.Unread] names what a
// translator of the subset would drop, and [Node.Keywords] has every keyword as written.
//
// A schema of the subset means the same in both profiles, but for format.
//
// # Values
//
// Payloads are I-JSON (RFC 7493): repeated member names, invalid UTF-8 and
// lone surrogates make them malformed. Lengths count code points. Numbers are
// compared exactly at any size, so that 2^53 and 2^53+1 differ, 1.0 is an
// integer, and an exponent never costs memory. Patterns are ECMA-262 with the
// flag u: seen as code points, unanchored, and sensitive to case. Formats are
// asserted: uuid by RFC 9562, email by the Mailbox of RFC 5321, uri and
// uri-reference by RFC 3986, date-time by RFC 3339.
//
// # Hostile payloads
//
// Time and memory are proportional to the size of the payload, whatever it
// holds: hashes are keyed, recursive combinations are judged through a memo,
// and depth, size and the number of listed violations are bounded by [Limits].
//
// Schemas have a part in the cost all the same: each branch of a union may read the
// whole payload again. [Limits].MaxSteps bounds the sum of it, and [Schema.CheckWithin]
// ends with its context. A payload beyond either is neither valid nor invalid, but
// [Exceeded].
//
// A pattern costs one table look-up for each character if its automaton is
// small, which holds for nearly all. Otherwise a character costs at most 2048
// operations on machine words, about a microsecond, and for counted repetitions
// such as a.{0,400}b far less. Compile refuses patterns that could cost more, and
// names the part that is too large. A string of the wrong length is judged by
// neither pattern nor format, so that maxLength bounds both.
//
// # Hostile schemas
//
// Schemas may come from peers as well. Compile bounds their size, their nesting,
// and the work on all patterns together; [CompileWithin] has limits and a context.
// Proofs count steps, see the Budget of package contain.
//
// # Where things are
//
// This package is the face: the calls, and what they answer (report.go lists the
// violations of a call that failed). Each path has a folder of its own:
//
//   - compiling: internal/compile reads a schema, and internal/pattern and
//     internal/format its patterns and formats; what comes out is internal/ir.
//   - a verdict: internal/verdict judges the bytes of a payload by the compiled form.
//   - a proof: contain decides containment, explains differences and finds samples;
//     internal/regular is its algebra of strings.
//
// They share small things: internal/decimal compares numbers, internal/identity
// compares whole values, internal/memo remembers results (both over the one table of
// internal/hashtable), and internal/jsontree and internal/jsonptr know schemas as JSON.
package schema
