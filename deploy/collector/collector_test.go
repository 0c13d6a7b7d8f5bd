package collector_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"maps"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

// parent is the id of the span that calls desk, which is nowhere.
const parent = "1111111111111111"

// certificate writes a certificate of localhost that signs itself, and its key.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: encoded}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// What a fleet sends over both protocols, compressed, by TLS with certificates at both ends and
// with a header, is one tree of spans, and logs and audit records of its calls.
func TestSignals(t *testing.T) {
	cert, key := certificate(t)
	c := newCollector(t, map[string]any{"cert_file": cert, "key_file": key, "client_ca_file": cert})
	secure := []string{
		"OTEL_EXPORTER_OTLP_CERTIFICATE=" + cert, "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE=" + cert, "OTEL_EXPORTER_OTLP_CLIENT_KEY=" + key,
		"OTEL_EXPORTER_OTLP_COMPRESSION=gzip", "OTEL_LOGS_EXPORTER=otlp",
	}
	byHTTP := append([]string{"OTEL_EXPORTER_OTLP_ENDPOINT=https://" + c.http, "OTEL_EXPORTER_OTLP_HEADERS=x-token=by%20http"}, secure...)
	byGRPC := append([]string{"OTEL_EXPORTER_OTLP_ENDPOINT=https://" + c.grpc, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_EXPORTER_OTLP_HEADERS=x-token=by%20grpc"}, secure...)
	f := newFleet(t, byHTTP, byGRPC)

	const good, bad, kept = "11111111111111111111111111111111", "33333333333333333333333333333333", "44444444444444444444444444444444"
	f.request("cat", good)
	f.request("fail", bad)
	f.request("later", kept, "--mode", "async")
	for trace, want := range map[string][]string{
		good: {"desk Client hub/cat < ", "hub Server hub/cat < desk Client hub/cat", "hub Internal run cat < hub Server hub/cat"},
		bad:  {"desk Client hub/fail < ", "hub Server hub/fail < desk Client hub/fail", "hub Internal run fail < hub Server hub/fail"},
		kept: {
			"desk Client hub/later < ", "desk Producer send agents.hub.requests < desk Client hub/later",
			"hub Consumer process hub/later < desk Producer send agents.hub.requests", "hub Internal run cat < hub Consumer process hub/later",
		},
	} {
		var got []string
		eventually(t, "the spans are there: "+strings.Join(want, ", "), func() bool { got = links(c.spans(trace)); return len(got) >= len(want) })
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Errorf("the tree is\n%s\nand not\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		for name, s := range c.spans(trace) {
			checkSpan(t, name, s, trace == bad)
		}
	}
	checkAttributes(t, c.spans(good)["hub Server hub/cat"])
	checkLogs(t, c, bad)
	checkAudit(t, c, f, byHTTP, byGRPC)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.tokens["by http"] || !c.tokens["by grpc"] || len(c.tokens) != 2 {
		t.Errorf("the headers had the tokens %v", slices.Collect(maps.Keys(c.tokens)))
	}
}

// links are the spans, each with its parent.
func links(spans map[string]spanOf) (all []string) {
	names := map[string]string{}
	for name, s := range spans {
		names[s.SpanID().String()] = name
	}
	for name, s := range spans {
		all = append(all, name+" < "+names[s.ParentSpanID().String()])
	}
	slices.Sort(all)
	return all
}

// checkSpan checks what every span has.
func checkSpan(t *testing.T, name string, s spanOf, failed bool) {
	t.Helper()
	for key, want := range map[string]any{"service.namespace": "signals", "telemetry.sdk.language": "go", "telemetry.sdk.name": "agentd"} {
		if s.resource[key] != want {
			t.Errorf("%s: %s is %v", name, key, s.resource[key])
		}
	}
	for _, key := range []string{"service.version", "service.instance.id", "telemetry.sdk.version", "host.name"} {
		if text, _ := s.resource[key].(string); text == "" {
			t.Errorf("%s: its resource has no %s", name, key)
		}
	}
	if s.scope != "github.com/agentd/agentd" {
		t.Errorf("%s: the scope is %q", name, s.scope)
	}
	if state := s.TraceState().AsRaw(); state != "vendor=1" {
		t.Errorf("%s: the state is %q", name, state)
	}
	code, why := ptrace.StatusCodeUnset, ""
	if failed {
		code, why = ptrace.StatusCodeError, "HANDLER_ERROR"
	}
	if s.Status().Code() != code || text(s, "error.type") != why || s.Status().Message() != "" {
		t.Errorf("%s: its status is %s %q, its error %q", name, s.Status().Code(), s.Status().Message(), text(s, "error.type"))
	}
	// Sampled; and whether the parent is in another process, where that is known.
	remote := map[ptrace.SpanKind]uint32{
		ptrace.SpanKindServer: 0x300, ptrace.SpanKindConsumer: 0x300, ptrace.SpanKindInternal: 0x100, ptrace.SpanKindProducer: 0x100,
	}[s.Kind()]
	if s.Flags() != 1|remote {
		t.Errorf("%s: its flags are %#x", name, s.Flags())
	}
	start, end := s.StartTimestamp().AsTime(), s.EndTimestamp().AsTime()
	if end.Before(start) || time.Since(start) > time.Hour || end.After(time.Now()) {
		t.Errorf("%s: from %s to %s", name, start, end)
	}
}

func text(s spanOf, key string) string {
	v, _ := s.Attributes().Get(key)
	return v.Str()
}

// checkAttributes checks a request at its callee by the semantic conventions.
func checkAttributes(t *testing.T, s spanOf) {
	t.Helper()
	got := s.Attributes().AsRaw()
	for key, want := range map[string]any{
		"rpc.system.name": "agentd", "rpc.method": "hub/cat", "rpc.response.status_code": "OK", "server.address": "hub",
		"messaging.system": "nats", "agentd.mode": "sync", "agentd.attempt": int64(1), "agentd.client.claimed": "desk", // it has no key
	} {
		if got[key] != want {
			t.Errorf("%s is %v and not %v", key, got[key], want)
		}
	}
}

// checkLogs checks that a failed call's line is with its spans: of the same service and trace.
func checkLogs(t *testing.T, c *collector, trace string) {
	t.Helper()
	var line *recordOf
	eventually(t, "the line is there", func() bool {
		for _, r := range c.records("github.com/agentd/agentd") {
			if r.Body().Str() == "skill failed" {
				line = &r
			}
		}
		return line != nil
	})
	of := c.spans(trace)["hub Server hub/fail"]
	if line.TraceID().String() != trace || line.SeverityNumber() != plog.SeverityNumberError || !maps.Equal(line.resource, of.resource) {
		t.Errorf("the line is of the trace %s, severity %s, resource %v and not %v", line.TraceID(), line.SeverityNumber(), line.resource, of.resource)
	}
}

// checkAudit checks that an export brings every record once, whichever way.
func checkAudit(t *testing.T, c *collector, f *fleet, byHTTP, byGRPC []string) {
	t.Helper()
	for to, env := range map[string][]string{"otlp+https://" + c.http: byHTTP, "otlp+grpcs://" + c.grpc: byGRPC} {
		c.mu.Lock()
		c.logs = nil
		c.mu.Unlock()
		if out, err := f.run(env, "audit", "export", "--agent", "hub", "--to", to); err != nil {
			t.Errorf("%s: %v\n%s", to, err, out)
		}
		records := c.records("github.com/agentd/agentd/auditchain")
		calls := map[string]bool{}
		for i, r := range records {
			seq, _ := r.Attributes().Get("agentd.audit.seq")
			if seq.Int() != int64(i+1) || r.Timestamp() == 0 || r.EventName() == "" {
				t.Errorf("record %d is number %d, %q at %s", i, seq.Int(), r.EventName(), r.Timestamp())
			}
			if r.EventName() == "rpc_call" {
				calls[r.TraceID().String()] = true
			}
		}
		if len(calls) != 3 {
			t.Errorf("%s: calls of the traces %v", to, slices.Collect(maps.Keys(calls)))
		}
	}
}

// A collector that refuses for a while, in each way that there is, or that goes away, gets
// every span and line later, and a person is told when that begins and ends.
func TestCollectorRecovers(t *testing.T) {
	busy := func(code codes.Code) error {
		s, err := status.New(code, "busy").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(time.Second)})
		if err != nil {
			t.Fatal(err)
		}
		return s.Err()
	}
	c := newCollector(t, nil)
	f := newFleet(t,
		[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + c.http, "OTEL_LOGS_EXPORTER=otlp"},
		[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + c.grpc, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_LOGS_EXPORTER=otlp"})
	for i, fault := range []struct {
		name       string
		begin, end func()
		http, grpc string // what is told
	}{
		{
			"busy", func() { c.refuse(busy(codes.Unavailable)) }, func() { c.refuse(nil) },
			"the collector answers with the status 503", "the collector answers with the gRPC status 14: busy",
		},
		{
			"exhausted", func() { c.refuse(busy(codes.ResourceExhausted)) }, func() { c.refuse(nil) },
			"the collector answers with the status 429", "the collector answers with the gRPC status 8: busy",
		},
		{"away", c.stop, c.start, "the collector cannot be reached", "the collector cannot be reached"},
	} {
		trace := strings.Repeat(string(rune('5'+i)), 32)
		ended := map[string]int{"desk": f.lines("desk", telemetryEnds), "hub": f.lines("hub", telemetryEnds)}
		fault.begin()
		f.request("cat", trace)
		for agent, cause := range map[string]string{"desk": fault.http, "hub": fault.grpc} {
			eventually(t, fault.name+": "+agent+" tells "+cause, func() bool { return f.lines(agent, telemetryBegins, cause) > 0 })
		}
		if got := len(c.spans(trace)); got != 0 {
			t.Errorf("%s: %d spans were taken", fault.name, got)
		}
		fault.end()
		eventually(t, fault.name+": the spans arrive", func() bool { return len(c.spans(trace)) == 3 })
		for agent, before := range ended {
			eventually(t, fault.name+": "+agent+" tells the end", func() bool { return f.lines(agent, telemetryEnds) > before })
		}
	}
	if log := f.read("hub.log") + f.read("desk.log"); strings.Contains(log, "lost") {
		t.Error("something was lost")
	}
}

// What the lines have that tell that traces do not arrive, and that they do again.
const (
	telemetryBegins = `"msg":"traces do not reach their collector"`
	telemetryEnds   = `"msg":"over: traces do not reach their collector"`
)

// What a collector refuses for good is lost, and told.
func TestCollectorRefuses(t *testing.T) {
	c := newCollector(t, nil)
	f := newFleet(t,
		[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + c.http},
		[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + c.grpc, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"})
	c.refuse(status.Error(codes.ResourceExhausted, "for good"))
	f.request("cat", strings.Repeat("9", 32))
	eventually(t, "hub tells", func() bool {
		return f.lines("hub", `"msg":"traces were lost"`, "the collector answers with the gRPC status 8: for good") > 0
	})
	c.refuse(nil)
	f.request("cat", strings.Repeat("8", 32))
	eventually(t, "later spans arrive", func() bool { return len(c.spans(strings.Repeat("8", 32))) == 3 })
}
