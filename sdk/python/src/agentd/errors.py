"""What can go wrong. Everything that a client raises is an :class:`AgentdError`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeVar, Union

if TYPE_CHECKING:
    from asyncio import CancelledError

    from .result import Failed, Result, SchemaViolation, Violation

__all__ = ["AgentdError", "CallError", "CancelledError", "ConnectionFailed", "RefusedError", "SkillError", "ViolationError", "unwrap"]

T = TypeVar("T")


def __getattr__(name: str) -> Any:
    # A process that serves one call has no time for what it may not need: asyncio takes as long
    # to load as Python itself.
    if name == "CancelledError":
        from asyncio import CancelledError

        return CancelledError
    raise AttributeError(name)


def is_cancelled(e: BaseException) -> bool:
    """Whether an exception is a CancelledError."""
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and isinstance(e, asyncio.CancelledError)


class AgentdError(Exception):
    """The root of the errors of clients."""


class CallError(AgentdError):
    """A call was made and has failed. :func:`unwrap` raises it."""

    def __init__(self, result: Union[Failed, SchemaViolation]) -> None:
        error = result["error"]
        super().__init__(f"{error['code']}: {error['message']}")
        self._result = result

    @property
    def result(self) -> Union[Failed, SchemaViolation]:
        """The whole outcome."""
        return self._result

    @property
    def code(self) -> str:
        """One of agentd's codes, such as ``EAGENTRPC_TIMEOUT``."""
        return self._result["error"]["code"]

    @property
    def retryable(self) -> bool:
        """The same call may succeed later."""
        return self._result["error"]["retryable"]


class ViolationError(CallError):
    """The request or the response of a call does not fit its schema."""

    def __init__(self, result: SchemaViolation) -> None:
        super().__init__(result)
        self._violation = result

    @property
    def result(self) -> SchemaViolation:
        """The whole outcome."""
        return self._violation

    @property
    def violations(self) -> list[Violation]:
        """What does not fit."""
        return self._violation["violations"]

    def __str__(self) -> str:
        places = "; ".join(f"{v['path'] or '/'}: {v['message']}" for v in self.violations[:5])
        return f"{super().__str__()} ({places})" if places else super().__str__()


class ConnectionFailed(AgentdError):
    """There is no agent where one was expected, or the connection has broken.

    In the second case the call may or may not have been made.
    """


class RefusedError(AgentdError):
    """agentd has refused to make the call, or to do what else it was asked for."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code  #: such as EAGENTRPC_INVALID_REQUEST


class SkillError(Exception):
    """A skill raises it to fail with a message for its caller.

    The caller reads up to 2 KiB of the message. With ``retryable``, the same call may succeed
    later. Any other exception stays in agentd's log. What is after ``from`` goes to the log too.
    """

    def __init__(self, message: str, retryable: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.retryable = retryable


def unwrap(result: Result[T]) -> T:
    """Returns the response of a call that has succeeded.

    Raises :class:`ViolationError` if a payload did not fit its schema, and :class:`CallError` if the
    call has failed otherwise. A call in the mode ``async`` has no response yet, which is an
    :class:`AgentdError`; one that waits for nothing has none either, and returns ``None``.
    """
    if result["status"] == "ok":
        if result.get("queued"):
            raise AgentdError("the call is queued: await_result(result['correlationId']) gets its response")
        return result.get("response")  # type: ignore[return-value]
    if result["status"] == "schema-violation":
        raise ViolationError(result)
    raise CallError(result)
