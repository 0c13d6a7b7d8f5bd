package identity

import (
	"bytes"
	"crypto/ecdh"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/agentd/agentd/envelope"
)

// An OwnKey is a key pair of this agent.
type OwnKey struct {
	// Public is the public half.
	Public string
	// Seed is an nkey seed of a user (SU…). It is secret.
	Seed string
	// Created is when the pair was generated, to the second.
	Created time.Time
	// Window is when the pair is valid.
	Window Window
}

// ownKey is an OwnKey in the form that keys are derived with.
type ownKey struct {
	party
	scalar *ecdh.PrivateKey
}

func (k OwnKey) parse(self envelope.Address) (ownKey, error) {
	prefix, raw, err := nkeys.DecodeSeed([]byte(k.Seed))
	if err != nil || prefix != nkeys.PrefixByteUser {
		return ownKey{}, fmt.Errorf("identity: the seed of %s is no seed of a user's nkey", k.Public)
	}
	p, err := parsePublic(self, PublicKey{Key: k.Public, Window: k.Window})
	if err != nil {
		return ownKey{}, err
	}
	s, err := scalar(raw)
	return ownKey{party: p, scalar: s}, err
}

// newOwnKey generates a key pair.
func newOwnKey(now time.Time) (OwnKey, error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return OwnKey{}, fmt.Errorf("identity: %w", err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		return OwnKey{}, fmt.Errorf("identity: %w", err)
	}
	seed, err := pair.Seed()
	if err != nil {
		return OwnKey{}, fmt.Errorf("identity: %w", err)
	}
	return OwnKey{Public: public, Seed: string(seed), Created: now.UTC().Truncate(time.Second)}, nil
}

// A Store is the file of an agent's own keys. Two processes must not write it at
// the same time.
type Store struct {
	// Path is the file. Only its owner can read it.
	Path string
	// Mounted is set for a file that somebody else provides, such as a Kubernetes
	// Secret: it is never written, and more than its owner may read it, as mounts have it.
	Mounted bool
}

// storeFile is the format of the file.
type storeFile struct {
	Version int        `json:"version"`
	Keys    []storeKey `json:"keys"`
}

type storeKey struct {
	Public    string    `json:"publicKey"`
	Seed      string    `json:"seed"`
	Created   time.Time `json:"created"`
	NotBefore time.Time `json:"notBefore,omitzero"`
	NotAfter  time.Time `json:"notAfter,omitzero"`
}

const storeVersion = 1

// Ensure returns the keys, oldest first. Where there is none it generates one and
// writes the file.
func (s Store) Ensure(now time.Time) ([]OwnKey, error) {
	keys, err := s.Keys()
	if err != nil || len(keys) > 0 {
		return keys, err
	}
	key, err := newOwnKey(now)
	if err != nil {
		return nil, err
	}
	return []OwnKey{key}, s.write([]OwnKey{key})
}

// Keys returns the keys, oldest first, or none if there is no file. The error names
// the file and what is wrong with it, and never contains a seed. It is an error if more
// users can read the file than should, or can write it.
func (s Store) Keys() ([]OwnKey, error) {
	f, err := os.Open(s.Path)
	if errors.Is(err, fs.ErrNotExist) && !s.Mounted {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("identity: %w", err)
	}
	defer func() { _ = f.Close() }() // nothing is written
	if err := s.checkMode(f); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes))
	if err != nil {
		return nil, fmt.Errorf("identity: %w", err)
	}
	keys, err := ParseKeys(data)
	if err != nil {
		return nil, fmt.Errorf("identity: %s: %w", s.Path, err)
	}
	if s.Mounted && len(keys) == 0 {
		return nil, fmt.Errorf("identity: %s: it holds no key", s.Path)
	}
	return keys, nil
}

// maxFileBytes is far above the size of any number of keys that a rotation leaves.
const maxFileBytes = 1 << 20

// checkMode refuses a file that others can read or change. It judges the open file: what
// the path names may change meanwhile.
func (s Store) checkMode(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("identity: %w", err)
	}
	const others, writers = 0o077, 0o022
	mode := info.Mode().Perm()
	switch {
	case runtime.GOOS == "windows": // which has access lists instead
	case !info.Mode().IsRegular():
		return fmt.Errorf("identity: %s is no regular file", s.Path)
	case s.Mounted && mode&writers != 0:
		return fmt.Errorf("identity: %s: users other than its owner can change it (mode %04o); mount it read-only, with defaultMode 0440 or less", s.Path, mode)
	case !s.Mounted && mode&others != 0:
		return fmt.Errorf("identity: %s: users other than its owner can open it (mode %04o): if any of them may have read it, rotate the key; then run chmod 600", s.Path, mode)
	}
	return nil
}

// ParseKeys reads the content of a file of keys, oldest first. The error never contains
// a seed.
func ParseKeys(data []byte) ([]OwnKey, error) {
	var file storeFile
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&file); err != nil {
		return nil, fmt.Errorf("not a file of keys: %w", err)
	}
	if file.Version != storeVersion {
		return nil, fmt.Errorf("version %d is not supported, only %d", file.Version, storeVersion)
	}
	keys := make([]OwnKey, len(file.Keys))
	for i, k := range file.Keys {
		keys[i] = OwnKey{Public: k.Public, Seed: k.Seed, Created: k.Created, Window: Window{NotBefore: k.NotBefore, NotAfter: k.NotAfter}}
		if err := keys[i].check(); err != nil {
			return nil, fmt.Errorf("key %d: %w", i+1, err)
		}
	}
	return keys, nil
}

// FormatKeys returns what ParseKeys reads. It contains the seeds.
func FormatKeys(keys []OwnKey) ([]byte, error) {
	file := storeFile{Version: storeVersion, Keys: []storeKey{}}
	for _, k := range keys {
		file.Keys = append(file.Keys, storeKey{
			Public: k.Public, Seed: k.Seed, Created: k.Created, NotBefore: k.Window.NotBefore, NotAfter: k.Window.NotAfter,
		})
	}
	data, err := json.MarshalIndent(file, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("identity: %w", err)
	}
	return append(data, '\n'), nil
}

// check returns an error unless both halves of the key belong together. An agent
// that signed with the one and published the other would fail at its peers, where
// nothing points at the file.
func (k OwnKey) check() error {
	pair, err := nkeys.FromSeed([]byte(k.Seed))
	if err != nil {
		return errors.New("the seed is none of an nkey")
	}
	if public, err := pair.PublicKey(); err != nil || public != k.Public {
		return errors.New("the seed is not that of its publicKey")
	}
	return nil
}

// Rotate adds a key pair that is valid from a moment on, and returns all keys. The
// older ones stay valid for overlap beyond that moment: until then, agents that
// have not loaded the new key still verify this agent's messages, and this agent
// verifies theirs. Keys that have expired are removed.
func (s Store) Rotate(now, from time.Time, overlap time.Duration) ([]OwnKey, error) {
	if overlap < 0 || from.Before(now.Add(-time.Minute)) {
		return nil, errors.New("identity: a key cannot become valid in the past, and the overlap cannot be negative")
	}
	before, err := s.Ensure(now)
	if err != nil {
		return nil, err
	}
	next, err := newOwnKey(now)
	if err != nil {
		return nil, err
	}
	from = from.UTC().Truncate(time.Second)
	next.Window.NotBefore = from
	var keys []OwnKey
	for _, k := range before {
		if k.Window.covers(now) == Expired {
			continue
		}
		if end := from.Add(overlap); k.Window.NotAfter.IsZero() || k.Window.NotAfter.After(end) {
			k.Window.NotAfter = end
		}
		keys = append(keys, k)
	}
	keys = append(keys, next)
	return keys, s.write(keys)
}

// An OtherKeysError reports keys that are in a store and not among those that are to
// replace them.
type OtherKeysError struct {
	// Path is the file, and Public are the public halves.
	Path   string
	Public []string
}

func (e *OtherKeysError) Error() string {
	return fmt.Sprintf("identity: %s holds keys that would be lost: %s", e.Path, strings.Join(e.Public, ", "))
}

// Replace writes keys, oldest first, in place of those in the store. A key of the store
// that has not expired and is not among keys is an [*OtherKeysError], unless force is set.
func (s Store) Replace(keys []OwnKey, now time.Time, force bool) error {
	if !force {
		before, err := s.Keys()
		if err != nil {
			return err
		}
		lost := &OtherKeysError{Path: s.Path}
		for _, k := range before {
			kept := slices.ContainsFunc(keys, func(n OwnKey) bool { return n.Public == k.Public })
			if !kept && k.Window.covers(now) != Expired {
				lost.Public = append(lost.Public, k.Public)
			}
		}
		if lost.Public != nil {
			return lost
		}
	}
	return s.write(keys)
}

// write replaces the file atomically: after a crash it is the old file or the new
// one. The data is synced before the rename, since a file system may otherwise
// make the name durable before the content, and a key that peers have been told of
// would be lost.
func (s Store) write(keys []OwnKey) (err error) {
	if s.Mounted {
		return fmt.Errorf("identity: %s is mounted: change the keys where they are made, and replace what is mounted", s.Path)
	}
	data, err := FormatKeys(keys)
	if err != nil {
		return err
	}
	dir := filepath.Dir(s.Path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("identity: %w", err)
	}
	f, err := os.CreateTemp(dir, ".identity-*") // 0600
	if err != nil {
		return fmt.Errorf("identity: %w", err)
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), s.Path)
	}
	if err != nil {
		return fmt.Errorf("identity: %w", errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}
