package netguard

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/agentd/agentd/internal/failure"
	"github.com/agentd/agentd/internal/truncate"
)

const (
	maxURLBytes    = 8 << 10
	connectTimeout = 10 * time.Second
	idleTimeout    = 30 * time.Second
	maxIdle        = 16
	// A connection by HTTP/2 on which nothing has come for pingAfter is asked for a sign of
	// life, and closed without one after pingTimeout.
	pingAfter   = 15 * time.Second
	pingTimeout = 10 * time.Second
)

// A Client sends requests within its [Policy]. It is safe for concurrent use.
type Client struct {
	policy    Policy
	rules     rules
	http      *http.Client
	transport *http.Transport
	dialer    *net.Dialer
}

// A Request is what the caller of a tool asks for.
type Request struct {
	Method  string // http.MethodGet if empty
	URL     string
	Header  map[string]string
	Body    []byte
	Timeout time.Duration // the policy's if 0 or longer than that
	// Once has a request not sent again that the server may have begun. net/http does so
	// where a header promises that this does no harm.
	Once bool
}

// A Response is an answer that was read to its end.
type Response struct {
	Status    int
	Header    http.Header
	MediaType string // such as "text/html"; empty if there is no body
	Charset   string // in lower case; empty if the answer names none
	Body      []byte // decompressed
	URL       string // the last one, after redirects
}

// New returns a client. It is an error if the policy lists no host, or anything in it
// cannot be read.
func New(policy Policy) (*Client, error) {
	policy = policy.withDefaults()
	rules, err := policy.compile()
	if err != nil {
		return nil, fmt.Errorf("netguard: %w", err)
	}
	c := &Client{policy: policy, rules: rules}
	c.dialer = &net.Dialer{Timeout: connectTimeout, Resolver: policy.Resolver, ControlContext: c.control}
	c.transport = &http.Transport{
		Proxy:                  nil, // also not from the environment
		DialContext:            c.dialer.DialContext,
		TLSClientConfig:        policy.tls(),
		TLSHandshakeTimeout:    connectTimeout,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // body.go decompresses, and bounds both sides
		MaxResponseHeaderBytes: policy.MaxHeaderBytes,
		MaxIdleConns:           max(maxIdle, policy.IdlePerHost),
		MaxIdleConnsPerHost:    policy.IdlePerHost,
		IdleConnTimeout:        idleTimeout,
		// All requests to a host share one connection by HTTP/2. If it leads nowhere any more,
		// since a gateway has forgotten it, each of them would wait for nothing until the
		// kernel gives it up.
		HTTP2: &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
	}
	c.http = &http.Client{Transport: sender{c}, CheckRedirect: c.checkRedirect}
	return c, nil
}

// Close closes the connections that are kept for later requests.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Do sends a request, follows its redirects and reads the answer. An answer with any
// status is no error. Errors are [failure.Error].
func (c *Client) Do(ctx context.Context, r Request) (*Response, error) {
	timeout := c.policy.Timeout
	if r.Timeout > 0 {
		timeout = min(timeout, r.Timeout)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	req, err := c.request(ctx, r)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, translate(ctx, err)
	}
	defer resp.Body.Close()
	return c.read(ctx, resp)
}

func (c *Client) request(ctx context.Context, r Request) (*http.Request, error) {
	if len(r.URL) > maxURLBytes {
		return nil, failure.Errorf(failure.InvalidArgument, "the URL has more than %d bytes", maxURLBytes)
	}
	u, err := url.Parse(r.URL)
	if err != nil {
		return nil, failure.Errorf(failure.InvalidArgument, "the URL is not valid")
	}
	if err := c.judge(u); err != nil {
		return nil, err
	}
	header, err := sentHeader(r.Header)
	if err != nil {
		return nil, err
	}
	if header.Get("User-Agent") == "" {
		header.Set("User-Agent", "agentd")
	}
	var body io.Reader
	if len(r.Body) > 0 {
		body = bytes.NewReader(r.Body)
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, u.String(), body)
	if err != nil {
		return nil, failure.Errorf(failure.InvalidArgument, "the method or the URL is not valid")
	}
	req.Header = header
	if r.Once {
		once(header)
	}
	return req, nil
}

// once writes the names of the headers in which net/http reads a promise in small letters:
// they are sent all the same, and it does not find them.
func once(h http.Header) {
	for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
		if values, ok := h[name]; ok {
			delete(h, name)
			h[strings.ToLower(name)] = values
		}
	}
}

// Reach connects to the host of a URL, with TLS where the URL has it, and sends nothing. Nil
// says that it can be reached. Errors are [failure.Error].
func (c *Client) Reach(ctx context.Context, address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return failure.Errorf(failure.InvalidArgument, "the URL is not valid")
	}
	if err := c.judge(u); err != nil {
		return err
	}
	port := u.Port()
	if port == "" {
		port = defaultPort(u.Scheme)
	}
	conn, err := c.dialer.DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return translate(ctx, err)
	}
	defer conn.Close() //nolint:errcheck // nothing was sent
	if u.Scheme != "https" {
		return nil
	}
	config := c.policy.tls()
	if config.ServerName == "" {
		config.ServerName = u.Hostname()
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if err := tls.Client(conn, config).HandshakeContext(ctx); err != nil {
		return translate(ctx, err)
	}
	return nil
}

// judge checks a URL against the list of hosts, and brings its host into the form in
// which it was compared.
func (c *Client) judge(u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return failure.Errorf(failure.NotAllowed, "the URL has the scheme %s: only http and https are allowed", truncate.Quote(u.Scheme))
	case u.Opaque != "" || u.Host == "":
		return failure.Errorf(failure.InvalidArgument, "the URL has no host")
	case u.User != nil:
		return failure.Errorf(failure.NotAllowed, "the URL has a user or password before its host, which is not allowed")
	}
	host, err := canonicalHost(u.Hostname())
	if err != nil {
		return errHost(u.Hostname(), err)
	}
	port := u.Port()
	if port == "" {
		port = defaultPort(u.Scheme)
	} else if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return failure.Errorf(failure.InvalidArgument, "the port of the URL is not a number from 1 to 65535")
	} else {
		port = strconv.FormatUint(n, 10)
	}
	if !slices.ContainsFunc(c.rules.hosts, func(r hostRule) bool { return r.matches(host, port, u.Scheme) }) {
		return failure.Errorf(failure.NotAllowed, "the host %s, port %s, is not on this agent's list of hosts", truncate.Quote(host), port)
	}
	// A number that is refused needs no connection to find that out.
	if addr, err := netip.ParseAddr(host); err == nil && !c.rules.addresses.allow(addr) {
		return errAddress()
	}
	u.Host, u.Fragment, u.RawFragment = host, "", ""
	if strings.Contains(host, ":") {
		u.Host = "[" + host + "]"
	}
	if port != defaultPort(u.Scheme) {
		u.Host = net.JoinHostPort(host, port)
	}
	return nil
}

// control runs when a socket is about to connect: the name is resolved, and this is the
// address that the kernel gets. No lookup comes after it.
func (c *Client) control(_ context.Context, network, address string, _ syscall.RawConn) error {
	if !strings.HasPrefix(network, "tcp") {
		return errAddress()
	}
	addr, err := netip.ParseAddrPort(address)
	if err != nil || !c.rules.addresses.allow(addr.Addr()) {
		return errAddress()
	}
	return nil
}

func errAddress() *failure.Error {
	return failure.Errorf(failure.NotAllowed, "the host's address is not on the public internet, and its range is not on this agent's list")
}

// sender adds the operator's credentials to each request, by the host that it is for. It
// stands below the code that follows redirects, so that no redirect carries them on.
type sender struct{ c *Client }

func (s sender) RoundTrip(req *http.Request) (*http.Response, error) {
	out := req.Clone(req.Context())
	out.Header.Set("Accept-Encoding", "gzip")
	if err := s.c.authorize(out); err != nil {
		return nil, err
	}
	return s.c.transport.RoundTrip(out)
}

// authorize adds the operator's credentials for the host of a request to it.
func (c *Client) authorize(out *http.Request) error {
	port := out.URL.Port()
	if port == "" {
		port = defaultPort(out.URL.Scheme)
	}
	for _, cred := range c.rules.credentials {
		if !cred.rule.matches(out.URL.Hostname(), port, out.URL.Scheme) {
			continue
		}
		if out.URL.Scheme != "https" {
			return failure.Errorf(failure.NotAllowed, "this agent has a credential for the host, and sends it by https only")
		}
		out.Header.Set(cred.header, cred.value)
	}
	return nil
}

// translate makes an error of net/http, which names hosts, addresses and files, into one
// for the caller.
func translate(ctx context.Context, err error) *failure.Error {
	if shown := failure.As(err); shown != nil {
		return shown
	}
	// The outer error has the URL, which is the caller's, and its query.
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err
	}
	if ended := failure.Ended(ctx, "the request"); ended != nil {
		return ended.Because(err)
	}
	var noName *net.DNSError
	var certificate *tls.CertificateVerificationError
	var network *net.OpError
	text := "the host broke off, or did not answer with HTTP"
	switch {
	case errors.As(err, &noName) && noName.IsNotFound:
		text = "the name of the host does not exist"
	case errors.As(err, &noName):
		text = "the name of the host cannot be resolved at present"
	case errors.As(err, &certificate):
		text = "the certificate of the host is not valid for it"
	case errors.Is(err, syscall.ECONNREFUSED):
		text = "the host refuses the connection"
	case errors.As(err, &network) && network.Op == "dial":
		text = "the host cannot be reached"
	case strings.Contains(err.Error(), "response headers exceeded"):
		// net/http has no type for it.
		return failure.Errorf(failure.TooLarge, "the headers of the answer are over the limit").Because(err)
	}
	return failure.Errorf(failure.Network, "%s", text).Because(err)
}
