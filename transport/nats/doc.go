// Package nats carries messages over a NATS system: one server, a cluster or a
// super-cluster (https://docs.nats.io).
//
// [Connect] opens one connection; a process needs no more. Topics are subjects
// as they stand, queue groups are NATS queue groups, and an inbox is one wildcard
// subscription whose last subject part is the reply token, so that a call makes
// no subscription of its own.
//
// # Faults
//
// A connection that breaks is made again, for as long as it takes. Until then
// nothing is kept back: publishing fails with [transport.Disconnected], since a
// request that is sent later than its caller waits does harm only. Inboxes
// get a notice at once. A server that falls silent is found by pings
// ([Options] PingInterval), one that takes no bytes by [Options] WriteTimeout.
//
// # Secrets
//
// Options hold no secret. They name files, or hold references that
// [Connect] resolves: env:NAME and file:/path. A password that stands in clear
// in the URL of a server is refused.
package nats
