package nats

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/agentd/agentd/internal/secretref"
)

// Defaults of Options.
const (
	DefaultServer          = natsgo.DefaultURL
	DefaultMaxPending      = 16_384
	DefaultMaxPendingBytes = 64 << 20
	DefaultConnectTimeout  = 5 * time.Second
	DefaultReconnectWait   = 250 * time.Millisecond
	DefaultPingInterval    = 5 * time.Second
	DefaultWriteTimeout    = 2 * time.Second
)

// maxPingsOut is how many pings may be unanswered: after three silent intervals the
// connection is dropped. One would drop it for a single pause of the machine.
const maxPingsOut = 2

// Options say how to reach a NATS system and as whom. At most one of User, Token,
// CredsFile and NKeySeedFile may be set. The zero value is an anonymous connection to
// a server on this machine.
//
// Fields for secrets take references: `env:NAME` or `file:/path`.
type Options struct {
	// Servers are URLs (nats, tls, ws, wss) of servers of one NATS system, or
	// references whose values are such URLs, comma-separated. A URL may hold
	// ${env:NAME} and ${file:/path}; a password in it must be one. Default:
	// those of Context, else [DefaultServer].
	Servers []string
	// Context names a context of the nats command line tool, or is
	// [SelectedContext]. All other fields take precedence over it.
	Context string

	// User is the user name, or a reference to it. Password is a reference.
	User, Password string
	// Token is a reference.
	Token string
	// CredsFile is the path of a credentials file: a JWT and its nkey seed.
	CredsFile string
	// NKeySeedFile is the path of a file with an nkey seed.
	NKeySeedFile string

	// CAFile is the path of the certificates (PEM) of the authorities that sign
	// servers' certificates. Default: the system's.
	CAFile string
	// CertFile and KeyFile are the paths of the client's certificate and key
	// (PEM), for servers that verify it.
	CertFile, KeyFile string
	// TLSFirst starts TLS before the server sends its INFO message.
	TLSFirst bool

	// Name is shown in the servers' monitoring. Default: "agentd".
	Name string
	// InboxPrefix is the parent subject of reply inboxes. Default: _INBOX.
	InboxPrefix string
	// JetStreamPrefix is the parent subject of the JetStream API, where the account
	// imports parts of it from another. What there is in JetStream then belongs to an
	// operator: it can be used, and neither made nor changed. Default: $JS.API, the
	// account's own.
	JetStreamPrefix string

	// MaxPending is how many messages may wait for the handler of a subscription;
	// further ones are dropped. Default [DefaultMaxPending].
	MaxPending int
	// MaxPendingBytes bounds those messages in bytes, for [Conn.SubscribeOverflow].
	// Default [DefaultMaxPendingBytes].
	MaxPendingBytes int
	// ConnectTimeout bounds connecting to one server, and waiting for a server to
	// confirm a subscription. Default [DefaultConnectTimeout].
	ConnectTimeout time.Duration
	// ReconnectWait is the pause between two attempts to reconnect to the same server.
	// Up to as much again is added at random, so that the agents of a fleet do not all
	// return in the same moment; for the same reason the first attempt at another server
	// waits for up to as much. Default [DefaultReconnectWait].
	ReconnectWait time.Duration
	// PingInterval is how often a silent connection is tested. After three intervals
	// without an answer it counts as lost. Default [DefaultPingInterval].
	PingInterval time.Duration
	// WriteTimeout bounds how long a server may accept no bytes. Default
	// [DefaultWriteTimeout].
	WriteTimeout time.Duration

	// Getenv resolves references. Default [os.Getenv].
	Getenv func(string) string
	// Logger gets the events of the connection. Default: they are discarded.
	Logger *slog.Logger
}

// Authenticates reports whether o contains credentials, as far as that is known
// without resolving references: a context is taken to have some, a server's URL not.
func (o Options) Authenticates() bool {
	return o.User != "" || o.Token != "" || o.CredsFile != "" || o.NKeySeedFile != "" || o.CertFile != "" || o.Context != ""
}

// A resolved is Options with defaults, and with secrets in the place of references.
// Nothing may log it.
type resolved struct{ Options }

// An OptionError says which option is wrong.
type OptionError struct {
	// Option is the name of a field of [Options].
	Option string
	// Err is what is wrong with it. It contains no secret.
	Err error
}

func (e *OptionError) Error() string { return e.Option + ": " + e.Err.Error() }

// Unwrap returns Err.
func (e *OptionError) Unwrap() error { return e.Err }

// resolve checks o, reads the context and resolves every reference. The error names
// every option that is wrong, not only the first.
//
// References are resolved before the context is read, because a context contains
// secrets in plain text, which options must not.
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
	setDefault(&o.MaxPendingBytes, DefaultMaxPendingBytes)
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

// setDefault sets a field that has its zero value.
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
		literal bool // may be plain text
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

// expandHome replaces a leading ~/, as the shell would: files name paths that way.
func expandHome(path string, getenv func(string) string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return filepath.Join(getenv("HOME"), rest)
	}
	return path
}

// natsOptions are the options of nats.go, except for the callbacks.
func (r *resolved) natsOptions() []natsgo.Option {
	options := []natsgo.Option{
		natsgo.Name(r.Name),
		natsgo.MaxReconnects(-1),
		natsgo.ReconnectBufSize(-1),   // buffer nothing: see "Faults" in doc.go
		natsgo.IgnoreAuthErrorAbort(), // credentials may become valid again, by a rotation
		natsgo.PingInterval(r.PingInterval), natsgo.MaxPingsOutstanding(maxPingsOut),
		natsgo.FlusherTimeout(r.WriteTimeout),
		natsgo.SkipSubjectValidation(), // transport.CheckTopic has validated it
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
	options = append(options, r.certificates)
	if r.TLSFirst {
		options = append(options, natsgo.TLSHandshakeFirst())
	}
	return options
}

// nkeyOption reports a bad seed file when the connection is made: an option itself
// cannot fail.
func nkeyOption(path string) natsgo.Option {
	option, err := natsgo.NkeyOptionFromSeed(path)
	if err != nil {
		return func(*natsgo.Options) error { return fmt.Errorf("nkey seed file %s: %w", path, err) }
	}
	return option
}
