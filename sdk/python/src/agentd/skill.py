"""Serving capabilities: the same program is a worker, or a process that serves one call."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from typing import Any, Callable, Collection, Mapping, NoReturn, Optional, TypeVar

from . import _json
from ._channel import Channel, Nowhere, current
from ._handler import Failure, Function, Handler, failure, handler
from ._http import Endpoint
from ._signals import on_terminate
from .call import Call, set_up_logging
from .errors import AgentdError

F = TypeVar("F", bound=Function)

_OK, _FAILED, _RETRYABLE = 0, 1, 75  # EX_TEMPFAIL of sysexits.h


class Skill:
    """The functions behind the capabilities of an agent.

    A function takes the payload and the :class:`Call`, and returns the answer: any JSON value. Asynchronous
    functions of a worker share one event loop, that of the main thread. Other functions run in the main thread if
    there are no asynchronous ones and ``concurrency`` is 1, and otherwise in threads. ``concurrency`` is the number of calls that
    a worker serves at once.
    """

    def __init__(self, *, concurrency: int = 1) -> None:
        if concurrency < 1:
            raise ValueError("concurrency must be at least 1")
        self.concurrency = concurrency
        self._handlers: dict[str, Handler] = {}

    def capability(self, name: str, *, takes_object: bool = False) -> Callable[[F], F]:
        """Registers a function, as a decorator.

        The payload of a call without arguments is None; with ``takes_object``, it is {}.
        """

        def register(function: F) -> F:
            self.add(name, function, takes_object=takes_object)
            return function

        return register

    def add(self, name: str, function: Function, *, takes_object: bool = False) -> None:
        """Registers a function; see :meth:`capability`."""
        if name in self._handlers:
            raise ValueError(f"there is a function for the capability {name!r} already")
        self._handlers[name] = handler(function, takes_object)

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """For the kit: the functions by capability."""
        return self._handlers

    def run(self) -> NoReturn:
        """Serves until agentd ends the worker, or the one call of a process, and exits.

        Standard output is standard error from here on, also for programs that are started: what is printed goes to the log.
        """
        stdin, stdout = _take_standard_streams()
        set_up_logging()
        if os.environ.pop("AGENTD_WORKER", ""):
            from .worker import Worker

            status = Worker(self._handlers, self.concurrency, stdin, stdout).run()
        else:
            status = _process(self._handlers, stdin, stdout)
        sys.exit(status)


def serve(handlers: Mapping[str, Function], *, concurrency: int = 1, takes_object: Collection[str] = ()) -> NoReturn:
    """Serves capabilities by name, and exits; see :class:`Skill`.

    ``takes_object`` names those whose calls without arguments get {} instead of None.
    """
    skill = Skill(concurrency=concurrency)
    for name, function in handlers.items():
        skill.add(name, function, takes_object=name in takes_object)
    skill.run()


def _take_standard_streams() -> tuple[int, int]:
    """Returns standard input and output, and puts /dev/null and standard error in their places."""
    stdin, stdout = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    os.dup2(2, 1)
    reconfigure: Optional[Callable[..., None]] = getattr(sys.stdout, "reconfigure", None)
    if reconfigure:
        reconfigure(line_buffering=True)
    for fd in (stdin, stdout):
        os.set_blocking(fd, True)
    return stdin, stdout


def _process(handlers: Mapping[str, Handler], stdin: int, stdout: int) -> int:
    """Serves the call that this process was started for, and returns the exit status."""
    call = _call_of_environment()
    status, answer = _OK, b""
    found = handlers.get(call.capability)
    try:
        if found is None:
            raise AgentdError(f"nothing serves the capability {call.capability!r}")
        with open(stdin, "rb") as stream:
            text = stream.read()
        payload = _json.decode(text) if text.strip() else None
        token = current.set(call.running)
        try:
            answer = _json.encode(_serve_one(found, payload, call))
        finally:
            current.reset(token)
    except BaseException as e:
        if isinstance(e, KeyboardInterrupt):
            raise
        f = failure(e, call)
        answer = _public(f)
        status = _RETRYABLE if f.retryable or f.cancelled else _FAILED
    with open(stdout, "wb") as stream:
        stream.write(answer)
    return status


def _serve_one(found: Handler, payload: Any, call: Call) -> Any:
    if not found.is_async:
        on_terminate(call.cancel)
        return found.serve(payload, call)

    import asyncio

    async def run() -> Any:
        task = asyncio.ensure_future(found.aserve(payload, call))

        def cancel() -> None:
            call.cancel()
            task.cancel()

        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, cancel)
        return await task

    return asyncio.run(run())


def _public(f: Failure) -> bytes:
    return _json.encode({"error": {"message": f.message, "retryable": f.retryable}}) if f.public else b""


def _call_of_environment() -> Call:
    """What agentd has put into the environment of the skill's process."""

    def text(name: str) -> str:
        return os.environ.get("AGENTD_" + name, "")

    def number(name: str) -> int:
        return int(text(name) or 0)

    url = text("URL")
    channel: Channel = Nowhere()
    if url:
        channel = Endpoint(url=url, call=text("CALL"))
    params = {
        "caller": text("CALLER"),
        "callerProven": text("CALLER_PROVEN") == "true",
        "capability": text("CAPABILITY"),
        "correlationId": text("CORRELATION_ID"),
        "messageId": text("MESSAGE_ID"),
        "sessionId": text("SESSION_ID"),
        "tenantId": text("TENANT_ID"),
        "idempotencyKey": text("IDEMPOTENCY_KEY"),
        "traceparent": text("TRACEPARENT"),
        "tracestate": os.environ.get("TRACESTATE", ""),
        "hops": number("HOPS"),
        "deadlineMs": number("DEADLINE"),
        "progress": True,
    }
    return Call(params, text("AGENT"), channel)
