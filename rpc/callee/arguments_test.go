package callee_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/rpc/internal/rpctest"
	"github.com/agentd/agentd/schema"
)

// withInput is the test's contract with another inputSchema, which validates with at
// most so many violations.
func withInput(t *testing.T, input string, maxViolations int) *capability.Document {
	t.Helper()
	src, _, _ := strings.Cut(rpctest.Contract, "  - name: review-pr")
	doc := rpctest.Document(t, src+"  - {name: review-pr, inputSchema: "+input+"}\n  - name: loose\n")
	doc, err := doc.WithEngine(capability.Limited(capability.Native{}, schema.Limits{MaxViolations: maxViolations}))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// serving gives the callee a contract, and the caller the same or none.
func serving(doc *capability.Document, callerToo bool) rpctest.Option {
	return func(cc *caller.Config, ic *callee.Config) {
		peer := cc.Peers.(rpc.Peers)[rpctest.Reviewer]
		peer.Contract = nil
		if callerToo {
			peer.Contract = doc
		}
		cc.Peers, ic.Contract = rpc.Peers{rpctest.Reviewer: peer}, doc
	}
}

// A call without arguments passes both ends for every form of a schema of objects,
// and the skill gets what the caller sent.
func TestCallWithoutArguments(t *testing.T) {
	for name, test := range map[string]struct {
		input  string
		status rpc.Status
	}{
		"object":           {`{type: object}`, rpc.StatusOK},
		"behind allOf":     {`{allOf: [{type: object}, {properties: {a: {}}}]}`, rpc.StatusOK},
		"behind $ref":      {`{anyOf: [{$ref: "#/definitions/p"}], definitions: {p: {type: [object, string]}}}`, rpc.StatusOK},
		"null is accepted": {`{type: [object, "null"], required: [a]}`, rpc.StatusOK},
		"required members": {`{type: object, required: [a]}`, rpc.StatusSchemaViolation},
		"no object":        {`{type: array}`, rpc.StatusSchemaViolation},
	} {
		for _, callerToo := range []bool{true, false} {
			var got json.RawMessage
			w := rpctest.NewWorld(t, rpc.HandlerFunc(func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
				got = inv.Payload
				return json.RawMessage("1"), nil
			}), serving(withInput(t, test.input, 100), callerToo))
			for _, payload := range []string{"", " \t", "null", " null\n"} {
				got = nil
				r := rpctest.Request()
				r.Payload = json.RawMessage(payload)
				res := w.Call(t, r)
				if res.Status != test.status {
					t.Errorf("%s, caller checks %v: %q ends as %s: %v", name, callerToo, payload, res.Status, res.Error)
				}
				if (got != nil) != (test.status == rpc.StatusOK) || got != nil && strings.TrimSpace(string(got)) != "null" {
					t.Errorf("%s, caller checks %v: the skill got %q for %q", name, callerToo, got, payload)
				}
			}
		}
	}
}

// Whoever finds the violations, the caller's result and the finder's record say how
// many the bound left out.
func TestOmittedViolationsAreTold(t *testing.T) {
	for _, callerToo := range []bool{true, false} {
		w := rpctest.NewWorld(t, rpctest.Answers("1"), serving(withInput(t, `{type: array, items: {type: string}}`, 3), callerToo))
		r := rpctest.Request()
		r.Payload = json.RawMessage(`[1,2,3,4,5,6,7,8]`)
		res := w.Call(t, r)
		rpctest.WantStatus(t, res, rpc.StatusSchemaViolation, rpc.CodeSchemaViolation)
		records := w.CalleeViolations.All()
		if callerToo {
			records = w.CallerViolations.All()
		}
		if len(res.Violations) != 3 || res.ViolationsOmitted != 5 || !strings.HasSuffix(res.Error.Message, "; and 5 more") {
			t.Errorf("caller checks %v: %d violations, %d omitted: %v", callerToo, len(res.Violations), res.ViolationsOmitted, res.Error)
		}
		if len(records) != 1 || len(records[0].Violations) != 3 || records[0].ViolationsOmitted != 5 {
			t.Errorf("caller checks %v: records %+v", callerToo, records)
		}
	}
}
