from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import unittest
from typing import Any

from host import SKILL, environment


def run(capability: str, payload: str, *arguments: str, **more: str) -> tuple[int, Any, str]:
    env = environment(AGENTD_CAPABILITY=capability, AGENTD_AGENT="agent://a", AGENTD_CORRELATION_ID="c-1", **more)
    done = subprocess.run([sys.executable, SKILL, "1", *arguments], input=payload, capture_output=True, text=True, env=env)
    return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr


class ProcessTest(unittest.TestCase):
    def test_serves_its_call(self) -> None:
        status, answer, log = run("echo", '{"n": 9007199254740993}')
        self.assertEqual((status, answer), (0, {"n": 9007199254740993}))
        self.assertIn("a forgotten print", log)
        self.assertEqual(run("arguments", "")[:2], (0, {}))
        self.assertEqual(run("environment", "null")[1], [None, "", True])
        known = run("know", "null", AGENTD_CALLER="agent://b", AGENTD_CALLER_PROVEN="true", TRACESTATE="v=1", AGENTD_HOPS="2", AGENTD_DEADLINE="7")
        self.assertEqual(known[1], ["agent://b", True, "agent://a", "know", "", "v=1", 2, 7, False, True])

    def test_serves_asynchronous_functions(self) -> None:
        self.assertEqual(run("loops", "null", "async")[:2], (0, [True, True]))

    def test_loads_no_event_loop_that_it_does_not_need(self) -> None:
        program = "import sys, agentd; assert 'asyncio' not in sys.modules; agentd.CancelledError"
        subprocess.run([sys.executable, "-S", "-c", program], env=environment(), check=True)

    def test_failures(self) -> None:
        status, answer, log = run("fail", "true")
        self.assertEqual((status, answer), (75, {"error": {"message": "not today", "retryable": True}}))
        self.assertIn("hunter2", log)
        self.assertEqual(run("fail", "false")[0], 1)
        for payload in ('"nan"', '"class"', '"deep"'):
            self.assertEqual(run("answer", payload)[:2], (1, None))
        self.assertEqual(run("unknown", "null")[:2], (1, None))
        status, answer, log = run("ask", "null")
        self.assertEqual((status, answer), (1, None))
        self.assertIn("AGENTD_URL is not set", log)

    @unittest.skipUnless(os.path.exists("/proc/self/status"), "there is no /proc, which says when the skill is ready for signals")
    def test_cancelled(self) -> None:
        for capability, want in (("wait", 0), ("await-forever", 75)):
            env = environment(AGENTD_CAPABILITY=capability)
            with subprocess.Popen([sys.executable, SKILL, "1", "async"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env) as process:
                assert process.stdin and process.stdout
                process.stdin.close()
                while process.poll() is None:
                    # Before it has begun, the signal ends it; afterwards, it ends the call.
                    with open(f"/proc/{process.pid}/status") as f:
                        caught = [line for line in f if line.startswith("SigCgt:")]
                    if int(caught[0].split()[1], 16) & 1 << (signal.SIGTERM - 1):
                        process.send_signal(signal.SIGTERM)
                        break
                self.assertEqual(process.wait(), want, capability)


if __name__ == "__main__":
    unittest.main()
