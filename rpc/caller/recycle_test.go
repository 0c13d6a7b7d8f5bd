package caller_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/rpc/internal/rpctest"
)

// A keeper keeps what it is told of calls for longer than there are the calls.
type keeper struct {
	mu      sync.Mutex
	probes  []caller.Probe             // guarded by mu
	records map[string]*rpc.CallRecord // by correlation id; guarded by mu
}

func (k *keeper) Check(_ context.Context, p caller.Probe) (caller.Clearance, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.probes = append(k.probes, p)
	return caller.Clearance{}, nil
}

func (k *keeper) RecordCall(r rpc.CallRecord) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.records[r.CorrelationID] = &r
}

func (k *keeper) Refuses() error { return nil }

// Calls use each other's memory, and nothing that anybody keeps of one becomes another's:
// neither of those that run at the same time nor of those that fail.
func TestCallsKeepWhatIsTheirs(t *testing.T) {
	kept := &keeper{records: map[string]*rpc.CallRecord{}}
	w := rpctest.NewWorld(t, rpc.HandlerFunc(func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		return inv.Payload, nil
	}), func(cc *caller.Config, _ *callee.Config) {
		cc.Checks.Gate, cc.Records.Access = kept, kept
	})
	const callers, each = 8, 50
	type made struct {
		session string
		payload json.RawMessage
	}
	var mu sync.Mutex
	all := map[string]made{}
	var calling sync.WaitGroup
	for n := range callers {
		calling.Go(func() {
			for i := range each {
				m := made{session: fmt.Sprint("s-", n, "-", i), payload: json.RawMessage(fmt.Sprintf(`{"n":%d,"i":%d}`, n, i))}
				ctx, cancel := context.WithCancel(t.Context())
				if i%5 == 0 {
					cancel() // the call fails, somewhere on its way
				}
				res, err := w.Client.RequestAgent(ctx, rpc.Request{To: rpctest.Reviewer, Capability: "loose", Payload: m.payload, SessionID: m.session})
				cancel()
				if err == nil && string(res.Response) != string(m.payload) {
					t.Errorf("the answer to %s is %s", m.payload, res.Response)
				}
				mu.Lock()
				all[res.CorrelationID] = m
				mu.Unlock()
			}
		})
	}
	calling.Wait()
	if len(all) != callers*each || len(kept.records) != len(all) || len(kept.probes) != len(all) {
		t.Fatalf("%d calls, %d records, %d probes", len(all), len(kept.records), len(kept.probes))
	}
	for _, p := range kept.probes {
		ids := p.IDs()
		record, call := kept.records[ids.CorrelationID], all[ids.CorrelationID]
		if record == nil || ids.SessionID != call.session || record.SessionID != call.session || ids.TraceID != record.TraceID {
			t.Fatalf("the call of %+v has the ids %+v and the record %+v", call, ids, record)
		}
		if record.Payload != (envelope.PayloadDigest{}) && record.Payload != envelope.DigestPayload(call.payload) {
			t.Errorf("the record of %s is of another payload", call.payload)
		}
	}
}
