class Call(NamedTuple):
    "The call that a skill serves. A text is empty where the caller gave none."

    caller: str  # the address of the agent that calls
    caller_proven: bool  # the request has proven that; otherwise caller is its word
    agent: str  # of the agent that serves the call
    capability: str
    correlation_id: str
    message_id: str
    session_id: str
    tenant_id: str
    idempotency_key: str
    traceparent: str  # the W3C trace context
    hops: int  # the calls that led here, this one included
    deadline_ms: int | None  # when the caller stops waiting, in ms since the Unix epoch

    @classmethod
    def current(cls) -> Call:
        "Reads what agentd put into the environment of the skill's process."

        def get(name: str) -> str:
            return os.environ.get("AGENTD_" + name, "")

        return cls(
            caller=get("CALLER"),
            caller_proven=get("CALLER_PROVEN") == "true",
            agent=get("AGENT"),
            capability=get("CAPABILITY"),
            correlation_id=get("CORRELATION_ID"),
            message_id=get("MESSAGE_ID"),
            session_id=get("SESSION_ID"),
            tenant_id=get("TENANT_ID"),
            idempotency_key=get("IDEMPOTENCY_KEY"),
            traceparent=get("TRACEPARENT"),
            hops=int(get("HOPS") or 0),
            deadline_ms=int(get("DEADLINE")) if get("DEADLINE") else None,
        )


class SkillError(Exception):
    "A failure that the caller may read. Any other exception stays in the log of agentd."

    def __init__(self, message: str, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.retryable = retryable


def serve(handlers: Handlers) -> NoReturn:
    """Serves the call that this process was started for, and ends the process.

    While a handler runs, standard output is standard error: what it prints goes to the log.
    """
    answer = os.dup(1)
    os.dup2(2, 1)
    status, text = _run(cast("dict[str, Callable[[Any, Call], Any]]", handlers))
    with os.fdopen(answer, "wb") as stream:
        stream.write(text)
    sys.exit(status)


def _run(handlers: dict[str, Callable[[Any, Call], Any]]) -> tuple[int, bytes]:
    call = Call.current()
    handler = handlers.get(call.capability)
    if handler is None:
        print(f"nothing serves the capability {call.capability!r}", file=sys.stderr)
        return 1, b""
    try:
        result = handler(_arguments(sys.stdin.buffer.read(), call.capability), call)
        if asyncio.iscoroutine(result):
            result = asyncio.run(result)
    except SkillError as e:
        print("skill failed:", e.message, file=sys.stderr)
        if e.__cause__ is not None:  # raise SkillError(…) from …
            sys.excepthook(type(e.__cause__), e.__cause__, e.__cause__.__traceback__)
        failure = {"error": {"message": e.message, "retryable": e.retryable}}
        return 75 if e.retryable else 1, json.dumps(failure).encode()
    return 0, json.dumps(result, allow_nan=False).encode()


def _arguments(text: bytes, capability: str) -> Any:
    "The payload. A call without arguments is {} where the schema takes an object and no null."
    payload = json.loads(text) if text.strip() else None
    return {} if payload is None and capability in _TAKES_OBJECT else payload
