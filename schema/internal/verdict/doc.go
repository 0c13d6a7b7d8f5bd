// Package verdict decides whether a payload is valid, straight from its bytes.
//
// A [Validator] belongs to one schema and takes a [Run], the scratch space of one
// pass, from its pool. The pass descends the bytes and the schema together: run.go
// has the pass and the order in which keywords are judged, scalar.go strings and
// numbers, listed.go const and enum, container.go arrays and objects, unique.go
// uniqueItems, combine.go the combinators.
package verdict
