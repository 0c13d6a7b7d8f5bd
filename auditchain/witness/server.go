package witness

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/agentd/agentd/auditchain/checkpoint"
)

// A Server answers as a witness. It is safe for concurrent use.
type Server struct {
	keeper   *checkpoint.Keeper
	registry *Registry
}

// NewServer makes a witness of a keeper, which must trust what
// [Registry.Keys] gives.
func NewServer(keeper *checkpoint.Keeper, registry *Registry) *Server {
	return &Server{keeper: keeper, registry: registry}
}

// Latest is the newest checkpoint that the witness holds of a log, or nil.
func (s *Server) Latest(ctx context.Context, origin string) ([]byte, error) {
	return s.keeper.Latest(ctx, origin)
}

// Answer answers one question. Whoever asks must be known to be owner. An error
// travels in the answer; err is the same, for the witness's own log.
func (s *Server) Answer(ctx context.Context, owner string, text []byte) (out []byte, err error) {
	a := answer{Outcome: outcomeOK}
	note, err := s.handle(ctx, owner, text)
	if a.Outcome = outcomeOf(err); err == nil {
		a.Checkpoint = string(note)
	} else if a.Message = err.Error(); a.Outcome == outcomeFailed {
		a.Message = "the witness could not keep or read the checkpoint" // how, is not for its clients
	}
	out, merr := json.Marshal(a)
	if merr != nil {
		return nil, fmt.Errorf("witness: %w", merr)
	}
	return out, err
}

func (s *Server) handle(ctx context.Context, owner string, text []byte) ([]byte, error) {
	var q question
	if err := decode(text, &q); err != nil {
		return nil, err
	}
	if err := q.check(); err != nil {
		return nil, err
	}
	if q.Op == opLatest {
		return s.keeper.Latest(ctx, q.Origin)
	}
	rotations := make([][]byte, len(q.Rotations))
	for i, r := range q.Rotations {
		rotations[i] = r
	}
	if err := s.registry.Admit(owner, []byte(q.Checkpoint), q.Keys, rotations); err != nil {
		return nil, err
	}
	return s.keeper.Cosign(ctx, []byte(q.Checkpoint), q.Old, q.Proof)
}
