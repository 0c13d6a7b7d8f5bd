package query

import (
	"context"

	"github.com/agentd/agentd/auditchain/internal/store"
)

// Plan returns the statement for the first page of a filter, and whether it is
// meant to use an index.
func Plan(ctx context.Context, db *store.DB, f Filter) (statement string, args []any, indexed bool, err error) {
	p, err := newPlan(ctx, db, &f)
	if err != nil {
		return "", nil, false, err
	}
	statement, args = p.statement(entryColumns, 0, p.end, 10)
	return statement, args, p.index != "", nil
}

// Index returns the condition that an index serves for a filter, "" if none does.
func Index(ctx context.Context, db *store.DB, f Filter) (string, error) {
	p, err := newPlan(ctx, db, &f)
	if err != nil {
		return "", err
	}
	return p.index, nil
}
