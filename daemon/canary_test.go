package daemon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/rpc"
)

// What a skill knows (secrets, paths, statements, stacks) stays on its side,
// however it fails.
func TestNothingOfASkillGetsOut(t *testing.T) {
	const canary = "CANARY-5f1d"
	t.Setenv("AGENTD_TEST_SECRET", canary)
	inside := fmt.Errorf("open /srv/%s/key.pem: SELECT * FROM %s: %w", canary, canary, errors.New(canary))
	for name, test := range map[string]struct {
		skill   rpc.HandlerFunc
		command string
	}{
		"an error": {skill: func(context.Context, *rpc.Invocation) (json.RawMessage, error) { return nil, inside }},
		"a panic":  {skill: func(context.Context, *rpc.Invocation) (json.RawMessage, error) { panic(inside) }},
		"a cause": {skill: func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
			return nil, &rpc.SkillError{Message: "no", Err: inside}
		}},
		"no JSON": {skill: func(context.Context, *rpc.Invocation) (json.RawMessage, error) { return json.RawMessage(canary), nil }},
		"bad output": {skill: func(context.Context, *rpc.Invocation) (json.RawMessage, error) {
			return json.RawMessage(`{"verdict":"` + canary + `"}`), nil
		}},
		"exit status": {command: `["sh", "-c", "echo $AGENTD_TEST_SECRET >&2; exit 3"]`},
		"a signal":    {command: `["sh", "-c", "echo $AGENTD_TEST_SECRET >&2; kill -9 $$"]`},
		"no program":  {command: `["/nowhere/` + canary + `"]`},
		"text":        {command: `["sh", "-c", "echo $AGENTD_TEST_SECRET"]`},
		"half":        {command: `["sh", "-c", "printf '{\"a\":\"%s' $AGENTD_TEST_SECRET"]`},
	} {
		t.Run(name, func(t *testing.T) {
			all := files()
			all["callee/capabilities.yaml"] = "version: 1\nagent: agent://callee\ntransports: [{kind: memory, topics: {requests: agents.callee.requests}}]\n" +
				"capabilities:\n  - name: go\n    outputSchema: {type: object, properties: {verdict: {enum: [yes, no]}}, required: [verdict]}\n"
			if test.command != "" {
				all["callee/agent.yaml"] = "name: callee\nskills: {go: {process: {command: " + test.command + ", inheritEnv: [AGENTD_TEST_SECRET]}}}\n"
			}
			cfg := load(t, all)
			if test.skill != nil {
				cfg.Handlers = handle(test.skill)
			}
			f := startFleet(t, cfg)
			result, err := goCall(t, f)
			stop(t, f)
			if err == nil {
				t.Fatal("the call succeeded")
			}
			shown, merr := json.Marshal(result)
			if merr != nil {
				t.Fatal(merr)
			}
			for what, text := range map[string][]byte{"result": shown, "error": []byte(err.Error()), "records": auditFiles(t, cfg, "caller")} {
				if bytes.Contains(text, []byte(canary)) {
					t.Errorf("the caller's %s holds the canary: %.2000s", what, text)
				}
			}
			if text := auditFiles(t, cfg, "callee"); bytes.Contains(text, []byte(canary)) {
				t.Error("the callee's records hold the canary")
			}
		})
	}
}

// auditFiles is all that the audit log of an agent has on the disk.
func auditFiles(t *testing.T, cfg daemon.Config, agent string) []byte {
	t.Helper()
	paths, err := filepath.Glob(cfg.Paths.AuditDB(agent) + "*")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	var all []byte
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) { // a checkpoint that has been moved to its place meanwhile
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, data...)
	}
	return all
}
