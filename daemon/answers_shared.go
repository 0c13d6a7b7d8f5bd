package daemon

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentd/agentd/daemon/health"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/transport/nats/natsauth"
	"github.com/agentd/agentd/transport/nats/once"
	"github.com/agentd/agentd/transport/nats/quota"
)

// SharedBuckets are the buckets that the replicas of a member share on a broker where an
// operator makes them, as far as its queue says.
func SharedBuckets(f *fleet.Fleet, m *fleet.Member, q *natsauth.Queue) (all []jetstream.KeyValueConfig) {
	name, i := f.BrokerName(m.Address), m.Agent.Idempotency
	if q.Limits {
		all = append(all, quota.BucketConfig(natsauth.LimitsBucket(name), 0))
	}
	if q.Idempotency {
		all = append(all, once.AnswersConfig(natsauth.AnswersBucket(name), m.Agent.Limits.IdempotencyTTL, i.Replicas),
			once.MessagesConfig(natsauth.MessagesBucket(name), i.Replicas))
	}
	return all
}

// sharedAnswers is a store that the replicas of an agent share.
type sharedAnswers struct {
	*once.Answers
	*once.Messages
}

// openSharedAnswers makes the store that agent.yaml asks for, or none: the agent has one
// of its own then. So has one that this process reaches by memory only, since it has no
// other replicas.
func (d *Daemon) openSharedAnswers() (*sharedAnswers, error) {
	m := d.Member()
	conn := d.jetStreamConn()
	if !m.Agent.Idempotency.Shared {
		return nil, nil
	}
	if conn == nil {
		d.log.Info("the agent is not on NATS in this process: it remembers requests by itself", "setting", "idempotency")
		return nil, nil
	}
	js, err := conn.JetStream()
	if err != nil {
		return nil, err
	}
	name := d.brokerName(m.Address)
	o := once.Options{
		JetStream: js, Bucket: natsauth.AnswersBucket(name), Provisioned: conn.Provisioned(), Replicas: m.Agent.Idempotency.Replicas,
		TTL: m.Agent.Limits.IdempotencyTTL, Lease: m.Agent.Idempotency.Lease, MaxBytes: conn.MaxMessageBytes(), Logger: d.log,
	}
	o.Secrets = d.answerSecrets
	messages := o
	messages.Bucket = natsauth.MessagesBucket(name)
	return &sharedAnswers{once.NewAnswers(o), once.NewMessages(messages)}, nil
}

// answerSecrets seal what the agent's replicas share, the first of them what they store
// now. An agent without a key proves nothing to anybody, and seals nothing.
func (d *Daemon) answerSecrets() [][]byte {
	return d.ownSecrets("agentd: answers that replicas share")
}

// ownSecrets are secrets for one purpose, that of the key which signs now first: they are
// made of the agent's own keys, which its replicas have, too.
func (d *Daemon) ownSecrets(purpose string) (all [][]byte) {
	now := time.Now()
	for _, own := range d.keyring.current.Load().own {
		secret, err := hkdf.Key(sha256.New, []byte(own.Seed), nil, purpose, sha256.Size)
		if err != nil {
			continue // only a length that SHA-256 cannot give
		}
		// The last valid key is that which signs. Before its time not all replicas have it.
		if own.Window.Reason(now) == 0 {
			all = append([][]byte{secret}, all...)
		} else {
			all = append(all, secret)
		}
	}
	return all
}

// sharedReplays is what the inbox asks about proven messages; nil where it remembers by
// itself.
func (d *Daemon) sharedReplays() callee.ReplayMemory {
	if d.answers == nil {
		return nil
	}
	if _, ok := d.answers.store.(*sharedAnswers); !ok {
		return nil
	}
	return d.answers
}

func (s *sharedAnswers) check(ctx context.Context, failing bool) error {
	if !failing { // the next request finds out
		return nil
	}
	if err := s.Answers.Check(ctx); err != nil {
		return err
	}
	return s.Messages.Check(ctx)
}

func (s *sharedAnswers) explain(err error) (*rpc.RecordError, bool) {
	e := new(once.Error)
	if !errors.As(err, &e) || e.Cause == "" {
		return nil, false
	}
	text := map[string]string{
		once.CauseAway:     "the store that its replicas share cannot be reached",
		once.CauseMissing:  "the store that its replicas share is not there",
		once.CauseFull:     "the store that its replicas share is full",
		once.CauseSettings: "the store that its replicas share forgets too early",
		once.CauseOther:    "the store that its replicas share cannot be used",
	}[e.Cause]
	return &rpc.RecordError{Cause: e.Cause, Text: text, Passes: true, Err: err}, true
}

func (s *sharedAnswers) describe(err error) health.Condition {
	c := health.Condition{
		Kind: health.Idempotency, Code: once.CauseOther, Cause: err.Error(),
		Effect: "requests with an idempotency key and proven requests are refused: whether another replica has served them is not known",
		Remedy: "check the JetStream of the NATS server and its log",
	}
	e := new(once.Error)
	if !errors.As(err, &e) || e.Cause == "" {
		return c
	}
	c.Code = e.Cause
	switch e.Cause {
	case once.CauseMissing:
		c.Remedy = fmt.Sprintf("enable JetStream on the NATS server; where an operator makes the buckets, `agentd fleet provision` makes %s", e.Bucket)
	case once.CauseSettings:
		c.Remedy = "let an operator mend the bucket (agentd fleet provision)"
	case once.CauseFull:
		c.Remedy = "give JetStream more room, or keep answers for a shorter time (limits.idempotencyTtlMs)"
	}
	return c
}
