package durable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/nats"
	"github.com/agentd/agentd/transport/nats/natsauth"
)

// resultSubject is the subject under which the answer to a call is stored.
func (o *Options) resultSubject(k transport.CallKey) string {
	return natsauth.ResultsSubject(o.NameOf(k.Callee), o.NameOf(k.Caller)) + "." + k.CorrelationID
}

// answeredSubject is the subject to which the stream republishes a stored answer.
func (o *Options) answeredSubject(k transport.CallKey) string {
	return natsauth.AnsweredSubject(natsauth.ServiceName(o.NameOf(k.Callee)), o.NameOf(k.Caller)) + "." + k.CorrelationID
}

const (
	// tryTime bounds one request to JetStream: a leader that is gone does not answer.
	tryTime = 2 * time.Second
	// retryPause is the pause between two of them.
	retryPause = 100 * time.Millisecond
	// noStreamTime is how long a subject may have no stream before we ask whether there
	// is one: while a cluster elects a leader, nobody takes messages either.
	noStreamTime = time.Second
	// noServiceTime is the same where the agent may not ask.
	noServiceTime = 2 * time.Second
	// clusterTime is how long a cluster may lack a leader, or servers for the replicas
	// of a stream, when an agent starts.
	clusterTime = 30 * time.Second
	// codeNoPeers: not enough servers for the replicas of a stream.
	codeNoPeers jetstream.ErrorCode = 10005
	// codeStoreFailed: the stream, or its disk, is full.
	codeStoreFailed jetstream.ErrorCode = 10077
)

// publish stores a message. While the broker does not say whether it has, publish
// repeats it until ctx ends: the options must make a repetition harmless. The error
// may wrap [transport.ErrNoQueue] or [transport.ErrQueueFull].
func publish(ctx context.Context, conn *nats.Conn, js jetstream.JetStream, stream, subject string, data []byte, header natsgo.Header, opts ...jetstream.PublishOpt) error {
	began, patience := time.Now(), noStreamTime
	if conn.Provisioned() {
		patience = noServiceTime
	}
	for {
		trying, cancel := context.WithTimeout(ctx, tryTime)
		_, err := js.PublishMsg(trying, &natsgo.Msg{Subject: subject, Data: data, Header: header}, append(opts, jetstream.WithRetryAttempts(0))...)
		cancel()
		switch {
		case err == nil:
			return nil
		case errors.Is(err, jetstream.ErrNoStreamResponse), errors.Is(err, natsgo.ErrNoResponders):
			if time.Since(began) > patience && absent(ctx, conn, js, stream) {
				return fmt.Errorf("%w: there is no stream %s", transport.ErrNoQueue, stream)
			}
		case hasCode(err, codeStoreFailed):
			return fmt.Errorf("%w: %w", transport.ErrQueueFull, err)
		case !isTransient(err):
			return err
		}
		if !pause(ctx, retryPause) {
			return err
		}
	}
}

// absent reports whether the broker says that there is no such stream, or no
// JetStream. Silence is no answer. About an operator's streams an agent may not ask: that
// nobody takes the message has to do.
func absent(ctx context.Context, conn *nats.Conn, js jetstream.JetStream, stream string) bool {
	if conn.Provisioned() {
		return true
	}
	asking, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	_, err := js.Stream(asking, stream)
	return errors.Is(err, jetstream.ErrStreamNotFound) || NoJetStream(err)
}

// insist repeats a request until ctx ends while the broker does not answer: nobody
// answers what was sent to a leader that is gone.
func insist(ctx context.Context, try func(context.Context) error) error {
	for {
		trying, cancel := context.WithTimeout(ctx, tryTime)
		err := try(trying)
		cancel()
		if err == nil || !isTransient(err) && !errors.Is(err, natsgo.ErrNoResponders) || !pause(ctx, retryPause) {
			return err
		}
	}
}

// isTransient reports whether the next try may succeed.
func isTransient(err error) bool {
	if api, ok := errors.AsType[*jetstream.APIError](err); ok {
		return api.Code == 503 // the cluster has no leader, or not yet
	}
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, natsgo.ErrTimeout) || errors.Is(err, natsgo.ErrDisconnected) ||
		errors.Is(err, natsgo.ErrReconnectBufExceeded) || errors.Is(err, natsgo.ErrConnectionReconnecting)
}

// lastFor returns what a stream holds under a subject, or [transport.ErrNotStored]. It
// uses the direct-get API (ADR-31) with the subject in the topic, the form for which
// the broker can have permissions.
func lastFor(ctx context.Context, conn *nats.Conn, stream, subject string) ([]byte, error) {
	m, err := conn.Client().RequestMsgWithContext(ctx, natsgo.NewMsg(conn.JetStreamAPI()+".DIRECT.GET."+stream+"."+subject))
	if err != nil {
		return nil, err
	}
	switch m.Header.Get("Status") {
	case "":
	case "404":
		return nil, transport.ErrNotStored
	default:
		return nil, fmt.Errorf("stream %s: %s %s", stream, m.Header.Get("Status"), m.Header.Get("Description"))
	}
	if m.Header.Get(jetstream.StreamHeader) == "" { // an error of the API is JSON
		var api struct {
			Error *jetstream.APIError `json:"error"`
		}
		if json.Unmarshal(m.Data, &api) == nil && api.Error != nil {
			return nil, api.Error
		}
	}
	return m.Data, nil
}
