"""Serves the capabilities of `agentd skill check`: with functions that block, or as "async" says."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import agentd

skill = agentd.Skill(concurrency=int(sys.argv[2]) if len(sys.argv) > 2 else 4)


def echo(payload: Any, call: agentd.Call) -> Any:
    return payload


def context(payload: Any, call: agentd.Call) -> Any:
    return {
        "caller": call.caller,
        "callerProven": call.caller_proven,
        "correlationId": call.correlation_id,
        "messageId": call.message_id,
        "sessionId": call.session_id,
        "tenantId": call.tenant_id,
        "idempotencyKey": call.idempotency_key,
        "traceparent": call.traceparent,
        "hops": call.hops,
        "deadlineMs": call.deadline_ms,
    }


def fail(payload: Any, call: agentd.Call) -> Any:
    raise agentd.SkillError(payload["message"], payload["retryable"])


def bug(payload: Any, call: agentd.Call) -> Any:
    raise KeyError(payload)


def wait(payload: Any, call: agentd.Call) -> Any:
    print("a forgotten print")
    call.canceled.wait()
    call.raise_if_canceled()


def progress(payload: Any, call: agentd.Call) -> Any:
    for value in payload:
        call.progress(value)
    return len(payload)


def nested(payload: Any, call: agentd.Call) -> Any:
    return call.request(payload["to"], payload["capability"], payload["payload"], timeout_ms=payload["timeoutMs"], mode=payload["mode"])


async def await_(payload: Any, call: agentd.Call) -> Any:
    await asyncio.Event().wait()


async def anested(payload: Any, call: agentd.Call) -> Any:
    return await call.arequest(payload["to"], payload["capability"], payload["payload"], timeout_ms=payload["timeoutMs"], mode=payload["mode"])


async def aecho(payload: Any, call: agentd.Call) -> Any:
    return payload


kind = sys.argv[1] if len(sys.argv) > 1 else "sync"
skill.add("check-echo", aecho if kind == "async" else echo)
skill.add("check-context", context)
skill.add("check-fail", fail)
skill.add("check-bug", bug)
skill.add("check-wait", await_ if kind == "async" else wait)
skill.add("check-progress", progress)
skill.add("check-nested", anested if kind == "async" else nested)
if __name__ == "__main__":
    skill.run()
