package identity_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/identity"
)

// fixedKey is the key pair of 32 equal bytes.
func fixedKey(t testing.TB, b byte) identity.OwnKey {
	t.Helper()
	pair, err := nkeys.FromRawSeed(nkeys.PrefixByteUser, bytes.Repeat([]byte{b}, 32))
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := pair.Seed()
	if err != nil {
		t.Fatal(err)
	}
	return identity.OwnKey{Public: public, Seed: string(seed)}
}

// Agents of different versions must derive the same keys, or a fleet falls
// silent while it is upgraded. The values were computed by a second implementation,
// from the RFCs that the package comment names.
func TestDerivedKeysAreStable(t *testing.T) {
	ofAlice, ofBob := []identity.OwnKey{fixedKey(t, 1)}, []identity.OwnKey{fixedKey(t, 2)}
	a := ring(t, identity.Options{Self: alice, Own: ofAlice, Peers: map[envelope.Address]identity.Peer{bob: publicOf(ofBob)}})
	b := ring(t, identity.Options{Self: bob, Own: ofBob, Peers: map[envelope.Address]identity.Peer{alice: publicOf(ofAlice)}})
	for _, test := range []struct {
		k                *identity.Keyring
		to               envelope.Address
		keyID, signature string
	}{
		{a, bob, "x25519:ffefee6604112623", "cfe78ae58996d3fc5ba2b89c3cd6d7ee36c8c659c641addbbb5cf4e98b8d7c8e"},
		{b, alice, "x25519:9d52cf7f6b5d08e2", "22400ce476b9d9471f67e9fc901236abb7346bb80939cf6346595b072fe41fbb"},
	} {
		auth, err := test.k.Sign(test.to, []byte("form"))
		if want := (envelope.Auth{Kind: envelope.AuthHMAC, KeyID: test.keyID, Signature: test.signature}); err != nil || auth != want {
			t.Errorf("to %s: %v\ngot  %+v\nwant %+v", test.to, err, auth, want)
		}
	}
}

// A key that is derived from two key pairs counts while both of them do: an agent
// that withdraws its pair, or one that announces a new one, decides for both.
func TestPairWindows(t *testing.T) {
	begin, end := at("2026-03-01T00:00:00Z"), at("2026-09-01T00:00:00Z")
	inner := identity.Window{NotBefore: begin, NotAfter: end}
	outer := identity.Window{NotBefore: at("2026-01-01T00:00:00Z"), NotAfter: at("2026-12-01T00:00:00Z")}
	for name, test := range map[string]struct{ mine, theirs identity.Window }{
		"theirs is narrower":           {outer, inner},
		"mine is narrower":             {inner, outer},
		"theirs alone":                 {identity.Window{}, inner},
		"mine alone":                   {inner, identity.Window{}},
		"mine begins, theirs ends":     {identity.Window{NotBefore: begin}, identity.Window{NotAfter: end}},
		"theirs begins, mine ends":     {identity.Window{NotAfter: end}, identity.Window{NotBefore: begin}},
		"the same":                     {inner, inner},
		"mine later, theirs to an end": {identity.Window{NotBefore: begin, NotAfter: outer.NotAfter}, identity.Window{NotBefore: outer.NotBefore, NotAfter: end}},
	} {
		t.Run(name, func(t *testing.T) {
			now := begin
			clock := func() time.Time { return now }
			mine, theirs := keysOf(t), keysOf(t)
			open := mine[0]
			mine[0].Window, theirs[0].Window = test.mine, test.theirs
			a := ring(t, identity.Options{Self: alice, Own: mine, Peers: map[envelope.Address]identity.Peer{bob: publicOf(theirs)}, Now: clock})
			b := ring(t, identity.Options{Self: bob, Own: theirs, Peers: map[envelope.Address]identity.Peer{alice: publicOf(mine)}, Now: clock})
			// A sender whose clock is wrong, or that means ill, signs at any time.
			anytime := ring(t, identity.Options{
				Self: alice, Own: []identity.OwnKey{open}, Now: clock,
				Peers: map[envelope.Address]identity.Peer{bob: {Public: []identity.PublicKey{{Key: theirs[0].Public}}}},
			})
			for _, step := range []struct {
				at   time.Time
				want identity.Reason
			}{
				{begin.Add(-time.Second), identity.NotYetValid}, {begin, 0}, {begin.Add(time.Hour), 0},
				{end, 0}, {end.Add(time.Second), identity.Expired}, {outer.NotAfter.Add(time.Hour), identity.Expired},
			} {
				now = step.at
				wantReason(t, b, send(t, anytime, message(alice, bob)), step.want)
				if _, err := a.Sign(bob, []byte("form")); identity.ReasonOf(err) != step.want {
					t.Errorf("%s: signing gives %v, want %s", step.at, err, step.want)
				}
			}
		})
	}
}

// While both ends rotate, each of the four combinations of their keys is
// understood, and the newest that is valid signs.
func TestEveryCombinationOfKeysIsUnderstood(t *testing.T) {
	oldA, newA, oldB, newB := fixedKey(t, 1), fixedKey(t, 2), fixedKey(t, 3), fixedKey(t, 4)
	both := ring(t, identity.Options{
		Self: bob, Own: []identity.OwnKey{oldB, newB},
		Peers: map[envelope.Address]identity.Peer{alice: publicOf([]identity.OwnKey{oldA, newA})},
	})
	ids := map[string]bool{}
	for _, own := range []identity.OwnKey{oldA, newA} {
		for _, known := range []identity.OwnKey{oldB, newB} {
			a := ring(t, identity.Options{
				Self: alice, Own: []identity.OwnKey{own}, Peers: map[envelope.Address]identity.Peer{bob: publicOf([]identity.OwnKey{known})},
			})
			e := send(t, a, message(alice, bob))
			wantReason(t, both, e, 0)
			ids[e.Auth.KeyID] = true
		}
	}
	if len(ids) != 4 {
		t.Errorf("%d keys for four combinations", len(ids))
	}
	newest := ring(t, identity.Options{
		Self: alice, Own: []identity.OwnKey{newA}, Peers: map[envelope.Address]identity.Peer{bob: publicOf([]identity.OwnKey{newB})},
	})
	wantReason(t, newest, send(t, both, message(bob, alice)), 0)
}

// A key that cannot work is refused when it is loaded, without showing it: it may
// be a seed that somebody has put in the wrong place.
func TestPublicKeysAreChecked(t *testing.T) {
	own := []identity.OwnKey{fixedKey(t, 1)}
	for name, key := range map[string]string{
		"empty": "", "a seed": own[0].Seed, "an account": encode(t, nkeys.PrefixByteAccount, bytes.Repeat([]byte{1}, 32)),
		"too short":      encode(t, nkeys.PrefixByteUser, []byte{1, 2, 3}),
		"too long":       encode(t, nkeys.PrefixByteUser, bytes.Repeat([]byte{1}, 33)),
		"no point":       encode(t, nkeys.PrefixByteUser, append([]byte{2}, make([]byte, 31)...)),
		"a bad checksum": own[0].Public[:len(own[0].Public)-1] + "A",
	} {
		_, err := identity.NewKeyring(identity.Options{Self: alice, Own: own, Peers: map[envelope.Address]identity.Peer{bob: {Public: []identity.PublicKey{{Key: key}}}}})
		if err == nil || !strings.Contains(err.Error(), string(bob)) || key != "" && strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, public := range []string{"UNONSENSE", encode(t, nkeys.PrefixByteUser, append([]byte{2}, make([]byte, 31)...))} {
		swapped := own[0]
		swapped.Public = public
		if _, err := identity.NewKeyring(identity.Options{Self: alice, Own: []identity.OwnKey{swapped}}); err == nil || !strings.Contains(err.Error(), string(alice)) {
			t.Errorf("an own public key that is none: %v", err)
		}
	}
}

// With a public key of low order everybody knows the shared secret: whoever claims
// such a key could be anybody.
func TestKeysOfLowOrderAreRefused(t *testing.T) {
	minusOne := bytes.Repeat([]byte{0xff}, 32)
	minusOne[0], minusOne[31] = 0xec, 0x7f
	for name, y := range map[string][]byte{
		"the neutral element": append([]byte{1}, make([]byte, 31)...),
		"order two":           minusOne,
		"order four":          make([]byte, 32),
	} {
		peer := identity.Peer{Public: []identity.PublicKey{{Key: encode(t, nkeys.PrefixByteUser, y)}}}
		_, err := identity.NewKeyring(identity.Options{
			Self: alice, Own: []identity.OwnKey{fixedKey(t, 1)}, Peers: map[envelope.Address]identity.Peer{bob: peer},
		})
		if err == nil || !strings.Contains(err.Error(), "low order") || !strings.Contains(err.Error(), string(bob)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func encode(t testing.TB, prefix nkeys.PrefixByte, raw []byte) string {
	t.Helper()
	key, err := nkeys.Encode(prefix, raw)
	if err != nil {
		t.Fatal(err)
	}
	return string(key)
}
