"""The bodies of requests: of bounded size, in bounded time, and of all that are not whole yet so much in memory."""

import asyncio
from contextlib import suppress

from elbowroom.apiserver import statuses
from elbowroom.apiserver.drivers.request import Receive, Request
from elbowroom.apiserver.statuses import ApiError

BODY_BYTES_MAX = 3 * 1024 * 1024
BODY_SECONDS = 30.0
BODIES_BYTES_MAX = 64 * 1024 * 1024
"""How much of bodies that are not whole yet is held in all."""
DISCARD_BYTES_MAX = 16 * 1024 * 1024
DISCARD_SECONDS = 2.0


class Bodies:
    """Reads them."""

    def __init__(self) -> None:
        self._held = 0

    async def read(self, request: Request) -> bytes:
        length = request.headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > BODY_BYTES_MAX:
            await _discard(request.receive)
            raise _too_large()
        if request.headers.get(b"content-encoding", b"identity") not in (b"identity", b""):
            raise ApiError(415, "UnsupportedMediaType", "compressed request bodies are not accepted", {})
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(BODY_SECONDS):
                while True:
                    message = await request.receive()
                    if message["type"] == "http.disconnect":
                        raise ApiError(400, "BadRequest", "the client went before the body was whole")
                    part: bytes = message.get("body", b"")
                    size += len(part)
                    self._held += len(part)
                    if self._held > BODIES_BYTES_MAX:
                        raise statuses.too_often(1)
                    if size > BODY_BYTES_MAX:
                        await _discard(request.receive)
                        raise _too_large()
                    parts.append(part)
                    if not message.get("more_body"):
                        return b"".join(parts) if len(parts) > 1 else part
        except TimeoutError as why:
            raise ApiError(408, "Timeout", "the body of the request did not come in time", {}) from why
        finally:
            self._held -= size


def _too_large() -> ApiError:
    return statuses.request_too_large(f"Request entity too large: limit is {BODY_BYTES_MAX}")


async def _discard(receive: Receive) -> None:
    """Take what a client goes on sending, for a while: who is cut off while writing never reads the answer."""
    left = DISCARD_BYTES_MAX
    with suppress(TimeoutError):
        async with asyncio.timeout(DISCARD_SECONDS):
            while left > 0:
                message = await receive()
                left -= len(message.get("body", b""))
                if not message.get("more_body"):
                    return
