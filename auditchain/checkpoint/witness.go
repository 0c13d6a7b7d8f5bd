package checkpoint

import (
	"context"

	"golang.org/x/mod/sumdb/tlog"
)

// A Witness keeps the newest checkpoint of logs out of their owners' reach, and
// co-signs it. It may be another agent on the fleet's transport, a service, or a
// folder on another machine. [Keeper] is the witness itself.
//
// Implementations must be safe for concurrent use and return when the context
// is done.
type Witness interface {
	// Name returns the name of the witness's key.
	Name() string
	// Latest returns the newest signed checkpoint that the witness holds of the
	// log called origin, or nil if it holds none.
	Latest(ctx context.Context, origin string) ([]byte, error)
	// Cosign requests a signature on a checkpoint. The proof shows that the log
	// has grown from the state of size old, which must be the one that Latest
	// returns, or 0. The result is the note with the witness's signature added;
	// [ErrInconsistent] means that the log was rewritten.
	Cosign(ctx context.Context, signed []byte, old int64, proof tlog.TreeProof) ([]byte, error)
}
