package otlp_test

import (
	"context"
	"encoding/binary"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/otlp"
	"github.com/agentd/agentd/internal/otlptest"
)

func collector(t testing.TB) *otlptest.Collector {
	t.Helper()
	c, err := otlptest.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// configured is what the variables ask for.
func configured(t testing.TB, env map[string]string) otlp.Config {
	t.Helper()
	cfg, warnings, err := otlp.FromEnv(func(name string) string { return env[name] }, otlp.Traces)
	if err != nil || cfg == nil || len(warnings) > 0 {
		t.Fatalf("%+v, %v, %v", cfg, warnings, err)
	}
	return *cfg
}

// message has one span with a name.
func message(t testing.TB, name string) []byte {
	t.Helper()
	data, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{{ScopeSpans: []*tracepb.ScopeSpans{{Spans: []*tracepb.Span{{Name: name}}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Both protocols bring the same to a collector, compressed or not, with the headers.
func TestProtocols(t *testing.T) {
	for _, protocol := range []string{"", "http/protobuf", "grpc"} {
		for _, compression := range []string{"", "gzip"} {
			c := collector(t)
			client := otlp.NewClient(configured(t, map[string]string{
				"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL, "OTEL_EXPORTER_OTLP_PROTOCOL": protocol, "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION": compression,
				"OTEL_EXPORTER_OTLP_HEADERS": "api-key=s%20ecret, x-tenant=a",
			}))
			defer client.Close()
			if refusal, err := client.Send(t.Context(), message(t, strings.Repeat("n", 1000))); err != nil || refusal != nil {
				t.Fatalf("%s %s: %v, %+v", protocol, compression, err, refusal)
			}
			if spans := c.Spans(""); len(spans) != 1 || len(spans[0].Name) != 1000 {
				t.Errorf("%s %s: %d spans", protocol, compression, len(spans))
			}
			if h := c.Headers()[0]; h.Get("Api-Key") != "s ecret" || h.Get("X-Tenant") != "a" {
				t.Errorf("%s: headers %v", protocol, h)
			}
		}
	}
}

// What is shown of a collector's URL has no key in it, wherever in it the key is.
func TestWhereHasNoKey(t *testing.T) {
	for _, key := range []string{"https://k3y@collector:4318/a/v1/traces", "https://user:k3y@collector:4318/a/v1/traces", "https://collector:4318/a/v1/traces?api-key=k3y#k3y"} {
		cfg := configured(t, map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": key})
		client := otlp.NewClient(cfg)
		defer client.Close()
		if cfg.Where() != "https://collector:4318/a/v1/traces" || client.Endpoint() != cfg.Where() {
			t.Errorf("%s is shown as %s", key, cfg.Where())
		}
	}
}

// What a collector answers is told apart: not now, never, in part.
func TestAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		protocol  string
		answer    otlptest.Answer
		retryable bool
		reason    string
		rejected  int64
		after     time.Duration
	}{
		"busy":                   {"", otlptest.Answer{Status: 503, RetryAfter: "2"}, true, "the status 503", 0, 2 * time.Second},
		"too many":               {"", otlptest.Answer{Status: 429}, true, "the status 429", 0, 0},
		"unauthorized":           {"", otlptest.Answer{Status: 401}, false, "the status 401", 0, 0},
		"elsewhere":              {"", otlptest.Answer{Status: 307}, false, "the status 307", 0, 0},
		"in part":                {"", otlptest.Answer{Rejected: 3, Why: "too old"}, false, "too old", 3, 0},
		"by gRPC: unavailable":   {"grpc", otlptest.Answer{Code: 14, Why: "down%20now"}, true, "gRPC status 14: down now", 0, 0},
		"by gRPC: no permission": {"grpc", otlptest.Answer{Code: 7, Why: "no"}, false, "gRPC status 7: no", 0, 0},
		"by gRPC: in part":       {"grpc", otlptest.Answer{Rejected: 2, Why: "too long"}, false, "too long", 2, 0},
		"for too long":           {"", otlptest.Answer{Status: 429, RetryAfter: "86400"}, true, "the status 429", 0, 30 * time.Second},
		"a date that is over":    {"", otlptest.Answer{Status: 503, RetryAfter: "Wed, 21 Oct 2015 07:28:00 GMT"}, true, "the status 503", 0, 0},
		"until a date":           {"", otlptest.Answer{Status: 503, RetryAfter: "Fri, 31 Dec 9999 23:59:59 GMT"}, true, "the status 503", 0, 30 * time.Second},
		"by gRPC: busy":          {"grpc", otlptest.Answer{Code: 14, RetryAfter: "3"}, true, "gRPC status 14", 0, 3 * time.Second},
		"by gRPC: exhausted":     {"grpc", otlptest.Answer{Code: 8, RetryAfter: "4"}, true, "gRPC status 8", 0, 4 * time.Second},
		"by gRPC: for too long":  {"grpc", otlptest.Answer{Code: 8, RetryAfter: "86400"}, true, "gRPC status 8", 0, 30 * time.Second},
		"by gRPC: too large":     {"grpc", otlptest.Answer{Code: 8, Why: "received message larger than max"}, false, "larger than max", 0, 0},
	} {
		at := collector(t)
		at.Respond(c.answer)
		client := otlp.NewClient(configured(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": at.URL, "OTEL_EXPORTER_OTLP_PROTOCOL": c.protocol}))
		refusal, err := client.Send(t.Context(), message(t, "n"))
		client.Close()
		if c.rejected > 0 {
			if err != nil || refusal == nil || refusal.Count != c.rejected || refusal.Reason != c.reason {
				t.Errorf("%s: %+v, %v", name, refusal, err)
			}
			continue
		}
		failed, ok := errors.AsType[*otlp.Error](err)
		if !ok || failed.Retryable != c.retryable || !strings.Contains(failed.Reason, c.reason) {
			t.Errorf("%s: %+v", name, err)
		}
		if failed != nil && failed.After != c.after {
			t.Errorf("%s: again after %s", name, failed.After)
		}
	}
}

// The variables are those of the specification.
func TestVariables(t *testing.T) {
	for name, c := range map[string]struct {
		env      map[string]string
		endpoint string // "" is off
		warning  string
		fault    string
	}{
		"nothing":          {map[string]string{}, "", "", ""},
		"a server":         {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:1/base/"}, "http://c:1/base/v1/traces", "", ""},
		"a signal's own":   {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:1", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://d:2/x"}, "http://d:2/x", "", ""},
		"gRPC":             {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "https://c:4317", "", ""},
		"insecure":         {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_INSECURE": "true"}, "http://c:4317", "", ""},
		"by name":          {map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}, "http://localhost:4318/v1/traces", "", ""},
		"by name, gRPC":    {map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc"}, "http://localhost:4317", "", ""},
		"none":             {map[string]string{"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:1"}, "", "", ""},
		"disabled":         {map[string]string{"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:1"}, "", "", ""},
		"another exporter": {map[string]string{"OTEL_TRACES_EXPORTER": "zipkin", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:1"}, "", "zipkin", ""},
		"another protocol": {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}, "http://c:1/v1/traces", "http/json", ""},
		"no URL":           {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "file:///hunter2"}, "", "", "OTEL_EXPORTER_OTLP_ENDPOINT: must be a URL"},
		"bad headers":      {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:1", "OTEL_EXPORTER_OTLP_HEADERS": "hunter2"}, "", "", "OTEL_EXPORTER_OTLP_HEADERS: must be key=value"},
		"no certificate":   {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "https://c:1", "OTEL_EXPORTER_OTLP_CERTIFICATE": "/nowhere"}, "", "", "OTEL_EXPORTER_OTLP_CERTIFICATE"},
	} {
		cfg, warnings, err := otlp.FromEnv(func(v string) string { return c.env[v] }, otlp.Traces)
		if text := strings.Join(warnings, "\n"); !strings.Contains(text, c.warning) || c.warning == "" && text != "" {
			t.Errorf("%s: warnings %q", name, text)
		}
		switch {
		case c.fault != "":
			if err == nil || !strings.Contains(err.Error(), c.fault) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s: %v", name, err)
			}
		case err != nil || (cfg == nil) != (c.endpoint == ""):
			t.Errorf("%s: %+v, %v", name, cfg, err)
		case cfg != nil && cfg.Endpoint.String() != c.endpoint:
			t.Errorf("%s: it goes to %s", name, cfg.Endpoint)
		}
	}
}

// told are the states that a queue has told.
type told struct {
	mu  sync.Mutex
	all []otlp.State
}

func (t *told) tell(s otlp.State) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = append(t.all, s)
}

func (t *told) last() otlp.State {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.all) == 0 {
		return otlp.State{}
	}
	return t.all[len(t.all)-1]
}

// queue sends names as spans.
func queue(t *testing.T, c *otlptest.Collector, b otlp.Batch, tell func(otlp.State)) *otlp.Queue[string] {
	t.Helper()
	client := otlp.NewClient(configured(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL}))
	q := otlp.NewQueue(client, b, func(names []string) ([]byte, error) {
		var all []byte
		for _, name := range names {
			all = append(all, message(t, name)...) // repeated fields add up
		}
		return all, nil
	}, tell)
	t.Cleanup(func() { q.Close(context.Background()) })
	return q
}

// A batch goes out when it is whole, and one that is not after a while or at the end.
func TestBatches(t *testing.T) {
	c, told := collector(t), &told{}
	q := queue(t, c, otlp.Batch{Queue: 100, Most: 3, Delay: time.Hour}, told.tell)
	for range 3 {
		q.Emit("whole")
	}
	eventually.Holds(t, "a whole batch is sent", func() bool { return len(c.Spans("")) == 3 })
	q.Emit("last")
	q.Close(t.Context())
	if n := len(c.Spans("")); n != 4 {
		t.Errorf("%d spans after the end", n)
	}
	q.Emit("late")
	late := queue(t, c, otlp.Batch{Queue: 100, Most: 3, Delay: time.Millisecond}, told.tell)
	late.Emit("soon")
	eventually.Holds(t, "a part of a batch is sent", func() bool { return len(c.Spans("")) == 5 })
	if s := told.last(); s.Away || s.Lost != 0 {
		t.Errorf("told %+v", s)
	}
}

// A collector that is away is told once, and once that it is back; what there was room for
// is there then.
func TestAway(t *testing.T) {
	c, told := collector(t), &told{}
	c.Respond(otlptest.Answer{Status: 503})
	q := queue(t, c, otlp.Batch{Queue: 2, Most: 1, Delay: time.Millisecond}, told.tell)
	q.Emit("first")
	eventually.Holds(t, "it is told", func() bool { return told.last().Away })
	for range 5 { // two of them find room
		q.Emit("more")
	}
	c.Respond(otlptest.Answer{})
	eventually.Holds(t, "they arrive", func() bool { return len(c.Spans("")) == 3 })
	eventually.Holds(t, "it is told that it is back", func() bool { return !told.last().Away })
	told.mu.Lock()
	defer told.mu.Unlock()
	if len(told.all) != 2 || told.all[0].Cause != "the collector answers with the status 503" || told.all[1].Lost != 3 {
		t.Errorf("told %+v", told.all)
	}
}

// A collector that hangs holds up neither those who emit nor, for longer than they allow,
// the end.
func TestHang(t *testing.T) {
	c, told := collector(t), &told{}
	c.Hang()
	q := queue(t, c, otlp.Batch{Queue: 10, Most: 1, Delay: time.Millisecond}, told.tell)
	for range 50 {
		q.Emit("held")
	}
	eventually.Holds(t, "it hangs", func() bool { return len(c.Headers()) == 1 })
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	q.Close(ended)
	if s := told.last(); s.Lost != 50 {
		t.Errorf("told %+v", s)
	}
}

// What a collector does not want is lost, and told with its reason.
func TestRefused(t *testing.T) {
	for answer, want := range map[otlptest.Answer]otlp.State{
		{Rejected: 1, Why: "too old"}:     {Cause: "the collector refuses a part: too old", Lost: 1},
		{Status: http.StatusUnauthorized}: {Away: true, Cause: "the collector answers with the status 401", Lost: 2},
	} {
		c, told := collector(t), &told{}
		c.Respond(answer)
		q := queue(t, c, otlp.Batch{Queue: 10, Most: 2, Delay: time.Hour}, told.tell)
		q.Emit("a")
		q.Emit("b")
		eventually.Holds(t, "it is told", func() bool { return told.last().Lost > 0 })
		if got := told.last(); got != want {
			t.Errorf("told %+v and not %+v", got, want)
		}
	}
}

// What is lost while the collector is away is told meanwhile, and not only once it is back.
func TestLossesWhileAway(t *testing.T) {
	c, told := collector(t), &told{}
	c.Respond(otlptest.Answer{Status: 503})
	q := queue(t, c, otlp.Batch{Queue: 1, Most: 1, Delay: time.Millisecond}, told.tell)
	q.Emit("first")
	eventually.Holds(t, "it is told", func() bool { return told.last().Away })
	q.Emit("second")
	q.Emit("lost")
	eventually.Holds(t, "the loss is told", func() bool {
		return told.last() == otlp.State{Away: true, Cause: "the collector answers with the status 503", Lost: 1}
	})
	q.Close(t.Context())
	if s := told.last(); !s.Ended || s.Lost != 3 {
		t.Errorf("at the end it tells %+v", s)
	}
}

// What is larger than a collector takes goes out in parts.
func TestLargeBatches(t *testing.T) {
	c, told := collector(t), &told{}
	q := queue(t, c, otlp.Batch{Queue: 4, Most: 4, Delay: time.Hour}, told.tell)
	for range 4 {
		q.Emit(strings.Repeat("x", 1<<20))
	}
	eventually.Holds(t, "all arrive", func() bool { return len(c.Spans("")) == 4 })
	if n := len(c.Headers()); n < 2 {
		t.Errorf("in %d requests", n)
	}
}

// A person is told of every loss, at most once in an interval.
func TestLosses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		losses := otlp.Losses(time.Minute)
		for i, step := range []struct {
			after time.Duration
			state otlp.State
			want  int64
		}{
			{0, otlp.State{}, 0},
			{0, otlp.State{Away: true, Lost: 2}, 2},
			{time.Second, otlp.State{Away: true, Lost: 5}, 0},
			{time.Minute, otlp.State{Away: true, Lost: 6}, 4},
			{time.Second, otlp.State{Away: true, Lost: 9}, 0},
			{time.Second, otlp.State{Lost: 9}, 3}, // it is back
			{time.Second, otlp.State{Lost: 10}, 0},
			{time.Second, otlp.State{Lost: 10, Ended: true}, 1},
		} {
			time.Sleep(step.after)
			if got := losses(step.state); got != step.want {
				t.Errorf("step %d: %d and not %d", i, got, step.want)
			}
		}
	})
}

// Answers of whatever answers end a request, and no more.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte{0x0a, 2, 0x08, 3}, true)
	f.Add(binary.BigEndian.AppendUint32([]byte{0}, 9), false)
	f.Fuzz(func(t *testing.T, body []byte, grpc bool) {
		otlp.Answer(body, grpc)
	})
}

// One account that emits without an end, or two, leave room for the others; what finds none is
// counted.
func TestAccountsShareTheQueue(t *testing.T) {
	c, told := collector(t), &told{}
	c.Hang()
	q := queue(t, c, otlp.Batch{Queue: 1000, Most: 500, Delay: time.Hour}, told.tell)
	defer func() { // what waits is for nobody
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		q.Close(ended)
	}()
	q.Share(func(name string) string { return name })
	flood := func(name string) int64 {
		before := q.Dropped().Full
		for range 3000 {
			q.Emit(name)
		}
		return q.Dropped().Full - before
	}
	flood("greedy")
	lost := q.Dropped().Full
	for range 50 {
		q.Emit("modest")
	}
	if n := q.Dropped().Full; n != lost {
		t.Errorf("%d of the others' are lost", n-lost)
	}
	if lost := flood("other"); lost < 2000 || lost == 3000 {
		t.Errorf("%d of a second one are lost", lost)
	}
	lost = q.Dropped().Full
	if q.Emit("late"); q.Dropped().Full != lost {
		t.Error("two of them leave no room")
	}
}
