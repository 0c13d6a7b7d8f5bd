package check

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/identity"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/internal/wire"
)

// A ledger keeps records, or fails, and notes how long it was given.
type ledger struct {
	fail       error
	violations []rpc.SchemaViolation
	refusals   []rpc.Refusal
	given      time.Duration
}

func (l *ledger) RecordSchemaViolation(ctx context.Context, v rpc.SchemaViolation) error {
	l.violations = append(l.violations, v)
	return l.end(ctx)
}

func (l *ledger) RecordRefusal(ctx context.Context, r rpc.Refusal) error {
	l.refusals = append(l.refusals, r)
	return l.end(ctx)
}

func (l *ledger) RecordCall(rpc.CallRecord) {}
func (l *ledger) Refuses() error            { return l.fail }

func (l *ledger) end(ctx context.Context) error {
	if d, ok := ctx.Deadline(); ok {
		l.given = time.Until(d)
	}
	return errors.Join(l.fail, ctx.Err())
}

func (l *ledger) records() rpc.Records { return rpc.Records{Auditor: l, Refusals: l, Access: l} }

// Records are written although the call has been cancelled, in bounded time, and a
// failure to write them is the call's.
func TestRecordsOutliveTheCall(t *testing.T) {
	full := errors.New("disk full")
	for _, fail := range []error{nil, full} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			for name, write := range map[string]func(*ledger) *rpc.Error{
				"violation": func(l *ledger) *rpc.Error {
					return Violation(ctx, l.records(), rpc.SchemaViolation{Capability: "x", Side: rpc.SideRequest})
				},
				"refusal": func(l *ledger) *rpc.Error { return Refusal(ctx, l.records(), rpc.Refusal{Capability: "x"}) },
			} {
				l := &ledger{fail: fail}
				err := write(l)
				if (err == nil) != (fail == nil) || err != nil && (err.Code != rpc.CodeAuditFailed || !errors.Is(err, full)) {
					t.Errorf("%s: %v", name, err)
				}
				if l.given != RecordTimeout {
					t.Errorf("%s: had %s to write", name, l.given)
				}
				if len(l.violations)+len(l.refusals) != 1 {
					t.Fatalf("%s: %d records", name, len(l.violations)+len(l.refusals))
				}
				for _, v := range l.violations {
					if !v.Time.Equal(time.Now()) || v.Capability != "x" {
						t.Errorf("record %+v", v)
					}
				}
				for _, r := range l.refusals {
					if !r.Time.Equal(time.Now()) || r.Capability != "x" {
						t.Errorf("record %+v", r)
					}
				}
			}
		})
	}
}

func TestRecordable(t *testing.T) {
	full := errors.New("disk full")
	for _, test := range []struct {
		records rpc.Records
		want    error
	}{{rpc.Records{}, nil}, {rpc.Records{Access: &ledger{}}, nil}, {rpc.Records{Access: &ledger{fail: full}}, full}} {
		err := Recordable(test.records)
		if (err == nil) != (test.want == nil) || err != nil && (err.Code != rpc.CodeAuditFailed || !errors.Is(err, full)) {
			t.Errorf("%v, want %v", err, test.want)
		}
	}
}

func TestComplete(t *testing.T) {
	l := &ledger{}
	for _, test := range []struct {
		records rpc.Records
		refuses bool
		missing string
	}{
		{rpc.Records{}, false, "Records.Auditor"},
		{rpc.Records{Refusals: l}, true, "Records.Auditor"},
		{rpc.Records{Auditor: l}, true, "Records.Refusals"},
		{rpc.Records{Auditor: l}, false, ""},
		{rpc.Records{Auditor: l, Refusals: l}, true, ""},
	} {
		err := Complete(test.records, test.refuses)
		if test.missing == "" && err != nil || test.missing != "" && (err == nil || !strings.Contains(err.Error(), test.missing)) {
			t.Errorf("%+v, refuses %v: %v, want %q", test.records, test.refuses, err, test.missing)
		}
	}
}

// The record of a refused proof repeats the claims of the message, cut to what a log
// can hold, and no more than RecordsPerSecond of them are written.
func TestRefusedProofsAreRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		v := NewVerifier(rpc.RoleCallee, nil, l.records())
		e := &envelope.Envelope{
			From: "agent://mallory", TenantID: "acme", Capability: strings.Repeat("c", wire.MaxName+1), CorrelationID: strings.Repeat("i", wire.MaxName+1),
		}
		why := &identity.Error{Reason: identity.Replayed, Peer: "agent://mallory"}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := v.Record(ctx, e, why); err != nil || l.given != RecordTimeout {
			t.Fatalf("%v, had %s to write", err, l.given)
		}
		r := l.refusals[0]
		if !r.Time.Equal(time.Now()) || r.Role != rpc.RoleCallee || r.Code != rpc.CodeAuthFailed || r.Peer != "agent://mallory" || r.TenantID != "acme" ||
			r.Capability != strings.Repeat("c", wire.MaxName)+"…" || r.CorrelationID != strings.Repeat("i", wire.MaxName)+"…" || r.Proof != why || r.Unrecorded != 0 {
			t.Errorf("record %+v", r)
		}
		if len(r.TraceID) != 32 {
			t.Errorf("the record is of the trace %q", r.TraceID)
		}
		e.TenantID = "a\n"
		if err := v.Record(ctx, e, errors.New("strange")); err != nil {
			t.Fatal(err)
		}
		if r = l.refusals[1]; r.TenantID != "" || r.Proof == nil || r.Proof.Reason != identity.BadSignature || r.Proof.Peer != "agent://mallory" {
			t.Errorf("record %+v", r)
		}
		for range 100 {
			if err := v.Record(ctx, e, why); err != nil {
				t.Fatal(err)
			}
		}
		written := len(l.refusals)
		if written > 2*RecordsPerSecond {
			t.Errorf("%d records at once", written)
		}
		time.Sleep(time.Second)
		if err := v.Record(ctx, e, why); err != nil {
			t.Fatal(err)
		}
		if got := l.refusals[len(l.refusals)-1].Unrecorded; int(got) != 102-written {
			t.Errorf("%d are counted, want %d", got, 102-written)
		}
		l.fail = errors.New("disk full")
		time.Sleep(time.Second)
		if err := v.Record(ctx, e, why); !errors.Is(err, l.fail) {
			t.Errorf("%v", err)
		}
	})
	if err := NewVerifier(rpc.RoleCaller, nil, rpc.Records{}).Record(t.Context(), &envelope.Envelope{}, errors.New("x")); err != nil {
		t.Errorf("without a log: %v", err)
	}
}

func TestVerify(t *testing.T) {
	e := &envelope.Envelope{Kind: envelope.Event, MessageID: "m", CorrelationID: "c", From: "agent://b", To: "agent://a", Capability: "x"}
	if proven, err := NewVerifier(rpc.RoleCaller, nil, rpc.Records{}).Verify(e); proven || err != nil {
		t.Errorf("without an identity: %v, %v", proven, err)
	}
	ring := func(self, other envelope.Address) *identity.Keyring {
		k, err := identity.NewKeyring(identity.Options{Self: self, Require: true, Peers: map[envelope.Address]identity.Peer{
			other: {Secrets: []identity.Secret{{ID: "k", Key: []byte("a secret of the agents")}}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	v := NewVerifier(rpc.RoleCaller, ring("agent://a", "agent://b"), rpc.Records{})
	if proven, err := v.Verify(e); proven || identity.ReasonOf(err) != identity.MissingAuth {
		t.Errorf("without a proof: %v, %v", proven, err)
	}
	data, err := e.EncodeSigned(ring("agent://b", "agent://a"))
	if err != nil {
		t.Fatal(err)
	}
	signed, err := envelope.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if proven, err := v.Verify(signed); !proven || err != nil {
		t.Errorf("with a proof: %v, %v", proven, err)
	}
}

// Whoever waits as long as the error says must not come too early.
func TestRateLimited(t *testing.T) {
	reset := time.Date(2026, 1, 2, 3, 4, 5, 1, time.FixedZone("", 3600))
	f := lookup(t, "loose", true)
	f.RateLimit = &capability.RateLimit{Requests: 7, Period: time.Minute, Burst: 3}
	err := RateLimited(policy.Quota{Limit: 7, Remaining: 1, RetryAfter: 1500*time.Millisecond + 1, ResetAt: reset}, "agent://a", f)
	want := `{"error":"rate_limit_exceeded","message":"Too many requests","retry_after_seconds":2,"limit":7,"remaining":1,"reset_at":"2026-01-02T02:04:06Z"}`
	if err.Code != rpc.CodeRateLimited || string(err.Details) != want || err.RetryAfter() != 1500*time.Millisecond+1 ||
		err.Message != "rate limit exceeded: loose of agent://a lets each caller make 3 calls at once, and allows 7 more every 1m; the next one is possible in 1.501s" {
		t.Errorf("%v %s, want %s", err, err.Details, want)
	}
	for d, want := range map[time.Duration]string{
		0: `{"retry_after_seconds":0}`, 1: `{"retry_after_seconds":1}`, time.Second: `{"retry_after_seconds":1}`, time.Second + 1: `{"retry_after_seconds":2}`,
	} {
		if err := Busy(d, nil, "%d", 1); string(err.Details) != want || err.RetryAfter() != d || err.Code != rpc.CodeBusy || err.Message != "1" {
			t.Errorf("%s: %+v, want %s", d, err, want)
		}
	}
}

// Periods are shown as their owner would write them.
func TestBrief(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 1500 * time.Millisecond: "1.5s", 10 * time.Second: "10s", time.Minute: "1m", 90 * time.Second: "1m30s",
		10 * time.Minute: "10m", time.Hour: "1h", 20 * time.Hour: "20h", 70 * time.Minute: "1h10m", time.Hour + time.Second: "1h0m1s",
	} {
		if got := brief(d); got != want {
			t.Errorf("%d is %s, want %s", d, got, want)
		}
	}
}
