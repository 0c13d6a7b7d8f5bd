// Package pattern compiles the patterns of ECMA-262 and matches them in time
// proportional to the text.
//
// [Compile] translates the source to RE2 (translate.go, class.go) and chooses how to
// run it: by a complete automaton (dfa.go), which costs one look-up for each
// character, or where that would be too large by one that follows all ways through
// the pattern at once (parallel.go) and remembers where it came through (lazy.go). Both
// are built by the subset construction of subset.go. What every match must hold is
// searched for first (literal.go). A pattern that neither can run within its bounds is refused, and size.go
// finds the part of it that is too large.
package pattern
