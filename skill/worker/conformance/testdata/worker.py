"""A kit for workers in Python and the capabilities of the check, from docs/worker-protocol.md alone."""
import json, queue, signal, sys, threading

out, sys.stdout = sys.stdout, sys.stderr
writing = threading.Lock()
calls = {}  # id of the invoke: Call
requests = {}  # id of the request: where its response goes


def send(**message):
    text = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False, separators=(",", ":"))
    with writing:
        out.write(text + "\n")
        out.flush()


class SkillError(Exception):
    def __init__(self, message, retryable=False):
        super().__init__(message)
        self.retryable = retryable


class Call:
    def __init__(self, id, params):
        self.id, self.params, self.cancelled = id, params, threading.Event()

    def progress(self, value):
        if self.params.get("progress"):
            send(method="progress", params={"id": self.id, "value": value})

    def request_agent(self, request):
        id = "%s-%d" % (self.id, len(requests))
        requests[id] = response = queue.Queue()
        send(id=id, method="requestAgent", params={"call": self.id, "request": request})
        message = response.get()
        del requests[id]
        if "error" in message:
            raise RuntimeError(message["error"]["message"])
        return message["result"]


def serve(call, skills):
    try:
        answer = skills[call.params["capability"]](call.params["payload"], call)
        reply = {"result": {"answer": answer}}
    except SkillError as e:
        reply = {"error": {"code": -32000, "message": str(e), "data": {"retryable": e.retryable}}}
    except Exception as e:
        reply = {"error": {"code": -32603, "message": repr(e)}}
    del calls[call.id]
    send(id=call.id, **reply)


def run(skills, concurrency):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    for line in sys.stdin:
        message = json.loads(line)
        id, method, params = message.get("id"), message.get("method"), message.get("params", {})
        if method is None and id in requests:
            requests[id].put(message)
        elif method == "invoke":
            calls[id] = Call(id, params)
            threading.Thread(target=serve, args=(calls[id], skills), daemon=True).start()
        elif method == "cancel" and params["id"] in calls:
            calls[params["id"]].cancelled.set()
        elif method == "initialize" and 1 in params["protocolVersions"]:
            send(id=id, result={"protocolVersion": 1, "capabilities": list(skills), "concurrency": concurrency})
        elif method == "initialize":
            send(id=id, error={"code": -32602, "message": "this worker speaks version 1"})
        elif method == "ping":
            send(id=id, result={})
        elif method is not None and id is not None:
            send(id=id, error={"code": -32601, "message": "unknown: " + method})


def context(_, call):
    names = "caller callerProven correlationId messageId sessionId tenantId idempotencyKey traceparent hops deadlineMs"
    return {name: call.params.get(name) for name in names.split()}


def fail(payload, _):
    raise SkillError(payload["message"], payload["retryable"])


def bug(payload, _):
    raise KeyError(payload)


def progress(payload, call):
    for value in payload:
        call.progress(value)
    return len(payload)


if __name__ == "__main__":
    print("a forgotten print")
    run({
        "check-echo": lambda payload, _: payload,
        "check-context": context,
        "check-fail": fail,
        "check-bug": bug,
        "check-wait": lambda _, call: call.cancelled.wait(),
        "check-progress": progress,
        "check-nested": lambda payload, call: call.request_agent(payload),
    }, concurrency=4)
