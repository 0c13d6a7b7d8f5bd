package query

import (
	"context"
	"math"
	"strings"
	"time"

	"github.com/agentd/agentd/auditchain/internal/store"
	"github.com/agentd/agentd/internal/jcs"
)

// rareRows is the number of index entries that are counted to tell a rare value
// from a common one.
const rareRows = 1000

// A plan is a filter translated to SQL for the records that have rows of their own. Every page is read in the order of seq
// from one index, without sorting: an index entry ends with the row's seq, so the
// entries of one value are in that order.
type plan struct {
	// index is the equality that the index serves, such as "peer = ?", or "" for
	// the records in their own order. There is one alternative for each value.
	index  string
	values []any
	// rest are further conditions.
	rest conditions
	// first and end bound seq, end exclusive.
	first, end int64
	until      bool // the filter sets end, and otherwise the newest record does
	after      int64
	newest     bool
	// packs reads the records that have no row of their own.
	packs *packPlan
}

// newPlan chooses the index for a filter.
func newPlan(ctx context.Context, db *store.DB, f *Filter) (*plan, error) {
	p := &plan{after: f.After, newest: f.Order == NewestFirst}
	equalities := equalities(f)
	chosen, err := mostSelective(ctx, db, equalities)
	if err != nil {
		return nil, err
	}
	for i, e := range equalities {
		if i == chosen {
			p.index, p.values = e.column+" = ?", e.values
			continue
		}
		// The plus sign keeps SQLite from using an index on the column.
		p.rest.add("+"+e.column+" IN (?"+strings.Repeat(", ?", len(e.values)-1)+")", e.values...)
	}
	for _, kind := range f.NotKinds {
		p.rest.add("kind <> ?", string(kind))
	}
	if f.Text != "" {
		// The body holds the text in the form of a JSON string.
		quoted, err := quote(f.Text)
		if err != nil {
			return nil, err
		}
		p.rest.add(`body LIKE ? ESCAPE '\'`, likePattern(quoted))
	}
	if !f.Since.IsZero() {
		if p.first, err = FirstAt(ctx, db, f.Since); err != nil {
			return nil, err
		}
	}
	if p.until = !f.Until.IsZero(); p.until {
		p.end, err = FirstAt(ctx, db, f.Until)
	} else {
		err = p.extend(ctx, db)
	}
	if err != nil {
		return nil, err
	}
	p.packs, err = newPackPlan(ctx, db, f, equalities)
	return p, err
}

// An equality is a column and the values it may have.
type equality struct {
	column string
	values []any
}

// equalities returns the columns that a filter compares, those with the rarer
// values first, as far as that is known without looking.
func equalities(f *Filter) []equality {
	var list []equality
	for _, e := range []struct{ column, value string }{
		{"correlation", f.Correlation}, {"session", f.Session}, {"capability", f.Capability}, {"peer", f.Peer},
	} {
		if e.value != "" {
			list = append(list, equality{e.column, []any{e.value}})
		}
	}
	if len(f.Kinds) > 0 {
		kinds := make([]any, len(f.Kinds))
		for i, kind := range f.Kinds {
			kinds[i] = string(kind)
		}
		list = append(list, equality{"kind", kinds})
	}
	if f.Tenant != "" {
		list = append(list, equality{"tenant", []any{f.Tenant}})
	}
	if f.Side != "" {
		list = append(list, equality{"side", []any{string(f.Side)}})
	}
	return list
}

// mostSelective returns the position of the equality to use an index for, or -1
// if there is none: the first with rare values, or else the first.
func mostSelective(ctx context.Context, db *store.DB, list []equality) (int, error) {
	chosen := -1
	for i, e := range list {
		if e.column == "side" { // has no index
			continue
		}
		if chosen < 0 {
			chosen = i
		}
		if len(list) == 1 {
			break
		}
		var count int
		for _, value := range e.values {
			var n int
			err := db.QueryRowContext(ctx, `SELECT count(*) FROM (SELECT 1 FROM records WHERE `+e.column+` = ? LIMIT ?)`,
				value, rareRows).Scan(&n)
			if err != nil {
				return 0, err
			}
			count += n
		}
		if count < rareRows {
			return i, nil
		}
	}
	return chosen, nil
}

// extend moves the end of a plan without one to the newest record. In the order of the newest
// first, the first page has it.
func (p *plan) extend(ctx context.Context, db *store.DB) error {
	if p.until || p.newest && p.end > 0 {
		return nil
	}
	last, err := db.LastRecord(ctx)
	p.end = min(last, math.MaxInt64-1) + 1 // a row of the largest number must not hide all others
	return err
}

// bounds returns the numbers between which the next page lies, both exclusive.
func (p *plan) bounds() (low, high int64) {
	low, high = p.first-1, p.end
	if p.newest && p.after > 0 {
		high = min(high, p.after)
	} else if !p.newest {
		low = max(low, p.after)
	}
	return low, high
}

// statement returns the SQL of the next page's rows between two numbers, and its arguments.
func (p *plan) statement(columns string, low, high int64, size int) (string, []any) {
	var where conditions
	if p.index != "" {
		where.add(p.index, nil)
	}
	where.terms, where.args = append(where.terms, p.rest.terms...), append(where.args, p.rest.args...)
	if low > 0 {
		where.add("seq > ?", low)
	}
	where.add("seq < ?", high)
	// One SELECT for each value: SQLite merges them in the order of seq, while an
	// IN would make it sort every match.
	var args []any
	selects := make([]string, max(1, len(p.values)))
	for i := range selects {
		selects[i] = `SELECT ` + columns + ` FROM records` + where.text()
		if p.index != "" {
			where.args[0] = p.values[i]
		}
		args = append(args, where.args...)
	}
	order := ` ORDER BY 1`
	if p.newest {
		order += ` DESC`
	}
	return strings.Join(selects, ` UNION ALL `) + order + ` LIMIT ?`, append(args, size)
}

// FirstAt returns the number of the first record at or after t, or one more than
// that of the last record. Time never decreases along the log, so a binary search
// replaces an index on it.
func FirstAt(ctx context.Context, db *store.DB, t time.Time) (int64, error) {
	ms := t.UnixMilli()
	if t.Nanosecond()%int(time.Millisecond) != 0 {
		ms++ // records have whole milliseconds
	}
	return db.FirstAt(ctx, ms)
}

// conditions collects the terms of a WHERE clause.
type conditions struct {
	terms []string
	args  []any
}

// add adds a term and the arguments of its question marks.
func (c *conditions) add(term string, args ...any) {
	c.terms = append(c.terms, term)
	c.args = append(c.args, args...)
}

// text returns the WHERE clause, or "".
func (c *conditions) text() string {
	if len(c.terms) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(c.terms, " AND ")
}

// quote returns a text in the form that it has in a JSON string.
func quote(text string) (string, error) {
	quoted, err := jcs.Marshal(text)
	if err != nil {
		return "", err
	}
	return string(quoted[1 : len(quoted)-1]), nil
}

// likePattern returns a LIKE pattern that matches text anywhere.
func likePattern(text string) string {
	return "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(text) + "%"
}
