package caller

import (
	"testing"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
)

// What a reply says of the run is the peer's word: it is believed within bounds, and
// the number of a delivery only where a queue repeats requests.
func TestReadRun(t *testing.T) {
	for _, test := range []struct {
		name, execution, attempt, delivery string
		reported                           bool
		took                               time.Duration
		attempted                          int
	}{
		{"nothing", "", "", envelope.DeliveryDurable, false, 0, 1},
		{"no time at all", "0", "", "", true, 0, 1},
		{"half a second", "500000", "2", "", true, 500 * time.Millisecond, 1},
		{"the longest run", "600000000", "3", envelope.DeliveryDurable, true, rpc.MaxTimeout, 3},
		{"longer than any run", "600000001", "1048576", envelope.DeliveryDurable, false, 0, 1 << 20},
		{"less than nothing", "-1", "1048577", envelope.DeliveryDurable, false, 0, 1},
		{"no numbers", "x", "x", envelope.DeliveryDurable, false, 0, 1},
	} {
		c := &call{delivery: test.delivery, attempted: 1}
		c.readRun(envelope.Headers{{Key: envelope.HeaderExecution, Value: test.execution}, {Key: envelope.HeaderAttempt, Value: test.attempt}})
		if c.run.reported != test.reported || c.run.took != test.took || c.attempted != test.attempted || !c.run.replied {
			t.Errorf("%s: %+v, attempt %d", test.name, c.run, c.attempted)
		}
	}
}

// A callee stops a twentieth of the time earlier, and 50 ms at most.
func TestReplyMargin(t *testing.T) {
	for left, want := range map[time.Duration]time.Duration{
		-time.Second: 0, 0: 0, 200 * time.Millisecond: 10 * time.Millisecond, time.Second: 50 * time.Millisecond, time.Minute: 50 * time.Millisecond,
	} {
		if got := replyMargin(left); got != want {
			t.Errorf("with %s left it is %s, want %s", left, got, want)
		}
	}
}
