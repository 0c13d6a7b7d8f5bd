package sidecar

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/internal/atomicfile"
	"github.com/agentd/agentd/auditchain/internal/auditerr"
)

// The suffixes of the files beside a database. All files but the keys may be
// published.
const (
	KeySuffix        = ".key"        // the private signing key, mode 0600
	NextKeySuffix    = ".key.next"   // its successor, during a change of keys
	PublicSuffix     = ".pub"        // every verifier key of the log, oldest first
	CheckpointSuffix = ".checkpoint" // the newest signed checkpoint
	lockSuffix       = ".lock"       // locked by the writer; its content names the holder
)

// maxBytes bounds the files that are read, far above what any of them needs: a line for
// each key that the log ever had, or for each witness.
const maxBytes = 1 << 20

// Suffixes returns the suffixes of the files that are replaced atomically.
func Suffixes() []string {
	return []string{KeySuffix, NextKeySuffix, PublicSuffix, CheckpointSuffix}
}

// ReadKey reads the signing key file with the given suffix. It rejects a file
// that other users can read: the key may have been copied.
func ReadKey(path, suffix string) (*checkpoint.Key, error) {
	name := path + suffix
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &auditerr.Error{Code: auditerr.CodeKeyMissing, Path: path, Msg: "the signing key " + name + " is missing",
			Hint: "restore it; or, if it is lost, open the log with the lost key replaced and give auditors the new public key"}
	}
	if err != nil {
		return nil, auditerr.Wrap(path, "reading the signing key", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, &auditerr.Error{Code: auditerr.CodeKeyUnsafe, Path: path,
			Msg:  fmt.Sprintf("the signing key %s has mode %04o: others may have read it", name, info.Mode().Perm()),
			Hint: "chmod 600 it; rotate the key if others use this machine"}
	}
	text, err := atomicfile.Read(name, maxBytes)
	if err != nil {
		return nil, auditerr.Wrap(path, "reading the signing key", err)
	}
	key, err := checkpoint.ParseKey(string(text))
	if err != nil {
		return nil, &auditerr.Error{Code: auditerr.CodeKeyUnsafe, Path: path, Msg: "the signing key " + name + " cannot be read", Err: err,
			Hint: "restore it from a backup"}
	}
	return key, nil
}

// WriteKey writes a signing key file.
func WriteKey(path, suffix string, key *checkpoint.Key) error {
	return replace(path+suffix, []byte(key.Secret()+"\n"), 0o600)
}

// RemoveNextKey removes the file of the next key, if there is one.
func RemoveNextKey(path string) error {
	if err := os.Remove(path + NextKeySuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return auditerr.Wrap(path, "removing the file of the next key", err)
	}
	return nil
}

// ReadPublicKeys returns the verifier keys beside the database, oldest first. A
// missing file stands for an empty list.
func ReadPublicKeys(path string) ([]string, error) {
	text, err := atomicfile.Read(path+PublicSuffix, maxBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, auditerr.Wrap(path, "reading the public keys", err)
	}
	return strings.Fields(string(text)), nil
}

// AddPublicKey appends a verifier key to the file of public keys, unless it is
// there already.
func AddPublicKey(path, verifier string) error {
	keys, err := ReadPublicKeys(path)
	if err != nil || slices.Contains(keys, verifier) {
		return err
	}
	text := strings.Join(append(keys, verifier), "\n") + "\n"
	return replace(path+PublicSuffix, []byte(text), 0o644)
}

// replace writes a file atomically.
func replace(name string, text []byte, mode os.FileMode) error {
	return auditerr.Wrap(name, "writing", atomicfile.Replace(name, text, mode))
}

// Sync makes changes to the database's folder durable.
func Sync(path string) error {
	return auditerr.Wrap(path, "syncing its folder", atomicfile.SyncFolder(filepath.Dir(path)))
}

// RemoveLeftovers removes the temporary files of a writer that was killed while
// it replaced a file. Errors are ignored, because such a file does no harm.
func RemoveLeftovers(path string) {
	folder := filepath.Dir(path)
	entries, _ := os.ReadDir(folder)
	for _, entry := range entries {
		for _, suffix := range Suffixes() {
			if strings.HasPrefix(entry.Name(), filepath.Base(path)+suffix+atomicfile.TempMark) {
				_ = os.Remove(filepath.Join(folder, entry.Name()))
			}
		}
	}
}
