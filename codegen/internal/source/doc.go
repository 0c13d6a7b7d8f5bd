// Package source writes the parts of generated files that are alike in every
// language: the header, comments and string literals.
package source
