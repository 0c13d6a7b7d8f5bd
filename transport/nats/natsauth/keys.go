package natsauth

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/nats-io/nkeys"
)

// KeyFile is the path of a member's seed in a folder of keys.
func KeyFile(dir, id string) string { return filepath.Join(dir, id+".nk") }

// EnsureKeys returns the public keys of the users by member id, and generates a seed in
// dir for each user that has none. Only the owner may read the seeds.
func (r *Rules) EnsureKeys(dir string) (map[string]string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("natsauth: %w", err)
	}
	keys := make(map[string]string, len(r.Users))
	for _, u := range r.Users {
		key, err := ensureKey(KeyFile(dir, u.ID))
		if err != nil {
			return nil, fmt.Errorf("natsauth: key of agent %s: %w", u.ID, err)
		}
		keys[u.ID] = key
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

// createKey generates a seed. Of two processes that do so at the same time one fails,
// instead of each using a key that the other overwrites.
func createKey(path string) (public string, err error) {
	pair, err := nkeys.CreateUser()
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
