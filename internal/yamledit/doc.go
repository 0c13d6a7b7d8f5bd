// Package yamledit edits YAML files that people wrote. What an edit is not about keeps its
// bytes, with comments and blank lines: a program that reads a file into nodes and writes it
// back would lay all of it out anew.
//
// It knows the two places that agentd writes to: an item of a list under a key of the top
// level, and an entry of a mapping under one.
package yamledit
