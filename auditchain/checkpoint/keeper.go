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
}

// NewKeeper returns a witness. The function key returns the key to sign with now,
// which may change while the witness works. The function trust returns the
// verifier keys of a log; a log without any is rejected.
func NewKeeper(key func() *Key, store Store, trust func(origin string) []string) *Keeper {
	k := &Keeper{key: key, store: store, trust: trust}
	k.own = func() ([]string, error) { return []string{k.key().Verifier()}, nil }
	return k
}

// OwnKeys sets where the verifier keys come from under which the witness has signed, if
// its key changes: all that it ever had. By default only the present one counts.
func (k *Keeper) OwnKeys(own func() ([]string, error)) { k.own = own }

// ErrEdited is a checkpoint that a witness finds in its store and has not signed:
// somebody else has put it there. The witness says nothing about that log until its
// operator has restored the store, or has removed the entry to trust the log anew.
var ErrEdited = errors.New("checkpoint: the witness's store was edited")

// load returns the checkpoint that is kept of a log, or nil, if it is the one that the
// witness has signed.
func (k *Keeper) load(ctx context.Context, origin string) ([]byte, error) {
	kept, err := k.store.Load(ctx, origin)
	if err != nil || kept == nil {
		return nil, err
	}
	own, err := k.own()
	if err != nil {
		return nil, err
	}
	keys, err := NewWitnessKeys(own...)
	if err != nil {
		return nil, err
	}
	if err := CheckCosigned(kept, keys); err != nil {
		return nil, fmt.Errorf("%w: what it keeps of %s: %w", ErrEdited, origin, err)
	}
	if c, err := Parse(string(kept)); err != nil || c.Origin != origin {
		return nil, fmt.Errorf("%w: what it keeps of %s is of another log", ErrEdited, origin)
	}
	return kept, nil
}

// Name implements [Witness].
func (k *Keeper) Name() string { return k.key().Name() }

// Latest implements [Witness]. The error is [ErrEdited] for a checkpoint that the
// witness has not signed.
func (k *Keeper) Latest(ctx context.Context, origin string) ([]byte, error) {
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
	return cosigned, k.store.Save(ctx, now.Origin, cosigned)
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
