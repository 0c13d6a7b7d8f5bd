// Package byhand is what the benchmarks of package envelope compare it with: a codec for the
// envelope as somebody writes it who has this one message to read and write, and nothing else.
// It is as strict as the package and returns the same, but that it takes escapes in payloads
// only, and of proofs only the claim without one. It reports a fault without saying which.
package byhand
