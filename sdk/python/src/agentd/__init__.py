"""Skills and clients for agentd: agents that call each other like typed functions.

A skill::

    import agentd

    skill = agentd.Skill(concurrency=4)

    @skill.capability("review-pr")
    def review(payload, call):
        found = agentd.unwrap(call.request("librarian", "search-notes", {"query": payload["prUrl"]}))
        return {"verdict": "approve"}

    skill.run()

Any other program::

    client = agentd.connect("/run/user/1000/agentd/concierge.sock")
    result = client.request("pr-reviewer", "review-pr", {"prUrl": url}, timeout_ms=20_000)
"""

from typing import TYPE_CHECKING, Any

from .call import Call
from .client import AsyncClient, AsyncStream, Client, Mode, Stream, aconnect, connect
from .errors import (
    AgentdError,
    CallError,
    ConnectionFailed,
    RefusedError,
    SkillError,
    ViolationError,
    unwrap,
)
from .result import CallFailure, Failed, Ok, Outcome, Progress, Result, SchemaViolation, Violation
from .skill import Skill, serve
from .version import __version__

if TYPE_CHECKING:
    from .errors import CancelledError

__all__ = [
    "AgentdError",
    "AsyncClient",
    "AsyncStream",
    "Call",
    "CallError",
    "CallFailure",
    "CancelledError",
    "Client",
    "ConnectionFailed",
    "Failed",
    "Mode",
    "Ok",
    "Outcome",
    "Progress",
    "RefusedError",
    "Result",
    "SchemaViolation",
    "Skill",
    "SkillError",
    "Stream",
    "Violation",
    "ViolationError",
    "__version__",
    "aconnect",
    "connect",
    "serve",
    "unwrap",
]


def __getattr__(name: str) -> Any:
    if name == "CancelledError":
        from .errors import CancelledError

        return CancelledError
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
