package netguard

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"mime"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// The limits of a [Policy] that sets none.
const (
	DefaultTimeout        = 30 * time.Second
	DefaultMaxBodyBytes   = 1 << 20
	DefaultMaxHeaderBytes = 64 << 10
	DefaultMaxRedirects   = 5
)

// TextTypes are the media types that can be read as text, JSON among them: what tools
// accept where the operator lists no types.
func TextTypes() []string {
	return []string{"application/json", "application/*+json", "text/*", "application/xml", "application/*+xml",
		"application/yaml", "application/javascript", "application/x-ndjson"}
}

// A Policy says what a [Client] may reach, and how much it may bring back. The zero
// policy reaches nothing.
type Policy struct {
	// Hosts lists what may be reached: "example.com", "*.example.com" (every name below
	// it, not itself), "*" (every host), each at the ports of http and https, or with a
	// port of its own as in "example.com:8443" and "example.com:*".
	Hosts []string
	// AllowAddresses lists ranges that may be connected to although they are not public,
	// such as 127.0.0.0/8 or that of a service in the house.
	AllowAddresses []netip.Prefix
	// ContentTypes lists the media types of answers that are accepted: "text/html",
	// "text/*", "application/*+json". Empty: all.
	ContentTypes []string
	// Credentials are added to requests by their host.
	Credentials []Credential
	// Secrets are taken out of answers, as the values of the credentials are.
	Secrets []string

	Timeout        time.Duration // for a whole request with its redirects and the body; the caller may ask for less
	MaxBodyBytes   int64         // after decompression
	MaxHeaderBytes int64
	MaxRedirects   int // DefaultMaxRedirects if 0; none if negative
	// ReturnRedirects has an answer that redirects be an answer like any other. It takes the
	// place of MaxRedirects.
	ReturnRedirects bool
	IdlePerHost     int // connections that are kept for later requests to one host; net/http's default if 0

	RootCAs     *x509.CertPool   // the system's if nil
	Certificate *tls.Certificate // shown to servers that ask for one; none if nil
	ServerName  string           // whom certificates of servers are for; the host of the URL if empty
	Resolver    *net.Resolver    // net.DefaultResolver if nil
}

// A Credential is a header that the operator adds to the requests to a host, by https
// only. The caller neither sees it nor can replace it.
type Credential struct {
	Host   string // as in Policy.Hosts, and no wildcard
	Header string
	Value  string
}

// rules is a policy in the form in which requests are judged by it.
type rules struct {
	hosts       []hostRule
	addresses   addresses
	types       []string
	credentials []credential
	secrets     []string // what is taken out of answers
}

type credential struct {
	rule          hostRule
	header, value string
}

func (p Policy) compile() (rules, error) {
	r := rules{addresses: newAddresses(nil)}
	if len(p.Hosts) == 0 {
		return r, errors.New("no hosts are listed")
	}
	for _, text := range p.Hosts {
		rule, err := parseHost(text)
		if err != nil {
			return r, fmt.Errorf("host %q: %w", text, err)
		}
		r.hosts = append(r.hosts, rule)
	}
	for _, prefix := range p.AllowAddresses {
		if !prefix.IsValid() {
			return r, fmt.Errorf("a range of addresses is not valid: write it as 10.1.2.0/24")
		}
		// Addresses are compared without the prefix that maps IPv4 into IPv6.
		if addr := prefix.Addr(); addr.Is4In6() && prefix.Bits() >= 96 {
			prefix = netip.PrefixFrom(addr.Unmap(), prefix.Bits()-96)
		}
		r.addresses.allowed = append(r.addresses.allowed, prefix.Masked())
	}
	for _, t := range p.ContentTypes {
		media, params, err := mime.ParseMediaType(t)
		if err != nil || len(params) > 0 || strings.Count(media, "/") != 1 {
			return r, fmt.Errorf("content type %q: write it as text/html, text/* or application/*+json", t)
		}
		r.types = append(r.types, media)
	}
	secrets := slices.Clone(p.Secrets)
	for _, c := range p.Credentials {
		read, err := c.compile()
		if err != nil {
			return r, fmt.Errorf("credential for %q: %w", c.Host, err)
		}
		r.credentials = append(r.credentials, read)
		secrets = append(secrets, read.value)
		if _, token, ok := strings.Cut(read.value, " "); ok {
			secrets = append(secrets, token) // that of "Bearer …"
		}
	}
	r.secrets = forms(secrets)
	return r, nil
}

// compile checks a credential. Its errors do not show the value.
func (c Credential) compile() (credential, error) {
	rule, err := parseHost(c.Host)
	switch {
	case err != nil:
		return credential{}, err
	case rule.suffix:
		return credential{}, errors.New("a credential is for one host")
	case !isToken(c.Header) || isReserved(c.Header):
		return credential{}, fmt.Errorf("%q is not a header that can be set", c.Header)
	case c.Value == "" || !isFieldValue(c.Value):
		return credential{}, fmt.Errorf("the value of %q is empty or not valid in a header", c.Header)
	}
	return credential{rule, c.Header, c.Value}, nil
}

func (p Policy) withDefaults() Policy {
	if p.Timeout <= 0 {
		p.Timeout = DefaultTimeout
	}
	if p.MaxBodyBytes <= 0 {
		p.MaxBodyBytes = DefaultMaxBodyBytes
	}
	if p.MaxHeaderBytes <= 0 {
		p.MaxHeaderBytes = DefaultMaxHeaderBytes
	}
	if p.MaxRedirects == 0 {
		p.MaxRedirects = DefaultMaxRedirects
	}
	return p
}

// tls is what connections to servers are made with.
func (p Policy) tls() *tls.Config {
	config := &tls.Config{RootCAs: p.RootCAs, ServerName: p.ServerName, MinVersion: tls.VersionTLS12}
	if p.Certificate != nil {
		config.Certificates = []tls.Certificate{*p.Certificate}
	}
	return config
}
