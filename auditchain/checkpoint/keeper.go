package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/tlog"
)

// A Store keeps the newest signed checkpoint of each log for a [Keeper]. It
// must not lose what it has kept: a witness that forgets can be deceived.
// [FolderStore] is one.
type Store interface {
	// Load returns the note kept for a log, or nil if there is none.
	Load(ctx context.Context, origin string) ([]byte, error)
	// Save keeps a note in place of the one before; it is durable on return.
	Save(ctx context.Context, origin string, signed []byte) error
}

// A Keeper is a [Witness]. It co-signs (cosignature/v1, see [Key.Cosigner]) a log's checkpoint if the log has grown
// from the newest one that it knows, keeps that, and refuses all else. It is
// safe for concurrent use.
//
// The first checkpoint of a log is taken on trust, under the keys that it was
// given for the log.
type Keeper struct {
	key   func() *Key
	store Store
	trust func(origin string) []string

	mu sync.Mutex // serialises comparison and Save
}

// NewKeeper makes a witness that signs with key. The function trust gives the
// verifier keys of a log; a log without any is refused.
func NewKeeper(key *Key, store Store, trust func(origin string) []string) *Keeper {
	return NewRotatingKeeper(func() *Key { return key }, store, trust)
}

// NewRotatingKeeper is NewKeeper for a key that may change while the witness
// works; the function key gives the one to sign with now.
func NewRotatingKeeper(key func() *Key, store Store, trust func(origin string) []string) *Keeper {
	return &Keeper{key: key, store: store, trust: trust}
}

// Name implements [Witness].
func (k *Keeper) Name() string { return k.key().Name() }

// Latest implements [Witness].
func (k *Keeper) Latest(ctx context.Context, origin string) ([]byte, error) {
	return k.store.Load(ctx, origin)
}

// Cosign implements [Witness]. Beside the errors documented there it returns
// those of [Open], and [ErrStale] when old is not what the witness holds.
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

// ErrStale is a request to co-sign that starts from another state than the
// witness's newest: another request was faster, or the log lies.
var ErrStale = errors.New("checkpoint: the witness holds another state")

// compare checks that the log has grown from the state that is kept.
func (k *Keeper) compare(ctx context.Context, now Checkpoint, old int64, proof tlog.TreeProof) error {
	kept, err := k.store.Load(ctx, now.Origin)
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
