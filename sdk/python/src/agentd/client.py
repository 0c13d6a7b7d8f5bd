"""Calling the capabilities of agents, from inside of a skill or from any other program."""

from __future__ import annotations

import os
import sys
from contextlib import aclosing, closing
from types import TracebackType
from typing import Any, AsyncGenerator, Generator, Generic, Literal, Optional, TypeVar, Union, cast

from . import _http
from ._channel import GRACE, LONGEST, Channel, Line, current
from .errors import ConnectionFailed
from .result import Progress, Result

T = TypeVar("T")

#: What a caller waits for: the answer, that a broker has stored the call, or nothing.
Mode = Literal["sync", "async", "fire-and-forget"]

PathOrURL = Union[str, "os.PathLike[str]"]


def connect(endpoint: Optional[PathOrURL] = None, *, token: Optional[str] = None) -> Client:
    """Returns a client that blocks.

    Without ``endpoint`` it calls as the skill does that it is used in, or else by ``AGENTD_URL`` with
    ``AGENTD_CALL``, or by ``AGENTD_SOCKET``; which of them is found at each call, so a client may be made
    when a module is loaded. ``endpoint`` is the path of an agent's control socket, or an ``http(s)://`` URL,
    for which ``token`` is the bearer token. It connects with each call, and no proxy is asked.
    """
    return Client(None if endpoint is None and token is None else _http.Endpoint.of(endpoint, token))


def aconnect(endpoint: Optional[PathOrURL] = None, *, token: Optional[str] = None) -> AsyncClient:
    """Returns a client for asyncio; see :func:`connect`."""
    return AsyncClient(None if endpoint is None and token is None else _http.Endpoint.of(endpoint, token))


class _Caller:
    def __init__(self, channel: Optional[Channel] = None) -> None:
        self._at = channel

    def _channel(self) -> Channel:
        if self._at is not None:
            return self._at
        running = current.get()
        return running.channel if running else _http.Endpoint.from_environment()


def _request(
    to: str,
    capability: str,
    payload: object,
    timeout_ms: Optional[int],
    idle_timeout_ms: Optional[int],
    mode: Optional[Mode],
    idempotency_key: Optional[str],
    tenant_id: Optional[str],
    session_id: Optional[str],
    traceparent: Optional[str],
    tracestate: Optional[str],
) -> dict[str, Any]:
    request: dict[str, Any] = {"to": to, "capability": capability, "payload": payload}
    for name, value in (
        ("timeoutMs", timeout_ms),
        ("idleTimeoutMs", idle_timeout_ms),
        ("mode", mode),
        ("idempotencyKey", idempotency_key),
        ("tenantId", tenant_id),
        ("sessionId", session_id),
        ("traceparent", traceparent),
        ("tracestate", tracestate),
    ):
        if value is not None:
            request[name] = value
    return request


def _wait(timeout_ms: Optional[int]) -> float:
    # agentd keeps the timeout: who waits here gives up only after it.
    return (LONGEST if timeout_ms is None else timeout_ms / 1000) + GRACE


class Client(_Caller):
    """Calls agents, and blocks until the outcome is there. Threads may share it. See :func:`connect`."""

    def request(
        self,
        to: str,
        capability: str,
        payload: object = None,
        *,
        timeout_ms: Optional[int] = None,
        idle_timeout_ms: Optional[int] = None,
        mode: Optional[Mode] = None,
        idempotency_key: Optional[str] = None,
        tenant_id: Optional[str] = None,
        session_id: Optional[str] = None,
        traceparent: Optional[str] = None,
        tracestate: Optional[str] = None,
    ) -> Result[Any]:
        """Makes one call and returns its outcome, whatever that is; :func:`agentd.unwrap` makes exceptions of failures.

        ``to`` is an agent's address or id. Times are in milliseconds: without ``timeout_ms`` that of the
        capability's contract; ``idle_timeout_ms`` ends the call when neither progress nor the answer comes for so
        long. ``mode`` is ``sync`` unless it is given. A repeated call with the same ``idempotency_key`` gets the first answer.

        Raises :class:`RefusedError` if agentd does not make the call, :class:`ConnectionFailed` if there is no
        agent, and ``TypeError`` or ``ValueError`` for a payload that is no JSON. In a call that was cancelled it raises
        :class:`asyncio.CancelledError`.
        """
        request = _request(to, capability, payload, timeout_ms, idle_timeout_ms, mode, idempotency_key, tenant_id, session_id, traceparent, tracestate)
        with closing(self._channel().exchange(request, False, _wait(timeout_ms))) as lines:
            for line in lines:
                if isinstance(line, dict):
                    return cast("Result[Any]", line)
        raise ConnectionFailed("the reply has ended before its result")

    def stream(
        self,
        to: str,
        capability: str,
        payload: object = None,
        *,
        timeout_ms: Optional[int] = None,
        idle_timeout_ms: Optional[int] = None,
        idempotency_key: Optional[str] = None,
        tenant_id: Optional[str] = None,
        session_id: Optional[str] = None,
        traceparent: Optional[str] = None,
        tracestate: Optional[str] = None,
    ) -> Stream[Any]:
        """Makes one call and returns its progress, an iterator, whose ``result`` is the outcome; see :meth:`request`."""
        request = _request(to, capability, payload, timeout_ms, idle_timeout_ms, None, idempotency_key, tenant_id, session_id, traceparent, tracestate)
        return Stream(self._channel().exchange(request, True, _wait(timeout_ms)))

    def await_result(self, correlation_id: str, *, timeout_ms: int = 30_000) -> Result[Any]:
        """Waits for the outcome of a call in the mode ``async``, at most ``timeout_ms``, from 1 to 3,600,000.

        When they have passed, the result has the status ``timeout``, and it may be asked for again.
        """
        return cast("Result[Any]", self._channel().fetch(correlation_id, timeout_ms))


class AsyncClient(_Caller):
    """Calls agents, with asyncio. A task that is cancelled cancels its call at the callee. See :func:`aconnect`."""

    async def request(
        self,
        to: str,
        capability: str,
        payload: object = None,
        *,
        timeout_ms: Optional[int] = None,
        idle_timeout_ms: Optional[int] = None,
        mode: Optional[Mode] = None,
        idempotency_key: Optional[str] = None,
        tenant_id: Optional[str] = None,
        session_id: Optional[str] = None,
        traceparent: Optional[str] = None,
        tracestate: Optional[str] = None,
    ) -> Result[Any]:
        """Makes one call and returns its outcome; see :meth:`Client.request`."""
        request = _request(to, capability, payload, timeout_ms, idle_timeout_ms, mode, idempotency_key, tenant_id, session_id, traceparent, tracestate)
        async with aclosing(self._channel().aexchange(request, False, _wait(timeout_ms))) as lines:
            async for line in lines:
                if isinstance(line, dict):
                    return cast("Result[Any]", line)
        raise ConnectionFailed("the reply has ended before its result")

    def stream(
        self,
        to: str,
        capability: str,
        payload: object = None,
        *,
        timeout_ms: Optional[int] = None,
        idle_timeout_ms: Optional[int] = None,
        idempotency_key: Optional[str] = None,
        tenant_id: Optional[str] = None,
        session_id: Optional[str] = None,
        traceparent: Optional[str] = None,
        tracestate: Optional[str] = None,
    ) -> AsyncStream[Any]:
        """Makes one call and returns its progress, an asynchronous iterator, whose ``result`` is the outcome."""
        request = _request(to, capability, payload, timeout_ms, idle_timeout_ms, None, idempotency_key, tenant_id, session_id, traceparent, tracestate)
        return AsyncStream(self._channel().aexchange(request, True, _wait(timeout_ms)))

    async def await_result(self, correlation_id: str, *, timeout_ms: int = 30_000) -> Result[Any]:
        """Waits for the outcome of a call in the mode ``async``; see :meth:`Client.await_result`."""
        return cast("Result[Any]", await self._channel().afetch(correlation_id, timeout_ms))


class Stream(Generic[T]):
    """The progress of one call, and then its ``result``. The call is made when the first item is asked for.

    ``with client.stream(…) as progress:`` cancels the call if the block is left before the result is there;
    so does :meth:`close`.
    """

    def __init__(self, lines: Generator[Line, None, None]) -> None:
        self._lines = lines
        self._result: Optional[Result[T]] = None

    def __iter__(self) -> Stream[T]:
        return self

    def __next__(self) -> Progress:
        if self._result is not None:
            raise StopIteration
        for line in self._lines:
            if isinstance(line, Progress):
                return line
            self._result = cast("Result[T]", line)
            self._lines.close()
            raise StopIteration
        raise ConnectionFailed("the stream was closed, or has ended before its result")

    @property
    def result(self) -> Result[T]:
        """The outcome. It waits for it, and passes over progress that was not read."""
        for _ in self:
            pass
        assert self._result is not None
        return self._result

    def close(self) -> None:
        """Cancels the call unless it has ended."""
        self._lines.close()

    def __enter__(self) -> Stream[T]:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], e: Optional[BaseException], at: Optional[TracebackType]) -> None:
        self.close()


class AsyncStream(Generic[T]):
    """The progress of one call, and then its outcome: ``await stream.result()``. Otherwise as :class:`Stream`."""

    def __init__(self, lines: AsyncGenerator[Line, None]) -> None:
        self._lines = lines
        self._result: Optional[Result[T]] = None

    def __aiter__(self) -> AsyncStream[T]:
        return self

    async def __anext__(self) -> Progress:
        if self._result is not None:
            raise StopAsyncIteration
        async for line in self._lines:
            if isinstance(line, Progress):
                return line
            self._result = cast("Result[T]", line)
            await self._lines.aclose()
            raise StopAsyncIteration
        raise ConnectionFailed("the stream was closed, or has ended before its result")

    async def result(self) -> Result[T]:
        """The outcome. It waits for it, and passes over progress that was not read."""
        async for _ in self:
            pass
        assert self._result is not None
        return self._result

    async def aclose(self) -> None:
        """Cancels the call unless it has ended."""
        await self._lines.aclose()

    async def __aenter__(self) -> AsyncStream[T]:
        return self

    async def __aexit__(self, kind: Optional[type[BaseException]], e: Optional[BaseException], at: Optional[TracebackType]) -> None:
        await self.aclose()


def refuse_in_event_loop() -> None:
    """Raises RuntimeError in an event loop, which a call that blocks would stop, its own answer included."""
    asyncio = sys.modules.get("asyncio")  # without it there is no loop
    if asyncio is None:
        return
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError("this would block the event loop: await call.arequest(…), or use an AsyncClient")
