from __future__ import annotations

import json
import signal
import unittest
from typing import Any

from host import Host
from test_client import Agent, reply


class WorkerTest(unittest.TestCase):
    def test_serves_calls(self) -> None:
        with Host() as h:
            self.assertEqual((h.hello["protocolVersion"], h.hello["concurrency"]), (1, 1))
            for payload in (9007199254740993, -(10**40), "ä\u2028\n€𝄞", {"": [None, True, 0.5]}, "x" * 300_000):
                self.assertEqual(h.call("echo", payload), payload)
            self.assertEqual(h.call("arguments"), {})
            self.assertEqual(
                h.call("know", caller="agent://b", callerProven=True, tenantId="t", tracestate="v=1", hops=2, deadlineMs=7, event=True, later=1),
                ["agent://b", True, "agent://a", "know", "t", "v=1", 2, 7, True, False],
            )
            # The variable is not for programs that the skill starts, and the pipe is not for it.
            self.assertEqual(h.call("environment"), [None, "", True])
            h.notify("shutdown")
            status, log = h.close()
            self.assertEqual(status, 0)
            self.assertEqual(log.count("a forgotten print"), 5)
            self.assertEqual(log.count("and one of a program"), 5)

    def test_failures_are_those_of_their_calls(self) -> None:
        with Host() as h:
            self.assertEqual(h.error(h.invoke("fail", True)), {"code": -32000, "message": "not today", "data": {"retryable": True}})
            self.assertEqual(h.error(h.invoke("fail", False)), {"code": -32000, "message": "not today"})
            for wrong in ("nan", "surrogate", "deep", "class", "long"):
                self.assertEqual(h.error(h.invoke("answer", wrong))["code"], -32603, wrong)
            self.assertEqual(h.error(h.invoke("fail-oddly", "exception")), {"code": -32000, "message": "why"})
            self.assertEqual(h.error(h.invoke("fail-oddly", "half")), {"code": -32000, "message": "a\\udce9"})
            self.assertEqual(h.error(h.invoke("fail-oddly", "file"))["code"], -32603)
            self.assertEqual(h.error(h.invoke("exit"))["code"], -32603)
            self.assertEqual(h.error(h.invoke("unknown"))["code"], -32602)
            # What Python cannot read fails for the caller, whatever other calls run.
            for text in (b"1" * 5000, b"[" * 100_000 + b"]" * 100_000):
                h.send(b'{"jsonrpc":"2.0","id":700,"method":"invoke","params":{"capability":"echo","payload":%s}}' % text)
                self.assertEqual(h.error(700)["code"], -32000)
            self.assertEqual(h.call("echo", 1), 1)
            status, log = h.close()
            self.assertEqual(status, 0)
            self.assertIn("hunter2", log)  # the cause, for the log
            self.assertIn("correlation_id=c-1", log)

    def test_cancel_ends_what_blocks(self) -> None:
        with Host() as h:
            id = h.invoke("wait")
            h.notify("cancel", id=id, reason="caller")
            self.assertEqual(h.result(id), {"answer": "canceled"})
            # A nested call ends too.
            id = h.invoke("ask", 1)
            asked = h.read()
            h.notify("cancel", id=id)
            self.assertEqual(h.read()["params"], {"id": asked["id"]})
            self.assertEqual(h.error(id)["code"], -32800)
            h.respond(asked["id"], {"status": "ok"})  # too late
            h.notify("cancel", id=id)
            self.assertEqual(h.call("echo", 1), 1)

    def test_serves_several_calls_at_once(self) -> None:
        for kind in ("sync", "async"):
            with self.subTest(kind), Host("3", kind) as h:
                ids = {h.invoke("nap") for _ in range(3)}
                self.assertEqual({h.read()["id"] for _ in ids}, ids)
                ids = {h.invoke("nap") for _ in range(3)}  # by the same threads
                self.assertEqual({h.read()["id"] for _ in ids}, ids)

    def test_asynchronous_functions_share_a_loop(self) -> None:
        with Host("2", "async") as h:
            self.assertEqual(h.call("loops"), [True, True])
            self.assertEqual(h.call("loops"), [True, True])
            self.assertEqual(h.call("block"), "refused")
            self.assertEqual(h.call("environment")[2], False)  # what blocks runs in a thread
            id = h.invoke("await-forever", progress=True)
            h.notify("cancel", id=id)
            seen = h.read()
            if seen.get("method") == "progress":  # it had begun
                seen = h.read()
            self.assertEqual((seen["id"], seen["error"]["code"]), (id, -32800))

    def test_cancel_before_a_task_begins(self) -> None:
        with Host("2", "async") as h:
            invoke = {"jsonrpc": "2.0", "id": 90, "method": "invoke", "params": {"capability": "await-forever", "payload": None}}
            cancel = {"jsonrpc": "2.0", "method": "cancel", "params": {"id": 90}}
            h.send(json.dumps(invoke).encode() + b"\n" + json.dumps(cancel).encode())
            self.assertEqual(h.error(90)["code"], -32800)

    def test_progress(self) -> None:
        with Host() as h:
            id = h.invoke("report", [1, {"a": [2]}], progress=True)
            self.assertEqual(h.read(), {"jsonrpc": "2.0", "method": "progress", "params": {"id": id, "value": 1}})
            self.assertEqual(h.read()["params"], {"id": id, "value": {"a": [2]}})
            self.assertEqual(h.result(id), {"answer": [True, True]})
            self.assertEqual(h.call("late"), True)  # without a line about a call that has ended
            self.assertEqual(h.call("report", [1]), [False])
            self.assertEqual(h.error(h.invoke("report", ["x" * 70_000]))["code"], -32603)

    def test_model_usage(self) -> None:
        given: dict[str, Any] = {"provider": "openai", "model": "gpt-5/mini", "input_tokens": 12, "output_tokens": 3, "operation": "chat", "duration_ms": 40}
        with Host(maxModelUsages=2) as h:
            id = h.invoke("use", [given])
            sent = {"provider": "openai", "model": "gpt-5/mini", "inputTokens": 12, "outputTokens": 3, "operation": "chat", "durationMs": 40}
            self.assertEqual(h.read(), {"jsonrpc": "2.0", "method": "modelUsage", "params": {"id": id, "usage": sent}})
            self.assertEqual(h.result(id), {"answer": [True]})
            self.assertEqual(h.call("use-late"), "EAGENTRPC_INVALID_REQUEST")  # without a line about a call that has ended
            id = h.invoke("use", [given] * 3)
            self.assertEqual([h.read()["method"] for _ in range(2)], ["modelUsage"] * 2)
            self.assertIn("2 reports", h.result(id)["answer"])
            wrongs: list[dict[str, Any]] = [{"model": "a b"}, {"provider": ""}, {"model": "x" * 129}, {"input_tokens": -1}, {"output_tokens": 10**9 + 1}, {"input_tokens": 1.5}, {"input_tokens": True}, {"operation": "dream"}, {"duration_ms": 3_600_001}]
            for wrong in wrongs:
                self.assertRegex(h.call("use", [{**given, **wrong}]), f"^(Type|Value)Error: {next(iter(wrong))}")
        with Host() as h:  # an agentd that takes no reports
            self.assertEqual(h.call("use", [given]), [False])

    def test_nested_calls(self) -> None:
        with Host() as h:
            id = h.invoke("ask", {"n": 9007199254740993})
            asked = h.read()
            self.assertEqual(asked["method"], "requestAgent")
            self.assertEqual(
                asked["params"],
                {
                    "call": id,
                    "request": {
                        "to": "peer",
                        "capability": "find",
                        "payload": {"n": 9007199254740993},
                        "timeoutMs": 500,
                        "mode": "sync",
                        "idempotencyKey": "k",
                    },
                },
            )
            h.respond(asked["id"], {"status": "ok", "correlationId": "n", "latencyMs": 1, "response": [1], "of-the-future": 1})
            self.assertEqual(h.result(id), {"answer": [1]})
            # One that fails has failed the skill, unless that does something about it.
            id = h.invoke("ask")
            h.respond(h.read()["id"], {"status": "busy", "error": {"code": "EAGENTRPC_BUSY", "message": "full", "retryable": True}})
            error = h.error(id)
            self.assertEqual((error["code"], error["data"]), (-32603, {"retryable": True}))
            id = h.invoke("ask")
            h.send(json.dumps({"jsonrpc": "2.0", "id": h.read()["id"], "error": {"code": -32002, "message": "many"}}).encode())
            self.assertEqual(h.result(id)["answer"], ["EAGENTRPC_BUSY", "EAGENTRPC_BUSY: many"])

    def test_nested_values_that_python_does_not_read(self) -> None:
        long = b"1" * 5000
        for kind, capability in (("sync", "follow"), ("async", "afollow")):
            with self.subTest(kind), Host("2", kind) as h:
                other = h.invoke("ask")  # which waits all the while
                waiting = h.read()["id"]
                id = h.invoke(capability)
                h.send(b'{"jsonrpc":"2.0","id":%d,"result":{"status":"ok","response":%s}}' % (h.read()["id"], long))
                error = h.error(id)
                self.assertEqual((error["code"], error["message"][:39]), (-32603, "ConnectionFailed: the reply has a numbe"))
                id = h.invoke(capability)
                asked = h.read()["id"]
                h.send(b'{"jsonrpc":"2.0","method":"progress","params":{"id":%d,"seq":1,"attempt":1,"value":%s}}' % (asked, long))
                self.assertEqual(h.read()["params"], {"id": asked})  # it is cancelled
                self.assertEqual(h.error(id)["code"], -32603)
                h.respond(waiting, {"status": "ok", "response": 1})
                self.assertEqual(h.result(other), {"answer": 1})

    def test_a_loop_that_does_not_wait_for_its_answer(self) -> None:
        with Host() as h:
            id = h.invoke("leaves")
            asked = h.read()
            self.assertEqual(h.result(id), {"answer": None})
            h.respond(asked["id"], {"status": "ok", "response": 1})
            self.assertEqual(h.call("echo", 1), 1)

    def test_progress_of_nested_calls(self) -> None:
        for kind, capability, want in (("sync", "follow", [[1, 1, "a"], [3, 1, "b"], "ok"]), ("async", "afollow", ["a", "b", "ok"])):
            with self.subTest(kind), Host("1", kind) as h:
                id = h.invoke(capability)
                asked = h.read()
                self.assertIs(asked["params"]["progress"], True)
                h.notify("progress", id=asked["id"], seq=1, attempt=1, value="a")
                h.notify("progress", id=asked["id"], seq=3, attempt=1, value="b")
                h.notify("progress", id=4711, seq=1, attempt=1, value="of nobody")
                h.respond(asked["id"], {"status": "ok", "response": None})
                self.assertEqual(h.result(id)["answer"], want)

    def test_results_of_asynchronous_calls(self) -> None:
        agent = Agent(reply(200, {"status": "timeout"}))
        self.addCleanup(agent.close)
        with Host(url=agent.endpoint) as h:
            self.assertEqual(h.call("await", "c-9", token="token"), "timeout")
            line, headers, _ = agent.requests[0]
            self.assertEqual((line, headers["Agentd-Call"]), ("GET /v1/results/c-9?timeoutMs=30000", "token"))

    def test_nested_calls_at_once(self) -> None:
        with Host("1", "async") as h:
            id = h.invoke("aask", [1, 2, 3])
            asked = [h.read() for _ in range(3)]
            for a in reversed(asked):
                h.respond(a["id"], {"status": "ok", "response": a["params"]["request"]["payload"] * 10})
            self.assertEqual(h.result(id)["answer"], [10, 20, 30])

    def test_ends(self) -> None:
        for kind in ("sync", "async"):
            with self.subTest(kind, how="input"), Host("2", kind) as h:
                id = h.invoke("wait")
                assert h.process.stdin
                h.process.stdin.close()
                self.assertEqual(h.result(id), {"answer": "canceled"})  # it has had the time for that
                self.assertEqual(h.process.wait(), 0)
            with self.subTest(kind, how="signal"), Host("2", kind) as h:
                h.call("echo")
                h.process.send_signal(signal.SIGTERM)
                self.assertEqual(h.process.wait(), 0)

    def test_refuses_other_versions(self) -> None:
        with Host() as h:
            self.assertEqual(h.error(h.request("initialize", protocolVersions=[2]))["code"], -32602)
            self.assertEqual(h.process.wait(), 1)

    def test_refuses_what_it_does_not_know(self) -> None:
        with Host() as h:
            h.notify("of-the-future")
            self.assertEqual(h.error(h.request("of-the-future"))["code"], -32601)
            self.assertEqual(h.result(h.request("ping")), {})


if __name__ == "__main__":
    unittest.main()
