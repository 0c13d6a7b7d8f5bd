package witness

import (
	"context"
	"fmt"
	"slices"

	"github.com/agentd/agentd/auditchain/checkpoint"
)

// A Memory is what a witness has seen of one agent's log, to be kept in another place than
// its folder: the witness's own audit log. Whoever can write to the folder can set it back
// to an earlier state, which the witness has signed as well, or take a file away. Against
// a memory that shows, and does nothing.
type Memory struct {
	// Owner is the agent, Origin its log, and Keys are the log's verifier keys.
	Owner  string   `json:"peerId"`
	Origin string   `json:"origin"`
	Keys   []string `json:"keys"`
	// Checkpoint is the newest one that the witness has signed.
	Checkpoint string `json:"checkpoint"`
}

// Recall makes the server go on from a memory wherever its folder says less or something
// else, and reports whether it did.
func (s *Server) Recall(ctx context.Context, m Memory) (edited bool, err error) {
	if len(m.Keys) == 0 || len(m.Keys) > maxKeys {
		return false, fmt.Errorf("%w: a memory with %d keys", ErrMalformed, len(m.Keys))
	}
	if c, err := checkpoint.Parse(m.Checkpoint); err != nil || c.Origin != m.Origin {
		return false, fmt.Errorf("%w: a memory of %s with a checkpoint of %q", ErrMalformed, m.Origin, c.Origin)
	}
	setBack, err := s.keeper.Recall(ctx, []byte(m.Checkpoint))
	if err != nil {
		return false, err
	}
	edited, err = s.registry.Restore(m.Owner, m.Origin, m.Keys)
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.memories[m.Owner] = m
	return edited || setBack, nil
}

// Unremembered returns what the witness has seen of an agent's log since the memory that
// [Server.Recall] or [Server.Remembered] was last given, if that is worth another one: the
// log is new or has other keys, or it has grown by so many records.
func (s *Server) Unremembered(ctx context.Context, owner string, grown int64) (Memory, bool, error) {
	known, ok := s.registry.of(owner)
	if !ok {
		return Memory{}, false, nil
	}
	signed, err := s.keeper.Latest(ctx, known.Origin)
	if err != nil || signed == nil {
		return Memory{}, false, err
	}
	now, err := checkpoint.Parse(string(signed))
	if err != nil {
		return Memory{}, false, err
	}
	s.mu.Lock()
	last, remembered := s.memories[owner]
	s.mu.Unlock()
	if remembered && last.Origin == known.Origin && slices.Equal(last.Keys, known.Keys) {
		before, err := checkpoint.Parse(last.Checkpoint)
		if err != nil || now.Size < before.Size+grown {
			return Memory{}, false, err
		}
	}
	return Memory{Owner: owner, Origin: known.Origin, Keys: known.Keys, Checkpoint: string(signed)}, true, nil
}

// Remembered takes note of a memory that has been stored.
func (s *Server) Remembered(m Memory) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.memories[m.Owner] = m
}
