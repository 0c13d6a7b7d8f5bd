// Package untested has no tests, and is passed over.
package untested

// Answer has nothing that checks it.
func Answer() int { return 42 }
