package python

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/agentd/agentd/codegen/internal/model"
	"github.com/agentd/agentd/codegen/internal/source"
)

// runtime is what a standalone module holds beside types and methods.
//
//go:embed runtime.py
var runtime string

// skill is what it holds for the code behind capabilities.
//
//go:embed skill.py
var skill string

// Standalone writes the module of api for programs that do not have the kit.
func Standalone(api *model.API) []byte {
	// The types are written before the header: only then is it known what to import
	// from typing.
	e := newEmitter(api)
	types := e.String()
	var w source.Writer
	header(&w, api)
	names := []string{
		"Any", "Awaitable", "Callable", "Generic", "Literal", "NamedTuple", "NoReturn", "NotRequired", "TypeAlias", "TypedDict", "TypeVar", "Union", "cast",
	}
	if e.uses["Never"] {
		names = append(names, "Never")
	}
	slices.Sort(names)
	w.Line("import asyncio\nimport json\nimport os\nimport socket\nimport sys\nimport urllib.parse")
	w.Line("from typing import (\n    %s,\n)\n", strings.Join(names, ",\n    "))
	w.Line("ADDRESS = %s", e.quote(string(api.Agent)))
	w.WriteString(types)
	w.WriteString("\n\n" + runtime)
	e.methods(&w, api, "Client", "blocks until the outcome is there", "", blockingCall)
	e.methods(&w, api, "AsyncClient", "works with asyncio; cancelling a call cancels it at the callee", "async ", asyncCall)
	e.handlers(&w, api)
	w.WriteString("\n\n" + skill)
	return []byte(w.String())
}

// methods writes a client class.
func (e *emitter) methods(w *source.Writer, api *model.API, class, how, async, runtime string) {
	wait := ""
	if async != "" {
		wait = "await "
	}
	w.Line("\n\nclass %s(_Endpoint):\n    %s", class, e.quote(fmt.Sprintf("Calls the capabilities of %s; %s.", api.Agent, how)))
	names := methodNames(api)
	for _, c := range api.Capabilities {
		// Refs, not the types themselves, so that signatures show the payloads'
		// names.
		payload, response := &model.Type{Kind: model.Ref, Named: c.Request}, &model.Type{Kind: model.Ref, Named: c.Response}
		w.Line("\n    %sdef %s(", async, names[c.Name])
		w.Line("        self,\n        payload: %s,\n        *,\n        timeout_ms: int | None = None,", e.expr(payload, false))
		w.Line("        idempotency_key: str | None = None,\n        traceparent: str | None = None,\n        tenant_id: str | None = None,")
		w.Line("    ) -> Result[%s]:", e.expr(response, false))
		w.Line("        %s", e.quote(strings.Join(append(source.CommentLines(c.Doc), "Calls "+c.Name+"."), "\n")))
		// By way of a variable: mypy takes no value of any type for a result.
		w.Line("        result: Result[%s] = %sself._call(%s, payload, timeout_ms, idempotency_key, traceparent, tenant_id)",
			e.expr(response, false), wait, e.quote(c.Name))
		w.Line("        return result")
	}
	w.WriteString(runtime)
}

// blockingCall is how Client makes a call: a method of the class.
const blockingCall = `
    def _call(
        self,
        capability: str,
        payload: object,
        timeout_ms: int | None,
        key: str | None,
        trace: str | None,
        tenant: str | None,
    ) -> Any:
        request = self._request(capability, payload, timeout_ms, key, trace, tenant)
        chunks: list[bytes] = []
        with self._connect(self._wait(timeout_ms)) as stream:
            try:
                stream.sendall(request)
            except ConnectionError:
                pass  # refused before all of it was read: the reply says why
            while chunk := stream.recv(65536):
                chunks.append(chunk)
        return self._result(b"".join(chunks))

    def _connect(self, wait: float) -> socket.socket:
        if self._path is None:
            return socket.create_connection(self._address(), wait)
        stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        stream.settimeout(wait)
        try:
            stream.connect(self._path)
        except OSError:
            stream.close()
            raise
        return stream
`

// asyncCall is how AsyncClient does.
const asyncCall = `
    async def _call(
        self,
        capability: str,
        payload: object,
        timeout_ms: int | None,
        key: str | None,
        trace: str | None,
        tenant: str | None,
    ) -> Any:
        request = self._request(capability, payload, timeout_ms, key, trace, tenant)
        async with asyncio.timeout(self._wait(timeout_ms)):
            if self._path is None:
                reader, writer = await asyncio.open_connection(*self._address())
            else:
                reader, writer = await asyncio.open_unix_connection(self._path)
            try:
                writer.write(request)
                try:
                    await writer.drain()
                except ConnectionError:
                    pass  # refused before all of it was read: the reply says why
                reply = await reader.read()
            finally:
                writer.close()
        return self._result(reply)
`
