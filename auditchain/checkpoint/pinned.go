package checkpoint

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// ErrUncosigned is a checkpoint that lacks the signature of the witness that is said to
// have seen it. It says nothing about what the witness has seen.
var ErrUncosigned = errors.New("checkpoint: not signed by the witness")

// NewWitnessKeys returns a set of the keys of one witness or of several. Each is a
// verifier key of either type: as [Key.CosignatureVerifier] returns it, or as
// [Key.Verifier] does, which is a line of the .pub file of the witness's own log. The
// error is [ErrUntrusted], for a text that is not a key.
func NewWitnessKeys(keys ...string) (*Keys, error) {
	set, err := NewKeys(keys...)
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		if err := set.Add(cosignatureOf(key)); err != nil {
			return nil, err
		}
	}
	return set, nil
}

// CheckCosigned checks that one of a witness's keys has signed a checkpoint, whoever
// else has. The error is [ErrUncosigned].
func CheckCosigned(signed []byte, witness *Keys) error {
	if len(signed) > MaxBytes {
		return fmt.Errorf("%w: more than %d bytes", ErrUncosigned, MaxBytes)
	}
	// Open accepts nothing but a note with at least one good signature of these keys.
	if _, err := note.Open(signed, witness); err != nil {
		return fmt.Errorf("%w (%w)", ErrUncosigned, openError(err))
	}
	return nil
}

// A Pinned is a [Witness] whose keys are known: what it returns counts only with a
// signature by one of them, whoever carries the answer.
type Pinned struct {
	Witness
	keys *Keys
}

// NewPinned pins the keys of a witness, at least one; see [NewWitnessKeys].
func NewPinned(w Witness, keys ...string) (*Pinned, error) {
	set, err := NewWitnessKeys(keys...)
	if err == nil && len(keys) == 0 {
		err = fmt.Errorf("%w: no key", ErrUntrusted)
	}
	if err != nil {
		return nil, err
	}
	return &Pinned{w, set}, nil
}

// Latest implements [Witness]. The error is [ErrUncosigned] for an answer that the
// witness has not signed.
func (p *Pinned) Latest(ctx context.Context, origin string) ([]byte, error) {
	signed, err := p.Witness.Latest(ctx, origin)
	if err != nil || signed == nil {
		return signed, err
	}
	return p.checked(signed)
}

// Cosign implements [Witness]. The error is [ErrUncosigned] for an answer that the
// witness has not signed.
func (p *Pinned) Cosign(ctx context.Context, signed []byte, old int64, proof tlog.TreeProof) ([]byte, error) {
	cosigned, err := p.Witness.Cosign(ctx, signed, old, proof)
	if err != nil {
		return nil, err
	}
	return p.checked(cosigned)
}

func (p *Pinned) checked(signed []byte) ([]byte, error) {
	if err := CheckCosigned(signed, p.keys); err != nil {
		return nil, fmt.Errorf("the answer of %s: %w", p.Name(), err)
	}
	return signed, nil
}
