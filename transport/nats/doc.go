// Package nats carries messages over a NATS system: one server, a cluster or a
// super-cluster (https://docs.nats.io).
//
// [Connect] opens one connection; a process needs no more. Topics map to subjects
// unchanged, queue groups are NATS queue groups, and an inbox is one wildcard
// subscription whose last subject part is the reply token, so that a call needs no
// subscription of its own.
//
// Where to look: conn.go publishes and drains, events.go handles what nats.go reports
// about the connection, subscription.go is the queue between nats.go and a handler,
// overflow.go is what happens to the messages that find no room there, liveness.go finds out whether a caller still listens, and options.go, servers.go,
// context.go and environment.go decide where to connect and as whom.
//
// # Faults
//
// A connection that breaks is re-established, for as long as it takes. Meanwhile
// nothing is buffered: publishing fails with [transport.Disconnected], since a request
// that is sent after its caller has given up can only do harm. Inboxes get a notice at
// once. Pings detect a server that falls silent ([Options] PingInterval), and a
// timeout one that accepts no bytes ([Options] WriteTimeout).
//
// # Secrets
//
// Options contain no secrets. They name files, or contain references that
// [Connect] resolves: env:NAME and file:/path. A password in plain text in the URL of
// a server is rejected.
package nats
