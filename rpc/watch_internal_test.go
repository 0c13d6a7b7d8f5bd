package rpc

import (
	"encoding/json"
	"strconv"
	"testing"

	"github.com/agentd/agentd/envelope"
)

// Whatever a peer tells, what is heard has rising numbers from 1, and a reader that
// does not read holds nobody up.
func FuzzWatch(f *testing.F) {
	f.Add("1", "2", "2", 10)
	f.Add("-1", "+7", "0x1", 0)
	f.Add("99999999999999999999", "", "1", MaxProgressBytes+1)
	f.Add("9223372036854775807", "9223372036854775807", "1", MaxProgressBytes)
	f.Fuzz(func(t *testing.T, one, two, three string, size int) {
		w := newWatch(&Request{OnProgress: func(ProgressEvent) {}})
		taken := 0
		for range progressQueue { // three times as many as find room
			for _, seq := range []string{one, two, three} {
				e := &envelope.Envelope{Headers: envelope.Headers{{Key: envelope.HeaderProgress, Value: seq}}}
				e.Payload = make(json.RawMessage, min(max(size, 0), MaxProgressBytes+1))
				if w.take(e) == "" {
					taken++
				}
			}
		}
		close(w.events)
		last, heard := 0, 0
		for e := range w.events {
			if e.Seq <= last || len(e.Value) > MaxProgressBytes {
				t.Errorf("event %d of %d bytes after %d", e.Seq, len(e.Value), last)
			}
			last = e.Seq
			heard++
		}
		if heard != min(taken, progressQueue) {
			t.Errorf("took %d, heard %d", taken, heard)
		}
	})
}

func TestWatchLosesTheNewest(t *testing.T) {
	w := newWatch(&Request{OnProgress: func(ProgressEvent) {}})
	const told = 3 * progressQueue
	for i := range told {
		e := &envelope.Envelope{Headers: envelope.Headers{{Key: envelope.HeaderProgress, Value: strconv.Itoa(i + 1)}}}
		if why := w.take(e); why != "" {
			t.Fatalf("event %d is refused: %s", i+1, why)
		}
	}
	if len(w.events) != progressQueue {
		t.Fatalf("%d events wait", len(w.events))
	}
	for i := range progressQueue {
		if e := <-w.events; e.Seq != i+1 || string(e.Value) != "null" {
			t.Errorf("event %d is %+v", i+1, e)
		}
	}
}
