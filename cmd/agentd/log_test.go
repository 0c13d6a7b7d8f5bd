package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/agentd/agentd/rpc"
)

// With --log-calls each end logs a call in one line, and every line about a call leads
// to it in both logs: those of the call, of its failure, and of what the skill writes.
func TestLogsOfACall(t *testing.T) {
	t.Parallel()
	o := openOffice(t, "", nil, "--log-calls")
	request := func(capability string) *rpc.Result {
		result, err := o.desk.RequestAgent(t.Context(), rpc.Request{To: "agent://clerk", Capability: capability, Payload: json.RawMessage(`{}`)})
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	good, bad := request("file"), request("spill")
	if good.Status != rpc.StatusOK || bad.Status != rpc.StatusError {
		t.Fatalf("%+v, %+v", good, bad)
	}
	var details struct{ Incident string }
	if err := json.Unmarshal(bad.Error.Details, &details); err != nil || details.Incident == "" {
		t.Errorf("details %s, %v", bad.Error.Details, err)
	}
	o.stop(t) // they write their last lines
	trace := map[any]any{}
	for _, want := range []struct {
		log                *lines
		peer               string
		result             *rpc.Result
		level, msg, status string
		key, value         string // one more member
	}{
		{o.desk.log, "agent://clerk", good, "INFO", "call", "ok", "role", "caller"},
		{o.clerk.log, "agent://desk", good, "INFO", "call", "ok", "role", "callee"},
		{o.desk.log, "agent://clerk", bad, "INFO", "call", "error", "code", "HANDLER_ERROR"},
		{o.clerk.log, "agent://desk", bad, "INFO", "call", "error", "code", "HANDLER_ERROR"},
		{o.clerk.log, "agent://desk", bad, "INFO", "skill", "", "stderr", "all over the desk"},
		{o.clerk.log, "agent://desk", bad, "ERROR", "skill failed", "", "incident", details.Incident},
	} {
		capability := map[*rpc.Result]string{good: "file", bad: "spill"}[want.result]
		var found []map[string]any
		for _, r := range want.log.records(t) {
			if r["msg"] == want.msg && r["correlationId"] == want.result.CorrelationID && r[want.key] == want.value {
				found = append(found, r)
			}
		}
		if len(found) != 1 {
			t.Errorf("%d lines %q of %s %s in\n%s", len(found), want.msg, want.key, want.value, want.log)
			continue
		}
		r := found[0]
		if r["level"] != want.level || r["peer"] != want.peer || r["capability"] != capability || want.status != "" && r["status"] != want.status {
			t.Errorf("%v", r)
		}
		if id := fmt.Sprint(r["traceId"]); len(id) != 32 || trace[r["correlationId"]] != nil && trace[r["correlationId"]] != id {
			t.Errorf("the trace of %v is %v", r, trace)
		} else {
			trace[r["correlationId"]] = id
		}
	}
}

// A command that fails says so in the log's format as well: it is the line that an
// operator looks for.
func TestLastLineIsJSON(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("agentd", "run", "--agent", "nobody", "--fleet", t.TempDir())
	cmd.Env = append(os.Environ(), "AGENTD_LOG_FORMAT=json")
	out, err := cmd.CombinedOutput()
	var line struct {
		Level, Msg string
		ExitStatus int
	}
	if jerr := json.Unmarshal(out, &line); err == nil || jerr != nil || line.Level != "ERROR" || line.ExitStatus != 1 || line.Msg == "" {
		t.Errorf("%v, %v: %s", err, jerr, out)
	}
}
