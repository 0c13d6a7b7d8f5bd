package daemon_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentd/agentd/daemon/tracing"
	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/logtest"
	"github.com/agentd/agentd/rpc"
)

const (
	// modelPython is a worker, or a process of one call, that says what a model has used: its
	// payload, and whether agentd takes that.
	modelPython = `
import agentd

def use(payload, call):
    return call.model_usage(**payload)

agentd.serve({"python": use, "process": use})
`
	modelNode = `import { serve } from '%s';
await serve({ node: (payload, call) => call.modelUsage(payload) });
`
	// modelShell is a worker without a kit, which reports its payload as it is, and once more when
	// the call has ended.
	modelShell = `
while read -r line; do
	id=$(expr "$line" : '.*"id":\([0-9]*\)')
	case $line in
	*'"method":"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":1}}' ;;
	*'"method":"invoke"'*)
		usage=$(expr "$line" : '.*"payload":\(.*\)}}')
		report='{"jsonrpc":"2.0","method":"modelUsage","params":{"id":'$id',"usage":'$usage'}}'
		echo "$report"
		echo '{"jsonrpc":"2.0","id":'$id',"result":{"answer":true}}'
		echo "$report" ;;
	*) echo '{"jsonrpc":"2.0","id":'$id',"result":{}}' ;;
	esac
done
`
)

// withModels is a fleet whose callee has skills that use models.
func withModels(t *testing.T) map[string]string {
	t.Helper()
	for _, program := range []string{"python3", "node"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	kit, err := filepath.Abs("../sdk/typescript/dist/index.js")
	if err != nil {
		t.Fatal(err)
	}
	source, err := filepath.Abs("../sdk/python/src")
	if err != nil {
		t.Fatal(err)
	}
	all := files()
	all["callee/use.py"], all["callee/use.mjs"], all["callee/use.sh"] = modelPython, fmt.Sprintf(modelNode, kit), modelShell
	python := "command: [python3, use.py], dir: callee, env: {PYTHONPATH: " + source + ", PYTHONDONTWRITEBYTECODE: '1'}}, sandbox: {read: [" + source + "]}}\n"
	all["callee/agent.yaml"] = "name: callee\nskills:\n" +
		"  python: {worker: {" + python +
		"  process: {process: {" + python +
		"  shell: {worker: {command: [sh, use.sh], dir: callee}}\n" +
		"  node: {worker: {command: [node, use.mjs], dir: callee}, sandbox: {read: [" + filepath.Dir(filepath.Dir(kit)) + "]}}\n"
	all["callee/capabilities.yaml"] = "version: 1\nagent: agent://callee\ntransports: [{kind: memory, topics: {requests: agents.callee.requests}}]\n" +
		"capabilities: [{name: python}, {name: process}, {name: node}, {name: shell}]\n"
	return all
}

func usageOf(model, typ, capability, provider string) string {
	return fmt.Sprintf(`capability=%q,gen_ai_operation_name="chat",gen_ai_provider_name=%q,gen_ai_request_model=%q,gen_ai_token_type=%q`, capability, provider, model, typ)
}

// What skills say that models have used is a metric, and a span below the skill's run: of workers in
// each language, of a process, and without a kit.
func TestModelUsage(t *testing.T) {
	cfg := watched(withBus(load(t, withModels(t))))
	c := traced(t, &cfg, tracing.Sampler{Ratio: 1})
	callee, caller := startAgent(t, cfg, "callee"), startAgent(t, cfg, "caller")
	for capability, payload := range map[string]string{
		"python":  `{"provider":"anthropic","model":"opus","input_tokens":1200,"output_tokens":34,"duration_ms":5}`,
		"process": `{"provider":"anthropic","model":"opus","input_tokens":1200,"output_tokens":34,"duration_ms":5}`,
		"node":    `{"provider":"anthropic","model":"opus","inputTokens":1200,"outputTokens":34,"durationMs":5}`,
		"shell":   `{"provider":"anthropic","model":"opus","inputTokens":1200,"outputTokens":34,"durationMs":5}`,
	} {
		r, err := caller.Client().RequestAgent(t.Context(), rpc.Request{To: "agent://callee", Capability: capability, Payload: json.RawMessage(payload)})
		if err != nil || string(r.Response) != "true" {
			t.Fatalf("%s: %+v, %v", capability, r, err)
		}
		kind := "worker"
		if capability == "process" {
			kind = "process"
		}
		wantTree(t, c, r.TraceID, `
caller CLIENT "callee/`+capability+`"
  callee SERVER "callee/`+capability+`"
    callee INTERNAL "run `+capability+`" agentd.skill.kind=`+kind+`
      callee CLIENT "chat opus" gen_ai.operation.name=chat gen_ai.provider.name=anthropic gen_ai.request.model=opus gen_ai.usage.input_tokens=1200 gen_ai.usage.output_tokens=34
`, "agentd.skill.kind", "gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens")
		for typ, want := range map[string]float64{"input": 1200, "output": 34} {
			if got := metric(t, callee, "gen_ai_client_token_usage_sum", usageOf("opus", typ, capability, "anthropic")); got != want {
				t.Errorf("%s: %v %s tokens", capability, got, typ)
			}
		}
	}
}

// A report that is malformed, or comes after its call, changes nothing, ends nobody, and is a line of
// the log.
func TestModelUsageRefused(t *testing.T) {
	cfg := watched(withBus(load(t, withModels(t))))
	log := &logtest.Lines{}
	cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
	callee, caller := startAgent(t, cfg, "callee"), startAgent(t, cfg, "caller")
	report := func(payload string) {
		t.Helper()
		if _, err := caller.Client().RequestAgent(t.Context(), rpc.Request{To: "agent://callee", Capability: "shell", Payload: json.RawMessage(payload)}); err != nil {
			t.Fatal(err)
		}
	}
	report(`{"provider":"p","model":"m","inputTokens":-7}`)
	report(`{"provider":"p","model":"hunter2 hunter2","inputTokens":7}`)
	report(`{"provider":"p","model":"m","inputTokens":7}`)
	eventually.Holds(t, "the log has the refusals", func() bool {
		text := log.String()
		return strings.Contains(text, "no integer from 0 to 1000000000") && strings.Contains(text, "model of a model's usage is not 1 to 128") && strings.Contains(text, "has ended, or was never this worker's")
	})
	if got := metric(t, callee, "gen_ai_client_token_usage_sum", usageOf("m", "input", "shell", "p")); got != 7 {
		t.Errorf("%v tokens", got)
	}
	_, text := get(t, callee, "/metrics")
	if strings.Contains(text, "hunter2") || strings.Contains(log.String(), "hunter2") {
		t.Error("a refused name is in the metrics or the log")
	}
	if s := callee.Status().Workers; len(s) == 0 || s[len(s)-1].Skill != "shell" || s[len(s)-1].Restarts != 0 {
		t.Errorf("%+v", s)
	}
}

// A call with many names makes few series, and as many reports as a call may make.
func TestModelUsageFlood(t *testing.T) {
	all := withModels(t)
	all["callee/use.py"] = `
import agentd

def use(payload, call):
    for n in range(2000):
        call.model_usage(provider="p", model=f"hostile-{n}", input_tokens=1)

agentd.serve({"python": use})
`
	cfg := watched(withBus(load(t, all)))
	callee, caller := startAgent(t, cfg, "callee"), startAgent(t, cfg, "caller")
	_, err := caller.Client().RequestAgent(t.Context(), rpc.Request{To: "agent://callee", Capability: "python"})
	if err == nil {
		t.Error("a call has made more reports than it may")
	}
	_, text := get(t, callee, "/metrics")
	if n := strings.Count(text, "gen_ai_client_token_usage_sum{"); n != 17 {
		t.Errorf("%d series", n)
	}
	if got := metric(t, callee, "gen_ai_client_token_usage_count", `capability="python",gen_ai_operation_name="other",gen_ai_provider_name="other",gen_ai_request_model="other",gen_ai_token_type="input"`); got != rpc.MaxModelUsages-16 {
		t.Errorf("%v reports under other", got)
	}
}
