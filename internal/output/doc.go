// Package output writes the results of commands: as a table for people, as
// indented JSON, or as JSON lines.
package output
