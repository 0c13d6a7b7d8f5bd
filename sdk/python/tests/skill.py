"""A skill for the tests of the kit: a worker or a process, as its environment says."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from typing import Any

import agentd

concurrency = int(sys.argv[1]) if len(sys.argv) > 1 else 1
skill = agentd.Skill(concurrency=concurrency)
peer = agentd.connect()  # made before there is a call
loop: asyncio.AbstractEventLoop | None = None
late: list[Any] = []


@skill.capability("echo")
def echo(payload: Any, call: agentd.Call) -> Any:
    print("a forgotten print")
    subprocess.run(["echo", "and one of a program"])
    return payload


@skill.capability("arguments", takes_object=True)
def arguments(payload: Any, call: agentd.Call) -> Any:
    return payload


@skill.capability("know")
def know(payload: Any, call: agentd.Call) -> Any:
    who = [call.caller, call.caller_proven, call.agent, call.capability, call.tenant_id, call.tracestate]
    return [*who, call.hops, call.deadline_ms, call.event, call.wants_progress]


@skill.capability("environment")
def environment(payload: Any, call: agentd.Call) -> Any:
    return [os.environ.get("AGENTD_WORKER"), sys.stdin.read(), threading.current_thread() is threading.main_thread()]


@skill.capability("fail")
def fail(payload: Any, call: agentd.Call) -> Any:
    raise agentd.SkillError("not today", retryable=payload) from KeyError("hunter2")


@skill.capability("fail-oddly")
def fail_oddly(payload: Any, call: agentd.Call) -> Any:
    odd: Any = ValueError("why")
    raise {"exception": agentd.SkillError(odd), "half": agentd.SkillError("a\udce9"), "file": FileNotFoundError(2, "gone", "a\udce9")}[payload]


@skill.capability("exit")
def exit(payload: Any, call: agentd.Call) -> Any:
    sys.exit(3)


@skill.capability("answer")
def answer(payload: Any, call: agentd.Call) -> Any:
    deep: Any = 1
    for _ in range(600):
        deep = [deep]
    return {"nan": float("nan"), "surrogate": "\ud800", "deep": deep, "class": skill, "long": "x" * (2 << 20)}[payload]


@skill.capability("wait")
def wait(payload: Any, call: agentd.Call) -> Any:
    call.log.info("waiting")
    if not call.canceled.wait(60):
        raise TimeoutError
    return "canceled"


@skill.capability("nap")
def nap(payload: Any, call: agentd.Call) -> Any:
    together.wait(60)
    return "slept"


together = threading.Barrier(max(concurrency, 1))


@skill.capability("report")
def report(payload: Any, call: agentd.Call) -> Any:
    wanted = [call.progress(value) for value in payload]
    late.append(call)
    return wanted


@skill.capability("late")
def report_late(payload: Any, call: agentd.Call) -> Any:
    """Reports the progress of a call that has ended."""
    return late.pop().progress(1)


@skill.capability("use")
def use(payload: Any, call: agentd.Call) -> Any:
    late.append(call)
    try:
        return [call.model_usage(**given) for given in payload]
    except (agentd.RefusedError, TypeError, ValueError) as e:
        return f"{type(e).__name__}: {e}"


@skill.capability("use-late")
def use_late(payload: Any, call: agentd.Call) -> Any:
    """Reports what a model has used for a call that has ended."""
    try:
        return late.pop().model_usage(provider="openai", model="m")
    except agentd.RefusedError as e:
        return e.code


@skill.capability("ask")
def ask(payload: Any, call: agentd.Call) -> Any:
    try:
        result = peer.request("peer", "find", payload, timeout_ms=500, idempotency_key="k", mode="sync")
    except agentd.RefusedError as e:
        return [e.code, str(e)]
    return agentd.unwrap(result)


@skill.capability("follow")
def follow(payload: Any, call: agentd.Call) -> Any:
    with call.client.stream("peer", "find", payload) as progress:
        return [[p.seq, p.attempt, p.value] for p in progress] + [progress.result["status"]]


@skill.capability("leaves")
def leaves(payload: Any, call: agentd.Call) -> Any:
    """Makes a nested call in a loop of its own, which ends before the answer."""
    own = asyncio.new_event_loop()
    task = own.create_task(call.arequest("peer", "find"))
    own.run_until_complete(asyncio.sleep(0))
    own.close()
    late.append(task)


@skill.capability("await")
def await_(payload: Any, call: agentd.Call) -> Any:
    return call.client.await_result(payload)["status"]


if "async" in sys.argv:

    @skill.capability("await-forever")
    async def await_forever(payload: Any, call: agentd.Call) -> Any:
        try:
            await asyncio.Event().wait()
        finally:
            call.progress("cleaned up")

    @skill.capability("aask")
    async def aask(payload: Any, call: agentd.Call) -> Any:
        results = await asyncio.gather(*(call.arequest("peer", "find", n) for n in payload))
        return [agentd.unwrap(r) for r in results]

    @skill.capability("afollow")
    async def afollow(payload: Any, call: agentd.Call) -> Any:
        async with call.async_client.stream("peer", "find", payload) as progress:
            seen: list[Any] = [p.value async for p in progress]
            return [*seen, (await progress.result())["status"]]

    @skill.capability("block")
    async def block(payload: Any, call: agentd.Call) -> Any:
        try:
            call.request("peer", "find")
        except RuntimeError:
            return "refused"

    @skill.capability("loops")
    async def loops(payload: Any, call: agentd.Call) -> Any:
        global loop
        first, loop = loop, asyncio.get_running_loop()
        return [first is None or first is loop, threading.current_thread() is threading.main_thread()]


if __name__ == "__main__":
    started = time.monotonic()
    skill.run()
