package query

import (
	"bytes"
	"context"
	"iter"
	"slices"

	"github.com/agentd/agentd/auditchain/internal/record"
	"github.com/agentd/agentd/auditchain/internal/store"
)

// rarePacks is the number of packs that are counted to tell a rare term from a common one.
const rarePacks = 100

// A packPlan is a filter for the records in packs. The tables terms and filters say which
// packs may have matches; of those the records are compared one by one.
type packPlan struct {
	filter *Filter
	newest bool
	// none is true if no pack has a match.
	none bool
	// terms must be those of the records, and keys must be in the pack's filter.
	terms []store.Term
	keys  []store.FilterKey
	// text is what the body must have, as it is in a JSON string and in lower case, or nil;
	// members are what it must have in canonical form.
	text    []byte
	members [][]byte

	// matches are entries that were found and not yet taken, in the order of the query. The
	// search has come to the number at, 0 before it began, and is whole if it has come to
	// its end.
	matches []record.Entry
	at      int64
	whole   bool
}

// newPackPlan chooses what tells the packs with matches from others.
func newPackPlan(ctx context.Context, db *store.DB, f *Filter, list []equality) (*packPlan, error) {
	p := &packPlan{filter: f, newest: f.Order == NewestFirst}
	p.none = len(f.Kinds) > 0 && !slices.ContainsFunc(f.Kinds, record.Kind.Packable)
	if p.none {
		return p, nil
	}
	if f.Text != "" {
		text, err := quote(f.Text)
		if err != nil {
			return nil, err
		}
		p.text = lowerASCII([]byte(text))
	}
	if err := p.addMembers(f); err != nil {
		return nil, err
	}
	for _, e := range list {
		value, _ := e.values[0].(string)
		switch {
		case len(e.values) > 1: // of kinds, most of which are not packed
		case store.TermColumn(e.column):
			p.terms = append(p.terms, store.Term{Column: e.column, Value: value})
		default:
			p.keys = append(p.keys, store.NewFilterKey(e.column, value))
		}
	}
	if len(p.keys) == 0 {
		return p, nil
	}
	return p, p.keepRareTerms(ctx, db)
}

// keepRareTerms removes the terms that many packs have: to read all filters takes less time than
// to look up those of many packs, and leaves few packs. One that no pack has stays: the log may be
// appended to between two pages.
func (p *packPlan) keepRareTerms(ctx context.Context, db *store.DB) (err error) {
	p.terms = slices.DeleteFunc(p.terms, func(t store.Term) bool {
		var count int
		if err == nil {
			err = db.ScanPacked(ctx, `SELECT count(*) FROM (SELECT 1 FROM terms WHERE field = ? AND value = ? LIMIT ?)`,
				[]any{t.Column, t.Value, rarePacks}, []any{&count})
		}
		return count == rarePacks
	})
	return err
}

// addMembers adds the members of the bodies from which the columns of packed records follow.
func (p *packPlan) addMembers(f *Filter) error {
	for _, m := range [...]struct{ name, value string }{
		{"correlationId", f.Correlation}, {"sessionId", f.Session}, {"capabilityName", f.Capability}, {"peerId", f.Peer}, {"side", string(f.Side)},
	} {
		if m.value == "" {
			continue
		}
		quoted, err := quote(m.value)
		if err != nil {
			return err
		}
		p.members = append(p.members, []byte(`"`+m.name+`":"`+quoted+`"`))
	}
	return nil
}

// ahead returns the next matches between two numbers, both exclusive, at most size. It
// returns true if there are no further ones. What it has found and the page does not take
// is kept: to look for rare matches again for each page could mean to read the log again.
func (p *packPlan) ahead(ctx context.Context, db *store.DB, low, high int64, size int) (matches []record.Entry, whole bool, err error) {
	p.matches = slices.DeleteFunc(p.matches, func(e record.Entry) bool { return e.Seq <= low || e.Seq >= high })
	if p.whole && !p.newest && high > p.at+1 {
		p.whole = false // the log has grown
	}
	if !p.none && !p.whole && len(p.matches) < size {
		if p.at > 0 && p.newest {
			high = min(high, p.at)
		} else if p.at > 0 {
			low = max(low, p.at)
		}
		p.whole = true
		for e, err := range p.search(ctx, db, low, high) {
			if err != nil {
				return nil, false, err
			}
			p.matches, p.at = append(p.matches, e), e.Seq
			if len(p.matches) == size {
				p.whole = false
				break
			}
		}
		if p.whole && !p.newest {
			p.at = high - 1
		}
	}
	whole = p.whole || p.none
	if len(p.matches) > size {
		return p.matches[:size], false, nil
	}
	return p.matches, whole, nil
}

// search yields the matches between two numbers.
func (p *packPlan) search(ctx context.Context, db *store.DB, low, high int64) iter.Seq2[record.Entry, error] {
	return func(yield func(record.Entry, error) bool) {
		for r, err := range db.Packs(ctx, p.choice(low, high)) {
			if err != nil {
				yield(record.Entry{}, err)
				return
			}
			if !p.matchesRecord(r) {
				continue
			}
			e, err := entryOf(r)
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// choice says which packs between two numbers to read.
func (p *packPlan) choice(low, high int64) *store.PackChoice {
	return &store.PackChoice{
		Low: low, High: high, Descending: p.newest, Terms: p.terms, Keys: p.keys, Tenant: p.filter.Tenant, Members: p.members, Text: p.text,
	}
}

// matchesRecord reports whether the filter chooses a record, as far as that does not depend
// on its number.
func (p *packPlan) matchesRecord(r *store.Record) bool {
	f := p.filter
	for _, c := range [...]struct {
		want string
		is   []byte
	}{
		{f.Tenant, r.Tenant}, {f.Peer, r.Peer}, {f.Capability, r.Capability}, {string(f.Side), r.Side},
		{f.Correlation, r.Correlation}, {f.Session, r.Session},
	} {
		if c.want != "" && c.want != string(c.is) {
			return false
		}
	}
	kind := record.Kind(r.Kind)
	if len(f.Kinds) > 0 && !slices.Contains(f.Kinds, kind) || slices.Contains(f.NotKinds, kind) {
		return false
	}
	// As LIKE does, ASCII letters match in either case.
	return p.text == nil || bytes.Contains(lowerASCII(bytes.Clone(r.Body)), p.text)
}

func lowerASCII(b []byte) []byte {
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + ('a' - 'A')
		}
	}
	return b
}
