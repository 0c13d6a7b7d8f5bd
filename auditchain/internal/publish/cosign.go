package publish

import (
	"context"
	"slices"

	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/internal/auditerr"
	"github.com/agentd/agentd/auditchain/internal/prove"
	"github.com/agentd/agentd/auditchain/internal/sidecar"
	"github.com/agentd/agentd/auditchain/internal/store"
)

// CosignNewest shows the newest checkpoint in the database to a witness, and
// returns it co-signed.
func CosignNewest(ctx context.Context, db *store.DB, w checkpoint.Witness) ([]byte, error) {
	_, note, err := db.NewestCheckpoint(ctx)
	if err != nil {
		return nil, err
	}
	if note == nil {
		return nil, &auditerr.Error{Code: auditerr.CodeNotFound, Path: db.Path, Msg: "the log has no checkpoint yet"}
	}
	return cosign(ctx, db, w, note)
}

// cosign shows a signed checkpoint to a witness, with the proof that the log has
// grown from the state that the witness knows.
func cosign(ctx context.Context, db *store.DB, w checkpoint.Witness, note []byte) ([]byte, error) {
	latest, err := w.Latest(ctx, db.Identity.Origin)
	if err != nil {
		return nil, err
	}
	now, err := checkpoint.Parse(string(note))
	if err != nil {
		return nil, err
	}
	var old int64
	if latest != nil {
		before, err := checkpoint.Parse(string(latest))
		if err != nil {
			return nil, err
		}
		old = before.Size
	}
	growth, err := prove.Growth(ctx, db, old, now.Size)
	if err != nil {
		return nil, err
	}
	cosigned, err := w.Cosign(ctx, note, old, growth)
	if err != nil {
		return nil, err
	}
	// Whose signature it is, only a witness with pinned keys can tell; see
	// [checkpoint.NewPinned]. Without any, nobody has witnessed anything.
	if !slices.ContainsFunc(checkpoint.Signers(cosigned), func(name string) bool { return name != now.Origin }) {
		return nil, checkpoint.ErrUncosigned
	}
	return cosigned, nil
}

// mergeCosigned returns the published checkpoint with a witness's signature
// added. A witness is not trusted: an answer that would invalidate the checkpoint
// is an error.
func mergeCosigned(db *store.DB, published, cosigned []byte) ([]byte, error) {
	public, err := sidecar.ReadPublicKeys(db.Path)
	if err != nil {
		return nil, err
	}
	keys, err := checkpoint.NewKeys(public...)
	if err != nil {
		return nil, err
	}
	merged, err := checkpoint.Merge(published, cosigned)
	if err != nil {
		return nil, err
	}
	if _, err := checkpoint.Open(merged, keys); err != nil {
		return nil, err
	}
	return merged, nil
}
