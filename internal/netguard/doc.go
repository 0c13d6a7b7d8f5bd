// Package netguard is an HTTP client for URLs that somebody else chooses: a language
// model, a peer, a page that one of them has read.
//
// The operator lists hosts. Everything else follows from that list and from the address
// that a connection is about to be made to:
//
//   - The URL has to name a listed host, at a listed port, by http or https. So has every
//     URL that an answer redirects to.
//   - The address is checked on the socket itself, after the name was resolved and before
//     the first packet. A name that resolves to another address the second time it is
//     looked up gains nothing: what is checked is what is connected to. Addresses that are
//     not on the public internet are refused, in each of the ways to write them, unless
//     the operator lists their range.
//   - What the caller sent for one host stays there: its headers do not follow a redirect
//     to another origin. Credentials are the operator's and are added to each request by
//     its host.
//   - Time, redirects, the bytes of the headers and of the decompressed body, and the
//     content types are bounded.
//
// Proxies in the environment are not used: the guard would then check the address of the
// proxy, not that of the host.
//
// Where to look: config.go and policy.go read what the operator lists, host.go matches
// hosts, address.go judges addresses, header.go checks headers, client.go sends a
// request, redirect.go follows answers, body.go reads them, and result.go puts them in
// the form that tools show.
package netguard
