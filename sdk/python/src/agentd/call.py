"""The call that a skill serves."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Any, Mapping, MutableMapping, Optional

from ._channel import Channel, Running, current, trace_id
from ._usage import usage
from .client import AsyncClient, Client, Mode, refuse_in_event_loop
from .result import Result

if TYPE_CHECKING:
    _Adapter = logging.LoggerAdapter[logging.Logger]
else:
    _Adapter = logging.LoggerAdapter

_logger = logging.getLogger("agentd.skill")
_cancelling = threading.Lock()  # between a call that is cancelled and its first look at that


class Call:
    """What a skill knows of the call that it serves, and what it may do as a part of it.

    A text is empty where the caller gave none. The ids, the key and the trace context are the caller's
    words, and so is ``caller`` unless ``caller_proven`` is true.
    """

    caller: str  #: the address of the agent that calls
    caller_proven: bool  #: the request has proven that it is the caller's
    agent: str  #: the address of the agent that serves the call
    capability: str
    correlation_id: str  #: names the call in the logs and records of both agents
    message_id: str  #: names the request; each attempt of a call has its own
    session_id: str
    tenant_id: str
    idempotency_key: str
    traceparent: str  #: the W3C trace context of the call
    tracestate: str  #: what vendors of tracing have added to it
    hops: int  #: the calls that led here, this one included
    deadline_ms: Optional[int]  #: when the caller stops waiting, in ms since the Unix epoch
    event: bool  #: the caller waits for no answer; a process that serves one call does not know, and has False
    wants_progress: bool  #: the caller wants progress; a process does not know, and has True

    def __init__(self, params: Mapping[str, Any], agent: str, channel: Channel) -> None:
        get = params.get
        self.caller = get("caller", "")
        self.caller_proven = get("callerProven", False)
        self.agent = agent
        self.capability = get("capability", "")
        self.correlation_id = get("correlationId", "")
        self.message_id = get("messageId", "")
        self.session_id = get("sessionId", "")
        self.tenant_id = get("tenantId", "")
        self.idempotency_key = get("idempotencyKey", "")
        self.traceparent = get("traceparent", "")
        self.tracestate = get("tracestate", "")
        self.hops = get("hops", 0)
        self.deadline_ms = get("deadlineMs") or None
        self.event = get("event", False)
        self.wants_progress = get("progress", False)
        self._channel = channel
        self._is_canceled = False
        self._canceled: Optional[threading.Event] = None  # few calls are asked for theirs

    @property
    def canceled(self) -> threading.Event:
        """Set when nobody waits for the answer any more."""
        with _cancelling:
            if self._canceled is None:
                self._canceled = threading.Event()
                if self._is_canceled:
                    self._canceled.set()
            return self._canceled

    def cancel(self) -> None:
        """For the kit: sets :attr:`canceled`."""
        with _cancelling:
            self._is_canceled = True
            if self._canceled is not None:
                self._canceled.set()

    def progress(self, value: object) -> bool:
        """Reports progress to the caller: any JSON value of at most 64 KiB.

        It does not wait for the caller, and reports beyond 50 a second are lost. It returns whether the
        caller wants progress: if not, the skill need not go on with it. Raises ``TypeError`` or ``ValueError``
        for what is no JSON, or too long.
        """
        return self._channel.report(value)

    def model_usage(
        self,
        *,
        provider: str,
        model: str,
        input_tokens: int = 0,
        output_tokens: int = 0,
        operation: str = "chat",
        duration_ms: int = 0,
    ) -> bool:
        """Reports what one request to a language model used, when it has ended: agentd counts it, and traces it.

        ``provider`` and ``model`` are 1 to 128 letters, digits and ``._:/@+-``; ``operation`` is chat, text_completion,
        generate_content or embeddings. Nothing of the question or the answer is reported. It returns whether agentd takes
        reports. Raises ``TypeError`` or ``ValueError`` for what it would refuse, and :class:`RefusedError` once the call
        has ended, or has made 1,000 reports.
        """
        return self._channel.model_usage(usage(provider, model, operation, input_tokens, output_tokens, duration_ms))

    def request(
        self,
        to: str,
        capability: str,
        payload: object = None,
        *,
        timeout_ms: Optional[int] = None,
        idle_timeout_ms: Optional[int] = None,
        mode: Optional[Mode] = None,
        idempotency_key: Optional[str] = None,
        tenant_id: Optional[str] = None,
        session_id: Optional[str] = None,
        traceparent: Optional[str] = None,
        tracestate: Optional[str] = None,
    ) -> Result[Any]:
        """Calls a capability of a peer as a part of this call, and blocks; see :meth:`Client.request`.

        It is not for asynchronous functions, where it would hold up all others: they ``await`` :meth:`arequest`.
        """
        refuse_in_event_loop()
        return self.client.request(
            to,
            capability,
            payload,
            timeout_ms=timeout_ms,
            idle_timeout_ms=idle_timeout_ms,
            mode=mode,
            idempotency_key=idempotency_key,
            tenant_id=tenant_id,
            session_id=session_id,
            traceparent=traceparent,
            tracestate=tracestate,
        )

    async def arequest(
        self,
        to: str,
        capability: str,
        payload: object = None,
        *,
        timeout_ms: Optional[int] = None,
        idle_timeout_ms: Optional[int] = None,
        mode: Optional[Mode] = None,
        idempotency_key: Optional[str] = None,
        tenant_id: Optional[str] = None,
        session_id: Optional[str] = None,
        traceparent: Optional[str] = None,
        tracestate: Optional[str] = None,
    ) -> Result[Any]:
        """Calls a capability of a peer as a part of this call; see :meth:`Client.request`."""
        return await self.async_client.request(
            to,
            capability,
            payload,
            timeout_ms=timeout_ms,
            idle_timeout_ms=idle_timeout_ms,
            mode=mode,
            idempotency_key=idempotency_key,
            tenant_id=tenant_id,
            session_id=session_id,
            traceparent=traceparent,
            tracestate=tracestate,
        )

    @property
    def client(self) -> Client:
        """A client whose calls are parts of this one, such as for threads that the skill starts."""
        return Client(self._channel)

    @property
    def async_client(self) -> AsyncClient:
        """The same for asyncio."""
        return AsyncClient(self._channel)

    @property
    def remaining(self) -> Optional[float]:
        """Seconds until the deadline, from 0; None if there is none."""
        return None if self.deadline_ms is None else max(self.deadline_ms / 1000 - time.time(), 0.0)

    def raise_if_canceled(self) -> None:
        """Raises :class:`CancelledError` if the call was cancelled."""
        if self._is_canceled:
            from .errors import CancelledError

            raise CancelledError(f"the call {self.correlation_id} was cancelled")

    @property
    def log(self) -> _Adapter:
        """A logger of the standard library whose lines carry the ids of the call and of its trace."""
        return _CallLog(_logger, dict(zip(("correlation_id", "trace_id"), self.ids)))

    @property
    def ids(self) -> tuple[str, str]:
        """For the kit: the ids of the call and of its trace."""
        return self.correlation_id, trace_id(self.traceparent)

    @property
    def running(self) -> Running:
        """For the kit: what :func:`connect` finds while the call is served."""
        return Running(self, self._channel)


class _CallLog(_Adapter):
    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        ids: Any = self.extra
        kwargs["extra"] = {**ids, **(kwargs.get("extra") or {})}
        return f"{msg}{_suffix(ids['correlation_id'], ids['trace_id'])}", kwargs


def _suffix(correlation_id: str, trace: str) -> str:
    return (f" correlation_id={correlation_id}" if correlation_id else "") + (f" trace_id={trace}" if trace else "")


class _Formatter(logging.Formatter):
    """Adds the ids of the running call to lines that other loggers write meanwhile."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        text = super().formatMessage(record)
        running = current.get()
        if running is None or hasattr(record, "correlation_id"):
            return text
        return text + _suffix(*running.call.ids)


def set_up_logging() -> None:
    """Lets records go to standard error, unless the program has configured logging itself."""
    if not logging.getLogger().handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(_Formatter("%(levelname)s %(name)s: %(message)s"))
        logging.basicConfig(handlers=[handler], level=logging.INFO)
