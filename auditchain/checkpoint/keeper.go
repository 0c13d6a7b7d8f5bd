package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/tlog"
)

// A Store keeps the newest signed checkpoint of each log for a [Keeper]. It must
// not lose any: a witness that forgets can be deceived.
// [FolderStore] is one.
type Store interface {
	// Load returns the note kept for a log, or nil if there is none.
	Load(ctx context.Context, origin string) ([]byte, error)
	// Save keeps a note in place of the one before; it is durable on return.
	Save(ctx context.Context, origin string, signed []byte) error
}

// A Keeper is a [Witness]. It co-signs a log's checkpoint (cosignature/v1, see
// [Key.Cosigner]) if the log has grown from the newest one it knows, keeps the
// new one, and rejects all others. It is safe for concurrent use.
//
// It trusts the first checkpoint of a log that one of the log's keys has signed.
type Keeper struct {
	key   func() *Key
	own   func() ([]string, error)
	store Store
	trust func(origin string) []string

	// mu serialises comparison and Save. Otherwise two branches of one log could
	// both be compared with the same older state, and both be signed.
	mu sync.Mutex
	// newest is the newest note of each log that the witness has seen since it started or
	// was told of by Recall. A store that holds less was set back, and is not believed.
	newest map[string][]byte // by origin; guarded by mu
}

// NewKeeper returns a witness. The function key returns the key to sign with now,
// which may change while the witness works. The function trust returns the
// verifier keys of a log; a log without any is rejected.
func NewKeeper(key func() *Key, store Store, trust func(origin string) []string) *Keeper {
	k := &Keeper{key: key, store: store, trust: trust, newest: map[string][]byte{}}
	k.own = func() ([]string, error) { return []string{k.key().Verifier()}, nil }
	return k
}

// OwnKeys sets where the verifier keys come from under which the witness has signed, if
// its key changes: all that it ever had. By default only the present one counts.
func (k *Keeper) OwnKeys(own func() ([]string, error)) { k.own = own }

// ErrEdited is a checkpoint that a witness finds in its store and has not signed:
// somebody else has put it there. The witness says nothing about that log until its
// operator has restored the store or removed the entry.
var ErrEdited = errors.New("checkpoint: the witness's store was edited")

// Recall tells the witness what it has signed, from a place that is not the store. Someone
// who can write to the store could put there a note that the witness has signed earlier, or
// remove the newest one: it goes on from the newer of the two. The result reports whether
// the store held less. The error is [ErrEdited] if the witness has not signed the note.
func (k *Keeper) Recall(ctx context.Context, signed []byte) (setBack bool, err error) {
	told, err := k.parseOwn(signed)
	if err != nil {
		return false, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	kept, err := k.load(ctx, told.Origin)
	switch {
	case errors.Is(err, ErrEdited): // the file stays as it is, for its operator to see
		k.newest[told.Origin] = signed
		return true, nil
	case err != nil:
		return false, err
	case kept != nil:
		if now, err := Parse(string(kept)); err != nil || now.Size >= told.Size {
			return false, err
		}
	}
	// Who reads the folder itself must see it, too.
	if err := k.store.Save(ctx, told.Origin, signed); err != nil {
		return false, err
	}
	k.newest[told.Origin] = signed
	return true, nil
}

// load returns the newest checkpoint of a log that the witness has signed, from the store
// or from memory, or nil. The caller holds mu.
func (k *Keeper) load(ctx context.Context, origin string) ([]byte, error) {
	kept, err := k.store.Load(ctx, origin)
	if err != nil {
		return nil, err
	}
	newest := k.newest[origin]
	if kept == nil {
		return newest, nil
	}
	c, err := k.parseOwn(kept)
	if err != nil {
		return nil, err
	}
	if c.Origin != origin {
		return nil, fmt.Errorf("%w: what it keeps of %s is of another log", ErrEdited, origin)
	}
	if newest != nil {
		if before, err := Parse(string(newest)); err != nil || before.Size > c.Size {
			return newest, err
		}
	}
	k.newest[origin] = kept
	return kept, nil
}

// parseOwn parses a note that the witness has signed, under any of its keys.
func (k *Keeper) parseOwn(signed []byte) (Checkpoint, error) {
	own, err := k.own()
	if err != nil {
		return Checkpoint{}, err
	}
	keys, err := NewWitnessKeys(own...)
	if err != nil {
		return Checkpoint{}, err
	}
	if err := CheckCosigned(signed, keys); err != nil {
		return Checkpoint{}, fmt.Errorf("%w: what it keeps: %w", ErrEdited, err)
	}
	return Parse(string(signed))
}

// Name implements [Witness].
func (k *Keeper) Name() string { return k.key().Name() }

// Latest implements [Witness]. The error is [ErrEdited] for a checkpoint that the
// witness has not signed.
func (k *Keeper) Latest(ctx context.Context, origin string) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.load(ctx, origin)
}

// Cosign implements [Witness]. In addition to the errors documented there, it
// returns those of [Open], and [ErrStale] if old is not the size that the witness
// holds.
func (k *Keeper) Cosign(ctx context.Context, signed []byte, old int64, proof tlog.TreeProof) ([]byte, error) {
	now, err := Parse(string(signed))
	if err != nil {
		return nil, err
	}
	keys, err := NewKeys(k.trust(now.Origin)...)
	if err != nil {
		return nil, err
	}
	if _, err := Open(signed, keys); err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.compare(ctx, now, old, proof); err != nil {
		return nil, err
	}
	own, err := Sign(now, k.key().Cosigner(time.Now()))
	if err != nil {
		return nil, err
	}
	cosigned, err := Merge(signed, own)
	if err != nil {
		return nil, err
	}
	if err := k.store.Save(ctx, now.Origin, cosigned); err != nil {
		return nil, err
	}
	k.newest[now.Origin] = cosigned
	return cosigned, nil
}

// ErrStale is a request to co-sign that starts from a state other than the
// witness's newest: another request was faster, or the log is lying.
var ErrStale = errors.New("checkpoint: the witness holds another state")

// compare checks that the log has grown from the state that is kept.
func (k *Keeper) compare(ctx context.Context, now Checkpoint, old int64, proof tlog.TreeProof) error {
	kept, err := k.load(ctx, now.Origin)
	if err != nil {
		return err
	}
	var before Checkpoint
	if kept != nil {
		if before, err = Parse(string(kept)); err != nil {
			return err
		}
	}
	switch {
	case before.Size > now.Size:
		return fmt.Errorf("%w: it had %d records and now has %d", ErrInconsistent, before.Size, now.Size)
	case old != before.Size:
		return fmt.Errorf("%w: of %d records, not %d", ErrStale, before.Size, old)
	}
	return CheckGrowth(before, now, proof)
}

// CheckGrowth checks that a log has grown from one state to another. The proof
// is an RFC 6962 consistency proof; it is empty where the sizes are equal or
// the first is 0. The error is [ErrInconsistent].
func CheckGrowth(before, now Checkpoint, proof tlog.TreeProof) error {
	switch {
	case before.Size == 0:
		return nil
	case before.Size == now.Size && before.Root == now.Root:
		return nil
	case before.Size >= now.Size || before.Origin != now.Origin:
		return fmt.Errorf("%w: two states of %d records differ", ErrInconsistent, now.Size)
	}
	if err := tlog.CheckTree(proof, now.Size, now.Root, before.Size, before.Root); err != nil {
		return fmt.Errorf("%w: the first %d of its %d records are not those known", ErrInconsistent, before.Size, now.Size)
	}
	return nil
}
