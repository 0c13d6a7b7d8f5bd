package mcpauth

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentd/agentd/internal/truncate"
)

// pause is how long an authorization server that is away is left alone.
const pause = time.Second

// A gate lets one in at a time, for as long as a request takes.
type gate chan struct{}

func newGate() gate { return make(gate, 1) }

func (g gate) enter(ctx context.Context) error {
	select {
	case g <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// free enters a gate that nobody is in.
func (g gate) free() bool {
	select {
	case g <- struct{}{}:
		return true
	default:
		return false
	}
}

func (g gate) leave() { <-g }

// A Machine has tokens that nobody has to agree to: those of client credentials, or of a token of
// the platform. It is safe for concurrent use.
type Machine struct {
	cfg    Config
	recent recent
	beside *beside
	shared atomic.Pointer[tokens] // have, for whoever does not wait for a renewal
	gate   gate                   // guards what follows

	found *discovery // nil before the server has asked for a token
	asked []string   // the scopes of the last request
	have  tokens
	until time.Time // when the authorization server is asked again, after failed
	fault error
}

// NewMachine returns a machine. It asks for its first token when the server does. Close ends it.
func NewMachine(c Config) *Machine { return &Machine{cfg: c, gate: newGate(), beside: newBeside()} }

// Close ends a renewal that runs. Tokens are not renewed beside requests any more.
func (m *Machine) Close() { m.beside.close() }

// Token returns the token of the next request, "" before the server has asked for one. One that
// is good is returned at once, and renewed meanwhile if it is time.
func (m *Machine) Token(ctx context.Context) (string, error) {
	if !m.gate.free() {
		if t := m.shared.Load(); t != nil && t.good() {
			return t.Access, nil
		}
		if err := m.gate.enter(ctx); err != nil {
			return "", err
		}
	}
	if m.found == nil || m.have.fresh() {
		defer m.gate.leave()
		return m.have.Access, nil
	}
	if old := m.have.Access; m.have.good() {
		if time.Now().Before(m.until) || !m.beside.start(func(ctx context.Context) {
			defer m.gate.leave()
			_ = m.renew(ctx, m.asked) // kept for whoever needs it: see fault
		}) {
			m.gate.leave()
		}
		return old, nil
	}
	defer m.gate.leave()
	err := m.renew(ctx, m.asked)
	return m.have.Access, err
}

// Refused gets a token that does, if there is one. It reports whether the request is to be made
// again; if not, and without an error, the answer stands.
func (m *Machine) Refused(ctx context.Context, r Refusal) (again bool, err error) {
	if err := m.gate.enter(ctx); err != nil {
		return false, err
	}
	defer m.gate.leave()
	ch := ParseChallenge(r.Header)
	if r.Status == http.StatusForbidden && ch.Error != "insufficient_scope" {
		return false, nil
	}
	if r.Token != m.have.Access && !r.Last {
		return true, nil // it was renewed meanwhile
	}
	if r.Status == http.StatusForbidden {
		if r.Last || !lacks(m.asked, ch.Scopes) || len(m.asked)+len(ch.Scopes) > maxWanted || m.cfg.Scopes != nil && lacks(m.cfg.Scopes, ch.Scopes) {
			return false, m.cfg.needsScope(ch.Scopes, "")
		}
		return true, m.renew(ctx, union(m.asked, ch.Scopes))
	}
	if r.Last {
		m.until, m.fault = time.Now().Add(pause), wrong("the MCP server %s refuses the tokens of its authorization server", m.cfg.Name)
		return false, m.fault
	}
	if time.Now().Before(m.until) {
		return false, m.fault
	}
	found, err := m.cfg.discover(ctx, ch)
	if err != nil {
		return false, err
	}
	scopes := m.cfg.Scopes
	if scopes == nil {
		scopes = found.scopes
	}
	m.found, m.until = found, time.Time{}
	m.hold(tokens{})
	return true, m.renew(ctx, scopes)
}

// renew asks for a token. The caller is in the gate.
func (m *Machine) renew(ctx context.Context, scopes []string) error {
	if time.Now().Before(m.until) {
		return m.fault
	}
	t, err := m.request(ctx, scopes)
	if err != nil {
		if ctx.Err() == nil {
			m.until, m.fault = time.Now().Add(pause), err
		}
		return err
	}
	m.asked, m.until = scopes, time.Time{}
	m.hold(*t)
	m.recent.add(t.Access)
	return nil
}

// hold sets the tokens.
func (m *Machine) hold(t tokens) {
	m.have = t
	m.shared.Store(&t)
}

func (m *Machine) request(ctx context.Context, scopes []string) (*tokens, error) {
	c, d := &m.cfg, m.found
	form := url.Values{"grant_type": {"client_credentials"}, "resource": {d.resource}}
	who := client{ID: c.ClientID, Method: methodNone}
	if c.Assertion != nil {
		assertion, err := c.Assertion()
		if err != nil {
			return nil, &Error{Kind: Wrong, Text: "the token with which the MCP server " + c.Name + " would be asked for is not there", Err: err}
		}
		form.Set("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer")
		form.Set("assertion", assertion)
	} else {
		method, err := c.method(d.meta)
		if err != nil {
			return nil, err
		}
		who.Method = method
	}
	if len(scopes) > 0 {
		form.Set("scope", strings.Join(scopes, " "))
	}
	return c.token(ctx, d.meta.TokenEndpoint, d.meta.Issuer, who, form, scopes)
}

// Renewed reports whether there is reason to try again at once.
func (*Machine) Renewed() bool { return false }

// Secrets are those that a server might repeat.
func (m *Machine) Secrets() []string { return m.recent.all() }

// recent are the newest tokens that a server was sent: an answer may be to an older one.
type recent struct {
	mu     sync.Mutex
	tokens []string
}

// maxRecent is how many tokens are remembered.
const maxRecent = 4

func (r *recent) add(token string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if token == "" || slices.Contains(r.tokens, token) {
		return
	}
	if r.tokens = append(r.tokens, token); len(r.tokens) > maxRecent {
		r.tokens = slices.Delete(r.tokens, 0, 1)
	}
}

func (r *recent) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.tokens)
}

// needsScope is the error of a request that takes more than its token has.
func (c *Config) needsScope(scopes []string, remedy string) *Error {
	if remedy == "" {
		remedy = "its authorization server does not give it, or oauth.scopes does not list it"
	}
	return errorf(NeedsScope, "the MCP server %s asks for the scope %s: %s", c.Name, truncate.Quote(strings.Join(scopes, " ")), remedy)
}
