// Package approval is the signature of a person under a decision about one waiting
// call, in the format of `ssh-keygen -Y sign` and with the SSH keys that people have
// already.
//
// A [Statement] names the call, the decision, and what binds it to this one wait: the
// approval's id, a nonce of the agent that asks, an expiry. Its canonical form (RFC 8785)
// is what is signed, in the namespace [Namespace], so that a signature that a person made
// for anything else, a file or a commit, approves nothing. [Sign] makes a signature, and
// [Verify] checks one against a list of people and their keys; ssh-keygen verifies the same bytes.
//
// The package does no I/O, and whatever it is given it returns an [*Error] rather than
// panic: statements and signatures come from strangers.
package approval
