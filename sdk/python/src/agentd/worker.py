"""The worker protocol, version 1: JSON-RPC 2.0 over standard input and output, one message a line.

A worker whose functions all block has a thread that reads, so that cancelling and the answers to nested calls
arrive meanwhile; the main thread serves calls, and so do ``concurrency - 1`` others. A worker with asynchronous
functions reads and serves in one event loop, that of the main thread, and calls other functions in threads.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import json
import os
import re
import signal
import threading
from contextlib import suppress
from contextvars import copy_context
from queue import Empty, SimpleQueue
from typing import Any, AsyncGenerator, Callable, Generator, Mapping, Optional

from . import _json
from ._channel import Line, current
from ._handler import Handler, failure
from ._http import Endpoint
from ._signals import on_terminate
from .call import Call
from .client import refuse_in_event_loop
from .errors import CancelledError, ConnectionFailed, RefusedError
from .result import Progress

_VERSION = 1
_UNKNOWN_METHOD, _INVALID, _INTERNAL, _FAILED, _CANCELLED = -32601, -32602, -32603, -32000, -32800
_REFUSALS = {-32602: "EAGENTRPC_INVALID_REQUEST", -32001: "EAGENTRPC_INVALID_REQUEST", -32002: "EAGENTRPC_BUSY"}
# What a message is about whose payload Python does not read: agentd writes that last.
_ID = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*([1-9][0-9]*)\s*,\s*"(?:method"\s*:\s*"(invoke)"|result")')
_PROGRESS = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"method"\s*:\s*"progress"\s*,\s*"params"\s*:\s*\{\s*"id"\s*:\s*([1-9][0-9]*)')
_TOO_LONG = "has a number that is too long, or nests too deeply, for this skill"

#: Gets a message, {} for one that cannot be read, or None when the call is cancelled.
Deliver = Callable[[Optional[dict[str, Any]]], object]


class _Job:
    """A call that the worker serves. It is the channel of the call's own requests."""

    def __init__(self, worker: Worker, id: int, params: dict[str, Any], found: Handler) -> None:
        self.worker, self.id, self.handler = worker, id, found
        self.payload = params.get("payload")
        self.token: str = params.get("token", "")
        self.wants_progress: bool = params.get("progress", False)
        self.call = Call(params, worker.agent, self)
        self.task: Optional[asyncio.Task[None]] = None
        self.over = False  # changed under the lock of the output
        self.asked: dict[int, Deliver] = {}  # who waits for nested calls, by id
        self.usages = itertools.count(1)  # reports of what models used

    def cancel(self) -> None:
        self.call.cancel()
        if self.task is not None:
            self.task.cancel()
        for deliver in list(self.asked.values()):
            deliver(None)

    # The channel.

    def exchange(self, request: dict[str, Any], progress: bool, wait: float) -> Generator[Line, None, None]:
        refuse_in_event_loop()
        answers: SimpleQueue[Optional[dict[str, Any]]] = SimpleQueue()
        id = self.worker.ask(self, request, progress, answers.put)
        try:
            while True:
                try:
                    line = self._line(answers.get(timeout=wait))
                except Empty:
                    raise ConnectionFailed("agentd does not answer") from None
                yield line
                if isinstance(line, dict):
                    return
        finally:
            self.worker.forget(self, id)

    async def aexchange(self, request: dict[str, Any], progress: bool, wait: float) -> AsyncGenerator[Line, None]:
        loop = asyncio.get_running_loop()
        answers: asyncio.Queue[Optional[dict[str, Any]]] = asyncio.Queue()

        def deliver(message: Optional[dict[str, Any]]) -> None:
            with suppress(RuntimeError):  # the loop was closed, and nobody waits any more
                loop.call_soon_threadsafe(answers.put_nowait, message)

        id = self.worker.ask(self, request, progress, deliver)
        try:
            while True:
                try:
                    line = self._line(await asyncio.wait_for(answers.get(), wait))
                except asyncio.TimeoutError:
                    raise ConnectionFailed("agentd does not answer") from None
                yield line
                if isinstance(line, dict):
                    return
        finally:
            self.worker.forget(self, id)

    def _line(self, message: Optional[dict[str, Any]]) -> Line:
        if message is None:
            raise CancelledError(f"the call {self.call.correlation_id} was cancelled")
        if not message:
            raise ConnectionFailed(f"the reply {_TOO_LONG}")
        if "method" in message:
            p = message["params"]
            return Progress(p.get("seq", 0), p.get("attempt", 0), p.get("value"))
        if "error" in message:
            error = message["error"]
            raise RefusedError(_REFUSALS.get(error["code"], "EAGENTRPC_INTERNAL"), error["message"])
        result: dict[str, Any] = message["result"]
        return result

    def fetch(self, correlation_id: str, timeout_ms: int) -> dict[str, Any]:
        return self._http().fetch(correlation_id, timeout_ms)

    async def afetch(self, correlation_id: str, timeout_ms: int) -> dict[str, Any]:
        return await self._http().afetch(correlation_id, timeout_ms)

    def _http(self) -> Endpoint:
        if not self.worker.url:
            raise ConnectionFailed("agentd has named no endpoint for results")
        return Endpoint(url=self.worker.url, call=self.token)

    def report(self, value: object) -> bool:
        text = _json.encode(value)
        if self.worker.max_progress and len(text) > self.worker.max_progress:
            raise ValueError(f"progress of {len(text)} bytes, and {self.worker.max_progress} are allowed")
        if self.wants_progress:
            line = b'{"jsonrpc":"2.0","method":"progress","params":{"id":%d,"value":%s}}\n' % (self.id, text)
            self.worker.write(line, while_runs=self)
        return self.wants_progress

    def model_usage(self, usage: dict[str, Any]) -> bool:
        most = self.worker.max_usages
        if not most:
            return False
        if next(self.usages) > most:
            raise RefusedError("EAGENTRPC_BUSY", f"the call has made {most} reports of a model's usage, which is as many as it may make")
        line = _json.encode({"jsonrpc": "2.0", "method": "modelUsage", "params": {"id": self.id, "usage": usage}}) + b"\n"
        if not self.worker.write(line, while_runs=self):
            raise RefusedError("EAGENTRPC_INVALID_REQUEST", "the call that this report is about has ended")
        return True


class Worker:
    """Serves calls that come through one file descriptor, and answers through another."""

    def __init__(self, handlers: Mapping[str, Handler], concurrency: int, stdin: int, stdout: int) -> None:
        self._handlers, self._concurrency = handlers, concurrency
        self._in, self._out = stdin, stdout
        self._output = threading.Lock()
        self._pending: list[bytes] = []  # what is to be written; guarded by the lock, as the next one is
        self._writing = False
        self._jobs: dict[Any, _Job] = {}
        self._asked: dict[int, Deliver] = {}
        self._ids = itertools.count(1)
        self._rest: list[bytes] = []  # of a line that has not ended
        self._status = 0
        self._grace = 5.0  # seconds
        self._max_message = 0
        self.agent, self.url, self.max_progress, self.max_usages = "", "", 0, 0
        self._turns: _Turns = _Loop(self) if any(h.is_async for h in handlers.values()) else _Threads(self)

    def run(self) -> int:
        """Serves until the input ends, or SIGTERM comes, and returns the exit status."""
        self._turns.run()
        return self._status

    # Input.

    def read(self) -> bool:
        """Takes what has come. It returns false when there is no more."""
        try:
            data = os.read(self._in, 1 << 18)
        except OSError:
            data = b""
        if not data:
            return False
        lines = data.split(b"\n")
        if len(lines) > 1:
            lines[0] = b"".join((*self._rest, lines[0]))
            self._rest.clear()
        if last := lines.pop():
            self._rest.append(last)
        for line in lines:
            self._take(line)
        return not self._status

    def _take(self, line: bytes) -> None:
        try:
            message = json.loads(line.decode())
        except (ValueError, RecursionError) as e:
            self._unreadable(line, e)
            return
        method, id = message.get("method"), message.get("id")
        if method == "invoke":
            self._invoke(id, message["params"])
        elif method is None:
            if deliver := self._asked.pop(id, None):
                deliver(message)
        elif method == "cancel":
            if job := self._jobs.get(message["params"].get("id")):
                job.cancel()
        elif method == "progress":
            if deliver := self._asked.get(message["params"].get("id", 0)):
                deliver(message)
        elif method == "ping":
            self._respond(id, {})
        elif method == "initialize":
            self._initialize(id, message["params"])
        elif id is not None:
            self._refuse(id, _UNKNOWN_METHOD, f"there is no method {method!r}"[:200])

    def _unreadable(self, line: bytes, e: Exception) -> None:
        """Python reads no integer of more than 4,300 digits, and nests some 1,000 deep. Such a value fails its call alone,
        or the nested call that it comes from."""
        if (found := _ID.match(line)) and found[2]:
            self._refuse(int(found[1]), _FAILED, f"the payload {_TOO_LONG}")
        elif found:
            if deliver := self._asked.pop(int(found[1]), None):
                deliver({})
        elif found := _PROGRESS.match(line):
            if deliver := self._asked.get(int(found[1])):
                deliver({})
        else:
            self._status = 1  # agentd writes no such line: what comes after it is as doubtful
            os.write(2, f"agentd has written what is no message: {e}\n".encode(errors="replace"))

    def _initialize(self, id: Any, params: dict[str, Any]) -> None:
        if _VERSION not in params.get("protocolVersions", ()):
            self._refuse(id, _INVALID, f"this worker speaks version {_VERSION} of the protocol")
            self._status = 1
            return
        limits: dict[str, Any] = params.get("limits", {})
        self.agent, self.url = params.get("agent", ""), params.get("url", "")
        self.max_progress, self._max_message = limits.get("maxProgressBytes", 0), limits.get("maxMessageBytes", 0)
        self._grace, self.max_usages = limits.get("graceMs", 5000) / 1000, limits.get("maxModelUsages", 0)
        self._respond(id, {"protocolVersion": _VERSION, "capabilities": list(self._handlers), "concurrency": self._concurrency})

    def _invoke(self, id: Any, params: dict[str, Any]) -> None:
        found = self._handlers.get(params["capability"])
        if found is None:
            self._refuse(id, _INVALID, f"nothing serves the capability {params['capability']!r}")
            return
        job = _Job(self, id, params, found)
        self._jobs[id] = job
        self._turns.start(job)

    # Calls.

    def serve(self, job: _Job) -> None:
        """Serves a call in this thread."""
        copy_context().run(self._serve, job)

    def _serve(self, job: _Job) -> None:
        current.set(job.call.running)
        try:
            answer = _json.encode(job.handler.serve(job.payload, job.call))
        except BaseException as e:
            self.fail(job, e)
            if isinstance(e, KeyboardInterrupt):
                raise
        else:
            self._answer(job, answer)

    async def aserve(self, job: _Job) -> None:
        """Serves a call in a task of its own."""
        current.set(job.call.running)
        try:
            answer = _json.encode(await job.handler.aserve(job.payload, job.call))
        except BaseException as e:
            self.fail(job, e)
            if isinstance(e, KeyboardInterrupt):
                raise
        else:
            self._answer(job, answer)

    def _answer(self, job: _Job, answer: bytes) -> None:
        line = b'{"jsonrpc":"2.0","id":%d,"result":{"answer":%s}}\n' % (job.id, answer)
        if self._max_message and len(line) > self._max_message:
            self.fail(job, ValueError(f"the answer has {len(answer)} bytes, and a message at most {self._max_message}"))
            return
        self._turns.end(job, line)

    def fail(self, job: _Job, e: BaseException) -> None:
        """Ends a call without an answer."""
        f = failure(e, job.call)
        error: dict[str, Any] = {"code": _FAILED if f.public else _CANCELLED if f.cancelled else _INTERNAL, "message": f.message}
        if f.retryable:
            error["data"] = {"retryable": True}
        self.write(_json.encode({"jsonrpc": "2.0", "id": job.id, "error": error}) + b"\n", ends=job)

    def cancel_all(self) -> None:
        for job in list(self._jobs.values()):
            job.cancel()

    @property
    def grace(self) -> float:
        """Seconds that calls have to end when the worker does."""
        return self._grace

    @property
    def concurrency(self) -> int:
        return self._concurrency

    @property
    def input(self) -> int:
        """The descriptor that calls come through."""
        return self._in

    # Nested calls.

    def ask(self, job: _Job, request: dict[str, Any], progress: bool, deliver: Deliver) -> int:
        id = next(self._ids)
        params: dict[str, Any] = {"call": job.id, "request": request}
        if progress:
            params["progress"] = True
        line = _json.encode({"jsonrpc": "2.0", "id": id, "method": "requestAgent", "params": params}) + b"\n"
        if self._max_message and len(line) > self._max_message:
            raise RefusedError("EAGENTRPC_PAYLOAD_TOO_LARGE", f"the request has {len(line)} bytes, and a message at most {self._max_message}")
        job.call.raise_if_canceled()
        self._asked[id] = job.asked[id] = deliver
        if not self.write(line, while_runs=job):
            self.forget(job, id)
            raise RefusedError("EAGENTRPC_INVALID_REQUEST", "the call that this request is part of has ended")
        return id

    def forget(self, job: _Job, id: int) -> None:
        """Cancels a nested call unless it has ended."""
        job.asked.pop(id, None)
        if self._asked.pop(id, None):
            self.write(_json.encode({"jsonrpc": "2.0", "method": "cancel", "params": {"id": id}}) + b"\n", while_runs=job)

    # Output.

    def _respond(self, id: Any, result: dict[str, Any]) -> None:
        self.write(_json.encode({"jsonrpc": "2.0", "id": id, "result": result}) + b"\n")

    def _refuse(self, id: Any, code: int, message: str) -> None:
        self.write(_json.encode({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}) + b"\n")

    def write(self, line: bytes, *, ends: Optional[_Job] = None, while_runs: Optional[_Job] = None, later: bool = False) -> bool:
        """Writes a line: one that ends a call, one that is said only while a call runs, or any other.

        A thread that finds another one writing leaves its line to that, and so does ``later`` to :meth:`flush`.
        """
        with self._output:
            if while_runs is not None and while_runs.over:
                return False
            if ends is not None:
                ends.over = True
                self._jobs.pop(ends.id, None)
            self._pending.append(line)
            if self._writing or later:
                return True
            self._writing = True
        self._write()
        return True

    def flush(self) -> None:
        """Writes what was to be written later."""
        with self._output:
            if self._writing or not self._pending:
                return
            self._writing = True
        self._write()

    def _write(self) -> None:
        while True:
            with self._output:
                if not self._pending:
                    self._writing = False
                    return
                lines = b"".join(self._pending)
                self._pending.clear()
            try:
                while lines:
                    lines = lines[os.write(self._out, lines) :]
            except OSError:
                pass  # agentd is gone: the input ends as well


class _Turns:
    """Which thread does what."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker

    def run(self) -> None:
        """Serves until there is no more input."""
        raise NotImplementedError

    def start(self, job: _Job) -> None:
        """Begins a call."""
        raise NotImplementedError

    def end(self, job: _Job, line: bytes) -> None:
        """Ends it with an answer."""
        self.worker.write(line, ends=job)


class _Threads(_Turns):
    """One thread reads, and others serve; the main thread is one of these."""

    def __init__(self, worker: Worker, threads: int = 1) -> None:
        super().__init__(worker)
        self._waiting: SimpleQueue[Optional[_Job]] = SimpleQueue()
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        self._busy = 0  # calls that wait or run; guarded by the lock
        self._pool = threads  # threads that serve; of the reader alone

    def run(self) -> None:
        on_terminate(self._stop)
        threading.Thread(target=self._read, name="agentd-reader", daemon=True).start()
        self._serve()
        self.settle()

    def settle(self) -> None:
        """Waits for calls that were cancelled: they clean up."""
        with self._idle:
            self._idle.wait_for(lambda: not self._busy, self.worker.grace)

    def start(self, job: _Job) -> None:
        with self._lock:
            self._busy += 1
            more = self._pool < min(self._busy, self.worker.concurrency)
        if more:
            self._pool += 1
            threading.Thread(target=self._serve, name=f"agentd-{self._pool}", daemon=True).start()
        self._waiting.put(job)

    def _read(self) -> None:
        try:
            while self.worker.read():
                pass
        finally:
            self._stop()

    def _serve(self) -> None:
        while (job := self._waiting.get()) is not None:
            self.worker.serve(job)
            with self._lock:
                self._busy -= 1
                self._idle.notify_all()
        self._waiting.put(None)  # for the next one

    def _stop(self) -> None:
        self.worker.cancel_all()
        self._waiting.put(None)


class _Loop(_Turns):
    """One event loop reads and serves, and threads call what blocks."""

    def __init__(self, worker: Worker) -> None:
        super().__init__(worker)
        self._tasks: set[asyncio.Task[None]] = set()
        self._threads = _Threads(worker, threads=0)  # the main thread has the loop
        self._flushing = False

    def run(self) -> None:
        asyncio.run(self._main())
        self._threads.settle()

    async def _main(self) -> None:
        loop = asyncio.get_running_loop()
        self._loop, self._over = loop, asyncio.Event()
        loop.add_signal_handler(signal.SIGTERM, self._over.set)
        loop.add_reader(self.worker.input, self._ready)
        await self._over.wait()
        loop.remove_reader(self.worker.input)
        self.worker.cancel_all()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self.worker.grace)
        self.worker.flush()

    def _ready(self) -> None:
        if not self.worker.read():
            self._over.set()

    def start(self, job: _Job) -> None:
        if job.handler.is_async:
            job.task = self._loop.create_task(self.worker.aserve(job))
            self._tasks.add(job.task)
            job.task.add_done_callback(functools.partial(self._done, job))
        else:
            self._threads.start(job)

    def end(self, job: _Job, line: bytes) -> None:
        # What has come at once is mostly answered at once: one write, and one awakening of agentd.
        if job.task is None:
            self.worker.write(line, ends=job)
            return
        self.worker.write(line, ends=job, later=True)
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flushing = False
        self.worker.flush()

    def _done(self, job: _Job, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not job.over:  # it was cancelled before it began
            self.worker.fail(job, CancelledError())
