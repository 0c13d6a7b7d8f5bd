package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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
	// Metadata is the service's own. Nothing proves it.
	Metadata map[string]string
	// Started is when it started, by its own clock.
	Started time.Time
	// Subjects are where its endpoints take requests, each once; at most 100.
	Subjects []string
	// Requests and Errors are the sums over all endpoints.
	Requests, Errors int
	// Latency is how long its reply took.
	Latency time.Duration
}

// Bounds of what one call of Find reads: anybody may reply, with anything.
const (
	maxReplies  = 10_000
	maxBytes    = 32 << 20 // of all replies
	maxSubjects = 100      // of one instance
)

// Find returns the running instances of the services of a NATS system: of all
// services, or of the one called name. Nobody knows how many will reply, so Find
// returns once none has for the quiet time, or at once if the server reports that
// nobody is subscribed. It returns with ctx at the latest, and then with an error only
// if nobody has replied.
func Find(ctx context.Context, conn *nats.Conn, name string, quiet time.Duration) ([]Instance, error) {
	subject := micro.APIPrefix + "." + micro.StatsVerb.String()
	if name != "" {
		subject += "." + name
	}
	return ask(ctx, conn, quiet, subject)
}

// ask is Find for the services that answer on some subjects. Each is in the result once.
func ask(ctx context.Context, conn *nats.Conn, quiet time.Duration, subjects ...string) ([]Instance, error) {
	nc := conn.Client()
	inbox := nc.NewInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only if the connection has ended
	start := time.Now()
	for _, subject := range subjects {
		if err := nc.PublishRequest(subject, inbox, nil); err != nil {
			return nil, fmt.Errorf("discovery: %w", err)
		}
	}
	var found []Instance
	seen := map[string]bool{}
	unheard := 0 // subjects that nobody is subscribed to
	for replies, size := 0, 0; replies < maxReplies && size < maxBytes; replies++ {
		reply, err := nextReply(ctx, sub, quiet)
		switch {
		case err == nil:
		case errors.Is(err, natsgo.ErrNoResponders):
			if unheard++; unheard >= len(subjects) {
				return found, nil
			}
			continue
		case ctx.Err() != nil && len(found) == 0:
			return nil, fmt.Errorf("discovery: %w", context.Cause(ctx))
		case ctx.Err() != nil, errors.Is(err, context.DeadlineExceeded):
			return found, nil
		default:
			return found, fmt.Errorf("discovery: %w", err)
		}
		size += len(reply.Data)
		if instance, ok := parse(reply.Data); ok && !seen[instance.ID] {
			seen[instance.ID] = true
			instance.Latency = time.Since(start)
			found = append(found, instance)
		}
	}
	return found, nil
}

// FindOn is [Find] for the services that take requests on a subject, whatever their names,
// as far as they were announced with that subject. Find would have every service of the
// system answer: agents that each look for a conflict would cause a number of messages that
// grows with the square of theirs.
//
// Services that were not announced with their subjects, as those of other programs and of
// older versions of this one, are found by their names alone: FindOn asks the services of
// names too.
func FindOn(ctx context.Context, conn *nats.Conn, subject string, quiet time.Duration, names ...string) ([]Instance, error) {
	stats := micro.APIPrefix + "." + micro.StatsVerb.String() + "."
	asked := []string{stats + nameOn(subject)}
	for _, name := range names {
		asked = append(asked, stats+name)
	}
	found, err := ask(ctx, conn, quiet, asked...)
	return slices.DeleteFunc(found, func(i Instance) bool { return !slices.Contains(i.Subjects, subject) }), err
}

// nextReply waits for one reply, for the quiet time at most.
func nextReply(ctx context.Context, sub *natsgo.Subscription, quiet time.Duration) (*natsgo.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, quiet)
	defer cancel()
	return sub.NextMsgWithContext(ctx)
}

// parse decodes one reply. ok is false for messages of other kinds, which Find skips.
func parse(data []byte) (i Instance, ok bool) {
	var s micro.Stats
	if json.Unmarshal(data, &s) != nil || s.Type != micro.StatsResponseType || s.Name == "" || s.ID == "" {
		return Instance{}, false
	}
	i = Instance{Name: s.Name, ID: s.ID, Version: s.Version, Metadata: s.Metadata, Started: s.Started}
	for _, e := range s.Endpoints {
		if e != nil {
			i.Requests += e.NumRequests
			i.Errors += e.NumErrors
			if len(i.Subjects) < maxSubjects && !slices.Contains(i.Subjects, e.Subject) {
				i.Subjects = append(i.Subjects, e.Subject)
			}
		}
	}
	return i, true
}
