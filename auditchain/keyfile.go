package auditchain

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/internal/durable"
)

// The files beside a database at path. All but the key may be published.
const (
	keySuffix        = ".key"        // the private signing key, mode 0600
	nextKeySuffix    = ".key.next"   // its successor, while the key is being changed
	publicSuffix     = ".pub"        // every verifier key of the log, oldest first
	checkpointSuffix = ".checkpoint" // the newest signed checkpoint
)

// readKey reads a signing key file of the database at path.
func readKey(path, suffix string) (*checkpoint.Key, error) {
	name := path + suffix
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &Error{Code: CodeKeyMissing, Path: path, Msg: "the signing key " + name + " is missing",
			Hint: "restore it; or, if it is lost, open the log with the lost key replaced and give auditors the new public key"}
	}
	if err != nil {
		return nil, fault(path, "reading the signing key", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, &Error{Code: CodeKeyUnsafe, Path: path,
			Msg:  fmt.Sprintf("the signing key %s has mode %04o: others may have read it", name, info.Mode().Perm()),
			Hint: "chmod 600 it; rotate the key if others use this machine"}
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fault(path, "reading the signing key", err)
	}
	key, err := checkpoint.ParseKey(string(text))
	if err != nil {
		return nil, &Error{Code: CodeKeyUnsafe, Path: path, Msg: "the signing key " + name + " cannot be read", Err: err,
			Hint: "restore it from a backup"}
	}
	return key, nil
}

// writeKey stores a signing key.
func writeKey(path, suffix string, key *checkpoint.Key) error {
	return replaceFile(path+suffix, []byte(key.Secret()+"\n"), 0o600)
}

// readPublic lists the verifier keys beside the database, oldest first. A
// missing file is an empty list.
func readPublic(path string) ([]string, error) {
	text, err := os.ReadFile(path + publicSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault(path, "reading the public keys", err)
	}
	return strings.Fields(string(text)), nil
}

// addPublic appends a verifier key to the file of public keys.
func addPublic(path, verifier string) error {
	keys, err := readPublic(path)
	if err != nil || slices.Contains(keys, verifier) {
		return err
	}
	text := strings.Join(append(keys, verifier), "\n") + "\n"
	return replaceFile(path+publicSuffix, []byte(text), 0o644)
}

// readCheckpointFile returns the note beside the database, or nil.
func readCheckpointFile(path string) ([]byte, error) {
	text, err := os.ReadFile(path + checkpointSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, fault(path, "reading the checkpoint file", err)
}

// replaceFile puts text in the place of a file, whole or not at all.
func replaceFile(name string, text []byte, mode os.FileMode) error {
	return fault(name, "writing", durable.Replace(name, text, mode))
}

// syncFolder makes a change of the folder that holds name durable.
func syncFolder(name string) error {
	return fault(name, "syncing its folder", durable.SyncFolder(filepath.Dir(name)))
}
