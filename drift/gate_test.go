package drift_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
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
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/memory"
)

const (
	callerAddr = envelope.Address("agent://caller")
	calleeAddr = envelope.Address("agent://callee")
	topic      = "agents.callee.requests"
)

// contract is a capabilities file with one capability, f.
func contract(t testing.TB, body string) *capability.Document {
	t.Helper()
	doc, err := capability.Parse("c.yaml", []byte("version: 1\nagent: agent://callee\n"+
		"transports: [{kind: memory, topics: {requests: "+topic+"}}]\ncapabilities:\n  - name: other\n"+body),
		capability.LoadOptions{ValidateSchemas: true})
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// f is the capability f with two schemas in flow style; "" is none.
func f(input, output string) string {
	s := "  - name: f\n    since: 1.2.0\n"
	if input != "" {
		s += "    inputSchema: " + input + "\n"
	}
	if output != "" {
		s += "    outputSchema: " + output + "\n"
	}
	return s
}

// A ledger keeps records in memory, or fails.
type ledger struct {
	mu     sync.Mutex
	drifts []drift.Record
	fail   error
}

func (l *ledger) RecordSchemaViolation(context.Context, rpc.SchemaViolation) error { return nil }

func (l *ledger) RecordSchemaDrift(_ context.Context, r drift.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail != nil {
		return l.fail
	}
	l.drifts = append(l.drifts, r)
	return nil
}

func (l *ledger) setFail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fail = err
}

func (l *ledger) all() []drift.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]drift.Record(nil), l.drifts...)
}

// A world is a caller with a gate, and a callee that can be replaced.
type world struct {
	bus     *memory.Bus
	gate    *drift.Gate
	peers   rpc.Peers
	conn    *memory.Conn
	client  *caller.Client
	ledger  *ledger
	probes  atomic.Int64
	marks   atomic.Int64
	ran     atomic.Int64
	replace func(*capability.Document)
	tap     transport.Subscription // counts probes
}

// silenceTap leaves nobody where the callee is asked what it serves.
func (w *world) silenceTap(t testing.TB) {
	t.Helper()
	if err := w.tap.Close(); err != nil {
		t.Fatal(err)
	}
}

func newWorld(t testing.TB, built, live *capability.Document, opts drift.Options) *world {
	t.Helper()
	w := &world{bus: memory.NewBus(memory.Options{}), ledger: &ledger{}}
	w.conn = w.bus.Connect()
	mine := w.bus.Connect()
	opts.Auditor = w.ledger
	w.gate = drift.NewGate(opts)
	w.peers = rpc.Peers{calleeAddr: {Address: calleeAddr, Transport: "memory", Topic: topic, Contract: built, MinSchemaVersion: minVersion(built)}}
	var err error
	w.client, err = caller.New(caller.Config{
		Self: callerAddr, Records: rpc.Records{Auditor: w.ledger}, Transports: []transport.Transport{mine}, Checks: caller.Checks{Gate: w.gate},
		Peers: w.peers,
	})
	if err != nil {
		t.Fatal(err)
	}
	tap, err := w.conn.Subscribe(topic+".capabilities", "", func(m transport.Message) {
		if string(m.Data) == mark {
			w.marks.Add(1)
		} else {
			w.probes.Add(1)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	w.tap = tap
	stop := func() {}
	w.replace = func(doc *capability.Document) {
		stop()
		stop = func() {}
		if doc == nil {
			return
		}
		h := rpc.HandlerFunc(func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
			w.ran.Add(1)
			return json.RawMessage(`{"a":1}`), nil
		})
		inbox, err := callee.New(callee.Config{Self: calleeAddr, Contract: doc, Records: rpc.Records{Auditor: w.ledger}, Handlers: map[string]rpc.Handler{"f": h, "other": h}})
		if err != nil {
			t.Fatal(err)
		}
		if err := inbox.Listen(w.conn, topic); err != nil {
			t.Fatal(err)
		}
		stop = func() { _ = inbox.Shutdown(context.Background()) }
	}
	w.replace(live)
	t.Cleanup(func() {
		w.gate.Close()
		stop()
		if err := errors.Join(w.client.Close(), w.conn.Close(), mine.Close()); err != nil {
			t.Error(err)
		}
	})
	return w
}

// minVersion smuggles the caller's minSchemaVersion through the description.
func minVersion(d *capability.Document) string {
	c, _ := d.Lookup("other")
	return c.Description
}

// probed is how often the callee was asked. The count comes by a subscription
// of its own, which may be behind: a message sent after it shows that it is not.
func (w *world) probed() int64 {
	before := w.marks.Load()
	if err := w.conn.Publish(context.Background(), transport.Message{Topic: topic + ".capabilities", Data: []byte(mark)}); err != nil {
		return -1
	}
	for deadline := time.Now().Add(20 * time.Second); w.marks.Load() == before && time.Now().Before(deadline); {
		runtime.Gosched()
	}
	return w.probes.Load()
}

// mark is a message that no callee understands.
const mark = "mark"

func (w *world) call(payload string) (*rpc.Result, error) {
	return w.client.RequestAgent(context.Background(), rpc.Request{To: calleeAddr, Capability: "f", Payload: json.RawMessage(payload)})
}

const (
	narrow = `{type: object, properties: {a: {type: integer, minimum: 0}}, required: [a], additionalProperties: false}`
	wide   = `{type: object, properties: {a: {type: integer}, b: {type: string}}, required: [a], additionalProperties: false}`
	needs  = `{type: object, properties: {a: {type: integer, minimum: 0}, c: {type: string}}, required: [a, c], additionalProperties: false}`
)

func TestGateVerdicts(t *testing.T) {
	for _, test := range []struct {
		name        string
		built, live string
		side        rpc.Side // of the drift; "" is none
	}{
		{"the same", f(narrow, narrow), f(narrow, narrow), ""},
		{"only words changed", f(narrow, narrow), f(strings.Replace(narrow, "{type", "{title: New, type", 1), narrow), ""},
		{"input widened", f(narrow, ""), f(wide, ""), ""},
		{"input narrowed", f(wide, ""), f(narrow, ""), rpc.SideRequest},
		{"a new required member", f(narrow, ""), f(needs, ""), rpc.SideRequest},
		{"output narrowed", f("", wide), f("", narrow), ""},
		{"output widened", f("", narrow), f("", wide), rpc.SideResponse},
		{"output no longer promised", f("", narrow), f("", ""), rpc.SideResponse},
		{"loose caller", f("", ""), f(narrow, narrow), ""},
		{"input no longer asked for", f(narrow, ""), f("", ""), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, contract(t, test.built), contract(t, test.live), drift.Options{})
			res, err := w.call(`{"a":1}`)
			if test.side == "" {
				if err != nil || w.ran.Load() != 1 || len(w.ledger.all()) != 0 {
					t.Errorf("%v, ran %d, records %v", err, w.ran.Load(), w.ledger.all())
				}
				return
			}
			var found *drift.SchemaDriftError
			if !errors.As(err, &found) || res.Error.Code != rpc.CodeSchemaDrift || w.ran.Load() != 0 {
				t.Fatalf("%v, ran %d", err, w.ran.Load())
			}
			if found.Side != test.side || found.Peer != calleeAddr || !json.Valid(found.Witness) || found.Built == found.Live {
				t.Errorf("%+v", found)
			}
			if !strings.Contains(res.Error.Message, "counterexample: ") || !strings.Contains(string(res.Error.Details), `"error":"SchemaDriftError"`) {
				t.Errorf("%s, details %s", res.Error.Message, res.Error.Details)
			}
			if recs := w.ledger.all(); len(recs) != 1 || recs[0].Capability != "f" || !recs[0].Enforced || !errors.Is(recs[0].Err, found) {
				t.Errorf("records %+v", recs)
			}
			// The drift is known: no second proof, no second record.
			if _, err := w.call(`{"a":1}`); !errors.As(err, &found) || len(w.ledger.all()) != 1 || w.probed() != questions {
				t.Errorf("second call: %v, %d records, %d probes", err, len(w.ledger.all()), w.probed())
			}
		})
	}
}

func TestGateNothingOfARefusedCallIsPublished(t *testing.T) {
	w := newWorld(t, contract(t, f(narrow, "")), contract(t, f(needs, "")), drift.Options{})
	seen := make(chan struct{}, 10)
	if _, err := w.conn.Subscribe(topic, "", func(transport.Message) { seen <- struct{}{} }); err != nil {
		t.Fatal(err)
	}
	if _, err := w.call(`{"a":1}`); rpc.CodeOf(err) != rpc.CodeSchemaDrift {
		t.Fatal(err)
	}
	if err := w.conn.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(seen) != 0 {
		t.Errorf("%d requests were published", len(seen))
	}
}

func TestGateWhenTheCapabilityIsGone(t *testing.T) {
	w := newWorld(t, contract(t, f(narrow, "")), contract(t, ""), drift.Options{})
	_, err := w.call(`{"a":1}`)
	var found *drift.SchemaDriftError
	if !errors.As(err, &found) || !strings.Contains(err.Error(), "no longer offers it") {
		t.Errorf("%v", err)
	}
}

func TestGateModes(t *testing.T) {
	for mode, want := range map[drift.Mode]struct {
		status          rpc.Status
		records, probes int
	}{
		drift.Enforce: {rpc.StatusError, 1, questions},
		drift.Warn:    {rpc.StatusOK, 1, questions},
		drift.Off:     {rpc.StatusOK, 0, 0},
	} {
		w := newWorld(t, contract(t, f(wide, "")), contract(t, f(narrow, "")), drift.Options{Mode: mode})
		res, _ := w.call(`{"a":1}`)
		recs := w.ledger.all()
		if res.Status != want.status || len(recs) != want.records || int(w.probed()) != want.probes {
			t.Errorf("%s: status %s (%v), %d records, %d probes", mode, res.Status, res.Error, len(recs), w.probed())
		}
		if len(recs) == 1 && recs[0].Enforced != (mode == drift.Enforce) {
			t.Errorf("%s: record %+v", mode, recs[0])
		}
	}
}

// Many first calls ask the peer once.
func TestGateAsksOnce(t *testing.T) {
	w := newWorld(t, contract(t, f(narrow, narrow)), contract(t, f(wide, narrow)), drift.Options{})
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			if _, err := w.call(`{"a":1}`); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if w.probed() != 1 || w.ran.Load() != 100 {
		t.Errorf("%d probes, %d runs", w.probed(), w.ran.Load())
	}
}

// A callee that changes under a caller is proven again, without its skill
// having run on the old terms.
func TestGateNoticesAChangedPeer(t *testing.T) {
	w := newWorld(t, contract(t, f(narrow, "")), contract(t, f(narrow, "")), drift.Options{})
	if _, err := w.call(`{"a":1}`); err != nil {
		t.Fatal(err)
	}
	w.replace(contract(t, f(wide, "")))
	if _, err := w.call(`{"a":1}`); err != nil || w.ran.Load() != 2 || w.probed() != 2 {
		t.Errorf("a compatible change: %v, ran %d, %d probes", err, w.ran.Load(), w.probed())
	}
	w.replace(contract(t, f(needs, "")))
	_, err := w.call(`{"a":1}`)
	var found *drift.SchemaDriftError
	if !errors.As(err, &found) || w.ran.Load() != 2 || w.probed() != 2+doubts {
		t.Errorf("a breaking change: %v, ran %d, %d probes", err, w.ran.Load(), w.probed())
	}
}

func TestGatePeerThatCannotBeAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, contract(t, f(wide, "")), nil, drift.Options{})
		// An older peer: it takes requests and has no capabilities topic.
		asked := atomic.Int64{}
		_, err := w.conn.Subscribe(topic, "", func(m transport.Message) {
			asked.Add(1)
			answer(t, w.conn, m, `{"ok":true,"data":1}`)
		})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if _, err := w.call(`{"a":1}`); err != nil || asked.Load() != 1 {
			t.Errorf("%v, %d requests", err, asked.Load())
		}
		if waited := time.Since(start); waited != 2*time.Second {
			t.Errorf("the first call waited %v for an answer", waited)
		}
		if _, err := w.call(`{"a":1}`); err != nil || time.Since(start) != 2*time.Second {
			t.Errorf("the second call waited too: %v, %v", err, time.Since(start))
		}
		time.Sleep(11 * time.Second) // in the bubble: until it is asked again
		if _, err := w.call(`{"a":1}`); err != nil || w.probed() != 2 {
			t.Errorf("%v, %d probes", err, w.probed())
		}
		if len(w.ledger.all()) != 0 {
			t.Errorf("records %v", w.ledger.all())
		}
	})
}

// answer replies to a request by hand.
func answer(t testing.TB, conn *memory.Conn, m transport.Message, payload string) {
	req, err := envelope.Decode(m.Data)
	if err != nil {
		t.Errorf("request: %v", err)
		return
	}
	data, err := (&envelope.Envelope{
		Kind: envelope.Response, MessageID: "r", CorrelationID: req.CorrelationID, From: calleeAddr, To: req.From,
		Capability: req.Capability, Payload: json.RawMessage(payload),
	}).Encode()
	if err == nil {
		err = conn.Publish(context.Background(), transport.Message{Topic: m.Reply, Data: data})
	}
	if err != nil {
		t.Errorf("reply: %v", err)
	}
}

func TestGateAuditFailureFailsClosed(t *testing.T) {
	w := newWorld(t, contract(t, f(wide, "")), contract(t, f(narrow, "")), drift.Options{Mode: drift.Warn})
	full := errors.New("disk full")
	w.ledger.setFail(full)
	if _, err := w.call(`{"a":1}`); !errors.Is(err, full) || w.ran.Load() != 0 {
		t.Errorf("%v, ran %d", err, w.ran.Load())
	}
}

func TestGateHoldsPeersToAVersion(t *testing.T) {
	for least, says := range map[string]string{
		"1.2.0": "", "v1.2": "", "1.1.9": "", "": "",
		"1.3": "the peer has 1.2.0", "2": "the peer has 1.2.0", "next": "cannot be compared",
	} {
		built := contract(t, f(narrow, ""))
		other, _ := built.Lookup("other")
		other.Description = least
		w := newWorld(t, built, contract(t, f(narrow, "")), drift.Options{})
		_, err := w.call(`{"a":1}`)
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("least %q: %v, want %q", least, err, says)
		}
	}
}

func TestGateCancelled(t *testing.T) {
	w := newWorld(t, contract(t, f(wide, "")), nil, drift.Options{})
	started := make(chan struct{})
	if _, err := w.conn.Subscribe(topic+".capabilities", "", func(transport.Message) { close(started) }); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-started; cancel() }()
	_, err := w.client.RequestAgent(ctx, rpc.Request{To: calleeAddr, Capability: "f", Payload: json.RawMessage(`{"a":1}`)})
	if rpc.CodeOf(err) != rpc.CodeCancelled {
		t.Errorf("%v", err)
	}
}

func BenchmarkGate(b *testing.B) {
	for name, mode := range map[string]drift.Mode{"Proven": drift.Enforce, "Off": drift.Off} {
		b.Run(name, func(b *testing.B) {
			w := newWorld(b, contract(b, f(narrow, "")), contract(b, f(wide, "")), drift.Options{Mode: mode})
			b.ReportAllocs()
			for b.Loop() {
				if _, err := w.call(`{"a":1}`); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func ExampleGate() {
	gate := drift.NewGate(drift.Options{Mode: drift.Enforce})
	fmt.Println(gate != nil, "give it to caller.Checks.Gate")
	// Output: true give it to caller.Checks.Gate
}
