// Package mcpauth gets the tokens with which servers of the Model Context Protocol let their
// clients in: OAuth 2.1 as the protocol's revisions 2025-11-25 and 2026-07-28 have it.
//
// # Two kinds of access
//
// A [Machine] proves itself, by a secret, a key or a token of the platform that it runs on: nobody
// has to be there. A [Person] uses what somebody has agreed to once, at the server's own login
// page ([Config.Login]). That login is kept in a [Store], sealed, and lasts for as long as the
// authorization server renews it. Whoever cannot get a token has an [*Error], which says whether
// somebody has to log in.
//
// # Whom it believes
//
// The server says by its metadata (RFC 9728) where its tokens are had. It is somebody else's
// code, and so is the authorization server, so that
//
//   - all of their documents are fetched within the rules of package netguard, by https, or by
//     http from this machine alone, bounded in size and time, and without redirects;
//   - metadata has to be that of the server: at its own origin, for a resource that it is in;
//   - the metadata of an authorization server has to name the issuer that it was looked up for,
//     and its answer to a login the same one (RFC 9207);
//   - what the operator was given for one authorization server, a secret above all, is bound to its
//     issuer and shown to no other;
//   - a login goes on at the endpoint where it began, whatever the server says later.
//
// A token goes to its server alone. No error has one, nor anything that a server has written but
// the names of its errors.
//
// # Where to look
//
// config.go says what the operator declares, fetch.go reaches servers, discover.go reads their
// metadata, client.go finds out as which client to appear, token.go asks for tokens, machine.go
// and person.go hand them out, login.go is the login itself, store.go keeps it.
//
// The protocol's library has such flows as well (packages auth and oauthex). Of it, the forms of
// documents and challenges are used here. It prefers metadata documents to a client that the
// operator has registered, keeps its tokens in memory, does not name the resource when it renews
// one, and knows no keys.
package mcpauth
