// Package natsauth derives the permissions of a nats-server from a fleet's files, so
// that the broker itself enforces who may call whom.
//
// [Derive] gives each member that uses NATS a user of its own, which may
//
//   - publish requests to the peers that its peers file lists,
//   - subscribe to its own requests, and to reply inboxes below a prefix of its own,
//   - reply once to each request that it receives; if one of its capabilities reports
//     progress, with as many messages as a call may report,
//   - use the streams and buckets of its own durable calls and shared limits,
//
// and nothing else. It can neither receive nor see another member's requests, nor read
// another member's replies, nor send replies that nobody asked for.
//
// Users authenticate with nkeys (Ed25519): the server's configuration contains public
// keys only, and [Rules.EnsureKeys] keeps each member's seed in a file.
//
// Where to look: rules.go derives the users, permissions.go the subjects of one user,
// conflicts.go rejects fleets whose members would share subjects, config.go writes
// nats-server's configuration, and names.go has the names on the broker.
package natsauth
