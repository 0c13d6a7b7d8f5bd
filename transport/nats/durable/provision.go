package durable

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentd/agentd/transport/nats/natsauth"
)

// Resources are what an agent uses in JetStream. Where the broker has no permissions the
// agent makes them itself; otherwise an operator does, by [Resources.Provision].
type Resources struct {
	// Streams of a callee, that of the requests first.
	Streams []jetstream.StreamConfig
	// Consumer is that of the requests.
	Consumer jetstream.ConsumerConfig
	// Buckets are key-value buckets.
	Buckets []jetstream.KeyValueConfig
}

// ResourcesOf returns the resources of an agent: those of a callee whose requests topic
// is topic, unless that is "", and those of a caller. o.Conn is not used.
func ResourcesOf(o Options, topic string, calls bool) Resources {
	o = o.withDefaults()
	var r Resources
	if topic != "" {
		r.Streams, r.Consumer = o.streams(topic), o.consumer()
	}
	if calls {
		r.Buckets = append(r.Buckets, o.notes())
	}
	return r
}

// A State is what was found out about a resource, or done to it.
type State string

// The states.
const (
	AsWanted State = "ok"
	Missing  State = "missing" // only by a check
	Differs  State = "differs" // only by a check
	Made     State = "made"
	Changed  State = "changed"
)

// A Finding is about one resource.
type Finding struct {
	// Kind is stream, consumer or bucket.
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	State State  `json:"state"`
	// Settings are those that differ, or that were changed.
	Settings []string `json:"settings,omitempty"`
}

// Provision makes what is missing and changes what differs, with the rights of an
// operator. With check it changes nothing. A stream of another fleet holds that fleet's
// calls: it is not changed, and the error is a [*SettingError]. Provision may be repeated;
// the findings are in the order of the resources, up to the first error.
func (r Resources) Provision(ctx context.Context, js jetstream.JetStream, check bool) (all []Finding, err error) {
	add := func(f Finding, err error) error {
		if err != nil {
			return fmt.Errorf("%s %s: %w", f.Kind, f.Name, err)
		}
		all = append(all, f)
		return nil
	}
	for _, want := range r.Streams {
		if err := add(provisionStream(ctx, js, want, check)); err != nil {
			return all, err
		}
	}
	if len(r.Streams) > 0 {
		if err := add(provisionConsumer(ctx, js, r.Streams[0].Name, r.Consumer, check)); err != nil {
			return all, err
		}
	}
	for _, want := range r.Buckets {
		if err := add(provisionBucket(ctx, js, want, check)); err != nil {
			return all, err
		}
	}
	return all, nil
}

func provisionStream(ctx context.Context, js jetstream.JetStream, want jetstream.StreamConfig, check bool) (Finding, error) {
	f := Finding{Kind: "stream", Name: want.Name, State: AsWanted}
	have, err := js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		if f.State = Missing; !check {
			f.State = Made
			_, err = js.CreateStream(ctx, want)
			return f, err
		}
		return f, nil
	}
	if err != nil {
		return f, err
	}
	for _, d := range differences(have.CachedInfo().Config, want) {
		if d.Setting == settingFleet && !check {
			return f, d
		}
		f.Settings = append(f.Settings, fmt.Sprintf("%s: %v, not %v", d.Setting, d.Have, d.Want))
	}
	if len(f.Settings) == 0 {
		return f, nil
	}
	if f.State = Differs; !check {
		f.State = Changed
		_, err = js.UpdateStream(ctx, want)
	}
	return f, err
}

func provisionConsumer(ctx context.Context, js jetstream.JetStream, stream string, want jetstream.ConsumerConfig, check bool) (Finding, error) {
	have, err := js.Consumer(ctx, stream, want.Durable)
	return provision(Finding{Kind: "consumer", Name: stream + " " + natsauth.ConsumerName}, check, err,
		func() []string { return consumerDifferences(have.CachedInfo().Config, want) },
		func() error {
			_, err := js.CreateOrUpdateConsumer(ctx, stream, want)
			return err
		})
}

// provision finishes a finding about a resource that one look-up has found, or not. Where
// the resource is not as wanted and this is no check, put makes it so.
func provision(f Finding, check bool, lookup error, differences func() []string, put func() error) (Finding, error) {
	found := AsWanted
	switch {
	case errors.Is(lookup, jetstream.ErrConsumerNotFound), errors.Is(lookup, jetstream.ErrStreamNotFound):
		found, f.State = Missing, Made
	case lookup != nil:
		return f, lookup
	default:
		if f.Settings = differences(); len(f.Settings) > 0 {
			found, f.State = Differs, Changed
		}
	}
	if found == AsWanted || check {
		f.State = found
		return f, nil
	}
	return f, put()
}

func consumerDifferences(have, want jetstream.ConsumerConfig) (all []string) {
	for _, s := range []struct {
		name       string
		have, want any
	}{
		{"ack policy", have.AckPolicy, want.AckPolicy},
		{"ack wait", have.AckWait, want.AckWait},
		{"max ack pending", have.MaxAckPending, want.MaxAckPending},
		{"max deliver", have.MaxDeliver, want.MaxDeliver},
		{"filter", have.FilterSubject, want.FilterSubject},
		{"deliver subject", have.DeliverSubject, want.DeliverSubject},
	} {
		if s.have != s.want {
			all = append(all, fmt.Sprintf("%s: %v, not %v", s.name, s.have, s.want))
		}
	}
	return all
}

func provisionBucket(ctx context.Context, js jetstream.JetStream, want jetstream.KeyValueConfig, check bool) (Finding, error) {
	stream, err := js.Stream(ctx, "KV_"+want.Bucket)
	return provision(Finding{Kind: "bucket", Name: want.Bucket}, check, err,
		func() []string { return bucketDifferences(stream.CachedInfo().Config, want) },
		func() error {
			_, err := js.CreateOrUpdateKeyValue(ctx, want)
			return err
		})
}

func bucketDifferences(have jetstream.StreamConfig, want jetstream.KeyValueConfig) (all []string) {
	for _, s := range []struct {
		name       string
		have, want any
	}{
		{"subjects", fmt.Sprint(have.Subjects), fmt.Sprint([]string{"$KV." + want.Bucket + ".>"})},
		{"time to live", have.MaxAge, want.TTL},
		{"storage", have.Storage, want.Storage},
		{"replicas", have.Replicas, max(want.Replicas, 1)},
		// What makes room for new entries by itself forgets counts, claims and answers.
		{"discard", have.Discard, jetstream.DiscardNew},
		{"size", max(have.MaxBytes, 0), max(want.MaxBytes, 0)}, // none is -1 on the server
		{"republish", republish(have), "nothing"},
		{"sources", sources(have), 0},
	} {
		if s.have != s.want {
			all = append(all, fmt.Sprintf("%s: %v, not %v", s.name, s.have, s.want))
		}
	}
	return all
}
