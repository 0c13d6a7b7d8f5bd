package worker

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/skill/internal/wire"
)

func TestDecode(t *testing.T) {
	for line, want := range map[string]string{
		`{"jsonrpc":"2.0","id":7,"result":null}`:                                "",
		`{"jsonrpc":"2.0","id":7,"result":{"answer":1},"more":[1]}`:             "",
		` {"jsonrpc":"2.0","id":"a","method":"requestAgent"} `:                  "",
		`{"jsonrpc":"2.0","\u006dethod":"progress","params":{}}`:                "",
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}`:     "",
		`{"jsonrpc":"2.0","id":7}`:                                              "exactly one of result and error",
		`{"jsonrpc":"2.0","id":7,"result":1,"error":{}}`:                        "exactly one of result and error",
		`{"jsonrpc":"2.0","result":1}`:                                          "neither a method nor an id",
		`{"id":7,"result":1}`:                                                   `no "jsonrpc": "2.0"`,
		`{"jsonrpc":2.0,"id":7,"result":1}`:                                     "jsonrpc is no string",
		`{"jsonrpc":"2.0","id":7.5,"result":1}`:                                 "neither a string nor an integer",
		`{"jsonrpc":"2.0","id":null,"method":"x"}`:                              "neither a string nor an integer",
		`{"jsonrpc":"2.0","id":[1],"method":"x"}`:                               "neither a string nor an integer",
		`{"jsonrpc":"2.0","method":""}`:                                         "method is empty",
		`{"jsonrpc":"2.0","id":1,"method":"x","result":1}`:                      "a request and a response",
		`{"jsonrpc":"2.0","id":1,"id":2,"result":1}`:                            "duplicate",
		`[{"jsonrpc":"2.0","id":1,"result":1}]`:                                 "no JSON object",
		`{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 200) + `","method":""}`: "",
		`Traceback: hunter2`:                                                    "",
	} {
		m, err := decode([]byte(line))
		accepted := want == "" && json.Valid([]byte(line)) && !strings.Contains(line, "xxx")
		if accepted != (err == nil) || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("%s: %+v, %v", line, m, err)
		}
	}
}

// Whatever a worker writes, the decoder does not panic, and what it accepts is JSON-RPC to
// any other decoder.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":7,"result":{"answer":1}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","method":"progress","params":{"id":7,"value":[1]}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":"x","method":"requestAgent","params":{"call":7,"request":{}}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"no","data":7}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		m, err := decode(line)
		if err != nil {
			return
		}
		var other map[string]json.RawMessage
		if err := json.Unmarshal(line, &other); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		for name, raw := range map[string]json.RawMessage{"id": m.id, "params": m.params, "result": m.result, "error": m.err} {
			if !bytes.Equal(raw, other[name]) {
				t.Fatalf("%q: %s is %q", line, name, raw)
			}
		}
		if m.isRequest() && m.isNotification() || m.method == "" && m.id == nil {
			t.Fatalf("%q: %+v", line, m)
		}
		o := m.answer(1 << 20)
		if (o.answer == nil) == (o.err == nil) {
			t.Fatalf("%q: %+v", line, o)
		}
	})
}

// A call says all that a skill may know, and nothing that is not so.
func TestAppendInvoke(t *testing.T) {
	inv := rpc.Invocation{
		From: "agent://b", Proven: true, Capability: "x", Payload: json.RawMessage("{\n\"n\":\t9007199254740993}\r\n"), MessageID: "m", CorrelationID: "c", TenantID: "t\x00\"",
		SessionID: "s", Traceparent: "00-1-2-01", IdempotencyKey: "k", Hops: 2, Deadline: time.UnixMilli(99), Event: true,
	}
	line := appendInvoke(nil, 7, &inv, "token")
	if bytes.IndexByte(line, '\n') != len(line)-1 {
		t.Errorf("%q is not one line", line)
	}
	m, err := decode(line)
	if err != nil {
		t.Fatal(err)
	}
	var got wire.InvokeParams
	dec := json.NewDecoder(bytes.NewReader(m.params))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&got); err != nil {
		t.Fatal(err)
	}
	payload := string(got.Payload)
	got.Payload = nil
	want := wire.InvokeParams{
		Capability: "x", Caller: "agent://b", CallerProven: true, CorrelationID: "c", MessageID: "m", SessionID: "s", TenantID: "t\x00\"", IdempotencyKey: "k",
		Traceparent: "00-1-2-01", Hops: 2, DeadlineMs: 99, Event: true, Token: "token",
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
	if down, _ := s.look(); down != nil {
		t.Error("down while a slot starts")
	}
	s.set(0, pausing, why)
	s.set(1, coming, nil)
	if down, _ := s.look(); !errors.Is(down, why) {
		t.Errorf("%v", down)
	}
	s.set(1, up, nil)
	if down, _ := s.look(); down != nil || len(told) != 2 || told[1] != nil {
		t.Errorf("%v, %v", down, told)
	}
}
