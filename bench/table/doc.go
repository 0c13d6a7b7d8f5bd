// Command table runs the benchmarks of the schema engine and of the libraries beside it, and
// writes their results into docs/benchmarks.md, between the markers of each table:
//
//	cd bench && (cd ajv && npm install) && go run ./table
//
// With -from it takes the results of an earlier run, in the format of go test -bench.
package main
