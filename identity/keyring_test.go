package identity_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/identity"
	"github.com/agentd/agentd/internal/alloctest"
)

const (
	alice   = envelope.Address("agent://alice")
	bob     = envelope.Address("agent://bob")
	mallory = envelope.Address("agent://mallory")
	secret  = "0123456789abcdef-shared"
)

func at(s string) time.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		panic(err)
	}
	return t
}

// keysOf makes a key pair of an agent.
func keysOf(t testing.TB) []identity.OwnKey {
	t.Helper()
	keys, err := identity.Store{Path: filepath.Join(t.TempDir(), "identity.json")}.Ensure(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func publicOf(keys []identity.OwnKey) identity.Peer {
	var p identity.Peer
	for _, k := range keys {
		p.Public = append(p.Public, identity.PublicKey{Key: k.Public, Window: k.Window})
	}
	return p
}

func ring(t testing.TB, o identity.Options) *identity.Keyring {
	t.Helper()
	k, err := identity.NewKeyring(o)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// pair is alice and bob, who know each other.
func pair(t testing.TB, p func(alice, bob []identity.OwnKey) (ofAlice, ofBob identity.Peer)) (a, b *identity.Keyring) {
	t.Helper()
	aliceKeys, bobKeys := keysOf(t), keysOf(t)
	ofAlice, ofBob := p(aliceKeys, bobKeys)
	a = ring(t, identity.Options{Self: alice, Own: aliceKeys, Peers: map[envelope.Address]identity.Peer{bob: ofBob}})
	b = ring(t, identity.Options{Self: bob, Own: bobKeys, Peers: map[envelope.Address]identity.Peer{alice: ofAlice}})
	return a, b
}

func nkeyPair(t testing.TB) (a, b *identity.Keyring) {
	return pair(t, func(a, b []identity.OwnKey) (identity.Peer, identity.Peer) { return publicOf(a), publicOf(b) })
}

func shared(secrets ...identity.Secret) func(a, b []identity.OwnKey) (identity.Peer, identity.Peer) {
	return func(_, _ []identity.OwnKey) (identity.Peer, identity.Peer) {
		p := identity.Peer{Secrets: secrets}
		return p, p
	}
}

func message(from, to envelope.Address) *envelope.Envelope {
	return &envelope.Envelope{
		Kind: envelope.Request, MessageID: "m-1", CorrelationID: "c-1", From: from, To: to, Capability: "review",
		ReplyTo: "nats://_INBOX.x", Deadline: 1_800_000_000_000, TenantID: "t",
		Headers: envelope.Headers{{Key: "traceparent", Value: "00-a"}, {Key: "x", Value: "y"}},
		Payload: json.RawMessage(`{"b":1.0,"a":["é"]}`),
	}
}

// send signs a message and returns it as the other end decodes it.
func send(t testing.TB, k *identity.Keyring, e *envelope.Envelope) *envelope.Envelope {
	t.Helper()
	data, err := e.EncodeSigned(k)
	if err != nil {
		t.Fatal(err)
	}
	got, err := envelope.Decode(data)
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	return got
}

func wantReason(t testing.TB, k *identity.Keyring, e *envelope.Envelope, want identity.Reason) {
	t.Helper()
	proven, err := k.Verify(e)
	if identity.ReasonOf(err) != want || proven != (want == 0) {
		t.Errorf("proven %v, error %v; want the reason %s", proven, err, want)
	}
}

// The vector is made by hand: the JSON of version 1 in its fixed order, and an
// HMAC of another implementation's making.
func TestWireFormOfTheReferenceSystem(t *testing.T) {
	form := `{"version":1,"kind":"request","messageId":"m-1","correlationId":"c-1","from":"agent://alice","to":"agent://bob",` +
		`"capability":"review","replyTo":"nats://_INBOX.x","deadline":1800000000000,"tenantId":"t",` +
		`"headers":{"traceparent":"00-a","x":"y"},"payload":{"b":1.0,"a":["é"]}}`
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(form))
	signature := hex.EncodeToString(mac.Sum(nil))
	wire := strings.TrimSuffix(form, "}") + `,"auth":{"kind":"hmac","keyId":"k1","signature":"` + signature + `"}}`

	a, b := pair(t, shared(identity.Secret{ID: "k1", Key: []byte(secret)}))
	got, err := message(alice, bob).EncodeSigned(a)
	if err != nil || string(got) != wire {
		t.Errorf("%v, got\n%s\nwant\n%s", err, got, wire)
	}
	// The reference system's peers may write auth, and anything else, in another order.
	reordered := `{"auth":{"signature":"` + signature + `","keyId":"k1","kind":"hmac"},` + strings.TrimPrefix(form, "{")
	e, err := envelope.Decode([]byte(reordered))
	if err != nil {
		t.Fatal(err)
	}
	wantReason(t, b, e, 0)
}

func TestEveryFieldIsCovered(t *testing.T) {
	a, b := nkeyPair(t)
	for name, change := range map[string]func(*envelope.Envelope){
		"kind":          func(e *envelope.Envelope) { e.Kind = envelope.Response },
		"messageId":     func(e *envelope.Envelope) { e.MessageID = "m-2" },
		"correlationId": func(e *envelope.Envelope) { e.CorrelationID = "c-2" },
		"causedBy":      func(e *envelope.Envelope) { e.CausedBy = "x" },
		"to":            func(e *envelope.Envelope) { e.To = mallory },
		"capability":    func(e *envelope.Envelope) { e.Capability = "delete" },
		"replyTo":       func(e *envelope.Envelope) { e.ReplyTo = "nats://_INBOX.evil" },
		"deadline":      func(e *envelope.Envelope) { e.Deadline++ },
		"tenantId":      func(e *envelope.Envelope) { e.TenantID = "" },
		"headers":       func(e *envelope.Envelope) { e.Headers = e.Headers.With("x", "z") },
		"header added":  func(e *envelope.Envelope) { e.Headers = e.Headers.With("w", "z") },
		"payload":       func(e *envelope.Envelope) { e.Payload = json.RawMessage(`{"b":1,"a":["é"]}`) },
		"no payload":    func(e *envelope.Envelope) { e.Payload = nil },
		"signature":     func(e *envelope.Envelope) { e.Auth.Signature = strings.Repeat("0", 64) },
		"upper case":    func(e *envelope.Envelope) { e.Auth.Signature = strings.ToUpper(e.Auth.Signature) + "" },
		"short":         func(e *envelope.Envelope) { e.Auth.Signature = e.Auth.Signature[:62] },
	} {
		t.Run(name, func(t *testing.T) {
			e := send(t, a, message(alice, bob))
			wantReason(t, b, e, 0)
			change(e)
			wantReason(t, b, e, identity.BadSignature)
		})
	}
}

func TestRefusedProofs(t *testing.T) {
	a, b := nkeyPair(t)
	hmacA, hmacB := pair(t, shared(identity.Secret{ID: "k1", Key: []byte(secret)}))
	good := func(k *identity.Keyring) *envelope.Envelope { return send(t, k, message(alice, bob)) }
	with := func(e *envelope.Envelope, auth envelope.Auth) *envelope.Envelope { e.Auth = auth; return e }
	from := func(e *envelope.Envelope, a envelope.Address) *envelope.Envelope { e.From = a; return e }
	strict := ring(t, identity.Options{Self: bob, Require: true})
	for _, test := range []struct {
		name string
		at   *identity.Keyring
		e    *envelope.Envelope
		want identity.Reason
	}{
		{"proven", b, good(a), 0},
		{"proven by a secret", hmacB, good(hmacA), 0},
		{"claimed only", b, with(good(a), envelope.Auth{Kind: envelope.AuthInternal}), identity.MissingAuth},
		{"nothing", b, with(good(a), envelope.Auth{}), identity.MissingAuth},
		{"a token", b, with(good(a), envelope.Auth{Kind: envelope.AuthOIDC, Token: "t"}), identity.WrongKind},
		{"another's key", b, good(hmacA), identity.UnknownKey},
		{"sent back to its sender", a, from(good(a), bob), identity.UnknownKey},
		{"an unknown sender where proof is a must", strict, good(a), identity.UnknownPeer},
	} {
		t.Run(test.name, func(t *testing.T) { wantReason(t, test.at, test.e, test.want) })
	}
	if proven, err := b.Verify(from(good(a), mallory)); err != nil || proven {
		t.Errorf("an agent without identity is taken unproven where that is allowed: got %v, %v", proven, err)
	}
	if _, err := message(bob, mallory).EncodeSigned(strict); identity.ReasonOf(err) != identity.UnknownPeer {
		t.Errorf("nothing is sent to whom nothing can be proven: %v", err)
	}
}

// A message must not count where its two agents have changed roles: the keys of
// the two directions differ, and so do those of other pairs.
func TestKeysDifferByDirectionAndPair(t *testing.T) {
	aliceKeys, bobKeys, malloryKeys := keysOf(t), keysOf(t), keysOf(t)
	peers := map[envelope.Address]identity.Peer{alice: publicOf(aliceKeys), bob: publicOf(bobKeys), mallory: publicOf(malloryKeys)}
	rings := map[envelope.Address]*identity.Keyring{}
	for self, own := range map[envelope.Address][]identity.OwnKey{alice: aliceKeys, bob: bobKeys, mallory: malloryKeys} {
		rings[self] = ring(t, identity.Options{Self: self, Own: own, Peers: peers})
	}
	seen := map[string]string{}
	for from, k := range rings {
		for to := range rings {
			if from == to {
				continue
			}
			auth, err := k.Sign(to, []byte("form"))
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range []string{auth.KeyID, auth.Signature} {
				if other, dup := seen[text]; dup {
					t.Errorf("%s to %s shares %s with %s", from, to, text, other)
				}
				seen[text] = string(from) + " to " + string(to)
			}
		}
	}
	// Mallory, who has keys with both, cannot speak as Alice to Bob.
	e := send(t, rings[mallory], message(mallory, bob))
	e.From = alice
	wantReason(t, rings[bob], e, identity.UnknownKey)
}

func TestWindows(t *testing.T) {
	now := at("2026-06-01T00:00:00Z")
	clock := func() time.Time { return now }
	old := identity.Secret{ID: "old", Key: []byte(secret + "1"), Window: identity.Window{NotAfter: at("2026-07-01T00:00:00Z")}}
	next := identity.Secret{ID: "new", Key: []byte(secret + "2"), Window: identity.Window{NotBefore: at("2026-06-15T00:00:00Z")}}
	peers := func(a envelope.Address) identity.Options {
		return identity.Options{Peers: map[envelope.Address]identity.Peer{a: {Secrets: []identity.Secret{old, next}}}, Now: clock}
	}
	a, b := ring(t, peers(bob)), ring(t, peers(alice))
	for _, test := range []struct {
		at, signs    string
		oldOK, newOK identity.Reason
	}{
		{"2026-06-01T00:00:00Z", "old", 0, identity.NotYetValid},
		{"2026-06-20T00:00:00Z", "new", 0, 0}, // both count, the newer signs
		{"2026-07-02T00:00:00Z", "new", identity.Expired, 0},
	} {
		now = at(test.at)
		e := send(t, a, message(alice, bob))
		if e.Auth.KeyID != test.signs {
			t.Errorf("%s: key %s signs, want %s", test.at, e.Auth.KeyID, test.signs)
		}
		for id, want := range map[string]identity.Reason{"old": test.oldOK, "new": test.newOK} {
			e := message(alice, bob)
			e.Auth = signWith(t, e, id, map[string]string{"old": secret + "1", "new": secret + "2"}[id])
			wantReason(t, b, e, want)
		}
	}
	now = at("2026-08-01T00:00:00Z")
	onlyOld := ring(t, identity.Options{Peers: map[envelope.Address]identity.Peer{bob: {Secrets: []identity.Secret{old}}}, Now: clock})
	if _, err := message(alice, bob).EncodeSigned(onlyOld); identity.ReasonOf(err) != identity.Expired {
		t.Errorf("signing without a key that counts: %v", err)
	}
}

// Secrets of sixteen bytes are in use: the bound must not creep.
func TestShortestSecret(t *testing.T) {
	a, b := pair(t, shared(identity.Secret{ID: "k", Key: []byte(secret)[:16]}))
	wantReason(t, b, send(t, a, message(alice, bob)), 0)
}

// A key is valid from the first to the last moment of its window, both included.
func TestWindowEnds(t *testing.T) {
	begin, end := at("2026-06-01T00:00:00Z"), at("2026-07-01T00:00:00Z")
	for _, test := range []struct {
		name   string
		window identity.Window
		now    time.Time
		want   identity.Reason
	}{
		{"open", identity.Window{}, begin, 0},
		{"before", identity.Window{NotBefore: begin}, begin.Add(-1), identity.NotYetValid},
		{"first moment", identity.Window{NotBefore: begin}, begin, 0},
		{"last moment", identity.Window{NotAfter: end}, end, 0},
		{"after", identity.Window{NotAfter: end}, end.Add(1), identity.Expired},
		{"inside", identity.Window{NotBefore: begin, NotAfter: end}, begin.Add(1), 0},
		{"an open begin", identity.Window{NotAfter: end}, time.Time{}.Add(time.Hour), 0},
		{"an open end", identity.Window{NotBefore: begin}, end.AddDate(100, 0, 0), 0},
	} {
		clock := func() time.Time { return test.now }
		peer := identity.Peer{Secrets: []identity.Secret{{ID: "k", Key: []byte(secret), Window: test.window}}}
		b := ring(t, identity.Options{Self: bob, Peers: map[envelope.Address]identity.Peer{alice: peer}, Now: clock})
		e := message(alice, bob)
		e.Auth = signWith(t, e, "k", secret)
		proven, err := b.Verify(e)
		if identity.ReasonOf(err) != test.want || proven != (test.want == 0) {
			t.Errorf("%s: verified %v, %v", test.name, proven, err)
		}
		if _, err := b.Sign(alice, nil); identity.ReasonOf(err) != test.want {
			t.Errorf("%s: signing: %v", test.name, err)
		}
	}
}

// When no key can sign, the error is about the newest: it is the one to look at.
func TestSignNamesTheNewestKey(t *testing.T) {
	now := at("2026-06-01T00:00:00Z")
	expired := identity.Secret{ID: "old", Key: []byte(secret), Window: identity.Window{NotAfter: now.Add(-time.Hour)}}
	early := identity.Secret{ID: "new", Key: []byte(secret), Window: identity.Window{NotBefore: now.Add(time.Hour)}}
	k := ring(t, identity.Options{Self: alice, Now: func() time.Time { return now },
		Peers: map[envelope.Address]identity.Peer{bob: {Secrets: []identity.Secret{expired, early}}}})
	auth, err := k.Sign(bob, []byte("form"))
	want := identity.Error{Reason: identity.NotYetValid, Peer: bob, Provider: identity.HMAC, KeyID: "new"}
	if got, ok := errors.AsType[*identity.Error](err); !ok || *got != want || auth != (envelope.Auth{}) {
		t.Errorf("got %+v and %+v, want %+v", auth, err, want)
	}
}

// Without a key for a peer its messages are a claim, which is said to be one; where
// proofs are required there is none.
func TestPeersWithoutKeys(t *testing.T) {
	none := map[envelope.Address]identity.Peer{bob: {}}
	for name, peers := range map[string]map[envelope.Address]identity.Peer{"unknown": nil, "without a key": none} {
		open, strict := ring(t, identity.Options{Self: alice, Peers: peers}), ring(t, identity.Options{Self: alice, Peers: peers, Require: true})
		if auth, err := open.Sign(bob, nil); err != nil || auth != (envelope.Auth{Kind: envelope.AuthInternal}) {
			t.Errorf("%s: signs %+v, %v", name, auth, err)
		}
		e := message(bob, alice)
		e.Auth = envelope.Auth{Kind: envelope.AuthHMAC, KeyID: strings.Repeat("k", 100), Signature: "00"}
		if proven, err := open.Verify(e); err != nil || proven {
			t.Errorf("%s: verified %v, %v", name, proven, err)
		}
		want := identity.Error{Reason: identity.UnknownPeer, Peer: bob, Provider: identity.Internal}
		_, err := strict.Sign(bob, nil)
		if got, ok := errors.AsType[*identity.Error](err); !ok || *got != want {
			t.Errorf("%s: signing where proofs are required: %v", name, err)
		}
		proven, err := strict.Verify(e)
		want.KeyID = strings.Repeat("k", 64) + "…" // what a sender writes into records is bounded
		if got, ok := errors.AsType[*identity.Error](err); !ok || *got != want || proven {
			t.Errorf("%s: verifying where proofs are required: %v, %v", name, proven, err)
		}
	}
}

func TestErrors(t *testing.T) {
	a, b := pair(t, shared(identity.Secret{ID: "k1", Key: []byte(secret)}))
	e := send(t, a, message(alice, bob))
	e.Auth.KeyID = strings.Repeat("x", 65)
	_, err := b.Verify(e)
	if want := "agent://alice: unknown-key (key \"" + strings.Repeat("x", 64) + "…\")"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	e.Auth = envelope.Auth{}
	if _, err := b.Verify(e); err == nil || err.Error() != "agent://alice: missing-auth" {
		t.Errorf("without a key: %v", err)
	}
	if r := identity.ReasonOf(fmt.Errorf("call: %w", err)); r != identity.UnknownKey {
		t.Errorf("the reason of a wrapped error is %s", r)
	}
	if r := identity.ReasonOf(errors.New("another")); r != 0 {
		t.Errorf("the reason of another error is %s", r)
	}
}

// A large message leaves no large buffer behind, and the next one is right.
func TestVerifyAfterALargeMessage(t *testing.T) {
	a, b := nkeyPair(t)
	large := message(alice, bob)
	large.Payload = json.RawMessage(`"` + strings.Repeat("x", 1<<20) + `"`)
	for _, m := range []*envelope.Envelope{large, message(alice, bob), large} {
		e := send(t, a, m)
		wantReason(t, b, e, 0)
		e.TenantID = "other"
		wantReason(t, b, e, identity.BadSignature)
	}
	// Signing and verifying cost what they return: an Auth's text.
	form, e := message(alice, bob).SigningForm(), send(t, a, message(alice, bob))
	if got := alloctest.Least(100, func() {
		if _, err := a.Sign(bob, form); err != nil {
			t.Error(err)
		}
		if proven, err := b.Verify(e); err != nil || !proven {
			t.Error(err)
		}
	}); got > 1 && !raceEnabled {
		t.Errorf("%v allocations", got)
	}
}

func signWith(t testing.TB, e *envelope.Envelope, id, key string) envelope.Auth {
	t.Helper()
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write(e.SigningForm())
	return envelope.Auth{Kind: envelope.AuthHMAC, KeyID: id, Signature: hex.EncodeToString(mac.Sum(nil))}
}

// Any byte of a signed message may change on its way: then it is refused, or it
// is still the same message.
func TestAnyChangedByteIsNoticed(t *testing.T) {
	a, b := nkeyPair(t)
	data, err := message(alice, bob).EncodeSigned(a)
	if err != nil {
		t.Fatal(err)
	}
	want := message(alice, bob).SigningForm()
	rapid.Check(t, func(t *rapid.T) {
		changed := append([]byte(nil), data...)
		i := rapid.IntRange(0, len(changed)-1).Draw(t, "at")
		changed[i] = rapid.Byte().Draw(t, "byte")
		e, err := envelope.Decode(changed)
		if err != nil {
			return
		}
		// A changed sender is another matter: nothing is known of that one here.
		if proven, err := b.Verify(e); err == nil && proven && string(e.SigningForm()) != string(want) {
			t.Fatalf("taken for proven: %s", changed)
		}
	})
}

func TestSignsConcurrently(t *testing.T) {
	a, b := nkeyPair(t)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 200 {
				e := message(alice, bob)
				e.MessageID = fmt.Sprintf("m-%d-%d", g, i)
				data, err := e.EncodeSigned(a)
				if err != nil {
					t.Error(err)
					return
				}
				got, err := envelope.Decode(data)
				if err != nil {
					t.Error(err)
					return
				}
				if proven, err := b.Verify(got); err != nil || !proven {
					t.Errorf("%v %v", proven, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestKeysThatCannotBeUsed(t *testing.T) {
	own := keysOf(t)
	swapped := own[0]
	swapped.Seed = keysOf(t)[0].Public
	for name, test := range map[string]struct {
		o    identity.Options
		want string
	}{
		"almost enough": {identity.Options{Peers: map[envelope.Address]identity.Peer{bob: {Secrets: []identity.Secret{{ID: "k", Key: []byte(secret)[:15]}}}}}, "has 15 bytes, and at least 16"},
		"short secret":  {identity.Options{Peers: map[envelope.Address]identity.Peer{bob: {Secrets: []identity.Secret{{ID: "k", Key: []byte("short")}}}}}, "at least 16"},
		"no key id":     {identity.Options{Peers: map[envelope.Address]identity.Peer{bob: {Secrets: []identity.Secret{{Key: []byte(secret)}}}}}, "no key id"},
		"twice":         {identity.Options{Peers: map[envelope.Address]identity.Peer{bob: {Secrets: []identity.Secret{{ID: "k", Key: []byte(secret)}, {ID: "k", Key: []byte(secret)}}}}}, `two secrets named "k"`},
		"both kinds":    {identity.Options{Own: own, Peers: map[envelope.Address]identity.Peer{bob: {Secrets: []identity.Secret{{ID: "k", Key: []byte(secret)}}, Public: publicOf(own).Public}}}, "both secrets and public keys"},
		"no nkey":       {identity.Options{Own: own, Peers: map[envelope.Address]identity.Peer{bob: {Public: []identity.PublicKey{{Key: "Uabc"}}}}}, "no public nkey"},
		"a seed":        {identity.Options{Own: own, Peers: map[envelope.Address]identity.Peer{bob: {Public: []identity.PublicKey{{Key: own[0].Seed}}}}}, "no public nkey"},
		"a bad own key": {identity.Options{Self: alice, Own: []identity.OwnKey{swapped}}, "no seed of a user"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := identity.NewKeyring(test.o)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want it to say %q", err, test.want)
			}
			if err != nil && (strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), own[0].Seed)) {
				t.Errorf("the error holds a secret: %v", err)
			}
		})
	}
}

// The texts are in audit logs and in what operators search for.
func TestReasonTexts(t *testing.T) {
	var texts []string
	for _, r := range identity.Reasons() {
		texts = append(texts, r.String())
	}
	if got, want := strings.Join(texts, " "), "missing-auth wrong-kind unknown-peer unknown-key not-yet-valid expired bad-signature replayed "+
		"no-deadline too-many foreign-reply"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestReasonsRoundTrip(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range identity.Reasons() {
		text, err := r.MarshalText()
		var back identity.Reason
		if err != nil || back.UnmarshalText(text) != nil || back != r || seen[string(text)] || string(text) != r.String() {
			t.Errorf("%d: %s, back %d", r, text, back)
		}
		seen[string(text)] = true
	}
	for _, bad := range []identity.Reason{0, identity.ForeignReply + 1, 99} {
		if _, err := bad.MarshalText(); err == nil || bad.String() != fmt.Sprintf("Reason(%d)", bad) {
			t.Errorf("%d is no reason", bad)
		}
	}
	if err := new(identity.Reason).UnmarshalText([]byte("because")); err == nil {
		t.Error("an unknown reason is read")
	}
}
