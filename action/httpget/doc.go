// Package httpget is the action http-get: an HTTP GET of a URL that the caller chooses,
// to the hosts that the operator lists.
//
// Package internal/netguard does the work and says what it guards against.
package httpget
