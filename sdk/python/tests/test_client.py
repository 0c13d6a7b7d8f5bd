from __future__ import annotations

import asyncio
import json
import os
import socket
import tempfile
import threading
import unittest
from typing import Any, Callable, Optional

import agentd

OK: dict[str, Any] = {"status": "ok", "correlationId": "c", "latencyMs": 1, "response": {"n": 9007199254740993}, "of-the-future": 1}


class Agent:
    """Takes one request a connection, on a socket of either kind, and answers what the test says."""

    def __init__(self, answer: Callable[[Agent, socket.socket], None], path: str = "") -> None:
        self.requests: list[tuple[str, dict[str, str], Any]] = []
        self.closed = threading.Event()
        self._answer = answer
        self._socket = socket.socket(socket.AF_UNIX if path else socket.AF_INET)
        self._socket.bind(path or ("127.0.0.1", 0))
        self._socket.listen()
        self.endpoint = path or "http://127.0.0.1:%d" % self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            connection, _ = self._socket.accept()
            with connection, connection.makefile("rb") as stream:
                line = stream.readline().decode()
                if not line:
                    return
                headers: dict[str, str] = {}
                while header := stream.readline().decode().strip():
                    name, _, value = header.partition(": ")
                    headers[name] = value
                body = stream.read(int(headers.get("Content-Length", 0)))
                self.requests.append((line.rsplit(" ", 1)[0], headers, json.loads(body) if body else None))
                self._answer(self, connection)

    def close(self) -> None:
        with socket.socket(self._socket.family) as bye:
            bye.connect(self._socket.getsockname())
        self._thread.join()
        self._socket.close()


def reply(status: int, *lines: Any, raw: Optional[bytes] = None) -> Callable[[Agent, socket.socket], None]:
    body = raw if raw is not None else b"".join(json.dumps(line).encode() + b"\n" for line in lines)

    def answer(agent: Agent, connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.0 %d X\r\nContent-Type: application/json\r\n\r\n" % status + body)

    return answer


def hold(agent: Agent, connection: socket.socket) -> None:
    """Reports progress, and then waits until the client has gone."""
    line = json.dumps({"progress": {"seq": 1, "attempt": 1, "value": 1}}).encode()
    connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n" + line + b"\n")
    connection.recv(1)
    agent.closed.set()


class ClientTest(unittest.TestCase):
    def agent(self, answer: Callable[[Agent, socket.socket], None], path: str = "") -> Agent:
        agent = Agent(answer, path)
        self.addCleanup(agent.close)
        return agent

    def test_request_has_all_options(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            agent = Agent(reply(200, OK), os.path.join(folder, "a.sock"))
            options: dict[str, Any] = {
                "timeout_ms": 1,
                "idle_timeout_ms": 2,
                "mode": "sync",
                "idempotency_key": "k",
                "tenant_id": "t",
                "session_id": "s",
                "traceparent": "00-x",
                "tracestate": "v=1",
            }
            self.assertEqual(agentd.connect(agent.endpoint).request("peer", "find", {"n": 2**60}, **options), OK)
            self.assertEqual(asyncio.run(agentd.aconnect(agent.endpoint).request("peer", "find", {"n": 2**60}, **options)), OK)
            agent.close()
        want = {
            "to": "peer",
            "capability": "find",
            "payload": {"n": 2**60},
            "timeoutMs": 1,
            "idleTimeoutMs": 2,
            "mode": "sync",
            "idempotencyKey": "k",
            "tenantId": "t",
            "sessionId": "s",
            "traceparent": "00-x",
            "tracestate": "v=1",
        }
        self.assertEqual([(line, body) for line, _, body in agent.requests], [("POST /v1/request", want)] * 2)
        self.assertNotIn("Authorization", agent.requests[0][1])

    def test_finds_its_agent(self) -> None:
        agent = self.agent(reply(200, OK))
        agentd.connect(agent.endpoint + "/base/", token="secret").request("peer", "find")
        self.assertEqual(agent.requests[-1][0], "POST /base/v1/request")
        self.assertEqual(agent.requests[-1][1]["Authorization"], "Bearer secret")
        client = agentd.connect()
        saved = dict(os.environ)
        try:
            os.environ.pop("AGENTD_SOCKET", None)
            os.environ.update(AGENTD_URL=agent.endpoint, AGENTD_CALL="token", http_proxy="http://127.0.0.1:1")
            client.request("peer", "find")
            self.assertEqual(agent.requests[-1][1]["Agentd-Call"], "token")
            del os.environ["AGENTD_URL"]
            with self.assertRaisesRegex(agentd.ConnectionFailed, "AGENTD_URL is not set"):
                client.request("peer", "find")
            os.environ["AGENTD_SOCKET"] = "/no/such/socket"
            with self.assertRaisesRegex(agentd.ConnectionFailed, "/no/such/socket"):
                client.request("peer", "find")
            with self.assertRaisesRegex(agentd.ConnectionFailed, "/no/such/socket"):
                asyncio.run(agentd.aconnect().request("peer", "find"))
        finally:
            os.environ.clear()
            os.environ.update(saved)
        for wrong in ({"endpoint": "http://"}, {"endpoint": "/a.sock", "token": "t"}, {"token": "t"}, {"endpoint": "http://h", "token": "a\r\nb"}):
            with self.assertRaises(ValueError):
                agentd.connect(**wrong)

    def test_streams(self) -> None:
        lines = [{"progress": {"seq": 1, "attempt": 1, "value": {"n": 2**60}}}, {"progress": {"seq": 3, "attempt": 2, "value": None}}, {"result": OK}]
        agent = self.agent(reply(200, *lines))
        client = agentd.connect(agent.endpoint)
        with client.stream("peer", "find") as stream:
            self.assertEqual(list(stream), [agentd.Progress(1, 1, {"n": 2**60}), agentd.Progress(3, 2, None)])
            self.assertEqual(stream.result, OK)
            self.assertEqual(list(stream), [])
        self.assertEqual(client.stream("peer", "find").result, OK)
        self.assertEqual(agent.requests[0][1]["Accept"], "application/x-ndjson")

        async def follow() -> None:
            async with agentd.aconnect(agent.endpoint).stream("peer", "find") as stream:
                self.assertEqual([p.seq async for p in stream], [1, 3])
                self.assertEqual(await stream.result(), OK)

        asyncio.run(follow())

    def test_await_result(self) -> None:
        agent = self.agent(reply(200, OK))
        self.assertEqual(agentd.connect(agent.endpoint).await_result("a/b?", timeout_ms=5), OK)
        self.assertEqual(asyncio.run(agentd.aconnect(agent.endpoint).await_result("a/b?", timeout_ms=5)), OK)
        self.assertEqual([line for line, _, _ in agent.requests], ["GET /v1/results/a%2Fb%3F?timeoutMs=5"] * 2)

    def test_refusals(self) -> None:
        agent = self.agent(reply(400, {"error": {"code": "EAGENTRPC_INVALID_REQUEST", "message": "no"}}))
        other = self.agent(reply(404, raw=b"<html>"))
        with self.assertRaisesRegex(agentd.RefusedError, "EAGENTRPC_INVALID_REQUEST: no") as refused:
            agentd.connect(agent.endpoint).request("peer", "find")
        self.assertEqual(refused.exception.code, "EAGENTRPC_INVALID_REQUEST")
        for make in (agentd.connect(agent.endpoint).stream, agentd.connect(other.endpoint).stream):
            with self.assertRaises(agentd.RefusedError):
                make("peer", "find").result
        with self.assertRaises(agentd.RefusedError):
            asyncio.run(agentd.aconnect(other.endpoint).request("peer", "find"))

    def test_broken_connections(self) -> None:
        for raw in (b"", b"hello\r\n\r\n", b"HTTP/1.0 200 OK\r\n\r\n", b'HTTP/1.0 200 OK\r\n\r\n{"status": "o', b'HTTP/1.0 200 OK\r\n\r\n{"progress":{"seq":1,"attempt":1,"value":0}}\n'):
            with self.subTest(raw):

                def answer(agent: Agent, connection: socket.socket, raw: bytes = raw) -> None:
                    connection.sendall(raw)

                endpoint = self.agent(answer).endpoint
                with self.assertRaises(agentd.ConnectionFailed):
                    agentd.connect(endpoint).stream("peer", "find").result
                with self.assertRaises(agentd.ConnectionFailed):
                    asyncio.run(agentd.aconnect(endpoint).stream("peer", "find").result())
                if b"progress" not in raw:
                    with self.assertRaises(agentd.ConnectionFailed):
                        agentd.connect(endpoint).request("peer", "find")

    def test_leaving_cancels(self) -> None:
        agent = self.agent(hold)
        with agentd.connect(agent.endpoint).stream("peer", "find") as stream:
            self.assertEqual(next(stream).value, 1)
        self.assertTrue(agent.closed.wait(60))
        agent.closed.clear()

        async def cancelled() -> None:
            reported = asyncio.Event()

            async def follow() -> None:
                async for _ in agentd.aconnect(agent.endpoint).stream("peer", "find"):
                    reported.set()

            task = asyncio.create_task(follow())
            await reported.wait()
            task.cancel()
            with self.assertRaises(agentd.CancelledError):
                await task

        asyncio.run(cancelled())
        self.assertTrue(agent.closed.wait(60))

    def test_refuses_what_is_no_json(self) -> None:
        client = agentd.connect("/no/such/socket")
        for payload, error in ((float("inf"), ValueError), (object(), TypeError), ({"a": "\udc00"}, ValueError)):
            with self.assertRaises(error):
                client.request("peer", "find", payload)


class UnwrapTest(unittest.TestCase):
    def test_unwrap(self) -> None:
        result: Any = OK
        self.assertEqual(agentd.unwrap(result), OK["response"])
        failure = {"code": "EAGENTRPC_TIMEOUT", "message": "late", "retryable": True}
        failed: Any = {"status": "timeout", "correlationId": "c", "latencyMs": 1, "error": failure}
        with self.assertRaises(agentd.CallError) as e:
            agentd.unwrap(failed)
        self.assertEqual((e.exception.code, e.exception.retryable, e.exception.result, str(e.exception)), ("EAGENTRPC_TIMEOUT", True, failed, "EAGENTRPC_TIMEOUT: late"))
        violation: Any = {**failed, "status": "schema-violation", "schemaSide": "request", "violations": [{"path": "/a", "message": "wrong"}]}
        with self.assertRaisesRegex(agentd.ViolationError, "/a: wrong") as v:
            agentd.unwrap(violation)
        self.assertIsInstance(v.exception, agentd.CallError)
        self.assertEqual(v.exception.violations[0]["path"], "/a")
        queued: Any = {"status": "ok", "correlationId": "c", "latencyMs": 1, "queued": True}
        with self.assertRaisesRegex(agentd.AgentdError, "await_result"):
            agentd.unwrap(queued)
        self.assertFalse(issubclass(agentd.SkillError, agentd.AgentdError))


if __name__ == "__main__":
    unittest.main()
