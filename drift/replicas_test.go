package drift_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/drift"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
)

// A deployment is three replicas of the callee, which take turns.
type deployment struct {
	*world
	replicas [3]*callee.Inbox
	handlers map[string]rpc.Handler
	ran      atomic.Int64
}

func deploy(t testing.TB, built, live *capability.Document, opts drift.Options) *deployment {
	t.Helper()
	d := &deployment{world: newWorld(t, built, nil, opts)}
	d.silenceTap(t)
	h := rpc.HandlerFunc(func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
		d.ran.Add(1)
		return json.RawMessage(`{"a":1}`), nil
	})
	d.handlers = map[string]rpc.Handler{"f": h, "other": h}
	for i := range d.replicas {
		conn := d.bus.Connect()
		inbox, err := callee.New(callee.Config{
			Self: calleeAddr, Contract: live, Records: rpc.Records{Auditor: d.ledger}, Handlers: d.handlers,
		})
		if err == nil {
			err = inbox.Listen(conn, topic)
		}
		if err != nil {
			t.Fatal(err)
		}
		d.replicas[i] = inbox
		t.Cleanup(func() { _, _ = inbox.Shutdown(context.Background()), conn.Close() })
	}
	return d
}

// serve has replicas serve a contract, and tells nobody.
func (d *deployment) serve(t testing.TB, doc *capability.Document, replicas ...int) {
	t.Helper()
	for _, i := range replicas {
		if err := d.replicas[i].SetContract(doc, d.handlers); err != nil {
			t.Fatal(err)
		}
	}
}

// outcomes calls n times and counts what comes of it: "" is success.
func (d *deployment) outcomes(t *testing.T, n int) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for range n {
		before := d.ran.Load()
		res, err := d.call(`{"a":1}`)
		switch {
		case err == nil && (d.ran.Load() == before || res.Unproven != ""):
			t.Errorf("a call went wrong: ran %d, %+v", d.ran.Load()-before, res)
		case err != nil && d.ran.Load() != before:
			t.Errorf("the skill ran for a call that was refused: %v", err)
		case err == nil:
			counts[""]++
		default:
			counts[rpc.CodeOf(err).String()]++
		}
		time.Sleep(5 * time.Millisecond) // in the bubble
	}
	return counts
}

// While a compatible contract is rolled out, and back, every call is served,
// whichever replica it meets.
func TestRollOutOfACompatibleContract(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old, fresh := contract(t, f(narrow, "")), contract(t, f(wide, ""))
		d := deploy(t, old, old, drift.Options{})
		for _, step := range []struct {
			doc     *capability.Document
			replica int
		}{{old, 0}, {fresh, 0}, {fresh, 1}, {fresh, 2}, {old, 1}, {old, 2}, {old, 0}} {
			d.serve(t, step.doc, step.replica)
			if counts := d.outcomes(t, 100); counts[""] != 100 {
				t.Errorf("replica %d changed: %v", step.replica, counts)
			}
		}
		if len(d.ledger.all()) != 0 {
			t.Errorf("records %v", d.ledger.all())
		}
	})
}

// With one odd replica among three nearly every call is served, by the others; one
// that meets the odd one over and over is refused as drifted. Once it is mended all
// calls are served.
func TestOneOddReplica(t *testing.T) {
	for name, oddFirst := range map[string]bool{"from the beginning": true, "later": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				good, odd := contract(t, f(narrow, "")), contract(t, f(needs, ""))
				d := deploy(t, good, good, drift.Options{})
				if !oddFirst {
					d.outcomes(t, 10)
				}
				d.serve(t, odd, 1)
				counts := d.outcomes(t, 1000)
				if drifted := counts["EAGENTRPC_SCHEMA_DRIFT"]; counts[""] < 900 || counts[""]+drifted != 1000 {
					t.Errorf("%v", counts)
				}
				d.serve(t, good, 1)
				time.Sleep(2 * time.Second)
				if counts := d.outcomes(t, 300); counts[""] != 300 {
					t.Errorf("mended: %v", counts)
				}
			})
		})
	}
}

// A contract that breaks the caller is rolled out over all replicas and back. In
// between, every call is refused without a question; afterwards every call is served.
func TestRollBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good, broken := contract(t, f(narrow, "")), contract(t, f(needs, ""))
		d := deploy(t, good, good, drift.Options{})
		d.outcomes(t, 10)
		for i := range d.replicas {
			d.serve(t, broken, i)
			if counts := d.outcomes(t, 200); counts[""]+counts["EAGENTRPC_SCHEMA_DRIFT"] != 200 {
				t.Errorf("%d of 3 replicas broken: %v", i+1, counts)
			}
		}
		before := d.bus.Published()
		if counts := d.outcomes(t, 50); counts["EAGENTRPC_SCHEMA_DRIFT"] != 50 {
			t.Errorf("broken: %v", counts)
		}
		if sent := d.bus.Published() - before; sent > 2*doubts {
			t.Errorf("%d messages for calls that are refused", sent)
		}
		for i := range d.replicas {
			d.serve(t, good, i)
			d.gate.Notify(calleeAddr, "") // as every replica announces
			time.Sleep(1200 * time.Millisecond)
			if counts := d.outcomes(t, 200); counts[""]+counts["EAGENTRPC_SCHEMA_DRIFT"] != 200 {
				t.Errorf("%d of 3 replicas mended: %v", i+1, counts)
			}
		}
		if counts := d.outcomes(t, 300); counts[""] != 300 {
			t.Errorf("mended: %v", counts)
		}
	})
}

// What a decision rests on may change at either end; calls follow, also without
// news of it: a capability that is added, a since that is raised, a minSchemaVersion
// that is lowered.
func TestRefusalsHeal(t *testing.T) {
	added := contract(t, f(narrow, ""))
	for name, test := range map[string]struct {
		built, live, mended *capability.Document
	}{
		"a capability is added":       {added, contract(t, ""), added},
		"a contract is rolled back":   {added, contract(t, f(needs, "")), added},
		"since is raised":             {asking(t, "1.3"), added, contract(t, "  - {name: f, since: 1.3.0, inputSchema: "+narrow+"}\n")},
		"a schema becomes supported":  {added, contract(t, f(needs, "")), contract(t, f(wide, ""))},
		"an output is promised again": {contract(t, f("", narrow)), contract(t, f("", "")), contract(t, f("", narrow))},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, test.built, test.live, drift.Options{})
				var found *drift.SchemaDriftError
				if _, err := w.call(`{"a":1}`); !errors.As(err, &found) || len(w.gate.Warnings()) == 0 {
					t.Fatalf("%v, troubles %v", err, w.gate.Warnings())
				}
				w.replace(test.mended)
				time.Sleep(time.Second) // in the bubble
				if res, err := w.call(`{"a":1}`); err != nil || res.Unproven != "" {
					t.Errorf("%v", err)
				}
				if troubles := w.gate.Warnings(); len(troubles) != 0 {
					t.Errorf("troubles %v", troubles)
				}
			})
		})
	}
}

// A raised or lowered minSchemaVersion counts from the next call on.
func TestMinSchemaVersionChanges(t *testing.T) {
	live := contract(t, f(narrow, ""))
	w := newWorld(t, asking(t, "1.2"), live, drift.Options{})
	peer, _ := w.peers.Peer(calleeAddr)
	for i, step := range []struct {
		least  string
		passes bool
	}{{"1.2", true}, {"1.3", false}, {"1.2", true}, {"2", false}, {"", true}} {
		peer.MinSchemaVersion = step.least
		w.peers[calleeAddr] = peer
		if _, err := w.call(`{"a":1}`); (err == nil) != step.passes {
			t.Errorf("step %d, at least %q: %v", i, step.least, err)
		}
	}
}

// A tool that the peer offers and this agent's copy of its file lacks is reported.
func TestGateTellsWhatItCannotUse(t *testing.T) {
	w := newWorld(t, contract(t, f(narrow, "")), contract(t, f(narrow, "")+"  - {name: fresh, skill: f}\n  - {name: even-fresher, skill: f}\n"), drift.Options{})
	if _, err := w.call(`{"a":1}`); err != nil {
		t.Fatal(err)
	}
	want := []string{"agent://callee offers even-fresher, fresh, which this agent's copy of its file lacks"}
	if got := w.gate.Warnings(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A peer that offers a lot is reported in few words.
func TestGateTellsFewNames(t *testing.T) {
	s := newForeigner(t, contractOf(t), drift.Options{})
	var all strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&all, `"n%05d":{},`, i)
	}
	s.says(publishes(tools("", all.String()+`"`+strings.Repeat("x", 200)+`":{},`+goodTool)))
	s.listen(t)
	if _, err := s.call(`{"a":1}`); err != nil {
		t.Fatal(err)
	}
	if got := s.gate.Warnings(); len(got) != 1 || !strings.Contains(got[0], "n00009 and 9990 more") {
		t.Errorf("%.300q", got)
	}
}

// Records of drift name the call that met it.
func TestDriftRecordsNameTheCall(t *testing.T) {
	w := newWorld(t, contract(t, f(wide, "")), contract(t, f(narrow, "")), drift.Options{})
	r := attempt(`{"a":1}`)
	r.SessionID = "s-1"
	res, _ := w.client.RequestAgent(t.Context(), r)
	records := w.ledger.all()
	if len(records) != 1 || records[0].Call.CorrelationID != res.CorrelationID || records[0].Call.SessionID != "s-1" || len(records[0].Call.TraceID) != 32 {
		t.Errorf("%+v of call %s", records, res.CorrelationID)
	}
}
