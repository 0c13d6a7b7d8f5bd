package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"time"

	"github.com/agentd/agentd/daemon/health"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/idempotency"
)

// answersInterval is how often the store of answers is looked at.
const answersInterval = 5 * time.Second

// An answerStore is the store of answers to keyed requests, watched: while it takes
// none, requests with a key fail at once, and a condition says why.
type answerStore struct {
	store  *idempotency.Store
	health *health.Monitor
}

var _ callee.IdempotencyStore = (*answerStore)(nil)

// openAnswers opens the store of answers to keyed requests.
func (d *Daemon) openAnswers(ctx context.Context) error {
	member := d.Member()
	path := d.cfg.Paths.Idempotency(member.ID)
	store, err := idempotency.Open(ctx, path, idempotency.Options{TTL: member.Agent.Limits.IdempotencyTTL})
	if err != nil {
		return err
	}
	d.answers = &answerStore{store: store, health: health.Watch(d.conditions, health.Watched{
		Interval: answersInterval,
		Describe: describeAnswers,
		Check: func(ctx context.Context, failing bool) error {
			if !failing {
				return store.CheckFile()
			}
			if err := checkRoom(path); err != nil {
				return &idempotency.Error{Path: path, Cause: idempotency.CauseFull, Doing: "trying to write", Err: err}
			}
			return store.CheckWrite(ctx)
		},
		Ended: func() {},
	})}
	return nil
}

// Begin implements [callee.IdempotencyStore].
func (s *answerStore) Begin(ctx context.Context, r callee.KeyedRequest, digest [sha256.Size]byte) (callee.Prior, error) {
	if err := s.health.Err(); err != nil {
		return callee.Prior{}, explainAnswers(err)
	}
	prior, err := s.store.Begin(ctx, r, digest)
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

// close closes the store.
func (s *answerStore) close() error {
	s.health.Close()
	return s.store.Close()
}

// judge reports an error that the next request would meet as well.
func (s *answerStore) judge(err error) error {
	if e := new(idempotency.Error); errors.As(err, &e) && e.Cause != "" {
		s.health.Fail(err)
	}
	return explainAnswers(err)
}

// explainAnswers explains an error of the store to the call that met it.
func explainAnswers(err error) error {
	e := new(idempotency.Error)
	if !errors.As(err, &e) || e.Cause == "" {
		return err
	}
	text := map[string]string{
		idempotency.CauseFull:     "the disk with its store of answers is full",
		idempotency.CauseReadOnly: "its store of answers cannot be written",
		idempotency.CauseBusy:     "another program holds its store of answers",
		idempotency.CauseGone:     "its store of answers was moved away",
		idempotency.CauseIO:       "its store of answers cannot be used",
	}[e.Cause]
	return &rpc.RecordError{Cause: e.Cause, Text: text, Passes: true, Err: err}
}

// describeAnswers is the condition of a store that takes no answers.
func describeAnswers(err error) health.Condition {
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
