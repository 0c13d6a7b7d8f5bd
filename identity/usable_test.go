package identity_test

import (
	"testing"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/identity"
)

// What others reject is known before they do: the newest valid key must be published,
// and be valid there.
func TestPublished(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	past, future := identity.Window{NotAfter: now.Add(-time.Second)}, identity.Window{NotBefore: now.Add(time.Second)}
	own := func(name string, w identity.Window) identity.OwnKey { return identity.OwnKey{Public: name, Window: w} }
	known := func(name string, w identity.Window) identity.PublicKey {
		return identity.PublicKey{Key: name, Window: w}
	}
	for name, test := range map[string]struct {
		own   []identity.OwnKey
		known []identity.PublicKey
		want  identity.Reason
	}{
		"published":                   {[]identity.OwnKey{own("a", identity.Window{})}, []identity.PublicKey{known("z", identity.Window{}), known("a", identity.Window{})}, 0},
		"another is published":        {[]identity.OwnKey{own("a", identity.Window{})}, []identity.PublicKey{known("z", identity.Window{})}, identity.UnknownKey},
		"published as expired":        {[]identity.OwnKey{own("a", identity.Window{})}, []identity.PublicKey{known("a", past)}, identity.Expired},
		"rotated, and published":      {[]identity.OwnKey{own("a", identity.Window{}), own("b", identity.Window{})}, []identity.PublicKey{known("a", identity.Window{}), known("b", identity.Window{})}, 0},
		"rotated, and not published":  {[]identity.OwnKey{own("a", identity.Window{}), own("b", identity.Window{})}, []identity.PublicKey{known("a", identity.Window{})}, identity.UnknownKey},
		"the new one is not used yet": {[]identity.OwnKey{own("a", identity.Window{}), own("b", future)}, []identity.PublicKey{known("a", identity.Window{})}, 0},
		"the only one has expired":    {[]identity.OwnKey{own("a", past)}, []identity.PublicKey{known("a", identity.Window{})}, identity.Expired},
	} {
		if got := identity.Published(test.own, test.known, now); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// A peer to which nothing can be signed is listed with the reason; one with any valid
// key is not.
func TestUnusable(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	past, future := identity.Window{NotAfter: now.Add(-time.Second)}, identity.Window{NotBefore: now.Add(time.Second)}
	secret := func(id string, w identity.Window) identity.Secret {
		return identity.Secret{ID: id, Key: []byte("0123456789abcdef"), Window: w}
	}
	peers := map[envelope.Address]identity.Peer{
		"agent://d": {Secrets: []identity.Secret{secret("1", past), secret("2", past)}},
		"agent://c": {Secrets: []identity.Secret{secret("1", future)}},
		"agent://b": {Secrets: []identity.Secret{secret("1", identity.Window{}), secret("2", past)}},
		"agent://a": {},
	}
	for require, want := range map[bool]string{
		false: "agent://c: not-yet-valid (key \"1\")|agent://d: expired (key \"2\")|",
		true:  "agent://a: unknown-peer|agent://c: not-yet-valid (key \"1\")|agent://d: expired (key \"2\")|",
	} {
		k, err := identity.NewKeyring(identity.Options{Self: "agent://me", Peers: peers, Require: require, Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, e := range k.Unusable() {
			got += e.Error() + "|"
			if _, err := k.Sign(e.Peer, nil); identity.ReasonOf(err) != e.Reason && e.Provider != identity.HMAC {
				t.Errorf("signing fails with %v, want %v", err, e)
			}
		}
		if got != want {
			t.Errorf("required %v: %s", require, got)
		}
	}
}
