package witness

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/proof"
	"github.com/agentd/agentd/internal/ijson"
)

const (
	// MaxRequestBytes bounds a request: a checkpoint, a proof, and the rotations
	// of the signing key.
	MaxRequestBytes = 1 << 20
	// maxDepth bounds the nesting of JSON in a request or a response.
	maxDepth = 32
	// maxKeys bounds the public keys of one log.
	maxKeys = 256
	// maxProof is the longest consistency proof: two hashes for each level of a
	// tree of less than 2^63 leaves.
	maxProof = 128
)

// ErrMalformed is a message that cannot be parsed.
var ErrMalformed = errors.New("witness: malformed message")

// A request is what a [Remote] sends.
type request struct {
	// Op is latest or cosign.
	Op op `json:"op"`
	// Origin is the log whose checkpoint latest requests.
	Origin string `json:"origin,omitempty"`

	// For cosign: the signed checkpoint, the size that the proof starts from, the
	// proof, the public keys of the log, oldest first, and the proofs that each
	// introduced the next.
	Checkpoint string            `json:"checkpoint,omitempty"`
	Old        int64             `json:"old,omitempty"`
	Proof      tlog.TreeProof    `json:"proof,omitempty"`
	Keys       []string          `json:"keys,omitempty"`
	Rotations  []json.RawMessage `json:"rotations,omitempty"`
}

type op string

const (
	opLatest op = "latest"
	opCosign op = "cosign"
)

// A response is what a [Server] returns.
type response struct {
	Outcome outcome `json:"outcome"`
	// Checkpoint is the requested or co-signed note, "" if there is none.
	Checkpoint string `json:"checkpoint,omitempty"`
	// Message is the error, if there is one.
	Message string `json:"message,omitempty"`
}

type outcome string

const (
	outcomeOK           outcome = "ok"
	outcomeInconsistent outcome = "inconsistent"
	outcomeStale        outcome = "stale"
	outcomeUntrusted    outcome = "untrusted"
	outcomeMalformed    outcome = "malformed"
	outcomeFailed       outcome = "failed"
)

// outcomeOf returns the outcome that stands for an error. Errors other than those
// of packages checkpoint and proof are internal to the witness.
func outcomeOf(err error) outcome {
	switch {
	case err == nil:
		return outcomeOK
	case errors.Is(err, checkpoint.ErrInconsistent):
		return outcomeInconsistent
	case errors.Is(err, checkpoint.ErrStale):
		return outcomeStale
	case errors.Is(err, checkpoint.ErrUntrusted), errors.Is(err, checkpoint.ErrSignature), errors.Is(err, proof.ErrFalse):
		return outcomeUntrusted
	case errors.Is(err, checkpoint.ErrMalformed), errors.Is(err, ErrMalformed), errors.Is(err, proof.ErrMalformed):
		return outcomeMalformed
	}
	return outcomeFailed
}

// err returns the error that the outcome stands for.
func (a *response) err() error {
	var class error
	switch a.Outcome {
	case outcomeOK:
		return nil
	case outcomeInconsistent:
		class = checkpoint.ErrInconsistent
	case outcomeStale:
		class = checkpoint.ErrStale
	case outcomeUntrusted:
		class = checkpoint.ErrUntrusted
	case outcomeMalformed, outcomeFailed:
		class = ErrRefused
	default:
		return fmt.Errorf("%w: an outcome %q", ErrMalformed, a.Outcome)
	}
	return fmt.Errorf("%w (%s)", class, a.Message)
}

// ErrRefused is a witness that did not understand a request, or failed to serve
// it.
var ErrRefused = errors.New("witness: refused")

// decode parses one message strictly: unknown and duplicate members are errors,
// so that two implementations cannot read one message differently.
func decode(text []byte, into any) error {
	if len(text) > MaxRequestBytes {
		return fmt.Errorf("%w: more than %d bytes", ErrMalformed, MaxRequestBytes)
	}
	if err := ijson.Check(text, maxDepth); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: more text after the object", ErrMalformed)
	}
	return nil
}

// check bounds the work that a request causes.
func (q *request) check() error {
	switch {
	case q.Op != opLatest && q.Op != opCosign:
		return fmt.Errorf("%w: op is latest or cosign, not %q", ErrMalformed, q.Op)
	case len(q.Keys) > maxKeys || len(q.Rotations) > maxKeys:
		return fmt.Errorf("%w: more than %d keys", ErrMalformed, maxKeys)
	case len(q.Proof) > maxProof:
		return fmt.Errorf("%w: a proof of more than %d hashes", ErrMalformed, maxProof)
	case q.Old < 0:
		return fmt.Errorf("%w: a negative size", ErrMalformed)
	}
	return nil
}
