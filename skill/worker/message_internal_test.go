package worker

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/skill"
	"github.com/agentd/agentd/skill/internal/wire"
)

// A call says all that a skill may know, and nothing that is not so.
func TestAppendInvoke(t *testing.T) {
	inv := rpc.Invocation{
		From: "agent://b", Proven: true, Capability: "x", Payload: json.RawMessage("{\n\"n\":\t9007199254740993}\r\n"), MessageID: "m", CorrelationID: "c", TenantID: "t\x00\"",
		SessionID: "s", Traceparent: "00-1-2-01", Tracestate: "v=1", IdempotencyKey: "k", Hops: 2, Deadline: time.UnixMilli(99), Event: true,
	}
	line := appendInvoke(nil, 7, &inv, "token")
	if bytes.IndexByte(line, '\n') != len(line)-1 {
		t.Errorf("%q is not one line", line)
	}
	m, err := wire.Decode(line)
	if err != nil {
		t.Fatal(err)
	}
	var got wire.InvokeParams
	dec := json.NewDecoder(bytes.NewReader(m.Params))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&got); err != nil {
		t.Fatal(err)
	}
	if read, err := wire.ReadInvoke(m.Params); err != nil || !reflect.DeepEqual(read, got) {
		t.Errorf("it is read as %+v, %v", read, err)
	}
	payload := string(got.Payload)
	got.Payload = nil
	want := wire.InvokeParams{
		Capability: "x", Caller: "agent://b", CallerProven: true, CorrelationID: "c", MessageID: "m", SessionID: "s", TenantID: "t\x00\"", IdempotencyKey: "k",
		Traceparent: "00-1-2-01", Tracestate: "v=1", Hops: 2, DeadlineMs: 99, Event: true, Token: "token",
	}
	if a, b := encode(got), encode(want); !bytes.Equal(a, b) || payload != `{"n":9007199254740993}` {
		t.Errorf("%s, payload %s", a, payload)
	}
}

// Pauses grow after faults in a row, and a single one costs nothing.
func TestBackoff(t *testing.T) {
	if backoff(1) != 0 || backoff(2) != firstPause || backoff(3) <= backoff(2) || backoff(1000) != lastPause {
		t.Errorf("%v, %v, %v, %v", backoff(1), backoff(2), backoff(3), backoff(1000))
	}
}

// The pause before another try to recycle an instance ends with that instance.
func TestPauseEndsWithTheInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := New(Config{Program: &skill.Process{Command: []string{"true"}}, Capabilities: []Capability{{Name: "x"}}})
		if err != nil {
			t.Fatal(err)
		}
		over := make(chan struct{})
		s := &slot{pool: p, serving: &instance{over: over}, faults: 100}
		p.standing.set(0, up, nil)
		time.AfterFunc(time.Second, func() { close(over) })
		began := time.Now()
		s.pause(t.Context(), errors.New("it does not start"))
		if took := time.Since(began); took != time.Second || s.serving != nil || p.Status().Serving != 0 {
			t.Errorf("after %s, %+v", took, p.Status())
		}
	})
}

// While one slot serves the pool is not down; it is when all of them pause, and until one
// serves again.
func TestStanding(t *testing.T) {
	var s standing
	var told []error
	s.init(2, func(err error) { told = append(told, err) })
	s.begin()
	why := errors.New("why")
	s.set(0, up, nil)
	s.set(1, pausing, why)
	s.set(0, coming, nil)
	if _, down := s.look(); down != nil {
		t.Error("down while a slot starts")
	}
	s.set(0, pausing, why)
	s.set(1, coming, nil)
	if _, down := s.look(); !errors.Is(down, why) {
		t.Errorf("%v", down)
	}
	s.set(1, up, nil)
	if _, down := s.look(); down != nil || len(told) != 2 || told[1] != nil {
		t.Errorf("%v, %v", down, told)
	}
}
