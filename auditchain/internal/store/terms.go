package store

import (
	"crypto/sha256"
	"encoding/binary"
)

// What a query needs in order to read only the packs that may have what it looks for.
//
// The table terms lists, for the columns that have few values, which records of a pack
// have each value: a few entries for each pack, of two bytes or three for each record. Correlation ids and sessions differ from
// record to record, so each pack has a Bloom filter of those in the table filters, two
// bytes for each record. A filter never lacks a value of its pack; with one value in each
// record, one pack in a thousand is read in vain.

const (
	// filterBytes is the size of a filter for each record of its pack.
	filterBytes = 2
	// filterHashes is how many bits of a filter each value sets.
	filterHashes = 6
)

// termColumns are the columns of the table terms.
func termColumns() [5]string { return [...]string{"tenant", "kind", "peer", "capability", "side"} }

// TermColumn reports whether the table terms lists the values of a column.
func TermColumn(column string) bool {
	for _, c := range termColumns() {
		if c == column {
			return true
		}
	}
	return false
}

// A Term is an entry of the table terms, without the pack.
type Term struct {
	Column, Value string
	// Records is how many records have the value, and Positions says which, in the form that the
	// table has it in.
	Records   int64
	Positions []byte
}

// A Lookup is what the tables terms and filters have about one pack.
type Lookup struct {
	Pack   int64 // the number of its first record
	Terms  []Term
	Filter []byte
}

// A LookupCollector collects the lookups of packs, one after the other in the same memory. The
// zero value is ready.
type LookupCollector struct {
	// at has the places in values of the values of each column.
	at     [5]map[string]int
	values []collectedValue
	// recent are the places of the values of the record before. Neighbours are often alike.
	recent  [5]int
	lookup  Lookup
	encoded []byte
	scratch []byte
}

// A collectedValue is a value of a column, and the records that have it.
type collectedValue struct {
	column  int
	value   string
	records int64
	positions
}

// Add takes a record. It returns the lookup of its pack after the last record of that, and nil
// otherwise. The lookup is valid until the next call.
func (m *LookupCollector) Add(r *Record) *Lookup {
	switch {
	case r.Pack == 0:
		return nil
	case r.Pack == r.Seq:
		m.begin(r.Pack, int(r.PackLast-r.Pack+1))
	case r.Pack != m.lookup.Pack:
		return nil // its pack was not met from the beginning
	}
	for k, value := range [...][]byte{r.Tenant, r.Kind, r.Peer, r.Capability, r.Side} {
		if value == nil {
			continue
		}
		i, ok := m.at[k][string(value)]
		if !ok {
			i = m.newValue(k, string(value))
		}
		m.count(i, int(r.Seq-r.Pack))
	}
	if r.Correlation != nil {
		m.scratch = setBits(m.lookup.Filter, m.scratch, "correlation", string(r.Correlation))
	}
	if r.Session != nil {
		m.scratch = setBits(m.lookup.Filter, m.scratch, "session", string(r.Session))
	}
	if r.Seq < r.PackLast {
		return nil
	}
	return m.end(int(r.PackLast - r.Pack + 1))
}

// begin starts the lookup of a pack of count records.
func (m *LookupCollector) begin(first int64, count int) {
	for i := range m.at {
		if m.at[i] == nil {
			m.at[i] = map[string]int{}
		}
		clear(m.at[i])
		m.recent[i] = -1
	}
	if m.encoded == nil {
		m.encoded = make([]byte, 0, 2*maxPacked) // a set without bytes is not NULL
	}
	m.values, m.encoded = m.values[:0], m.encoded[:0]
	m.lookup = Lookup{Pack: first, Terms: m.lookup.Terms[:0], Filter: append(m.lookup.Filter[:0], make([]byte, count*filterBytes)...)}
}

// newValue adds a value and returns its place.
func (m *LookupCollector) newValue(column int, value string) int {
	m.at[column][value] = len(m.values)
	m.values = append(m.values, collectedValue{column: column, value: value})
	return len(m.values) - 1
}

// count adds a record to those of a value.
func (m *LookupCollector) count(i, position int) {
	v := &m.values[i]
	v.records++
	if position < maxPacked {
		v.add(position)
	}
}

// end returns the lookup of a pack of count records.
func (m *LookupCollector) end(count int) *Lookup {
	columns := termColumns()
	for i := range m.values {
		v := &m.values[i]
		t := Term{Column: columns[v.column], Value: v.value, Records: v.records}
		if count <= maxPacked { // as are all packs of the log's making
			from := len(m.encoded)
			m.encoded = v.appendTo(m.encoded, count)
			t.Positions = m.encoded[from:len(m.encoded):len(m.encoded)]
		}
		m.lookup.Terms = append(m.lookup.Terms, t)
	}
	return &m.lookup
}

// of returns the lookup of a pack's records.
func (m *LookupCollector) of(records []Record) (l *Lookup) {
	for i := range records {
		l = m.Add(&records[i])
	}
	return l
}

// ofRows returns the lookup of records that become a pack.
func (m *LookupCollector) ofRows(rows []Row) *Lookup {
	m.begin(rows[0].Header.Seq, len(rows))
	session := ""
	for i := range rows {
		h, c := &rows[i].Header, &rows[i].Content
		for k, value := range [...]string{h.Tenant, h.Kind, c.Peer, c.Capability, c.Side} {
			if value == "" {
				continue
			}
			at := m.recent[k]
			if at < 0 || m.values[at].value != value {
				var ok bool
				if at, ok = m.at[k][value]; !ok {
					at = m.newValue(k, value)
				}
				m.recent[k] = at
			}
			m.count(at, i)
		}
		if c.Correlation != "" {
			m.scratch = setBits(m.lookup.Filter, m.scratch, "correlation", c.Correlation)
		}
		if c.Session != "" && c.Session != session { // calls of one session are neighbours
			session = c.Session
			m.scratch = setBits(m.lookup.Filter, m.scratch, "session", session)
		}
	}
	return m.end(len(rows))
}

// A FilterKey finds one value of a column in filters.
type FilterKey struct{ a, b uint64 }

// NewFilterKey returns the key of a value. A hash that nobody can steer keeps a peer from
// choosing correlation ids that fill the filters.
func NewFilterKey(column, value string) FilterKey {
	key, _ := filterKey(nil, column, value)
	return key
}

func filterKey(scratch []byte, column, value string) (FilterKey, []byte) {
	scratch = append(append(append(scratch[:0], column...), '='), value...)
	sum := sha256.Sum256(scratch)
	return FilterKey{binary.BigEndian.Uint64(sum[:8]), binary.BigEndian.Uint64(sum[8:16])}, scratch
}

// In reports whether a filter may have the value. One that has no bits may have any: it is
// not of the log's making.
func (k FilterKey) In(filter []byte) bool {
	if len(filter) == 0 {
		return true
	}
	for i := range uint64(filterHashes) {
		if bit := k.bit(i, filter); filter[bit/8]&(1<<(bit%8)) == 0 {
			return false
		}
	}
	return true
}

func (k FilterKey) bit(i uint64, filter []byte) uint64 {
	return (k.a + i*k.b) % uint64(8*len(filter))
}

// setBits adds a value to a filter. It returns scratch, which it writes to.
func setBits(filter, scratch []byte, column, value string) []byte {
	key, scratch := filterKey(scratch, column, value)
	for i := range uint64(filterHashes) {
		bit := key.bit(i, filter)
		filter[bit/8] |= 1 << (bit % 8)
	}
	return scratch
}
