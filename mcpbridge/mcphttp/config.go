package mcphttp

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A Config is what a [Handler] is made of.
type Config struct {
	// Server returns the server of a client: the same one each time, as long as nothing about
	// the client has changed. It is called for each request. The handler adds a middleware to
	// the server, which recovers panics and ends calls whose client has gone. Required.
	Server func(client string) (*mcp.Server, error)
	// Guards is shared by handlers that serve the same servers, at once or one after the other.
	// The default is the handler's own.
	Guards *Guards
	// Auth says who may use the endpoint. [Handler.SetAuth] replaces it.
	Auth Auth
	// Path is the path of the endpoint. The default is /mcp.
	Path string
	// Hosts are the names under which the endpoint is reached, as they are in the Host header
	// of requests: "mcp.example.com", or with a port, which must then be that one. Requests
	// that reach a loopback address may also name localhost, 127.0.0.1 or [::1].
	Hosts []string
	// Origins are the web origins, such as "https://app.example.com", whose pages may use the
	// endpoint besides its own.
	Origins []string
	// Limits bounds what each client may use.
	Limits Limits
	// Logger is required.
	Logger *slog.Logger
}

// Auth says who may use the endpoint. At least one of its fields is set.
type Auth struct {
	// Anonymous is the client that requests without a token are made for. Such requests are
	// accepted only if both ends of the connection are loopback addresses, the Host header names
	// one too, and no header says that a proxy has forwarded the request.
	Anonymous string
	// Tokens are the static tokens.
	Tokens []Token
	// OAuth accepts the access tokens of an issuer. Nil accepts none.
	OAuth *OAuth
}

// A Token is a static bearer token.
type Token struct {
	// Client is the client whose token it is. A client may have several.
	Client string
	// Secret is the token: at least 128 bits, chosen at random.
	Secret string
}

// String returns the client only, so that no log has the secret.
func (t Token) String() string { return "token of " + t.Client }

// GoString is [Token.String].
func (t Token) GoString() string { return t.String() }

// OAuth makes the endpoint an OAuth 2.1 resource server: it publishes its metadata (RFC 9728)
// and accepts JWT access tokens (RFC 9068) that an issuer has signed for it.
type OAuth struct {
	// Resource is the URL of the endpoint, as clients know it. It is the audience that tokens
	// must have. Its host is one of the handler's Hosts. Required.
	Resource string
	// Audiences are further values of aud that are accepted.
	Audiences []string
	// Issuer is the identifier of the authorization server: the iss of tokens. Required.
	Issuer string
	// KeysURL is where the issuer's keys (a JWK set) are. Without it, the metadata of the issuer
	// says so (RFC 8414, or OpenID Connect Discovery).
	KeysURL string
	// Algorithms are those that tokens may be signed with. The default is RS256, PS256, ES256
	// and EdDSA. Only asymmetric ones are possible.
	Algorithms []string
	// Scopes are those that a token must have, all of them.
	Scopes []string
	// Clients maps tokens to clients. A token that no entry matches is refused; the first one that
	// matches counts. Required.
	Clients []Mapping
	// HTTP fetches keys and metadata. The default takes ten seconds for each request.
	HTTP *http.Client
}

// A Mapping gives the client for tokens. Of Subject and ClientID, at least one is set; a token
// matches if it has those that are.
type Mapping struct {
	Client   string
	Subject  string // the claim sub
	ClientID string // the claim client_id, or azp where that is missing
}

// Limits bounds what each client may use. The zero value of a field is its default.
type Limits struct {
	// MaxBodyBytes bounds the body of a request. The default is 4 MiB.
	MaxBodyBytes int64
	// MaxSessions bounds the sessions. One more ends the session that has been idle the longest;
	// if none is idle, it is refused. The default is 32.
	MaxSessions int
	// MaxPending bounds the calls that run, whether or not anybody still waits for their
	// answer. The default is 64.
	MaxPending int
	// MaxStreams bounds the streams on which a server sends what nobody has asked for. The
	// default is 32.
	MaxStreams int
	// SessionIdle is how long a session lives without a request and without a stream. The
	// default is half an hour.
	SessionIdle time.Duration
	// BodyTimeout is how long a client may take to send a body. The default is 30 s.
	BodyTimeout time.Duration
	// WriteTimeout is how long a client may take to accept what is written to it. The default
	// is 30 s.
	WriteTimeout time.Duration
}

func (l Limits) withDefaults() Limits {
	return Limits{
		MaxBodyBytes: cmp.Or(l.MaxBodyBytes, 4<<20),
		MaxSessions:  cmp.Or(l.MaxSessions, 32),
		MaxPending:   cmp.Or(l.MaxPending, 64),
		MaxStreams:   cmp.Or(l.MaxStreams, 32),
		SessionIdle:  cmp.Or(l.SessionIdle, 30*time.Minute),
		BodyTimeout:  cmp.Or(l.BodyTimeout, 30*time.Second),
		WriteTimeout: cmp.Or(l.WriteTimeout, 30*time.Second),
	}
}

// A ConfigError is a fault of a [Config].
type ConfigError struct {
	// Field is the path of the field, such as "Auth.Tokens[1].Secret".
	Field string
	// Reason is a sentence without the value, which may be a secret.
	Reason string
}

// Error implements error.
func (e *ConfigError) Error() string { return e.Field + ": " + e.Reason }

// faults collects the faults of a configuration.
type faults []error

func (f *faults) add(field, reason string, args ...any) {
	*f = append(*f, &ConfigError{Field: field, Reason: fmt.Sprintf(reason, args...)})
}

func (f *faults) err() error { return errors.Join(*f...) }

// client checks what a client is called: names stand in rules of permissions and in records.
func (f *faults) client(field, name string) {
	if len(name) > 32 || !only(lowerCase+digits+"-", name) {
		f.add(field, "a client is named by 1 to 32 of a-z, 0-9 and -")
	}
}

// check returns the faults of a configuration, all but those of Auth.
func (c *Config) check() error {
	var f faults
	if c.Server == nil {
		f.add("Server", "is required")
	}
	if c.Logger == nil {
		f.add("Logger", "is required")
	}
	if !strings.HasPrefix(c.Path, "/") || strings.Contains(c.Path, "//") || strings.HasPrefix(c.Path, wellKnown) || strings.ContainsAny(c.Path, "?#%{} ") {
		f.add("Path", "must be a path such as /mcp")
	}
	for i, host := range c.Hosts {
		if !validHost(host) {
			f.add(fmt.Sprintf("Hosts[%d]", i), "must be a host such as mcp.example.com or mcp.example.com:8443")
		}
	}
	for i, origin := range c.Origins {
		if err := http.NewCrossOriginProtection().AddTrustedOrigin(origin); err != nil {
			f.add(fmt.Sprintf("Origins[%d]", i), "must be an origin such as https://app.example.com")
		}
	}
	for _, l := range []struct {
		field string
		value int64
	}{
		{"MaxBodyBytes", c.Limits.MaxBodyBytes},
		{"MaxSessions", int64(c.Limits.MaxSessions)}, {"MaxPending", int64(c.Limits.MaxPending)}, {"MaxStreams", int64(c.Limits.MaxStreams)},
		{"SessionIdle", int64(c.Limits.SessionIdle)}, {"BodyTimeout", int64(c.Limits.BodyTimeout)}, {"WriteTimeout", int64(c.Limits.WriteTimeout)},
	} {
		if l.value < 0 {
			f.add("Limits."+l.field, "must not be negative")
		}
	}
	return f.err()
}

// check returns the faults of an Auth.
func (a *Auth) check() error {
	var f faults
	if a.Anonymous == "" && len(a.Tokens) == 0 && a.OAuth == nil {
		f.add("Auth", "nobody could use the endpoint: it takes tokens, an OAuth issuer, or a client for requests without a token")
	}
	if a.Anonymous != "" {
		f.client("Auth.Anonymous", a.Anonymous)
	}
	for i, t := range a.Tokens {
		field := fmt.Sprintf("Auth.Tokens[%d]", i)
		f.client(field+".Client", t.Client)
		if reason := weakness(t.Secret); reason != "" {
			f.add(field+".Secret", "%s", reason)
		}
		if slices.ContainsFunc(a.Tokens[:i], func(o Token) bool { return o.Secret == t.Secret }) {
			f.add(field+".Secret", "is the token of another entry too")
		}
	}
	if a.OAuth != nil {
		a.OAuth.check(&f)
	}
	return f.err()
}

func (o *OAuth) check(f *faults) {
	for _, u := range []struct{ field, value string }{{"Resource", o.Resource}, {"Issuer", o.Issuer}, {"KeysURL", withoutQuery(o.KeysURL)}} {
		if u.field == "KeysURL" && u.value == "" {
			continue
		}
		if err := validURL(u.value); err != nil {
			f.add("Auth.OAuth."+u.field, "%s", err)
		}
	}
	for i, name := range o.Algorithms {
		if !slices.Contains(asymmetric, name) {
			f.add(fmt.Sprintf("Auth.OAuth.Algorithms[%d]", i), "must be one of %s", strings.Join(asymmetric, ", "))
		}
	}
	for i, scope := range o.Scopes {
		if scope == "" || strings.ContainsFunc(scope, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }) {
			f.add(fmt.Sprintf("Auth.OAuth.Scopes[%d]", i), "is no scope")
		}
	}
	if len(o.Clients) == 0 {
		f.add("Auth.OAuth.Clients", "is required: without it, no token is anybody's")
	}
	for i, m := range o.Clients {
		field := fmt.Sprintf("Auth.OAuth.Clients[%d]", i)
		f.client(field+".Client", m.Client)
		if m.Subject == "" && m.ClientID == "" {
			f.add(field, "takes a Subject, a ClientID or both")
		}
	}
}

// validURL accepts https, and http where nobody can be in between.
func validURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case text == "":
		return errors.New("is required")
	case err != nil || u.Host == "" || u.User != nil || u.Fragment != "" || u.RawQuery != "":
		return errors.New("must be a URL such as https://mcp.example.com/mcp, without a query")
	case u.Scheme != "https" && (u.Scheme != "http" || !loopbackName(u.Hostname())):
		return errors.New("must begin with https://")
	}
	return nil
}

// withoutQuery cuts a URL: where the keys are, some issuers say with a query.
func withoutQuery(text string) string {
	base, _, _ := strings.Cut(text, "?")
	return base
}

func validHost(text string) bool {
	name, port := splitHost(text)
	return name != "" && !strings.ContainsAny(name, "/@ \t*?#%") && (port == "" || len(port) <= 5 && only(digits, port))
}

// splitHost splits the value of a Host header. The port may be missing.
func splitHost(host string) (name, port string) {
	if h, p, err := net.SplitHostPort(host); err == nil {
		return strings.ToLower(h), p
	}
	return strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")), ""
}
