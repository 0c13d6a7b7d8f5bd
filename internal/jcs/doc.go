// Package jcs writes JSON in the canonical form of RFC 8785 (JSON
// Canonicalization Scheme), the form over which agentd computes every hash of
// a JSON value: audit records, capability digests, signing forms.
//
// Input is I-JSON (RFC 7493), read by package ijson: duplicate member names,
// invalid UTF-8 and lone surrogates are errors. In the output, members are
// sorted by the UTF-16 code units of their names, strings use the shortest
// escapes, and no white space remains.
//
// # One departure from RFC 8785
//
// RFC 8785 section 3.2.2.3 prints a number the way ECMAScript prints the
// nearest IEEE 754 double, so that 9007199254740992 and 9007199254740993 are
// the same text. A hash over such text would commit to neither. This package
// prints the exact decimal value instead, in the layout of ECMAScript's
// Number::toString. Both agree whenever the number is what ECMAScript itself
// would have printed, which holds for every number that went through a double
// on its way here; they differ only for numbers with more precision than a
// double has, or beyond its range.
//
// The cost is linear in the length of the input times its nesting depth, which
// [MaxDepth] bounds. An exponent is never expanded: 1e999999999 costs ten bytes.
package jcs
