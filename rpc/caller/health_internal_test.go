package caller

import (
	"testing"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
)

// A breaker counts what the peer is to blame for: that it does not answer in a fair
// time, or that it fails by itself. An answer, even one that refuses the call, shows
// that the peer works.
func TestHealth(t *testing.T) {
	const self, peer = envelope.Address("agent://self"), envelope.Address("agent://peer")
	for _, test := range []struct {
		name    string
		code    rpc.Code // 0: none
		by      envelope.Address
		replied bool
		took    time.Duration
		want    policy.Outcome
	}{
		{"an answer", 0, "", true, 0, policy.Succeeded},
		{"sent, and no answer asked for", 0, "", false, 0, policy.Succeeded},
		{"silence", rpc.CodeTimeout, self, false, fairChance, policy.Failed},
		{"a hasty caller", rpc.CodeTimeout, self, false, fairChance - 1, policy.Inconclusive},
		{"timed out after progress", rpc.CodeTimeout, self, true, fairChance, policy.Failed},
		{"the skill was too slow", rpc.CodeDeadlineExceeded, peer, true, fairChance, policy.Failed},
		{"the skill had no time", rpc.CodeDeadlineExceeded, peer, true, fairChance - 1, policy.Inconclusive},
		{"no time was left to begin", rpc.CodeDeadlineExceeded, self, false, fairChance, policy.Inconclusive},
		{"the peer's own fault", rpc.CodeInternal, peer, true, 0, policy.Failed},
		{"this end's own fault", rpc.CodeInternal, self, false, 0, policy.Inconclusive},
		{"this end's own fault, after a reply", rpc.CodeInternal, self, true, 0, policy.Succeeded},
		{"the fault of another, passed on", rpc.CodeInternal, "agent://third", true, 0, policy.Succeeded},
		{"the skill failed", rpc.CodeHandlerError, peer, true, 0, policy.Succeeded},
		{"busy", rpc.CodeBusy, peer, true, 0, policy.Succeeded},
		{"busy here", rpc.CodeBusy, self, false, 0, policy.Inconclusive},
		{"denied", rpc.CodeDenied, peer, true, time.Hour, policy.Succeeded},
		{"a bad answer", rpc.CodeSchemaViolation, self, true, 0, policy.Succeeded},
		{"nobody is there", rpc.CodeNoResponders, self, false, time.Hour, policy.Inconclusive},
		{"the broker is away", rpc.CodeDisconnected, self, false, time.Hour, policy.Inconclusive},
		{"cancelled", rpc.CodeCancelled, self, false, time.Hour, policy.Inconclusive},
	} {
		c := &call{peer: rpc.Peer{Address: peer}}
		var err *rpc.Error
		if test.code != 0 {
			err = &rpc.Error{Code: test.code, DetectedBy: test.by}
		}
		if got := c.health(err, test.replied, test.took); got != test.want {
			t.Errorf("%s: outcome %d, want %d", test.name, got, test.want)
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
