"""The other end of a worker, for tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any, Optional

HERE = os.path.dirname(os.path.abspath(__file__))
SKILL = os.path.join(HERE, "skill.py")


def environment(**more: str) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("AGENTD_")}
    return {**clean, "PYTHONPATH": os.path.join(os.path.dirname(HERE), "src"), "PYTHONDONTWRITEBYTECODE": "1", **more}


class Host:
    """Runs tests/skill.py as a worker. It waits for what must come, for as long as that takes."""

    def __init__(self, *arguments: str, **limits: Any) -> None:
        self.process = subprocess.Popen(
            [sys.executable, SKILL, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(AGENTD_WORKER="1"),
        )
        self._id = 0
        self.url = limits.pop("url", "")
        self.hello = self.result(
            self.request(
                "initialize",
                protocolVersions=[1],
                agent="agent://a",
                url=self.url,
                limits={"concurrency": 8, "maxMessageBytes": 1 << 20, "maxProgressBytes": 1 << 16, "graceMs": 5000, **limits},
            )
        )

    def send(self, text: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(text + b"\n")
        self.process.stdin.flush()

    def request(self, method: str, **params: Any) -> int:
        self._id += 1
        self.send(json.dumps({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}).encode())
        return self._id

    def notify(self, method: str, **params: Any) -> None:
        self.send(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode())

    def respond(self, id: Any, result: Any) -> None:
        self.send(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}).encode())

    def invoke(self, capability: str, payload: Any = None, **more: Any) -> int:
        return self.request("invoke", capability=capability, payload=payload, correlationId="c-1", **more)

    def read(self) -> dict[str, Any]:
        assert self.process.stdout
        line = self.process.stdout.readline()
        message: dict[str, Any] = json.loads(line)
        return message

    def result(self, id: int) -> Any:
        message = self.read()
        assert message.get("id") == id and "result" in message, message
        return message["result"]

    def error(self, id: int) -> dict[str, Any]:
        message = self.read()
        assert message.get("id") == id and "error" in message, message
        error: dict[str, Any] = message["error"]
        return error

    def call(self, capability: str, payload: Any = None, **more: Any) -> Any:
        return self.result(self.invoke(capability, payload, **more))["answer"]

    def close(self) -> tuple[int, str]:
        """Ends the input, and returns the exit status and the log."""
        _, stderr = self.process.communicate()
        return self.process.returncode, stderr.decode()

    def __enter__(self) -> Host:
        return self

    def __exit__(self, *_: Optional[object]) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream:
                stream.close()
