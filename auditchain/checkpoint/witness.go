package checkpoint

import (
	"context"

	"golang.org/x/mod/sumdb/tlog"
)

// A Witness keeps the newest state of logs outside the reach of their owners,
// and co-signs it. How it is reached is the caller's business: another agent
// over the fleet's transport, a service, a folder on another machine.
// [Keeper] is the witness itself.
//
// Implementations must be safe for concurrent use and return when the context
// is done.
type Witness interface {
	// Name is the name of the witness's key.
	Name() string
	// Latest is the newest signed checkpoint that the witness holds of the log
	// called origin, or nil if it holds none.
	Latest(ctx context.Context, origin string) ([]byte, error)
	// Cosign asks for a signature under a checkpoint. The proof shows that the
	// log has grown from the state of size old, which must be the one that
	// Latest gives, or 0. The answer is the note with the witness's signature
	// added; [ErrInconsistent] means that the log was rewritten.
	Cosign(ctx context.Context, signed []byte, old int64, proof tlog.TreeProof) ([]byte, error)
}
