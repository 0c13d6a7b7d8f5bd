// Package reference makes the reference pages of docs/reference, the JSON Schemas of the files
// of a fleet for editors, and the OpenAPI description of the control API, from what the program
// itself declares: decoders, routes, types and constants.
//
// What the code cannot say, a meaning, a default and an example for each key, is in tables
// beside this package. The decoders read the examples, and are traced: a key that they ask for
// and no table has fails the tests, and so does a row that no decoder asks for.
//
//	go test ./internal/reference -update
//
// writes everything anew.
package reference
