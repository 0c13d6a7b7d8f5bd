// Package identity proves who sent an envelope, and checks such proofs.
//
// A [Keyring] holds what one agent can prove and what it expects of others. A
// message carries an HMAC-SHA-256 over its signing form, which covers every
// field but the proof itself: kind, addresses, deadline, tenant, headers and
// payload. Where the key comes from differs:
//
//   - a [Secret] is shared by two agents, as in the reference system, whose
//     wire form this is;
//   - a [PublicKey] is all that others need to know of an agent with a key
//     pair. Two agents derive their HMAC keys from their two key pairs, one
//     for each direction.
//
// The derivation takes the X25519 form of both Ed25519 keys (RFC 7748), and
// HKDF-SHA-256 (RFC 5869) over their shared secret, with the addresses and the
// public keys of sender and receiver as context. So a proof made for one
// agent means nothing to another, and a message cannot be sent back as an
// answer.
//
// An HMAC convinces the two agents and nobody else: either of them could have
// made it. What a third party must believe is signed with Ed25519 elsewhere
// (checkpoints of the audit log).
//
// Keys have a [Window] in which they count, so that two of them can overlap
// while they are changed. An agent keeps its own in a [Store].
package identity
