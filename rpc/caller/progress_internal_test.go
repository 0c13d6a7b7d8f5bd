package caller

import (
	"encoding/json"
	"strconv"
	"testing"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
)

func wantsProgress() *rpc.Request {
	return &rpc.Request{OnProgress: func(rpc.ProgressEvent) {}}
}

// Whatever a peer sends, the events that arrive have rising numbers from 1, and a
// reader that does not read blocks nobody.
func FuzzProgressStream(f *testing.F) {
	f.Add("1", "2", "2", 10)
	f.Add("-1", "+7", "0x1", 0)
	f.Add("99999999999999999999", "", "1", rpc.MaxProgressBytes+1)
	f.Add("9223372036854775807", "9223372036854775807", "1", rpc.MaxProgressBytes)
	f.Fuzz(func(t *testing.T, one, two, three string, size int) {
		s := newProgressStream(wantsProgress())
		added := 0
		for range progressQueue { // three times as many as fit
			for _, seq := range []string{one, two, three} {
				e := &envelope.Envelope{Headers: envelope.Headers{{Key: envelope.HeaderProgress, Value: seq}}}
				e.Payload = make(json.RawMessage, min(max(size, 0), rpc.MaxProgressBytes+1))
				if s.add(e) == "" {
					added++
				}
			}
		}
		close(s.events)
		last, arrived := 0, 0
		for e := range s.events {
			if e.Seq <= last || len(e.Value) > rpc.MaxProgressBytes {
				t.Errorf("event %d of %d bytes after %d", e.Seq, len(e.Value), last)
			}
			last = e.Seq
			arrived++
		}
		if arrived != min(added, progressQueue) {
			t.Errorf("added %d, %d arrived", added, arrived)
		}
	})
}

func TestProgressStreamLosesTheNewest(t *testing.T) {
	s := newProgressStream(wantsProgress())
	const sent = 3 * progressQueue
	for i := range sent {
		e := &envelope.Envelope{Headers: envelope.Headers{{Key: envelope.HeaderProgress, Value: strconv.Itoa(i + 1)}}}
		if why := s.add(e); why != "" {
			t.Fatalf("event %d is refused: %s", i+1, why)
		}
	}
	if len(s.events) != progressQueue {
		t.Fatalf("%d events wait", len(s.events))
	}
	for i := range progressQueue {
		if e := <-s.events; e.Seq != i+1 || string(e.Value) != "null" {
			t.Errorf("event %d is %+v", i+1, e)
		}
	}
}
