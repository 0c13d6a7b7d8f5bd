package rpc_test

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/rpctest"
)

func TestRequestJSON(t *testing.T) {
	r := rpc.Request{To: rpctest.Reviewer, Capability: "x", Payload: json.RawMessage(`[1]`), Timeout: 1500 * time.Millisecond, Mode: rpc.ModeSync, SessionID: "s", TenantID: "acme"}
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"to":"agent://pr-reviewer","capability":"x","payload":[1],"mode":"sync","sessionId":"s","tenantId":"acme","timeoutMs":1500}`; string(data) != want {
		t.Errorf("got %s", data)
	}
	var back rpc.Request
	if err := json.Unmarshal(data, &back); err != nil || !reflect.DeepEqual(back, r) {
		t.Errorf("round trip: %+v, %v", back, err)
	}
	for _, bad := range []string{`{"capabilty":"x"}`, `{"timeoutMs":-1}`, `{"timeoutMs":1e12}`, `[]`, `{"to":7}`} {
		if err := json.Unmarshal([]byte(bad), &back); err == nil {
			t.Errorf("%s is read as a request", bad)
		}
	}
	data, _ = json.Marshal(rpc.Request{Timeout: time.Microsecond})
	if !strings.Contains(string(data), `"timeoutMs":1`) {
		t.Errorf("a timeout under 1 ms becomes the default: %s", data)
	}
}

// Timeouts are whole milliseconds in JSON, up to what fits a duration.
func TestRequestTimeouts(t *testing.T) {
	for text, want := range map[string]rpc.Request{
		`{"timeoutMs":0}`:              {},
		`{"timeoutMs":9000000000}`:     {Timeout: 9_000_000_000 * time.Millisecond},
		`{"idleTimeoutMs":9000000000}`: {IdleTimeout: 9_000_000_000 * time.Millisecond},
		`{"idleTimeoutMs":7}`:          {IdleTimeout: 7 * time.Millisecond},
	} {
		var got rpc.Request
		if err := json.Unmarshal([]byte(text), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, name := range []string{"timeoutMs", "idleTimeoutMs"} {
		for _, bad := range []string{"-1", "9000000001"} {
			err := json.Unmarshal([]byte(`{"`+name+`":`+bad+`}`), &rpc.Request{})
			if err == nil || !strings.HasPrefix(err.Error(), name+": must be between 0 and") {
				t.Errorf("%s of %s: %v", name, bad, err)
			}
		}
	}
	for d, want := range map[time.Duration]string{
		1: "1", time.Millisecond - 1: "1", time.Millisecond: "1", 2*time.Millisecond - 1: "1", 2 * time.Millisecond: "2", -time.Millisecond: "-1",
	} {
		data, err := json.Marshal(rpc.Request{IdleTimeout: d})
		if err != nil || !strings.Contains(string(data), `"idleTimeoutMs":`+want+`}`) {
			t.Errorf("%s is %s, want %s", d, data, want)
		}
	}
}

// The keys of the ARAL standard mean the same as ours.
func TestRequestSynonyms(t *testing.T) {
	for text, want := range map[string]rpc.Request{
		`{"to":"agent://a","capability_id":"web_search","parameters":{"query":"x","n":1.0},"timeout_ms":30000}`: {
			To: "agent://a", Capability: "web_search", Payload: json.RawMessage(`{"query":"x","n":1.0}`), Timeout: 30 * time.Second,
		},
		`{"idle_timeout_ms":7,"idempotency_key":"k","session_id":"s"}`: {IdleTimeout: 7 * time.Millisecond, IdempotencyKey: "k", SessionID: "s"},
		`{"parameters":null}`: {Payload: json.RawMessage(`null`)},
	} {
		var got rpc.Request
		if err := json.Unmarshal([]byte(text), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, both := range [][2]string{
		{`"capability":"x"`, `"capability_id":"x"`}, {`"payload":1`, `"parameters":1`}, {`"timeoutMs":1`, `"timeout_ms":1`},
		{`"idleTimeoutMs":1`, `"idle_timeout_ms":1`}, {`"idempotencyKey":"k"`, `"idempotency_key":"k"`}, {`"sessionId":"s"`, `"session_id":"s"`},
		{`"traceId":"0af7651916cd43dd8448eb211c80319c"`, `"trace_id":"0af7651916cd43dd8448eb211c80319c"`},
	} {
		name, _, _ := strings.Cut(both[1], ":")
		err := json.Unmarshal([]byte(`{`+both[0]+`,`+both[1]+`}`), &rpc.Request{})
		if err == nil || !strings.Contains(err.Error(), strings.Trim(name, `"`)+" are the same") {
			t.Errorf("%s with %s: %v", both[0], both[1], err)
		}
	}
}

// A request joins a trace that is given whole, or by its id.
func TestRequestTrace(t *testing.T) {
	const id, parent = "0af7651916cd43dd8448eb211c80319c", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, text := range []string{
		`{"traceparent":"` + parent + `"}`, `{"trace_id":"` + id + `"}`, `{"traceId":"0AF76519-16CD-43DD-8448-EB211C80319C"}`,
		`{"traceparent":"` + parent + `","trace_id":"` + id + `"}`,
	} {
		var r rpc.Request
		if err := json.Unmarshal([]byte(text), &r); err != nil || rpc.TraceID(r.Traceparent) != id {
			t.Errorf("%s: %q, %v", text, r.Traceparent, err)
		}
		if strings.Contains(text, parent) && r.Traceparent != parent {
			t.Errorf("%s: %q", text, r.Traceparent)
		}
		again, err := json.Marshal(r)
		if err != nil || !strings.Contains(string(again), `"traceparent":"`+r.Traceparent+`"`) || strings.Contains(string(again), "traceId") {
			t.Errorf("%s, %v", again, err)
		}
	}
	for _, bad := range []string{
		`{"trace_id":"uuid"}`, `{"traceId":"` + strings.Repeat("0", 32) + `"}`, `{"traceparent":"` + parent + `","traceId":"` + strings.Repeat("1", 32) + `"}`,
	} {
		if err := json.Unmarshal([]byte(bad), &rpc.Request{}); err == nil || !strings.HasPrefix(err.Error(), "traceId: ") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestWantsProgress(t *testing.T) {
	for _, test := range []struct {
		request rpc.Request
		want    bool
	}{
		{rpc.Request{}, false}, {rpc.Request{IdleTimeout: 1}, true}, {rpc.Request{IdleTimeout: -1}, false},
		{rpc.Request{OnProgress: func(rpc.ProgressEvent) {}}, true},
	} {
		if got := test.request.WantsProgress(); got != test.want {
			t.Errorf("%+v wants progress: %v", test.request, got)
		}
	}
}

// The call's timeout goes before the capability's, and both are clamped.
func TestEffectiveTimeout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		duration := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(-10, 10), rapid.Int64Range(math.MinInt64, math.MaxInt64))
		asked, declared := time.Duration(duration.Draw(t, "asked")), time.Duration(duration.Draw(t, "declared"))
		want := rpc.DefaultTimeout
		if declared > 0 {
			want = declared
		}
		if asked > 0 {
			want = asked
		}
		want = max(want, rpc.MinTimeout)
		want = min(want, rpc.MaxTimeout)
		if got := rpc.EffectiveTimeout(asked, declared); got != want {
			t.Fatalf("EffectiveTimeout(%d, %d) = %s, want %s", asked, declared, got, want)
		}
	})
}
