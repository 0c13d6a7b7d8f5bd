package mailer

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// The limits of a [Config] that sets none, and the highest that one may set.
const (
	DefaultMaxRecipients = 10
	DefaultMaxBytes      = 1 << 20
	DefaultTimeout       = 20 * time.Second

	mostRecipients = 100
	mostBytes      = 25 << 20
	mostTimeout    = 10 * time.Minute
)

// The ways to protect a connection, of [Config.TLS].
const (
	startTLS    = "starttls" // the connection is plain at first; TLS follows before anything else
	implicitTLS = "tls"      // from the first byte on
	noTLS       = "none"     // to loopback addresses only
)

// A Config is what the agent's files say about mail. Secrets are references.
type Config struct {
	// Server is the mail server: a host, or a host and a port.
	Server string `json:"server"`
	// TLS is "starttls", "tls" or "none". If it is empty, port 465 has "tls", a loopback
	// address without a user "none", and everything else "starttls".
	TLS    string `json:"tls,omitempty"`
	CAFile string `json:"caFile,omitempty"` // PEM: in place of the system's authorities
	// User and Password sign in to the server. The password is a reference, such as
	// env:SMTP_PASSWORD.
	User     string `json:"user,omitempty"`
	Password string `json:"password,omitempty"`
	// From is the sender, as in "Reports <reports@example.com>", and ReplyTo who gets
	// the answers.
	From    string `json:"from"`
	ReplyTo string `json:"replyTo,omitempty"`
	// Recipients lists who may be written to: "name@example.com", "*@example.com",
	// "*@*.example.com" (every host below it). Nil: everybody.
	Recipients []string `json:"recipients,omitempty"`

	MaxRecipients int   `json:"maxRecipients,omitempty"` // of one mail
	MaxBytes      int   `json:"maxBytes,omitempty"`      // of the text of one mail
	TimeoutMs     int64 `json:"timeoutMs,omitempty"`     // for a mail from the connection to the server's receipt
}

// ConfigProperties are the members of a [Config] in JSON Schema, for the schemas of
// configurations that have more.
const ConfigProperties = `
    "server": {"type": "string", "minLength": 1},
    "tls": {"type": "string", "enum": ["starttls", "tls", "none"]},
    "caFile": {"type": "string"},
    "user": {"type": "string"},
    "password": {"type": "string"},
    "from": {"type": "string", "minLength": 1},
    "replyTo": {"type": "string"},
    "recipients": {"type": "array", "items": {"type": "string"}, "minItems": 1},
    "maxRecipients": {"type": "integer", "minimum": 1, "maximum": 100},
    "maxBytes": {"type": "integer", "minimum": 1, "maximum": 26214400},
    "timeoutMs": {"type": "integer", "minimum": 1, "maximum": 600000}`

// A Mailer sends mail. It is safe for concurrent use.
type Mailer struct {
	host           string
	port           int
	tls            string
	tlsConfig      *tls.Config
	user, password string
	from           *mail.Address
	replyTo        *mail.Address // nil: none
	recipients     []rule        // nil: everybody

	maxRecipients, maxBytes int
	timeout                 time.Duration
}

// New returns a mailer. It is an error if the configuration leaves the way open for mail
// or a password without TLS, or a reference leads nowhere.
func New(c Config, secret func(ref string) (string, error)) (*Mailer, error) {
	m := &Mailer{
		maxRecipients: min(cmp.Or(max(c.MaxRecipients, 0), DefaultMaxRecipients), mostRecipients),
		maxBytes:      min(cmp.Or(max(c.MaxBytes, 0), DefaultMaxBytes), mostBytes),
		timeout:       min(cmp.Or(time.Duration(max(c.TimeoutMs, 0))*time.Millisecond, DefaultTimeout), mostTimeout),
	}
	if err := m.configureServer(c); err != nil {
		return nil, err
	}
	if err := m.configureUser(c, secret); err != nil {
		return nil, err
	}
	var err error
	if m.from, err = configuredAddress(c.From); err != nil {
		return nil, fmt.Errorf("from: %w", err)
	}
	if c.ReplyTo != "" {
		if m.replyTo, err = configuredAddress(c.ReplyTo); err != nil {
			return nil, fmt.Errorf("replyTo: %w", err)
		}
	}
	if c.Recipients != nil && len(c.Recipients) == 0 {
		return nil, errors.New("recipients: it lists nobody; leave it out to allow everybody")
	}
	for i, text := range c.Recipients {
		r, err := parseRule(text)
		if err != nil {
			return nil, fmt.Errorf("recipients[%d]: %w", i, err)
		}
		m.recipients = append(m.recipients, r)
	}
	return m, nil
}

// MaxRecipients returns how many recipients a mail may have.
func (m *Mailer) MaxRecipients() int { return m.maxRecipients }

// configureServer reads where the server is and how the way there is protected.
func (m *Mailer) configureServer(c Config) error {
	host, port, err := net.SplitHostPort(c.Server)
	if err != nil {
		host, port = strings.Trim(c.Server, "[]"), ""
	}
	if m.host = host; !isHost(host) {
		return errors.New("server: it is no host, as in mail.example.com:587")
	}
	m.tls = c.TLS
	if m.tls == "" {
		switch {
		case port == "465":
			m.tls = implicitTLS
		case isLoopback(host) && c.User == "":
			m.tls = noTLS
		default:
			m.tls = startTLS
		}
	}
	switch m.tls {
	case startTLS:
		m.port = 587
	case implicitTLS:
		m.port = 465
	case noTLS:
		m.port = 25
		if !isLoopback(host) {
			return errors.New("tls: mail goes without TLS to localhost and loopback addresses only")
		}
	default:
		return fmt.Errorf("tls: it is starttls, tls or none, not %q", c.TLS)
	}
	if port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return errors.New("server: the port is not a number from 1 to 65535")
		}
		m.port = int(n)
	}
	m.tlsConfig = &tls.Config{ServerName: strings.TrimSuffix(host, "."), MinVersion: tls.VersionTLS12}
	if c.CAFile == "" {
		return nil
	}
	pem, err := os.ReadFile(c.CAFile)
	if err != nil {
		return fmt.Errorf("caFile: %w", err)
	}
	m.tlsConfig.RootCAs = x509.NewCertPool()
	if !m.tlsConfig.RootCAs.AppendCertsFromPEM(pem) {
		return fmt.Errorf("caFile: %s has no certificate in PEM", c.CAFile)
	}
	return nil
}

func (m *Mailer) configureUser(c Config, secret func(ref string) (string, error)) error {
	switch {
	case c.User == "" && c.Password == "":
		return nil
	case c.User == "" || c.Password == "":
		return errors.New("user and password: one is nothing without the other")
	case m.tls == noTLS:
		// On a loopback port, whoever came first listens.
		return errors.New("tls: a password is sent by TLS only")
	case secret == nil:
		return errors.New("password: there is nothing here to resolve references with")
	}
	password, err := secret(c.Password)
	if err != nil {
		return fmt.Errorf("password: %w", err)
	}
	m.user, m.password = c.User, password
	return nil
}

// configuredAddress reads an address that may have a name.
func configuredAddress(text string) (*mail.Address, error) {
	if strings.ContainsFunc(text, unicode.IsControl) {
		return nil, errors.New("it has control characters")
	}
	read, err := mail.ParseAddress(text)
	if err != nil {
		return nil, errors.New(`it is no address, as in "Reports <reports@example.com>"`)
	}
	// An encoded word may hide what the text does not show.
	if strings.ContainsFunc(read.Name, unicode.IsControl) {
		return nil, errors.New("its name has control characters")
	}
	if _, err := parseAddress(read.Address); err != nil {
		return nil, err
	}
	return read, nil
}

// isHost accepts an IP address and the names that DNS has.
func isHost(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return isDomain(strings.ToLower(strings.TrimSuffix(host, ".")))
}

// isLoopback reports whether a host is one by its spelling. What localhost resolves to
// is checked with the connection.
func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback() || strings.EqualFold(strings.TrimSuffix(host, "."), "localhost")
}
