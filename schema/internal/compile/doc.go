// Package compile turns the JSON of a schema into its compiled form, or says with
// every fault why it refuses.
//
// [Compile] works in rounds. The first walks the source once and makes a node of
// every schema (compile.go, with kinds.go for the keywords of each type and literals.go
// for const and enum); words.go has the hints for what it does not know. Then it finds the targets of $ref and
// fills in what the validator reads (link.go), and refuses or weighs what only shows
// in the whole: loops, nesting, and the work for one value (graph.go).
package compile
