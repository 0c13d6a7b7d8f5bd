// Package ir is the compiled form of a schema, which the compiler makes and the
// validator, the prover and the public view read: an intermediate representation.
//
// A [Schema] is a graph of [Node] values, one for each schema in the source, with a
// rule for the keywords about each type of value. It holds no behaviour but what its
// readers share: which nodes a node leads to, and the look-up of names.
package ir
