"""A request that comes whole is answered by the short way, exactly as the long way would."""

import asyncio
import contextlib
import gzip
from collections.abc import Callable
from typing import Any

import pytest

from elbowroom.apiserver.drivers import exchange, facade, protocol
from elbowroom.apiserver.drivers.answers import Answers
from elbowroom.apiserver.drivers.customs import Customs
from elbowroom.apiserver.drivers.short import ShortWay
from elbowroom.machine import Input, Received
from elbowroom.wire import ApiRequest, ApiResponse, Call, Reply, decode_value, encode_value

from .conftest import Connection, Play, Response, Running

PATH = "/api/v1/namespaces/x/pods/a"
PODS = "/api/v1/namespaces/x/pods"
POD = b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}'
PATCH = {"Content-Type": "application/merge-patch+json"}


def answer(request: ApiRequest) -> ApiResponse:
    """Something of each kind, by what is asked."""
    match request.verb:
        case "get" if request.name == "refused":
            body = b'{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}'
            return ApiResponse(404, body, retry_after=3)
        case "get" if request.name == "crowded":
            return ApiResponse(429, b"{}", retry_after=7)
        case "create":
            return ApiResponse(201, POD, ('unknown field "spec.ä"', "two\r\nlines"))
        case "list":
            return ApiResponse(200, b'{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[%s]}' % (b"{}," * 60_000 + b"{}"))
        case _:
            return ApiResponse(200, POD)


CASES: list[tuple[str, str, dict[str, str], bytes]] = [
    ("GET", PATH, {}, b""),
    ("GET", PATH, {"Accept": "application/json, */*"}, b""),
    ("GET", PATH, {"Accept": "application/yaml"}, b""),
    ("GET", PATH, {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}, b""),
    ("GET", PATH, {"Accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}, b""),
    ("GET", PATH, {"Accept": "text/html"}, b""),
    ("GET", PATH, {"User-Agent": "curl/8"}, b""),
    ("GET", PATH, {"User-Agent": "kubectl/v1.37"}, b""),
    ("GET", PATH, {"Accept-Encoding": "gzip"}, b""),
    ("GET", PATH, {"Connection": "close"}, b""),
    ("PATCH", PATH, {**PATCH, "Expect": "100-continue"}, b"{}"),
    ("GET", PATH, {"Upgrade": "websocket", "Connection": "Upgrade"}, b""),
    ("GET", f"{PATH}?pretty=true", {}, b""),
    ("GET", f"{PATH}?resourceVersion=0&resourceVersion=1", {}, b""),
    ("GET", f"{PATH}?{'&'.join(f'a{n}=1' for n in range(300))}", {}, b""),
    ("GET", "/api/v1/namespaces/x/pods/%61", {}, b""),
    ("GET", "/api/v1/namespaces/x/pods/a%2fb", {}, b""),
    ("GET", "/api/v1/namespaces/x/pods/refused", {}, b""),
    ("GET", "/api/v1/namespaces/x/pods/crowded", {}, b""),
    ("GET", f"{PATH}/log", {}, b""),
    ("GET", f"{PATH}/status", {}, b""),
    ("GET", f"{PATH}/nope", {}, b""),
    ("GET", "/api/v1/nodes/n/proxy/metrics?a=b", {}, b""),
    ("GET", PODS, {}, b""),
    ("GET", PODS, {"Accept-Encoding": "gzip"}, b""),
    ("GET", f"{PODS}?watch=0&limit=5", {}, b""),
    ("GET", "/api/v1/nopes", {}, b""),
    ("GET", "/nope", {}, b""),
    ("GET", "/version", {}, b""),
    ("GET", "/apis", {}, b""),
    ("GET", PATH, {}, b"a body that nobody asked for"),
    ("HEAD", PATH, {}, b""),
    ("OPTIONS", PATH, {}, b""),
    ("POST", PODS, {"Content-Type": "application/json"}, POD),
    ("POST", PODS, {"Content-Type": "application/json; charset=utf-8"}, POD),
    ("POST", PODS, {"Content-Type": "application/yaml"}, b"kind: Pod"),
    ("POST", PODS, {"Content-Type": "application/vnd.kubernetes.protobuf"}, b"k8s\0nonsense"),
    ("POST", PODS, {"Content-Encoding": "gzip"}, b"nonsense"),
    ("POST", PODS, {}, b""),
    ("POST", f"{PODS}?dryRun=All&fieldManager=me", {}, POD),
    ("POST", PATH, {}, POD),
    ("PUT", PATH, {}, POD),
    ("PATCH", PATH, PATCH, b'{"spec":{}}'),
    ("PATCH", f"{PATH}/resize", {"Content-Type": "application/strategic-merge-patch+json"}, b"{}"),
    ("PATCH", PATH, {**PATCH, "Accept": "text/html"}, b"{}"),
    ("PATCH", PATH, {"Accept": "text/html"}, b"{}"),
    ("DELETE", PATH, {}, b""),
    ("DELETE", PATH, {}, b'{"kind":"DeleteOptions"}'),
    ("DELETE", PODS, {}, b""),
    ("GET", PATH, {"Authorization": "Bearer wrong"}, b""),
    ("GET", PATH, {"Authorization": "Basic YTpi"}, b""),
    ("GET", PATH, {"Authorization": ""}, b""),
    ("GET", PATH, {"Impersonate-User": "jane", "Impersonate-Group": "dev"}, b""),
    ("GET", PATH, {"Impersonate-Group": "dev"}, b""),
    ("GET", PATH, {"Impersonate-Extra-Scopes": "a", "Impersonate-User": "jane"}, b""),
]


def shown(response: Response) -> tuple[int, dict[str, list[str]], bytes]:
    """An answer without what is another each time."""
    headers = {name: values for name, values in response.headers.items() if name not in ("audit-id", "date")}
    assert len(response.header("audit-id")) == 36 or response.status in (101, 400)
    if response.header("content-encoding") == "gzip":  # which says when it was made
        return response.status, headers, gzip.decompress(response.body)
    return response.status, headers, response.body


class Counted:
    """How many requests went the short way."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.short = 0
        take = ShortWay.take

        def counting(way: ShortWay, *given: Any) -> bool:
            taken = take(way, *given)
            self.short += taken
            return taken

        monkeypatch.setattr(ShortWay, "take", counting)


@pytest.mark.parametrize(("method", "path", "headers", "body"), CASES)
def test_both_ways_ask_and_answer_the_same(
    play: Play, monkeypatch: pytest.MonkeyPatch, method: str, path: str, headers: dict[str, str], body: bytes
) -> None:
    found: list[Any] = []

    async def scenario(it: Running) -> None:
        connection = await it.connect()
        connection.write(method, path, {**it.admin, **headers}, body)
        if method == "HEAD":
            status, given = await connection.head()
            response = Response(status, given, b"")
        elif "Expect" in headers:
            assert (await connection.reader.readline()).startswith(b"HTTP/1.1 100 ")
            await connection.reader.readline()
            response = await connection.response()
        else:
            response = await connection.response()
        found.append((shown(response), list(it.machine.requests), await goes_on(connection)))

    async def goes_on(connection: Connection) -> bool:
        """Does the connection serve another request?"""
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, IndexError):
            return (await connection.ask("GET", "/livez/ping")).status == 200
        return False

    play(scenario, answer)
    monkeypatch.setattr(ShortWay, "take", lambda way, request, body, catalog: False)
    play(scenario, answer)
    assert found[0] == found[1]


def test_ordinary_requests_go_the_short_way_and_others_do_not(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)

    async def scenario(it: Running) -> None:
        connection = await it.connect()
        for method, path, headers, body in (("GET", PATH, {}, b""), ("PATCH", PATH, PATCH, b"{}"), ("GET", PODS, {}, b"")):
            before = counted.short
            await connection.ask(method, path, {**it.admin, **headers}, body)
            assert counted.short == before + 1
        for path, headers in (("/livez", {}), (PATH, {"Accept": "application/yaml"}), (f"{PATH}/log", {}), ("/nope", {})):
            before = counted.short
            await connection.ask("GET", path, {**it.admin, **headers})
            assert counted.short == before

    play(scenario, answer)


def test_an_audited_request_goes_the_long_way(play: Play, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    counted = Counted(monkeypatch)

    async def scenario(it: Running) -> None:
        assert (await it.ask("GET", PATH)).status == 200
        assert counted.short == 0

    play(scenario, answer, audit={"level": "Metadata", "path": str(tmp_path / "audit.log")})
    assert b'"verb":"get"' in (tmp_path / "audit.log").read_bytes()


def test_who_asks_is_found_out_for_each_request_of_a_connection(play: Play) -> None:
    async def scenario(it: Running) -> None:
        connection = await it.connect()
        wrong = {"Authorization": it.admin["Authorization"][:-1]}
        jane = {"Authorization": "Bearer of-jane"}
        asked: list[dict[str, str]] = [it.admin, it.admin, wrong, {}, jane, it.admin, jane, jane]
        statuses = [(await connection.ask("GET", PATH, headers)).status for headers in asked]
        assert statuses == [200, 200, 401, 200, 200, 200, 200, 200]
        admin, nobody, jane_ = "elbowroom-admin", "system:anonymous", "jane"
        assert [request.user for request in it.machine.requests] == [admin, admin, nobody, jane_, admin, jane_, jane_]

    play(scenario, answer, tokens=[{"token": "of-jane", "user": "jane"}])


# ---------------------------------------------------------------- in which pieces it comes


def head_of(it: Running, method: str, path: str, body: bytes = b"") -> bytes:
    lines = f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: {it.admin['Authorization']}\r\n"
    return f"{lines}Content-Type: application/merge-patch+json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def test_requests_that_do_not_wait_for_each_other_are_answered_in_order(play: Play) -> None:
    async def scenario(it: Running) -> None:
        connection = await it.connect()
        asked = [("PATCH", PATH, b'{"a":1}'), ("GET", f"{PODS}/refused", b""), ("DELETE", PATH, b""), ("GET", "/livez/ping", b"")]
        connection.writer.write(b"".join(head_of(it, *one) for one in asked) + head_of(it, "GET", PATH)[:30])
        statuses = [(await connection.response()).status for _ in asked]
        assert statuses == [200, 404, 200, 200]
        assert [(request.verb, request.body) for request in it.machine.requests] == [
            ("patch", b'{"a":1}'),
            ("get", b""),
            ("delete", b""),
        ]
        connection.writer.write(head_of(it, "GET", PATH)[30:])
        assert (await connection.response()).status == 200

    play(scenario, answer)


@pytest.mark.parametrize("cut", [10, -9, -1])
def test_a_request_in_pieces_is_the_same_request(play: Play, cut: int) -> None:
    async def scenario(it: Running) -> None:
        connection = await it.connect()
        await connection.ask("GET", PATH, it.admin)
        whole = head_of(it, "PATCH", PATH, b'{"a":"bcdefgh"}')
        connection.writer.write(whole[:cut])
        other = await it.connect()
        assert (await other.ask("GET", PATH, it.admin)).status == 200  # the first piece has been read
        connection.writer.write(whole[cut:])
        assert (await connection.response()).status == 200
        assert it.machine.requests[-1].body == b'{"a":"bcdefgh"}'

    play(scenario, answer)


# ---------------------------------------------------------------- while the machine thinks


class Thinking:
    """A machine that answers when the test says so."""

    def __init__(self, it: Running) -> None:
        self._it, self.calls = it, list[tuple[str, Call]]()
        it.facade._exchange.post = self._take

    def _take(self, happened: Input) -> None:
        assert isinstance(happened, Received)
        if happened.source == Customs.peer:
            return
        assert isinstance(happened.message, Call)
        self.calls.append((happened.source, happened.message))

    async def asked(self, count: int) -> None:
        async with asyncio.timeout(5):
            while len(self.calls) < count:
                await asyncio.sleep(0)

    def answer(self, number: int, body: bytes = POD) -> None:
        peer, call = self.calls[number]
        self._it.machine.say(peer, Reply(call.id, body=encode_value(ApiResponse(200, body))))

    def name(self, number: int) -> str:
        return decode_value(self.calls[number][1].body, ApiRequest).name


def test_what_comes_meanwhile_waits_for_the_answer(play: Play) -> None:
    async def scenario(it: Running) -> None:
        machine, connection = Thinking(it), await it.connect()
        connection.write("GET", f"{PODS}/first", it.admin)
        await machine.asked(1)
        connection.write("GET", f"{PODS}/second", it.admin)
        connection.write("GET", f"{PODS}/third", it.admin)
        other = await it.connect()
        other.write("GET", f"{PODS}/other", it.admin)
        await machine.asked(2)
        assert [machine.name(0), machine.name(1)] == ["first", "other"]
        for number, name in ((0, "first"), (2, "second"), (3, "third")):
            machine.answer(number, b'"%s"' % name.encode())
            assert (await connection.response()).json() == name
            await machine.asked(min(number + 3, 4))
        machine.answer(1)
        assert (await other.response()).status == 200

    play(scenario)


def test_an_answer_that_does_not_come_is_504_and_one_that_comes_late_is_dropped(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "ANSWER_SECONDS", 0.05)

    async def scenario(it: Running) -> None:
        machine, connection = Thinking(it), await it.connect()
        assert (await connection.ask("GET", PATH, it.admin)).status == 504
        machine.answer(0)
        connection.write("GET", PATH, it.admin)
        await machine.asked(2)
        machine.answer(1)
        assert (await connection.response()).status == 200

    play(scenario)


def test_an_answer_for_a_client_that_went_goes_nowhere(play: Play) -> None:
    async def scenario(it: Running) -> None:
        machine, connection = Thinking(it), await it.connect()
        connection.write("GET", PATH, it.admin)
        await machine.asked(1)
        connection.close()
        while it.facade._state.connections:
            await asyncio.sleep(0)
        machine.answer(0)
        other = await it.connect()
        other.write("GET", PATH, it.admin)
        await machine.asked(2)
        machine.answer(1)
        assert (await other.response()).status == 200

    play(scenario)


def test_a_fault_in_an_answer_is_500_and_does_not_reach_the_machine(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(Answers, "response", fail)

    async def scenario(it: Running) -> None:
        connection = await it.connect()
        assert (await connection.ask("GET", PATH, it.admin)).status == 500
        assert await connection.reader.read() == b""

    play(scenario, answer)


def test_stopping_lets_an_answer_go_out(play: Play) -> None:
    async def scenario(it: Running) -> None:
        machine, connection = Thinking(it), await it.connect()
        connection.write("GET", PATH, it.admin)
        await machine.asked(1)
        stopping = asyncio.create_task(it.facade.stop())
        await asyncio.sleep(0)
        machine.answer(0)
        assert (await connection.response()).status == 200
        assert await connection.reader.read() == b""
        await stopping

    play(scenario)


# ---------------------------------------------------------------- idle connections


def test_an_idle_connection_is_closed_in_time_and_a_busy_one_is_not(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facade, "KEEP_ALIVE_SECONDS", 0.1)
    fired: list[Callable[[], None]] = []
    look = protocol.PatientProtocol.timeout_keep_alive_handler

    def looking(connection: protocol.PatientProtocol) -> None:
        fired.append(connection._close)
        look(connection)

    monkeypatch.setattr(protocol.PatientProtocol, "timeout_keep_alive_handler", looking)

    async def scenario(it: Running) -> None:
        machine, connection = Thinking(it), await it.connect()
        for number in range(2):
            connection.write("GET", PATH, it.admin)
            await machine.asked(number + 1)
            while number and len(fired) < number:
                await asyncio.sleep(0)  # the machine thinks for longer than a connection may be idle
            machine.answer(number)
            assert (await connection.response()).status == 200
        async with asyncio.timeout(5):
            assert await connection.reader.read() == b""
        assert len(fired) >= 2

    play(scenario)
