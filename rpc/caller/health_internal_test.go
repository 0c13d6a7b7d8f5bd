package caller

import (
	"testing"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
)

// A breaker counts what every other caller would have met too: that the callee does
// not answer in the time that it asks for, or fails by itself. An answer, even one that
// refuses the call, shows that the callee works.
func TestHealth(t *testing.T) {
	const self, peer = envelope.Address("agent://self"), envelope.Address("agent://peer")
	const declared, enough = 10 * time.Second, 9 * time.Second
	for _, test := range []struct {
		name    string
		code    rpc.Code // 0: none
		by      envelope.Address
		replied bool
		took    time.Duration
		want    policy.Outcome
	}{
		{"an answer", 0, "", true, 0, policy.Succeeded},
		{"sent, and no answer asked for", 0, "", false, 0, policy.Inconclusive},
		{"silence", rpc.CodeTimeout, "", false, enough, policy.Failed},
		{"silence for less than the callee asks for", rpc.CodeTimeout, "", false, enough - 1, policy.Inconclusive},
		{"timed out after progress", rpc.CodeTimeout, "", true, enough, policy.Failed},
		{"the skill was too slow", rpc.CodeDeadlineExceeded, peer, true, enough, policy.Failed},
		{"the skill had too little time", rpc.CodeDeadlineExceeded, peer, true, enough - 1, policy.Inconclusive},
		{"no time was left to begin", rpc.CodeDeadlineExceeded, "", false, enough, policy.Inconclusive},
		{"the callee's own fault", rpc.CodeInternal, peer, true, 0, policy.Failed},
		{"this end's own fault", rpc.CodeInternal, "", false, 0, policy.Inconclusive},
		{"this end's own fault, after a reply", rpc.CodeInternal, "", true, 0, policy.Succeeded},
		{"the fault of another, passed on", rpc.CodeInternal, "agent://third", true, 0, policy.Succeeded},
		{"the skill failed", rpc.CodeHandlerError, peer, true, 0, policy.Succeeded},
		{"busy", rpc.CodeBusy, peer, true, 0, policy.Inconclusive},
		{"busy here", rpc.CodeBusy, "", false, 0, policy.Inconclusive},
		{"rate limited there", rpc.CodeRateLimited, peer, true, 0, policy.Inconclusive},
		{"its audit log is full", rpc.CodeAuditFailed, peer, true, 0, policy.Inconclusive},
		{"this end's audit log is full", rpc.CodeAuditFailed, "", true, 0, policy.Succeeded},
		{"denied", rpc.CodeDenied, peer, true, time.Hour, policy.Succeeded},
		{"a bad request", rpc.CodeSchemaViolation, peer, true, 0, policy.Succeeded},
		{"a bad answer", rpc.CodeSchemaViolation, "", true, 0, policy.Succeeded},
		{"nobody is there", rpc.CodeNoResponders, "", false, time.Hour, policy.Inconclusive},
		{"the broker is away", rpc.CodeDisconnected, "", false, time.Hour, policy.Inconclusive},
		{"cancelled", rpc.CodeCancelled, "", false, time.Hour, policy.Inconclusive},
		{"no proof", rpc.CodeAuthFailed, "", false, time.Hour, policy.Inconclusive},
	} {
		c := &call{peer: rpc.Peer{Address: peer}, capability: &capability.Capability{Timeout: declared}}
		var err *rpc.Error
		if test.code != 0 {
			err = &rpc.Error{Code: test.code, DetectedBy: test.by}
		}
		if got := c.health(err, test.replied, test.took); got != test.want {
			t.Errorf("%s: outcome %d, want %d", test.name, got, test.want)
		}
	}
	// A callee that declares no time asks for the default.
	for _, c := range []*call{{}, {capability: &capability.Capability{}}} {
		if c.hadItsTime(rpc.DefaultTimeout*9/10-1) || !c.hadItsTime(rpc.DefaultTimeout*9/10) {
			t.Errorf("%+v: not measured by the default", c.capability)
		}
	}
}

// What a peer reports of a run is believed as far as it can be true.
func TestReadExecution(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "1": time.Microsecond, "1500000": 1500 * time.Millisecond,
		"600000000": rpc.MaxTimeout, "600000001": 0, // no run takes longer than a call may
		"-1": 0, "-600000000": 0, "9223372036854775807": 0, "9223372036854775808": 0, "-9223372036854775808": 0,
		"": 0, "1.5": 0, "1e3": 0, " 1": 0, "0x10": 0, "1us": 0,
	} {
		c := &call{run: run{took: time.Hour}} // of an earlier attempt
		c.readRun(envelope.Headers{{Key: envelope.HeaderExecution, Value: text}})
		if c.run.took != want || c.run.replayed {
			t.Errorf("%q: %s, replayed %v, want %s", text, c.run.took, c.run.replayed, want)
		}
	}
	for text, want := range map[string]bool{"true": true, "True": false, "1": false, "": false, "false": false} {
		c := &call{run: run{replayed: true}}
		c.readRun(envelope.Headers{{Key: envelope.HeaderReplayed, Value: text}})
		if c.run.replayed != want {
			t.Errorf("%q: replayed %v", text, c.run.replayed)
		}
	}
	c := &call{run: run{took: time.Hour, replayed: true}}
	if c.readRun(nil); c.run.took != 0 || c.run.replayed {
		t.Errorf("without headers: %s, replayed %v", c.run.took, c.run.replayed)
	}
}
