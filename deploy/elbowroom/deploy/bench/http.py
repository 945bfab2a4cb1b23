"""A lean asynchronous HTTPS client with keep-alive: what the load generators and stop-watches use."""

import asyncio
import base64
import ssl
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import yaml


@dataclass(frozen=True, slots=True)
class Target:
    """Where a cluster serves, and the credentials for it."""

    host: str
    port: int
    context: ssl.SSLContext

    @staticmethod
    def of(kubeconfig: Path) -> "Target":
        """From the kubeconfig's current context."""
        document = yaml.safe_load(kubeconfig.read_text())
        context = next(c for c in document["contexts"] if c["name"] == document["current-context"])["context"]
        cluster = next(c for c in document["clusters"] if c["name"] == context["cluster"])["cluster"]
        user = next(u for u in document["users"] if u["name"] == context["user"])["user"]
        url = urlsplit(cluster["server"])
        secure = ssl.create_default_context(cadata=_content(cluster, "certificate-authority", kubeconfig).decode())
        with tempfile.NamedTemporaryFile("wb") as pair:
            pair.write(_content(user, "client-certificate", kubeconfig) + b"\n" + _content(user, "client-key", kubeconfig))
            pair.flush()
            secure.load_cert_chain(pair.name)
        return Target(url.hostname or "127.0.0.1", url.port or 443, secure)


def _content(entry: dict[str, Any], field: str, kubeconfig: Path) -> bytes:
    data = entry.get(f"{field}-data")
    return base64.b64decode(data) if data else (kubeconfig.parent / entry[field]).read_bytes()


class Connection:
    """One keep-alive connection; one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str) -> None:
        self._reader, self._writer, self._host = reader, writer, host

    @classmethod
    async def open(cls, target: Target) -> "Connection":
        reader, writer = await asyncio.open_connection(target.host, target.port, ssl=target.context, limit=1 << 24)
        return cls(reader, writer, f"{target.host}:{target.port}")

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
        self._send("GET", path, b"", "")
        status, _ = await self._head()
        if status != 200:
            raise ConnectionError(f"GET {path}: {status}")
        rest = b""
        async for chunk in self._chunks():
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                event = msgspec.json.decode(line)
                yield event["type"], event["object"]

    def close(self) -> None:
        self._writer.close()

    def _send(self, method: str, path: str, body: bytes, kind: str) -> None:
        head = f"{method} {path} HTTP/1.1\r\nHost: {self._host}\r\nAccept: application/json\r\nContent-Length: {len(body)}\r\n"
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
