package proof

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/internal/chainhash"
	"github.com/agentd/agentd/internal/jcs"
	"golang.org/x/mod/sumdb/tlog"
)

const (
	// Format is the version mark of a proof file.
	Format = "agentd-audit-proof-v1"
	// MaxBytes bounds a proof file: a record's largest body, and room for the
	// rest.
	MaxBytes = 4 << 20
	// maxPath is the longest audit path in a tree of less than 2^63 leaves.
	maxPath = 63
)

var (
	// ErrMalformed is a file that is not a proof.
	ErrMalformed = errors.New("proof: malformed")
	// ErrFalse is a proof whose parts contradict each other.
	ErrFalse = errors.New("proof: false")
)

// A Proof is the content of a proof file.
type Proof struct {
	// Format is the constant [Format].
	Format string `json:"format"`
	// Record is the proven record.
	Record Record `json:"record"`
	// Previous is the hash of the record before.
	Previous tlog.Hash `json:"previous"`
	// Path is the audit path from the record up to the root (RFC 6962 section
	// 2.1.1).
	Path []tlog.Hash `json:"path"`
	// Checkpoint is the signed note with the root.
	Checkpoint string `json:"checkpoint"`
}

// A Record is the record in a proof.
type Record struct {
	// Seq is its number, from 1.
	Seq int64 `json:"seq"`
	// TS is its time in Unix milliseconds.
	TS int64 `json:"ts"`
	// Tenant and Kind are as in the log.
	Tenant string `json:"tenant"`
	Kind   string `json:"kind"`
	// Digest commits to the content.
	Digest tlog.Hash `json:"digest"`
	// Content is nil if the proof does not show it.
	Content *Content `json:"content,omitempty"`
}

// Content is the erasable part of a record.
type Content struct {
	// Salt is the salt of the digest.
	Salt []byte `json:"salt"`
	// Peer, Capability, Side, Correlation and Session are the searchable
	// columns; absent ones are empty.
	Peer        string `json:"peer,omitempty"`
	Capability  string `json:"capability,omitempty"`
	Side        string `json:"side,omitempty"`
	Correlation string `json:"correlation,omitempty"`
	Session     string `json:"session,omitempty"`
	// Body is the record's body.
	Body json.RawMessage `json:"body"`
}

// A Result is what a valid proof shows.
type Result struct {
	// Origin is the log, Size the number of records under the checkpoint.
	Origin string
	Size   int64
	// Key is the verifier key of the checkpoint's signature.
	Key string
	// Time is the time of the record.
	Time time.Time
	// Hash is the record's hash.
	Hash tlog.Hash
	// ContentShown is true if the content is part of what is proven.
	ContentShown bool
}

// Parse parses a proof file strictly: it accepts neither unknown nor duplicate
// members, nor text after the object. It does not check the proof. The error is
// [ErrMalformed].
func Parse(text []byte) (*Proof, error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrMalformed, MaxBytes)
	}
	if _, err := jcs.Append(nil, text); err != nil { // rejects duplicate members
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var p Proof
	if err := decoder.Decode(&p); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: more text after the proof", ErrMalformed)
	}
	switch {
	case p.Format != Format:
		return nil, fmt.Errorf("%w: the format is not %s", ErrMalformed, Format)
	case p.Record.Seq < 1:
		return nil, fmt.Errorf("%w: record numbers begin at 1", ErrMalformed)
	case len(p.Path) > maxPath:
		return nil, fmt.Errorf("%w: the path has more than %d hashes", ErrMalformed, maxPath)
	case p.Record.Content != nil && (len(p.Record.Content.Body) == 0 || p.Record.Content.Body[0] != '{'):
		return nil, fmt.Errorf("%w: the body is not an object", ErrMalformed)
	}
	return &p, nil
}

// Verify checks the proof against the verifier keys that the caller trusts.
// The error is [ErrFalse], or one of package checkpoint's.
func (p *Proof) Verify(keys *checkpoint.Keys) (*Result, error) {
	signed, err := checkpoint.Open([]byte(p.Checkpoint), keys)
	if err != nil {
		return nil, err
	}
	r := &p.Record
	if err := r.checkContent(); err != nil {
		return nil, err
	}
	var scratch []byte
	hash := chainhash.Record(&scratch, p.Previous, &chainhash.Header[string]{
		Seq: r.Seq, Time: r.TS, Tenant: r.Tenant, Kind: r.Kind, Digest: r.Digest,
	})
	if r.Seq < 1 || r.Seq > signed.Size {
		return nil, fmt.Errorf("%w: record %d is not among the %d under the checkpoint", ErrFalse, r.Seq, signed.Size)
	}
	if err := tlog.CheckRecord(p.Path, signed.Size, signed.Root, r.Seq-1, hash); err != nil {
		return nil, fmt.Errorf("%w: the record does not lead to the signed root", ErrFalse)
	}
	return &Result{
		Origin: signed.Origin, Size: signed.Size, Key: signed.Key,
		Time: time.UnixMilli(r.TS).UTC(), Hash: hash, ContentShown: r.Content != nil,
	}, nil
}

func (r *Record) checkContent() error {
	if r.Content == nil {
		return nil
	}
	c := r.Content
	body, err := jcs.Append(nil, c.Body)
	if err != nil {
		return fmt.Errorf("%w: the body: %w", ErrMalformed, err)
	}
	var scratch []byte
	digest := chainhash.Digest(&scratch, c.Salt, &chainhash.Content[string]{
		Peer: c.Peer, Capability: c.Capability, Side: c.Side, Correlation: c.Correlation, Session: c.Session, Body: string(body),
	})
	if digest != r.Digest {
		return fmt.Errorf("%w: the content does not give the digest", ErrFalse)
	}
	return nil
}
