package record

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/agentd/agentd/auditchain/internal/chainhash"
	"github.com/agentd/agentd/internal/jcs"
	"golang.org/x/mod/sumdb/tlog"
)

// A Prepared is a record that is ready to be chained. All work that does not
// depend on the record's position is done: validation, canonicalisation and the
// digest run in the goroutine of the caller that appends, not in the one
// goroutine that writes.
type Prepared struct {
	// Header has Tenant, Kind and Digest; the writer sets Seq and Time.
	Header chainhash.Header[string]
	// Content has the canonical body and the columns.
	Content chainhash.Content[string]
	// Salt hides the content from whoever sees only the digest.
	Salt [chainhash.SaltSize]byte
	// Packable is true for a record that may be stored in a pack: of a kind that may, and
	// with the columns of its body, which a pack does not store beside the body.
	Packable bool
}

// Prepare validates r and fills p from it. It rejects a record that
// would seal the log, as [Prepared.PrepareSealed] does.
func (p *Prepared) Prepare(r *Record) error { return new(Preparer).Prepare(p, r) }

// A Preparer prepares one record after the other in the same memory. The zero value is
// ready. It serves one goroutine.
type Preparer struct {
	canonical jcs.Appender
	scratch   []byte
	// salts is the rest of what was read for salts: reading costs more than 16 bytes do.
	salts  []byte
	random [32 * chainhash.SaltSize]byte
	// further is true after the first record: there may be more.
	further bool
}

// Prepare is [Prepared.Prepare].
func (pr *Preparer) Prepare(p *Prepared, r *Record) error {
	if IsSealed(r.Kind, r.Body) {
		return fmt.Errorf("the body has the member %q, with which the log itself says that nothing unsigned follows", sealMember)
	}
	return pr.prepare(p, r)
}

func (pr *Preparer) prepare(p *Prepared, r *Record) error {
	tenant := r.Tenant
	if tenant == "" {
		tenant = DefaultTenant
	}
	var err error
	if p.Content, err = pr.content(r); err != nil {
		return err
	}
	p.Salt = pr.salt()
	p.Packable = r.Kind.Packable() && r.Peer == "" && r.Capability == "" && r.Side == "" && r.Correlation == "" && r.Session == "" &&
		len(p.Content.Body) <= maxPackedBody
	p.Header = chainhash.Header[string]{Tenant: tenant, Kind: string(r.Kind), Digest: p.digest(&pr.scratch)}
	return nil
}

// maxPackedBody bounds the body of a record in a pack. Longer ones are rare, and whoever
// reads one record reads all of its pack.
const maxPackedBody = 8 << 10

// salt returns random bytes that nobody has had before, and keeps no copy of them.
func (pr *Preparer) salt() (salt [chainhash.SaltSize]byte) {
	if !pr.further {
		pr.further = true
		rand.Read(salt[:])
		return salt
	}
	if len(pr.salts) == 0 {
		rand.Read(pr.random[:]) // never fails (crypto/rand)
		pr.salts = pr.random[:]
	}
	n := copy(salt[:], pr.salts)
	clear(pr.salts[:n])
	pr.salts = pr.salts[n:]
	return salt
}

// Stamp adds the clock's reading, in Unix milliseconds, to the body, as the member clock:
// the record's time is another one. A body that has such a member, or no room for it,
// stays as it is.
func (p *Prepared) Stamp(reading int64) {
	for name := range members(p.Content.Body) {
		if name == `"clock"` {
			return
		}
	}
	text := strconv.AppendInt([]byte(`{"clock":`), reading, 10)
	if len(p.Content.Body) > len("{}") {
		text = append(text, ',')
	}
	body, err := jcs.Append(nil, append(text, p.Content.Body[1:]...))
	if err != nil || len(body) > MaxBodyBytes {
		return
	}
	p.Content.Body = string(body)
	var scratch []byte
	p.Header.Digest = p.digest(&scratch)
}

// digest is the commitment to the content.
func (p *Prepared) digest(scratch *[]byte) tlog.Hash {
	return chainhash.Digest(scratch, p.Salt[:], &p.Content)
}

// content validates the record and brings its body into canonical form.
func (pr *Preparer) content(r *Record) (chainhash.Content[string], error) {
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
	if pr.scratch, err = pr.canonical.Append(pr.scratch[:0], body); err != nil {
		return c, fmt.Errorf("the body: %w", err)
	}
	c.Body = string(pr.scratch)
	switch {
	case c.Body[0] != '{':
		return c, errors.New("the body is not a JSON object")
	case len(c.Body) > MaxBodyBytes:
		return c, fmt.Errorf("the body has %d bytes, more than %d", len(c.Body), MaxBodyBytes)
	}
	return c, deriveColumns(&c, pr.canonical.Members())
}

// deriveColumns fills the empty columns from the body, and rejects members that
// would collide with the log's own when the entry is printed as JSON. known are the
// members of the body, or none if they are not known.
func deriveColumns(c *chainhash.Content[string], known []jcs.Member) error {
	if len(known) == 0 {
		for name, value := range members(c.Body) {
			if err := takeMember(c, name, value); err != nil {
				return err
			}
		}
	}
	for _, m := range known {
		if err := takeMember(c, c.Body[m.Name:m.Value-1], c.Body[m.Value:m.End]); err != nil {
			return err
		}
	}
	return nil
}

// takeMember fills the column of a member, which most have not.
func takeMember(c *chainhash.Content[string], name, value string) error {
	switch name {
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
	return nil
}

// derive fills an empty column from a JSON string. A value that no column can
// hold stays in the body only: a record is worth more than a search index entry.
func derive(column *string, value string) {
	if *column != "" || value[0] != '"' {
		return
	}
	text := value[1 : len(value)-1] // of the body, which is not copied
	if strings.IndexByte(text, '\\') >= 0 {
		text = unquote(value)
	}
	if checkColumn(text) == nil {
		*column = text
	}
}

// unquote returns what a JSON string says.
func unquote(value string) (text string) {
	_ = json.Unmarshal([]byte(value), &text) // it is canonical
	return text
}

// checkColumn rejects text that would break a terminal, a log line or an index.
func checkColumn(s string) error {
	if len(s) > MaxColumnBytes {
		return fmt.Errorf("a column has %d bytes, more than %d", len(s), MaxColumnBytes)
	}
	ascii := true
	for i := range len(s) {
		if s[i] < 0x20 || s[i] == 0x7f {
			return errors.New("a column holds a control character")
		}
		ascii = ascii && s[i] < utf8.RuneSelf
	}
	if !ascii && !utf8.ValidString(s) {
		return errors.New("a column is not valid UTF-8")
	}
	return nil
}
