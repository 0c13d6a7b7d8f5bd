package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/agentd/agentd/codegen/testdata/golden/shapes/shapes"
	"github.com/agentd/agentd/codegen/typed"
	"github.com/agentd/agentd/skill/sdk"
)

// nodeModulesEnv names the folder node_modules in which npm has installed
// typescript.
const nodeModulesEnv = "AGENTD_NODE_MODULES"

// condition decides [python] and [typescript]: whether skills in these languages can
// run here, [venv]: whether Python can install packages into an empty environment, [newnode]: whether npm has installed a Node.js that runs TypeScript, and
// [inspector]: whether it has installed MCP Inspector.
func condition(name string) (bool, error) {
	installed := func(packages ...string) bool {
		missing := slices.ContainsFunc(packages, func(path string) bool {
			_, err := os.Stat(filepath.Join(os.Getenv(nodeModulesEnv), filepath.FromSlash(path)))
			return err != nil
		})
		return !missing && os.Getenv(nodeModulesEnv) != ""
	}
	switch name {
	case "python":
		return exec.Command("python3", "-c", "import sys; sys.exit(sys.version_info < (3, 11))").Run() == nil, nil
	case "venv":
		return exec.Command("python3", "-c", "import sys, venv, pip; sys.exit(sys.version_info < (3, 10) or [int(n) for n in pip.__version__.split('.')[:2]] < [22, 3])").Run() == nil, nil
	case "newnode":
		return installed("node/bin/node"), nil
	case "pyright":
		return installed("node/bin/node", "pyright/index.js"), nil
	case "inspector":
		return installed("node/bin/node", "@modelcontextprotocol/inspector"), nil
	case "root":
		return os.Getuid() == 0, nil
	case "mcpservers":
		_, noNode := exec.LookPath("node")
		return noNode == nil && installed("@modelcontextprotocol/server-everything", "@modelcontextprotocol/server-filesystem", "@modelcontextprotocol/server-memory"), nil
	case "typescript":
		_, noNode := exec.LookPath("node")
		return noNode == nil && installed("typescript/bin/tsc"), nil
	case "mcp-sdk":
		_, noNode := exec.LookPath("node")
		return noNode == nil && installed("@modelcontextprotocol/sdk"), nil
	}
	return false, fmt.Errorf("unknown condition %q", name)
}

// A known is what the skills of skills.txtar answer: what they know of their call.
type known struct {
	Payload        json.RawMessage `json:"payload"`
	Caller         string          `json:"caller"`
	CallerProven   *bool           `json:"callerProven"`
	Agent          string          `json:"agent"`
	Capability     string          `json:"capability"`
	CorrelationID  string          `json:"correlationId"`
	MessageID      string          `json:"messageId"`
	SessionID      string          `json:"sessionId"`
	TenantID       string          `json:"tenantId"`
	IdempotencyKey string          `json:"idempotencyKey"`
	Traceparent    string          `json:"traceparent"`
	Hops           int             `json:"hops"`
	DeadlineMs     int64           `json:"deadlineMs"`
	// FirstMs and FirstCost are the executionTimeMs and the costEstimate of a nested
	// call, and Nested is the result of its repetition, which costs nothing.
	FirstMs   float64            `json:"firstMs"`
	FirstCost map[string]float64 `json:"firstCost"`
	// OwnTrace is the trace of a nested call that continues a span of the skill's own.
	OwnTrace string  `json:"ownTrace"`
	Nested   *nested `json:"nested"`
}

// A nested is the result of a nested call, as the kit of the language shows it.
type nested struct {
	Response        known              `json:"response"`
	CorrelationID   string             `json:"correlationId"`
	TraceID         string             `json:"traceId"`
	ExecutionTimeMs float64            `json:"executionTimeMs"`
	CostEstimate    map[string]float64 `json:"costEstimate"`
	Replayed        bool               `json:"replayed"`
	Queued          bool               `json:"queued"`
}

// goSkill is the skill in Go: a generated request type, which takes no null, and the
// kit's calls.
func goSkill() {
	var mux typed.Mux
	typed.Handle(&mux, "go-whoami", "go", func(ctx context.Context, in shapes.GetUser_5d95Request) (any, error) {
		payload, err := typed.Marshal(in)
		if err != nil {
			return nil, err
		}
		env := sdk.EnvironmentFrom(ctx)
		out := known{
			Payload: payload, Caller: env.Caller, CallerProven: &env.CallerProven, Agent: env.Agent, Capability: env.Capability, CorrelationID: env.CorrelationID,
			MessageID: env.MessageID, SessionID: env.SessionID, TenantID: env.TenantID, IdempotencyKey: env.IdempotencyKey,
			Traceparent: env.Traceparent, Hops: env.Hops, DeadlineMs: env.Deadline.UnixMilli(),
		}
		for i := range 2 {
			var outcome typed.Outcome
			response, err := typed.Request[json.RawMessage](ctx, sdk.Caller(), "agent://kits", "seen", nil,
				[]typed.CallOption{typed.WithOutcome(&outcome), typed.WithIdempotencyKey("nested-of-" + env.CorrelationID)})
			if err != nil {
				return nil, err
			}
			if i == 0 {
				out.FirstMs, out.FirstCost = float64(outcome.ExecutionTime)/float64(time.Millisecond), outcome.CostEstimate
			}
			out.Nested = &nested{
				CorrelationID: outcome.CorrelationID, TraceID: outcome.TraceID, ExecutionTimeMs: float64(outcome.ExecutionTime) / float64(time.Millisecond),
				CostEstimate: outcome.CostEstimate, Replayed: outcome.Replayed, Queued: outcome.Queued,
			}
			if err := json.Unmarshal(response, &out.Nested.Response); err != nil {
				return nil, err
			}
		}
		var own typed.Outcome
		_, err = typed.Request[json.RawMessage](ctx, sdk.Caller(), "agent://kits", "seen", nil,
			[]typed.CallOption{typed.WithOutcome(&own), typed.WithTraceparent("00-" + strings.Repeat("5", 32) + "-" + strings.Repeat("6", 16) + "-01")})
		out.OwnTrace = own.TraceID
		return out, err
	})
	sdk.Serve(&mux)
}

// knowsCall checks what a skill knows of a call: knowscall <file> <capability>
// <session> <key> <payload>. A nested call must be part of the same trace, under
// another span, and its kit must tell what its result says.
func knowsCall(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 5 {
		ts.Fatalf("usage: knowscall <file> <capability> <session> <key> <payload>")
	}
	var result struct {
		CorrelationID string `json:"correlationId"`
		Response      known  `json:"response"`
	}
	var compact bytes.Buffer
	ts.Check(json.Compact(&compact, []byte(ts.ReadFile(args[0]))))
	ts.Check(json.Unmarshal(compact.Bytes(), &result))
	k := result.Response
	if k.Nested == nil {
		ts.Fatalf("no nested call in %+v", result)
	}
	for _, c := range []struct{ what, got, want string }{
		{"payload", string(k.Payload), args[4]},
		{"caller", k.Caller, "agent://desk"},
		{"agent", k.Agent, "agent://kits"},
		{"capability", k.Capability, args[1]},
		{"correlation id", k.CorrelationID, result.CorrelationID},
		{"session", k.SessionID, args[2]},
		{"tenant", k.TenantID, ""},
		{"idempotency key", k.IdempotencyKey, args[3]},
		{"hops", strconv.Itoa(k.Hops), "1"},
		{"nested caller", k.Nested.Response.Caller, k.Agent},
		{"nested hops", strconv.Itoa(k.Nested.Response.Hops), "2"},
		{"nested session", k.Nested.Response.SessionID, args[2]},
		{"nested correlation id", k.Nested.Response.IdempotencyKey, "nested-of-" + k.CorrelationID},
	} {
		if c.got != c.want {
			ts.Fatalf("%s: %q, want %q", c.what, c.got, c.want)
		}
	}
	if k.CallerProven == nil || *k.CallerProven { // the fleet has no identities
		ts.Fatalf("the caller counts as proven, or nobody says")
	}
	inner := k.Nested.Response.Traceparent
	if len(k.Traceparent) != 55 || len(inner) != 55 || k.Traceparent[:35] != inner[:35] || k.Traceparent[36:52] == inner[36:52] {
		ts.Fatalf("the nested call continues %s as %s", k.Traceparent, inner)
	}
	if left := time.Until(time.UnixMilli(k.DeadlineMs)); left > time.Minute || left < -time.Minute {
		ts.Fatalf("the deadline is in %s", left)
	}
	if k.MessageID == "" || k.MessageID == k.Nested.Response.MessageID || k.Nested.CorrelationID == "" {
		ts.Fatalf("message %q, nested call %q", k.MessageID, k.Nested.CorrelationID)
	}
	if k.OwnTrace != strings.Repeat("5", 32) || k.Nested.TraceID != k.Traceparent[3:35] {
		ts.Fatalf("the traces are %q and %q", k.OwnTrace, k.Nested.TraceID)
	}
	n := k.Nested
	if !n.Replayed || n.Queued || k.FirstCost["usd"] != 0.5 || len(n.CostEstimate) != 0 || n.ExecutionTimeMs != 0 || k.FirstMs <= 0 {
		ts.Fatalf("the nested call took %v ms and cost %v, and its repetition is %+v", k.FirstMs, k.FirstCost, n)
	}
}
