package wire_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

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
		m, err := wire.Decode([]byte(line))
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
		m, err := wire.Decode(line)
		if err != nil {
			return
		}
		var other map[string]json.RawMessage
		if err := json.Unmarshal(line, &other); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		for name, raw := range map[string]json.RawMessage{"id": m.ID, "params": m.Params, "result": m.Result, "error": m.Err} {
			if !bytes.Equal(raw, other[name]) {
				t.Fatalf("%q: %s is %q", line, name, raw)
			}
		}
		if m.IsRequest() && m.IsNotification() || m.Method == "" && m.ID == nil {
			t.Fatalf("%q: %+v", line, m)
		}
		_, _ = wire.ReadInvoke(m.Params)
		if answer := wire.Member(m.Result, "answer"); answer != nil && !json.Valid(answer) {
			t.Fatalf("%q: %q", line, answer)
		}
	})
}
