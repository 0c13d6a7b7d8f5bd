"""Tests of skills: both schemas are checked, and there is neither a fleet nor a broker.

::

    from agentd.testing import Peer, SkillTest

    def test_review():
        librarian = Peer("agents/librarian/capabilities.yaml", {"search-notes": {"best": "use a lock"}})
        with SkillTest(review.skill, "agents/reviewer/capabilities.yaml", peers=[librarian]) as test:
            result = test.call("review-pr", {"prUrl": "https://…"}, caller="agent://triage")
            assert result["status"] == "ok"
            assert test.requests[0].payload == {"query": "https://…"}

The verdicts are agentd's own: ``agentd skill test-host`` gives them.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import itertools
import json
import os
import subprocess
import threading
import time
import uuid
from types import TracebackType
from typing import Any, AsyncGenerator, Callable, Generator, Iterable, Mapping, NamedTuple, NoReturn, Optional, Union, cast

from . import _json
from ._channel import Line, current
from ._handler import Function, Handler, handler, readable
from .call import Call
from .client import refuse_in_event_loop
from .errors import AgentdError, CancelledError, RefusedError, SkillError
from .result import Progress, Result
from .skill import Skill

__all__ = ["Peer", "Request", "SkillTest"]

Path = Union[str, "os.PathLike[str]"]

_VERSION = 1


class Peer(NamedTuple):
    """An agent that a test plays.

    ``answers`` has an answer for each capability that the skill may call, or a function that takes the payload and returns
    it. A function may be asynchronous, raises :class:`SkillError` to fail, and reports progress if it is a generator: what it
    yields is progress, and what it returns is the answer.
    """

    capabilities: Path  #: its capabilities file
    answers: Mapping[str, Union[Callable[[Any], Any], Any]]


class Request(NamedTuple):
    """A call that the skill has made of a peer."""

    to: str  #: the address or id, as the skill has it
    capability: str
    payload: Any
    options: dict[str, Any]  #: such as timeoutMs and idempotencyKey, where they were given


class SkillTest:
    """Calls the functions of a skill in this process, as agentd would.

    ``capabilities`` is the file of the skill's agent. ``agentd`` is the program, by default that of ``AGENTD_BIN`` or ``PATH``.
    Use it as a context manager, or :meth:`close` it. Calls may be made by several threads at once.
    """

    def __init__(
        self,
        skill: Union[Skill, Mapping[str, Function]],
        capabilities: Path,
        *,
        peers: Iterable[Peer] = (),
        agentd: Optional[Path] = None,
    ) -> None:
        if isinstance(skill, Skill):
            self._handlers = dict(skill.handlers)
        else:
            self._handlers = {name: handler(function, False) for name, function in skill.items()}
        peers = list(peers)
        self._host = _Host(agentd or os.environ.get("AGENTD_BIN") or "agentd", capabilities, [p.capabilities for p in peers])
        self._peers = {agent: p.answers for agent, p in zip(self._host.peers, peers)}
        self._calls: set[_Channel] = set()
        self.requests: list[Request] = []  #: what the skill has called, in this order
        self.progress: list[Any] = []  #: what it has reported, of all calls
        self.model_usages: list[dict[str, Any]] = []  #: what it has reported of models: provider, model, operation, inputTokens, outputTokens, durationMs

    def call(
        self,
        capability: str,
        payload: object = None,
        *,
        caller: str = "agent://test",
        caller_proven: bool = True,
        session_id: str = "",
        tenant_id: str = "",
        idempotency_key: str = "",
        traceparent: str = "",
        tracestate: str = "",
        timeout_ms: Optional[int] = None,
    ) -> Result[Any]:
        """Makes one call, and returns what the caller gets.

        An exception that a caller would not see the text of, which is any but :class:`SkillError`, is raised here.
        ``timeout_ms`` sets the deadline that the skill sees; nothing ends it then.
        """
        job = self._job(capability, payload, caller, caller_proven, session_id, tenant_id, idempotency_key, traceparent, tracestate, timeout_ms)
        if isinstance(job, dict):
            return cast("Result[Any]", job)
        found, channel, given = job
        if found.is_async:
            return asyncio.run(self._aserve(found, channel, given))
        return self._serve(found, channel, given)

    async def acall(
        self,
        capability: str,
        payload: object = None,
        *,
        caller: str = "agent://test",
        caller_proven: bool = True,
        session_id: str = "",
        tenant_id: str = "",
        idempotency_key: str = "",
        traceparent: str = "",
        tracestate: str = "",
        timeout_ms: Optional[int] = None,
    ) -> Result[Any]:
        """Is :meth:`call` for tests with asyncio. Functions that block run in a thread."""
        job = self._job(capability, payload, caller, caller_proven, session_id, tenant_id, idempotency_key, traceparent, tracestate, timeout_ms)
        if isinstance(job, dict):
            return cast("Result[Any]", job)
        found, channel, given = job
        if found.is_async:
            return await self._aserve(found, channel, given)
        return await asyncio.to_thread(self._serve, found, channel, given)

    def cancel(self) -> None:
        """Cancels the calls that run, such as from the function of a peer."""
        for channel in list(self._calls):
            channel.cancel()

    def close(self) -> None:
        """Ends the program that judges."""
        self._host.close()

    def __enter__(self) -> SkillTest:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], e: Optional[BaseException], at: Optional[TracebackType]) -> None:
        self.close()

    # One call.

    def _job(self, capability: str, payload: object, *rest: Any) -> Union[dict[str, Any], tuple[Handler, _Channel, Any]]:
        caller, caller_proven, session_id, tenant_id, key, traceparent, tracestate, timeout_ms = rest
        text = _json.encode(payload)
        channel = _Channel(self, uuid.uuid4().hex)
        if refused := self._host.judge("", capability, "request", text):
            return channel.result(refused)
        found = self._handlers.get(capability)
        if found is None:
            raise AgentdError(f"nothing serves the capability {capability!r}")
        declared = self._host.own[capability]
        params = {
            "capability": capability,
            "caller": caller,
            "callerProven": caller_proven,
            "correlationId": channel.correlation_id,
            "messageId": uuid.uuid4().hex,
            "sessionId": session_id,
            "tenantId": tenant_id,
            "idempotencyKey": key,
            "traceparent": traceparent or f"00-{uuid.uuid4().hex}-{uuid.uuid4().hex[:16]}-01",
            "tracestate": tracestate,
            "hops": 1,
            "deadlineMs": int(time.time() * 1000) + (timeout_ms or declared["timeoutMs"]),
            "progress": declared["progress"],
        }
        channel.call = Call(params, self._host.agent, channel)
        return found, channel, _json.decode(text)

    def _serve(self, found: Handler, channel: _Channel, payload: Any) -> Result[Any]:
        with self._running(channel):
            try:
                return self._answer(channel, found.serve(payload, channel.call))
            except (SkillError, CancelledError) as e:
                return self._failed(channel, e)

    async def _aserve(self, found: Handler, channel: _Channel, payload: Any) -> Result[Any]:
        with self._running(channel):
            channel.task = asyncio.ensure_future(found.aserve(payload, channel.call))
            channel.loop = asyncio.get_running_loop()
            try:
                return self._answer(channel, await channel.task)
            except (SkillError, CancelledError) as e:
                if isinstance(e, CancelledError) and not channel.call.canceled.is_set():
                    raise  # the test itself is cancelled
                return self._failed(channel, e)

    @contextlib.contextmanager
    def _running(self, channel: _Channel) -> Generator[None, None, None]:
        self._calls.add(channel)
        token = current.set(channel.call.running)
        try:
            yield
        finally:
            current.reset(token)
            self._calls.discard(channel)

    def _answer(self, channel: _Channel, answer: object) -> Result[Any]:
        text = _json.encode(answer)
        refused = self._host.judge("", channel.call.capability, "response", text)
        return cast("Result[Any]", channel.result(refused or {"status": "ok", "response": _json.decode(text)}))

    def _failed(self, channel: _Channel, e: Union[SkillError, CancelledError]) -> Result[Any]:
        if isinstance(e, SkillError):
            return cast("Result[Any]", channel.result(self._host.fail("", channel.call.capability, e)))
        return cast("Result[Any]", channel.result(_cancelled("the call was cancelled")))

    # Its nested calls.

    def ask(self, request: dict[str, Any]) -> tuple[Optional[dict[str, Any]], Any]:
        """For the kit: the result of a nested call, if it is known at once, and else what the peer does."""
        to, capability = str(request["to"]), str(request["capability"])
        text = _json.encode(request.get("payload"))
        options = {name: value for name, value in request.items() if name not in ("to", "capability", "payload")}
        self.requests.append(Request(to, capability, _json.decode(text), options))
        agent = to if "://" in to else "agent://" + to
        if refused := self._host.judge(agent, capability, "request", text):
            return refused, None
        answers = self._peers.get(agent, {})
        if capability not in answers:
            raise AssertionError(f"the test has no answer for {agent}/{capability}")
        answer = answers[capability]
        return None, answer(_json.decode(text)) if callable(answer) else answer

    def judge_answer(self, request: dict[str, Any], answer: object) -> dict[str, Any]:
        """For the kit: the result of a nested call whose peer has answered."""
        to = str(request["to"])
        agent = to if "://" in to else "agent://" + to
        if isinstance(answer, SkillError):
            return self._host.fail(agent, str(request["capability"]), answer)
        text = _json.encode(answer)
        refused = self._host.judge(agent, str(request["capability"]), "response", text)
        return refused or {"status": "ok", "response": _json.decode(text)}


class _Channel:
    """The channel of a call that a test makes."""

    call: Call

    def __init__(self, test: SkillTest, correlation_id: str) -> None:
        self._test = test
        self.correlation_id = correlation_id
        self._began = time.monotonic()
        self._queued: dict[str, dict[str, Any]] = {}
        self.task: Optional[asyncio.Future[Any]] = None
        self.loop: Optional[asyncio.AbstractEventLoop] = None

    def cancel(self) -> None:
        self.call.cancel()
        if self.task is not None and self.loop is not None:
            self.loop.call_soon_threadsafe(self.task.cancel)

    def result(self, result: Mapping[str, Any]) -> dict[str, Any]:
        return {**result, "correlationId": self.correlation_id, "latencyMs": round((time.monotonic() - self._began) * 1000, 3)}

    def exchange(self, request: dict[str, Any], progress: bool, wait: float) -> Generator[Line, None, None]:
        refuse_in_event_loop()
        self.call.raise_if_canceled()
        result, answer = None, None
        try:
            result, answer = self._test.ask(request)
            if inspect.isgenerator(answer):
                answer = yield from _played(cast("Generator[Any, None, Any]", answer), progress)
            if inspect.isawaitable(answer):
                answer = asyncio.run(_wait_for(answer))
        except SkillError as e:
            answer = e
        self.call.raise_if_canceled()
        yield self._outcome(request, result or self._test.judge_answer(request, answer))

    async def aexchange(self, request: dict[str, Any], progress: bool, wait: float) -> AsyncGenerator[Line, None]:
        result, answer = None, None
        try:
            result, answer = self._test.ask(request)
            if inspect.isgenerator(answer):
                reports = _played(cast("Generator[Any, None, Any]", answer), progress)
                while True:
                    try:
                        yield next(reports)
                    except StopIteration as end:
                        answer = end.value
                        break
            if inspect.isawaitable(answer):
                answer = await answer
        except SkillError as e:
            answer = e
        await asyncio.sleep(0)  # where a cancelled call ends
        yield self._outcome(request, result or self._test.judge_answer(request, answer))

    def _outcome(self, request: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
        id = uuid.uuid4().hex
        known: dict[str, Any] = {"latencyMs": 0, **result, "correlationId": id}
        if request.get("mode") == "async":
            self._queued[id] = known
            return {"status": "ok", "queued": True, "correlationId": id, "latencyMs": 0}
        if request.get("mode") == "fire-and-forget" and known["status"] == "ok":
            known.pop("response")
        return known

    def fetch(self, correlation_id: str, timeout_ms: int) -> dict[str, Any]:
        if correlation_id not in self._queued:
            raise RefusedError("EAGENTRPC_INVALID_REQUEST", "there is no asynchronous call with this correlation id")
        return self._queued[correlation_id]

    async def afetch(self, correlation_id: str, timeout_ms: int) -> dict[str, Any]:
        return self.fetch(correlation_id, timeout_ms)

    def report(self, value: object) -> bool:
        text = _json.encode(value)
        if len(text) > 64 << 10:
            raise ValueError(f"progress of {len(text)} bytes, and {64 << 10} are allowed")
        if self.call.wants_progress:
            self._test.progress.append(_json.decode(text))
        return self.call.wants_progress

    def model_usage(self, usage: dict[str, Any]) -> bool:
        self._test.model_usages.append(usage)
        return True


def _played(answer: Generator[Any, None, Any], progress: bool) -> Generator[Line, None, Any]:
    for seq in itertools.count(1):
        try:
            value = next(answer)
        except StopIteration as end:
            return end.value
        if progress:
            yield Progress(seq, 1, _json.decode(_json.encode(value)))


async def _wait_for(answer: Any) -> Any:
    return await answer


def _cancelled(message: str) -> dict[str, Any]:
    return {"status": "abandoned", "error": {"code": "EAGENTRPC_CANCELLED", "message": message, "retryable": False}}


class _Host:
    """`agentd skill test-host`, which judges."""

    def __init__(self, program: Path, capabilities: Path, peers: list[Path]) -> None:
        command = [os.fspath(program), "skill", "test-host", "--capabilities", os.fspath(capabilities)]
        for peer in peers:
            command += ["--peer", os.fspath(peer)]
        try:
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        except OSError as e:
            raise AgentdError(f"{command[0]} cannot be run, and judges the test: put agentd into PATH, or name it in AGENTD_BIN: {e}") from e
        self._lock = threading.Lock()
        hello = self._read()
        if hello.get("protocolVersion") != _VERSION:
            self.close()
            raise AgentdError(f"this kit does not fit {command[0]}")
        self.agent: str = hello["agent"]
        self.own: dict[str, Any] = {c["name"]: c for c in hello["agents"][self.agent]}
        self.peers: list[str] = hello.get("peers", [])

    def judge(self, agent: str, capability: str, side: str, payload: bytes) -> Optional[dict[str, Any]]:
        """What the call results in if the payload does not fit."""
        about = _json.encode({"id": 0, "agent": agent, "capability": capability, "side": side})
        return self._ask(about[:-1] + b',"payload":' + payload + b"}\n")

    def fail(self, agent: str, capability: str, e: SkillError) -> dict[str, Any]:
        """What the call results in if the skill fails."""
        about = {"id": 0, "agent": agent, "capability": capability, "failure": {"message": readable(e.message), "retryable": bool(e.retryable)}}
        result = self._ask(_json.encode(about) + b"\n")
        assert result is not None
        return result

    def _ask(self, line: bytes) -> Optional[dict[str, Any]]:
        with self._lock:
            assert self._process.stdin is not None
            try:
                self._process.stdin.write(line)
                self._process.stdin.flush()
            except OSError:
                self._gone()
            verdict = self._read()
        return None if verdict["valid"] else verdict["result"]

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._gone()
        verdict: dict[str, Any] = json.loads(line)
        return verdict

    def _gone(self) -> NoReturn:
        assert self._process.stderr is not None
        text = self._process.stderr.read().decode(errors="replace").strip()
        self.close()
        raise AgentdError(f"agentd skill test-host has ended: {text}")

    def close(self) -> None:
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        self._process.wait()
