package witness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/proof"
)

// A RoundTrip carries a request to a witness and returns its response.
type RoundTrip func(ctx context.Context, request []byte) (response []byte, err error)

// A Log is the log that a [Remote] shows; an auditchain.Reader is one.
type Log interface {
	// PublicKeys returns its verifier keys, oldest first.
	PublicKeys() ([]string, error)
	// Rotations proves that each of them introduced the next.
	Rotations(ctx context.Context) ([]*proof.Proof, error)
}

// A Remote is a witness in another process. It is safe for concurrent use.
type Remote struct {
	name string
	call RoundTrip
	log  Log
}

var _ checkpoint.Witness = (*Remote)(nil)

// NewRemote returns a witness that is reached through call. The log is the one
// whose checkpoints it co-signs, or nil if only [Remote.Latest] is needed.
func NewRemote(name string, call RoundTrip, log Log) *Remote {
	return &Remote{name: name, call: call, log: log}
}

// Name implements [checkpoint.Witness]: it returns the name given to NewRemote.
func (r *Remote) Name() string { return r.name }

// Latest implements [checkpoint.Witness].
func (r *Remote) Latest(ctx context.Context, origin string) ([]byte, error) {
	return r.exchange(ctx, request{Op: opLatest, Origin: origin})
}

// Cosign implements [checkpoint.Witness]. If the witness does not trust the key
// yet, Cosign proves that older ones introduced it, and tries again.
func (r *Remote) Cosign(ctx context.Context, signed []byte, old int64, growth tlog.TreeProof) ([]byte, error) {
	if r.log == nil {
		return nil, errors.New("witness: this one is for reading only")
	}
	keys, err := r.log.PublicKeys()
	if err != nil {
		return nil, err
	}
	q := request{Op: opCosign, Checkpoint: string(signed), Old: old, Proof: growth, Keys: keys}
	cosigned, err := r.exchange(ctx, q)
	if !errors.Is(err, checkpoint.ErrUntrusted) || len(keys) < 2 {
		return cosigned, err
	}
	rotations, rerr := r.log.Rotations(ctx)
	if rerr != nil {
		return nil, errors.Join(err, rerr)
	}
	for _, p := range rotations {
		text, err := json.Marshal(p)
		if err != nil {
			return nil, fmt.Errorf("witness: %w", err)
		}
		q.Rotations = append(q.Rotations, text)
	}
	return r.exchange(ctx, q)
}

func (r *Remote) exchange(ctx context.Context, q request) ([]byte, error) {
	text, err := json.Marshal(q)
	if err != nil {
		return nil, fmt.Errorf("witness: %w", err)
	}
	reply, err := r.call(ctx, text)
	if err != nil {
		return nil, err
	}
	var a response
	if err := decode(reply, &a); err != nil {
		return nil, err
	}
	if err := a.err(); err != nil || a.Checkpoint == "" {
		return nil, err
	}
	return []byte(a.Checkpoint), nil
}
