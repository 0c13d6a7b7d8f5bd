package auditchain

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agentd/agentd/auditchain/internal/chainhash"
	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/internal/jcs"
	"golang.org/x/mod/sumdb/tlog"
)

const (
	// DefaultTenant is the tenant of a record that names none.
	DefaultTenant = "default"
	// MaxBodyBytes bounds a record's body, in its canonical form.
	MaxBodyBytes = 1 << 20
	// MaxColumnBytes bounds the tenant and each of the searchable columns.
	MaxColumnBytes = 1024
)

// A Side is the direction of the payload that a record is about.
type Side string

// The sides of a call.
const (
	SideRequest  Side = "request"
	SideResponse Side = "response"
)

// A Record is what a caller appends. The log adds sequence number, time and
// hashes.
type Record struct {
	// Kind is required, and none of the kinds that the log itself writes.
	Kind Kind
	// Tenant is [DefaultTenant] when empty.
	Tenant string
	// Body is a JSON object (I-JSON, RFC 7493). It is stored in canonical
	// form. It must not have members kind, ts or tenantId, which are columns.
	// Empty means {}.
	Body json.RawMessage

	// The searchable columns. Where one is empty, it is copied from the body's
	// member peerId, capabilityName, side, correlationId or sessionId, if that
	// is a string of at most [MaxColumnBytes].

	// Peer is the other agent's address.
	Peer string
	// Capability is the name of the capability.
	Capability string
	// Side is the direction of the payload.
	Side Side
	// Correlation is the correlation id of the call.
	Correlation string
	// Session is the session that caused the call.
	Session string
}

// An Entry is a record as the log holds it.
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
	// Body is canonical JSON, or nil when it was erased.
	Body json.RawMessage
	// ErasedBy is the sequence number of the redaction record that authorises
	// the erased content, or 0.
	ErasedBy int64
	// Hash is the record's hash, which is its leaf in the Merkle tree.
	Hash tlog.Hash
}

// Erased reports whether the content of the record was redacted.
func (e *Entry) Erased() bool { return e.ErasedBy != 0 }

// MarshalJSON gives the record in the shape that its kind documents: kind, ts
// and tenantId, then the members of the body. What was erased has only the
// first three, and erasedBy.
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
	case len(e.Body) > 2:
		b = append(b, ',')
		return append(b, e.Body[1:]...), nil
	}
	return append(b, '}'), nil
}

// prepared is a record that is ready to be chained: all that does not depend
// on its place in the log is done, in the goroutine of its caller.
type prepared struct {
	header  chainhash.Header[string] // Tenant, Kind and Digest
	content chainhash.Content[string]
	salt    [chainhash.SaltSize]byte
}

// content checks the record and brings its body into canonical form.
func (r *Record) content() (chainhash.Content[string], error) {
	c := chainhash.Content[string]{
		Peer: r.Peer, Capability: r.Capability, Side: string(r.Side),
		Correlation: r.Correlation, Session: r.Session,
	}
	for _, column := range []string{r.Tenant, c.Peer, c.Capability, c.Side, c.Correlation, c.Session} {
		if err := checkColumn(column); err != nil {
			return c, err
		}
	}
	body := []byte(r.Body)
	if len(body) == 0 {
		body = []byte("{}")
	}
	var err error
	if c.Body, err = jcs.Append(make([]byte, 0, len(body)), body); err != nil {
		return c, fmt.Errorf("the body: %w", err)
	}
	switch {
	case c.Body[0] != '{':
		return c, fmt.Errorf("the body is not a JSON object")
	case len(c.Body) > MaxBodyBytes:
		return c, fmt.Errorf("the body has %d bytes, more than %d", len(c.Body), MaxBodyBytes)
	}
	return c, deriveColumns(&c)
}

// deriveColumns fills the empty columns from the body.
func deriveColumns(c *chainhash.Content[string]) error {
	for name, value := range canonicalMembers(c.Body) {
		switch string(name) {
		case `"kind"`, `"ts"`, `"tenantId"`:
			return fmt.Errorf("the body has a member %s, which the log itself provides", name)
		case `"peerId"`:
			derive(&c.Peer, value)
		case `"capabilityName"`:
			derive(&c.Capability, value)
		case `"side"`:
			derive(&c.Side, value)
		case `"correlationId"`:
			derive(&c.Correlation, value)
		case `"sessionId"`:
			derive(&c.Session, value)
		}
	}
	return nil
}

// derive fills an empty column with a JSON string. What does not fit is left
// out: it stays in the body, and a call must not fail for being searched badly.
func derive(column *string, value []byte) {
	if *column != "" || value[0] != '"' {
		return
	}
	text := string(value[1 : len(value)-1])
	if strings.IndexByte(text, '\\') >= 0 && json.Unmarshal(value, &text) != nil {
		return
	}
	if checkColumn(text) == nil {
		*column = text
	}
}

// checkColumn refuses what would break a terminal, a log line or an index.
func checkColumn(s string) error {
	if len(s) > MaxColumnBytes {
		return fmt.Errorf("a column has %d bytes, more than %d", len(s), MaxColumnBytes)
	}
	if !utf8.ValidString(s) {
		return fmt.Errorf("a column is not valid UTF-8")
	}
	for i := range len(s) {
		if s[i] < 0x20 || s[i] == 0x7f {
			return fmt.Errorf("a column holds a control character")
		}
	}
	return nil
}

// canonicalMembers yields the quoted names and the values of the members of an
// object in canonical form, whose only whitespace is inside strings.
func canonicalMembers(object []byte) func(yield func(name, value []byte) bool) {
	return func(yield func(name, value []byte) bool) {
		for i := 1; object[i] != '}'; {
			nameEnd := canonicalEnd(object, i)
			valueEnd := canonicalEnd(object, nameEnd+1)
			if !yield(object[i:nameEnd], object[nameEnd+1:valueEnd]) {
				return
			}
			if i = valueEnd; object[i] == ',' {
				i++
			}
		}
	}
}

// canonicalEnd is the end of the value that starts at i.
func canonicalEnd(b []byte, i int) int {
	for depth := 0; ; i++ {
		switch b[i] {
		case '"':
			for i++; b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
			if depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ':':
			if depth == 0 {
				return i
			}
		}
	}
}
