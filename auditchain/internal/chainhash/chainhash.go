package chainhash

import (
	"crypto/sha256"
	"encoding/binary"

	"golang.org/x/mod/sumdb/tlog"
)

const (
	genesisDomain = "agentd audit genesis v1\n"
	contentDomain = "agentd audit content v1\n"
	recordDomain  = "agentd audit record v1\n"
)

// SaltSize is the length of a record's salt in bytes. It makes the content digest
// hiding: the digest alone does not suffice to test guesses of the content.
const SaltSize = 16

// Text is the type in which a caller holds text: the writer has strings, the
// verifier bytes that it reuses from row to row.
type Text interface{ ~string | ~[]byte }

// Content is the part of a record that can be erased: its body and the columns
// copied from it. An empty text is an absent column.
type Content[T Text] struct {
	Peer, Capability, Side, Correlation, Session T
	// Body is canonical JSON.
	Body T
}

// Header is the part of a record that is never erased.
type Header[T Text] struct {
	// Seq is the position in the chain, from 1.
	Seq int64
	// Time is in Unix milliseconds.
	Time   int64
	Tenant T
	Kind   T
	// Digest commits to the content.
	Digest tlog.Hash
}

// Genesis returns the hash that the first record of a log chains to. It binds the
// chain to the log's first verifier key, and with that to the log's name.
func Genesis(verifierKey string) tlog.Hash {
	return sha256.Sum256([]byte(genesisDomain + verifierKey))
}

// Digest returns the commitment to the content under a salt. scratch is a buffer
// to reuse, so that a verifier allocates nothing per record.
func Digest[T Text](scratch *[]byte, salt []byte, c *Content[T]) tlog.Hash {
	b := append((*scratch)[:0], contentDomain...)
	b = appendField(b, salt)
	for _, column := range [...]T{c.Peer, c.Capability, c.Side, c.Correlation, c.Session} {
		b = appendOptional(b, column)
	}
	b = appendField(b, c.Body)
	*scratch = b
	return sha256.Sum256(b)
}

// Record returns a record's hash. It is also its leaf hash in the Merkle tree (RFC
// 6962 section 2.1: SHA-256 over 0x00 and the leaf data), so that a link of the
// chain and a leaf of the tree are one value.
func Record[T Text](scratch *[]byte, previous tlog.Hash, h *Header[T]) tlog.Hash {
	b := append((*scratch)[:0], 0x00)
	b = append(b, recordDomain...)
	b = binary.BigEndian.AppendUint64(b, uint64(h.Seq))
	b = binary.BigEndian.AppendUint64(b, uint64(h.Time))
	b = appendField(b, h.Tenant)
	b = appendField(b, h.Kind)
	b = append(b, h.Digest[:]...)
	b = append(b, previous[:]...)
	*scratch = b
	return sha256.Sum256(b)
}

func appendField[T Text](b []byte, field T) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(field)))
	return append(b, field...)
}

func appendOptional[T Text](b []byte, field T) []byte {
	if len(field) == 0 {
		return append(b, 0)
	}
	return appendField(append(b, 1), field)
}
