package skill_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
)

// environmentOf returns the environment of a program that serves inv.
func environmentOf(t *testing.T, inv *rpc.Invocation) (map[string]string, error) {
	t.Helper()
	p, _ := program("env")
	p.InheritEnv = []string{"AGENTD_*", "TRACEPARENT"}
	out, err := p.Handle(t.Context(), inv)
	if err != nil {
		return nil, err
	}
	var env map[string]string
	if err := json.Unmarshal(out, &env); err != nil {
		t.Fatal(err)
	}
	return env, nil
}

// Everything that the caller has said of its call is in a variable; what it has not
// said is empty, also where agentd itself runs inside of another call.
func TestProgramsKnowTheirCall(t *testing.T) {
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	inv := invocation(`{}`)
	inv.From, inv.Proven, inv.MessageID, inv.SessionID, inv.TenantID = "agent://desk", true, "m-1", "s-1", "acme"
	inv.IdempotencyKey, inv.Traceparent, inv.Hops = "k-1", trace, 3
	said := map[string]string{
		"AGENTD_CALLER": "agent://desk", "AGENTD_MESSAGE_ID": "m-1", "AGENTD_CORRELATION_ID": "c-1", "AGENTD_SESSION_ID": "s-1",
		"AGENTD_TENANT_ID": "acme", "AGENTD_IDEMPOTENCY_KEY": "k-1", "AGENTD_TRACEPARENT": trace, "TRACEPARENT": trace,
		"AGENTD_CALLER_PROVEN": "true", "AGENTD_HOPS": "3", "AGENTD_CAPABILITY": "review-pr", "AGENTD_DEADLINE": "1800000000000", "AGENTD_CALL": "",
	}
	bare := map[string]string{"AGENTD_HOPS": "1", "AGENTD_CAPABILITY": "x", "AGENTD_CALLER_PROVEN": "false"}
	for name := range said {
		t.Setenv(name, "of another call")
	}
	for _, test := range []struct {
		inv  *rpc.Invocation
		want map[string]string
	}{{inv, said}, {&rpc.Invocation{Capability: "x", Payload: json.RawMessage("1")}, bare}} {
		env, err := environmentOf(t, test.inv)
		if err != nil {
			t.Fatal(err)
		}
		for name := range said {
			if got, ok := env[name]; got != test.want[name] || !ok {
				t.Errorf("%s=%q, set %v, want %q", name, got, ok, test.want[name])
			}
		}
	}
}

// What a variable cannot hold fails the call, by name: without it the program would
// act for another tenant, or twice.
func TestCallsThatNoEnvironmentHolds(t *testing.T) {
	for name, change := range map[string]func(*rpc.Invocation, string){
		"AGENTD_CALLER":          func(inv *rpc.Invocation, v string) { inv.From = envelope.Address(v) },
		"AGENTD_MESSAGE_ID":      func(inv *rpc.Invocation, v string) { inv.MessageID = v },
		"AGENTD_CORRELATION_ID":  func(inv *rpc.Invocation, v string) { inv.CorrelationID = v },
		"AGENTD_SESSION_ID":      func(inv *rpc.Invocation, v string) { inv.SessionID = v },
		"AGENTD_TENANT_ID":       func(inv *rpc.Invocation, v string) { inv.TenantID = v },
		"AGENTD_IDEMPOTENCY_KEY": func(inv *rpc.Invocation, v string) { inv.IdempotencyKey = v },
		"AGENTD_TRACEPARENT":     func(inv *rpc.Invocation, v string) { inv.Traceparent = v },
	} {
		for value, fails := range map[string]bool{"a\x00b": true, strings.Repeat("v", 8<<10+1): true, strings.Repeat("v", 8<<10): false, "a\nb='$(id)'": false} {
			inv := invocation(`{}`)
			change(inv, value)
			env, err := environmentOf(t, inv)
			var public *rpc.SkillError
			if fails && (!errors.As(err, &public) || !strings.HasPrefix(public.Message, name+" cannot hold") || public.Retryable) {
				t.Errorf("%s, %d bytes: %v", name, len(value), err)
			}
			if !fails && (err != nil || env[name] != value) {
				t.Errorf("%s, %d bytes: %q, %v", name, len(value), env[name], err)
			}
		}
	}
}
