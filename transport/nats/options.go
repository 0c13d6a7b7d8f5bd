package nats

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/agentd/agentd/internal/secretref"
)

// Defaults of Options.
const (
	DefaultServer         = natsgo.DefaultURL
	DefaultMaxPending     = 16_384
	DefaultConnectTimeout = 5 * time.Second
	DefaultReconnectWait  = 250 * time.Millisecond
	DefaultPingInterval   = 5 * time.Second
	DefaultWriteTimeout   = 2 * time.Second
)

// maxPingsOut is how many pings may stand unanswered: a server that is silent
// for three intervals is left.
const maxPingsOut = 2

// Options say how to reach a NATS system and who to be there. At most one of
// User, Token, CredsFile and NKeySeedFile is set. The zero value is an anonymous
// connection to a server on this machine.
//
// Wherever a secret belongs there is a reference to it: `env:NAME` or `file:/path`.
type Options struct {
	// Servers are URLs (nats, tls, ws, wss) of servers of one NATS system, or
	// references whose values are such URLs, comma-separated. A URL may hold
	// ${env:NAME} and ${file:/path}; a password in it must be one. Default:
	// those of Context, else [DefaultServer].
	Servers []string
	// Context names a context of the nats command line tool, or is
	// [SelectedContext]. What else is set here comes before what it says.
	Context string

	// User is the user name, or a reference to it. Password is a reference.
	User, Password string
	// Token is a reference.
	Token string
	// CredsFile is the path of a credentials file: a JWT and its nkey seed.
	CredsFile string
	// NKeySeedFile is the path of a file with an nkey seed.
	NKeySeedFile string

	// CAFile is the path of the certificates (PEM) that sign servers'. Default:
	// the system's.
	CAFile string
	// CertFile and KeyFile are the paths of the client's certificate and key
	// (PEM), for servers that verify it.
	CertFile, KeyFile string
	// TLSFirst starts TLS before the server has spoken.
	TLSFirst bool

	// Name is shown in the servers' monitoring. Default: "agentd".
	Name string
	// InboxPrefix is the subject that reply inboxes are below. Default: _INBOX.
	InboxPrefix string

	// MaxPending is how many messages a subscription may hold that its handler has
	// not begun. Default [DefaultMaxPending].
	MaxPending int
	// ConnectTimeout bounds connecting to one server, and waiting for a server's
	// word on a subscription. Default [DefaultConnectTimeout].
	ConnectTimeout time.Duration
	// ReconnectWait passes between two attempts at the same server, and up to as
	// much again by chance. Default [DefaultReconnectWait].
	ReconnectWait time.Duration
	// PingInterval is how often a silent connection is tested; after
	// three intervals without an answer it is given up. Default
	// [DefaultPingInterval].
	PingInterval time.Duration
	// WriteTimeout bounds how long a connection may take no bytes. Default
	// [DefaultWriteTimeout].
	WriteTimeout time.Duration

	// Getenv resolves references. Default [os.Getenv].
	Getenv func(string) string
	// Logger gets what happens to the connection. Default: discarded.
	Logger *slog.Logger
}

// Authenticates reports whether o says who to be at the server, as far as that
// can be told without resolving references: in a context or a server's URL there
// may be a name as well.
func (o Options) Authenticates() bool {
	return o.User != "" || o.Token != "" || o.CredsFile != "" || o.NKeySeedFile != "" || o.CertFile != "" || o.Context != ""
}

// A resolved is Options with defaults, and with secrets in place of references.
type resolved struct{ Options }

// An OptionError says which option is wrong.
type OptionError struct {
	// Option is the name of a field of [Options].
	Option string
	// Err is what is wrong; it holds no secret.
	Err error
}

func (e *OptionError) Error() string { return e.Option + ": " + e.Err.Error() }

// Unwrap returns Err.
func (e *OptionError) Unwrap() error { return e.Err }

// resolve checks o, reads the context and resolves every reference. The error
// names every option that is wrong.
func (o Options) resolve() (*resolved, error) {
	o.setDefaults()
	r := &resolved{Options: o}
	if err := r.secrets(); err != nil {
		return nil, err
	}
	if o.Context != "" {
		if err := r.addContext(); err != nil {
			return nil, &OptionError{Option: "Context", Err: err}
		}
	}
	if len(r.Servers) == 0 {
		r.Servers = []string{DefaultServer}
	}
	return r, r.check()
}

func (o *Options) setDefaults() {
	setDefault(&o.Name, "agentd")
	setDefault(&o.MaxPending, DefaultMaxPending)
	setDefault(&o.ConnectTimeout, DefaultConnectTimeout)
	setDefault(&o.ReconnectWait, DefaultReconnectWait)
	setDefault(&o.PingInterval, DefaultPingInterval)
	setDefault(&o.WriteTimeout, DefaultWriteTimeout)
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// secrets replaces every reference by its value.
func (r *resolved) secrets() error {
	var errs []error
	for _, f := range []struct {
		option  string
		value   *string
		literal bool // may stand in clear
	}{
		{"User", &r.User, true}, {"Password", &r.Password, false}, {"Token", &r.Token, false},
	} {
		if *f.value == "" || f.literal && !secretref.Is(*f.value) {
			continue
		}
		value, err := secretref.Resolve(*f.value, r.Getenv)
		if err != nil {
			errs = append(errs, &OptionError{Option: f.option, Err: err})
		}
		*f.value = value
	}
	servers := r.Servers
	r.Servers = nil
	for _, s := range servers {
		urls, err := resolveServer(s, r.Getenv)
		if err != nil {
			errs = append(errs, &OptionError{Option: "Servers", Err: err})
		}
		r.Servers = append(r.Servers, urls...)
	}
	return errors.Join(errs...)
}

// resolveServer returns the URLs that one entry of Servers stands for.
func resolveServer(s string, getenv func(string) string) ([]string, error) {
	if inner, ok := strings.CutPrefix(s, "${"); ok && strings.HasSuffix(inner, "}") && secretref.Is(inner[:len(inner)-1]) {
		s = inner[:len(inner)-1] // all of it is one reference
	}
	var urls []string
	if secretref.Is(s) {
		value, err := secretref.Resolve(s, getenv)
		if err != nil {
			return nil, err
		}
		urls = strings.Split(value, ",")
	} else {
		if literalPassword(s) {
			return nil, fmt.Errorf("the URL of %s: %w", hostOf(s), secretref.ErrLiteral)
		}
		value, err := secretref.Expand(s, getenv, url.QueryEscape)
		if err != nil {
			return nil, err
		}
		urls = []string{value}
	}
	for i, u := range urls {
		urls[i] = strings.TrimSpace(u)
		if err := checkServer(urls[i]); err != nil {
			return nil, err
		}
	}
	return urls, nil
}

// literalPassword reports whether the part before the host of a URL has a
// password, or a lone token, that is no reference.
func literalPassword(s string) bool {
	const reference = "\x00"
	s = regexp.MustCompile(`\$\{[^}]*\}`).ReplaceAllLiteralString(s, reference)
	if _, after, ok := strings.Cut(s, "://"); ok {
		s = after
	}
	secret, _, ok := cutLast(s, "@")
	if _, password, both := strings.Cut(secret, ":"); both {
		secret = password
	}
	return ok && secret != reference
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

func hostOf(s string) string {
	_, host, _ := cutLast(s, "@")
	return host
}

// checkServer never shows what is before the host.
func checkServer(s string) error {
	text := s
	if !strings.Contains(text, "://") {
		text = "nats://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" {
		return fmt.Errorf("%q is no URL of a NATS server, such as nats://broker.example:4222", hostOrAll(s))
	}
	switch u.Scheme {
	case "nats", "tls", "ws", "wss":
		return nil
	}
	return fmt.Errorf("%s: the scheme of a NATS server is nats, tls, ws or wss", u.Redacted())
}

func hostOrAll(s string) string {
	if strings.Contains(s, "@") {
		return "…@" + hostOf(s)
	}
	return s
}

// check finds options that contradict each other, and files that cannot be read.
func (r *resolved) check() error {
	var errs []error
	var ways []string
	for _, way := range []struct{ option, value string }{
		{"User", r.User}, {"Token", r.Token}, {"CredsFile", r.CredsFile}, {"NKeySeedFile", r.NKeySeedFile},
	} {
		if way.value != "" {
			ways = append(ways, way.option)
		}
	}
	if len(ways) > 1 {
		errs = append(errs, fmt.Errorf("%s are set: choose one way to authenticate", strings.Join(ways, " and ")))
	}
	if r.Password != "" && r.User == "" {
		errs = append(errs, &OptionError{Option: "User", Err: errors.New("a password needs a user")})
	}
	if (r.CertFile == "") != (r.KeyFile == "") {
		errs = append(errs, &OptionError{Option: "CertFile", Err: errors.New("a client certificate needs both its file and its key's")})
	}
	for _, f := range []struct {
		option string
		path   *string
	}{
		{"CredsFile", &r.CredsFile}, {"NKeySeedFile", &r.NKeySeedFile},
		{"CAFile", &r.CAFile}, {"CertFile", &r.CertFile}, {"KeyFile", &r.KeyFile},
	} {
		if *f.path == "" {
			continue
		}
		*f.path = expandHome(*f.path, r.Getenv)
		if _, err := os.Stat(*f.path); err != nil {
			errs = append(errs, &OptionError{Option: f.option, Err: err})
		}
	}
	return errors.Join(errs...)
}

func expandHome(path string, getenv func(string) string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return filepath.Join(getenv("HOME"), rest)
	}
	return path
}

// natsOptions are the options of nats.go, but for the callbacks.
func (r *resolved) natsOptions() []natsgo.Option {
	options := []natsgo.Option{
		natsgo.Name(r.Name),
		natsgo.MaxReconnects(-1), natsgo.ReconnectWait(r.ReconnectWait), natsgo.ReconnectJitter(r.ReconnectWait, r.ReconnectWait),
		natsgo.ReconnectBufSize(-1), // nothing is sent later than its publisher waits
		natsgo.IgnoreAuthErrorAbort(),
		natsgo.PingInterval(r.PingInterval), natsgo.MaxPingsOutstanding(maxPingsOut),
		natsgo.FlusherTimeout(r.WriteTimeout),
		natsgo.SkipSubjectValidation(), // transport.CheckTopic has looked
	}
	if r.InboxPrefix != "" {
		options = append(options, natsgo.CustomInboxPrefix(r.InboxPrefix))
	}
	switch {
	case r.User != "":
		options = append(options, natsgo.UserInfo(r.User, r.Password))
	case r.Token != "":
		options = append(options, natsgo.Token(r.Token))
	case r.CredsFile != "":
		options = append(options, natsgo.UserCredentials(r.CredsFile))
	case r.NKeySeedFile != "":
		options = append(options, nkeyOption(r.NKeySeedFile))
	}
	if r.CAFile != "" {
		options = append(options, natsgo.RootCAs(r.CAFile))
	}
	if r.CertFile != "" {
		options = append(options, natsgo.ClientCert(r.CertFile, r.KeyFile))
	}
	if r.TLSFirst {
		options = append(options, natsgo.TLSHandshakeFirst())
	}
	return options
}

// nkeyOption makes a bad seed file an error of connecting.
func nkeyOption(path string) natsgo.Option {
	option, err := natsgo.NkeyOptionFromSeed(path)
	if err != nil {
		return func(*natsgo.Options) error { return fmt.Errorf("nkey seed file %s: %w", path, err) }
	}
	return option
}

func (r *resolved) redactedServers() string {
	shown := make([]string, len(r.Servers))
	for i, s := range r.Servers {
		shown[i] = hostOrAll(s)
	}
	return strings.Join(shown, ",")
}
