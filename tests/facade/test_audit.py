"""The audit log: a line for each request when it is wanted, nothing when it is not, and no secret ever."""

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from elbowroom.apiserver.drivers.audit import FileLog
from elbowroom.machine import Received
from elbowroom.rpc import requests
from elbowroom.wire import Call, encode_value

from .whole import JSON, Scenario, Whole, bearer, play

PODS = "/api/v1/namespaces/default/pods"
POD = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
Serve = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def serve(pki: Path, tmp_path: Path) -> Serve:
    """Runs a scenario and gives the log."""

    def run(scenario: Scenario, level: str = "Metadata") -> list[dict[str, Any]]:
        path = tmp_path / "logs" / "audit.log"
        wanted = {} if level == "None" else {"audit": {"level": level, "path": str(path)}}
        play(scenario, pki, tmp_path, **wanted)
        if not path.exists():
            return []
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        return [json.loads(line) for line in path.read_text().splitlines()]

    return run


def test_a_request_is_told_with_who_what_and_how_it_ended(serve: Serve) -> None:
    ids = []

    async def scenario(it: Whole) -> None:
        connection = await it.connect()
        headers = {**it.admin, **JSON, "User-Agent": "kubectl/v1.37"}
        answer = await connection.ask("POST", f"{PODS}?fieldManager=me", headers, json.dumps(POD).encode())
        assert answer.status == 201
        ids.append(answer.header("audit-id"))

    (event,) = serve(scenario)
    assert event["requestReceivedTimestamp"] <= event["stageTimestamp"]
    times = ("requestReceivedTimestamp", "stageTimestamp")
    assert {key: value for key, value in event.items() if key not in times} == {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": ids[0],
        "stage": "ResponseComplete",
        "requestURI": f"{PODS}?fieldManager=me",
        "verb": "create",
        "user": {"username": "elbowroom-admin", "groups": ["system:masters", "system:authenticated"]},
        "sourceIPs": ["127.0.0.1"],
        "userAgent": "kubectl/v1.37",
        "objectRef": {"resource": "pods", "namespace": "default", "apiVersion": "v1"},
        "responseStatus": {"metadata": {}, "code": 201},
        "annotations": {"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": ""},
    }


def test_refusals_are_told_too(serve: Serve) -> None:
    async def scenario(it: Whole) -> None:
        await it.ask("GET", f"{PODS}/a", headers={})
        await it.ask("GET", f"{PODS}/a", headers=bearer("wrong"))
        await it.ask("GET", "/api/v1/nothing")
        await it.ask("GET", "/metrics", headers={})
        await it.ask("GET", f"{PODS}/a", headers={**it.admin, "Impersonate-User": "bob", "Impersonate-Group": "ops"})

    found = serve(scenario)
    told = [
        (event["user"]["username"], event["responseStatus"]["code"], event["responseStatus"].get("reason", ""), event["verb"])
        for event in found
    ]
    assert told == [
        ("system:anonymous", 403, "Forbidden", "get"),
        ("system:anonymous", 401, "Unauthorized", "get"),
        ("elbowroom-admin", 404, "NotFound", "get"),
        ("system:anonymous", 403, "Forbidden", "get"),
        ("elbowroom-admin", 403, "Forbidden", "get"),
    ]
    assert found[0]["annotations"] == {"authorization.k8s.io/decision": "forbid"}
    assert found[4]["impersonatedUser"] == {"username": "bob", "groups": ["ops"]}


def test_a_rule_that_allows_is_named(serve: Serve) -> None:
    async def scenario(it: Whole) -> None:
        await it.ask("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, {**it.admin, "Impersonate-User": "bob"})

    (event,) = serve(scenario)
    assert event["annotations"]["authorization.k8s.io/reason"] == (
        'RBAC: allowed by ClusterRoleBinding "system:basic-user" of ClusterRole "system:basic-user" to Group "system:authenticated"'
    )


def test_a_watch_is_told_when_it_ends(serve: Serve) -> None:
    async def scenario(it: Whole) -> None:
        await it.ask("GET", f"{PODS}?watch=1&timeoutSeconds=1&resourceVersion=1")

    (event,) = serve(scenario)
    assert (event["verb"], event["responseStatus"]["code"]) == ("watch", 200)


def test_what_comes_over_the_bus_is_told_as_well(serve: Serve) -> None:
    async def scenario(it: Whole) -> None:
        await it.create("/api/v1/nodes", {"metadata": {"name": "n1"}})
        request = requests.patch("nodes", "n1", {"status": {"phase": "Running"}}, subresource="status")
        it.mini.post(Received("kubelet/n1", Call(1, "api", encode_value(request))))

    event = serve(scenario, "Request")[1]
    assert (event["user"]["username"], event["verb"], event["objectRef"]["subresource"]) == ("system:node:n1", "patch", "status")
    assert (event["requestURI"], event["responseStatus"]["code"]) == ("/api/v1/nodes/n1/status", 200)
    assert event["requestObject"] == {"status": {"phase": "Running"}}


def test_bodies_are_told_at_the_level_request_and_tokens_never(serve: Serve) -> None:
    seen = []

    async def scenario(it: Whole) -> None:
        await it.create("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "robot"}})
        asked = await it.create("/api/v1/namespaces/default/serviceaccounts/robot/token", {})
        await it.create("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": asked["status"]["token"]}})
        seen.extend([asked["status"]["token"], it.credentials.tokens["admin"]])

    found = serve(scenario, "Request")
    assert [event.get("requestObject") for event in found] == [{"metadata": {"name": "robot"}}, None, None]
    assert not [secret for secret in seen if secret in json.dumps(found)]


def test_nobody_writes_lines_of_their_own(serve: Serve) -> None:
    evil = "a\n{}\r\x1b[31m\u2028\u2029\x85é"

    async def scenario(it: Whole) -> None:
        await it.ask("POST", PODS, {**POD, "metadata": {"name": evil}})
        await it.ask("GET", f"{PODS}/a%0a%7b%7d", headers={**it.admin, "User-Agent": "x\t{}"})

    found = serve(scenario, "Request")
    assert len(found) == 2 and found[0]["requestObject"]["metadata"]["name"] == evil


def test_without_a_level_there_is_no_file(serve: Serve) -> None:
    async def scenario(it: Whole) -> None:
        await it.create(PODS, POD)

    assert serve(scenario, "None") == []


def test_a_large_log_is_begun_anew_and_one_part_kept(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    log = FileLog(path, bytes_max=100)
    for number in range(5):
        log._lines.append(b"x" * 60 + b"\n")
        log._flush()
        assert number % 2 == (0 if path.stat().st_size else 1)
    log.close()
    assert (path.stat().st_size, path.with_name("audit.log.1").stat().st_size) == (61, 122)
