// Package chainhash defines what an audit record commits to: the one place
// that turns columns into hashes. The writer, the verifier and the offline
// proof check all call it.
//
// Every hash is SHA-256 over a form that begins with its own name, so that no
// value of one kind can be passed off as a value of another. Variable-length
// fields carry their length; an absent field differs from an empty one.
package chainhash
