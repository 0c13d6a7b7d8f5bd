// Package format decides whether a string has a format, and describes the strings of
// each format as languages that the prover can reason about.
//
// The checks are written by hand, because they are faster and report better; the
// languages (language.go) say the same as regular expressions, as closely as these
// can. Tests hold the two to each other.
package format
