"""The facade over real sockets, in front of a machine that answers by a table."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from elbowroom.apiserver.drivers.certificates import Credentials, make_credentials
from elbowroom.apiserver.drivers.customs import Customs
from elbowroom.apiserver.drivers.facade import Facade, build
from elbowroom.machine import Input, Received, Send
from elbowroom.wire import ApiRequest, ApiResponse, Call, Message, Reply, decode_value, encode_value

Answer = Callable[[ApiRequest], ApiResponse]


@dataclass
class FakeMachine:
    """Answers calls by ``answer`` and keeps what it was told; streams are played by the test."""

    answer: Answer = lambda request: ApiResponse(200, b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}')
    facade: Facade | None = None
    requests: list[ApiRequest] = field(default_factory=list)
    messages: list[tuple[str, Message]] = field(default_factory=list)
    told: asyncio.Event = field(default_factory=asyncio.Event)

    def take(self, happened: Input) -> None:
        assert isinstance(happened, Received)
        if happened.source == Customs.peer:
            return  # there are no custom kinds
        self.messages.append((happened.source, happened.message))
        self.told.set()
        message = happened.message
        if isinstance(message, Call):
            request = decode_value(message.body, ApiRequest)
            self.requests.append(request)
            if message.method == "api":
                self.say(happened.source, Reply(message.id, body=encode_value(self.answer(request))))

    def say(self, peer: str, message: Message) -> None:
        assert self.facade is not None
        self.facade.deliver(Send(peer, message))

    async def heard(self, wanted: Callable[[Message], bool]) -> tuple[str, Any]:
        """The first message that ``wanted`` takes, waiting for it."""
        async with asyncio.timeout(5):
            while True:
                self.told.clear()
                for source, message in self.messages:
                    if wanted(message):
                        return source, message
                await self.told.wait()


@dataclass
class Response:
    status: int
    headers: dict[str, list[str]]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    def header(self, name: str) -> str:
        return ", ".join(self.headers.get(name, ()))


class Connection:
    """A client that writes what it is told and reads HTTP/1.1."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def head(self) -> tuple[int, dict[str, list[str]]]:
        status = int((await self.reader.readline()).split()[1])
        headers: dict[str, list[str]] = {}
        while (line := (await self.reader.readline()).strip()) != b"":
            name, _, value = line.decode().partition(": ")
            headers.setdefault(name.lower(), []).append(value)
        return status, headers

    async def chunk(self) -> bytes:
        size = int(await self.reader.readline(), 16)
        data = await self.reader.readexactly(size)
        await self.reader.readexactly(2)
        return data

    async def response(self) -> Response:
        async with asyncio.timeout(10):
            status, headers = await self.head()
            if "content-length" in headers:
                body = await self.reader.readexactly(int(headers["content-length"][0]))
            else:
                body = b""
                while part := await self.chunk():
                    body += part
            return Response(status, headers, body)

    def write(self, method: str, path: str, headers: dict[str, str] | None = None, body: bytes = b"") -> None:
        lines = [f"{method} {path} HTTP/1.1", "Host: x"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        if body or method in ("POST", "PUT", "PATCH"):
            lines.append(f"Content-Length: {len(body)}")
        self.writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    async def ask(self, method: str, path: str, headers: dict[str, str] | None = None, body: bytes = b"") -> Response:
        self.write(method, path, headers, body)
        return await self.response()

    def close(self) -> None:
        self.writer.transport.abort()


@dataclass
class Running:
    """A running facade."""

    facade: Facade
    machine: FakeMachine
    credentials: Credentials
    port: int
    opened: list[Connection] = field(default_factory=list)

    @property
    def admin(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.credentials.tokens['admin']}"}

    async def connect(self) -> Connection:
        context = ssl.create_default_context(cafile=str(self.credentials.ca_certificate))
        connection = Connection(*await asyncio.open_connection("127.0.0.1", self.port, ssl=context))
        self.opened.append(connection)
        return connection

    async def ask(
        self, method: str, path: str, headers: dict[str, str] | None = None, body: bytes = b"", *, anonymous: bool = False
    ) -> Response:
        connection = await self.connect()
        try:
            return await connection.ask(method, path, {**({} if anonymous else self.admin), **(headers or {})}, body)
        finally:
            connection.close()


@pytest.fixture(scope="session")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("pki")
    make_credentials(directory)
    return directory


@asynccontextmanager
async def running(pki: Path, answer: Answer | None = None, **config: Any) -> AsyncIterator[Running]:
    machine = FakeMachine() if answer is None else FakeMachine(answer)
    facade = build({"credentials": str(pki), **config})
    machine.facade = facade
    facts = await facade.start(machine.take)
    found = Running(facade, machine, make_credentials(pki), facts["port"])
    try:
        yield found
    finally:
        for connection in found.opened:
            connection.close()
        await facade.stop()


Scenario = Callable[[Running], Awaitable[None]]
Play = Callable[..., None]


@pytest.fixture
def play(pki: Path) -> Iterator[Play]:
    """Run a coroutine function against a running facade."""

    def run(scenario: Scenario, answer: Answer | None = None, **config: Any) -> None:
        async def whole() -> None:
            async with running(pki, answer, **config) as found:
                await scenario(found)

        asyncio.run(whole())

    yield run


def as_json(document: Any) -> bytes:
    return msgspec.json.encode(document)
