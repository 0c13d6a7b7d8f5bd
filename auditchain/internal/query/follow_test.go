package query_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/internal/audittest"
	"github.com/agentd/agentd/auditchain/internal/store"
)

func TestFollow(t *testing.T) {
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{})
	for i := range 5 {
		audittest.Append(t, l, audittest.Violation(i))
	}
	r, err := auditchain.OpenReader(context.Background(), l.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var seen []int64
	for e, err := range r.Follow(ctx, auditchain.Filter{Kinds: []auditchain.Kind{auditchain.KindSchemaViolation}, Limit: 2}) {
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, e.Seq)
		switch len(seen) {
		case 2:
			audittest.Append(t, l, auditchain.Record{Kind: auditchain.KindLifecycle})
			audittest.Append(t, l, audittest.Violation(6))
		case 3:
			audittest.Append(t, l, audittest.Violation(7))
		case 4:
			cancel()
		}
	}
	if want := []int64{4, 5, 7, 8}; !slices.Equal(seen, want) {
		t.Errorf("followed %v, want %v", seen, want)
	}
}

// Without a limit, a follower starts after the record it was given, or at the
// beginning; a limit never takes it back behind that record.
func TestFollowStarts(t *testing.T) {
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{})
	audittest.Fill(t, l, 8)
	for name, test := range map[string]struct {
		filter auditchain.Filter
		want   []int64
	}{
		"everything":                 {auditchain.Filter{}, []int64{1, 2, 3, 4, 5, 6, 7, 8}},
		"after a record":             {auditchain.Filter{After: 5}, []int64{6, 7, 8}},
		"the newest":                 {auditchain.Filter{Limit: 1}, []int64{8}},
		"more than there are":        {auditchain.Filter{Limit: 99}, []int64{1, 2, 3, 4, 5, 6, 7, 8}},
		"a limit before the record":  {auditchain.Filter{Limit: 4, After: 6}, []int64{7, 8}},
		"a limit after the record":   {auditchain.Filter{Limit: 2, After: 3}, []int64{7, 8}},
		"the order does not matter":  {auditchain.Filter{Limit: 2, Order: auditchain.NewestFirst}, []int64{7, 8}},
		"of one session, the newest": {auditchain.Filter{Session: "nobody", Limit: 3, After: 8}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var got []int64
			if len(test.want) == 0 {
				cancel()
			}
			for e, err := range l.Follow(ctx, test.filter) {
				if err != nil {
					t.Fatal(err)
				}
				if got = append(got, e.Seq); len(got) == len(test.want) {
					break
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("followed %v, want %v", got, test.want)
			}
		})
	}
}

// A newer program that takes the log over, with records that this one cannot see, ends following
// and queries: they would pass by those.
func TestFollowEndsWithTheVersionItKnows(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]func(*auditchain.Reader) iter.Seq2[auditchain.Entry, error]{
		"a follower": func(r *auditchain.Reader) iter.Seq2[auditchain.Entry, error] {
			return r.Follow(t.Context(), auditchain.Filter{})
		},
		"a query": func(r *auditchain.Reader) iter.Seq2[auditchain.Entry, error] {
			return r.Query(t.Context(), auditchain.Filter{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := audittest.Open(t, auditchain.Options{})
			audittest.Fill(t, l, 300) // more than a page
			r := audittest.OpenReader(t, l.Path())
			seen := 0
			for _, err := range read(r) {
				if err != nil {
					if auditchain.CodeOf(err) != auditchain.CodeVersion || seen == 0 || seen > 256 {
						t.Errorf("after %d records: %v", seen, err)
					}
					return
				}
				if seen++; seen == 1 {
					audittest.SceneAt(t, l.Path()).SQL(fmt.Sprintf(`PRAGMA user_version = %d`, store.SchemaVersion+1))
				}
			}
			t.Errorf("no error after %d records", seen)
		})
	}
}

// An error ends following; the end of the context is none.
func TestFollowErrors(t *testing.T) {
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{})
	audittest.Fill(t, l, 2)
	for _, f := range []auditchain.Filter{{Kinds: []auditchain.Kind{"x"}}, {Kinds: []auditchain.Kind{"x"}, Limit: 1}} {
		var errs []error
		for _, err := range l.Follow(t.Context(), f) {
			errs = append(errs, err)
		}
		if len(errs) != 1 || auditchain.CodeOf(errs[0]) != auditchain.CodeInvalid {
			t.Errorf("%+v: %v", f, errs)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range l.Follow(ctx, auditchain.Filter{Limit: 1}) {
		t.Errorf("after the end of the context: %v", err)
	}
}
