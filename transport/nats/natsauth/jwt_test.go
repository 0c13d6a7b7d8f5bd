package natsauth_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/nats"
	"github.com/agentd/agentd/transport/nats/natsauth"
)

// push makes the accounts of rules, and sends them to a server.
func push(t *testing.T, o *natstest.Operator, url, keys string, rules *natsauth.Rules) {
	t.Helper()
	accounts, err := rules.Accounts(keys, o.SigningKey())
	if err != nil {
		t.Fatal(err)
	}
	c, err := nats.Connect(t.Context(), nats.Options{Servers: []string{url}, CredsFile: o.Creds})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, a := range accounts {
		answer, err := c.Client().RequestWithContext(t.Context(), natsauth.ClaimsSubject, []byte(a.JWT))
		if err != nil || strings.Contains(string(answer.Data), "error") {
			t.Fatalf("%s: %v, %+v", a.Name, err, answer)
		}
	}
}

// In operator mode the rules are the same. A new member takes no restart; what a member
// had before its rights changed, and a member that is gone, are refused.
func TestOperatorMode(t *testing.T) {
	t.Parallel()
	const notes = "team.notes agents.team.notes.requests"
	desk, spy := member{id: "desk", peers: []string{notes}}, member{id: "spy", peers: []string{notes}}
	served := member{id: "team.notes", subject: "agents.team.notes.requests", durable: true}
	derived := func(t *testing.T, members ...member) *natsauth.Rules {
		t.Helper()
		f := load(t, members...)
		f.Name = "test"
		rules, err := natsauth.Derive(f, natsauth.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return rules
	}
	o := natstest.NewOperator(t)
	natstest.EachVersion(t, o.Conf+"jetstream {}\n", func(t *testing.T, url string) {
		keys := t.TempDir()
		s := &stage{t: t, url: url, keys: keys, creds: true}
		push(t, o, url, keys, derived(t, desk, served))
		first := s.as("desk")
		kept, err := os.ReadFile(natsauth.CredsFile(keys, "desk"))
		if err != nil {
			t.Fatal(err)
		}

		// A member is new: the others stay connected, with the credentials that they have.
		rules := derived(t, desk, spy, served)
		push(t, o, url, keys, rules)
		testDurableCalls(t, s, rules)
		if now, err := os.ReadFile(natsauth.CredsFile(keys, "desk")); err != nil || !slices.Equal(now, kept) {
			t.Errorf("credentials without a change were issued again: %v", err)
		}
		if err := first.Client().Flush(); err != nil || first.Client().Reconnects != 0 {
			t.Errorf("a member lost its connection: %v, %d", err, first.Client().Reconnects)
		}
		c := s.as("spy")
		_, notices := s.inbox(c)
		s.publish(c, "agents.desk.requests", "", "forbidden")
		if m := wait(t, notices); !errors.Is(m.Err, transport.Denied) {
			t.Errorf("got %+v, want Denied", m)
		}

		// A member is gone.
		push(t, o, url, keys, derived(t, desk, served))
		for _, name := range []string{"spy", natsauth.QueueKey("spy")} {
			if nc, err := natsgo.Connect(url, natsgo.UserCredentials(natsauth.CredsFile(keys, name))); err == nil {
				nc.Close()
				t.Errorf("%s is gone and still connects", name)
			}
		}
	})
}

// Names that would mean something else in a JWT are refused.
func TestAccountsRefuseNames(t *testing.T) {
	o := natstest.NewOperator(t)
	for _, name := range []string{"*", ">", "a.b", "a b", "", "{{name()}}"} {
		f := triage(t)
		f.Name = name
		rules, err := natsauth.Derive(f, natsauth.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rules.Accounts(t.TempDir(), o.SigningKey()); err == nil || !strings.Contains(err.Error(), "cannot name an account") {
			t.Errorf("%q: %v", name, err)
		}
	}
	seed := filepath.Join(t.TempDir(), "account.nk")
	pair, _ := nkeys.CreateAccount()
	text, _ := pair.Seed()
	if err := os.WriteFile(seed, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := natsauth.ReadOperatorKey(seed); err == nil || !strings.Contains(err.Error(), "not the seed of an operator") {
		t.Errorf("the seed of an account: %v", err)
	}
}
