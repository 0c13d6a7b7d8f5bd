package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/agentd/agentd/auditchain/internal/chainhash"
	"github.com/agentd/agentd/auditchain/internal/record"
	"github.com/agentd/agentd/internal/ijson"
	"golang.org/x/mod/sumdb/tlog"
)

// A pack is one row of the table packs and stands for many records, as if each had a row
// in the table records: a row costs an insert in each index, and the records of calls are
// most of a busy log. What a record's hash follows from is there once: its columns are
// those of its body, and its digest is computed.

const (
	// minPacked is how many records are worth a pack: its entries in the tables terms
	// and filters cost as much as some rows.
	minPacked = 8
	// maxPacked bounds the records of a pack. To redact one of them, the others are
	// written as rows, which appends wait for.
	maxPacked = 256
	// maxPackedBytes bounds the bodies of a pack.
	maxPackedBytes = 512 << 10
)

// A pack is a row of the table packs.
type pack struct {
	first, last, time int64
	// tenants and kinds are JSON arrays of texts: one for all records, or one for each.
	tenants, kinds []byte
	// hashes and salts are those of the records, one after the other.
	hashes, salts []byte
	// bodies is a JSON array of the bodies.
	bodies []byte
}

// packColumns are the columns of a row, in the order of [pack.destinations].
const packColumns = `first, last, ts, tenants, kinds, hashes, salts, bodies`

func (p *pack) destinations() []any {
	return []any{&p.first, &p.last, &p.time, &p.tenants, &p.kinds, &p.hashes, &p.salts, &p.bodies}
}

// An unpacker reads packs. It takes nothing for granted: anybody can write to the file.
type unpacker struct {
	content ContentReader
	scratch []byte
	lower   []byte // bodies in lower case
	ends    []int  // of bodies
	records []Record
}

// ContentReader reads contents.
type ContentReader = record.ContentReader

var (
	errPackCount  = errors.New("its parts are not of as many records as its numbers")
	errPackKind   = errors.New("it has records of a kind that is not packed")
	errPackBodies = errors.New("its bodies are not an array of objects without white space between them")
)

// read returns the records of a pack, which are valid until the next call and share the
// memory of the pack.
func (u *unpacker) read(p *pack) ([]Record, error) {
	count, tenants, kinds, err := p.head()
	if err != nil {
		return nil, err
	}
	u.records = u.records[:0]
	if err := u.bodies(p.bodies, int(count)); err != nil {
		return nil, err
	}
	for i := range u.records {
		p.complete(&u.records[i], i, tenants, kinds)
	}
	return u.records, nil
}

// complete sets what record i has besides its body.
func (p *pack) complete(r *Record, i int, tenants, kinds [][]byte) {
	r.Seq, r.Time, r.Pack, r.PackLast = p.first+int64(i), p.time, p.first, p.last
	r.Tenant, r.Kind = tenants[min(i, len(tenants)-1)], kinds[min(i, len(kinds)-1)]
	r.Hash = p.hashes[i*tlog.HashSize : (i+1)*tlog.HashSize : (i+1)*tlog.HashSize]
	r.Salt = p.salts[i*chainhash.SaltSize : (i+1)*chainhash.SaltSize : (i+1)*chainhash.SaltSize]
}

// head checks what a pack has besides the bodies. It returns how many records it has, and their
// tenants and kinds: one for all, or one for each.
func (p *pack) head() (count int64, tenants, kinds [][]byte, err error) {
	count = int64(len(p.hashes) / tlog.HashSize)
	if count < 1 || p.first < 1 || p.last < p.first || p.last-p.first != count-1 || int64(len(p.hashes)) != count*tlog.HashSize ||
		int64(len(p.salts)) != count*chainhash.SaltSize {
		return 0, nil, nil, errPackCount
	}
	if tenants, err = texts(p.tenants, int(count)); err != nil {
		return 0, nil, nil, err
	}
	if kinds, err = texts(p.kinds, int(count)); err != nil {
		return 0, nil, nil, err
	}
	for _, kind := range kinds {
		if !record.Kind(kind).Packable() {
			return 0, nil, nil, errPackKind
		}
	}
	return count, tenants, kinds, nil
}

// bodies appends count records with the bodies of an array. The array has no byte that
// belongs to none of them: the hashes cover the bodies alone.
func (u *unpacker) bodies(array []byte, count int) error {
	if len(array) < 2 || array[0] != '[' {
		return errPackBodies
	}
	at := 1
	for n := 0; ; n++ {
		if n == count {
			return errPackCount
		}
		content, end, err := u.content.Read(array, at)
		if err != nil {
			return fmt.Errorf("%w: %w", errPackBodies, err)
		}
		u.records = append(u.records, Record{
			Peer: content.Peer, Capability: content.Capability, Side: content.Side,
			Correlation: content.Correlation, Session: content.Session, Body: content.Body,
		})
		switch {
		case end == len(array)-1 && array[end] == ']':
			if n+1 != count {
				return errPackCount
			}
			return nil
		case end >= len(array) || array[end] != ',':
			return errPackBodies
		}
		at = end + 1
	}
}

// texts reads a JSON array of one text, or of count. The texts share its memory where they can.
func texts(array []byte, count int) ([][]byte, error) {
	if values := plainTexts(array, count); values != nil {
		return values, nil
	}
	if ijson.Check(array, 1) != nil {
		return nil, errors.New("its tenants or kinds are not an array of texts")
	}
	var list []string
	err := json.Unmarshal(array, &list)
	if err != nil || len(list) != 1 && len(list) != count {
		return nil, errors.New("its tenants or kinds are not an array of one text, or of one for each record")
	}
	// There is one way to write them, as for the bodies.
	if string(appendTexts(nil, len(list), func(i int) string { return list[i] })) != string(array) {
		return nil, errors.New("its tenants or kinds are not written as the log writes them")
	}
	values := make([][]byte, len(list))
	for i, text := range list {
		values[i] = []byte(text)
	}
	return values, nil
}

// plainTexts reads an array as the log writes it, of texts that have no escapes, and returns nil
// for others. A query reads that of each pack it looks at, so it takes no decoder.
func plainTexts(array []byte, count int) [][]byte {
	if len(array) < 4 || array[0] != '[' || array[len(array)-1] != ']' || bytes.IndexByte(array, '\\') >= 0 || !utf8.Valid(array) {
		return nil
	}
	values := make([][]byte, 0, min(count, len(array)/3))
	alike := true
	for at := 1; ; at++ { // over what is before a text
		if len(values) == count || at >= len(array) || array[at] != '"' {
			return nil
		}
		end := bytes.IndexByte(array[at+1:], '"')
		if end < 0 {
			return nil
		}
		value := array[at+1 : at+1+end : at+1+end]
		if bytes.ContainsFunc(value, func(r rune) bool { return r < ' ' }) {
			return nil
		}
		values = append(values, value)
		alike = alike && bytes.Equal(value, values[0])
		if at += end + 2; at == len(array)-1 {
			break
		}
		if array[at] != ',' {
			return nil
		}
	}
	if len(values) > 1 && (alike || len(values) != count) {
		return nil
	}
	return values
}

// appendTexts appends a JSON array of count texts, of one if all are the same.
func appendTexts(b []byte, count int, text func(i int) string) []byte {
	same := true
	for i := 1; i < count && same; i++ {
		same = text(i) == text(0)
	}
	if same {
		count = 1
	}
	b = append(b, '[')
	for i := range count {
		if i > 0 {
			b = append(b, ',')
		}
		b = ijson.AppendQuoted(b, text(i))
	}
	return append(b, ']')
}

// digest computes the digest of a packed record.
func (u *unpacker) digest(r *Record) tlog.Hash {
	c := chainhash.Content[[]byte]{Peer: r.Peer, Capability: r.Capability, Side: r.Side, Correlation: r.Correlation, Session: r.Session, Body: r.Body}
	return chainhash.Digest(&u.scratch, r.Salt, &c)
}
