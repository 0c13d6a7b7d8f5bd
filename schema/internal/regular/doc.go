// Package regular decides whether a string exists that lies in some regular
// languages and outside of others, and finds the shortest one.
//
// A language is the set of strings in which an expression of regexp/syntax has
// a match, over code points without surrogates. Its automaton is made
// deterministic only as far as a search walks, so that complement costs
// nothing and intersection never builds a product in advance. Every search is
// bounded by a [Budget] that counts steps, not time, so that the answer does
// not depend on the machine.
package regular
