class Violation(TypedDict):
    path: str  # an RFC 6901 pointer
    message: str


class CallFailure(TypedDict):
    code: str
    message: str
    retryable: bool
    detectedBy: NotRequired[str]
    details: NotRequired[Any]


_T = TypeVar("_T")


class Outcome(TypedDict):
    "What every result says. Where a member is absent, there is nothing to say."

    correlationId: str
    traceId: NotRequired[str]  # that of the W3C trace that the call belongs to
    latencyMs: float
    executionTimeMs: NotRequired[float]  # how long the skill ran, by the callee's word
    costEstimate: NotRequired[dict[str, float]]  # what the contract declares, in units of the callee's owner
    replayed: NotRequired[bool]  # the answer repeats that to an earlier call with the same idempotency key
    queued: NotRequired[bool]  # a broker has stored the call, and there is no answer yet
    unproven: NotRequired[bool]  # it is not proven that the contracts of both ends agree
    unprovenReason: NotRequired[str]  # why not


class Ok(Outcome, Generic[_T]):
    status: Literal["ok"]
    response: _T


class Failed(Outcome):
    status: Literal["error", "timeout", "abandoned", "busy"]
    error: CallFailure


class SchemaViolation(Outcome):
    status: Literal["schema-violation"]
    schemaSide: Literal["request", "response"]
    violations: list[Violation]
    violationsOmitted: NotRequired[int]  # how many more there are than are listed
    response: NotRequired[Any]  # the answer that failed its schema, where this end found that
    error: CallFailure


#: The outcome of a call, told apart by status.
Result: TypeAlias = Union[Ok[_T], Failed, SchemaViolation]


class AgentdError(Exception):
    "No call was made: agentd refused the request, or does not answer as it should."

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


class _Endpoint:
    def __init__(self, socket_path: str | None = None, *, url: str | None = None, call: str | None = None) -> None:
        """A skill needs no arguments: it finds its agent by AGENTD_URL and AGENTD_CALL.

        Another program names an agent's control socket, here or in AGENTD_SOCKET.
        """
        if not socket_path and not url:
            url, socket_path = os.environ.get("AGENTD_URL"), os.environ.get("AGENTD_SOCKET")
            call = call or os.environ.get("AGENTD_CALL")
        if not socket_path and not url:
            raise AgentdError("no-endpoint", "AGENTD_URL is not set; agentd sets it for skills, and others name a control socket")
        self._path = None if url else socket_path
        self._at = urllib.parse.urlsplit(url or "http://agentd")
        self._token = call

    def _address(self) -> tuple[str, int]:
        return self._at.hostname or "", self._at.port or 80

    def _request(
        self,
        capability: str,
        payload: object,
        timeout_ms: int | None,
        key: str | None,
        trace: str | None,
        tenant: str | None,
    ) -> bytes:
        request: dict[str, object] = {"to": ADDRESS, "capability": capability, "payload": payload}
        if timeout_ms is not None:
            request["timeoutMs"] = timeout_ms
        if key is not None:
            request["idempotencyKey"] = key
        if trace is not None:
            request["traceparent"] = trace
        if tenant is not None:
            request["tenantId"] = tenant
        body = json.dumps(request, allow_nan=False).encode()
        token = f"Agentd-Call: {self._token}\r\n" if self._token else ""
        head = (
            f"POST /v1/request HTTP/1.0\r\nHost: {self._at.netloc}\r\nContent-Type: application/json\r\n"
            f"{token}Content-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body

    def _wait(self, timeout_ms: int | None) -> float:
        return (600_000 if timeout_ms is None else timeout_ms) / 1000 + 15  # agentd gives up before

    def _result(self, reply: bytes) -> Any:
        head, _, body = reply.partition(b"\r\n\r\n")
        try:
            status = int(head.split(b" ", 2)[1])
            result = json.loads(body)
        except (IndexError, ValueError):
            raise AgentdError("http", "the reply is cut short or is not agentd's") from None
        if status != 200:
            raise AgentdError(result["error"]["code"], result["error"]["message"])
        return result
