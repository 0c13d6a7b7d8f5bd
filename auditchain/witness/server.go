package witness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/agentd/agentd/auditchain/checkpoint"
)

// ErrNotIntroduced is the error of [Server.Answer] for a checkpoint under a key that is not
// known yet, of a log that has had several, without a proof of who introduced it. That is
// the first question after each change of keys: [Remote.Cosign] sends the proofs then.
var ErrNotIntroduced = errors.New("witness: the key was not introduced")

// A Server serves the calls of a [Remote]. It is safe for concurrent use.
type Server struct {
	keeper   *checkpoint.Keeper
	registry *Registry

	mu       sync.Mutex
	memories map[string]Memory // the stored ones, by owner; guarded by mu
}

// NewServer returns a server that co-signs through a keeper, which must trust the
// keys that [Registry.Keys] returns.
func NewServer(keeper *checkpoint.Keeper, registry *Registry) *Server {
	return &Server{keeper: keeper, registry: registry, memories: map[string]Memory{}}
}

// Latest returns the newest checkpoint that the witness holds of a log, or nil.
func (s *Server) Latest(ctx context.Context, origin string) ([]byte, error) {
	return s.keeper.Latest(ctx, origin)
}

// Answer returns the response to one request of owner, whom the caller has
// authenticated. An error travels in the response; err is the same error, for the
// witness's own log.
func (s *Server) Answer(ctx context.Context, owner string, text []byte) (out []byte, err error) {
	a := response{Outcome: outcomeOK}
	note, err := s.handle(ctx, owner, text)
	if a.Outcome = outcomeOf(err); err == nil {
		a.Checkpoint = string(note)
	} else if a.Message = err.Error(); a.Outcome == outcomeFailed {
		a.Message = "the witness could not keep or read the checkpoint" // the cause is internal
	}
	out, merr := json.Marshal(a)
	if merr != nil {
		return nil, fmt.Errorf("witness: %w", merr)
	}
	return out, err
}

func (s *Server) handle(ctx context.Context, owner string, text []byte) ([]byte, error) {
	var q request
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
	if err := s.registry.Accept(owner, []byte(q.Checkpoint), q.Keys, rotations); err != nil {
		if errors.Is(err, checkpoint.ErrUntrusted) && len(q.Keys) > 1 && len(q.Rotations) == 0 {
			err = fmt.Errorf("%w: %w", ErrNotIntroduced, err)
		}
		return nil, err
	}
	return s.keeper.Cosign(ctx, []byte(q.Checkpoint), q.Old, q.Proof)
}
