package record

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/agentd/agentd/internal/ijson"
	"golang.org/x/mod/sumdb/tlog"
)

// An Entry is a record as the log stores it.
type Entry struct {
	// Seq is the position in the log, from 1, without gaps.
	Seq int64
	// Time has millisecond precision. It never decreases along the log.
	Time time.Time
	// Tenant is never empty.
	Tenant string
	// Kind is the record's kind.
	Kind Kind
	// Peer, Capability, Side, Correlation and Session are the searchable
	// columns, empty where absent or erased.
	Peer, Capability string
	Side             Side
	Correlation      string
	Session          string
	// Body is canonical JSON, or nil if it was erased.
	Body json.RawMessage
	// ErasedBy is the sequence number of the redaction record that authorises
	// the erasure of the content, or 0.
	ErasedBy int64
	// Hash is the record's hash, which is also its leaf in the Merkle tree.
	Hash tlog.Hash
}

// Erased reports whether the content of the record was redacted.
func (e *Entry) Erased() bool { return e.ErasedBy != 0 }

// MarshalJSON returns the record in the shape that its kind documents: kind, ts
// and tenantId, followed by the members of the body. An erased record has only
// the first three, and erasedBy.
func (e *Entry) MarshalJSON() ([]byte, error) {
	b := append(make([]byte, 0, 96+len(e.Body)), `{"kind":`...)
	b = ijson.AppendQuoted(b, string(e.Kind))
	b = append(b, `,"ts":`...)
	b = strconv.AppendInt(b, e.Time.UnixMilli(), 10)
	b = append(b, `,"tenantId":`...)
	b = ijson.AppendQuoted(b, e.Tenant)
	switch {
	case e.Erased():
		b = append(b, `,"erasedBy":`...)
		b = strconv.AppendInt(b, e.ErasedBy, 10)
		return append(b, '}'), nil
	case len(e.Body) > len("{}"):
		// Splice the members in: the body is canonical, so its first byte is the
		// opening brace and it has no member that is already there.
		b = append(b, ',')
		return append(b, e.Body[1:]...), nil
	}
	return append(b, '}'), nil
}
