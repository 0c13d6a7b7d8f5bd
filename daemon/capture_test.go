package daemon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/rpc"
)

// breakSchema makes a call whose payload breaks its schema, and returns what the
// caller's audit log then holds on the disk.
func breakSchema(t *testing.T, cfg daemon.Config, payload string) []byte {
	t.Helper()
	cfg.Handlers = handle(func(context.Context, *rpc.Invocation) (json.RawMessage, error) { return nil, errors.New("called") })
	f := startFleet(t, cfg)
	d, _ := f.Daemon("caller")
	_, err := d.Client().RequestAgent(t.Context(), rpc.Request{To: "agent://callee", Capability: "go", Payload: json.RawMessage(payload)})
	if rpc.CodeOf(err) != rpc.CodeSchemaViolation {
		t.Fatal(err)
	}
	onDisk := auditFiles(t, cfg, "caller")
	stop(t, f)
	return onDisk
}

// Payloads are in no record, unless the operator asks for those of a capability.
func TestPayloadCapture(t *testing.T) {
	const canary = "CANARY-77e0"
	payload := `{"n":"` + canary + `", "x": 1e400}` // kept as it stands, even where JSON has no canonical form
	for _, test := range []struct {
		audit   string
		capture int // records
		kept    bool
	}{
		{"", 0, false},
		{"audit: {capture: [other]}\n", 0, false},
		{"audit: {capture: [go]}\n", 1, true},
		{"audit: {capture: [go], captureMaxBytes: 8}\n", 1, false},
	} {
		t.Run(test.audit, func(t *testing.T) {
			all := files()
			all["caller/agent.yaml"] = "name: caller\n" + test.audit
			cfg := load(t, all)
			if onDisk := breakSchema(t, cfg, payload); bytes.Contains(onDisk, []byte(canary)) != test.kept {
				t.Errorf("on the disk: %v, want %v", !test.kept, test.kept)
			}
			violations := ofKind(t, cfg, "caller", auditchain.KindSchemaViolation)
			captures := ofKind(t, cfg, "caller", auditchain.KindPayloadCapture)
			if len(violations) != 1 || len(captures) != test.capture {
				t.Fatalf("%d violations and %d captures are recorded", len(violations), len(captures))
			}
			if test.capture == 0 {
				return
			}
			got := captures[0]
			if got["correlationId"] != violations[0]["correlationId"] || got["capabilityName"] != "go" || got["side"] != "request" ||
				got["bytes"] != float64(len(payload)) || test.kept && got["payload"] != payload || !test.kept && got["payload"] != nil {
				t.Errorf("captured %v", got)
			}
		})
	}
}

// What was captured can be erased for good, while the violation stays.
func TestCapturedPayloadIsErasable(t *testing.T) {
	const canary = "CANARY-93aa"
	all := files()
	all["caller/agent.yaml"] = "name: caller\naudit: {capture: [go]}\n"
	cfg := load(t, all)
	breakSchema(t, cfg, `{"n":"`+canary+`"}`)
	log, err := auditchain.Open(t.Context(), cfg.Paths.AuditDB("caller"), auditchain.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = log.Redact(t.Context(), auditchain.Filter{Kinds: []auditchain.Kind{auditchain.KindPayloadCapture}}, "no longer needed")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(auditFiles(t, cfg, "caller"), []byte(canary)) {
		t.Error("the payload is still on the disk")
	}
	report, err := log.Verify(t.Context(), auditchain.VerifyOptions{})
	if err != nil || report.Erased != 1 || len(report.Faults) != 0 {
		t.Errorf("%+v, %v", report, err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if n := len(ofKind(t, cfg, "caller", auditchain.KindSchemaViolation)); n != 1 {
		t.Errorf("%d violations are left", n)
	}
}
