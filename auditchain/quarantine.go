package auditchain

import (
	"context"
	"strings"

	"github.com/agentd/agentd/auditchain/internal/auditerr"
	"github.com/agentd/agentd/auditchain/internal/chain"
	"github.com/agentd/agentd/auditchain/internal/store"
)

// A Quarantined is the outcome of [Quarantine].
type Quarantined = chain.Quarantined

// Quarantine makes a log usable again that [Open] rejects because of records that no
// checkpoint covers. It copies the database beside itself, takes those records out,
// builds the indexes anew, and appends a signed lifecycle record (quarantined) with the
// reason and the hash of the copy. A log that Open accepts stays as it is.
//
// It never touches what is signed: a log whose signed records were changed needs a
// backup. No other process may have the log open.
func Quarantine(ctx context.Context, path, reason string) (Quarantined, error) {
	if strings.TrimSpace(reason) == "" {
		return Quarantined{}, auditerr.Invalid("a quarantine needs a reason")
	}
	options, err := Options{}.withDefaults()
	if err != nil {
		return Quarantined{}, err
	}
	return chain.Quarantine(ctx, path, reason, chain.Options{Name: options.Name, CheckpointRecords: options.CheckpointRecords, Now: options.Now}, store.SQLite)
}
