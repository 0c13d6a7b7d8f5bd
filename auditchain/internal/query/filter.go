package query

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentd/agentd/auditchain/internal/auditerr"
	"github.com/agentd/agentd/auditchain/internal/record"
)

// An Order is the direction of a query.
type Order uint8

const (
	// OldestFirst is by ascending sequence number.
	OldestFirst Order = iota
	// NewestFirst is by descending sequence number.
	NewestFirst
)

// A Filter chooses records. The zero value chooses all, oldest first. A record
// must match every field that is set.
type Filter struct {
	// Kinds lists the kinds to choose from; none means all.
	Kinds []record.Kind
	// NotKinds lists kinds to leave out.
	NotKinds []record.Kind
	// Tenant, Peer, Capability, Side, Correlation and Session are compared for
	// equality.
	Tenant      string
	Peer        string
	Capability  string
	Side        record.Side
	Correlation string
	Session     string
	// Since is the earliest time, inclusive; Until the latest, exclusive.
	Since time.Time
	Until time.Time
	// Text is searched for in the body, literally: no character has a special
	// meaning. ASCII letters match in either case.
	Text string
	// After continues after the record of that number, in the direction of Order:
	// pass the Seq of the last entry seen. 0 starts from the beginning.
	After int64
	// Limit bounds the number of entries; 0 means no limit.
	Limit int
	// Order is the direction.
	Order Order
}

// check rejects a filter that can only be a mistake.
func (f *Filter) check() error {
	for _, kind := range slices.Concat(f.Kinds, f.NotKinds) {
		if !kind.Valid() {
			return &auditerr.Error{Code: auditerr.CodeInvalid, Msg: fmt.Sprintf("there is no record kind %q", kind), Hint: "known kinds: " + kindList()}
		}
	}
	if f.Limit < 0 || f.After < 0 || f.Order > NewestFirst {
		return auditerr.Invalid("a filter has a negative limit or position, or an unknown order")
	}
	return nil
}

// kindList returns the names of all kinds, for messages.
func kindList() string {
	names := make([]string, 0, len(record.Kinds()))
	for _, kind := range record.Kinds() {
		names = append(names, string(kind))
	}
	return strings.Join(names, ", ")
}

// Describe names the columns that a filter compares, without the values, or ""
// if the filter chooses every record.
func Describe(f *Filter) string {
	var names []string
	for _, e := range equalities(f) {
		names = append(names, e.column)
	}
	if !f.Since.IsZero() {
		names = append(names, "since")
	}
	if !f.Until.IsZero() {
		names = append(names, "until")
	}
	if f.Text != "" {
		names = append(names, "text")
	}
	return strings.Join(names, ", ")
}
