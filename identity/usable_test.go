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

// Of own keys the one signs that others know, however new the rest are; and a public key
// for which others sign is missed if it cannot be used here.
func TestOwnAndPublishedKeys(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	later := identity.Window{NotBefore: now.Add(time.Minute)}
	keys := func(s string) (all []identity.OwnKey) {
		for _, name := range s {
			k := identity.OwnKey{Public: string(name)}
			if name >= 'x' { // x, y and z begin in a minute
				k.Window = later
			}
			all = append(all, k)
		}
		return all
	}
	for _, test := range []struct {
		own, known    string
		order         string
		lacks, inTime string // now, and in a minute
	}{
		{"a", "a", "a", "", ""},
		{"a", "", "a", "", ""},
		{"", "a", "", "a", "a"},
		{"a", "b", "a", "b", "b"},
		{"ab", "a", "ba", "", ""},
		{"abc", "ab", "cab", "", ""},
		{"a", "ax", "a", "", "x"},
		{"ax", "ax", "ax", "", ""},
		{"x", "a", "x", "a", "a"},
		{"ax", "x", "ax", "", ""},
	} {
		var known []identity.PublicKey
		for _, k := range keys(test.known) {
			known = append(known, identity.PublicKey{Key: k.Public, Window: k.Window})
		}
		order := ""
		for _, k := range identity.Preferred(keys(test.own), known) {
			order += k.Public
		}
		if order != test.order {
			t.Errorf("%q of which %q are published: in the order %q, want %q", test.own, test.known, order, test.order)
		}
		for at, want := range map[time.Time]string{now: test.lacks, later.NotBefore: test.inTime} {
			if got, lacks := identity.Lacking(keys(test.own), known, at); lacks != (want != "") || lacks && got.Key != want {
				t.Errorf("%q of which %q are published: lacks %v %v at %v, want %q", test.own, test.known, got, lacks, at, want)
			}
		}
	}
	expired := []identity.OwnKey{{Public: "a", Window: identity.Window{NotAfter: now.Add(-time.Second)}}}
	if _, lacks := identity.Lacking(expired, []identity.PublicKey{{Key: "a"}}, now); !lacks {
		t.Error("an own key that has expired is of no use")
	}
}

// An agent without a key says so wherever it would need one, and exchanges messages with
// those that need none.
func TestKeyringWithoutAnOwnKey(t *testing.T) {
	t.Parallel()
	k := ring(t, identity.Options{Self: alice, Peers: map[envelope.Address]identity.Peer{bob: publicOf(keysOf(t)), "agent://carol": {}}})
	if _, err := k.Sign(bob, nil); identity.ReasonOf(err) != identity.UnknownKey {
		t.Errorf("signed: %v", err)
	}
	if _, err := k.Sign("agent://carol", nil); err != nil {
		t.Error(err)
	}
	if got := k.Unusable(); len(got) != 1 || got[0].Peer != bob || got[0].Reason != identity.UnknownKey {
		t.Errorf("unusable: %v", got)
	}
	e := message(bob, alice)
	e.Auth = envelope.Auth{Kind: envelope.AuthHMAC, KeyID: "x25519:0011223344556677", Signature: "00"}
	if _, err := k.Verify(e); identity.ReasonOf(err) != identity.UnknownKey {
		t.Errorf("verified: %v", err)
	}
}

// A key is accepted a little before its time, by clocks that differ, and signs only when
// its time has come.
func TestEarlyKey(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	secret := identity.Secret{ID: "k", Key: []byte("0123456789abcdef"), Window: identity.Window{NotBefore: now}}
	at := func(self, other envelope.Address, clock time.Time) *identity.Keyring {
		return ring(t, identity.Options{
			Self: self, Peers: map[envelope.Address]identity.Peer{other: {Secrets: []identity.Secret{secret}}},
			Early: time.Second, Now: func() time.Time { return clock },
		})
	}
	signed := send(t, at(alice, bob, now), message(alice, bob))
	for ahead, want := range map[time.Duration]identity.Reason{0: 0, time.Second: 0, time.Second + 1: identity.NotYetValid} {
		if _, err := at(bob, alice, now.Add(-ahead)).Verify(signed); identity.ReasonOf(err) != want {
			t.Errorf("a clock that is %v behind: %v, want %v", ahead, err, want)
		}
	}
	if _, err := at(alice, bob, now.Add(-1)).Sign(bob, nil); identity.ReasonOf(err) != identity.NotYetValid {
		t.Errorf("signed early: %v", err)
	}
}
