"""A lean asynchronous HTTPS client with keep-alive: what the load generators and stop-watches use."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import msgspec

from elbowroom.client import Context


class Connection:
    """One keep-alive connection; one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, headers: str) -> None:
        self._reader, self._writer, self._headers = reader, writer, headers

    @classmethod
    async def open(cls, context: Context) -> "Connection":
        url = urlsplit(context.server)
        reader, writer = await asyncio.open_connection(url.hostname, url.port, ssl=context.tls, limit=1 << 24)
        headers = {"Host": url.netloc, "Accept": "application/json", **context.headers}
        return cls(reader, writer, "".join(f"{name}: {value}\r\n" for name, value in headers.items()))

    async def request(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> tuple[int, bytes]:
        """The HTTP status and the body of the answer."""
        raw = b"" if body is None else body if isinstance(body, bytes) else msgspec.json.encode(body)
        self._send(method, path, raw, kind)
        status, headers = await self._head()
        if headers.get("transfer-encoding") == "chunked":
            return status, b"".join([chunk async for chunk in self._chunks()])
        return status, await self._reader.readexactly(int(headers.get("content-length", "0")))

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
