"""The least that an HTTP server of the kind that the API server uses can do: answer with so many bytes that lie ready.

``python -m elbowroom.deploy.bench.bare``: prints its port and serves until its standard input ends.
"""

import asyncio
import socket
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import uvicorn

_Message = MutableMapping[str, Any]


async def application(
    scope: _Message, receive: Callable[[], Awaitable[_Message]], send: Callable[[_Message], Awaitable[None]]
) -> None:
    """``GET /SIZE`` is answered with SIZE bytes."""
    size = int(scope["path"].strip("/") or 0)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", str(size).encode())]})
    await send({"type": "http.response.body", "body": b"x" * size})


async def _serve() -> None:
    # asyncio leaves Nagle's algorithm off only where the protocol is named: else each answer of two writes waits for 40 ms.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.bind(("127.0.0.1", 0))
        print(listening.getsockname()[1], flush=True)
        server = uvicorn.Server(uvicorn.Config(application, log_level="error", lifespan="off"))
        serving = asyncio.create_task(server.serve([listening]))
        await asyncio.to_thread(sys.stdin.buffer.read)
        server.should_exit = True
        await serving


if __name__ == "__main__":
    asyncio.run(_serve())
