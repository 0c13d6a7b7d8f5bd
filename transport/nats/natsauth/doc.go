// Package natsauth turns a fleet's files into permissions for a nats-server, so
// that the broker itself enforces who may call whom.
//
// [Derive] gives each member that uses NATS a user of its own, which may
//
//   - publish requests to the peers that its peers file lists,
//   - subscribe to its own requests, and to reply inboxes below a prefix of its own,
//   - answer each request that it received, once; where a capability tells of its
//     progress, with as many messages as a call may tell,
//
// and nothing else: it can neither take nor see another member's requests, nor
// read its replies, nor send it replies that it did not ask for.
//
// Users are known by nkeys (Ed25519): the server's configuration holds public
// keys alone, and [Rules.EnsureKeys] keeps each member's seed in a file.
package natsauth
