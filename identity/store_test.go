package identity_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
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
		"no seed":     {`{"version":1,"keys":[{"publicKey":"` + mine.Public + `","seed":"S","created":"2026-01-01T00:00:00Z"}]}`, "key 1:"},
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
}

// The file is read by every later version, and by people.
func TestStoreFormat(t *testing.T) {
	s := identity.Store{Path: filepath.Join(t.TempDir(), "identity.json")}
	now := at("2026-06-01T12:00:00Z").Add(123456789)
	keys, err := s.Rotate(now, now.Add(time.Hour), 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`{
  "version": 1,
  "keys": [
    {
      "publicKey": %q,
      "seed": %q,
      "created": "2026-06-01T12:00:00Z",
      "notAfter": "2026-06-02T13:00:00Z"
    },
    {
      "publicKey": %q,
      "seed": %q,
      "created": "2026-06-01T12:00:00Z",
      "notBefore": "2026-06-01T13:00:00Z"
    }
  ]
}
`, keys[0].Public, keys[0].Seed, keys[1].Public, keys[1].Seed)
	if got, err := os.ReadFile(s.Path); err != nil || string(got) != want {
		t.Errorf("%v\ngot\n%s\nwant\n%s", err, got, want)
	}
	back, err := s.Keys()
	if err != nil || len(back) != 2 || back[0] != keys[0] || back[1] != keys[1] {
		t.Errorf("read back %+v, %v\nwant %+v", back, err, keys)
	}
}

// A rotation never lets a key live longer than it was going to, and drops those
// that are over.
func TestRotateKeepsWhatCounts(t *testing.T) {
	s := identity.Store{Path: filepath.Join(t.TempDir(), "identity.json")}
	now := at("2026-06-01T12:00:00Z")
	rotate := func(from time.Time, overlap time.Duration) []identity.OwnKey {
		t.Helper()
		keys, err := s.Rotate(now, from, overlap)
		if err != nil {
			t.Fatal(err)
		}
		return keys
	}
	first := rotate(now.Add(time.Hour), time.Hour)
	if end := first[0].Window.NotAfter; !end.Equal(now.Add(2*time.Hour)) || !first[1].Window.NotAfter.IsZero() {
		t.Errorf("the first key ends %s, the second %s", end, first[1].Window.NotAfter)
	}
	second := rotate(now.Add(time.Hour), 24*time.Hour)
	if len(second) != 3 || second[0] != first[0] {
		t.Errorf("a longer overlap changed a key that ends before: %+v", second)
	}
	if end := second[1].Window.NotAfter; !end.Equal(now.Add(25 * time.Hour)) {
		t.Errorf("the second key ends %s", end)
	}
	third := rotate(now, time.Minute)
	for i, key := range third[:3] {
		if end := key.Window.NotAfter; !end.Equal(now.Add(time.Minute)) {
			t.Errorf("a shorter overlap: key %d ends %s", i, end)
		}
	}
	now = now.Add(time.Hour)
	fourth := rotate(now, 0)
	if len(fourth) != 2 || fourth[0].Public != third[3].Public || !fourth[0].Window.NotAfter.Equal(now) {
		t.Errorf("%d keys, want the last one until now, and a new one", len(fourth))
	}
}

// What cannot be done leaves the file as it was.
func TestRotateRefuses(t *testing.T) {
	s := identity.Store{Path: filepath.Join(t.TempDir(), "identity.json")}
	now := time.Now()
	if _, err := s.Ensure(now); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(s.Path)
	if err != nil {
		t.Fatal(err)
	}
	for name, try := range map[string]func() error{
		"a key that begins in the past": func() error { _, err := s.Rotate(now, now.Add(-61*time.Second), 0); return err },
		"a negative overlap":            func() error { _, err := s.Rotate(now, now, -1); return err },
		"an unreadable file": func() error {
			_, err := identity.Store{Path: filepath.Dir(s.Path)}.Rotate(now, now, 0)
			return err
		},
	} {
		if try() == nil {
			t.Error(name)
		}
	}
	if after, err := os.ReadFile(s.Path); err != nil || string(after) != string(before) {
		t.Errorf("the file changed: %v", err)
	}
	// The clock of a rotation that was planned a moment ago has gone on since.
	if _, err := s.Rotate(now, now.Add(-time.Minute), 0); err != nil {
		t.Errorf("a key that begins with this minute: %v", err)
	}
}

// An agent must not run with keys that the next start would not find.
func TestStoreThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	blocked := filepath.Join(dir, "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	target, dangling := filepath.Join(dir, "target"), filepath.Join(dir, "dangling")
	if err := errors.Join(os.Mkdir(target, 0o700), os.Symlink(filepath.Join(dir, "nowhere"), dangling)); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{
		"below a file":                 filepath.Join(blocked, "identity.json"),
		"over a folder":                target,
		"in a folder that is not made": filepath.Join(dangling, "identity.json"),
		"as a folder":                  filepath.Join(dir, "identity.json") + "/", // the rename fails, after all else
	} {
		s := identity.Store{Path: path}
		if keys, err := s.Ensure(time.Now()); err == nil {
			t.Errorf("%s: made %d keys", name, len(keys))
		}
		if keys, err := s.Rotate(time.Now(), time.Now(), 0); err == nil {
			t.Errorf("%s: rotated to %d keys", name, len(keys))
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, "*", ".identity-*"))
	if err != nil || len(left) != 0 {
		t.Errorf("temporary files with seeds are left: %v, %v", left, err)
	}
}

// Seeds are for their owner's eyes: the folder that is made for them is closed too.
func TestStoreIsPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "state")
	s := identity.Store{Path: filepath.Join(dir, "identity.json")}
	if _, err := s.Ensure(time.Now()); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{dir: 0o700, filepath.Dir(dir): 0o700, s.Path: 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: mode %v, %v; want %v", path, info.Mode(), err, want)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("beside the file there is %v, %v", entries, err)
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

// The seeds are for the owner alone; a mounted secret may be for a group, as mounts have
// it. Nobody else may change either.
func TestModesOfTheFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has access lists instead of modes")
	}
	for _, test := range []struct {
		mode    os.FileMode
		mounted bool
		want    string // in the error
	}{
		{0o600, false, ""},
		{0o400, false, ""},
		{0o640, false, "run chmod 600"},
		{0o604, false, "run chmod 600"},
		{0o620, false, "run chmod 600"},
		{0o440, true, ""},
		{0o444, true, ""}, // the default of several systems; agentd shows it as a condition
		{0o460, true, "mount it read-only"},
		{0o602, true, "mount it read-only"},
	} {
		s := identity.Store{Path: filepath.Join(t.TempDir(), "identity.json")}
		made, err := s.Ensure(time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(s.Path, test.mode); err != nil {
			t.Fatal(err)
		}
		s.Mounted = test.mounted
		keys, err := s.Keys()
		if test.want == "" && (err != nil || len(keys) != 1 || keys[0] != made[0]) {
			t.Errorf("%04o, mounted %v: %v, %v", test.mode, test.mounted, keys, err)
		}
		if test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), s.Path)) {
			t.Errorf("%04o, mounted %v: %v, want %q", test.mode, test.mounted, err, test.want)
		}
	}
}

// A mounted file must be there and hold a key, and is never written.
func TestMountedFile(t *testing.T) {
	s := identity.Store{Path: filepath.Join(t.TempDir(), "identity.json"), Mounted: true}
	if _, err := s.Ensure(time.Now()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	empty, err := identity.FormatKeys(nil)
	if err == nil {
		err = os.WriteFile(s.Path, empty, 0o400)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Ensure(time.Now()); err == nil || !strings.Contains(err.Error(), "holds no key") {
		t.Errorf("without a key: %v", err)
	}
	if err := s.Replace(keysOf(t), time.Now(), true); err == nil || !strings.Contains(err.Error(), "is mounted") {
		t.Errorf("replaced: %v", err)
	}
	if got, err := os.ReadFile(s.Path); err != nil || string(got) != string(empty) {
		t.Errorf("the file is now %s, %v", got, err)
	}
}

// Keys replace those that they include, and others only by force. A key that has expired
// is no loss.
func TestReplace(t *testing.T) {
	now := time.Now()
	s := identity.Store{Path: filepath.Join(t.TempDir(), "identity.json")}
	first := keysOf(t)
	if err := s.Replace(first, now, false); err != nil {
		t.Fatal(err)
	}
	both, err := s.Rotate(now, now, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	err = s.Replace(first, now, false) // as it was before the rotation
	if lost, ok := errors.AsType[*identity.OtherKeysError](err); !ok || len(lost.Public) != 1 || lost.Public[0] != both[1].Public {
		t.Errorf("an older state: %v", err)
	}
	if got, err := s.Keys(); err != nil || len(got) != 2 {
		t.Errorf("now %v, %v", got, err)
	}
	if err := s.Replace(both[1:], now.Add(2*time.Hour), false); err != nil {
		t.Errorf("without the expired key: %v", err)
	}
	if err := s.Replace(first, now, true); err != nil {
		t.Error(err)
	}
	if got, err := s.Keys(); err != nil || len(got) != 1 || got[0] != first[0] {
		t.Errorf("by force: %v, %v", got, err)
	}
}
