package identity_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/identity"
)

func TestStoreMakesOneKeyAndKeepsIt(t *testing.T) {
	s := identity.Store{Path: filepath.Join(t.TempDir(), "state", "identity.json")}
	if keys, err := s.Keys(); err != nil || keys != nil {
		t.Fatalf("before the first: %v, %v", keys, err)
	}
	first, err := s.Ensure(time.Now())
	if err != nil || len(first) != 1 {
		t.Fatal(first, err)
	}
	again, err := s.Ensure(time.Now())
	if err != nil || len(again) != 1 || again[0] != first[0] {
		t.Errorf("got %v and %v, want the same key", again, err)
	}
	info, err := os.Stat(s.Path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, mode %v: only its owner may read a seed", err, info.Mode())
	}
}

// Two agents that read each other's keys at different moments of a rotation
// understand each other at all of them.
func TestRotationLeavesNoGap(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	clock := func() time.Time { return now }
	s := identity.Store{Path: filepath.Join(t.TempDir(), "identity.json")}
	before, err := s.Ensure(now)
	if err != nil {
		t.Fatal(err)
	}
	bobKeys := keysOf(t)
	after, err := s.Rotate(now, now.Add(time.Hour), 24*time.Hour)
	if err != nil || len(after) != 2 || after[0].Public != before[0].Public {
		t.Fatal(after, err)
	}
	ringOf := func(self envelope.Address, own []identity.OwnKey, other envelope.Address, p identity.Peer) *identity.Keyring {
		return ring(t, identity.Options{Self: self, Own: own, Peers: map[envelope.Address]identity.Peer{other: p}, Now: clock})
	}
	// What each of the two has read: before or after the rotation.
	alices := map[string]*identity.Keyring{
		"before": ringOf(alice, before, bob, publicOf(bobKeys)), "after": ringOf(alice, after, bob, publicOf(bobKeys)),
	}
	bobs := map[string]*identity.Keyring{
		"before": ringOf(bob, bobKeys, alice, publicOf(before)), "after": ringOf(bob, bobKeys, alice, publicOf(after)),
	}
	for _, step := range []struct {
		after  time.Duration
		alices []string // who runs at this step
		bobs   []string
	}{
		{time.Minute, []string{"before", "after"}, []string{"before", "after"}},
		{2 * time.Hour, []string{"after"}, []string{"after"}},
		{26 * time.Hour, []string{"after"}, []string{"after"}},
	} {
		now = before[0].Created.Add(step.after)
		for _, an := range step.alices {
			for _, bn := range step.bobs {
				wantReason(t, bobs[bn], send(t, alices[an], message(alice, bob)), 0)
				wantReason(t, alices[an], send(t, bobs[bn], message(bob, alice)), 0)
			}
		}
	}
	// An agent that has not read its own new key is still understood.
	now = before[0].Created.Add(2 * time.Hour)
	wantReason(t, bobs["after"], send(t, alices["before"], message(alice, bob)), 0)
	now = before[0].Created.Add(26 * time.Hour)
	// The old key is over, and goes at the next rotation.
	wantReason(t, bobs["after"], send(t, alices["before"], message(alice, bob)), identity.Expired)
	third, err := s.Rotate(now, now, 0)
	if err != nil || len(third) != 2 || third[0].Public != after[1].Public {
		t.Errorf("%v, %v: want the second and a third key", third, err)
	}
}

func TestStoreRefusesWhatItDoesNotUnderstand(t *testing.T) {
	other := keysOf(t)[0]
	mine := keysOf(t)[0]
	for name, test := range map[string]struct{ content, want string }{
		"no JSON":     {"{", "not a file of keys"},
		"unknown key": {`{"version":1,"keys":[],"x":1}`, `unknown field "x"`},
		"version":     {`{"version":2,"keys":[]}`, "version 2 is not supported"},
		"swapped":     {`{"version":1,"keys":[{"publicKey":"` + mine.Public + `","seed":"` + other.Seed + `","created":"2026-01-01T00:00:00Z"}]}`, "the seed is not that of"},
		"no seed":     {`{"version":1,"keys":[{"publicKey":"` + mine.Public + `","seed":"S","created":"2026-01-01T00:00:00Z"}]}`, "key 1 of"},
	} {
		t.Run(name, func(t *testing.T) {
			s := identity.Store{Path: filepath.Join(t.TempDir(), "identity.json")}
			if err := os.WriteFile(s.Path, []byte(test.content), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := s.Ensure(time.Now())
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), s.Path) {
				t.Errorf("got %v, want the file and %q", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), other.Seed) {
				t.Errorf("the error holds a seed: %v", err)
			}
			if got, _ := os.ReadFile(s.Path); string(got) != test.content {
				t.Error("a file that is not understood was changed")
			}
		})
	}
	s := identity.Store{Path: filepath.Join(t.TempDir(), "identity.json")}
	if _, err := s.Rotate(time.Now(), time.Now().Add(-time.Hour), 0); err == nil {
		t.Error("a key that begins in the past")
	}
}

func FuzzVerify(f *testing.F) {
	a, b := pair(f, shared(identity.Secret{ID: "k1", Key: []byte(secret)}))
	data, err := message(alice, bob).EncodeSigned(a)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"version":1,"kind":"event","messageId":"m","correlationId":"c","from":"agent://alice","to":"agent://bob","capability":"c","auth":{"kind":"hmac","keyId":"k1","signature":"00"}}`))
	want := message(alice, bob).SigningForm()
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := envelope.Decode(data)
		if err != nil {
			return
		}
		if proven, err := b.Verify(e); err == nil && proven && string(e.SigningForm()) != string(want) {
			t.Errorf("proven without the key: %s", data)
		}
	})
}
