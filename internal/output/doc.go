// Package output writes what commands have to say: as a table for people, as
// indented JSON, or as one JSON value a line.
package output
