"""Outcomes of calls, as agentd writes them.

A result is a ``dict`` whose ``status`` says which of the classes below describes it, so that
``if result["status"] == "ok"`` narrows its type. Members that are not known here are passed on.
"""

from __future__ import annotations

from types import GenericAlias
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar, Union

T = TypeVar("T")

if TYPE_CHECKING:
    from typing_extensions import NotRequired, TypedDict

    class Violation(TypedDict):
        """One way in which a value fails a schema."""

        path: str  #: an RFC 6901 pointer; "" is the root
        message: str

    class CallFailure(TypedDict):
        """Why a call did not succeed."""

        code: str  #: such as EAGENTRPC_NO_PEER
        message: str
        retryable: bool  #: the same call may succeed later
        detectedBy: NotRequired[str]  #: the address of the agent that refused the call
        details: NotRequired[Any]

    class Outcome(TypedDict):
        """What every result says. Where a member is absent, there is nothing to say."""

        correlationId: str
        traceId: NotRequired[str]  #: that of the W3C trace that the call belongs to
        latencyMs: float
        executionTimeMs: NotRequired[float]  #: how long the skill ran, by the callee's word
        costEstimate: NotRequired[dict[str, float]]  #: what the contract declares, in units of the callee's owner
        replayed: NotRequired[bool]  #: the answer repeats that to an earlier call with the same idempotency key
        queued: NotRequired[bool]  #: a broker has stored the call, and there is no answer yet
        unproven: NotRequired[bool]  #: it is not proven that the contracts of both ends agree
        unprovenReason: NotRequired[str]  #: why not

    class Ok(Outcome, Generic[T]):
        """The callee has answered, and the answer is valid.

        A call that is queued, and one that waits for nothing, have no ``response``.
        """

        status: Literal["ok"]
        response: T

    class Failed(Outcome):
        """The call has failed."""

        status: Literal["error", "timeout", "abandoned", "busy"]
        error: CallFailure

    class SchemaViolation(Outcome):
        """The request or the response does not fit its schema."""

        status: Literal["schema-violation"]
        schemaSide: Literal["request", "response"]
        violations: list[Violation]
        violationsOmitted: NotRequired[int]  #: how many more there are than are listed
        response: NotRequired[Any]  #: the answer that failed its schema, where this end found that
        error: CallFailure

else:
    # A TypedDict can be generic from Python 3.11 on. At run time all of them are dicts.
    Violation = CallFailure = Outcome = Failed = SchemaViolation = dict

    class Ok(dict):
        __class_getitem__ = classmethod(GenericAlias)


#: The outcome of a call, told apart by ``status``.
Result: TypeAlias = Union[Ok[T], Failed, SchemaViolation]


class Progress(NamedTuple):
    """A report of a skill that is still running."""

    seq: int  #: counts the reports of one attempt, from 1; a gap means that some were lost
    attempt: int  #: counts the attempts of the call, from 1
    value: Any  #: what the skill reports: any JSON value
