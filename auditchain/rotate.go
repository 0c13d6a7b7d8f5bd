package auditchain

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/agentd/agentd/auditchain/checkpoint"
)

// A keyChange is the body of a record of kind [KindCheckpoint].
type keyChange struct {
	// Event is key-rotated or key-replaced.
	Event keyEvent `json:"event"`
	// Key is the verifier key from now on, Previous the one before.
	Key      string `json:"key"`
	Previous string `json:"previous"`
}

type keyEvent string

const (
	// keyRotated is a change that the previous key signed.
	keyRotated keyEvent = "key-rotated"
	// keyReplaced is a change after the previous key was lost. Nothing but the
	// new key vouches for it.
	keyReplaced keyEvent = "key-replaced"
)

// RotateKey makes a new signing key and returns its verifier key. The change is
// a record, and the checkpoint that covers it is the last one signed with the
// old key: who trusts the old key can go on to the new one. Old verifier keys
// stay in the file of public keys; the old private key is removed.
func (l *Log) RotateKey(ctx context.Context) (verifier string, err error) {
	err = l.do(ctx, func(w *writer) error {
		err := w.changeKey(keyRotated)
		verifier = w.key.Verifier()
		return err
	})
	return verifier, err
}

// changeKey makes a new key. A crash at any point leaves the log with one valid
// key: before the commit it is the old one, after it the next start installs
// the new one (see loadKey).
func (w *writer) changeKey(event keyEvent) error {
	next, err := checkpoint.GenerateKey(w.identity.origin)
	if err != nil {
		return fault(w.path, "making a new key", err)
	}
	previous, err := activeKey(context.Background(), w.conn, w.path, w.identity)
	if err != nil {
		return err
	}
	if err := writeKey(w.path, nextKeySuffix, next); err != nil {
		return err
	}
	signer := w.key
	if event == keyReplaced {
		signer = next
	}
	err = w.commit(func(t *tip) error {
		if err := w.insertOwn(t, KindCheckpoint, keyChange{Event: event, Key: next.Verifier(), Previous: previous}); err != nil {
			return err
		}
		return w.sign(t, signer)
	})
	if err != nil {
		return err
	}
	w.setKey(next)
	return w.installKey(next)
}

// installKey gives the key its place in the files.
func (w *writer) installKey(key *checkpoint.Key) error {
	if err := addPublic(w.path, key.Verifier()); err != nil {
		return err
	}
	if err := writeKey(w.path, keySuffix, key); err != nil {
		return err
	}
	if err := os.Remove(w.path + nextKeySuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault(w.path, "removing the file of the new key", err)
	}
	return syncFolder(w.path)
}

// setKey makes a key the one to sign with.
func (w *writer) setKey(key *checkpoint.Key) {
	w.key = key
	w.signingKey.Store(key)
}
