package mcpbridge

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// nobody is a client's face without a backend.
func nobody(secret string) *face {
	b := New(nil, Options{Secret: bytes.Repeat([]byte(secret), 32)})
	return &face{bridge: b, client: Client{Name: "fuzz"}}
}

// What a client brings back is either what the bridge gave it, or nothing.
func FuzzSigned(f *testing.F) {
	ours, theirs := nobody("a"), nobody("b")
	h := handle{kind: queuedCall, begun: time.Unix(1_800_000_000, 0), id: "019aa8f4-1d2c-7c3e-9f00-000000000000", tool: "indexer__reindex"}
	s := state{Flight: "ABC", Request: requestDigest("t", json.RawMessage(`{"a": 1}`)), Expires: 2_000_000_000_000}
	f.Add(ours.handleText(h), ours.stateText(s))
	f.Add(theirs.handleText(h), theirs.stateText(s))
	f.Add("q.1.2.3.4", "e30.e30")
	f.Add("....", "...")
	f.Fuzz(func(t *testing.T, handleText, stateText string) {
		if got, ok := ours.parseHandle(handleText); ok && (got != h || handleText != ours.handleText(h)) {
			t.Errorf("%q is taken for %+v", handleText, got)
		}
		request, now := requestDigest("t", json.RawMessage(`{"a":1}`)), time.Unix(1_900_000_000, 0)
		if got, ok := ours.parseState(stateText, request, now); ok && (got != s || stateText != ours.stateText(s)) {
			t.Errorf("%q is taken for %+v", stateText, got)
		}
	})
}

func TestSignedIsRead(t *testing.T) {
	f := nobody("a")
	h := handle{kind: parkedCall, begun: time.Unix(1_800_000_000, 0), id: "x", tool: "a__b"}
	if got, ok := f.parseHandle(f.handleText(h)); !ok || got != h {
		t.Errorf("got %+v", got)
	}
	s := state{Flight: "x", Request: requestDigest("a__b", nil), Expires: 1_800_000_000_000}
	for now, want := range map[int64]bool{1_799_999_999: true, 1_800_000_000: false} {
		if got, ok := f.parseState(f.stateText(s), s.Request, time.Unix(now, 0)); ok != want || want && got != s {
			t.Errorf("at %d: %+v %v", now, got, ok)
		}
	}
	if _, ok := f.parseState(f.stateText(s), requestDigest("a__c", nil), time.Unix(0, 0)); ok {
		t.Error("a state of another tool is taken")
	}
	if _, ok := f.parseHandle(f.stateText(s)); ok {
		t.Error("a state is taken for a handle")
	}
}

// answers is a stream whose writes are kept.
type answers struct {
	io.Reader
	bytes.Buffer
}

func (a *answers) Read(p []byte) (int, error) { return a.Reader.Read(p) }
func (a *answers) Close() error               { return nil }

// Whatever a stream brings, it is messages, or answers to what is none, to its end.
func FuzzLines(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n" + `{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n"))
	f.Add([]byte("x\n[]\n\r\n" + `{"jsonrpc":"2.0","id":"a","result":{}}` + "\n{}"))
	f.Add(bytes.Repeat([]byte("y"), 300))
	f.Fuzz(func(t *testing.T, stream []byte) {
		kept := &answers{Reader: bytes.NewReader(stream)}
		var longest atomic.Int64
		longest.Store(200)
		c := newLineConn(kept, &longest, 3)
		if _, err := c.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		var calls int
		for {
			msg, err := c.Read(t.Context())
			if err != nil {
				if !errors.Is(err, io.EOF) {
					t.Fatal(err)
				}
				break
			}
			if r, ok := msg.(*jsonrpc.Request); ok && r.IsCall() {
				calls++
			}
		}
		if calls > 3 {
			t.Errorf("%d requests are under way", calls)
		}
		for line := range bytes.Lines(kept.Bytes()) {
			var answer struct {
				Version string         `json:"jsonrpc"`
				Error   *jsonrpc.Error `json:"error"`
			}
			if err := json.Unmarshal(line, &answer); err != nil || answer.Version != "2.0" || answer.Error == nil {
				t.Errorf("answered %q", line)
			}
		}
		_ = c.Close()
	})
}

// An answer passes through, or is no result of the protocol.
func FuzzPassThrough(f *testing.F) {
	f.Add([]byte(`{"content":[{"type":"text","text":"x"}],"structuredContent":{"n":9007199254740993},"_meta":{"a":1}}`))
	f.Add([]byte(`{"content":[]}`))
	f.Add([]byte(`{"content":[{"type":""}]}`))
	f.Fuzz(func(t *testing.T, answer []byte) {
		out, err := passThrough(answer)
		if err != nil {
			return
		}
		text, err := json.Marshal(out)
		if err != nil {
			t.Fatal(err)
		}
		var back struct{ Content []json.RawMessage }
		if err := json.Unmarshal(text, &back); err != nil || len(back.Content) != len(out.Content) {
			t.Errorf("%q became %s", answer, text)
		}
	})
}

// A schema loses its name of a dialect, and nothing else.
func FuzzWithoutDraft07(f *testing.F) {
	f.Add([]byte(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}`))
	f.Add([]byte(`{"type":"object" , "$schema" : "http://json-schema.org/draft-07/schema#" }`))
	f.Add([]byte(`{"$schema":"http://json-schema.org/draft-07/schema#"}`))
	f.Add([]byte(`{"properties":{"$schema":{"const":"draft-07"}},"type":"object"}`))
	f.Fuzz(func(t *testing.T, source []byte) {
		var before, after map[string]any
		if json.Unmarshal(source, &before) != nil || bytes.Count(source, []byte(`schema"`)) > 1 {
			return // the same member twice is no schema that was loaded
		}
		got := withoutDraft07(source)
		if err := json.Unmarshal(got, &after); err != nil {
			t.Fatalf("%q became %q: %v", source, got, err)
		}
		if _, still := after["$schema"]; len(before)-len(after) > 1 || len(before) > len(after) && still {
			t.Errorf("%q became %q", source, got)
		}
	})
}
