"""The HTTP API of an agent: that of its skills, that of its operator, and that over TLS.

A request has a connection of its own: it costs a fraction of a millisecond on a host, nothing is
left behind for somebody to close, and closing it cancels the call. No proxy is ever asked.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
import urllib.parse
from typing import Any, AsyncGenerator, Generator, Optional, Protocol, Union, cast

from . import _json
from ._channel import GRACE, Line
from .errors import ConnectionFailed, RefusedError
from .result import Progress

_NDJSON = "application/x-ndjson"
_MAX_LINE = 64 << 20  # bytes of a result, with room for the largest payload


class Endpoint:
    """Where an agent takes requests. It implements ``Channel``."""

    def __init__(self, *, socket_path: str = "", url: str = "", call: str = "", token: str = "") -> None:
        self._path = socket_path
        at = urllib.parse.urlsplit(url or "http://agentd")
        if at.scheme not in ("http", "https") or not at.hostname:
            raise ValueError(f"not an http or https URL: {url!r}")
        self._host, self._tls = at.hostname, at.scheme == "https"
        self._port = at.port or (443 if self._tls else 80)
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
        head = self._head("POST", "/v1/request", body := _json.encode(request), _NDJSON if progress else "")
        with self._open(wait) as stream:
            _send(stream, head + body)
            with stream.makefile("rb", 1 << 16) as reply, _broken():
                status = _status(reply.readline(_MAX_LINE))
                while reply.readline(_MAX_LINE).strip():
                    pass
                if not progress or status != 200:
                    yield _body(status, reply.read())
                    return
                yield from _lines(reply)

    async def aexchange(self, request: dict[str, Any], progress: bool, wait: float) -> AsyncGenerator[Line, None]:
        head = self._head("POST", "/v1/request", body := _json.encode(request), _NDJSON if progress else "")
        async with self._aopen(wait) as (reader, status):
            reader.send(head + body)
            code = await status()
            if not progress or code != 200:
                yield _body(code, await reader.rest())
                return
            while True:
                line = _line(await reader.line())
                yield line
                if isinstance(line, dict):
                    return

    def fetch(self, correlation_id: str, timeout_ms: int) -> dict[str, Any]:
        with self._open(timeout_ms / 1000 + GRACE) as stream:
            return self._ask(stream, self._head("GET", _result_path(correlation_id, timeout_ms)))

    async def afetch(self, correlation_id: str, timeout_ms: int) -> dict[str, Any]:
        async with self._aopen(timeout_ms / 1000 + GRACE) as (reader, status):
            reader.send(self._head("GET", _result_path(correlation_id, timeout_ms)))
            code = await status()
            return _body(code, await reader.rest())

    def report(self, value: object) -> bool:
        head = self._head("POST", "/v1/agent/progress", body := _json.encode(value))
        with self._open(GRACE) as stream:
            return self._ask(stream, head + body).get("wanted") is True

    # Connections.

    def _head(self, method: str, path: str, body: Optional[bytes] = None, accept: str = "") -> bytes:
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
            if self._path:
                stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                stream.settimeout(wait)
                try:
                    stream.connect(self._path)
                except BaseException:
                    stream.close()
                    raise
            else:
                stream = socket.create_connection((self._host, self._port), GRACE)
                stream.settimeout(wait)
                if self._tls:
                    try:
                        stream = ssl.create_default_context().wrap_socket(stream, server_hostname=self._host)
                    except BaseException:
                        stream.close()
                        raise
        except OSError as e:
            raise self._unreachable(e) from e
        with stream:
            yield stream

    def _ask(self, stream: socket.socket, request: bytes) -> dict[str, Any]:
        _send(stream, request)
        with stream.makefile("rb", 1 << 16) as reply, _broken():
            status = _status(reply.readline(_MAX_LINE))
            while reply.readline(_MAX_LINE).strip():
                pass
            return _body(status, reply.read())

    @contextlib.asynccontextmanager
    async def _aopen(self, wait: float) -> AsyncGenerator[tuple[_Reader, Any], None]:
        try:
            if self._path:
                connecting = asyncio.open_unix_connection(self._path, limit=_MAX_LINE)
            else:
                context = ssl.create_default_context() if self._tls else None
                connecting = asyncio.open_connection(self._host, self._port, ssl=context, limit=_MAX_LINE)
            reader, writer = await asyncio.wait_for(connecting, GRACE)
        except (OSError, asyncio.TimeoutError) as e:
            raise self._unreachable(e) from e
        try:
            stream = _Reader(reader, writer, asyncio.get_running_loop().time() + wait)
            yield stream, stream.status
        finally:
            writer.close()

    def _unreachable(self, e: BaseException) -> ConnectionFailed:
        return ConnectionFailed(f"no agent answers at {self._path or self._netloc}: {e or type(e).__name__}")


class _Reader:
    """The reply to one request, for asyncio."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, deadline: float) -> None:
        self._reader, self._writer, self._deadline = reader, writer, deadline

    def send(self, request: bytes) -> None:
        self._writer.write(request)  # that it is refused before all of it is read is no error: the reply says why

    async def status(self) -> int:
        code = _status(await self.line())
        while (await self.line()).strip():
            pass
        return code

    async def line(self) -> bytes:
        with _broken():
            return await asyncio.wait_for(self._reader.readline(), self._left())

    async def rest(self) -> bytes:
        with _broken():
            return await asyncio.wait_for(self._reader.read(), self._left())

    def _left(self) -> float:
        return max(self._deadline - asyncio.get_running_loop().time(), 0)


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
def _broken() -> Generator[None, None, None]:
    try:
        yield
    except (OSError, asyncio.TimeoutError, asyncio.LimitOverrunError) as e:
        raise ConnectionFailed(f"the connection has broken: {e or 'no reply'}") from e


def _status(line: bytes) -> int:
    parts = line.split(b" ", 2)
    if len(parts) < 2 or not line.startswith(b"HTTP/1.") or not parts[1].isdigit():
        raise ConnectionFailed("what answers is no agent" if line else "the agent has closed the connection without a reply")
    return int(parts[1])


def _body(status: int, text: bytes) -> dict[str, Any]:
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
        line = _line(reply.readline(_MAX_LINE))
        yield line
        if isinstance(line, dict):
            return


def _line(text: bytes) -> Line:
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
