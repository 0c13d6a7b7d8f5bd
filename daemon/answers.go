package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"time"

	"github.com/agentd/agentd/daemon/health"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/idempotency"
)

// answersInterval is how often the store of answers is checked.
const answersInterval = 5 * time.Second

// An answerStore is the store of answers to keyed requests, and where replicas share one
// also the memory of proven messages, watched: while it takes none, requests that need it
// fail at once, and a condition says why.
type answerStore struct {
	store  keptAnswers
	health *health.Monitor
}

// keptAnswers is what an agent has of a store: a file of its own, or buckets that its
// replicas share.
type keptAnswers interface {
	callee.IdempotencyStore
	callee.ReplayMemory
	// check is that of a [health.Watched].
	check(ctx context.Context, failing bool) error
	// explain translates an error of the store that the next request would meet as well
	// into one for the call that met it; ok is false for another error.
	explain(err error) (why *rpc.RecordError, ok bool)
	// describe is the condition of a store with such an error.
	describe(err error) health.Condition
	Close() error
}

var (
	_ callee.IdempotencyStore = (*answerStore)(nil)
	_ callee.ReplayMemory     = (*answerStore)(nil)
)

// openAnswers opens the store of answers to keyed requests.
func (d *Daemon) openAnswers(ctx context.Context) error {
	member := d.Member()
	shared, err := d.openSharedAnswers()
	if err != nil {
		return err
	}
	if shared != nil {
		d.answers = d.watchAnswers(shared)
		// A bucket that is missing is known before the first request, and heals.
		if err := shared.check(ctx, true); err != nil {
			d.answers.health.Fail(err)
		}
		return nil
	}
	path := d.cfg.Paths.Idempotency(member.ID)
	store, err := idempotency.Open(ctx, path, idempotency.Options{TTL: member.Agent.Limits.IdempotencyTTL})
	if err != nil {
		return err
	}
	d.answers = d.watchAnswers(&answerFile{Store: store, path: path})
	return nil
}

func (d *Daemon) watchAnswers(store keptAnswers) *answerStore {
	return &answerStore{store: store, health: health.Watch(d.conditions, health.Watched{
		Interval: answersInterval, Describe: store.describe, Check: store.check, Ended: func() {},
	})}
}

// Begin implements [callee.IdempotencyStore].
func (s *answerStore) Begin(ctx context.Context, r callee.KeyedRequest, digest [sha256.Size]byte, repeatable bool) (callee.Prior, error) {
	if err := s.failing(); err != nil {
		return callee.Prior{}, err
	}
	prior, err := s.store.Begin(ctx, r, digest, repeatable)
	return prior, s.judge(err)
}

// Finish implements [callee.IdempotencyStore].
func (s *answerStore) Finish(ctx context.Context, r callee.KeyedRequest, reply json.RawMessage) error {
	return s.judge(s.store.Finish(ctx, r, reply))
}

// Forget implements [callee.IdempotencyStore].
func (s *answerStore) Forget(ctx context.Context, r callee.KeyedRequest) error {
	return s.judge(s.store.Forget(ctx, r))
}

// Leave implements [callee.IdempotencyStore].
func (s *answerStore) Leave(ctx context.Context, r callee.KeyedRequest) error {
	return s.judge(s.store.Leave(ctx, r))
}

// Take implements [callee.ReplayMemory].
func (s *answerStore) Take(ctx context.Context, from envelope.Address, messageID string, until time.Time) (first bool, err error) {
	if err := s.failing(); err != nil {
		return false, err
	}
	first, err = s.store.Take(ctx, from, messageID, until)
	return first, s.judge(err)
}

// close closes the store.
func (s *answerStore) close() error {
	s.health.Close()
	return s.store.Close()
}

// failing returns the failure that holds, or nil.
func (s *answerStore) failing() error {
	err := s.health.Err()
	if why, ok := s.store.explain(err); ok {
		return why
	}
	return err
}

// judge reports an error that the next request would meet as well.
func (s *answerStore) judge(err error) error {
	why, ok := s.store.explain(err)
	if !ok {
		return err
	}
	s.health.Fail(err)
	return why
}

// An answerFile is the store of one process.
type answerFile struct {
	*idempotency.Store
	path string
}

// Take implements [callee.ReplayMemory]: the inbox of the process remembers by itself.
func (f *answerFile) Take(context.Context, envelope.Address, string, time.Time) (first bool, err error) {
	return true, nil
}

func (f *answerFile) check(ctx context.Context, failing bool) error {
	if !failing {
		return f.CheckFile()
	}
	if err := checkRoom(f.path); err != nil {
		return &idempotency.Error{Path: f.path, Cause: idempotency.CauseFull, Doing: "trying to write", Err: err}
	}
	return f.CheckWrite(ctx)
}

func (f *answerFile) explain(err error) (*rpc.RecordError, bool) {
	e := new(idempotency.Error)
	if !errors.As(err, &e) || e.Cause == "" {
		return nil, false
	}
	text := map[string]string{
		idempotency.CauseFull:     "the disk with its store of answers is full",
		idempotency.CauseReadOnly: "its store of answers cannot be written",
		idempotency.CauseBusy:     "another program holds its store of answers",
		idempotency.CauseGone:     "its store of answers was moved away",
		idempotency.CauseIO:       "its store of answers cannot be used",
	}[e.Cause]
	return &rpc.RecordError{Cause: e.Cause, Text: text, Passes: true, Err: err}, true
}

func (f *answerFile) describe(err error) health.Condition {
	c := health.Condition{
		Kind: health.Idempotency, Code: idempotency.CauseIO, Cause: err.Error(),
		Effect: "requests with an idempotency key are refused: what became of them could not be remembered",
		Remedy: "check the disk and the system log; a damaged file may be moved away before a restart, which forgets its answers",
	}
	e := new(idempotency.Error)
	if !errors.As(err, &e) || e.Cause == "" {
		return c
	}
	c.Code = e.Cause
	switch e.Cause {
	case idempotency.CauseFull:
		c.Remedy = "free some disk space"
	case idempotency.CauseReadOnly:
		c.Remedy = "let this user write to the file and its folder"
	case idempotency.CauseBusy:
		c.Remedy = "end the other program's transaction"
	case idempotency.CauseGone:
		c.Remedy = "put the file back, or start the agent again, which forgets the answers"
	}
	return c
}
