package daemon_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/rpc"
)

// pipeEcho is the bare thing: a line in, the same line out.
func pipeEcho() {
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			os.Exit(0)
		}
		if _, err := os.Stdout.Write(line); err != nil {
			os.Exit(1)
		}
	}
}

const (
	pythonPipe = "import sys\nfor line in sys.stdin:\n    sys.stdout.write(line)\n    sys.stdout.flush()\n"
	// pythonWorker says that it serves several calls at once: they wait in its pipe.
	pythonWorker = `
import json, sys
out = sys.stdout
for line in sys.stdin:
    m = json.loads(line)
    if m["method"] == "invoke":
        result = {"answer": m["params"]["payload"]}
    elif m["method"] == "initialize":
        result = {"protocolVersion": 1, "concurrency": 16}
    elif "id" in m:
        result = {}
    else:
        continue
    out.write(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": result}) + "\n")
    out.flush()
`
	// pythonKit is a worker with the kit for Python.
	pythonKit = `
import sys
import agentd

async def answer(payload, call):
    return payload

if sys.argv[1] == "async":
    agentd.serve({"python-kit-async": answer}, concurrency=16)
agentd.serve({"python-kit": lambda payload, call: payload}, concurrency=16)
`
	nodePipe = "process.stdin.on('data', (chunk) => process.stdout.write(chunk))"
	// nodeWorker is one with the kit for TypeScript.
	nodeWorker    = "import { serve } from '%s';\nawait serve({ node: (payload) => payload }, { concurrency: 16 });\n"
	pythonProcess = "import json, sys\njson.dump(json.load(sys.stdin), sys.stdout)\n"
)

// BenchmarkWorker compares calls between two agents on the memory transport, whose skill is a
// worker, with lines through the pipes of a bare program in the same language, and with a
// process for each call.
func BenchmarkWorker(b *testing.B) {
	self, err := filepath.Abs(os.Args[0])
	if err != nil {
		b.Fatal(err)
	}
	all := files()
	all["callee/worker.py"], all["callee/process.py"] = pythonWorker, pythonProcess
	kit, err := filepath.Abs("../sdk/typescript/dist/index.js")
	if err != nil {
		b.Fatal(err)
	}
	pythonSource, err := filepath.Abs("../sdk/python/src")
	if err != nil {
		b.Fatal(err)
	}
	all["callee/kit.py"] = pythonKit
	all["callee/worker.mjs"] = fmt.Sprintf(nodeWorker, kit)
	all["callee/agent.yaml"] = "name: callee\nsecurity: {auditLog: false}\nskills:\n" +
		"  go: {worker: {command: [" + self + "], env: {DAEMON_TEST: worker}}}\n" +
		"  python: {worker: {command: [python3, worker.py], dir: callee}}\n" +
		"  python-kit: {worker: {command: [python3, kit.py, sync], dir: callee, env: {PYTHONPATH: " + pythonSource + "}}, sandbox: {read: [" + pythonSource + "]}}\n" +
		"  python-kit-async: {worker: {command: [python3, kit.py, async], dir: callee, env: {PYTHONPATH: " + pythonSource + "}}, sandbox: {read: [" + pythonSource + "]}}\n" +
		"  node: {worker: {command: [node, worker.mjs], dir: callee}, sandbox: {read: [" + filepath.Dir(filepath.Dir(kit)) + "]}}\n" +
		"  process: {process: {command: [python3, process.py], dir: callee}}\n"
	all["caller/agent.yaml"] += "security: {auditLog: false}\n"
	all["callee/capabilities.yaml"] = "version: 1\nagent: agent://callee\ntransports: [{kind: memory, topics: {requests: agents.callee.requests}}]\n" +
		"capabilities: [{name: go}, {name: python}, {name: python-kit}, {name: python-kit-async}, {name: node}, {name: process}]\n"
	cfg := load(b, all)
	cfg.Logger = slog.New(slog.DiscardHandler)
	f := startFleet(b, cfg)
	defer stop(b, f)
	c := client(b, f, "caller")
	call := func(b *testing.B, capability string) {
		if _, err := c.RequestAgent(context.Background(), rpc.Request{To: "agent://callee", Capability: capability, Payload: json.RawMessage(`{"n":1}`)}); err != nil {
			b.Error(err)
		}
	}
	python := exec.Command("python3", "-c", pythonPipe)
	for language, pipe := range map[string]*exec.Cmd{"go": exec.Command(self), "python": python, "python-kit": python, "python-kit-async": python, "node": exec.Command("node", "-e", nodePipe)} {
		b.Run(language, func(b *testing.B) {
			if _, err := exec.LookPath(pipe.Path); err != nil {
				b.Skip(err)
			}
			b.Run("pipe", func(b *testing.B) { benchPipe(b, pipe) })
			b.Run("one-caller", func(b *testing.B) {
				call(b, language)
				benchMedian(b, func() { call(b, language) })
			})
			b.Run("32-callers", func(b *testing.B) {
				b.SetParallelism(16)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						call(b, language)
					}
				})
			})
		})
	}
	b.Run("process", func(b *testing.B) { benchMedian(b, func() { call(b, "process") }) })
}

// benchPipe sends lines through a program, one after the other.
func benchPipe(b *testing.B, like *exec.Cmd) {
	cmd := exec.Command(like.Path, like.Args[1:]...)
	cmd.Env = append(os.Environ(), "DAEMON_TEST=pipe")
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	out := bufio.NewReader(pipe)
	line := `{"jsonrpc":"2.0","id":7,"result":{"answer":{"n":1}}}` + strings.Repeat(" ", 200) + "\n"
	for b.Loop() {
		if _, err := io.WriteString(in, line); err != nil {
			b.Fatal(err)
		}
		if _, err := out.ReadSlice('\n'); err != nil {
			b.Fatal(err)
		}
	}
	_ = in.Close()
	_ = cmd.Wait()
}

// benchMedian also reports how long half of the calls take at most.
func benchMedian(b *testing.B, call func()) {
	var took []time.Duration
	for b.Loop() {
		start := time.Now()
		call()
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns")
}
