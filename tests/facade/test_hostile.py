"""Hostile clients cost themselves: whatever is sent, the answer is a refusal, the server beats on, and nothing changes.

Latency is told in CPU time of this one process, in which both sides live, so that a loaded machine does not matter.
"""

import asyncio
import gzip
import json
import math
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from elbowroom.apiserver import fairness
from elbowroom.apiserver.drivers import bodies, connections, protocol, watching
from elbowroom.apiserver.fairness import Level

from .conftest import Connection
from .whole import JSON, Scenario, Whole, bearer, play

PODS = "/api/v1/namespaces/default/pods"
NOISY = bearer("noisy-token")
TOKENS = [{"token": "noisy-token", "user": "noisy", "groups": ["readers"]}]
READERS = {
    "metadata": {"name": "readers"},
    "roleRef": {"kind": "ClusterRole", "name": "edit"},
    "subjects": [{"kind": "Group", "name": "readers"}],
}
BEAT_SECONDS = 0.2
Serve = Callable[..., None]


@pytest.fixture
def serve(pki: Path, tmp_path: Path) -> Serve:
    def run(scenario: Scenario, **facade: Any) -> None:
        play(scenario, pki, tmp_path, tokens=TOKENS, **facade)

    return run


@asynccontextmanager
async def beating(it: Whole) -> AsyncIterator[list[float]]:
    """A client that asks all the time; at the end each of its requests was answered, 99 of 100 within ``BEAT_SECONDS``."""
    beats: list[float] = []
    connection = await it.connect()

    async def beat() -> None:
        while True:
            began = time.process_time()
            answer = await connection.ask("GET", "/api/v1/namespaces/default", it.admin)
            assert answer.status == 200
            beats.append(time.process_time() - began)

    task = asyncio.create_task(beat())
    try:
        yield beats
        before = len(beats)
        while len(beats) < before + 3:
            assert not task.done(), task.exception()
            await asyncio.wait([task], timeout=0.01)
    finally:
        task.cancel()
    assert sorted(beats)[math.floor(len(beats) * 0.99)] < BEAT_SECONDS


async def revision(it: Whole) -> str:
    found: str = (await it.ask("GET", PODS)).json()["metadata"]["resourceVersion"]
    return found


async def is_cut(connection: Connection) -> bool:
    """Did the server end the connection?"""
    try:
        async with asyncio.timeout(10):
            return await connection.reader.read() == b""
    except ConnectionError:
        return True


# ---------------------------------------------------------------- floods


def test_a_noisy_user_is_told_to_wait_and_a_node_beside_it_is_not(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fairness, "WORKLOAD", Level(1.0, 400.0))

    async def scenario(it: Whole) -> None:
        await it.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", READERS)
        await it.create("/api/v1/nodes", {"metadata": {"name": "n1"}})
        async with beating(it):
            noisy, kubelet = [await it.connect() for _ in range(4)], await it.connect("system:node:n1", "system:nodes")

            async def flood(connection: Connection) -> list[int]:
                return [(await connection.ask("GET", PODS, NOISY)).status for _ in range(300)]

            async def work() -> list[int]:
                return [(await kubelet.ask("GET", "/api/v1/nodes/n1")).status for _ in range(100)]

            *floods, nodes = await asyncio.gather(*map(flood, noisy), work())
            assert set(nodes) == {200}
            said = [status for flood in floods for status in flood]
            assert set(said) == {200, 429} and said.count(200) >= 400
        refused = next(answer for answer in [await noisy[0].ask("GET", PODS, NOISY) for _ in range(500)] if answer.status == 429)
        assert refused.header("retry-after") == "1"
        status = refused.json()
        assert (status["reason"], status["message"]) == ("TooManyRequests", "Too many requests, please try again later.")
        assert status["details"] == {"retryAfterSeconds": 1}
        assert (await it.ask("GET", "/livez", headers=NOISY)).status == 200

    serve(scenario)


@pytest.mark.parametrize("headers", [{}, bearer("wrong"), bearer("a.b.c")])
def test_strangers_and_wrong_tokens_are_soon_told_to_wait(
    serve: Serve, headers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fairness, "STRANGERS", Level(0.01, 100.0))

    async def scenario(it: Whole) -> None:
        async with beating(it):
            connection = await it.connect()
            said = [(await connection.ask("GET", PODS, headers)).status for _ in range(120)]
            assert said[0] == (401 if headers else 403) and said[-1] == 429 and 200 not in said

    serve(scenario)


def test_a_user_has_so_many_watches_and_no_more(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "WATCHES_MAX", 5)
    monkeypatch.setattr(watching, "ACCEPTED_SECONDS", 0.01)

    async def scenario(it: Whole) -> None:
        await it.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", READERS)

        async def watch(headers: dict[str, str]) -> tuple[int, Connection]:
            connection = await it.connect()
            connection.write("GET", f"{PODS}?watch=1", headers)
            return (await connection.head())[0], connection

        async with beating(it):
            opened = [await watch(NOISY) for _ in range(6)]
            assert [status for status, _ in opened] == [200] * 5 + [429]
            assert [(await watch(it.admin))[0] for _ in range(6)] == [200] * 6
            opened[0][1].close()
            async with asyncio.timeout(10):
                while (await watch(NOISY))[0] != 200:
                    pass

    serve(scenario)


# ---------------------------------------------------------------- connections


def test_half_open_requests_are_cut_off_and_nobody_waits_for_them(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "HEADER_SECONDS", 0.3)

    async def scenario(it: Whole) -> None:
        async with beating(it):
            slow = [await it.connect() for _ in range(100)]
            for connection in slow:
                connection.writer.write(b"GET /livez HTTP/1.1\r\nHost: x\r\nX-Slow: ")
            assert all(await asyncio.gather(*map(is_cut, slow)))

    serve(scenario)


def test_who_never_shakes_hands_keeps_nobody_out(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HANDSHAKES_MAX", 20)

    async def scenario(it: Whole) -> None:
        async with beating(it):
            silent = [await asyncio.open_connection("127.0.0.1", it.port) for _ in range(100)]
            for _ in range(5):
                assert (await it.ask("GET", PODS)).status == 200
            ended = await asyncio.gather(*(is_cut(Connection(*pair)) for pair in silent[:80]))
            assert all(ended)
            door = it.mini.facade._door
            assert door is not None and len(door) <= 20 + 10
            for _, writer in silent:
                writer.close()

    serve(scenario)


def test_when_it_is_crowded_strangers_leave_first_and_who_is_known_stays(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "connections_max", lambda: 20)

    async def scenario(it: Whole) -> None:
        known = [await it.connect() for _ in range(3)]
        for connection in known:
            assert (await connection.ask("GET", PODS, it.admin)).status == 200
        async with beating(it):
            strangers = [await it.connect() for _ in range(40)]
            assert all(await asyncio.gather(*map(is_cut, strangers[:20])))
            assert (await it.ask("GET", PODS)).status == 200
            for connection in known:
                assert (await connection.ask("GET", PODS, it.admin)).status == 200

    serve(scenario)


def test_when_all_are_known_one_more_is_turned_away(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "connections_max", lambda: 3)

    async def scenario(it: Whole) -> None:
        known = [await it.connect() for _ in range(3)]
        for connection in known:
            assert (await connection.ask("GET", PODS, it.admin)).status == 200
        with pytest.raises(OSError):
            await it.connect()
        assert (await known[0].ask("GET", PODS, it.admin)).status == 200
        known[2].close()
        async with asyncio.timeout(10):
            while True:
                try:
                    connection = await it.connect()
                    break
                except OSError:
                    continue
        assert (await connection.ask("GET", PODS, it.admin)).status == 200

    serve(scenario)


def test_a_server_without_files_goes_on_with_those_it_knows(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(it: Whole) -> None:
        connection = await it.connect()
        assert (await connection.ask("GET", PODS, it.admin)).status == 200
        door = it.mini.facade._door
        assert door is not None

        class Empty:
            """A listener of a process that has no file left, once."""

            def __init__(self, inner: socket.socket) -> None:
                self._inner, self.fileno = inner, inner.fileno

            def accept(self) -> Any:
                door._listener = self._inner
                raise OSError(24, "Too many open files")

        door._listener = Empty(door._listener)  # type: ignore[assignment]
        assert (await it.ask("GET", PODS)).status == 200
        assert (await connection.ask("GET", PODS, it.admin)).status == 200

    serve(scenario)


def test_connections_leave_files_for_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = {"now": (64, 64)}
    monkeypatch.setattr(connections.resource, "getrlimit", lambda which: limits["now"])
    monkeypatch.setattr(connections.resource, "setrlimit", lambda which, wanted: limits.update(now=wanted))
    assert connections.connections_max() == 16
    limits["now"] = (1024, 2048)
    assert connections.connections_max() == 2048 - connections.FILES_KEPT and limits["now"] == (2048, 2048)
    limits["now"] = (1024, 1 << 20)
    assert connections.connections_max() == connections.CONNECTIONS_MAX


# ---------------------------------------------------------------- bodies


def test_bodies_that_do_not_end_hold_so_much_memory_and_no_more(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "BODIES_BYTES_MAX", 1 << 20)

    async def scenario(it: Whole) -> None:
        async with beating(it):
            slow = [await it.connect() for _ in range(4)]
            head = (
                f"POST {PODS} HTTP/1.1\r\nHost: x\r\nContent-Length: 2000000\r\nAuthorization: {it.admin['Authorization']}\r\n\r\n"
            )
            for connection in slow:
                connection.writer.write(head.encode() + b" " * 400_000)
            answers = [asyncio.create_task(connection.response()) for connection in slow]
            await asyncio.wait(answers, return_when=asyncio.FIRST_COMPLETED)
            refused = next(task for task in answers if task.done()).result()
            assert refused.status == 429
            for connection, task in zip(slow, answers, strict=True):
                task.cancel()
                connection.close()
        async with asyncio.timeout(10):
            while (await it.ask("POST", PODS, {"metadata": {"name": "x" * 500_000}})).status == 429:
                pass

    serve(scenario)


POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
RAW = json.dumps(POD)


def a_pod(old: str, new: str) -> bytes:
    assert old in RAW
    return RAW.replace(old, new).encode()


DEEP = b'{"a":' * 200
YAML = {"Content-Type": "application/yaml"}
BODIES: dict[str, tuple[dict[str, str], bytes, int, str]] = {
    "depth": (JSON, b'{"metadata":' + DEEP + b"1" + b"}" * 201, 400, "exceeded max depth"),
    "depth that never ends": (JSON, b"[" * 100_000, 400, "exceeded max depth"),
    "not a number": (JSON, a_pod('"x"', "NaN"), 400, "invalid character 'N' looking for beginning of value"),
    "infinity": (JSON, a_pod('"x"', "Infinity"), 400, "invalid character 'I' looking for beginning of value"),
    "a number beyond all": (JSON, a_pod('"x"', "1e999"), 400, "cannot unmarshal number 1e999"),
    "five thousand digits": (JSON, a_pod('"x"', "1" * 5000), 400, "a number of 5000 characters is too long"),
    "half a surrogate": (JSON, a_pod('"x"', '"\\ud800"'), 400, "invalid surrogate pair"),
    "no UTF-8": (JSON, a_pod('"x"', '"@"').replace(b"@", b"\xff"), 400, "invalid UTF-8"),
    "a gzip bomb": (
        {**JSON, "Content-Encoding": "gzip"}, gzip.compress(b" " * 50_000_000), 415, "compressed request bodies are not accepted",
    ),
    "three megabytes and one": (JSON, b" " * (3 * 1024 * 1024 + 1), 413, "Request entity too large: limit is 3145728"),
    "YAML with aliases": (
        YAML, b"a: &a [x]\n" + b"".join(b"%c: &%c [%s]\n" % (c + 1, c + 1, b",".join([b"*%c" % c] * 9)) for c in range(97, 106)),
        400, "document contains excessive aliasing",
    ),
    "deep YAML": (YAML, b"[" * 3000, 400, ""),
    "large YAML": (YAML, b"a: [" + b"1," * 150_000 + b"1]", 400, "the body is larger than 262144 bytes"),
    "YAML that builds objects": (YAML, b"!!python/object/apply:os.system [id]", 400, "json: cannot unmarshal array"),
    "pickle": ({"Content-Type": "application/python-pickle"}, b"\x80\x04.", 415, "the request was in an unknown format"),
    "protobuf of nothing": ({"Content-Type": "application/vnd.kubernetes.protobuf"}, b"k8s\0" + b"\xff" * 500, 400, ""),
}  # fmt: skip


@pytest.mark.parametrize("what", list(BODIES))
def test_a_body_is_refused_that_is(serve: Serve, what: str) -> None:
    headers, body, code, words = BODIES[what]

    async def scenario(it: Whole) -> None:
        before = await revision(it)
        async with beating(it):
            connection = await it.connect()
            answer = await connection.ask("POST", PODS, {**it.admin, **headers}, body)
            assert answer.status == code and words in answer.json()["message"], answer.body
        assert await revision(it) == before

    serve(scenario)


def test_a_field_told_twice_is_warned_of_or_refused(serve: Serve) -> None:
    twice = a_pod('"name": "x"', '"name": "x", "name": "y"')

    async def scenario(it: Whole) -> None:
        connection = await it.connect()
        strict = await connection.ask("POST", f"{PODS}?fieldValidation=Strict", {**it.admin, **JSON}, twice)
        assert strict.status == 400 and 'duplicate field "metadata.name"' in strict.json()["message"]
        warned = await connection.ask("POST", PODS, {**it.admin, **JSON}, twice)
        assert warned.status == 201 and warned.json()["metadata"]["name"] == "y"
        assert 'duplicate field \\"metadata.name\\"' in warned.header("warning")

    serve(scenario)


# ---------------------------------------------------------------- patches


def _operations(count: int) -> list[dict[str, Any]]:
    return [{"op": "add", "path": "/metadata/annotations/a", "value": "x"}] * count


PATCHES: dict[str, tuple[str, Any, int]] = {
    "too many operations": ("json-patch+json", _operations(10_001), 413),
    "many operations on nothing": ("json-patch+json", _operations(10_000), 422),
    "copies of copies": (
        "json-patch+json",
        [
            {"op": "add", "path": "/metadata/annotations", "value": {"a": "x" * 1000}},
            *({"op": "copy", "from": "/metadata", "path": f"/metadata/a{number}"} for number in range(60)),
        ],
        422,
    ),
    "a list that is inserted at its head": (
        "json-patch+json",
        [{"op": "add", "path": "/spec/containers/0", "value": {"name": f"c{n}", "image": "i"}} for n in range(9_000)],
        422,
    ),
    "tests of the whole": ("json-patch+json", [{"op": "test", "path": "", "value": POD}] * 5_000, 422),
    "deep merging": ("merge-patch+json", json.loads('{"metadata":' * 150 + "1" + "}" * 150), 400),
    "a list with many keys": (
        "strategic-merge-patch+json",
        {"spec": {"containers": [{"name": f"c{number}", "image": "i"} for number in range(15_000)]}},
        422,
    ),
    "orders of elements that are not": (
        "strategic-merge-patch+json",
        {"spec": {"$setElementOrder/containers": [{"name": f"c{number}"} for number in range(20_000)]}},
        200,
    ),
    "a directive that nobody knows": ("strategic-merge-patch+json", {"spec": {"$patch": "explode"}}, 500),
    "a quantity beyond all bounds": (
        "merge-patch+json",
        {"spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1e3000000"}}}]}},
        422,
    ),
}


@pytest.mark.parametrize("what", list(PATCHES))
def test_a_patch_is_refused_soon_that_is(serve: Serve, what: str) -> None:
    kind, patch, code = PATCHES[what]

    async def scenario(it: Whole) -> None:
        await it.create(PODS, POD)
        before = await revision(it)
        connection = await it.connect()
        began = time.process_time()
        answer = await connection.ask(
            "PATCH", f"{PODS}/x", {**it.admin, "Content-Type": f"application/{kind}"}, json.dumps(patch).encode()
        )
        assert time.process_time() - began < 2.0
        assert answer.status == code, answer.body[:500]
        assert await revision(it) == before

    serve(scenario)


def test_an_object_larger_than_the_store_takes_is_refused(serve: Serve) -> None:
    async def scenario(it: Whole) -> None:
        def sized(size: int) -> dict[str, Any]:
            return {"metadata": {"name": "x"}, "spec": {"containers": [{"name": "c", "image": "i", "args": ["x" * size]}]}}

        before = await revision(it)
        async with beating(it):
            answer = await it.ask("POST", PODS, sized(1_600_000))
        assert (answer.status, answer.json()["reason"]) == (413, "RequestEntityTooLarge")
        assert await revision(it) == before
        assert (await it.ask("POST", PODS, sized(1_400_000))).status == 201

    serve(scenario)


# ---------------------------------------------------------------- names and heads


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"{PODS}/..", 404),
        (f"{PODS}/%2e%2e", 404),
        (f"{PODS}/%2e%2e%2f%2e%2e%2fetc%2fpasswd", 404),
        (f"{PODS}/a%2fb", 404),
        (f"{PODS}//a", 404),
        (f"{PODS}/a%00", 404),
        ("/api/v1/namespaces/%2e%2e/pods", 404),
        ("/api/v1/namespaces/a%2f..%2fb/pods", 404),
        (f"{PODS}/a/..%2fresize", 404),
        (f"{PODS}/a/RESIZE", 404),
        (f"{PODS}/{'a' * 300}", 404),
        (f"{PODS}/%D0%B0dmin", 404),
        (f"{PODS}/%ff%fe", 404),
        (f"{PODS}/%0d%0aSet-Cookie:%20x", 404),
        ("/api/v1/nodes/n1/proxy/..%2f..%2fetc", 404),
        ("/api/v1/nodes/n1/proxy/../../etc", 404),
        ("/api/v1/namespaces/" + "/".join(["a"] * 200), 404),
        (f"{PODS}?" + "&".join(f"a{n}=1" for n in range(300)), 400),
        (f"{PODS}?resourceVersion={'9' * 5000}", 400),
        (f"{PODS}?resourceVersion={2**64}", 400),
        (f"{PODS}?resourceVersion=%D9%A3", 400),
        (f"{PODS}?limit={'9' * 5000}", 400),
        (f"{PODS}?continue={'A' * 5000}", 400),
        (f"{PODS}?labelSelector={'(' * 5000}", 400),
        (f"{PODS}?fieldSelector={',' * 5000}", 200),
        (f"{PODS}?timeoutSeconds=1e999&watch=maybe", 400),
    ],
)
def test_odd_paths_lead_nowhere(serve: Serve, path: str, status: int) -> None:
    async def scenario(it: Whole) -> None:
        before = await revision(it)
        connection = await it.connect()
        answer = await connection.ask("GET", path, it.admin)
        assert answer.status == status, answer.body
        assert "set-cookie" not in answer.headers
        assert await revision(it) == before

    serve(scenario)


@pytest.mark.parametrize(
    "name",
    [
        "..",
        ".",
        "a/b",
        "a\\b",
        "a\0b",
        "a\nb",
        "\x1b[31mred",
        "A",
        "a" * 254,
        "аdmin",
        "ａdmin",
        "a b",
        "-a",
        "%2e",
        "a\u202eb",
        "",
    ],
)
def test_odd_names_are_no_names(serve: Serve, name: str) -> None:
    async def scenario(it: Whole) -> None:
        before = await revision(it)
        container = {"name": "c", "image": "i"}
        bodies: list[Any] = [{**POD, "metadata": {"name": name}}, {**POD, "spec": {"containers": [{**container, "name": name}]}}]
        for body in bodies:
            assert (await it.ask("POST", PODS, body)).status == 422
        assert (await it.ask("POST", "/api/v1/namespaces", {"metadata": {"name": name}})).status == 422
        assert await revision(it) == before

    serve(scenario)


HEADS: dict[str, tuple[str, int]] = {
    "two lengths": ("POST {p} HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{{}}", 400),
    "a length and chunks": ("POST {p} HTTP/1.1\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    "chunks that are none": ("POST {p} HTTP/1.1\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 400),
    "chunks told twice": ("POST {p} HTTP/1.1\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", 400),
    "a negative length": ("POST {p} HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
    "a length with a sign": ("POST {p} HTTP/1.1\r\nContent-Length: +2\r\n\r\n{{}}", 400),
    "a length beyond 64 bits": ("POST {p} HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", 400),
    "a space before the colon": ("GET {p} HTTP/1.1\r\nTransfer-Encoding : chunked\r\n\r\n", 400),
    "a folded header": ("GET {p} HTTP/1.1\r\nX: a\r\n b\r\n\r\n", 400),
    "a chunk of negative size": ("POST {p} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n\r\n", 400),
    "a chunk beyond 64 bits": ("POST {p} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", 400),
    "NUL in a header": ("GET {p} HTTP/1.1\r\nX: a\0b\r\n\r\n", 400),
    "no HTTP at all": ("\x16\x03\x01\x02\r\n\r\n", 405),
    "HTTP/2 in the clear": ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    "HTTP/0.9": ("GET {p}\r\n\r\n", 400),
    "another version": ("GET {p} HTTP/9.9\r\n\r\n", 400),
    "a method override": ("GET {p} HTTP/1.1\r\nX-HTTP-Method-Override: DELETE\r\n\r\n", 200),
    "HTTP/1.0": ("GET {p} HTTP/1.0\r\n\r\n", 200),
    "an absolute form": ("GET https://elsewhere{p} HTTP/1.1\r\n\r\n", 200),
    "HEAD of a watch": ("HEAD {p}?watch=1 HTTP/1.1\r\n\r\n", 405),
    "TRACE": ("TRACE {p} HTTP/1.1\r\n\r\n", 405),
    "CONNECT": ("CONNECT elsewhere:443 HTTP/1.1\r\n\r\n", 400),
    "a star": ("OPTIONS * HTTP/1.1\r\n\r\n", 404),
    "an upgrade to WebSocket": ("GET {p} HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", 200),
}


@pytest.mark.parametrize("what", list(HEADS))
def test_a_head_means_one_thing_or_is_refused(serve: Serve, what: str) -> None:
    text, code = HEADS[what]

    async def scenario(it: Whole) -> None:
        before = await revision(it)
        connection = await it.connect()
        first, _, rest = text.format(p=PODS).partition("\r\n")
        authorised = f"{first}\r\nHost: x\r\nAuthorization: {it.admin['Authorization']}\r\n{rest}"
        connection.writer.write(authorised.encode("latin-1"))
        async with asyncio.timeout(10):
            status, _ = await connection.head()
        assert status == code
        assert await revision(it) == before

    serve(scenario)


def test_what_follows_a_refused_head_is_no_request(serve: Serve) -> None:
    async def scenario(it: Whole) -> None:
        before = await revision(it)
        connection = await it.connect()
        smuggled = f"DELETE {PODS} HTTP/1.1\r\nHost: x\r\nAuthorization: {it.admin['Authorization']}\r\n\r\n"
        head = f"POST {PODS} HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        connection.writer.write((head + smuggled).encode())
        async with asyncio.timeout(10):
            everything = await connection.reader.read()
        assert everything.count(b"HTTP/1.1 ") == 1 and everything.startswith(b"HTTP/1.1 400 ")
        assert await revision(it) == before

    serve(scenario)


def test_headers_without_end_end_the_connection(serve: Serve) -> None:
    async def scenario(it: Whole) -> None:
        async with beating(it):
            connection = await it.connect()
            connection.writer.write(b"GET /livez HTTP/1.1\r\n" + b"X: y\r\n" * 20_000)
            try:
                async with asyncio.timeout(10):
                    everything = await connection.reader.read()
            except ConnectionError:  # it ended before all was said
                everything = b""
            assert everything == b"" or everything.startswith(b"HTTP/1.1 400 ")

    serve(scenario)


def test_a_revision_of_thousands_of_digits_is_no_revision(serve: Serve) -> None:
    async def scenario(it: Whole) -> None:
        await it.create(PODS, POD)
        for digits in ("9" * 5000, str(2**64)):
            body = {**POD, "metadata": {"name": "x", "resourceVersion": digits}}
            answer = await it.ask("PUT", f"{PODS}/x", body)
            assert answer.status == 500 and answer.json()["message"].endswith("value out of range")

    serve(scenario)
