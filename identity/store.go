package identity

import (
	"bytes"
	"crypto/ecdh"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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
// the file and what is wrong with it, and never contains a seed.
func (s Store) Keys() ([]OwnKey, error) {
	data, err := os.ReadFile(s.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("identity: %w", err)
	}
	var file storeFile
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&file); err != nil {
		return nil, fmt.Errorf("identity: %s: not a file of keys: %w", s.Path, err)
	}
	if file.Version != storeVersion {
		return nil, fmt.Errorf("identity: %s: version %d is not supported, only %d", s.Path, file.Version, storeVersion)
	}
	keys := make([]OwnKey, len(file.Keys))
	for i, k := range file.Keys {
		keys[i] = OwnKey{Public: k.Public, Seed: k.Seed, Created: k.Created, Window: Window{NotBefore: k.NotBefore, NotAfter: k.NotAfter}}
		if err := keys[i].check(); err != nil {
			return nil, fmt.Errorf("%w (key %d of %s)", err, i+1, s.Path)
		}
	}
	return keys, nil
}

// check returns an error unless both halves of the key belong together. An agent
// that signed with the one and published the other would fail at its peers, where
// nothing points at the file.
func (k OwnKey) check() error {
	pair, err := nkeys.FromSeed([]byte(k.Seed))
	if err != nil {
		return errors.New("identity: the seed is none of an nkey")
	}
	if public, err := pair.PublicKey(); err != nil || public != k.Public {
		return errors.New("identity: the seed is not that of its publicKey")
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

// write replaces the file atomically: after a crash it is the old file or the new
// one. The data is synced before the rename, since a file system may otherwise
// make the name durable before the content, and a key that peers have been told of
// would be lost.
func (s Store) write(keys []OwnKey) (err error) {
	file := storeFile{Version: storeVersion}
	for _, k := range keys {
		file.Keys = append(file.Keys, storeKey{
			Public: k.Public, Seed: k.Seed, Created: k.Created, NotBefore: k.Window.NotBefore, NotAfter: k.Window.NotAfter,
		})
	}
	data, err := json.MarshalIndent(file, "", "  ")
	if err != nil {
		return fmt.Errorf("identity: %w", err)
	}
	dir := filepath.Dir(s.Path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("identity: %w", err)
	}
	f, err := os.CreateTemp(dir, ".identity-*") // 0600
	if err != nil {
		return fmt.Errorf("identity: %w", err)
	}
	_, err = f.Write(append(data, '\n'))
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), s.Path)
	}
	if err != nil {
		return fmt.Errorf("identity: %w", errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}
