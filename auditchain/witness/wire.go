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
	// MaxRequestBytes bounds a question: a checkpoint, a proof, and the
	// rotations of the signing key.
	MaxRequestBytes = 1 << 20
	// maxDepth is how deep JSON may nest in a question or an answer.
	maxDepth = 32
	// maxKeys bounds the public keys of one log.
	maxKeys = 256
	// maxProof is the longest consistency proof: two hashes for each level of a
	// tree of less than 2^63 leaves.
	maxProof = 128
)

// ErrMalformed is a message that is not understood.
var ErrMalformed = errors.New("witness: malformed message")

// question is what a [Remote] sends.
type question struct {
	// Op is latest or cosign.
	Op op `json:"op"`
	// Origin is the log that latest asks for.
	Origin string `json:"origin,omitempty"`

	// For cosign: the signed checkpoint, the size that the proof starts from, the
	// proof, the public keys of the log, oldest first, and how each came from
	// the one before.
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

// answer is what a [Server] says.
type answer struct {
	Outcome outcome `json:"outcome"`
	// Checkpoint is the note asked for, or co-signed; "" where there is none.
	Checkpoint string `json:"checkpoint,omitempty"`
	// Message says why not.
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

// outcomeOf is how an error of package checkpoint travels. What else went wrong
// stays with the witness.
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

// err is the answer as the error that the witness had.
func (a *answer) err() error {
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

// ErrRefused is a witness that could not do what it was asked for, for reasons
// of its own.
var ErrRefused = errors.New("witness: refused")

// decode reads one message strictly.
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

// check bounds what a question makes the witness do.
func (q *question) check() error {
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
