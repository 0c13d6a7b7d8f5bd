"""The same API for asyncio, which is loaded where it is used."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from typing import Any, AsyncGenerator, Generator

from ._channel import GRACE, Line
from ._http import MAX_LINE, Endpoint, body_of, line_of, status_of
from .errors import ConnectionFailed


async def exchange(endpoint: Endpoint, request: bytes, progress: bool, wait: float) -> AsyncGenerator[Line, None]:
    """Makes one call; see ``Channel``."""
    async with _ask(endpoint, request, wait) as reply:
        status = await reply.status()
        if not progress or status != 200:
            yield body_of(status, await reply.rest())
            return
        while True:
            line = line_of(await reply.line())
            yield line
            if isinstance(line, dict):
                return


async def fetch(endpoint: Endpoint, request: bytes, wait: float) -> dict[str, Any]:
    """Makes one request of another kind."""
    async with _ask(endpoint, request, wait) as reply:
        return body_of(await reply.status(), await reply.rest())


@contextlib.asynccontextmanager
async def _ask(endpoint: Endpoint, request: bytes, wait: float) -> AsyncGenerator[_Reply, None]:
    try:
        if endpoint.path:
            connecting = asyncio.open_unix_connection(endpoint.path, limit=MAX_LINE)
        else:
            context = ssl.create_default_context() if endpoint.tls else None
            connecting = asyncio.open_connection(endpoint.host, endpoint.port, ssl=context, limit=MAX_LINE)
        reader, writer = await asyncio.wait_for(connecting, GRACE)
    except (OSError, asyncio.TimeoutError) as e:
        raise endpoint.unreachable(e) from e
    try:
        writer.write(request)  # that it is refused before all of it is read is no error: the reply says why
        yield _Reply(reader, asyncio.get_running_loop().time() + wait)
    finally:
        writer.close()


class _Reply:
    """The reply to one request."""

    def __init__(self, reader: asyncio.StreamReader, deadline: float) -> None:
        self._reader, self._deadline = reader, deadline

    async def status(self) -> int:
        code = status_of(await self.line())
        while (await self.line()).strip():
            pass
        return code

    async def line(self) -> bytes:
        with _broken():
            return await asyncio.wait_for(self._reader.readline(), self._left())

    async def rest(self) -> bytes:
        with _broken():
            return await asyncio.wait_for(self._reader.read(), self._left())

    def _left(self) -> float:
        return max(self._deadline - asyncio.get_running_loop().time(), 0)


@contextlib.contextmanager
def _broken() -> Generator[None, None, None]:
    try:
        yield
    except (OSError, asyncio.TimeoutError, ValueError) as e:  # ValueError: a line that is too long
        raise ConnectionFailed(f"the connection has broken: {e or 'no reply'}") from e
