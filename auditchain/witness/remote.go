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

// An Asker carries a question to a witness and its answer back.
type Asker func(ctx context.Context, question []byte) (answer []byte, err error)

// A Log tells of its keys; an auditchain.Reader is one.
type Log interface {
	// PublicKeys are its verifier keys, oldest first.
	PublicKeys() ([]string, error)
	// Rotations prove how they came from one another.
	Rotations(ctx context.Context) ([]*proof.Proof, error)
}

// A Remote is a witness somewhere else. It is safe for concurrent use.
type Remote struct {
	name string
	ask  Asker
	log  Log
}

var _ checkpoint.Witness = (*Remote)(nil)

// NewRemote makes a witness of what answers ask. The log is the one whose
// checkpoints are to be co-signed; nil for one that only asks for [Remote.Latest].
func NewRemote(name string, ask Asker, log Log) *Remote {
	return &Remote{name: name, ask: ask, log: log}
}

// Name implements [checkpoint.Witness]: it is what NewRemote was given.
func (r *Remote) Name() string { return r.name }

// Latest implements [checkpoint.Witness].
func (r *Remote) Latest(ctx context.Context, origin string) ([]byte, error) {
	return r.exchange(ctx, question{Op: opLatest, Origin: origin})
}

// Cosign implements [checkpoint.Witness]. To a witness that does not trust the
// key yet it shows how that came from older ones.
func (r *Remote) Cosign(ctx context.Context, signed []byte, old int64, growth tlog.TreeProof) ([]byte, error) {
	if r.log == nil {
		return nil, errors.New("witness: this one is for reading only")
	}
	keys, err := r.log.PublicKeys()
	if err != nil {
		return nil, err
	}
	q := question{Op: opCosign, Checkpoint: string(signed), Old: old, Proof: growth, Keys: keys}
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

func (r *Remote) exchange(ctx context.Context, q question) ([]byte, error) {
	text, err := json.Marshal(q)
	if err != nil {
		return nil, fmt.Errorf("witness: %w", err)
	}
	reply, err := r.ask(ctx, text)
	if err != nil {
		return nil, err
	}
	var a answer
	if err := decode(reply, &a); err != nil {
		return nil, err
	}
	if err := a.err(); err != nil || a.Checkpoint == "" {
		return nil, err
	}
	return []byte(a.Checkpoint), nil
}
