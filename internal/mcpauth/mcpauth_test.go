package mcpauth_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/mcpauth"
	"github.com/agentd/agentd/internal/netguard"
	"github.com/agentd/agentd/internal/oauthtest"
)

const secret = "a secret of the client: not to be seen"

// house lets this machine be reached.
func house() (netguard.Policy, error) {
	return netguard.Policy{AllowAddresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}, nil
}

func is(text string) func() (string, error) { return func() (string, error) { return text, nil } }

func config(r *oauthtest.Resource) mcpauth.Config {
	return mcpauth.Config{Name: "issues", URL: r.URL, Policy: house, Remedy: "agentd mcp login --agent desk issues"}
}

// An access asks a resource for what it has, as package mcpclient does.
type access interface {
	Token(ctx context.Context) (string, error)
	Refused(ctx context.Context, r mcpauth.Refusal) (bool, error)
}

func get(t *testing.T, a access, url string) error {
	t.Helper()
	for last := false; ; last = true {
		token, err := a.Token(t.Context())
		if err != nil {
			return err
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return nil
		}
		if again, err := a.Refused(t.Context(), mcpauth.Refusal{Token: token, Status: resp.StatusCode, Header: resp.Header, Last: last}); err != nil || !again || last {
			return errors.Join(err, errors.New(resp.Status))
		}
	}
}

func wants(t *testing.T, err error, kind mcpauth.Kind, part string) {
	t.Helper()
	if e := (*mcpauth.Error)(nil); !errors.As(err, &e) || e.Kind != kind || !strings.Contains(e.Text, part) {
		t.Errorf("%v", err)
	}
}

// probe is what the resource says to somebody without a token.
func probe(t *testing.T, r *oauthtest.Resource) mcpauth.Challenge {
	t.Helper()
	p := &mcpauth.Probe{}
	if err := get(t, p, r.URL); p.Found() == nil {
		t.Fatal(err)
	}
	return *p.Found()
}

var page = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})

func keyPair(t *testing.T) (*ecdsa.PublicKey, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return &key.PublicKey, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// expired has tokens end as they are given.
func expired(_ string, answer map[string]any) { answer["expires_in"] = 0.000001 }

// A machine proves itself in each of the ways, for the resource alone, and asks for a token again
// when it is time.
func TestMachine(t *testing.T) {
	public, private := keyPair(t)
	for name, prove := range map[string]func(*mcpauth.Config){
		"basic": func(c *mcpauth.Config) { c.ClientID, c.Secret, c.Method = "robot", is(secret), "client_secret_basic" },
		"post":  func(c *mcpauth.Config) { c.ClientID, c.Secret, c.Method = "robot", is(secret), "client_secret_post" },
		"key":   func(c *mcpauth.Config) { c.ClientID, c.Key = "signer", is(private) },
	} {
		t.Run(name, func(t *testing.T) {
			s := oauthtest.New(t)
			s.Clients["robot"], s.Clients["signer"] = oauthtest.Client{Secret: secret}, oauthtest.Client{Key: public}
			r := s.Protect(page, "read")
			c := config(r)
			c.Issuer = s.URL
			prove(&c)
			m := mcpauth.NewMachine(c)
			for range 2 {
				if err := get(t, m, r.URL); err != nil {
					t.Fatal(err)
				}
			}
			if n := s.Requests("/token"); n != 1 {
				t.Errorf("%d requests for a token", n)
			}
			r.Require("read", "write") // the second scope is asked for besides the first
			if err := get(t, m, r.URL); err != nil {
				t.Error(err)
			}
			s.Rotate() // the old token is good no more
			if err := get(t, m, r.URL); err != nil {
				t.Error(err)
			}
			s.Tokens = expired
			s.Rotate()
			for range 2 {
				if err := get(t, m, r.URL); err != nil {
					t.Error(err)
				}
			}
			if n := s.Requests("/token"); n != 6 { // each token is renewed before it is used, and the first was refused
				t.Errorf("%d requests for a token", n)
			}
		})
	}
}

// What a machine does not get, and that it gets it when it can be had.
func TestMachineWithoutAToken(t *testing.T) {
	s, other := oauthtest.New(t), oauthtest.New(t)
	s.Clients["robot"] = oauthtest.Client{Secret: "another one"}
	r := s.Protect(page, "read")
	c := config(r)
	c.ClientID, c.Secret, c.Issuer = "robot", is(secret), other.URL
	wants(t, get(t, mcpauth.NewMachine(c), r.URL), mcpauth.Wrong, "its metadata names others")
	if n := s.Requests("/token") + other.Requests("/token"); n != 0 {
		t.Error("the secret went out")
	}
	c.Issuer = s.URL
	m := mcpauth.NewMachine(c)
	wants(t, get(t, m, r.URL), mcpauth.Wrong, "refuses: invalid_client")
	s.Clients["robot"] = oauthtest.Client{Secret: secret}
	eventually.Holds(t, "the secret that was mended is used", func() bool { return get(t, m, r.URL) == nil })
	s.SetDown(true)
	wants(t, get(t, mcpauth.NewMachine(c), r.URL), mcpauth.Unreachable, "503")
	s.SetDown(false)
	c.Scopes = []string{"read"}
	m = mcpauth.NewMachine(c)
	r.Require("write")
	wants(t, get(t, m, r.URL), mcpauth.NeedsScope, `asks for the scope "write"`)
	r.Require("read")
	if err := get(t, m, r.URL); err != nil {
		t.Error(err)
	}
}

// logIn logs somebody in.
func logIn(t *testing.T, c mcpauth.Config, st mcpauth.Store, ch mcpauth.Challenge) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	return c.Login(ctx, st, ch, mcpauth.Interaction{Open: oauthtest.Browse})
}

func store(t *testing.T) mcpauth.Store {
	return mcpauth.Store{Dir: filepath.Join(t.TempDir(), "logins"), Agent: "agent://desk"}
}

// Somebody logs in as each kind of client, the registered one first. The login is sealed, and ends
// with the logout.
func TestLogin(t *testing.T) {
	const document = "https://agents.example.com/agentd.json"
	for name, row := range map[string]struct {
		config     func(*mcpauth.Config)
		registered int
	}{
		"registered by hand":          {func(c *mcpauth.Config) { c.ClientID, c.Secret, c.Document = "desk", is(secret), document }, 0},
		"by a metadata document":      {func(c *mcpauth.Config) { c.Document = document }, 0},
		"registered when it is known": {func(*mcpauth.Config) {}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := oauthtest.New(t)
			s.Metadata = func(d map[string]any) { d["client_id_metadata_document_supported"] = true }
			if row.registered > 0 {
				s.Metadata = nil
			}
			s.Clients["desk"], s.Clients[document] = oauthtest.Client{Secret: secret}, oauthtest.Client{}
			r := s.Protect(page, "read")
			c, st := config(r), store(t)
			row.config(&c)
			p := mcpauth.NewPerson(c, st)
			wants(t, get(t, p, r.URL), mcpauth.NeedsLogin, "nobody is logged in): run `agentd mcp login --agent desk issues`")
			if err := logIn(t, c, st, probe(t, r)); err != nil {
				t.Fatal(err)
			}
			if !p.Renewed() {
				t.Error("the login is not noticed")
			}
			if err := get(t, p, r.URL); err != nil {
				t.Error(err)
			}
			if n := s.Requests("/register"); n != row.registered {
				t.Errorf("%d registrations", n)
			}
			state, err := c.LoginState(st)
			if err != nil || state.Issuer != s.URL || !state.Renewable || strings.Join(state.Scopes, " ") != "read offline_access" {
				t.Errorf("%+v, %v", state, err)
			}
			sealed(t, st, append(p.Secrets(), r.Tokens()...))
			if found, err := c.Logout(t.Context(), st); !found || err != nil {
				t.Error(found, err)
			}
			if s.Logins() != 0 {
				t.Error("the authorization server does not know of the logout")
			}
			wants(t, get(t, p, r.URL), mcpauth.NeedsLogin, "nobody is logged in")
			if found, err := c.Logout(t.Context(), st); found || err != nil {
				t.Error(found, err)
			}
		})
	}
}

// sealed checks that no file has a secret, and that nobody else can open one.
func sealed(t *testing.T, st mcpauth.Store, secrets []string) {
	t.Helper()
	err := filepath.WalkDir(st.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		for _, s := range secrets {
			if s != "" && bytes.Contains(data, []byte(s)) {
				t.Errorf("%s has a token", path)
			}
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has the mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// A login opens at its server and for its agent alone, and not if others may have read it.
func TestLoginOfAnother(t *testing.T) {
	s := oauthtest.New(t)
	r, other := s.Protect(page), s.Protect(page)
	c, st := config(r), store(t)
	if err := logIn(t, c, st, probe(t, r)); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(st.Dir, "*.login"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	wants(t, get(t, mcpauth.NewPerson(c, mcpauth.Store{Dir: st.Dir, Agent: "agent://else"}), r.URL), mcpauth.NeedsLogin, "cannot be read")
	elsewhere := c
	elsewhere.URL = other.URL
	wants(t, get(t, mcpauth.NewPerson(elsewhere, st), other.URL), mcpauth.NeedsLogin, "nobody is logged in")
	c.Issuer = "https://login.example.com"
	wants(t, get(t, mcpauth.NewPerson(c, st), r.URL), mcpauth.NeedsLogin, "another issuer")
	c.Issuer = ""
	if err := os.Chmod(files[0], 0o644); err != nil {
		t.Fatal(err)
	}
	wants(t, get(t, mcpauth.NewPerson(c, st), r.URL), mcpauth.NeedsLogin, "cannot be read")
}

// However many ask at once, in however many processes, a refresh token is used once. What follows
// it is there after a restart.
func TestOneRenewalAtATime(t *testing.T) {
	s := oauthtest.New(t)
	s.Tokens = expired
	r := s.Protect(page)
	c, st := config(r), store(t)
	if err := logIn(t, c, st, probe(t, r)); err != nil {
		t.Fatal(err)
	}
	// Only the first renewal is one: its token is good for long.
	s.Tokens = func(_ string, answer map[string]any) { answer["expires_in"] = 3600 }
	people := []*mcpauth.Person{mcpauth.NewPerson(c, st), mcpauth.NewPerson(c, st)}
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			if i%4 == 3 {
				cancel() // one that gives up takes nothing along
			}
			defer cancel()
			if _, err := people[i%2].Token(ctx); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := s.Requests("/token"); n != 2 { // the login, and one renewal
		t.Errorf("%d requests for tokens", n)
	}
	s.Tokens = nil
	for range 3 { // a process that starts anew
		s.Rotate() // its token is refused
		if err := get(t, mcpauth.NewPerson(c, st), r.URL); err != nil {
			t.Error(err)
		}
	}
	if s.Logins() != 1 {
		t.Error("a refresh token was used twice")
	}
}

// While the authorization server is away, tokens are used to their end, and renewed once it is
// back. A login that it has ended is over until somebody logs in.
func TestRenewalThatFails(t *testing.T) {
	s := oauthtest.New(t)
	r := s.Protect(page)
	c, st := config(r), store(t)
	if err := logIn(t, c, st, probe(t, r)); err != nil {
		t.Fatal(err)
	}
	s.SetDown(true)
	if err := get(t, mcpauth.NewPerson(c, st), r.URL); err != nil {
		t.Error(err)
	}
	s.Rotate()
	wants(t, get(t, mcpauth.NewPerson(c, st), r.URL), mcpauth.Unreachable, "503")
	s.SetDown(false)
	p := mcpauth.NewPerson(c, st)
	if err := get(t, p, r.URL); err != nil {
		t.Error(err)
	}
	s.EndLogins()
	s.Rotate()
	const over = "the login cannot be renewed: invalid_grant"
	wants(t, get(t, p, r.URL), mcpauth.NeedsLogin, over)
	before := s.Requests("/token")
	wants(t, get(t, p, r.URL), mcpauth.NeedsLogin, over)
	wants(t, get(t, mcpauth.NewPerson(c, st), r.URL), mcpauth.NeedsLogin, over)
	if s.Requests("/token") != before || p.Renewed() {
		t.Error("it is tried again")
	}
	if err := logIn(t, c, st, probe(t, r)); err != nil {
		t.Fatal(err)
	}
	if !p.Renewed() {
		t.Error("the login is not noticed")
	}
	if err := get(t, p, r.URL); err != nil {
		t.Error(err)
	}
}

// Tokens that cannot be written are used all the same, and written when they can be.
func TestDiskThatFails(t *testing.T) {
	s := oauthtest.New(t)
	r := s.Protect(page)
	c, st := config(r), store(t)
	if err := logIn(t, c, st, probe(t, r)); err != nil {
		t.Fatal(err)
	}
	s.Tokens = func(string, map[string]any) { // between the question and the answer
		_ = os.RemoveAll(st.Dir)
		_ = os.WriteFile(st.Dir, nil, 0o600)
	}
	s.Rotate()
	p := mcpauth.NewPerson(c, st)
	for range 2 {
		if err := get(t, p, r.URL); err != nil {
			t.Error(err)
		}
	}
	s.Tokens = nil
	if err := os.Remove(st.Dir); err != nil {
		t.Fatal(err)
	}
	if err := get(t, p, r.URL); err != nil {
		t.Error(err)
	}
	s.Rotate()
	if err := get(t, mcpauth.NewPerson(c, st), r.URL); err != nil {
		t.Error(err)
	}
}

// A scope that a call lacks is asked for by the next login, besides those that were given.
func TestScopeOfALogin(t *testing.T) {
	s := oauthtest.New(t)
	r := s.Protect(page, "read")
	c, st := config(r), store(t)
	if err := logIn(t, c, st, probe(t, r)); err != nil {
		t.Fatal(err)
	}
	p := mcpauth.NewPerson(c, st)
	r.Require("write")
	wants(t, get(t, p, r.URL), mcpauth.NeedsScope, `asks for the scope "write": run `+"`agentd mcp login")
	r.Require("read")
	if err := get(t, p, r.URL); err != nil {
		t.Error(err)
	}
	if err := logIn(t, c, st, probe(t, r)); err != nil {
		t.Fatal(err)
	}
	r.Require("read", "write")
	if err := get(t, p, r.URL); err != nil {
		t.Error(err)
	}
}

// A client that the operator has registered, and whose secret is refused, keeps its login: it is
// renewed when the secret has been mended.
func TestSecretThatIsMended(t *testing.T) {
	s := oauthtest.New(t)
	s.Clients["desk"] = oauthtest.Client{Secret: secret}
	r := s.Protect(page)
	c, st, have := config(r), store(t), secret
	c.ClientID, c.Issuer, c.Secret = "desk", s.URL, func() (string, error) { return have, nil }
	if err := logIn(t, c, st, probe(t, r)); err != nil {
		t.Fatal(err)
	}
	p := mcpauth.NewPerson(c, st)
	have = "another one"
	s.Rotate()
	wants(t, get(t, p, r.URL), mcpauth.Wrong, "refuses: invalid_client")
	have = secret
	eventually.Holds(t, "the login is used again", func() bool { return get(t, p, r.URL) == nil })
}

// A server that refuses each token does not have a new one fetched for each request.
func TestServerThatRefusesEachToken(t *testing.T) {
	s := oauthtest.New(t)
	s.Clients["robot"] = oauthtest.Client{Secret: secret}
	r := s.Protect(page)
	c, st := config(r), store(t)
	if err := logIn(t, c, st, probe(t, r)); err != nil {
		t.Fatal(err)
	}
	s.Tokens = func(_ string, answer map[string]any) { answer["access_token"] = "of-nobody-" + rand.Text() }
	s.Rotate()
	robot := c
	robot.ClientID, robot.Secret, robot.Issuer = "robot", is(secret), s.URL
	p, m := mcpauth.NewPerson(c, st), mcpauth.NewMachine(robot)
	const many = 50
	for a, row := range map[access]struct {
		kind mcpauth.Kind
		text string
	}{p: {mcpauth.NeedsLogin, "the server refuses the login"}, m: {mcpauth.Wrong, "refuses the tokens"}} {
		before := s.Requests("/token")
		for range many {
			wants(t, get(t, a, r.URL), row.kind, row.text)
		}
		if n := s.Requests("/token") - before; n > many/2 { // one a second
			t.Errorf("%d tokens for %d requests", n, many)
		}
	}
	s.Tokens = nil
	for _, a := range []access{p, m} {
		eventually.Holds(t, "the server is mended", func() bool { return get(t, a, r.URL) == nil })
	}
}

// What a server asks for is bounded: it neither makes a login unreadable, nor a request for a token
// ever longer.
func TestScopesWithoutEnd(t *testing.T) {
	s := oauthtest.New(t)
	s.Clients["robot"] = oauthtest.Client{Secret: secret}
	r := s.Protect(page, "read")
	c, st := config(r), store(t)
	if err := logIn(t, c, st, probe(t, r)); err != nil {
		t.Fatal(err)
	}
	robot := c
	robot.ClientID, robot.Secret, robot.Issuer = "robot", is(secret), s.URL
	m := mcpauth.NewMachine(robot)
	if err := get(t, m, r.URL); err != nil {
		t.Fatal(err)
	}
	r.Require(strings.Repeat("x", 300<<10))
	wants(t, get(t, mcpauth.NewPerson(c, st), r.URL), mcpauth.NeedsScope, "asks for the scope")
	before := s.Requests("/token")
	hundred := make([]string, 100)
	for i := range hundred {
		hundred[i] = "scope-" + strconv.Itoa(i)
	}
	r.Require(hundred...)
	wants(t, get(t, m, r.URL), mcpauth.NeedsScope, "asks for the scope")
	if s.Requests("/token") != before {
		t.Error("a hundred scopes were asked for")
	}
	r.Require("read")
	for _, a := range []access{mcpauth.NewPerson(c, st), m} {
		if err := get(t, a, r.URL); err != nil {
			t.Error(err)
		}
	}
}
