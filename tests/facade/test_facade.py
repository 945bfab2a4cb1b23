"""The facade as a client meets it: forms, refusals, watches, bounds."""

import asyncio
import json
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from elbowroom.apiserver.drivers import bodies, exchange, protocol
from elbowroom.apiserver.drivers import facade as module
from elbowroom.apiserver.drivers.certificates import kubeconfig, make_credentials
from elbowroom.wire import (
    ApiRequest,
    ApiResponse,
    Call,
    Code,
    Impersonation,
    StreamBookmark,
    StreamCancel,
    StreamCredit,
    StreamEnd,
    StreamEvent,
)

from .conftest import Play, Running, as_json

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
POD = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a", "namespace": "x", "resourceVersion": "7"}}
GONE = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "Expired", "code": 410}


def _pod(request: ApiRequest) -> ApiResponse:
    return ApiResponse(200, as_json(POD))


def test_a_request_reaches_the_machine_whole_and_its_answer_the_client(play: Play) -> None:
    async def scenario(it: Running) -> None:
        body = b'{"spec":{}}'
        headers = {"Content-Type": "application/merge-patch+json; charset=utf-8", "User-Agent": "kubectl/v1.37"}
        path = "/api/v1/namespaces/x/pods/a/resize?fieldManager=me&fieldManager=other&dryRun=All"
        response = await it.ask("PATCH", path, headers, body)
        assert (response.status, response.json()) == (200, POD)
        assert response.body.endswith(b"\n")
        (request,) = it.machine.requests
        assert request == ApiRequest(
            verb="patch",
            resource="pods",
            namespace="x",
            name="a",
            subresource="resize",
            query={"fieldManager": "me", "dryRun": "All"},
            content_type="application/merge-patch+json",
            body=body,
            user="elbowroom-admin",
            groups=("system:masters", "system:authenticated"),
            user_agent="kubectl/v1.37",
        )

    play(scenario, _pod)


def test_warnings_and_retry_after_become_headers_that_nothing_can_break_out_of(play: Play) -> None:
    def answer(request: ApiRequest) -> ApiResponse:
        return ApiResponse(429, b"{}", ('unknown field "a\\b"', "two\r\nSet-Cookie: x"), retry_after=10)

    async def scenario(it: Running) -> None:
        response = await it.ask("GET", "/api/v1/namespaces/x/pods/a")
        assert response.headers["warning"] == [r'299 - "unknown field \"a\\b\""', '299 - "two  Set-Cookie: x"']
        assert response.headers["retry-after"] == ["10"]
        assert "set-cookie" not in response.headers
        assert response.headers["audit-id"] and response.headers["cache-control"] == ["no-cache, private"]

    play(scenario, answer)


@pytest.mark.parametrize(
    ("headers", "status", "user"),
    [
        ({}, 200, "system:anonymous"),
        ({"Authorization": "Bearer wrong"}, 401, None),
        ({"Authorization": "Bearer reader-token"}, 200, "reader"),
        ({"Authorization": "Basic cmVhZGVyOnRva2Vu"}, 200, "system:anonymous"),
        ({"Authorization": "Bearer reader-token", "Impersonate-User": "root"}, 200, "reader"),
        ({"Authorization": "Bearer {admin}", "Impersonate-Group": "ops"}, 400, None),
    ],
)
def test_who_asks_is_told_by_the_token_and_by_impersonation(
    play: Play, headers: dict[str, str], status: int, user: str | None
) -> None:
    async def scenario(it: Running) -> None:
        given = {name: value.format(admin=it.credentials.tokens["admin"]) for name, value in headers.items()}
        response = await it.ask("GET", "/api/v1/namespaces/x/pods/a", given, anonymous=True)
        assert response.status == status
        assert [request.user for request in it.machine.requests] == ([] if user is None else [user])
        wanted = [Impersonation("root")] if "Impersonate-User" in headers else [None]
        assert [request.impersonate for request in it.machine.requests] == ([] if user is None else wanted)

    play(scenario, _pod, tokens=[{"token": "reader-token", "user": "reader", "groups": ["readers"]}])


@pytest.mark.parametrize(
    ("path", "anonymous_status", "admin_status"),
    [
        ("/version", 200, 200),
        ("/livez", 200, 200),
        ("/readyz?verbose", 200, 200),
        ("/api", 403, 200),
        ("/apis/apps/v1", 403, 200),
        ("/openapi/v3", 403, 200),
        ("/nosuch", 403, 404),
        ("/openapi/v2", 403, 200),
        ("/apis/nosuch/v1", 403, 404),
        ("/elbowroom/scheduler", 403, 404),
    ],
)
def test_paths_outside_of_resources_are_open_to_whom_they_may_be(
    play: Play, path: str, anonymous_status: int, admin_status: int
) -> None:
    async def scenario(it: Running) -> None:
        assert (await it.ask("GET", path, anonymous=True)).status == anonymous_status
        assert (await it.ask("GET", path)).status == admin_status

    refusal = as_json({"kind": "Status", "reason": "Forbidden", "message": "no"})
    play(scenario, lambda request: ApiResponse(200, b"{}") if request.group != "elbowroom" else ApiResponse(403, refusal))


def test_where_the_default_policy_opens_nothing_roles_decide_about_paths(play: Play) -> None:
    async def scenario(it: Running) -> None:
        assert (await it.ask("GET", "/openapi/v3", anonymous=True)).status == 200
        (request,) = it.machine.requests
        assert (request.group, request.resource, request.query) == ("elbowroom", "paths", {"path": "/openapi/v3"})
        assert (request.verb, request.user) == ("get", "system:anonymous")

    play(scenario)


@pytest.mark.parametrize("path", ["/metrics", "/elbowroom/scheduler/metrics"])
def test_metrics_are_asked_of_the_machine_by_whoever_it_is(play: Play, path: str) -> None:
    async def scenario(it: Running) -> None:
        await it.ask("GET", path, anonymous=True)
        await it.ask("GET", path)
        assert [request.user for request in it.machine.requests] == ["system:anonymous", "elbowroom-admin"]

    play(scenario)


@pytest.mark.parametrize(
    ("method", "path", "status", "message"),
    [
        ("GET", "/api/v1/nothing", 404, "the server could not find the requested resource"),
        ("GET", "/api/v1/namespaces/x/pods/a/nothing", 404, "the server could not find the requested resource"),
        ("GET", "/api/v1/namespaces/x/pods/a%2Fb", 404, "the server could not find the requested resource"),
        ("GET", "/api/v1/namespaces/x/pods/%2e%2e", 404, "the server could not find the requested resource"),
        ("GET", "/api/v1/namespaces//pods", 404, "the server could not find the requested resource"),
        ("GET", "/api/v1/namespaces/x/nodes", 404, "the server could not find the requested resource"),
        ("POST", "/api/v1/namespaces/x/pods/a/resize", 405, "the server does not allow this method on the requested resource"),
        ("DELETE", "/api/v1/namespaces/x/pods/a/resize", 405, "the server does not allow this method on the requested resource"),
        ("GET", "/api/v1/namespaces/x/pods/a/eviction", 405, "the server does not allow this method on the requested resource"),
        ("POST", "/api/v1/pods", 405, "the server does not allow this method on the requested resource"),
        ("PATCH", "/api/v1/namespaces/x/pods", 405, "the server does not allow this method on the requested resource"),
        ("FROB", "/api/v1/namespaces/x", 405, "the server does not allow this method on the requested resource"),
        ("OPTIONS", "/api/v1/namespaces/x", 405, "the server does not allow this method on the requested resource"),
        ("POST", "/version", 405, "the server does not allow this method on the requested resource"),
        ("HEAD", "/api/v1/namespaces/x/pods", 405, ""),
    ],
)
def test_a_path_that_means_nothing_is_404_and_a_method_405(play: Play, method: str, path: str, status: int, message: str) -> None:
    async def scenario(it: Running) -> None:
        connection = await it.connect()
        connection.write(method, path, it.admin)
        found, headers = await connection.head()
        assert found == status and it.machine.requests == []
        if message:
            body = json.loads(await connection.reader.readexactly(int(headers["content-length"][0])))
            assert (body["kind"], body["message"], body["code"]) == ("Status", message, status)

    play(scenario)


@pytest.mark.parametrize(
    ("accept", "status", "kind"),
    [
        ("application/json", 200, "PodList"),
        ("*/*", 200, "PodList"),
        ("application/vnd.kubernetes.protobuf,application/json", 200, "PodList"),
        (TABLE, 200, "Table"),
        ("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", 200, "PartialObjectMetadataList"),
        ("application/xml", 406, "Status"),
        ("application/json;as=Table;v=v9;g=meta.k8s.io", 406, "Status"),
    ],
)
def test_the_answer_has_the_form_that_was_asked_for(play: Play, accept: str, status: int, kind: str) -> None:
    whole = {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "9"}, "items": [{"metadata": POD["metadata"]}]}

    async def scenario(it: Running) -> None:
        response = await it.ask("GET", "/api/v1/pods", {"Accept": accept})
        assert (response.status, response.json()["kind"]) == (status, kind)

    play(scenario, lambda request: ApiResponse(200, as_json(whole)))


def test_yaml_is_given_to_who_asks_for_it(play: Play) -> None:
    async def scenario(it: Running) -> None:
        response = await it.ask("GET", "/api/v1/namespaces/x/pods/a", {"Accept": "application/yaml"})
        assert response.header("content-type") == "application/yaml"
        assert yaml.safe_load(response.body) == POD

    play(scenario, _pod)


def test_a_resize_is_answered_with_the_pod_even_if_a_table_was_asked_for(play: Play) -> None:
    async def scenario(it: Running) -> None:
        response = await it.ask("GET", "/api/v1/namespaces/x/pods/a/resize", {"Accept": TABLE})
        assert response.json() == POD

    play(scenario, _pod)


def test_a_refusal_stays_a_status_whatever_was_asked_for(play: Play) -> None:
    refusal = {"kind": "Status", "status": "Failure", "code": 404}

    async def scenario(it: Running) -> None:
        response = await it.ask("GET", "/api/v1/namespaces/x/pods/a", {"Accept": TABLE})
        assert (response.status, response.json()) == (404, refusal)

    play(scenario, lambda request: ApiResponse(404, as_json(refusal)))


def test_a_large_answer_is_compressed_for_who_takes_it(play: Play) -> None:
    body = as_json({"kind": "Pod", "data": "x" * 200_000})

    async def scenario(it: Running) -> None:
        small = await it.ask("GET", "/api/v1/namespaces/x/pods/a", {"Accept-Encoding": "gzip"})
        assert small.header("content-encoding") == "gzip" and len(small.body) < 10_000
        whole = await it.ask("GET", "/api/v1/namespaces/x/pods/a")
        assert whole.header("content-encoding") == "" and whole.body == body + b"\n"

    play(scenario, lambda request: ApiResponse(200, body))


def test_a_body_of_more_than_three_megabytes_is_refused_while_it_comes(play: Play) -> None:
    async def scenario(it: Running) -> None:
        connection = await it.connect()
        head = "POST /api/v1/namespaces/x/pods HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
        connection.writer.write(f"{head}Authorization: {it.admin['Authorization']}\r\n\r\n".encode())
        for _ in range(4):
            connection.writer.write(b"100000\r\n" + b" " * 0x100000 + b"\r\n")
        connection.writer.write(b"0\r\n\r\n")
        response = await connection.response()
        assert response.status == 413
        assert response.json()["message"] == "Request entity too large: limit is 3145728"
        assert (await it.ask("POST", "/api/v1/namespaces/x/pods", {}, b" " * 4_000_000)).status == 413
        assert it.machine.requests == []

    play(scenario)


def test_a_node_proxy_request_carries_the_rest_of_its_path(play: Play) -> None:
    async def scenario(it: Running) -> None:
        response = await it.ask("GET", "/api/v1/nodes/n1/proxy/files/x/a/c/etc/info?full=1", {"Accept": "text/plain"})
        assert (response.status, response.body) == (200, b"cpu 1")
        assert response.header("content-type") == "text/plain; version=0.0.4"
        (request,) = it.machine.requests
        assert (request.resource, request.name, request.subresource) == ("nodes", "n1", "proxy")
        assert request.query == {"full": "1", "path": "files/x/a/c/etc/info"}

    play(scenario, lambda request: ApiResponse(200, b"cpu 1", content_type="text/plain; version=0.0.4"))


# ---------------------------------------------------------------- watches


WATCH = "/api/v1/namespaces/x/pods?watch=1&resourceVersion=6"


def _is_watch(message: Any) -> bool:
    return isinstance(message, Call) and message.method == "watch"


def say_so_many(it: Running, peer: str, watch: int, events: int) -> None:
    for sequence in range(events):
        it.machine.say(peer, StreamEvent(watch, sequence, 6 + sequence, 5 + sequence, "MODIFIED", as_json(POD)))


def test_what_is_told_in_one_turn_is_written_at_once_and_what_differs_as_it_is(play: Play) -> None:
    async def scenario(it: Running) -> None:
        readers = []
        for accept in ("application/json", "application/json", TABLE):
            connection = await it.connect()
            connection.write("GET", WATCH, {**it.admin, "Accept": accept})
            readers.append((connection, *await it.machine.heard(lambda message: _is_watch(message) and message not in known)))
            known.append(readers[-1][2])
        for connection, peer, call in readers:
            it.machine.say(peer, StreamEvent(call.id, 1, 6, 5, "ADDED", as_json(POD)))
            assert (await connection.head())[0] == 200
            await connection.chunk()
        other = as_json({**POD, "metadata": {"name": "b"}})
        for change, data in (("MODIFIED", as_json(POD)), ("MODIFIED", other), ("DELETED", other)):
            for _, peer, call in readers:
                it.machine.say(peer, StreamEvent(call.id, 2, 7, 6, change, data))
        for connection, *_ in readers[:2]:
            lines = (await connection.chunk()).splitlines()
            assert [(event["type"], event["object"]["metadata"]["name"]) for event in map(json.loads, lines)] == [
                ("MODIFIED", "a"),
                ("MODIFIED", "b"),
                ("DELETED", "b"),
            ]
        shown = [json.loads(line) for line in (await readers[2][0].chunk()).splitlines()]
        assert [event["object"]["rows"][0]["cells"][0] for event in shown] == ["a", "b", "b"]

    known: list[Any] = []
    play(scenario)


def test_a_watch_is_written_as_lines_and_grants_credit_for_what_it_wrote(play: Play) -> None:
    async def scenario(it: Running) -> None:
        connection = await it.connect()
        connection.write("GET", WATCH, it.admin)
        peer, call = await it.machine.heard(_is_watch)
        assert call.credit == exchange.WATCH_CREDIT
        say_so_many(it, peer, call.id, 2)
        status, headers = await connection.head()
        assert status == 200 and headers["transfer-encoding"] == ["chunked"]
        lines = (await connection.chunk()).splitlines()
        assert [json.loads(line) for line in lines] == [{"type": "MODIFIED", "object": POD}] * 2
        assert not any(isinstance(message, StreamCredit) for _, message in it.machine.messages)
        say_so_many(it, peer, call.id, exchange.CREDIT_GRANTED - 2)
        _, credit = await it.machine.heard(lambda message: isinstance(message, StreamCredit))
        assert credit == StreamCredit(call.id, exchange.CREDIT_GRANTED)
        connection.close()
        assert (await it.machine.heard(lambda message: isinstance(message, StreamCancel)))[1] == StreamCancel(call.id)

    play(scenario)


def test_a_watch_as_table_gives_its_columns_once(play: Play) -> None:
    async def scenario(it: Running) -> None:
        connection = await it.connect()
        connection.write("GET", WATCH, {**it.admin, "Accept": TABLE})
        peer, call = await it.machine.heard(_is_watch)
        for sequence in (1, 2):
            it.machine.say(peer, StreamEvent(call.id, sequence, 6 + sequence, 5 + sequence, "ADDED", as_json(POD)))
        await connection.head()
        first, second = (json.loads(line)["object"] for line in (await connection.chunk()).splitlines())
        assert [c["name"] for c in first["columnDefinitions"]][:2] == ["Name", "Ready"] and second["columnDefinitions"] == []
        assert [row["cells"][0] for row in first["rows"]] == ["a"]

    play(scenario)


def test_the_bookmark_that_ends_the_initial_events_goes_to_who_takes_bookmarks(play: Play) -> None:
    async def scenario(it: Running) -> None:
        connection = await it.connect()
        connection.write("GET", f"{WATCH}&sendInitialEvents=true&allowWatchBookmarks=true", it.admin)
        peer, call = await it.machine.heard(_is_watch)
        it.machine.say(peer, StreamBookmark(call.id, 0, 6))
        it.machine.say(peer, StreamBookmark(call.id, 0, 8, initial_end=True))
        await connection.head()
        (line,) = (await connection.chunk()).splitlines()
        assert json.loads(line) == {
            "type": "BOOKMARK",
            "object": {
                "kind": "Pod",
                "apiVersion": "v1",
                "metadata": {"resourceVersion": "8", "annotations": {"k8s.io/initial-events-end": "true"}},
            },
        }

    play(scenario)


@pytest.mark.parametrize(("code", "status"), [(Code.OUT_OF_RANGE, 200), (Code.PERMISSION_DENIED, 403)])
def test_a_watch_that_is_refused_at_once_is_410_in_an_event_and_all_else_a_status(play: Play, code: Code, status: int) -> None:
    refusal = GONE if code is Code.OUT_OF_RANGE else {**GONE, "reason": "Forbidden", "code": 403}

    async def scenario(it: Running) -> None:
        connection = await it.connect()
        connection.write("GET", WATCH, it.admin)
        peer, call = await it.machine.heard(_is_watch)
        it.machine.say(peer, StreamEnd(call.id, code, as_json(refusal)))
        response = await connection.response()
        assert response.status == status
        assert response.json() == ({"type": "ERROR", "object": refusal} if status == 200 else refusal)
        assert not any(isinstance(message, StreamCancel) for _, message in it.machine.messages)

    play(scenario)


def test_a_watch_ends_when_its_time_is_over(play: Play) -> None:
    async def scenario(it: Running) -> None:
        connection = await it.connect()
        connection.write("GET", f"{WATCH}&timeoutSeconds=1&allowWatchBookmarks=true", it.admin)
        peer, call = await it.machine.heard(_is_watch)
        it.machine.say(peer, StreamBookmark(call.id, 0, 9))
        response = await connection.response()
        assert json.loads(response.body)["object"]["metadata"] == {"resourceVersion": "9"}
        assert (await it.machine.heard(lambda message: isinstance(message, StreamCancel)))[1] == StreamCancel(call.id)

    play(scenario)


def test_a_reader_that_never_reads_holds_only_itself(play: Play) -> None:
    async def scenario(it: Running) -> None:
        stuck = await it.connect()
        stuck.write("GET", WATCH, it.admin)
        peer, call = await it.machine.heard(_is_watch)
        stuck.writer.transport.pause_reading()  # type: ignore[attr-defined]
        other = await it.connect()
        big = as_json({**POD, "data": "x" * 65536})
        sequence = granted = quiet = 0
        while quiet < 3:
            for _ in range(call.credit + granted - sequence):
                sequence += 1
                it.machine.say(peer, StreamEvent(call.id, sequence, sequence, sequence - 1, "MODIFIED", big))
            before = granted
            assert (await other.ask("GET", "/api/v1/namespaces/x/pods/a", it.admin)).status == 200
            granted = sum(message.amount for _, message in it.machine.messages if isinstance(message, StreamCredit))
            quiet = quiet + 1 if granted == before else 0
            assert sequence < 5000, "credit was granted again and again to a reader that does not read"
        assert 0 < it.facade.buffered(peer) <= exchange.WATCH_CREDIT

    play(scenario)


# ---------------------------------------------------------------- bounds


def test_a_request_whose_headers_do_not_come_is_cut_off(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "HEADER_SECONDS", 0.05)

    async def scenario(it: Running) -> None:
        connection = await it.connect()
        connection.writer.write(b"GET /livez HTTP/1.1\r\nHost")
        async with asyncio.timeout(5):
            assert await connection.reader.read() == b""

    play(scenario)


def test_a_body_that_does_not_come_is_answered_and_cut_off(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "BODY_SECONDS", 0.05)

    async def scenario(it: Running) -> None:
        connection = await it.connect()
        connection.writer.write(
            f"POST /api/v1/namespaces/x/pods HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n"
            f"Authorization: {it.admin['Authorization']}\r\n\r\n1".encode()
        )
        assert (await connection.response()).status == 408
        assert await connection.reader.read() == b""

    play(scenario)


def test_endless_headers_are_refused(play: Play) -> None:
    async def scenario(it: Running) -> None:
        connection = await it.connect()
        connection.writer.write(b"GET /livez HTTP/1.1\r\n" + b"X: " + b"y" * 200_000)
        assert (await connection.response()).status == 400

    play(scenario)


@pytest.mark.parametrize(
    "head",
    [
        "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
)
def test_a_request_with_two_lengths_is_refused(play: Play, head: str) -> None:
    async def scenario(it: Running) -> None:
        connection = await it.connect()
        start = f"POST /api/v1/namespaces/x/pods HTTP/1.1\r\nHost: x\r\nAuthorization: {it.admin['Authorization']}\r\n"
        connection.writer.write((start + head).encode())
        assert (await connection.response()).status == 400
        assert it.machine.requests == []

    play(scenario)


def test_a_taken_port_is_told_in_one_line(play: Play, pki: Path) -> None:
    async def scenario(it: Running) -> None:
        with pytest.raises(OSError, match=f"^port {it.port} of 127.0.0.1 is in use$"):
            await module.build({"credentials": str(pki), "port": it.port}).start(lambda happened: None)

    play(scenario)


def test_stopping_ends_watches_and_frees_the_port(play: Play, pki: Path) -> None:
    async def scenario(it: Running) -> None:
        connection = await it.connect()
        connection.write("GET", WATCH, it.admin)
        await it.machine.heard(_is_watch)
        await it.facade.stop()
        assert (await connection.response()).body == b""
        again = module.build({"credentials": str(pki), "port": it.port})
        assert await again.start(lambda happened: None) == {"port": it.port}
        await again.stop()

    play(scenario)


# ---------------------------------------------------------------- credentials


def test_credentials_are_made_once_and_kept_private(tmp_path: Path) -> None:
    first = make_credentials(tmp_path / "pki")
    files = {path: path.read_bytes() for path in (tmp_path / "pki").iterdir()}
    assert make_credentials(tmp_path / "pki") == first
    assert files == {path: path.read_bytes() for path in (tmp_path / "pki").iterdir()}
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    config = yaml.safe_load(kubeconfig(first, "https://127.0.0.1:1"))
    assert config["users"][0]["user"]["token"] == first.tokens["admin"]
    assert config["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:1"
