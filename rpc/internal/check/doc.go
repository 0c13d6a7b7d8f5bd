// Package check holds the checks that both ends of a call make in the same way,
// with the records that they must write: the payload against its contract, the
// proof of a message's sender, and the error of an exhausted rate limit.
package check
