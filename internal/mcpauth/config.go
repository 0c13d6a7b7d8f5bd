package mcpauth

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/agentd/agentd/internal/netguard"
)

// A Config is what the operator says about the access to a server.
type Config struct {
	// Name is the server's in errors, URL where it is. Required.
	Name, URL string
	// Policy has the authorities and the ranges of addresses that may be reached besides public
	// ones. Required.
	Policy func() (netguard.Policy, error)
	// Issuer is the only authorization server that is used. "" believes the server.
	Issuer string
	// ClientID is that of a client which the operator has registered. Secret, Key and Assertion
	// return how it proves itself: by a secret, by a private key in PEM, or by a token of the
	// platform that it runs on. They are asked each time, and at most one is set.
	ClientID               string
	Secret, Key, Assertion func() (string, error)
	// Method is how the secret is sent, "client_secret_basic" or "client_secret_post"; "" is what
	// the authorization server takes.
	Method string
	// KeyID and Algorithm are those of Key. "" names no key, and takes the usual algorithm of its
	// type.
	KeyID, Algorithm string
	// Document is the URL of a client id metadata document, or "".
	Document string
	// Scopes are those that are asked for, in place of those that the server names.
	Scopes []string
	// Remedy is the command that logs in, for errors.
	Remedy string
	// Logger takes what goes wrong with what is kept. Nil discards it.
	Logger *slog.Logger
}

func (c *Config) log() *slog.Logger {
	if c.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return c.Logger
}

// checkURL refuses the URL of an endpoint that would be reached without encryption, and what is
// no URL of one. Names other than localhost may lead anywhere.
func checkURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "" || u.Scheme != "https" && u.Scheme != "http":
		return nil, errors.New("it is no URL by https")
	case u.User != nil || u.Fragment != "":
		return nil, errors.New("its URL has a user or a fragment")
	case u.Scheme == "http" && !onThisMachine(u.Hostname()):
		return nil, errors.New("it would be reached without encryption")
	}
	return u, nil
}

func onThisMachine(host string) bool {
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback() || strings.EqualFold(host, "localhost")
}

// origin is what of a URL decides who answers.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}

// Check refuses the URL of a server to which no token may be sent.
func Check(text string) error {
	_, err := checkURL(text)
	return err
}

// within reports whether a resource is that of a URL: the URL itself, or what it stands below.
func within(resource string, of *url.URL) bool {
	r, err := checkURL(resource)
	if err != nil || origin(r) != origin(of) || r.RawQuery != "" && r.RawQuery != of.RawQuery {
		return false
	}
	return r.Path == of.Path || strings.HasPrefix(of.Path, strings.TrimSuffix(r.Path, "/")+"/") || strings.TrimSuffix(r.Path, "/") == of.Path
}

// sameIssuer compares an issuer with what metadata calls it. A slash at the end is left out by
// some servers.
func sameIssuer(a, b string) bool { return strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/") }

// A Kind says what is to be done about an [Error].
type Kind int

// The kinds.
const (
	// Unreachable: it may be another time.
	Unreachable Kind = iota
	// NeedsLogin: somebody has to log in.
	NeedsLogin
	// NeedsScope: the tokens are good, and not for this call.
	NeedsScope
	// Wrong: the files, or the servers, have to be mended.
	Wrong
)

// An Error is why there is no token. Its text is for callers: it has no token, and of servers
// the names of their errors alone.
type Error struct {
	Kind Kind
	Text string
	Err  error // for the log; may be nil
}

func (e *Error) Error() string { return e.Text }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

func errorf(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Text: fmt.Sprintf(format, args...)}
}

// A Refusal is an answer with which a server lets a request not in.
type Refusal struct {
	// Token is the one that the request had, or "".
	Token string
	// Status is 401 or 403.
	Status int
	Header http.Header
	// Last says that the request is not tried again.
	Last bool
}

// wrong is an error of the files or of a server.
func wrong(format string, args ...any) *Error { return errorf(Wrong, format, args...) }
