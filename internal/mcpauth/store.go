package mcpauth

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

// A Store keeps the logins of one agent, each sealed in a file of its own. Several processes may
// use it: an agent, and who logs in.
//
// A login is sealed with a key that stands beside it, so that a file alone, in a backup or a
// report of a fault, gives nobody access. It opens only as the login of that agent at that server.
type Store struct {
	// Dir is a folder in the agent's state. It need not be there.
	Dir string
	// Agent is whose logins they are.
	Agent string
}

// A login is what is kept of somebody's agreement.
type login struct {
	Server         string    `json:"server"`   // its URL
	Resource       string    `json:"resource"` // what tokens are for
	Issuer         string    `json:"issuer"`
	TokenEndpoint  string    `json:"tokenEndpoint"`
	RevokeEndpoint string    `json:"revokeEndpoint,omitempty"`
	Client         client    `json:"client"`
	Since          time.Time `json:"since"`
	tokens                   // the newest ones
	Wanted         []string  `json:"wanted,omitempty"` // scopes that the server has asked for since
	Failed         string    `json:"failed,omitempty"` // why it cannot be renewed any more
}

const (
	keyBytes      = 32
	maxLoginBytes = 256 << 10
	keyName       = "key"
)

// path is that of a login.
func (s Store) path(server string) string {
	sum := sha256.Sum256([]byte(server))
	return filepath.Join(s.Dir, hex.EncodeToString(sum[:12])+".login")
}

// bound is what a login is sealed to.
func (s Store) bound(server string) []byte {
	text, _ := json.Marshal([]string{"agentd-mcp-login@v1", s.Agent, server}) // of strings
	return text
}

// A stamp tells one state of a file from another.
type stamp struct{ info fs.FileInfo }

func stampOf(path string) stamp {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{}
	}
	return stamp{info}
}

func (a stamp) same(b stamp) bool {
	if a.info == nil || b.info == nil {
		return a.info == nil && b.info == nil
	}
	return os.SameFile(a.info, b.info) && a.info.ModTime().Equal(b.info.ModTime()) && a.info.Size() == b.info.Size()
}

// load reads a login, nil if there is none. The stamp is that of what was read, or of something
// older.
func (s Store) load(server string) (*login, stamp, error) {
	at := stampOf(s.path(server))
	sealed, err := readOwn(s.path(server))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, at, nil
	}
	if err != nil {
		return nil, at, err
	}
	aead, err := s.aead(false)
	if err != nil {
		return nil, at, err
	}
	plain, err := aead.Open(nil, nil, sealed, s.bound(server))
	if err != nil {
		return nil, at, errors.New("the login is not that of this agent at this server, or was changed")
	}
	l := &login{}
	if err := json.Unmarshal(plain, l); err != nil || l.Server != server {
		return nil, at, errors.New("the login cannot be read")
	}
	return l, at, nil
}

// save writes a login. After a crash it is the one before or this one.
func (s Store) save(l *login) error {
	aead, err := s.aead(true)
	if err != nil {
		return err
	}
	plain, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return writeOwn(s.path(l.Server), aead.Seal(nil, nil, plain, s.bound(l.Server))) //nolint:gosec // it chooses the nonce itself
}

// remove removes a login.
func (s Store) remove(server string) error {
	if err := os.Remove(s.path(server)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// aead returns what logins are sealed with. The caller who makes a key holds the lock.
func (s Store) aead(create bool) (cipher.AEAD, error) {
	path := filepath.Join(s.Dir, keyName)
	key, err := readOwn(path)
	if errors.Is(err, fs.ErrNotExist) && create {
		key = make([]byte, keyBytes)
		_, _ = rand.Read(key) // never fails
		err = writeOwn(path, key)
	}
	if err != nil {
		return nil, err
	}
	if len(key) != keyBytes {
		return nil, fmt.Errorf("%s is no key", path)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// lockPause is the time between two attempts to get a lock.
const lockPause = 20 * time.Millisecond

// lock has one process, and one part of it, change logins at a time.
func (s Store) lock(ctx context.Context) (unlock func(), err error) {
	ticker := time.NewTicker(lockPause)
	defer ticker.Stop()
	for {
		unlock, err := s.tryLock()
		if err != nil || unlock != nil {
			return unlock, err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// tryLock returns nil if somebody has the lock.
func (s Store) tryLock() (unlock func(), err error) {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return nil, err
	}
	return tryLock(filepath.Join(s.Dir, "lock"))
}

// readOwn reads a file that nobody else can.
func readOwn(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it is only read
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file", path)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("%s: users other than its owner can open it (mode %04o): log in again if any of them may have read it; then run chmod 600", path, info.Mode().Perm())
	case info.Size() > maxLoginBytes:
		return nil, fmt.Errorf("%s has more than %d bytes", path, maxLoginBytes)
	}
	return io.ReadAll(io.LimitReader(f, maxLoginBytes))
}

// writeOwn replaces a file at once. It is on disk when writeOwn returns: a token that has been
// used up is of no use after a crash.
func writeOwn(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".tmp-*") // 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncFolder(filepath.Dir(path))
}
