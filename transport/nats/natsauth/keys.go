package natsauth

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/nkeys"
)

// KeyFile is the path of a seed in a folder of keys: that of a member's id, or of one
// of the other names of [Rules.KeyNames].
func KeyFile(dir, name string) string { return filepath.Join(dir, name+".nk") }

// BesideKey is the path of the credentials with which an agent uses JetStream, given
// those with which it makes calls: a key file, or a credentials file.
func BesideKey(path string) string {
	extension := filepath.Ext(path)
	return strings.TrimSuffix(path, extension) + queueSuffix + extension
}

// EnsureKeys returns the public keys that the rules need, by name, and generates a seed
// in dir for each that is missing. Only the owner may read the seeds.
func (r *Rules) EnsureKeys(dir string) (map[string]string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("natsauth: %w", err)
	}
	keys := map[string]string{}
	for _, name := range r.KeyNames() {
		key, err := ensureKey(KeyFile(dir, name))
		if err != nil {
			return nil, fmt.Errorf("natsauth: key of %s: %w", name, err)
		}
		keys[name] = key
	}
	return keys, nil
}

// ensureKey returns the public key of a seed file. It never replaces a file, not even a
// damaged one: the broker may know its key.
func ensureKey(path string) (public string, err error) {
	seed, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return createKey(path)
	}
	if err != nil {
		return "", err
	}
	pair, err := nkeys.ParseDecoratedUserNKey(seed)
	if err != nil {
		return "", fmt.Errorf("%s is not the seed of a user's nkey (%w): delete it for a new key", path, err)
	}
	return pair.PublicKey()
}

// ensureSeed makes a seed in a file, unless there is a file.
func ensureSeed(path string, create func() (nkeys.KeyPair, error)) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	_, err := createSeed(path, create)
	return err
}

// createKey generates the seed of a user.
func createKey(path string) (public string, err error) { return createSeed(path, nkeys.CreateUser) }

// createSeed generates a seed. Of two processes that do so at the same time one fails,
// instead of each using a key that the other overwrites.
func createSeed(path string, create func() (nkeys.KeyPair, error)) (public string, err error) {
	pair, err := create()
	if err != nil {
		return "", err
	}
	seed, err := pair.Seed()
	if err != nil {
		return "", err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	_, err = f.Write(append(seed, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(path))
	}
	return pair.PublicKey()
}
