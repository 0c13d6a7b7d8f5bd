"""The functions behind capabilities, and what becomes of their exceptions."""

from __future__ import annotations

import asyncio
import inspect
import logging
from typing import Any, Awaitable, Callable, NamedTuple, Union

from .call import Call
from .errors import CallError, SkillError

#: A function that serves a capability: payload and call in, answer out.
Function = Callable[[Any, Call], Union[Any, Awaitable[Any]]]

_logger = logging.getLogger("agentd.skill")


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
        return asyncio.run(_wait_for(answer)) if inspect.isawaitable(answer) else answer

    async def aserve(self, payload: Any, call: Call) -> Any:
        """Calls an asynchronous function."""
        answer = self.function(self.arguments(payload), call)
        return await answer if inspect.isawaitable(answer) else answer


async def _wait_for(answer: Awaitable[Any]) -> Any:
    return await answer


def handler(function: Function, takes_object: bool) -> Handler:
    """Makes a handler of a function, or of an object that can be called."""
    if not callable(function):
        raise TypeError(f"a function is needed, not {type(function).__name__}")
    is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))
    return Handler(function, is_async, takes_object)


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
        return Failure(e.message, True, bool(e.retryable), False)
    if isinstance(e, asyncio.CancelledError):
        return Failure("the call was cancelled", False, False, True)
    call.log.error("skill failed: %s", call.capability, exc_info=e)
    return Failure(f"{type(e).__name__}: {e}"[:2000], False, isinstance(e, CallError) and e.retryable, False)
