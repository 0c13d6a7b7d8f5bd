"""The HTTP API of an agent: that of its skills, that of its operator, and that over TLS.

A request has a connection of its own: it costs a fraction of a millisecond on a host, nothing is
left behind for somebody to close, and closing it cancels the call. No proxy is ever asked.
"""

from __future__ import annotations

import contextlib
import os
import socket
import urllib.parse
from typing import Any, AsyncGenerator, Generator, Optional, Protocol, Union, cast

from . import _json
from ._channel import GRACE, Line
from ._usage import NOT_TAKEN
from .errors import ConnectionFailed, RefusedError
from .result import Progress

NDJSON = "application/x-ndjson"
MAX_LINE = 64 << 20  # bytes of a result, with room for the largest payload


class Endpoint:
    """Where an agent takes requests. It implements ``Channel``."""

    def __init__(self, *, socket_path: str = "", url: str = "", call: str = "", token: str = "") -> None:
        self.path = socket_path
        at = urllib.parse.urlsplit(url or "http://agentd")
        if at.scheme not in ("http", "https") or not at.hostname:
            raise ValueError(f"not an http or https URL: {url!r}")
        self.host, self.tls = at.hostname, at.scheme == "https"
        self.port = at.port or (443 if self.tls else 80)
        self._netloc, self._base = at.netloc.rpartition("@")[2], at.path.rstrip("/")
        for name, value in (("call", call), ("token", token)):
            if not value.isprintable() or not value.isascii():
                raise ValueError(f"the {name} has characters that no header can have")
        self._headers = (f"Agentd-Call: {call}\r\n" if call else "") + (f"Authorization: Bearer {token}\r\n" if token else "")

    @classmethod
    def of(cls, endpoint: Optional[Union[str, os.PathLike[str]]], token: Optional[str]) -> Endpoint:
        """The endpoint that a text names: an http or https URL, or the path of a control socket."""
        text = os.fspath(endpoint) if endpoint is not None else ""
        if text.startswith(("http://", "https://")):
            return cls(url=text, token=token or "")
        if token is not None:
            raise ValueError("a token is for an endpoint with a URL")
        if text:
            return cls(socket_path=text)
        return cls.from_environment()

    @classmethod
    def from_environment(cls) -> Endpoint:
        """The endpoint that the environment names: that of a skill, or a control socket."""
        if url := os.environ.get("AGENTD_URL"):
            return cls(url=url, call=os.environ.get("AGENTD_CALL", ""))
        if path := os.environ.get("AGENTD_SOCKET"):
            return cls(socket_path=path)
        raise ConnectionFailed("AGENTD_URL is not set: agentd sets it for skills, and other programs name an endpoint or set AGENTD_SOCKET")

    # Requests.

    def exchange(self, request: dict[str, Any], progress: bool, wait: float) -> Generator[Line, None, None]:
        head = self.head("POST", "/v1/request", body := _json.encode(request), NDJSON if progress else "")
        with self._open(wait) as stream:
            _send(stream, head + body)
            with stream.makefile("rb", 1 << 16) as reply, broken():
                status = status_of(reply.readline(MAX_LINE))
                while reply.readline(MAX_LINE).strip():
                    pass
                if not progress or status != 200:
                    yield body_of(status, reply.read())
                    return
                yield from _lines(reply)

    def aexchange(self, request: dict[str, Any], progress: bool, wait: float) -> AsyncGenerator[Line, None]:
        from . import _aio

        return _aio.exchange(self, self.head("POST", "/v1/request", body := _json.encode(request), NDJSON if progress else "") + body, progress, wait)

    def fetch(self, correlation_id: str, timeout_ms: int) -> dict[str, Any]:
        with self._open(timeout_ms / 1000 + GRACE) as stream:
            return self._ask(stream, self.head("GET", _result_path(correlation_id, timeout_ms)))

    async def afetch(self, correlation_id: str, timeout_ms: int) -> dict[str, Any]:
        from . import _aio

        return await _aio.fetch(self, self.head("GET", _result_path(correlation_id, timeout_ms)), timeout_ms / 1000 + GRACE)

    def report(self, value: object) -> bool:
        head = self.head("POST", "/v1/agent/progress", body := _json.encode(value))
        with self._open(GRACE) as stream:
            return self._ask(stream, head + body).get("wanted") is True

    def model_usage(self, usage: dict[str, Any]) -> bool:
        head = self.head("POST", "/v1/agent/model-usage", body := _json.encode(usage))
        with self._open(GRACE) as stream:
            try:
                return self._ask(stream, head + body).get("taken") is True
            except RefusedError as e:
                if e.code == NOT_TAKEN:
                    return False
                raise

    # Connections.

    def head(self, method: str, path: str, body: Optional[bytes] = None, accept: str = "") -> bytes:
        # With HTTP/1.0 the end of the connection is that of the reply, which then has no framing.
        head = f"{method} {self._base}{path} HTTP/1.0\r\nHost: {self._netloc}\r\n{self._headers}"
        if body is not None:
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        if accept:
            head += f"Accept: {accept}\r\n"
        return (head + "\r\n").encode()

    @contextlib.contextmanager
    def _open(self, wait: float) -> Generator[socket.socket, None, None]:
        try:
            if self.path:
                stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                stream.settimeout(wait)
                try:
                    stream.connect(self.path)
                except BaseException:
                    stream.close()
                    raise
            else:
                stream = socket.create_connection((self.host, self.port), GRACE)
                stream.settimeout(wait)
                if self.tls:
                    import ssl

                    try:
                        stream = ssl.create_default_context().wrap_socket(stream, server_hostname=self.host)
                    except BaseException:
                        stream.close()
                        raise
        except OSError as e:
            raise self.unreachable(e) from e
        with stream:
            yield stream

    def _ask(self, stream: socket.socket, request: bytes) -> dict[str, Any]:
        _send(stream, request)
        with stream.makefile("rb", 1 << 16) as reply, broken():
            status = status_of(reply.readline(MAX_LINE))
            while reply.readline(MAX_LINE).strip():
                pass
            return body_of(status, reply.read())

    def unreachable(self, e: BaseException) -> ConnectionFailed:
        return ConnectionFailed(f"no agent answers at {self.path or self._netloc}: {e or type(e).__name__}")


class _Lines(Protocol):
    def readline(self, size: int, /) -> bytes: ...


def _send(stream: socket.socket, request: bytes) -> None:
    try:
        stream.sendall(request)
    except ConnectionError:
        pass  # refused before all of it was read: the reply says why
    except OSError as e:
        raise ConnectionFailed(f"the connection has broken: {e}") from e


@contextlib.contextmanager
def broken() -> Generator[None, None, None]:
    try:
        yield
    except OSError as e:
        raise ConnectionFailed(f"the connection has broken: {e}") from e


def status_of(line: bytes) -> int:
    parts = line.split(b" ", 2)
    if len(parts) < 2 or not line.startswith(b"HTTP/1.") or not parts[1].isdigit():
        raise ConnectionFailed("what answers is no agent" if line else "the agent has closed the connection without a reply")
    return int(parts[1])


def body_of(status: int, text: bytes) -> dict[str, Any]:
    try:
        body: Any = _json.decode(text)
    except (ValueError, RecursionError) as e:
        if status == 200:
            raise ConnectionFailed(f"the reply is cut short or cannot be read: {e}") from e
        body = {}
    if status == 200 and isinstance(body, dict):
        return cast("dict[str, Any]", body)
    try:
        code, message = str(body["error"]["code"]), str(body["error"]["message"])
    except (KeyError, TypeError):
        code, message = "http", f"the reply has the HTTP status {status}, and is not agentd's"
    raise RefusedError(code, message)


def _lines(reply: _Lines) -> Generator[Line, None, None]:
    while True:
        line = line_of(reply.readline(MAX_LINE))
        yield line
        if isinstance(line, dict):
            return


def line_of(text: bytes) -> Line:
    try:
        line = _json.decode(text)
        if "result" in line:
            result: dict[str, Any] = line["result"]
            return result
        p = line["progress"]
        return Progress(p["seq"], p["attempt"], p["value"])
    except (ValueError, RecursionError, KeyError, TypeError) as e:
        raise ConnectionFailed("the reply has ended before its result" if not text.endswith(b"\n") else f"the reply cannot be read: {e}") from e


def _result_path(correlation_id: str, timeout_ms: int) -> str:
    return f"/v1/results/{urllib.parse.quote(correlation_id, safe='')}?timeoutMs={timeout_ms}"
