"""The API server whole (its machine behind the facade, in one process) and clients of all kinds in front of it."""

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from elbowroom.apiserver.drivers.certificates import Credentials, client_certificate, make_credentials

from .conftest import Connection, Response
from .mini import Mini

JSON = {"Content-Type": "application/json"}


@dataclass
class Whole:
    """A running API server."""

    mini: Mini
    credentials: Credentials
    port: int
    folder: Path
    opened: list[Connection] = field(default_factory=list)

    @property
    def admin(self) -> dict[str, str]:
        return bearer(self.credentials.tokens["admin"])

    async def connect(self, user: str = "", *groups: str, **life: int) -> Connection:
        """A connection; with ``user``, under a client certificate for it."""
        tls = ssl.create_default_context(cafile=str(self.credentials.ca_certificate))
        if user:
            certificate, key = client_certificate(self.credentials, user, groups, **life)
            path = self.folder / f"{user.replace(':', '-')}.pem"
            path.write_bytes(certificate + key)
            tls.load_cert_chain(path)
        connection = Connection(*await asyncio.open_connection("127.0.0.1", self.port, ssl=tls))
        self.opened.append(connection)
        return connection

    async def ask(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Response:
        """A request of the administrator's, or of whom ``headers`` name."""
        connection = await self.connect()
        try:
            given = {**JSON, **(self.admin if headers is None else headers)}
            return await connection.ask(method, path, given, b"" if body is None else json.dumps(body).encode())
        finally:
            connection.close()

    async def create(self, path: str, body: Any) -> Any:
        answer = await self.ask("POST", path, body)
        assert answer.status == 201, answer.body
        return answer.json()


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


Scenario = Callable[[Whole], Awaitable[None]]


def play(scenario: Scenario, pki: Path, folder: Path, **facade: Any) -> None:
    """Run ``scenario`` against an API server that ends with it."""

    async def whole() -> None:
        mini = Mini(str(pki), **facade)
        found = Whole(mini, make_credentials(pki), await mini.start(), folder)
        try:
            await scenario(found)
        finally:
            for connection in found.opened:
                connection.close()
            await mini.stop()

    asyncio.run(whole())
