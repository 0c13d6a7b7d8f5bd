// Package spelling finds the known name that a misspelt one was meant to be,
// for hints such as `did you mean "timeoutMs"?`.
package spelling
