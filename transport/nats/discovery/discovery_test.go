package discovery_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/transport/nats"
	"github.com/agentd/agentd/transport/nats/discovery"
)

func connect(t *testing.T, s *natstest.Server) *nats.Conn {
	t.Helper()
	c, err := nats.Connect(t.Context(), nats.Options{Servers: []string{s.URL()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func reviewer() discovery.Service {
	return discovery.Service{
		Version: "v1.4.0-rc.1", Description: "Reviews pull requests.", Metadata: map[string]string{"agent": "agent://pr-reviewer"},
		Endpoints: []discovery.Endpoint{
			{Name: "review-pr", Subject: "agents.pr-reviewer.requests", Group: "agents.pr-reviewer", Metadata: map[string]string{"digest": "sha256:1"},
				Requests: 4, Errors: 1, Busy: 10 * time.Millisecond, LastError: "EAGENTRPC_BUSY"},
			{Name: "a.b", Subject: "agents.pr-reviewer.requests", Group: "agents.pr-reviewer"},
		},
	}
}

func announce(t *testing.T, c *nats.Conn, name string) *discovery.Announcement {
	t.Helper()
	a, err := discovery.Announce(c, name, reviewer)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

// ask is a foreign client: plain nats.go.
func ask(t *testing.T, c *natsgo.Conn, subject string, into any) {
	t.Helper()
	m, err := c.Request(subject, nil, 10*time.Second)
	if err != nil {
		t.Fatalf("%s: %v", subject, err)
	}
	if strings.Contains(string(m.Data), "null") {
		t.Errorf("%s has a null: %s", subject, m.Data)
	}
	if err := json.Unmarshal(m.Data, into); err != nil {
		t.Fatalf("%s: %v", subject, err)
	}
}

// Each verb is answered for everybody, for the name and for the instance, with
// the types of the framework.
func TestAnswersAsAMicroService(t *testing.T) {
	s := natstest.Run(t, "")
	a := announce(t, connect(t, s), "pr-reviewer")
	c := connect(t, s).Client()
	for _, suffix := range []string{"", ".pr-reviewer", ".pr-reviewer." + a.ID()} {
		var ping micro.Ping
		ask(t, c, "$SRV.PING"+suffix, &ping)
		want := micro.ServiceIdentity{Name: "pr-reviewer", ID: a.ID(), Version: "1.4.0-rc.1", Metadata: map[string]string{"agent": "agent://pr-reviewer"}}
		if ping.Name != want.Name || ping.ID != want.ID || ping.Version != want.Version || ping.Metadata["agent"] != "agent://pr-reviewer" || ping.Type != micro.PingResponseType {
			t.Errorf("%+v", ping)
		}
		var info micro.Info
		ask(t, c, "$SRV.INFO"+suffix, &info)
		if info.Type != micro.InfoResponseType || info.Description != "Reviews pull requests." || len(info.Endpoints) != 2 {
			t.Fatalf("%+v", info)
		}
		if e := info.Endpoints[0]; e.Name != "review-pr" || e.Subject != "agents.pr-reviewer.requests" || e.QueueGroup != "agents.pr-reviewer" || e.Metadata["digest"] != "sha256:1" {
			t.Errorf("%+v", e)
		}
		if e := info.Endpoints[1]; e.Name != "a_b" {
			t.Errorf("%+v", e)
		}
		var stats micro.Stats
		ask(t, c, "$SRV.STATS"+suffix, &stats)
		if stats.Type != micro.StatsResponseType || time.Since(stats.Started) > time.Minute || len(stats.Endpoints) != 2 {
			t.Fatalf("%+v", stats)
		}
		if e := stats.Endpoints[0]; e.NumRequests != 4 || e.NumErrors != 1 || e.LastError != "EAGENTRPC_BUSY" || e.ProcessingTime != 10*time.Millisecond || e.AverageProcessingTime != 2500*time.Microsecond {
			t.Errorf("%+v", e)
		}
	}
}

// The answers have the members that those of the framework have.
func TestAnswersHaveTheFrameworksMembers(t *testing.T) {
	s := natstest.Run(t, "")
	c := connect(t, s)
	announce(t, c, "ours")
	service, err := micro.AddService(c.Client(), micro.Config{Name: "theirs", Version: "1.0.0", Description: "d", Metadata: map[string]string{"a": "b"}})
	if err != nil {
		t.Fatal(err)
	}
	defer service.Stop()
	err = service.AddEndpoint("e", micro.HandlerFunc(func(r micro.Request) { r.Respond(nil) }), micro.WithEndpointMetadata(map[string]string{"a": "b"}))
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"PING", "INFO", "STATS"} {
		var ours, theirs map[string]any
		ask(t, connect(t, s).Client(), "$SRV."+verb+".ours", &ours)
		ask(t, connect(t, s).Client(), "$SRV."+verb+".theirs", &theirs)
		missing(t, verb, ours, theirs)
	}
}

// missing looks for members of want that got does not have.
func missing(t *testing.T, at string, got, want any) {
	t.Helper()
	switch want := want.(type) {
	case map[string]any:
		object, _ := got.(map[string]any)
		for name, value := range want {
			if strings.HasSuffix(at, "/metadata") {
				continue
			}
			if _, ok := object[name]; !ok {
				t.Errorf("%s has no member %s", at, name)
				continue
			}
			missing(t, at+"/"+name, object[name], value)
		}
	case []any:
		list, _ := got.([]any)
		if len(list) == 0 {
			t.Fatalf("%s is empty", at)
		}
		missing(t, at+"/0", list[0], want[0])
	}
}

func TestFind(t *testing.T) {
	s := natstest.Run(t, "")
	asking := connect(t, s)
	none, err := discovery.Find(t.Context(), asking, "", 10*time.Second) // the server says at once that nobody is there
	if err != nil || len(none) != 0 {
		t.Fatalf("%+v, %v", none, err)
	}
	one, two, other := announce(t, connect(t, s), "pr-reviewer"), announce(t, connect(t, s), "pr-reviewer"), announce(t, connect(t, s), "librarian")
	connect(t, s).Client().Subscribe("$SRV.STATS", func(m *natsgo.Msg) { m.Respond([]byte(`{"type":"of another kind"}`)) })
	all := func(name string) (ids []string) {
		found, err := discovery.Find(t.Context(), asking, name, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range found {
			ids = append(ids, i.ID)
			if i.Version != "1.4.0-rc.1" || i.Requests != 4 || i.Errors != 1 || i.Latency <= 0 || i.Started.IsZero() || i.Metadata["agent"] == "" {
				t.Errorf("%+v", i)
			}
		}
		slices.Sort(ids)
		return ids
	}
	sorted := func(ids ...string) []string { slices.Sort(ids); return ids }
	if got, want := all(""), sorted(one.ID(), two.ID(), other.ID()); !slices.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
	if got, want := all("pr-reviewer"), sorted(one.ID(), two.ID()); !slices.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	if got, want := all("pr-reviewer"), sorted(two.ID()); !slices.Equal(got, want) {
		t.Errorf("after the other was closed: found %v, want %v", got, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := discovery.Find(ctx, asking, "", time.Second); err == nil {
		t.Error("found something after the end of the context")
	}
}

// A service is found by its subject whatever its name, and no other service answers.
func TestFindOn(t *testing.T) {
	s := natstest.Run(t, "")
	at := func(name, subject string, announced ...string) *discovery.Announcement {
		a, err := discovery.Announce(connect(t, s), name, func() discovery.Service {
			return discovery.Service{Endpoints: []discovery.Endpoint{{Name: "go", Subject: subject}}}
		}, announced...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = a.Close() })
		return a
	}
	one, two := at("a", "x.y", "x.y"), at("b", "x.y", "x.y")
	at("c", "x_y", "x_y") // shares the name that stands for the subject
	at("d", "z", "z")
	old := at("e", "x.y") // answers to its own name alone
	asking := connect(t, s)
	for _, test := range []struct {
		names []string
		want  []string
	}{
		{nil, []string{one.ID(), two.ID()}},
		{[]string{"e"}, []string{one.ID(), two.ID(), old.ID()}},
		{[]string{"a", "d", "nobody"}, []string{one.ID(), two.ID()}}, // each once, and none on another subject
	} {
		found, err := discovery.FindOn(t.Context(), asking, "x.y", time.Second, test.names...)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, i := range found {
			ids = append(ids, i.ID)
		}
		slices.Sort(ids)
		if !slices.Equal(ids, slices.Sorted(slices.Values(test.want))) {
			t.Errorf("names %v: found %v, want %v", test.names, ids, test.want)
		}
	}
	if found, err := discovery.FindOn(t.Context(), asking, "nobody", time.Hour, "nobody-else"); err != nil || len(found) != 0 {
		t.Errorf("found %v, %v where nobody is", found, err)
	}
}

// Anybody may reply, with a service of very many subjects, and with megabytes of nothing.
func TestFindIsBounded(t *testing.T) {
	s := natstest.Run(t, "")
	hostile := connect(t, s).Client()
	stats := micro.Stats{ServiceIdentity: micro.ServiceIdentity{Name: "big", ID: "1"}, Type: micro.StatsResponseType}
	for i := range 1000 {
		stats.Endpoints = append(stats.Endpoints, &micro.EndpointStats{Subject: fmt.Sprint("s", i), NumRequests: 1})
	}
	big, err := json.Marshal(stats)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hostile.Subscribe("$SRV.STATS", func(m *natsgo.Msg) {
		_ = m.Respond(big)
		for range 33 {
			_ = m.Respond(bytes.Repeat([]byte("x"), 1<<20))
		}
	}); err != nil {
		t.Fatal(err)
	}
	if err := hostile.Flush(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	found, err := discovery.Find(ctx, connect(t, s), "", time.Hour)
	if err != nil || ctx.Err() != nil || len(found) != 1 || len(found[0].Subjects) != 100 || found[0].Requests != 1000 {
		t.Errorf("%d instances, %v", len(found), err)
	}
}

func TestAnnounceRefusesNames(t *testing.T) {
	c := connect(t, natstest.Run(t, ""))
	for _, name := range []string{"", "a.b", "a b", "*"} {
		if _, err := discovery.Announce(c, name, reviewer); err == nil {
			t.Errorf("%q is taken", name)
		}
	}
}

func TestVersionIsAlwaysSemantic(t *testing.T) {
	s := natstest.Run(t, "")
	c := connect(t, s)
	for version, want := range map[string]string{"": "0.0.0", "(devel)": "0.0.0", "1.2": "0.0.0", "v1.2.3": "1.2.3", "1.2.3+build": "1.2.3+build"} {
		a, err := discovery.Announce(c, "x", func() discovery.Service { return discovery.Service{Version: version} })
		if err != nil {
			t.Fatal(err)
		}
		var ping micro.Ping
		ask(t, c.Client(), "$SRV.PING.x."+a.ID(), &ping)
		if ping.Version != want {
			t.Errorf("%q is told as %q", version, ping.Version)
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
