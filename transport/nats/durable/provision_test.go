package durable_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/transport/nats"
	"github.com/agentd/agentd/transport/nats/durable"
)

// Provisioning makes exactly what an agent makes itself, finds every change that
// somebody made to it, and takes it back.
func TestProvision(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "jetstream {}")
	conn, err := nats.Connect(t.Context(), nats.Options{Servers: []string{server.URL()}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := conn.JetStream()
	if err != nil {
		t.Fatal(err)
	}
	opts := durable.Options{Conn: conn, Agent: "callee.v2"}
	resources := durable.ResourcesOf(opts, topic, true)
	states := func(check bool) (all []durable.State) {
		t.Helper()
		findings, err := resources.Provision(t.Context(), js, check)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range findings {
			all = append(all, f.State)
		}
		return all
	}
	five := func(s durable.State) []durable.State { return slices.Repeat([]durable.State{s}, 5) }
	for _, step := range []struct {
		check bool
		want  durable.State
	}{{true, durable.Missing}, {false, durable.Made}, {false, durable.AsWanted}, {true, durable.AsWanted}} {
		if got := states(step.check); !slices.Equal(got, five(step.want)) {
			t.Errorf("check %v: %v, want %s", step.check, got, step.want)
		}
	}
	if _, err := durable.OpenMailbox(t.Context(), topic, opts); err != nil {
		t.Errorf("an agent that makes its own finds a difference: %v", err)
	}

	for i, change := range []func(*jetstream.StreamConfig){
		func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour },
		func(c *jetstream.StreamConfig) {
			c.RePublish = &jetstream.RePublish{Source: ">", Destination: "stolen.>"}
		},
		func(c *jetstream.StreamConfig) {
			c.Sources = []*jetstream.StreamSource{{Name: resources.Streams[0].Name}}
		},
	} {
		at := []int{0, 1, 2}[i]
		changed := resources.Streams[at]
		change(&changed)
		if _, err := js.UpdateStream(t.Context(), changed); err != nil {
			t.Fatal(err)
		}
		want := five(durable.AsWanted)
		want[at] = durable.Differs
		if got := states(true); !slices.Equal(got, want) {
			t.Errorf("change %d: %v", i, got)
		}
		want[at] = durable.Changed
		if got := states(false); !slices.Equal(got, want) {
			t.Errorf("change %d is taken back: %v", i, got)
		}
	}

	// A bucket that makes room by itself forgets what it is for.
	bucket, err := js.Stream(t.Context(), "KV_"+resources.Buckets[0].Bucket)
	if err != nil {
		t.Fatal(err)
	}
	evicts := bucket.CachedInfo().Config
	evicts.Discard, evicts.MaxBytes = jetstream.DiscardOld, 1<<20
	if _, err := js.UpdateStream(t.Context(), evicts); err != nil {
		t.Fatal(err)
	}
	want := five(durable.AsWanted)
	want[4] = durable.Changed
	if got := states(false); !slices.Equal(got, want) {
		t.Errorf("a bucket that evicts is taken back: %v", got)
	}
	if got := states(true); !slices.Equal(got, five(durable.AsWanted)) {
		t.Errorf("in the end: %v", got)
	}
}

// A queue that another fleet has filled is not served, nor is it taken over by accident.
func TestStreamOfAnotherFleet(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "jetstream {}")
	conn, err := nats.Connect(t.Context(), nats.Options{Servers: []string{server.URL()}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, step := range []struct {
		fleet string
		opens bool
	}{{"one", true}, {"one", true}, {"two", false}, {"", true}} {
		_, err := durable.OpenMailbox(t.Context(), topic, durable.Options{Conn: conn, Agent: "callee.v2", Fleet: step.fleet})
		var setting *durable.SettingError
		if step.opens != (err == nil) || err != nil && (!errors.As(err, &setting) || setting.Setting != "fleet" || setting.Have != "one" || setting.Want != "two") {
			t.Errorf("fleet %q: %v", step.fleet, err)
		}
	}
}

// An operator who provisions a second fleet with the same names does not take the first
// one's queue from it: a check shows the difference, and nothing is changed.
func TestProvisionKeepsTheStreamsOfOthers(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "jetstream {}")
	js, err := connect(t, server.URL()).JetStream()
	if err != nil {
		t.Fatal(err)
	}
	provision := func(fleet string, check bool) ([]durable.Finding, error) {
		return durable.ResourcesOf(durable.Options{Agent: "callee.v2", Fleet: fleet}, topic, true).Provision(t.Context(), js, check)
	}
	if _, err := provision("one", false); err != nil {
		t.Fatal(err)
	}
	findings, err := provision("two", true)
	if err != nil || findings[0].State != durable.Differs || !slices.Equal(findings[0].Settings, []string{"fleet: one, not two"}) {
		t.Errorf("checked: %+v, %v", findings, err)
	}
	var setting *durable.SettingError
	if findings, err = provision("two", false); !errors.As(err, &setting) || setting.Have != "one" || setting.Want != "two" || len(findings) > 0 {
		t.Errorf("provisioned: %+v, %v", findings, err)
	}
	if findings, err = provision("one", true); err != nil || findings[0].State != durable.AsWanted {
		t.Errorf("the first fleet has lost its stream: %+v, %v", findings, err)
	}
}
