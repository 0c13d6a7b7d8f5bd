package mcpauth

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// A Person has the tokens of a login, which the authorization server renews. It finds a new login
// by itself. It is safe for concurrent use.
type Person struct {
	cfg    Config
	store  Store
	recent recent
	beside *beside
	gate   gate                   // who is in it may renew
	lent   atomic.Pointer[tokens] // those that are renewed and still good, for whoever does not wait

	mu      sync.Mutex // guards what follows
	have    *login     // nil for none
	read    stamp      // of have
	broken  error      // why it cannot be read
	unsaved bool       // have is newer than the file
	until   time.Time  // when the authorization server is asked again, after fault
	fault   error
}

// NewPerson returns a person whose logins are kept in a store. Close ends it.
func NewPerson(c Config, s Store) *Person {
	return &Person{cfg: c, store: s, gate: newGate(), beside: newBeside()}
}

// Close waits a moment for a renewal that runs, and ends it then. Tokens are not renewed beside
// requests any more.
func (p *Person) Close() { p.beside.close() }

// Token returns the token of the next request. One that is good is returned at once, and renewed
// meanwhile if it is time.
func (p *Person) Token(ctx context.Context) (string, error) {
	if !p.gate.free() {
		if l := p.lent.Load(); l != nil && l.good() {
			return l.Access, nil
		}
		if err := p.gate.enter(ctx); err != nil {
			return "", err
		}
	}
	besides := false // the gate belongs to a renewal
	defer func() {
		if !besides {
			p.gate.leave()
		}
	}()
	l, err := p.login(ctx)
	if err != nil {
		return "", err
	}
	switch {
	case l.good():
		if !l.fresh() && l.Refresh != "" {
			besides = p.renewBeside(l)
		}
		return l.Access, nil
	case l.Refresh != "":
		return p.renewed(context.WithoutCancel(ctx), l)
	}
	return "", p.cfg.needsLogin("the login has expired")
}

// renewBeside renews a login that is good. It takes the caller's place in the gate, unless it
// reports that it does not.
func (p *Person) renewBeside(l *login) bool {
	p.lent.Store(&l.tokens) // before the gate has another owner
	if p.beside.start(func(ctx context.Context) {
		defer p.gate.leave()
		defer p.lent.Store(nil)
		_, _ = p.renewed(ctx, l) // kept for whoever needs it: see fault, and the login
	}) {
		return true
	}
	p.lent.Store(nil)
	return false
}

// login returns the login that is there. The caller is in the gate.
func (p *Person) login(ctx context.Context) (*login, error) {
	l, err := p.look(ctx)
	switch {
	case err != nil:
		e := p.cfg.needsLogin("its login cannot be read")
		e.Err = err
		return nil, e
	case l == nil:
		return nil, p.cfg.needsLogin("nobody is logged in")
	case l.Failed != "":
		return nil, p.cfg.needsLogin("the login cannot be renewed: " + l.Failed)
	case p.cfg.Issuer != "" && !sameIssuer(p.cfg.Issuer, l.Issuer), p.cfg.ClientID != "" && p.cfg.ClientID != l.Client.ID:
		return nil, p.cfg.needsLogin("the login is that of another issuer or client than agent.yaml names")
	}
	p.recent.add(l.Access)
	return l, nil
}

// look reads the login again if its file has changed.
func (p *Person) look(ctx context.Context) (*login, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unsaved {
		// The file has tokens that were used up. Nobody has logged in since if it is the same.
		if stampOf(p.store.path(p.cfg.URL)).same(p.read) {
			p.keepAgain(ctx)
			return p.have, nil
		}
		p.unsaved = false
	}
	if at := stampOf(p.store.path(p.cfg.URL)); p.have == nil || p.broken != nil || !at.same(p.read) {
		before := p.have
		p.have, p.read, p.broken = p.store.load(p.cfg.URL)
		if p.have != nil && (before == nil || before.Access != p.have.Access) {
			p.until = time.Time{}
		}
	}
	return p.have, p.broken
}

// keepAgain writes what could not be written, unless somebody is at it. The caller holds mu.
func (p *Person) keepAgain(ctx context.Context) {
	unlock, err := p.store.tryLock()
	if err != nil || unlock == nil {
		return
	}
	defer unlock()
	if stampOf(p.store.path(p.cfg.URL)).same(p.read) {
		p.keep(ctx, p.have)
	}
}

// keep writes a login that was renewed. One that cannot be written is used all the same, and
// written later: the one in the file is used up. The caller holds mu, and the store's lock.
func (p *Person) keep(ctx context.Context, l *login) {
	err := p.store.save(l)
	p.have, p.read, p.broken = l, stampOf(p.store.path(p.cfg.URL)), nil
	switch log := p.cfg.log(); {
	case err != nil && !p.unsaved:
		log.WarnContext(ctx, "the renewed login at an MCP server cannot be written: it would be lost with a restart", "server", p.cfg.Name, "error", err)
	case err == nil && p.unsaved:
		log.InfoContext(ctx, "the renewed login at an MCP server is written", "server", p.cfg.Name)
	}
	p.unsaved = err != nil
}

// renewTimeout bounds a renewal with the wait for that of another process.
const renewTimeout = 2 * fetchTimeout

// renewed renews a login, and returns the token. The caller is in the gate. ctx is not that of a
// request, whose sender may go: a token that the authorization server has exchanged must not get
// lost.
func (p *Person) renewed(ctx context.Context, l *login) (string, error) {
	p.mu.Lock()
	until, fault := p.until, p.fault
	p.mu.Unlock()
	if time.Now().Before(until) {
		return "", fault
	}
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	next, err := p.renew(ctx, l)
	if err == nil {
		return next.Access, nil
	}
	if e := (*Error)(nil); errors.As(err, &e) && e.Kind == NeedsLogin {
		return "", err
	}
	p.leaveAlone(err)
	return "", err
}

// leaveAlone has the authorization server not asked for a while.
func (p *Person) leaveAlone(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until, p.fault = time.Now().Add(pause), why
}

// renew exchanges the refresh token, in one process at a time.
func (p *Person) renew(ctx context.Context, before *login) (*login, error) {
	unlock, err := p.store.lock(ctx)
	if err != nil {
		return nil, &Error{Kind: Unreachable, Text: "the login at the MCP server " + p.cfg.Name + " is in use elsewhere", Err: err}
	}
	defer unlock()
	l, err := p.login(ctx)
	if err != nil {
		return nil, err
	}
	if l.Access != before.Access && l.fresh() { // another process was first
		return l, nil
	}
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {l.Refresh}, "resource": {l.Resource}}
	t, err := p.cfg.token(ctx, l.TokenEndpoint, l.Issuer, l.Client, form, l.Scopes)
	next := *l
	if no := (*refused)(nil); errors.As(err, &no) && p.cfg.ends(no.code) {
		next.tokens, next.Failed = tokens{Scopes: l.Scopes}, no.code
		p.mu.Lock()
		p.keep(ctx, &next)
		p.mu.Unlock()
		return nil, p.cfg.needsLogin("the login cannot be renewed: " + no.code)
	}
	if err != nil {
		return nil, err
	}
	if t.Refresh == "" {
		t.Refresh = l.Refresh
	}
	next.tokens = *t
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until = time.Time{}
	p.keep(ctx, &next) // before anybody uses it
	return &next, nil
}

// ends reports whether a login is over when its renewal is refused with a code. A client that the
// operator has registered may be refused for its secret: who mends that has the login back.
func (c *Config) ends(code string) bool {
	return code == "invalid_grant" || c.ClientID == "" && (code == "invalid_client" || code == "unauthorized_client")
}

// Refused renews a token that the server does not take. It reports whether the request is to be
// made again; if not, and without an error, the answer stands.
func (p *Person) Refused(ctx context.Context, r Refusal) (again bool, err error) {
	if err := p.gate.enter(ctx); err != nil {
		return false, err
	}
	defer p.gate.leave()
	ch := ParseChallenge(r.Header)
	if r.Status == http.StatusForbidden && ch.Error != "insufficient_scope" {
		return false, nil
	}
	l, err := p.login(ctx)
	if err != nil {
		return false, err
	}
	switch {
	case r.Token != l.Access && !r.Last:
		return true, nil // it was renewed meanwhile
	case r.Status == http.StatusForbidden:
		p.want(ctx, ch.Scopes)
		return false, p.cfg.needsScope(ch.Scopes, p.cfg.remedy())
	case r.Last:
		err := p.cfg.needsLogin("the server refuses the login")
		p.leaveAlone(err) // not each of its calls gets another token
		return false, err
	case l.Refresh == "":
		return false, p.cfg.needsLogin("the login has ended")
	}
	if _, err := p.renewed(context.WithoutCancel(ctx), l); err != nil {
		return false, err
	}
	return true, nil
}

// maxWanted bounds the scopes that a server may have asked for.
const maxWanted = 64

// want notes for the next login what the server asks for. It is lost if it cannot be written.
func (p *Person) want(ctx context.Context, scopes []string) {
	unlock, err := p.store.lock(ctx)
	if err != nil {
		return
	}
	defer unlock()
	l, err := p.look(ctx)
	if err != nil || l == nil || !lacks(l.Wanted, scopes) || len(l.Wanted)+len(scopes) > maxWanted {
		return
	}
	next := *l
	next.Wanted = union(l.Wanted, scopes)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keep(ctx, &next)
}

// Renewed reports whether the login is another one than the last that was used.
func (p *Person) Renewed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !stampOf(p.store.path(p.cfg.URL)).same(p.read)
}

// Secrets are those that a server might repeat.
func (p *Person) Secrets() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.recent.all()
	if p.have != nil {
		all = append(all, p.have.Access, p.have.Refresh, p.have.Client.Secret)
	}
	return all
}

// needsLogin is the error of whoever has no login that does.
func (c *Config) needsLogin(why string) *Error {
	return errorf(NeedsLogin, "the MCP server %s needs a login (%s): %s", c.Name, why, c.remedy())
}

func (c *Config) remedy() string {
	if c.Remedy == "" {
		return "somebody has to log in"
	}
	return "run `" + c.Remedy + "`"
}
