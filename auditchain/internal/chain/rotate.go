package chain

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/internal/auditerr"
	"github.com/agentd/agentd/auditchain/internal/record"
	"github.com/agentd/agentd/auditchain/internal/sidecar"
	"github.com/agentd/agentd/auditchain/internal/store"
)

// A change of keys touches a record and three files, and may be interrupted
// between any two. The order keeps one valid key at every point:
//
//  1. The new key is written to the file of the next key.
//  2. The record that names it is committed. The checkpoint that covers the
//     record is the last one that the old key signs.
//  3. The new public key is published, the new key replaces the old one, and the
//     file of the next key is removed.
//
// Before 2 the old key signs, and the next start removes the unused key. After
// 2 the chain names the new key, and the next start completes 3.

// RotateKey generates a new signing key for an actor, and returns the verifier key of the
// key that signs from now on.
func (w *Writer) RotateKey(actor *record.Actor) (verifier string, err error) {
	err = w.changeKey(context.Background(), record.KeyRotated, actor) // not to be interrupted half-way
	return w.key.Verifier(), err
}

// changeKey takes the three steps. A lost key cannot sign, so the new one does.
func (w *Writer) changeKey(ctx context.Context, event record.KeyEvent, actor *record.Actor) error {
	next, err := checkpoint.GenerateKey(w.db.Identity.Origin)
	if err != nil {
		return w.db.Wrap("making a new key", err)
	}
	previous, err := w.activeKey(ctx)
	if err != nil {
		return err
	}
	if err := sidecar.WriteKey(w.db.Path, sidecar.NextKeySuffix, next); err != nil {
		return err
	}
	signer := w.key
	if event == record.KeyReplaced {
		signer = next
	}
	err = w.Commit(func(head *Head) error {
		change := record.KeyChange{Event: event, Key: next.Verifier(), Previous: previous, Actor: actor}
		if err := w.InsertOwn(head, record.KindCheckpoint, change); err != nil {
			return err
		}
		return w.sign(head, signer)
	})
	if err != nil {
		return err
	}
	w.setKey(next)
	return w.installKey(next)
}

// installKey is step 3.
func (w *Writer) installKey(key *checkpoint.Key) error {
	path := w.db.Path
	if err := sidecar.AddPublicKey(path, key.Verifier()); err != nil {
		return err
	}
	if err := sidecar.WriteKey(path, sidecar.KeySuffix, key); err != nil {
		return err
	}
	if err := sidecar.RemoveNextKey(path); err != nil {
		return err
	}
	return sidecar.Sync(path)
}

// setKey makes a key the one that signs.
func (w *Writer) setKey(key *checkpoint.Key) {
	w.key = key
	w.published.Store(key)
}

// loadKey loads the signing key that the chain names. It is in the file of the
// next key if a change was interrupted after its record. A lost key leaves w.key
// nil if it is to be replaced.
func (w *Writer) loadKey(ctx context.Context) error {
	active, err := w.activeKey(ctx)
	if err != nil {
		return err
	}
	key, err := sidecar.ReadKey(w.db.Path, sidecar.KeySuffix)
	if err == nil && key.Verifier() == active {
		w.setKey(key)
		return nil
	}
	next, nextErr := sidecar.ReadKey(w.db.Path, sidecar.NextKeySuffix)
	if nextErr == nil && next.Verifier() == active {
		w.setKey(next)
		return nil
	}
	if auditerr.CodeOf(err) == auditerr.CodeKeyMissing && w.options.ReplaceLostKey {
		return nil
	}
	if err == nil {
		err = &auditerr.Error{Code: auditerr.CodeKeyUnsafe, Path: w.db.Path,
			Msg:  fmt.Sprintf("the signing key is %s, the log is signed with %s", key.Verifier(), active),
			Hint: "restore the key file that belongs to this database"}
	}
	return err
}

// completeKeyChange replaces a lost key if the options say so, completes an
// interrupted change, or removes what is left of one that did not reach the
// chain. It reports whether the key is another one than in the last run.
func (w *Writer) completeKeyChange(ctx context.Context) (changed bool, err error) {
	if w.key == nil {
		return true, w.changeKey(ctx, record.KeyReplaced, record.ActorOf(ctx))
	}
	current, err := sidecar.ReadKey(w.db.Path, sidecar.KeySuffix)
	if err == nil && current.Verifier() == w.key.Verifier() {
		return false, sidecar.RemoveNextKey(w.db.Path)
	}
	return true, w.installKey(w.key)
}

// activeKey returns the verifier key of the key that signs.
func (w *Writer) activeKey(ctx context.Context) (string, error) {
	change, err := w.keyChange(ctx, w.head.Seq)
	return change.Key, err
}

// A chainedChange is a change of keys and the number of its record.
type chainedChange struct {
	record.KeyChange
	seq int64
}

// keyChange returns the newest change of keys among the first size records. Without
// any, it has the log's first key and number 0.
func (w *Writer) keyChange(ctx context.Context, size int64) (c chainedChange, err error) {
	var body []byte
	err = w.db.QueryRowContext(ctx, `SELECT seq, body FROM records WHERE kind = ? AND seq <= ? ORDER BY seq DESC LIMIT 1`, record.KindCheckpoint, size).
		Scan(&c.seq, &body)
	if store.IsNoRows(err) {
		c.Key = w.db.Identity.FirstKey
		return c, nil
	}
	if err != nil {
		return c, w.db.Wrap("reading the newest key", err)
	}
	if err := json.Unmarshal(body, &c.KeyChange); err != nil || c.Key == "" {
		return c, w.db.Tampered("the record of the newest signing key cannot be read", nil)
	}
	return c, nil
}

// allKeys returns every verifier key that the chain names, oldest first.
func (w *Writer) allKeys(ctx context.Context) ([]string, error) {
	var keys []string
	for size := w.head.Seq; ; {
		change, err := w.keyChange(ctx, size)
		if err != nil {
			return nil, err
		}
		keys = append(keys, change.Key)
		if change.seq == 0 {
			slices.Reverse(keys)
			return keys, nil
		}
		size = change.seq - 1
	}
}
