// Package mailer sends mail whose recipients and text somebody else chooses: a language
// model, a peer.
//
// The operator chooses the server, the sender and, where there is a list, the recipients.
// What the caller chooses stays within its field:
//
//   - An address is a plain one, without names, quotes, comments or routes. The subject
//     has no control characters, and is shown as the caller wrote it even where it looks
//     like an encoded word. No field can end a header or a mail, or begin another.
//   - The recipients of a mail, its bytes and its time are bounded.
//   - Nothing is sent without TLS, and no password, but to a server on a loopback
//     address. That is checked on the connection itself, after the name was resolved.
//   - A mail goes to all its recipients or to none.
//
// What the server answers, which may repeat addresses, is neither shown to the caller nor
// logged: its status is.
//
// Where to look: config.go reads what the operator lists, address.go judges addresses,
// message.go checks and builds a mail, send.go delivers it, and errors.go puts what went
// wrong in words.
package mailer
