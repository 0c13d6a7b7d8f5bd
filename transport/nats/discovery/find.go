package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/agentd/agentd/transport/nats"
)

// An Instance is a running service that answered.
type Instance struct {
	// Name and ID identify it; replicas share the name.
	Name, ID string
	// Version is a semantic version.
	Version string
	// Metadata is what it says of itself.
	Metadata map[string]string
	// Started is when it began, by its own clock.
	Started time.Time
	// Requests and Errors are those of all endpoints together.
	Requests, Errors int
	// Latency is how long its answer took.
	Latency time.Duration
}

// maxInstances bounds what one question may gather.
const maxInstances = 10_000

// Find asks the services of a NATS system, all of them or those called name, and
// gathers the answers of quiet's length: how long none may come in before it is
// enough. It ends with ctx at the latest, and then has an error only if there was
// no answer.
func Find(ctx context.Context, conn *nats.Conn, name string, quiet time.Duration) ([]Instance, error) {
	subject := micro.APIPrefix + "." + micro.StatsVerb.String()
	if name != "" {
		subject += "." + name
	}
	nc := conn.Client()
	inbox := nc.NewInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }() // ends with the connection at the latest
	asked := time.Now()
	if err := nc.PublishRequest(subject, inbox, nil); err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	var found []Instance
	for len(found) < maxInstances {
		answer, err := next(ctx, sub, quiet)
		switch {
		case err == nil:
		case ctx.Err() != nil && len(found) == 0:
			return nil, fmt.Errorf("discovery: %w", context.Cause(ctx))
		case ctx.Err() != nil, errors.Is(err, context.DeadlineExceeded), errors.Is(err, natsgo.ErrNoResponders):
			return found, nil
		default:
			return found, fmt.Errorf("discovery: %w", err)
		}
		if instance, ok := parse(answer.Data); ok {
			instance.Latency = time.Since(asked)
			found = append(found, instance)
		}
	}
	return found, nil
}

// next is one answer, within the quiet time.
func next(ctx context.Context, sub *natsgo.Subscription, quiet time.Duration) (*natsgo.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, quiet)
	defer cancel()
	return sub.NextMsgWithContext(ctx)
}

// parse reads one answer; what is none of the kind is passed over.
func parse(data []byte) (Instance, bool) {
	var s micro.Stats
	if json.Unmarshal(data, &s) != nil || s.Type != micro.StatsResponseType || s.Name == "" || s.ID == "" {
		return Instance{}, false
	}
	i := Instance{Name: s.Name, ID: s.ID, Version: s.Version, Metadata: s.Metadata, Started: s.Started}
	for _, e := range s.Endpoints {
		if e != nil {
			i.Requests += e.NumRequests
			i.Errors += e.NumErrors
		}
	}
	return i, true
}
