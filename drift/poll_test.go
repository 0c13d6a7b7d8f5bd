package drift_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/drift"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/transport"
)

// inTurn answers with one form after another, and with the last one from then on.
func inTurn(forms ...string) func(*envelope.Envelope) []byte {
	var asked atomic.Int64
	return func(e *envelope.Envelope) []byte {
		n := min(int(asked.Add(1)), len(forms))
		return publishes(forms[n-1])(e)
	}
}

// probe is a question at the gate about f.
func (w *world) probe(t testing.TB) caller.Probe {
	t.Helper()
	p, ok := w.client.Probe(calleeAddr)
	if !ok {
		t.Fatal("no peer")
	}
	p.Capability, _ = p.Peer.Contract.Lookup("f")
	return p
}

// What one replica answered for a call to another capability is not held against a
// capability that it alone has broken.
func TestPollForAnotherCapability(t *testing.T) {
	s := newForeigner(t, contract(t, f(narrow, "")), drift.Options{})
	s.says(inTurn(tools("", `"other":{},"f":{"inputSchema":{"type":"string"}}`), tools("", `"other":{},`+goodTool)))
	s.listen(t)
	for _, name := range []string{"other", "f"} {
		if _, err := s.client.RequestAgent(t.Context(), rpc.Request{To: calleeAddr, Capability: name, Payload: []byte(`{"a":1}`)}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if s.asked.Load() != 2 {
		t.Errorf("%d questions", s.asked.Load())
	}
}

// A poll looks for the contract that has refused a call, beyond the first that lets
// calls go on; and what is known already is not looked for.
func TestPollLooksForWhatRefused(t *testing.T) {
	s := newForeigner(t, contract(t, f(narrow, "")), drift.Options{})
	digest := func(d string) string { return strings.Replace(goodTool, `{"input`, `{"digest":"`+d+`","input`, 1) }
	one, two := tools("", digest("one")), tools("", digest("two"))
	s.says(inTurn(one, one, one, two))
	s.listen(t)
	p := s.probe(t)
	for i, step := range []struct {
		stale string
		want  caller.Clearance
		asked int64
	}{
		{"", caller.Clearance{Digest: "one"}, 1},
		{"one", caller.Clearance{Digest: "one"}, 1},
		{"two", caller.Clearance{Digest: "one", Also: "two"}, 4},
		{"two", caller.Clearance{Digest: "one", Also: "two"}, 4},
		{"", caller.Clearance{Digest: "one", Also: "two"}, 4},
	} {
		p.Stale = step.stale
		if got, err := s.gate.Check(t.Context(), p); err != nil || got != step.want || s.asked.Load() != step.asked {
			t.Errorf("step %d: %+v, %v after %d questions, want %+v after %d", i, got, err, s.asked.Load(), step.want, step.asked)
		}
	}
}

// Digests that were proven for one contract of this agent are not sent with another.
func TestProofsBelongToAContract(t *testing.T) {
	w := newWorld(t, contract(t, f(narrow, "")), contract(t, f(narrow, "")), drift.Options{})
	var also atomic.Value
	if _, err := w.conn.Subscribe(topic, "", func(m transport.Message) {
		if e, err := envelope.Decode(m.Data); err == nil {
			text, _ := e.Headers.Get(envelope.HeaderSchemaAlso)
			also.Store(text)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.call(`{"a":1}`); err != nil {
		t.Fatal(err)
	}
	peer := w.peers[calleeAddr]
	peer.Contract = contract(t, f(wide, "")) // narrow would refuse what it sends
	w.peers[calleeAddr] = peer
	w.replace(contract(t, f(wide, "")))
	w.gate.Reset([]rpc.Peer{peer})
	if _, err := w.call(`{"a":-1}`); err != nil {
		t.Fatal(err)
	}
	if err := w.conn.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if also.Load() != "" {
		t.Errorf("the request may be served under %q too", also.Load())
	}
}

// A caller that has heard of a change asks before it sends a payload: the request is
// sent once, and not refused as stale first.
func TestNewsSpareTheStaleRoundTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, contract(t, f(narrow, "")), contract(t, f(narrow, "")), drift.Options{})
		heard := make(chan struct{}, 10)
		if err := w.client.Follow([]rpc.Peer{w.peers[calleeAddr]}, func(peer envelope.Address, revision string) {
			w.gate.Notify(peer, revision)
			heard <- struct{}{}
		}); err != nil {
			t.Fatal(err)
		}
		var sent atomic.Int64
		if _, err := w.conn.Subscribe(topic, "", func(transport.Message) { sent.Add(1) }); err != nil {
			t.Fatal(err)
		}
		if _, err := w.call(`{"a":1}`); err != nil {
			t.Fatal(err)
		}
		w.replace(contract(t, f(wide, "")))
		<-heard
		time.Sleep(1100 * time.Millisecond) // in the bubble: a peer is asked once a second for news
		if _, err := w.call(`{"a":1}`); err != nil {
			t.Fatal(err)
		}
		if err := w.conn.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if sent.Load() != 2 || w.ran.Load() != 2 {
			t.Errorf("%d requests for 2 calls, %d runs", sent.Load(), w.ran.Load())
		}
	})
}

// A change of this agent's files ends warnings about what they no longer have: a peer, a
// capability, or what they have learnt of a peer.
func TestResetForgetsWhatIsGone(t *testing.T) {
	const fresh = "  - {name: fresh, skill: f}\n"
	built := contract(t, f(wide, ""))
	w := newWorld(t, built, contract(t, f(narrow, "")+fresh), drift.Options{})
	peer := w.peers[calleeAddr]
	with := func(doc *capability.Document) []rpc.Peer {
		p := peer
		p.Contract = doc
		return []rpc.Peer{p}
	}
	refused := func() {
		t.Helper()
		if _, err := w.call(`{"a":1}`); rpc.CodeOf(err) != rpc.CodeSchemaDrift {
			t.Fatal(err)
		}
	}
	warns := func(when string, want ...string) {
		t.Helper()
		got := w.gate.Warnings()
		if len(got) != len(want) {
			t.Fatalf("%s: %q", when, got)
		}
		for i := range got {
			if !strings.Contains(got[i], want[i]) {
				t.Errorf("%s: %q, want %q", when, got[i], want[i])
			}
		}
	}
	refused()
	warns("at first", "calls are refused", "offers fresh")
	w.gate.Reset(with(built))
	warns("nothing has changed", "calls are refused", "offers fresh")
	w.gate.Reset(with(contract(t, fresh)))
	warns("the files no longer have f", "offers f")
	w.gate.Reset(with(built))
	refused()
	warns("the files are as before", "calls are refused", "offers fresh")
	w.gate.Reset(nil)
	warns("the peer is gone")
}
