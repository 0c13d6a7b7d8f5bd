// Package natsauth derives the permissions of a nats-server from a fleet's files, so
// that the broker itself enforces who may call whom.
//
// [Derive] gives each member that uses NATS a user of its own, which may
//
//   - publish requests to the peers that its peers file lists,
//   - subscribe to its own requests, and to reply inboxes below a prefix of its own,
//   - publish to the inboxes of those that may call it,
//
// and nothing else. It can neither receive nor see another member's requests, nor read
// another member's replies, nor send anything to agents that it neither calls nor
// serves.
//
// JetStream is in an account of its own, which belongs to an operator. A member that
// uses it does so from a further account, which imports exactly what that member needs:
// to pull from its consumer and acknowledge, to publish requests, answers and dead
// letters, and to read the answers to itself. No member can make or change a stream, a
// consumer or a bucket; `agentd fleet provision` does.
//
// Users authenticate with nkeys (Ed25519): the server's configuration contains public
// keys only, and [Rules.EnsureKeys] keeps each seed in a file.
//
// Where to look: rules.go derives the users, permissions.go the subjects of one user,
// jetstream.go what a member uses of JetStream, conflicts.go rejects fleets whose members
// would share subjects, accounts.go names accounts and keys, config.go writes
// nats-server's configuration, and names.go has the names on the broker.
package natsauth
