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
	"github.com/agentd/agentd/transport/nats/natsauth"
)

// resultSubject is where the answer to a call is kept.
func resultSubject(k transport.CallKey) string {
	return natsauth.ResultsSubject(k.Callee.ID(), k.Caller.ID()) + "." + k.CorrelationID
}

// answeredSubject is where the stream sends an answer on that it has stored.
func answeredSubject(k transport.CallKey) string {
	return natsauth.AnsweredSubject(natsauth.ServiceName(k.Callee.ID()), k.Caller.ID()) + "." + k.CorrelationID
}

const (
	// tryTime bounds one try to store something: a leader that is gone does not answer.
	tryTime = 2 * time.Second
	// retryPause is the wait between two tries.
	retryPause = 100 * time.Millisecond
	// noStreamTime is how long nobody may take messages of a subject before it is asked
	// whether anybody ever will: while a cluster elects a leader, nobody does either.
	noStreamTime = time.Second
	// clusterTime is how long a cluster may have no leader, or not enough servers for
	// the replicas of a stream, when an agent starts.
	clusterTime = 30 * time.Second
	// codeNoPeers says that there are not enough servers.
	codeNoPeers jetstream.ErrorCode = 10005
	// codeStoreFailed says that a stream is as full as it may be, or its disk.
	codeStoreFailed jetstream.ErrorCode = 10077
)

// publish stores a message, and tries again until ctx ends while the broker does
// not say whether it has. The options must make a repetition harmless.
func publish(ctx context.Context, js jetstream.JetStream, stream, subject string, data []byte, header natsgo.Header, opts ...jetstream.PublishOpt) error {
	began := time.Now()
	for {
		trying, cancel := context.WithTimeout(ctx, tryTime)
		_, err := js.PublishMsg(trying, &natsgo.Msg{Subject: subject, Data: data, Header: header}, append(opts, jetstream.WithRetryAttempts(0))...)
		cancel()
		switch {
		case err == nil:
			return nil
		case errors.Is(err, jetstream.ErrNoStreamResponse), errors.Is(err, natsgo.ErrNoResponders):
			if time.Since(began) > noStreamTime && absent(ctx, js, stream) {
				return fmt.Errorf("%w: there is no stream %s", transport.ErrNoQueue, stream)
			}
		case hasCode(err, codeStoreFailed):
			return fmt.Errorf("%w: %w", transport.ErrQueueFull, err)
		case !mayPass(err):
			return err
		}
		if !pause(ctx, retryPause) {
			return err
		}
	}
}

// absent reports that there is no such stream, or no JetStream. What is not known
// is not reported.
func absent(ctx context.Context, js jetstream.JetStream, stream string) bool {
	asking, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	_, err := js.Stream(asking, stream)
	return errors.Is(err, jetstream.ErrStreamNotFound) || noJetStream(err)
}

// insist tries until ctx ends while the broker does not answer: what was asked of
// a leader that is gone, nobody answers.
func insist(ctx context.Context, try func(context.Context) error) error {
	for {
		trying, cancel := context.WithTimeout(ctx, tryTime)
		err := try(trying)
		cancel()
		if err == nil || !mayPass(err) && !errors.Is(err, natsgo.ErrNoResponders) || !pause(ctx, retryPause) {
			return err
		}
	}
}

// mayPass reports an error that says nothing about the next try.
func mayPass(err error) bool {
	if api, ok := errors.AsType[*jetstream.APIError](err); ok {
		return api.Code == 503 // the cluster has no leader, or not yet
	}
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, natsgo.ErrTimeout) || errors.Is(err, natsgo.ErrDisconnected) ||
		errors.Is(err, natsgo.ErrReconnectBufExceeded) || errors.Is(err, natsgo.ErrConnectionReconnecting)
}

// lastFor is what a stream holds under a subject, or [transport.ErrNotStored] (ADR-31). It
// asks by the subject that permissions can be given for.
func lastFor(ctx context.Context, nc *natsgo.Conn, stream, subject string) ([]byte, error) {
	m, err := nc.RequestMsgWithContext(ctx, natsgo.NewMsg("$JS.API.DIRECT.GET."+stream+"."+subject))
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
