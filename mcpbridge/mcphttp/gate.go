package mcphttp

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
)

// A Gate holds other endpoints to the rules of this package: from where they may be reached, and
// by which tokens. It does not change.
type Gate struct {
	addresses *addresses
	auth      *authenticator
}

// NewGate returns a gate for those tokens, of which there is at least one, and names of the host,
// see [Config]. No page of a browser passes it.
func NewGate(hosts []string, tokens []Token) (*Gate, error) {
	auth := Auth{Tokens: tokens}
	if err := auth.check(); err != nil {
		return nil, err
	}
	for _, host := range hosts {
		if !validHost(host) {
			return nil, &ConfigError{"Hosts", "must be hosts such as agents.example.com or agents.example.com:8443"}
		}
	}
	return &Gate{newAddresses(hosts, nil), newAuthenticator(context.Background(), auth, slog.New(slog.DiscardHandler), nil)}, nil
}

// Check reports whether an endpoint can be served at an address, as [Handler.Check] does.
func (g *Gate) Check(addr net.Addr, tls bool) error { return check(addr, tls, g.addresses, g.auth) }

// A RefusedError is why a request is not let in.
type RefusedError struct {
	// Status is that of the response, and Text says why.
	Status int
	Text   string
	// Challenge is the header WWW-Authenticate of the response, or "".
	Challenge string
}

// Error implements error.
func (r *RefusedError) Error() string { return r.Text }

var errPage = errors.New("this API is for programs, and for no page in a browser")

// Admit returns the client that makes a request. It reads no body.
func (g *Gate) Admit(r *http.Request) (client string, no *RefusedError) {
	err := g.addresses.refuse(r)
	if err == nil && (len(r.Header.Values("Origin")) > 0 || len(r.Header.Values("Sec-Fetch-Site")) > 0) {
		err = errPage
	}
	if err == nil {
		err = onlyOnce(r.Header)
	}
	if err != nil {
		return "", &RefusedError{Status: http.StatusForbidden, Text: err.Error()}
	}
	who, refused := g.auth.identify(r)
	if refused != nil {
		return "", &RefusedError{Status: refused.status, Text: refused.text, Challenge: g.auth.challenge(refused)}
	}
	return who.client, nil
}
