package auditchain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/agentd/agentd/auditchain/checkpoint"
)

// recover reads the end of the chain and checks it against what was signed.
func (w *writer) recover(ctx context.Context) (Recovery, error) {
	if err := w.loadTip(ctx); err != nil {
		return Recovery{}, err
	}
	found := Recovery{Created: w.created, Records: w.tip.seq, Unsigned: w.tip.seq - w.tip.signed}
	if err := w.checkSigned(ctx); err != nil {
		return found, err
	}
	var err error
	if found.Unsigned > 0 {
		if err := w.checkTail(ctx); err != nil {
			return found, err
		}
	}
	if found.KeyChanged, err = w.settleKey(); err != nil {
		return found, err
	}
	if found.Unsigned > 0 {
		if err := w.signRest(); err != nil {
			return found, err
		}
	}
	found.Resumed, err = w.resumeErasures(ctx)
	return found, err
}

// loadTip reads the newest record, the right edge of the tree and the newest
// checkpoint.
func (w *writer) loadTip(ctx context.Context) error {
	w.tip = tip{hash: w.identity.genesis()}
	var hash []byte
	err := w.conn.QueryRowContext(ctx, `SELECT seq, ts, hash FROM records ORDER BY seq DESC LIMIT 1`).
		Scan(&w.tip.seq, &w.tip.time, &hash)
	if err != nil && !isNoRows(err) {
		return fault(w.path, "reading the newest record", err)
	}
	if err == nil && copy(w.tip.hash[:], hash) != len(w.tip.hash) {
		return &Error{Code: CodeTampered, Path: w.path, Msg: "the newest record has no valid hash", Hint: hintTampered}
	}
	tree := treeReader{ctx: ctx, q: w.conn, path: w.path}
	if w.tip.tree, err = tree.loadFrontier(w.tip.seq); err != nil {
		return err
	}
	var note string
	err = w.conn.QueryRowContext(ctx, `SELECT size, note FROM checkpoints ORDER BY size DESC LIMIT 1`).
		Scan(&w.tip.signed, &note)
	if err != nil && !isNoRows(err) {
		return fault(w.path, "reading the newest checkpoint", err)
	}
	if note != "" {
		w.tip.note = []byte(note)
	}
	return nil
}

const hintTampered = "run `agentd audit verify` on a copy, keep the file as evidence and restore a backup"

// checkSigned holds the database against its newest checkpoint and against the
// one in the file beside it, which an older copy of the database lacks.
func (w *writer) checkSigned(ctx context.Context) error {
	public, err := readPublic(w.path)
	if err != nil {
		return err
	}
	keys, err := checkpoint.NewKeys(append(public, w.identity.firstKey)...)
	if err != nil {
		return &Error{Code: CodeKeyUnsafe, Path: w.path, Msg: "the file of public keys", Err: err, Hint: "restore " + w.path + publicSuffix}
	}
	file, err := readCheckpointFile(w.path)
	if err != nil {
		return err
	}
	for _, note := range [][]byte{w.tip.note, file} {
		if note == nil {
			continue
		}
		signed, err := checkpoint.Open(note, keys)
		if err != nil {
			return &Error{Code: CodeTampered, Path: w.path, Msg: "a checkpoint of the log is not genuine", Err: err, Hint: hintTampered}
		}
		if err := w.checkCovered(ctx, signed); err != nil {
			return err
		}
	}
	return nil
}

// checkCovered holds the tree against one signed state.
func (w *writer) checkCovered(ctx context.Context, signed *checkpoint.Signed) error {
	if signed.Origin != w.identity.origin {
		return &Error{Code: CodeTampered, Path: w.path,
			Msg:  fmt.Sprintf("its checkpoint is of another log, %s; this one is %s", signed.Origin, w.identity.origin),
			Hint: "restore the checkpoint file that belongs to this database"}
	}
	if signed.Size > w.tip.seq {
		return &Error{Code: CodeRollback, Path: w.path,
			Msg:  fmt.Sprintf("the log ends at record %d, but a signed checkpoint covers %d", w.tip.seq, signed.Size),
			Hint: "the database is an old copy, was cut, or lost its -wal file: restore the newest one"}
	}
	tree := treeReader{ctx: ctx, q: w.conn, path: w.path}
	root, err := tree.root(signed.Size)
	if err != nil {
		return err
	}
	if root != signed.Root {
		return &Error{Code: CodeTampered, Path: w.path,
			Msg: fmt.Sprintf("the first %d records are not those that were signed", signed.Size), Hint: hintTampered}
	}
	return nil
}

// checkTail verifies the records after the newest checkpoint, before they are
// signed.
func (w *writer) checkTail(ctx context.Context) error {
	chain := chainCheck{path: w.path, q: w.conn, previous: w.identity.genesis()}
	if w.tip.signed > 0 {
		hashes, err := (&treeReader{ctx: ctx, q: w.conn, path: w.path}).stored(0, w.tip.signed-1, 1)
		if err != nil {
			return err
		}
		chain.previous = hashes[0]
	}
	for f, err := range chain.faults(ctx, w.tip.signed+1, w.tip.seq) {
		if err != nil {
			return err
		}
		return &Error{Code: CodeTampered, Path: w.path, Msg: "an unsigned record does not verify: " + f.String(), Hint: hintTampered}
	}
	return nil
}

// loadKey reads the signing key that the chain says is in use, finishing an
// interrupted change of keys.
func (w *writer) loadKey(ctx context.Context) error {
	active, err := activeKey(ctx, w.conn, w.path, w.identity)
	if err != nil {
		return err
	}
	key, err := readKey(w.path, keySuffix)
	if err == nil && key.Verifier() == active {
		w.setKey(key)
		return nil
	}
	next, nextErr := readKey(w.path, nextKeySuffix)
	if nextErr == nil && next.Verifier() == active {
		w.setKey(next)
		return nil
	}
	if CodeOf(err) == CodeKeyMissing && w.options.ReplaceLostKey {
		return nil // settleKey makes one
	}
	if err == nil {
		err = &Error{Code: CodeKeyUnsafe, Path: w.path,
			Msg:  fmt.Sprintf("the signing key is %s, the log is signed with %s", key.Verifier(), active),
			Hint: "restore the key file that belongs to this database"}
	}
	return err
}

// settleKey replaces a lost key if that was asked for, and puts the files of
// keys in order.
func (w *writer) settleKey() (changed bool, err error) {
	if w.key == nil {
		return true, w.changeKey(keyReplaced)
	}
	current, err := readKey(w.path, keySuffix)
	if err == nil && current.Verifier() == w.key.Verifier() {
		// What is left of a change that did not reach the chain.
		if err := os.Remove(w.path + nextKeySuffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return false, fault(w.path, "removing an unused key", err)
		}
		return false, nil
	}
	return true, w.installKey(w.key)
}

// activeKey is the verifier key that signs checkpoints from now on: that of
// the newest change of keys, or the first one.
func activeKey(ctx context.Context, q querier, path string, id identity) (string, error) {
	var body []byte
	err := q.QueryRowContext(ctx, `SELECT body FROM records WHERE kind = ? ORDER BY seq DESC LIMIT 1`, KindCheckpoint).Scan(&body)
	if isNoRows(err) {
		return id.firstKey, nil
	}
	if err != nil {
		return "", fault(path, "reading the newest key", err)
	}
	var change keyChange
	if err := json.Unmarshal(body, &change); err != nil || change.Key == "" {
		return "", &Error{Code: CodeTampered, Path: path, Msg: "the record of the newest signing key cannot be read", Hint: hintTampered}
	}
	return change.Key, nil
}
