package drift_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/drift"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/schema/contain"
	"github.com/agentd/agentd/transport"
)

// A stub is a callee in other hands: it describes f with any JSON, and answers
// every request with {"a":1}.
type stub struct {
	*world
	mu       sync.Mutex
	f        string // the published form of f
	requests atomic.Int64
}

func newStub(t testing.TB, built *capability.Document, opts drift.Options, f string) *stub {
	t.Helper()
	s := &stub{world: newWorld(t, built, nil, opts), f: f}
	_, err := s.conn.Subscribe(topic+".capabilities", "", func(m transport.Message) {
		if string(m.Data) == mark {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		answer(t, s.conn, m, `{"ok":true,"data":{"capabilities_version":"1.0","agent":"agent://callee","digest":"sha256:0","tool_schemas":{"f":`+s.f+`}}}`)
	})
	if err == nil {
		_, err = s.conn.Subscribe(topic, "", func(m transport.Message) {
			s.requests.Add(1)
			answer(t, s.conn, m, `{"ok":true,"data":{"a":1}}`)
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const (
	outside   = `{"patternProperties":{}}`                                                 // a keyword that agentd does not know
	lookahead = `{"type":"object","properties":{"a":{"type":"string","pattern":"(?=x)"}}}` // nor is this one of its patterns
	wideJSON  = `{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}` // contains narrow
)

// Whichever half of the call cannot be checked, nothing is sent: an answer that this
// agent cannot foresee is as bad as a request that the peer cannot take.
func TestGateFailsClosedOnBothSides(t *testing.T) {
	little := contain.Budget{Steps: 1} // of work, so that no proof comes to an end
	for name, test := range map[string]struct {
		tool    string
		side    rpc.Side
		details string
		budget  contain.Budget
	}{
		"input outside the subset":  {`{"digest":"sha256:1","inputSchema":` + outside + `}`, rpc.SideRequest, `{"error":"UnsupportedCloudToolSchema","side":"request","pointer":""}`, contain.Budget{}},
		"output outside the subset": {`{"digest":"sha256:1","inputSchema":` + wideJSON + `,"outputSchema":` + outside + `}`, rpc.SideResponse, `{"error":"UnsupportedCloudToolSchema","side":"response","pointer":""}`, contain.Budget{}},
		"a pattern of another sort": {`{"digest":"sha256:1","inputSchema":` + lookahead + `}`, rpc.SideRequest, "", contain.Budget{}},
		"input undecided":           {`{"digest":"sha256:1","inputSchema":` + wideJSON + `}`, rpc.SideRequest, "", little},
		"output undecided":          {`{"digest":"sha256:1","outputSchema":` + wideJSON + `}`, rpc.SideResponse, "", little},
		"output that is no schema":  {`{"digest":"sha256:1","outputSchema":{"type":7}}`, rpc.SideResponse, `{"error":"UnsupportedCloudToolSchema","side":"response","pointer":""}`, contain.Budget{}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStub(t, contract(t, f(narrow, narrow)), drift.Options{Budget: test.budget}, test.tool)
			res, err := s.call(`{"a":1}`)
			var found *drift.UnsupportedCloudToolSchema
			if !errors.As(err, &found) || rpc.CodeOf(err) != rpc.CodeSchemaDrift {
				t.Fatalf("got %v and %v, want an UnsupportedCloudToolSchema", res, err)
			}
			if found.Side != test.side || found.Peer != calleeAddr || found.Capability != "f" || s.requests.Load() != 0 {
				t.Errorf("%+v, %d requests sent", found, s.requests.Load())
			}
			if (found.Err == nil) == (found.Reason == "") || errors.Unwrap(found) != found.Err || !strings.Contains(err.Error(), string(test.side)+" schema") {
				t.Errorf("neither a reason nor a cause, or both: %v", err)
			}
			if test.details != "" && string(res.Error.Details) != test.details {
				t.Errorf("details %s", res.Error.Details)
			}
		})
	}
}

// TestGateErrorsStayShort refuses a peer whose schema has thousands of faults, at places
// with a long name. The error is in a line of the log, and kept.
func TestGateErrorsStayShort(t *testing.T) {
	faults := `{"properties":{"` + strings.Repeat("n", 10_000) + `":{"required":[` + strings.Repeat("7,", 3000) + `7]}}}`
	s := newStub(t, contract(t, f(narrow, narrow)), drift.Options{}, `{"digest":"sha256:1","inputSchema":`+faults+`}`)
	_, err := s.call(`{"a":1}`)
	var found *drift.UnsupportedCloudToolSchema
	if !errors.As(err, &found) || !strings.Contains(err.Error(), "must be a string, not a number") || !strings.Contains(err.Error(), "more faults") {
		t.Errorf("%.2000v", err)
	}
	if len(err.Error()) > 4000 {
		t.Errorf("an error of %d bytes", len(err.Error()))
	}
}

// The version that the caller asks for is not outvoted by schemas that agree.
func TestGateVersionCountsWhateverTheSchemas(t *testing.T) {
	for name, live := range map[string]string{
		"the same schemas":   f(narrow, ""),
		"compatible schemas": f(wide, ""),
		"drifted schemas":    f(needs, ""),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, asking(t, "2"), contract(t, live), drift.Options{})
			res, err := w.call(`{"a":1}`)
			var found *drift.SchemaDriftError
			if !errors.As(err, &found) || !strings.Contains(found.Reason, "the peer has 1.2.0") || w.ran.Load() != 0 {
				t.Fatalf("%v, ran %d", err, w.ran.Load())
			}
			if found.Side != "" || found.Witness != nil || found.Built == "" || found.Live == "" {
				t.Errorf("%+v", found)
			}
			if want := fmt.Sprintf(`{"error":"SchemaDriftError","built":%q,"live":%q}`, found.Built, found.Live); string(res.Error.Details) != want {
				t.Errorf("details %s, want %s", res.Error.Details, want)
			}
			if strings.Contains(err.Error(), "counterexample") {
				t.Errorf("a counterexample of what? %v", err)
			}
		})
	}
}

// asking is a contract whose caller asks for a version at least.
func asking(t testing.TB, least string) *capability.Document {
	t.Helper()
	doc := contract(t, f(narrow, ""))
	other, _ := doc.Lookup("other")
	other.Description = least
	return doc
}

func TestGateComparesVersions(t *testing.T) {
	for _, test := range []struct{ least, since, says string }{ // says: "" passes
		{"1.0.0", "1.0.0", ""}, {"1.0", "1.0.0", ""}, {"1.0.0.0", "v1", ""}, {"1.9", "1.10", ""}, {"9", "10", ""}, {"0", "0.0.0.1", ""},
		{"1.2.3.4", "1.2.3.4", ""}, {"4294967295", "4294967295", ""},
		{"1.10", "1.9", "the peer has 1.9"}, {"1.0.0.1", "1", "the peer has 1"}, {"2", "1.99.99", "the peer has 1.99.99"}, {"1.2.3", "1.2.2.9", "the peer has"},
		{"1", "", "the peer does not say which it has"},
		{"1", "one", `"one" cannot be compared`}, {"one", "1", `"1" cannot be compared`}, {"1.2.3.4.5", "2", "cannot be compared"},
		{"1", "2.", "cannot be compared"}, {"1", "-2", "cannot be compared"}, {"1", "4294967296", "cannot be compared"}, {"1", "vv2", "cannot be compared"},
	} {
		s := newStub(t, asking(t, test.least), drift.Options{}, fmt.Sprintf(`{"digest":"sha256:1","inputSchema":%s,"since":%q}`, wideJSON, test.since))
		_, err := s.call(`{"a":1}`)
		if test.says == "" && err != nil || test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)) {
			t.Errorf("least %q, since %q: %v, want %q", test.least, test.since, err, test.says)
		}
	}
}

// Versions compare number by number, as anybody would order them.
func TestVersionsAreOrdered(t *testing.T) {
	outer := t
	numbers := rapid.SliceOfN(rapid.Uint32Range(0, 3), 1, 4)
	rapid.Check(t, func(t *rapid.T) {
		least, since := numbers.Draw(t, "least"), numbers.Draw(t, "since")
		order := 0
		for i := range 4 {
			var a, b uint32
			if i < len(since) {
				a = since[i]
			}
			if i < len(least) {
				b = least[i]
			}
			if a != b {
				order = int(a) - int(b)
				break
			}
		}
		s := newStub(outer, asking(outer, dotted(least)), drift.Options{}, fmt.Sprintf(`{"digest":"sha256:1","inputSchema":%s,"since":%q}`, wideJSON, dotted(since)))
		if _, err := s.call(`{"a":1}`); (err == nil) != (order >= 0) {
			t.Fatalf("least %v, since %v: %v", least, since, err)
		}
	})
}

func dotted(numbers []uint32) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(numbers), " ", "."), "[]")
}

// An answer that makes no sense is reported once, and asked for again after a while:
// a peer that is mended is called without a restart.
func TestGateAsksAgainAfterNonsense(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub(t, contract(t, f(narrow, "")), drift.Options{Retry: time.Minute, MaxRetry: time.Minute}, `7`)
		for range 3 {
			_, err := s.call(`{"a":1}`)
			var found *drift.CapabilitiesContractError
			if !errors.As(err, &found) || found.Peer != calleeAddr || errors.Unwrap(found) == nil {
				t.Fatalf("%v", err)
			}
		}
		// One poll: each question might have met another replica.
		asked := s.probed()
		if records := s.ledger.all(); asked != questions || len(records) != 1 {
			t.Errorf("%d questions, %d records", asked, len(records))
		}
		s.mu.Lock()
		s.f = `{"digest":"sha256:1","inputSchema":` + wideJSON + `}`
		s.mu.Unlock()
		time.Sleep(29 * time.Second) // in the bubble
		if _, err := s.call(`{"a":1}`); err == nil {
			t.Error("asked again too early")
		}
		time.Sleep(31 * time.Second)
		if _, err := s.call(`{"a":1}`); err != nil || s.requests.Load() != 1 || s.probed() != asked+1 {
			t.Errorf("%v, %d requests, %d questions", err, s.requests.Load(), s.probed())
		}
		time.Sleep(2 * time.Minute)
		if _, err := s.call(`{"a":1}`); err != nil || s.probed() != asked+1 {
			t.Errorf("an answer that made sense was asked for again: %v, %d questions", err, s.probed())
		}
		time.Sleep(3 * time.Minute)
		if _, err := s.call(`{"a":1}`); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if s.probed() != asked+2 {
			t.Errorf("a proof is not renewed: %d questions", s.probed())
		}
	})
}

// questions is how many a poll has that meets nothing but refusals, and doubts how
// many it has after a proof.
const questions, doubts = 6, 10

// A silent peer holds up the first calls for as long as is configured, and later ones
// for next to nothing.
func TestGateWaitsAsLongAsConfigured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		s := newWorld(t, contract(t, f(narrow, "")), nil, drift.Options{
			ProbeTimeout: 1250 * time.Millisecond, Retry: time.Second, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		if _, err := s.conn.Subscribe(topic, "", func(m transport.Message) { answer(t, s.conn, m, `{"ok":true,"data":{"a":1}}`) }); err != nil {
			t.Fatal(err)
		}
		for i, want := range []time.Duration{1250 * time.Millisecond, 0, 0} {
			start := time.Now()
			if _, err := s.call(`{"a":1}`); err != nil || time.Since(start) != want {
				t.Errorf("call %d: %v after %s, want %s", i, err, time.Since(start), want)
			}
		}
		time.Sleep(time.Second) // in the bubble
		start := time.Now()
		if _, err := s.call(`{"a":1}`); err != nil || time.Since(start) != 250*time.Millisecond {
			t.Errorf("the call that has it asked again: %v after %s", err, time.Since(start))
		}
		start = time.Now()
		if _, err := s.call(`{"a":1}`); err != nil || time.Since(start) != 0 {
			t.Errorf("a call while it is being asked: %v after %s", err, time.Since(start))
		}
		if warnings := strings.Count(log.String(), "calls to it go on unproven"); warnings != 1 || !strings.Contains(log.String(), "peer=agent://callee") {
			t.Errorf("%d warnings:\n%s", warnings, log.String())
		}
	})
}

// In warn mode drift is said and recorded once, and calls go on with the digest of
// what the peer serves.
func TestGateWarns(t *testing.T) {
	var mu sync.Mutex
	var log strings.Builder
	w := newWorld(t, contract(t, f(wide, "")), contract(t, f(narrow, "")), drift.Options{
		Mode: drift.Warn, Logger: slog.New(slog.NewTextHandler(lockedWriter{&mu, &log}, nil)),
	})
	for range 3 {
		if res, err := w.call(`{"a":1}`); err != nil {
			t.Fatalf("%v, %v", res, err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if strings.Count(log.String(), "drift gate") != 1 || !strings.Contains(log.String(), "capability=f enforced=false") || len(w.ledger.all()) != 1 {
		t.Errorf("%d records, log:\n%s", len(w.ledger.all()), log.String())
	}
}

type lockedWriter struct {
	mu *sync.Mutex
	w  *strings.Builder
}

func (l lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// Without the record there is no call, and the drift is not forgotten either: the
// next call finds and records it.
func TestGateRecordsBeforeItAnswers(t *testing.T) {
	w := newWorld(t, contract(t, f(wide, "")), contract(t, f(narrow, "")), drift.Options{})
	full := errors.New("disk full")
	w.ledger.setFail(full)
	var found *drift.SchemaDriftError
	if _, err := w.call(`{"a":1}`); !errors.Is(err, full) || !errors.As(err, &found) {
		t.Errorf("%v, want the drift and why it could not be recorded", err)
	}
	w.ledger.setFail(nil)
	if _, err := w.call(`{"a":1}`); !errors.As(err, &found) || errors.Is(err, full) || len(w.ledger.all()) != 1 || w.probed() != questions {
		t.Errorf("%v, %d records, %d questions", err, len(w.ledger.all()), w.probed())
	}
}

// A hundred calls may wait for one that asks a silent peer; each ends with its own
// context, and none of them asks in addition.
func TestGateWaitersEndWithTheirContexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, contract(t, f(narrow, "")), nil, drift.Options{ProbeTimeout: time.Hour})
		first := make(chan struct{})
		go func() { defer close(first); _, _ = w.call(`{"a":1}`) }()
		synctest.Wait()
		cause := errors.New("the user went away")
		ctx, cancel := context.WithCancelCause(t.Context())
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				_, err := w.client.RequestAgent(ctx, attempt(`{"a":1}`))
				if rpc.CodeOf(err) != rpc.CodeCancelled {
					t.Errorf("%v", err)
				}
			})
		}
		synctest.Wait()
		cancel(cause)
		wg.Wait()
		if n := w.probed(); n != 1 {
			t.Errorf("%d questions", n)
		}
		<-first
	})
}

// A contract that was loaded for inspection cannot be proven, and does not drift.
func TestGateOfAnUncompiledContract(t *testing.T) {
	built := contract(t, f(narrow, narrow))
	fn, _ := built.Lookup("f")
	bare := *fn
	input, output := *fn.Input, *fn.Output
	input.Schema, output.Schema = nil, nil
	bare.Input, bare.Output = &input, &output
	*fn = bare
	s := newStub(t, built, drift.Options{}, `{"digest":"sha256:1","inputSchema":`+outside+`,"outputSchema":`+outside+`}`)
	_, err := s.call(`{"a":1}`)
	var drifted *drift.UnsupportedCloudToolSchema
	if errors.As(err, &drifted) {
		t.Errorf("%v", err)
	}
}

// Errors travel back to callers and into logs: counterexamples are cut there, and
// complete in the details.
func TestErrorsAreBounded(t *testing.T) {
	witness := json.RawMessage(`"` + strings.Repeat("x", 5000) + `"`)
	err := &drift.SchemaDriftError{Peer: calleeAddr, Capability: "f", Side: rpc.SideRequest, Witness: witness, Reason: "no", Built: "b", Live: "l"}
	if want := `schema drift: agent://callee f: no; counterexample: "` + strings.Repeat("x", 1023) + "…"; err.Error() != want {
		t.Errorf("the text has %d bytes", len(err.Error()))
	}
	if want := `{"error":"SchemaDriftError","side":"request","witness":` + string(witness) + `,"built":"b","live":"l"}`; string(err.Details()) != want {
		t.Errorf("details of %d bytes", len(err.Details()))
	}
	err.Witness = json.RawMessage(`"` + strings.Repeat("x", 1022) + `"`)
	if strings.Contains(err.Error(), "…") {
		t.Error("a witness of 1,024 bytes is cut")
	}
	err.Witness = json.RawMessage(`{`)
	if err.Details() != nil {
		t.Errorf("a witness that is not JSON gives details %s", err.Details())
	}
	broken := &drift.CapabilitiesContractError{Peer: calleeAddr, Err: errors.New("no")}
	if got := string(broken.Details()) + broken.Error(); got != `{"error":"CapabilitiesContractError"}schema drift: agent://callee: no` {
		t.Error(got)
	}
	stuck := &drift.UnsupportedCloudToolSchema{Peer: calleeAddr, Capability: "f", Side: rpc.SideResponse, Reason: "budget", Pointer: "/a"}
	if got := string(stuck.Details()); got != `{"error":"UnsupportedCloudToolSchema","side":"response","reason":"budget","pointer":"/a"}` {
		t.Error(got)
	}
	if want := `schema drift: agent://callee f: it cannot be decided whether the response schemas agree (budget, at "/a")`; stuck.Error() != want {
		t.Error(stuck)
	}
}
