// Package mcphttp serves the Model Context Protocol over HTTP to clients that it does not trust.
//
// A [Handler] has one endpoint for both eras of the protocol: revisions up to 2025-11-25,
// which have sessions, and 2026-07-28, in which each request stands alone. Behind it are
// servers of the protocol's library, one for each client. What a server offers is its
// maker's affair; the handler decides who reaches which server, and how much of it:
//
//   - Who: a static token, an access token of an OAuth 2.1 issuer, or, on a loopback address
//     alone and only where the configuration names a client for it, nobody in particular.
//   - From where: Host and Origin are held against lists, so that a web page cannot use a
//     browser to reach the endpoint. An address that is not a loopback one takes TLS.
//   - How much: bodies, sessions, calls that run, streams, and the time that a client takes to
//     send and to read are bounded, for each client on its own.
//   - For how long: a call ends when its client has gone, a session when it has been idle,
//     and both when the token that they began with is no longer accepted.
//
// A session belongs to the token that it began with: to any other, it does not exist. What
// one client does is never seen by another.
//
// The library does part of this, or does it for one era. The package adds what it leaves out,
// and takes its place where the two could disagree about what a message says: a message
// reaches the library only if it is strict JSON, has one reading, and is not a batch.
package mcphttp
