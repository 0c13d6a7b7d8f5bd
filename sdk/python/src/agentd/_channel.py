"""How calls are made: by HTTP, through the pipe of a worker, or by the table of a test."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, AsyncGenerator, Generator, NamedTuple, Optional, Protocol, Union

from .errors import ConnectionFailed
from .result import Progress

#: What an exchange yields: reports of progress, and last the result.
Line = Union[Progress, dict[str, Any]]

#: Seconds that agentd is given beyond the timeout of a call, which it keeps itself.
GRACE = 15.0
#: Seconds of the longest call that is not asynchronous.
LONGEST = 600.0


class Channel(Protocol):
    """Makes calls. A generator that is closed early cancels its call."""

    def exchange(self, request: dict[str, Any], progress: bool, wait: float) -> Generator[Line, None, None]: ...

    def aexchange(self, request: dict[str, Any], progress: bool, wait: float) -> AsyncGenerator[Line, None]: ...

    def fetch(self, correlation_id: str, timeout_ms: int) -> dict[str, Any]: ...

    async def afetch(self, correlation_id: str, timeout_ms: int) -> dict[str, Any]: ...

    def report(self, value: object) -> bool: ...

    def model_usage(self, usage: dict[str, Any]) -> bool: ...


class Nowhere:
    """The channel of a program that agentd has not started."""

    def exchange(self, request: dict[str, Any], progress: bool, wait: float) -> Generator[Line, None, None]:
        raise self._error()

    def aexchange(self, request: dict[str, Any], progress: bool, wait: float) -> AsyncGenerator[Line, None]:
        raise self._error()

    def fetch(self, correlation_id: str, timeout_ms: int) -> dict[str, Any]:
        raise self._error()

    async def afetch(self, correlation_id: str, timeout_ms: int) -> dict[str, Any]:
        raise self._error()

    def report(self, value: object) -> bool:
        return False

    def model_usage(self, usage: dict[str, Any]) -> bool:
        return False

    def _error(self) -> ConnectionFailed:
        return ConnectionFailed("AGENTD_URL is not set: agentd has not started this program")


class HasIds(Protocol):
    """A call, which has what every line of its log has."""

    @property
    def ids(self) -> tuple[str, str]: ...


class Running(NamedTuple):
    """The call that the running code serves."""

    call: HasIds
    channel: Channel


current: ContextVar[Optional[Running]] = ContextVar("agentd_call", default=None)


def trace_id(traceparent: str) -> str:
    """The trace id of a W3C trace context, or ""."""
    parts = traceparent.split("-")
    return parts[1] if len(parts) > 3 else ""
