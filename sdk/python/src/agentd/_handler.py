"""The functions behind capabilities, and what becomes of their exceptions."""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial
from typing import Any, Callable, NamedTuple, Union

from .call import Call
from .errors import CallError, SkillError, is_cancelled

#: A function that serves a capability: payload and call in, answer out.
Function = Callable[[Any, Call], Union[Any, Awaitable[Any]]]

_CO_COROUTINE = 0x80  # inspect.CO_COROUTINE, without inspect


class Handler(NamedTuple):
    """The function behind a capability."""

    function: Callable[[Any, Call], Any]
    is_async: bool
    takes_object: bool

    def arguments(self, payload: Any) -> Any:
        """The payload; {} for a call without arguments where the function takes objects."""
        return {} if payload is None and self.takes_object else payload

    def serve(self, payload: Any, call: Call) -> Any:
        """Calls a function that blocks."""
        answer = self.function(self.arguments(payload), call)
        if not _is_awaitable(answer):
            return answer
        import asyncio

        return asyncio.run(_wait_for(answer))

    async def aserve(self, payload: Any, call: Call) -> Any:
        """Calls an asynchronous function."""
        answer = self.function(self.arguments(payload), call)
        return await answer if _is_awaitable(answer) else answer


def _is_awaitable(answer: Any) -> bool:
    return isinstance(answer, Awaitable)


async def _wait_for(answer: Awaitable[Any]) -> Any:
    return await answer


def handler(function: Function, takes_object: bool) -> Handler:
    """Makes a handler of a function, or of an object that can be called."""
    if not callable(function):
        raise TypeError(f"a function is needed, not {type(function).__name__}")
    return Handler(function, _is_async(function) or _is_async(getattr(function, "__call__", None)), takes_object)


def _is_async(function: Any) -> bool:
    while isinstance(function, partial):
        function = function.func  # pyright: ignore[reportUnknownMemberType]
    function = getattr(function, "__func__", function)  # of a method
    return bool(getattr(getattr(function, "__code__", None), "co_flags", 0) & _CO_COROUTINE)


class Failure(NamedTuple):
    """How a function has failed."""

    message: str
    public: bool  #: the message is for the caller
    retryable: bool
    cancelled: bool


def failure(e: BaseException, call: Call) -> Failure:
    """Judges an exception, and logs what the caller must not see."""
    if isinstance(e, SkillError):
        call.log.warning("skill failed: %s", e.message, exc_info=e.__cause__)
        return Failure(readable(e.message), True, bool(e.retryable), False)
    if is_cancelled(e):
        return Failure("the call was cancelled", False, False, True)
    call.log.error("skill failed: %s", call.capability, exc_info=e)
    return Failure(readable(f"{type(e).__name__}: {e}")[:2000], False, isinstance(e, CallError) and e.retryable, False)


def readable(message: object) -> str:
    """A text that JSON can hold. The names of files may have half surrogate pairs, and some authors hand over an exception."""
    return str(message).encode(errors="backslashreplace").decode()
