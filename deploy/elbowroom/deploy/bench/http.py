"""A lean asynchronous HTTPS client with keep-alive: what the load generators and stop-watches use."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import msgspec

from elbowroom.client import Context


class Connection:
    """One keep-alive connection; one request at a time. One that was opened (``open``) is opened again if the server has closed it
    meanwhile, as servers do with those that are idle for a minute or two."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, headers: str, context: Context | None = None
    ) -> None:
        self._reader, self._writer, self._headers, self._context = reader, writer, headers, context

    @classmethod
    async def open(cls, context: Context) -> "Connection":
        reader, writer = await _connected(context)
        headers = {"Host": urlsplit(context.server).netloc, "Accept": "application/json", **context.headers}
        return cls(reader, writer, "".join(f"{name}: {value}\r\n" for name, value in headers.items()), context)

    async def request(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> tuple[int, bytes]:
        """The HTTP status and the body of the answer; ``ConnectionError`` if it breaks off."""
        if self._context is not None and (self._reader.at_eof() or self._writer.is_closing()):
            self._writer.close()
            self._reader, self._writer = await _connected(self._context)
        raw = b"" if body is None else body if isinstance(body, bytes) else msgspec.json.encode(body)
        self._send(method, path, raw, kind)
        try:
            status, headers = await self._head()
            if headers.get("transfer-encoding") == "chunked":
                return status, b"".join([chunk async for chunk in self._chunks()])
            return status, await self._reader.readexactly(int(headers.get("content-length", "0")))
        except asyncio.IncompleteReadError as why:  # an EOFError, which the command line would take for Ctrl-D
            raise ConnectionError(f"{method} {path}: the server closed the connection") from why

    async def watch(self, path: str) -> AsyncIterator[tuple[str, dict[str, Any]]]:
        """The events of a watch; the connection serves nothing else any more."""
        async for line in self.lines(path):
            event = msgspec.json.decode(line)
            yield event["type"], event["object"]

    async def lines(self, path: str) -> AsyncIterator[bytes]:
        """The same, as they came."""
        self._send("GET", path, b"", "")
        status, _ = await self._head()
        if status != 200:
            raise ConnectionError(f"GET {path}: {status}")
        rest = b""
        async for chunk in self._chunks():
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                yield line

    def close(self) -> None:
        self._writer.close()

    def _send(self, method: str, path: str, body: bytes, kind: str) -> None:
        head = f"{method} {path} HTTP/1.1\r\n{self._headers}Content-Length: {len(body)}\r\n"
        head += f"Content-Type: {kind}\r\n\r\n" if body else "\r\n"
        self._writer.write(head.encode() + body)

    async def _head(self) -> tuple[int, dict[str, str]]:
        first, *lines = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        return int(first.split(" ", 2)[1]), headers

    async def _chunks(self) -> AsyncIterator[bytes]:
        while size := int((await self._reader.readuntil(b"\r\n")).strip(), 16):
            yield (await self._reader.readexactly(size + 2))[:-2]
        await self._reader.readuntil(b"\r\n")


async def _connected(context: Context) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    url = urlsplit(context.server)
    return await asyncio.open_connection(url.hostname, url.port, ssl=context.tls, limit=1 << 24)
