// Package identity proves who sent an envelope, and verifies such proofs.
//
// A [Keyring] holds the keys of one agent: those it signs with and those it
// verifies others with. A message carries an HMAC-SHA-256 over its signing form,
// which covers every field except the proof itself: kind, addresses, deadline,
// tenant, headers and payload. The key comes from one of two sources:
//
//   - a [Secret] that two agents share, as in the reference system, which
//     defines this wire form;
//   - key pairs. Each agent knows the [PublicKey] of the other, and both derive
//     the same two HMAC keys, one for each direction.
//
// The derivation is X25519 between the two Ed25519 keys (RFC 7748), then
// HKDF-SHA-256 (RFC 5869) with the addresses and the public keys of sender and
// receiver as context. A proof made for one agent is therefore worthless to
// another, and a message cannot be reflected to its sender.
//
// An HMAC convinces only the two agents, either of which could have made it.
// Anything that has to convince a third party, such as a checkpoint of the audit
// log, is signed with Ed25519 elsewhere.
//
// A key is valid within its [Window]. During a rotation the windows of two keys
// overlap. An agent keeps its own key pairs in a [Store].
package identity
