package mcpauth

import (
	"context"
	"net/http"
	"net/netip"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/netguard"
	"github.com/agentd/agentd/internal/oauthtest"
)

// An authorizer has the tokens of a person or a machine.
type authorizer interface {
	Token(context.Context) (string, error)
	Close()
}

// An authorization server that does not answer holds up nobody as long as the token is good. When
// it answers, the next request has the new one.
func TestRenewalThatHangs(t *testing.T) {
	due := func(tk *tokens) { tk.Due = time.Now().Add(-time.Second) }
	for name, open := range map[string]func(*testing.T, Config, *oauthtest.Resource) authorizer{
		"machine": func(t *testing.T, c Config, r *oauthtest.Resource) authorizer {
			m := NewMachine(c)
			if again, err := m.Refused(t.Context(), Refusal{Status: http.StatusUnauthorized, Header: challenge(t, r)}); !again || err != nil {
				t.Fatal(again, err)
			}
			next := m.have
			due(&next)
			m.hold(next)
			return m
		},
		"person": func(t *testing.T, c Config, r *oauthtest.Resource) authorizer {
			c.Issuer, c.ClientID, c.Secret = "", "", nil
			st := Store{Dir: filepath.Join(t.TempDir(), "logins"), Agent: "agent://desk"}
			if err := c.Login(t.Context(), st, ParseChallenge(challenge(t, r)), Interaction{Open: oauthtest.Browse}); err != nil {
				t.Fatal(err)
			}
			l, _, err := st.load(c.URL)
			if err != nil {
				t.Fatal(err)
			}
			due(&l.tokens)
			if err := st.save(l); err != nil {
				t.Fatal(err)
			}
			return NewPerson(c, st)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := oauthtest.New(t)
			s.Clients["robot"] = oauthtest.Client{Secret: "the secret of a robot"}
			var hang atomic.Bool
			asked, release := make(chan struct{}, 1), make(chan struct{})
			s.Tokens = func(string, map[string]any) {
				if hang.Load() {
					asked <- struct{}{}
					<-release
				}
			}
			r := s.Protect(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			a := open(t, Config{
				Name: "tools", URL: r.URL, Issuer: s.URL, ClientID: "robot", Secret: func() (string, error) { return "the secret of a robot", nil },
				Policy: func() (netguard.Policy, error) {
					return netguard.Policy{AllowAddresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, nil
				},
			}, r)
			hang.Store(true)
			var old string
			for i := range 3 {
				token, err := a.Token(t.Context())
				if err != nil || token == "" || i > 0 && token != old {
					t.Errorf("while it hangs: another token, or %v", err)
				}
				old = token
				if i == 0 {
					<-asked
				}
			}
			close(release)
			eventually.Holds(t, "the token is renewed", func() bool {
				next, err := a.Token(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				return next != old
			})
			a.Close()
		})
	}
}

// A renewal that hangs ends when nobody needs its token any more.
func TestCloseEndsRenewals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, ended := newBeside(), false
		if !b.start(func(ctx context.Context) {
			<-ctx.Done()
			ended = true
		}) {
			t.Fatal("nothing runs")
		}
		b.close()
		if !ended {
			t.Error("it still runs")
		}
		if b.start(func(context.Context) { t.Error("it runs") }) {
			t.Error("another one has begun")
		}
	})
}

// challenge is what a resource says to somebody without a token.
func challenge(t *testing.T, r *oauthtest.Resource) http.Header {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.Header
}
