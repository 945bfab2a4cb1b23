"""The least that an HTTP server of the kind that the API server uses can do: answer with so many bytes that lie ready.

``python -m elbowroom.deploy.bench.bare [SIZE FOLDER]``: prints its port and serves until its standard input ends. ``GET /SIZE`` is
answered with SIZE bytes, any other path with those of the command line. With FOLDER it speaks TLS by the certificate there.
"""

import asyncio
import socket
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import uvicorn
import uvloop

from elbowroom.apiserver.drivers.certificates import make_credentials

_Message = MutableMapping[str, Any]


class Bare:
    """The application."""

    def __init__(self, size: int) -> None:
        self._size = size

    async def __call__(
        self, scope: _Message, receive: Callable[[], Awaitable[_Message]], send: Callable[[_Message], Awaitable[None]]
    ) -> None:
        asked = scope["path"].strip("/")
        size = int(asked) if asked.isdigit() else self._size
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", str(size).encode())]})
        await send({"type": "http.response.body", "body": b"x" * size})


async def _serve(size: int = 0, folder: str = "") -> None:
    tls: dict[str, Any] = {}
    if folder:
        credentials = make_credentials(folder)
        tls = {"ssl_certfile": str(credentials.server_certificate), "ssl_keyfile": str(credentials.server_key)}
    # asyncio leaves Nagle's algorithm off only where the protocol is named: else each answer of two writes waits for 40 ms.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.bind(("127.0.0.1", 0))
        print(listening.getsockname()[1], flush=True)
        server = uvicorn.Server(uvicorn.Config(Bare(size), log_level="error", access_log=False, lifespan="off", **tls))
        serving = asyncio.create_task(server.serve([listening]))
        await asyncio.to_thread(sys.stdin.buffer.read)
        server.should_exit = True
        await serving


if __name__ == "__main__":
    uvloop.run(_serve(int(sys.argv[1]), sys.argv[2]) if len(sys.argv) > 1 else _serve())
