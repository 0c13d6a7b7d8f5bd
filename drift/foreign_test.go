package drift_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/drift"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/schema/contain"
	"github.com/agentd/agentd/transport"
)

// A foreigner is a peer of another make: it answers the question what it serves with
// any bytes, or not at all, and every request with {"a":1}.
type foreigner struct {
	*world
	asked    atomic.Int64
	requests atomic.Int64

	mu     sync.Mutex
	script func(asked *envelope.Envelope) []byte // nil is silence
}

// newForeigner starts a peer that does not listen to questions until says is called.
func newForeigner(t testing.TB, built *capability.Document, opts drift.Options) *foreigner {
	t.Helper()
	s := &foreigner{world: newWorld(t, built, nil, opts)}
	if _, err := s.conn.Subscribe(topic, "", func(m transport.Message) {
		s.requests.Add(1)
		answer(t, s.conn, m, `{"ok":true,"data":{"a":1}}`)
	}); err != nil {
		t.Fatal(err)
	}
	return s
}

// listen has the peer take questions.
func (s *foreigner) listen(t testing.TB) {
	t.Helper()
	if _, err := s.conn.Subscribe(topic+".capabilities", "", func(m transport.Message) {
		asked, err := envelope.Decode(m.Data)
		if err != nil {
			t.Errorf("question: %v", err)
			return
		}
		s.asked.Add(1)
		s.mu.Lock()
		script := s.script
		s.mu.Unlock()
		if script == nil {
			return
		}
		if err := s.conn.Publish(context.Background(), transport.Message{Topic: m.Reply, Data: script(asked)}); err != nil {
			t.Error(err)
		}
	}); err != nil {
		t.Fatal(err)
	}
}

func (s *foreigner) says(script func(*envelope.Envelope) []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = script
}

// bytesOf answers with bytes that have nothing to do with the question.
func bytesOf(text string) func(*envelope.Envelope) []byte {
	return func(*envelope.Envelope) []byte { return []byte(text) }
}

// payload answers with an envelope.
func payload(text string) func(*envelope.Envelope) []byte {
	return func(asked *envelope.Envelope) []byte {
		data, err := (&envelope.Envelope{
			Kind: envelope.Response, MessageID: "r", CorrelationID: asked.CorrelationID, From: calleeAddr, To: asked.From,
			Capability: asked.Capability, Payload: json.RawMessage(text),
		}).Encode()
		if err != nil {
			return []byte(err.Error()) // a text that cannot be in an envelope is sent as it is
		}
		return data
	}
}

// publishes answers with a published form.
func publishes(form string) func(*envelope.Envelope) []byte {
	return payload(`{"ok":true,"data":` + form + `}`)
}

// tools is a published form with members in place of its agent.
func tools(members, f string) string {
	return `{"capabilities_version":"1.0",` + members + `"tool_schemas":{` + f + `}}`
}

const (
	goodTool = `"f":{"inputSchema":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}}`
	oddTools = `"odd":{"inputSchema":{"type":7}},"odder":7,"oddest":{"since":[]},`
)

// What peers of any make may publish, and what becomes of calls. Whatever is wrong
// with them, it is forgotten a while after it has been mended.
func TestForeignPeers(t *testing.T) {
	const (
		proven   = "proven"
		unproven = "unproven"
		contract = "CapabilitiesContractError"
		drifted  = "SchemaDriftError"
		unknown  = "UnsupportedCloudToolSchema"
	)
	deep := strings.Repeat(`{"x":`, 2000) + `1` + strings.Repeat(`}`, 2000)
	huge := tools("", `"big":{"description":"`+strings.Repeat("x", 500_000)+`"},`+goodTool)
	for _, test := range []struct {
		name, want, says string
		script           func(*envelope.Envelope) []byte
	}{
		{"silence", unproven, "does not say what it serves", nil},
		{"neither key", unproven, "neither capabilities_version nor tool_schemas", publishes(`{"hello":1,"agent":"agent://callee"}`)},
		{"neither key, nor anything else", unproven, "neither", publishes(`{}`)},
		{"the whole form", proven, "", publishes(tools(`"agent":"agent://callee","digest":"sha256:1",`, goodTool))},
		{"a newer minor", proven, "", publishes(strings.Replace(tools("", goodTool), "1.0", "1.9", 1))},
		{"no agent", proven, "", publishes(tools("", goodTool))},
		{"keys of a newer minor", proven, "", publishes(tools(`"later":[{}],`, goodTool))},
		{"half a megabyte", proven, "", publishes(huge)},
		{"odd tools beside a good one", proven, "", publishes(tools("", oddTools+goodTool))},
		{"a digest that is a lie", proven, "", publishes(tools(`"digest":7,`, strings.Replace(goodTool, `{"input`, `{"digest":"sha256:lie","input`, 1)))},
		{"a digest that is no header", proven, "", publishes(tools("", strings.Replace(goodTool, `{"input`, `{"digest":"a\nb","input`, 1)))},
		{"no schemas", proven, "", publishes(tools("", `"f":{}`))},
		{"another agent's", contract, "it answers for agent://other", publishes(tools(`"agent":"agent://other",`, goodTool))},
		{"an agent that is none", contract, "agent: ", publishes(tools(`"agent":"callee!",`, goodTool))},
		{"an agent that is a number", contract, "agent: not a string", publishes(tools(`"agent":7,`, goodTool))},
		{"a newer major", contract, "2.0 is not supported", publishes(strings.Replace(tools("", goodTool), "1.0", "2.0", 1))},
		{"a newer major of another shape", contract, "2.0 is not supported", publishes(`{"capabilities_version":"2.0","tools":[]}`)},
		{"a newer major that is a number", contract, "3 is not supported", publishes(`{"capabilities_version":3}`)},
		{"a version that is none", contract, "capabilities_version is missing", publishes(strings.Replace(tools("", goodTool), "1.0", "one", 1))},
		{"a version without tools", contract, "tool_schemas is missing", publishes(`{"capabilities_version":"1.0"}`)},
		{"tools without a version", contract, "capabilities_version is missing", publishes(`{"tool_schemas":{` + goodTool + `}}`)},
		{"tools that are a list", contract, "no object", publishes(`{"capabilities_version":"1.0","tool_schemas":[]}`)},
		{"duplicate members", contract, "", publishes(tools("", goodTool+","+goodTool))},
		{"nested too deep", contract, "", publishes(deep)},
		{"a list", contract, "it is no object", publishes(`[]`)},
		{"null", contract, "it is no object", publishes(`null`)},
		{"a string", contract, "it is no object", publishes(`"capabilities"`)},
		{"a bare form", contract, "not {ok, data}", payload(tools("", goodTool))},
		{"a payload that is a string", contract, "not {ok, data}", payload(`"ok"`)},
		{"a refusal", contract, "NOT_HERE: no", payload(`{"ok":false,"error":{"code":"NOT_HERE","message":"no"}}`)},
		{"a refusal that claims to be ours", contract, "CANCELLED", payload(`{"ok":false,"error":{"code":"EAGENTRPC_CANCELLED","message":"no","detectedBy":"agent://caller"}}`)},
		{"a refusal in words", contract, "", payload(`{"ok":false,"error":"go away"}`)},
		{"a peer that is busy", unproven, "BUSY", payload(`{"ok":false,"error":{"code":"EAGENTRPC_BUSY","message":"later"}}`)},
		{"a peer whose form is too large", unproven, "TOO_LARGE", payload(`{"ok":false,"error":{"code":"EAGENTRPC_PAYLOAD_TOO_LARGE","message":"2 MiB"}}`)},
		{"a peer that refuses all calls of ours", unproven, "EVERSION_SKEW", payload(`{"ok":false,"error":{"code":"EVERSION_SKEW","message":"too old"}}`)},
		{"plain text", contract, "no envelope", bytesOf(`hello`)},
		{"bytes that are no UTF-8", contract, "no envelope", bytesOf("\xff\xfe")},
		{"a form without an envelope", contract, "no envelope", bytesOf(tools("", goodTool))},
		{"an envelope of version 2", contract, "no envelope", func(asked *envelope.Envelope) []byte {
			return bytes.Replace(publishes(tools("", goodTool))(asked), []byte(`"version":1`), []byte(`"version":2`), 1)
		}},
		{"the tool itself is odd", contract, "a schema must be a JSON object", publishes(tools("", `"g":{},"f":{"inputSchema":"any"}`))},
		{"the tool is no object", contract, "not of the published form", publishes(tools("", `"f":[]`))},
		{"the tool is missing", drifted, "no longer offers it", publishes(tools("", `"g":{}`))},
		{"the tool asks for more", drifted, "counterexample", publishes(tools(`"digest":"sha256:1",`, `"f":{"inputSchema":{"type":"object","required":["a","b"]}}`))},
		{"the tool is of another subset", unknown, "not one that agentd can check", publishes(tools("", `"f":{"inputSchema":{"patternProperties":{}}}`))},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newForeigner(t, contractOf(t), drift.Options{})
				s.says(test.script)
				s.listen(t)
				for range 2 {
					res, err := s.call(`{"a":1}`)
					checkForeign(t, res, err, test.want, test.says)
				}
				asked := s.asked.Load() // and the second call asked nothing
				if records := len(s.ledger.all()); asked > questions || (records == 1) != (test.want != proven && test.want != unproven) {
					t.Errorf("%d questions, %d records", asked, records)
				}
				if want := int64(2); test.want == proven || test.want == unproven {
					if s.requests.Load() != want {
						t.Errorf("%d requests were sent", s.requests.Load())
					}
				} else if s.requests.Load() != 0 {
					t.Error("a refused call was sent")
				}
				// Mended, it is proven: at once or after the first pause.
				s.says(publishes(tools("", goodTool)))
				time.Sleep(time.Second) // in the bubble
				if res, err := s.call(`{"a":1}`); err != nil || res.Unproven != "" {
					t.Errorf("after a second, of a peer that was mended: %v, %+v", err, res)
				}
			})
		})
	}
}

// contractOf is what the caller of a foreigner was built against.
func contractOf(t testing.TB) *capability.Document { return contract(t, f(narrow, "")) }

// checkForeign checks the result of a call: want is proven, unproven or the name of an
// error.
func checkForeign(t *testing.T, res *rpc.Result, err error, want, says string) {
	t.Helper()
	switch want {
	case "proven":
		if err != nil || res.Unproven != "" {
			t.Errorf("%v, unproven: %q", err, res.Unproven)
		}
	case "unproven":
		if err != nil || !strings.Contains(res.Unproven, says) {
			t.Errorf("%v, unproven: %q, want %q", err, res.Unproven, says)
		}
	default:
		var named struct{ Error string }
		if err == nil {
			t.Errorf("it passes, unproven: %q", res.Unproven)
		} else if rpc.CodeOf(err) != rpc.CodeSchemaDrift || json.Unmarshal(res.Error.Details, &named) != nil || named.Error != want {
			t.Errorf("%v, details %s, want %s", err, res.Error.Details, want)
		} else if !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

// Nobody listens where peers say what they serve, as nobody does who is older than
// that: the answer is known at once.
func TestForeignPeerThatIsTooOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &foreigner{world: newWorld(t, contractOf(t), nil, drift.Options{})}
		if _, err := s.conn.Subscribe(topic, "", func(m transport.Message) { answer(t, s.conn, m, `{"ok":true,"data":{"a":1}}`) }); err != nil {
			t.Fatal(err)
		}
		s.silenceTap(t)
		start := time.Now()
		res, err := s.call(`{"a":1}`)
		checkForeign(t, res, err, "unproven", "nobody receives")
		if time.Since(start) != 0 {
			t.Errorf("it took %s", time.Since(start))
		}
	})
}

// A call that cannot be checked because this process has no room for the question says
// nothing about the peer, and nothing is kept of it.
func TestGateWithoutRoomToAsk(t *testing.T) {
	w := newWorld(t, contractOf(t), contract(t, f(narrow, "")), drift.Options{})
	if err := w.client.Close(); err != nil { // asking fails with ABANDONED from now on
		t.Fatal(err)
	}
	res, err := w.call(`{"a":1}`)
	if rpc.CodeOf(err) != rpc.CodeAbandoned || len(w.ledger.all()) != 0 || len(w.gate.Warnings()) != 0 {
		t.Errorf("%v, %+v, troubles %v", err, res, w.gate.Warnings())
	}
	w.gate.Close()
	probe, _ := w.client.Probe(calleeAddr)
	probe.Capability, _ = probe.Peer.Contract.Lookup("f")
	if _, err := w.gate.Check(t.Context(), probe); err == nil {
		t.Error("a closed gate lets calls pass")
	}
}

// A call with little time ends with its own time, whatever the peer does; and it
// opens the gate for nobody.
func TestGateIsBoundedByTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newForeigner(t, contractOf(t), drift.Options{})
		s.listen(t) // and says nothing
		r := attempt(`{"a":1}`)
		r.Timeout = 100 * time.Millisecond
		start := time.Now()
		res, err := s.client.RequestAgent(t.Context(), r)
		if rpc.CodeOf(err) != rpc.CodeTimeout || time.Since(start) != r.Timeout || !strings.Contains(err.Error(), "what it serves") {
			t.Errorf("%v after %s: %+v", err, time.Since(start), res)
		}
		// The question goes on for those who have more time. It has no answer, and only
		// then do calls go on.
		if res, err := s.call(`{"a":1}`); err != nil || res.Unproven == "" || time.Since(start) != 2*time.Second || s.asked.Load() != 1 {
			t.Errorf("%v after %s and %d questions: %+v", err, time.Since(start), s.asked.Load(), res)
		}
		// Asked again, the peer says that it has drifted.
		s.says(publishes(tools("", `"g":{}`)))
		time.Sleep(10 * time.Second)
		var found *drift.SchemaDriftError
		if _, err := s.call(`{"a":1}`); !errors.As(err, &found) {
			t.Errorf("%v", err)
		}
	})
}

// A peer's word about its own contract is not believed.
func TestGateBelievesNoDigest(t *testing.T) {
	built := contractOf(t)
	c, _ := built.Lookup("f")
	s := newForeigner(t, built, drift.Options{})
	s.says(publishes(tools(`"digest":"`+built.Digest()+`",`, `"f":{"digest":"`+c.Digest+`","inputSchema":{"type":"object","required":["b"]}}`)))
	s.listen(t)
	var found *drift.SchemaDriftError
	if _, err := s.call(`{"a":1}`); !errors.As(err, &found) || found.Live == c.Digest || found.Live == "" {
		t.Errorf("%v: %+v", err, found)
	}
}

// A proof that ran out of time refuses the call and is not kept: the machine may have
// been busy.
func TestGateKeepsNoProofThatRanOutOfTime(t *testing.T) {
	s := newForeigner(t, contractOf(t), drift.Options{Budget: contain.Budget{Time: 1}})
	s.says(publishes(tools("", goodTool)))
	s.listen(t)
	for range 2 {
		var stuck *drift.UnsupportedCloudToolSchema
		if _, err := s.call(`{"a":1}`); !errors.As(err, &stuck) || stuck.Reason != contain.ReasonTime {
			t.Errorf("%v", err)
		}
		if troubles := s.gate.Warnings(); len(troubles) != 0 {
			t.Errorf("it is kept: %v", troubles)
		}
	}
	if s.requests.Load() != 0 {
		t.Error("an undecided call was sent")
	}
}

// A hundred calls that meet a silent peer wait for one question together, not for one
// another; and not at all for a capability of another peer.
func TestGateNobodyQueuesBehindASilentPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newForeigner(t, contractOf(t), drift.Options{})
		s.listen(t)
		start := time.Now()
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				if res, err := s.call(`{"a":1}`); err != nil || res.Unproven == "" {
					t.Errorf("%v, %+v", err, res)
				}
			})
		}
		wg.Wait()
		if took := time.Since(start); took != 2*time.Second || s.asked.Load() != 1 {
			t.Errorf("it took %s and %d questions", took, s.asked.Load())
		}
		// While it is asked again nobody waits for longer than a moment.
		for range 20 {
			time.Sleep(700 * time.Millisecond)
			start := time.Now()
			if _, err := s.call(`{"a":1}`); err != nil || time.Since(start) > 250*time.Millisecond {
				t.Errorf("%v after %s", err, time.Since(start))
			}
		}
	})
}

// An invalid payload is reported at once, and nobody is asked for it.
func TestGateComesAfterTheChecksOfThePayload(t *testing.T) {
	s := newForeigner(t, contractOf(t), drift.Options{})
	s.listen(t)
	if _, err := s.call(`{"a":"x"}`); rpc.CodeOf(err) != rpc.CodeSchemaViolation || s.asked.Load() != 0 {
		t.Errorf("%v, %d questions", err, s.asked.Load())
	}
}

// The waits between questions to a peer whose calls are refused grow from seconds to
// minutes, and no further.
func TestGateAsksLessAndLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newForeigner(t, contractOf(t), drift.Options{})
		s.says(publishes(tools("", `"g":{}`)))
		s.listen(t)
		var polls []time.Duration
		for start, last := time.Now(), int64(0); time.Since(start) < 30*time.Minute; time.Sleep(100 * time.Millisecond) {
			if _, err := s.call(`{"a":1}`); err == nil {
				t.Fatal("it passes")
			}
			if n := s.asked.Load(); n != last {
				polls, last = append(polls, time.Since(start)), n
			}
		}
		for i := 1; i < len(polls); i++ {
			wait, most := polls[i]-polls[i-1], min(time.Second<<(i-1), 2*time.Minute)
			if wait < most/2 || wait > most+200*time.Millisecond {
				t.Errorf("wait %d is %s, want %s to %s", i, wait, most/2, most)
			}
		}
		if len(polls) < 20 || len(polls) > 40 || len(s.ledger.all()) != 1 {
			t.Errorf("%d polls in half an hour, %d records", len(polls), len(s.ledger.all()))
		}
	})
}

// News have the peer asked at once, but forged ones no more than once a second.
func TestGateHearsNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newForeigner(t, contractOf(t), drift.Options{Retry: time.Hour, MaxRetry: time.Hour})
		s.says(publishes(tools("", `"g":{}`)))
		s.listen(t)
		s.gate.Notify("agent://stranger", "") // of whom nothing is known
		if _, err := s.call(`{"a":1}`); err == nil {
			t.Fatal("it passes")
		}
		time.Sleep(time.Minute)
		s.says(publishes(tools("", goodTool)))
		if _, err := s.call(`{"a":1}`); err == nil {
			t.Fatal("asked again too early")
		}
		s.gate.Notify(calleeAddr, "")
		if _, err := s.call(`{"a":1}`); err != nil {
			t.Errorf("after the news: %v", err)
		}
		before, start := s.asked.Load(), time.Now()
		for time.Since(start) < 10*time.Second {
			s.gate.Notify(calleeAddr, fmt.Sprint(time.Now()))
			if _, err := s.call(`{"a":1}`); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		if n := s.asked.Load() - before; n > 11*questions || n < 8 {
			t.Errorf("%d questions for a flood of forged news", n)
		}
		// A contract that is known is no news.
		time.Sleep(time.Minute)
		if _, err := s.call(`{"a":1}`); err != nil {
			t.Fatal(err)
		}
		live, err := capability.ParsePublished([]byte(tools("", goodTool)))
		if err != nil {
			t.Fatal(err)
		}
		before = s.asked.Load()
		s.gate.Notify(calleeAddr, live.Revision)
		if _, err := s.call(`{"a":1}`); err != nil || s.asked.Load() != before {
			t.Errorf("%v, %d more questions", err, s.asked.Load()-before)
		}
	})
}

// Modes change while calls are made. What was found is held against each.
func TestGateChangesItsMode(t *testing.T) {
	w := newWorld(t, contract(t, f(wide, "")), contract(t, f(narrow, "")), drift.Options{})
	for i, step := range []struct {
		mode    drift.Mode
		passes  bool
		records int
	}{{drift.Enforce, false, 1}, {drift.Warn, true, 2}, {drift.Off, true, 2}, {drift.Enforce, false, 3}} {
		w.gate.SetMode(step.mode)
		res, err := w.call(`{"a":1}`)
		if (err == nil) != step.passes || len(w.ledger.all()) != step.records || (res.Unproven != "") != (step.mode == drift.Warn) {
			t.Errorf("step %d, %s: %v, %d records, unproven: %q", i, step.mode, err, len(w.ledger.all()), res.Unproven)
		}
	}
}

// What a peer publishes is compiled within limits, and calls to a peer that goes beyond
// them are refused until it does no longer.
func TestGateBoundsWhatItCompiles(t *testing.T) {
	var refusal *schema.CompileError
	patterns := newForeigner(t, contractOf(t), drift.Options{Compile: schema.CompileLimits{MaxPatternSteps: 2000}, Retry: time.Millisecond})
	patterns.says(publishes(tools("", `"f":{"digest":"sha256:1","inputSchema":{"properties":{"a":{"pattern":"[ab]{0,40}c[ab]{0,400}d"}}}}`)))
	patterns.listen(t)
	if _, err := patterns.call(`{"a":1}`); !errors.As(err, &refusal) || refusal.Faults[0].Pointer != "/properties/a/pattern" {
		t.Errorf("%v", err)
	}
	s := newForeigner(t, contractOf(t), drift.Options{Compile: schema.CompileLimits{MaxSteps: 2000}, Retry: time.Millisecond})
	long := strings.Repeat(`"1234567890",`, 200)
	s.says(publishes(tools("", `"f":{"digest":"sha256:1","inputSchema":{"enum":[`+long+`"end"]}}`)))
	s.listen(t)
	var stuck *drift.UnsupportedCloudToolSchema
	var exceeded *schema.ExceededError
	if _, err := s.call(`{"a":1}`); !errors.As(err, &stuck) || !errors.As(err, &exceeded) {
		t.Errorf("%v", err)
	}
	if s.requests.Load() != 0 {
		t.Error("the call was sent")
	}
}
