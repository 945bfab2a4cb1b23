"""The load generators' client: a server that closes what is idle is no failure, one that breaks off in the middle is."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from elbowroom.client import Context
from elbowroom.deploy.bench.http import Connection

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
Answering = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def asked(answering: Answering, times: int) -> list[tuple[int, bytes]]:
    """So many requests, one after the other, each once it was seen that the server has closed, if it has."""
    server = await asyncio.start_server(answering, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    connection = await Connection.open(Context(f"http://{host}:{port}", {}, None))
    answers = []
    for _ in range(times):
        answers.append(await connection.request("GET", "/"))
        for _ in range(100):
            await asyncio.sleep(0)
    connection.close()
    server.close()
    return answers


def test_a_connection_that_was_closed_while_idle_is_opened_again() -> None:
    lives = []

    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lives.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(ANSWER)
        writer.close()

    assert asyncio.run(asked(once, 3)) == [(200, b"ok")] * 3
    assert len(lives) == 3


def test_an_answer_that_breaks_off_is_a_broken_connection() -> None:
    async def half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(ANSWER[:-1])
        writer.close()

    with pytest.raises(ConnectionError, match="GET /: the server closed the connection"):
        asyncio.run(asked(half, 1))
