package verify

import (
	"context"
	"database/sql"

	"github.com/agentd/agentd/auditchain/internal/store"
)

// PageSize is pageSize, for tests of logs of several pages.
const PageSize = pageSize

// CheckErasure looks up whether record seq may lack its content by authority of
// record by, as a verification does that has just read the record.
func CheckErasure(ctx context.Context, db *store.DB, seq, by int64) (fault string, err error) {
	return (&erasures{db: db}).check(ctx, &row{seq: seq, erasedBy: sql.NullInt64{Int64: by, Valid: true}})
}

// SumsAgree verifies a log and reports whether the sums over its indexes are those over
// its records, so that SQLite's own comparison was not needed.
func SumsAgree(ctx context.Context, db *store.DB) (bool, error) {
	v, err := newVerifier(ctx, db, Options{})
	if err != nil {
		return false, err
	}
	if err := v.run(ctx); err != nil {
		return false, err
	}
	return v.indexes.agree(ctx, db, v.report.Last)
}
