"""The machine: who may do what, the order of effects, epochs, relays, compaction, and no peer's nonsense."""

from typing import Any

import msgspec
import pytest
from apiserver_world import START, World, a_node, a_pod, requests_of
from hypothesis import given, settings
from hypothesis import strategies as st

from elbowroom.apiserver import machine
from elbowroom.machine import Note, PeerConnected, Persist, Received, Send, Step, TimerFired, WorkDone
from elbowroom.rpc import requests
from elbowroom.wire import (
    ApiRequest,
    ApiResponse,
    Call,
    Code,
    Reply,
    StreamCancel,
    StreamCredit,
    StreamEvent,
    decode_value,
    encode_value,
)

CONFIG = {"metadata": {"name": "c"}, "data": {"k": "v"}}
LEASE = "leases.coordination.k8s.io"


def a_world(**config: Any) -> World:
    world = World(**config)
    world.create("nodes", a_node("n1"))
    world.create("nodes", a_node("n2"))
    world.create("pods", a_pod("a", node="n1"), "default")
    world.create("pods", a_pod("b", node="n2"), "default")
    return world


# ---------------------------------------------------------------- order of effects


def test_a_write_is_durable_before_it_is_noted_told_and_answered() -> None:
    world = a_world()
    world.watch("pods", peer="scheduler", resourceVersion=str(world.list("pods").revision))
    body = encode_value(requests.patch("pods", "a", requests_of("200m"), namespace="default", subresource="resize"))
    effects = world.step(Received("client/test", Call(900, "api", body)))

    def described(effect: Any) -> str:
        match effect:
            case Step(label):
                return label
            case Send(target, message):
                return f"{type(message).__name__} {target}"
            case _:
                return type(effect).__name__

    kinds = [described(effect) for effect in effects if described(effect) != "SetTimer"]
    assert kinds == [
        *("A1", "A2", "A3", "A4", "A5", "Persist", "A7", "Note", "A8", "StreamEvent scheduler", "A9"),
        *("Reply client/test", "A10"),
    ]


def test_the_history_is_told_of_each_commit() -> None:
    world = a_world()
    pod = world.get("pods", "a", namespace="default").body
    world.effects.clear()
    world.update("pods", "a", {**pod, "metadata": {**pod["metadata"], "labels": {"l": "m"}}}, namespace="default")
    notes = [effect.fields for effect in world.effects if isinstance(effect, Note) and effect.name == "commit"]
    told = notes[0].pop("obj")
    assert notes == [
        {
            "rev": 11,
            "key": "pods/default/a",
            "resource": "pods",
            "uid": pod["metadata"]["uid"],
            "verb": "update",
            "sub": "",
            "user": "elbowroom-admin",
            "base": 9,
            "gone": False,
            "old_node": "n1",
        }
    ]
    for name, value in {
        "generation": 1,
        "node": "n1",
        "phase": "Pending",
        "nominated": "",
        "scheduled": "",
        "deleting": False,
        "containers": {"c": {"requests": {"cpu": "100m", "memory": "64Mi"}}},
    }.items():
        assert told[name] == value, name


def test_a_fresh_cluster_has_its_namespaces_and_classes_and_makes_them_once() -> None:
    world = World()
    assert [item["metadata"]["name"] for item in world.list("namespaces").body["items"]] == [
        "default",
        "kube-node-lease",
        "kube-public",
        "kube-system",
    ]
    classes = {item["metadata"]["name"]: item["value"] for item in world.list("priorityclasses.scheduling.k8s.io").body["items"]}
    assert classes == {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
    again = World(disk=dict(world.disk))
    assert not [effect for effect in again.effects if isinstance(effect, Persist)]
    recovered = next(effect for effect in again.effects if isinstance(effect, Note) and effect.name == "wal.recovered")
    assert recovered.fields == {"revision": 6, "floor": 0, "durable": True}


def test_every_acknowledged_write_is_there_after_a_restart() -> None:
    world = a_world()
    world.delete("pods", "b", "default", gracePeriodSeconds=0)
    again = World(disk=dict(world.disk))
    for resource in ("pods", "nodes", "namespaces"):
        assert again.list(resource).body == world.list(resource).body


# ---------------------------------------------------------------- rights

STATUS = {"status": {"phase": "Running"}}
NODE_STATUS = {"status": {"conditions": []}}


def status_of(pod: str) -> ApiRequest:
    return requests.patch("pods", pod, STATUS, namespace="default", subresource="status")


RIGHTS: list[tuple[str, ApiRequest, int]] = [
    ("kubelet/n1", status_of("a"), 200),
    ("kubelet/n1", status_of("b"), 403),
    ("kubelet/n1", requests.patch("pods", "a", {"metadata": {"labels": {"x": "y"}}}, namespace="default"), 403),
    ("kubelet/n1", requests.patch("pods", "a", requests_of("200m"), namespace="default", subresource="resize"), 403),
    ("kubelet/n1", requests.delete("pods", "a", namespace="default", options={"gracePeriodSeconds": 0}), 200),
    ("kubelet/n1", requests.delete("pods", "b", namespace="default"), 403),
    ("kubelet/n1", requests.patch("nodes", "n1", NODE_STATUS, subresource="status"), 200),
    ("kubelet/n1", requests.patch("nodes", "n2", NODE_STATUS, subresource="status"), 403),
    ("kubelet/n1", requests.create(LEASE, {"metadata": {"name": "n1"}}, namespace="kube-node-lease"), 201),
    ("kubelet/n1", requests.update(LEASE, "n2", {"metadata": {"name": "n2"}}, namespace="kube-node-lease"), 403),
    ("kubelet/n1", requests.create(LEASE, {"metadata": {"name": "n1"}}, namespace="default"), 403),
    ("kubelet/n1", requests.get("pods", "a", namespace="default"), 200),
    ("kubelet/n1", requests.get("pods", "b", namespace="default"), 403),
    ("kubelet/n1", requests.listing("nodes"), 403),
    ("kubelet/n1", requests.listing("nodes", query={"fieldSelector": "metadata.name=n1"}), 200),
    ("kubelet/n1", requests.create("pods", a_pod("c"), namespace="default"), 403),
    ("scheduler", requests.patch("pods", "a", STATUS, namespace="default", subresource="status"), 200),
    ("scheduler", requests.delete("pods", "a", namespace="default"), 200),
    ("scheduler", requests.patch("pods", "a", requests_of("200m"), namespace="default", subresource="resize"), 403),
    ("scheduler", requests.patch("nodes", "n1", {"spec": {"unschedulable": True}}), 403),
    ("controllers", requests.create("pods", a_pod("c"), namespace="default"), 201),
    ("controllers", requests.patch("nodes", "n1", {"spec": {"unschedulable": True}}), 200),
    ("supervisor", requests.create("nodes", a_node("n3")), 201),
    ("client/x", requests.delete("nodes", "n1"), 200),
    ("stranger", requests.get("pods", "a", namespace="default"), 403),
    ("runtime/n1", requests.get("pods", "a", namespace="default"), 403),
    ("runtime/n1", ApiRequest("get", "pods", namespace="default", name="a", user="admin", groups=("system:masters",)), 403),
]


@pytest.mark.parametrize(("peer", "request_", "code"), RIGHTS)
def test_peers_may_do_what_they_need_and_no_more(peer: str, request_: ApiRequest, code: int) -> None:
    world = a_world()
    before = dict(world.disk)
    assert world.ask(request_, peer).status == code
    if code == 403:
        assert world.disk == before


@pytest.mark.parametrize(
    ("peer", "request_", "words"),
    [
        (
            "kubelet/n1",
            status_of("b"),
            'pods "b" is forbidden: node "n1" can only update pod status for pods with spec.nodeName set to itself',
        ),
        (
            "scheduler",
            requests.patch("pods", "a", requests_of("1"), namespace="default", subresource="resize"),
            'pods "a" is forbidden: User "system:kube-scheduler" cannot patch resource "pods/resize" in API group "" '
            'in the namespace "default"',
        ),
        (
            "x",
            requests.listing("nodes"),
            'nodes is forbidden: User "system:anonymous" cannot list resource "nodes" in API group "" at the cluster scope',
        ),
    ],
)
def test_who_may_not_is_told_so_in_upstreams_words(peer: str, request_: ApiRequest, words: str) -> None:
    answer = a_world().ask(request_, peer)
    assert (answer.body["reason"], answer.message) == ("Forbidden", words)


def test_a_watch_needs_the_right_to_watch() -> None:
    watch = a_world().watch("pods", peer="runtime/n1")
    assert watch.end is not None and watch.end.code is Code.PERMISSION_DENIED and watch.events == []


@pytest.mark.parametrize(
    ("user", "verb", "resource", "subresource", "may"),
    [
        ("elbowroom-admin", "delete", "nodes", "", True),
        ("bob", "get", "pods", "", False),
        ("system:kube-scheduler", "create", "pods", "binding", True),
    ],
)
def test_can_i(user: str, verb: str, resource: str, subresource: str, may: bool) -> None:
    attributes = {"verb": verb, "resource": resource, "subresource": subresource, "namespace": "default"}
    groups = ("system:masters", "system:authenticated") if may and user.startswith("elbow") else ("system:authenticated",)
    body = msgspec.json.encode({"spec": {"resourceAttributes": attributes}})
    request = ApiRequest("create", "selfsubjectaccessreviews", "authorization.k8s.io", body=body, user=user, groups=groups)
    answer = World(policy=True).ask(request, "http/1")
    assert (answer.status, answer.body["status"]) == (201, {"allowed": may})


# ---------------------------------------------------------------- epochs and deadlines


def test_an_older_incarnation_of_a_peer_is_refused_and_its_streams_are_over() -> None:
    world = a_world()
    watch = world.watch("pods", peer="kubelet/n1", resourceVersion="10", fieldSelector="spec.nodeName=n1")
    assert world.ask(status_of("a"), "kubelet/n1", epoch=2).status == 200
    assert watch.messages == []
    body = encode_value(status_of("a"))
    world.step(Received("kubelet/n1", Call(901, "api", body, epoch=1)))
    reply = world.received("kubelet/n1")[-1]
    assert isinstance(reply, Reply) and reply.code is Code.FAILED_PRECONDITION
    assert "epoch 1 was replaced by epoch 2" in reply.message
    assert world.ask(status_of("a"), "kubelet/n1", epoch=2).status == 200


def test_a_call_whose_deadline_is_over_did_not_happen() -> None:
    world = World()
    body = encode_value(requests.create("configmaps", CONFIG, namespace="default"))
    world.step(Received("client/x", Call(1, "api", body, deadline=START - 1)))
    reply = world.received("client/x")[-1]
    assert isinstance(reply, Reply) and reply.code is Code.DEADLINE_EXCEEDED
    assert world.get("configmaps", "c", namespace="default").status == 404


# ---------------------------------------------------------------- relays and metrics


def proxied(world: World, code: Code = Code.OK, body: bytes = b"", source: str = "kubelet/n1") -> ApiResponse:
    call = world.received(source)[-1]
    assert isinstance(call, Call)
    world.step(Received(source, Reply(call.id, code, body, "no")))
    reply = world.received("http/7")[-1]
    assert isinstance(reply, Reply)
    return decode_value(reply.body, ApiResponse)


def ask_proxy(world: World, path: str, node: str = "n1", **query: str) -> None:
    request = ApiRequest(
        "get", "nodes", name=node, subresource="proxy", query={"path": path, **query}, user="admin", groups=("system:masters",)
    )
    world.step(Received("http/7", Call(3, "api", encode_value(request))))


def test_the_node_proxy_asks_the_kubelet_and_hands_on_what_it_says() -> None:
    world = a_world()
    ask_proxy(world, "metrics", limit="3")
    call = world.received("kubelet/n1")[-1]
    assert isinstance(call, Call) and (call.method, msgspec.msgpack.decode(call.body)) == (
        "proxy",
        {"path": "metrics", "query": {"limit": "3"}},
    )
    body = msgspec.msgpack.encode({"status": 200, "contentType": "text/plain; version=0.0.4", "body": b"x 1\n"})
    answer = proxied(world, body=body)
    assert (answer.status, answer.body, answer.content_type) == (200, b"x 1\n", "text/plain; version=0.0.4")


@pytest.mark.parametrize(
    ("code", "body"), [(Code.UNAVAILABLE, b""), (Code.OK, b"nonsense"), (Code.OK, msgspec.msgpack.encode({"status": "x"}))]
)
def test_a_kubelet_that_does_not_answer_well_is_503(code: Code, body: bytes) -> None:
    world = a_world()
    ask_proxy(world, "metrics")
    answer = proxied(world, code, body)
    assert answer.status == 503 and b"error trying to reach service: kubelet/n1: " in answer.body


def test_a_kubelet_that_is_silent_is_503_after_a_while() -> None:
    world = a_world()
    ask_proxy(world, "metrics")
    world.wait(11)
    reply = world.received("http/7")[-1]
    assert isinstance(reply, Reply) and decode_value(reply.body, ApiResponse).status == 503


def test_a_kubelet_that_was_asked_and_came_back_anew_is_not_waited_for() -> None:
    world = a_world()
    lease = ApiRequest("get", "nodes", name="n1")
    world.ask(lease, "kubelet/n1", epoch=1)
    ask_proxy(world, "metrics")
    world.ask(lease, "kubelet/n1", epoch=1)
    assert not world.received("http/7")
    world.ask(lease, "kubelet/n1", epoch=2)
    (reply,) = world.received("http/7")
    assert isinstance(reply, Reply) and decode_value(reply.body, ApiResponse).status == 503


def test_a_node_that_is_not_there_has_no_proxy() -> None:
    world = a_world()
    ask_proxy(world, "metrics", "n9")
    reply = world.received("http/7")[-1]
    assert isinstance(reply, Reply) and decode_value(reply.body, ApiResponse).status == 404


def own(world: World, name: str, *groups: str) -> ApiResponse | None:
    request = ApiRequest("get", "metrics", "elbowroom", name=name, user="u", groups=groups)
    world.step(Received("http/7", Call(4, "api", encode_value(request))))
    replies = [message for message in world.received("http/7") if isinstance(message, Reply)]
    return decode_value(replies[-1].body, ApiResponse) if replies else None


def test_metrics_count_what_was_asked() -> None:
    world = a_world()
    world.get("pods", "none", namespace="default")
    answer = own(world, "", "system:masters")
    assert answer is not None and answer.status == 200 and answer.content_type.startswith("text/plain")
    text = answer.body.decode()
    assert 'apiserver_request_total{code="201",group="",resource="pods",subresource="",verb="CREATE",version="v1"} 2.0' in text
    assert 'apiserver_request_total{code="404",group="",resource="pods",subresource="",verb="GET",version="v1"} 1.0' in text
    assert 'apiserver_storage_objects{resource="nodes"} 2.0' in text and "_created" not in text


def test_metrics_are_for_administrators() -> None:
    answer = own(a_world(), "")
    assert answer is not None and answer.status == 403 and b'cannot get path \\"/metrics\\"' in answer.body


def test_the_schedulers_metrics_come_from_the_scheduler() -> None:
    world = a_world()
    own(world, "scheduler", "system:masters")
    body = msgspec.msgpack.encode({"status": 200, "contentType": "text/plain", "body": b"y 2\n"})
    assert proxied(world, body=body, source="scheduler").body == b"y 2\n"


# ---------------------------------------------------------------- compaction


def test_compaction_keeps_what_stands_and_drops_what_was() -> None:
    world = World(compaction_seconds=10)
    world.create("configmaps", CONFIG, "default")
    for number in range(20):
        world.patch("configmaps", "c", {"data": {"k": str(number)}}, namespace="default")
    world.create("configmaps", {"metadata": {"name": "d"}}, "default")
    world.delete("configmaps", "d", "default")
    world.wait(25)
    rows = sorted(key for key in world.disk if key.startswith("log/"))
    assert [int(row[4:]) for row in rows] == [1, 2, 3, 4, 5, 6, 27] and world.disk["floor"] == b"29"
    again = World(disk=dict(world.disk))
    assert again.get("configmaps", "c", namespace="default").body["data"] == {"k": "19"}
    assert again.create("configmaps", {"metadata": {"name": "d"}}, "default").revision == 30


def test_the_floor_is_durable_before_any_row_goes() -> None:
    world = World(compaction_seconds=10)
    world.create("configmaps", CONFIG, "default")
    world.patch("configmaps", "c", {"data": {"k": "w"}}, namespace="default")
    world.effects.clear()
    world.wait(25)
    order = [
        effect.label if isinstance(effect, Step) else effect.key for effect in world.effects if isinstance(effect, Step | Persist)
    ]
    assert order[-6:] == ["C1", "floor", "C2", "log/00000000000000000007", "C3", "C4"]


def test_old_rows_go_a_few_at_a_time_until_none_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "DROPPED_AT_ONCE", 3)
    world = World(compaction_seconds=10)
    world.create("configmaps", CONFIG, "default")
    for number in range(7):
        world.patch("configmaps", "c", {"data": {"k": str(number)}}, namespace="default")
    world.effects.clear()
    world.wait(25)
    assert world.disk["floor"] == b"14"
    turns: list[int] = [0]
    for effect in world.effects:
        if isinstance(effect, Step) and effect.label == "C3":
            turns.append(0)
        turns[-1] += isinstance(effect, Persist) and effect.value is None
    assert turns == [0, 3, 3, 1, 0], "the first look found nothing that was old"


def test_a_long_history_is_cut_however_young() -> None:
    world = World(history_max=20)
    world.create("configmaps", CONFIG, "default")
    for number in range(50):
        world.patch("configmaps", "c", {"data": {"k": str(number)}}, namespace="default")
        world.wait(0.001)
    assert len(world.disk) < 40
    assert World(disk=dict(world.disk)).get("configmaps", "c", namespace="default").body["data"] == {"k": "49"}


def test_a_heavy_history_is_cut_however_short() -> None:
    world = World(history_bytes_max=50_000)
    world.create("configmaps", CONFIG, "default")
    for number in range(40):
        world.patch("configmaps", "c", {"data": {"k": str(number), "heavy": "x" * 4_000}}, namespace="default")
        world.wait(0.001)
    kept = sum(len(raw) for key, raw in world.disk.items() if key.startswith("log/"))
    assert 25_000 < kept < 80_000
    assert World(disk=dict(world.disk)).get("configmaps", "c", namespace="default").body["data"]["k"] == "39"


def test_of_many_objects_more_of_the_past_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "OBJECTS_A_HISTORY", 10)
    rows = {}
    for objects in (5, 40):
        world = World(history_max=20)
        for number in range(objects):
            world.create("configmaps", {**CONFIG, "metadata": {"name": f"c{number}"}}, "default")
        for number in range(60):
            world.patch("configmaps", "c0", {"data": {"k": str(number)}}, namespace="default")
            world.wait(0.001)
        rows[objects] = sum(key.startswith("log/") for key in world.disk) - objects
    assert rows[5] < 25 and 40 < rows[40] <= 80, "what stands is in the log as well"


# ---------------------------------------------------------------- nonsense


def test_an_unknown_method_is_unimplemented_and_a_bad_body_invalid() -> None:
    world = World()
    for call, code in (
        (Call(1, "frob"), Code.UNIMPLEMENTED),
        (Call(2, "api", b"\xc1"), Code.INVALID_ARGUMENT),
        (Call(3, "api", encode_value({"verb": 5})), Code.INVALID_ARGUMENT),
    ):
        world.step(Received("client/x", call))
        reply = world.received("client/x")[-1]
        assert isinstance(reply, Reply) and (reply.id, reply.code) == (call.id, code)


WORDS = st.sampled_from(
    ["", "pods", "nodes", "default", "a", "n1", "status", "resize", "scale", "binding", "apps", "v1", "\0", "é", "../x"]
)
BODIES = st.sampled_from(
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"{",
        b'{"metadata":null}',
        b'{"metadata":{"name":5}}',
        b'{"spec":[]}',
        b"\xff\xfe",
        b'{"kind":"Pod"}',
        msgspec.json.encode(a_pod("a")),
        msgspec.json.encode([{"op": "add", "path": "/metadata", "value": None}]),
        b"1e999",
        b'"\\ud800"',
    ]
)
QUERIES = st.dictionaries(
    st.sampled_from(
        ["limit", "continue", "resourceVersion", "fieldSelector", "labelSelector", "dryRun", "fieldValidation", "timeoutSeconds"]
    ),
    st.sampled_from(
        ["", "x", "-1", "99999999999999999999", "All", "Strict", "a=b", "spec.nodeName=n1", "=,=", "((", "eyJ2IjoxfQ", "1"]
    ),
    max_size=3,
)
VERBS = st.sampled_from(["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "", "frob"])
TYPES = st.sampled_from(
    [
        "application/json",
        "application/yaml",
        "",
        "x",
        requests.JSON_PATCH,
        requests.MERGE_PATCH,
        requests.STRATEGIC_PATCH,
        requests.APPLY_PATCH,
    ]
)
REQUESTS = st.builds(
    ApiRequest,
    verb=VERBS,
    resource=WORDS,
    group=WORDS,
    version=st.sampled_from(["v1", ""]),
    namespace=WORDS,
    name=WORDS,
    subresource=WORDS,
    query=QUERIES,
    content_type=TYPES,
    body=BODIES,
)
LIKELY = st.builds(
    ApiRequest,
    verb=VERBS,
    resource=st.sampled_from(["pods", "nodes", "namespaces", "configmaps", "events", "limitranges", "resourcequotas"]),
    namespace=st.just("default"),
    name=st.sampled_from(["a", "", "n1"]),
    subresource=st.sampled_from(["", "status", "resize", "binding", "eviction", "ephemeralcontainers", "log"]),
    query=QUERIES,
    content_type=TYPES,
    body=BODIES,
)


@settings(max_examples=200, deadline=None)
@given(request=REQUESTS | LIKELY, method=st.sampled_from(["api", "watch"]))
def test_no_request_ends_the_server_and_each_is_answered(request: ApiRequest, method: str) -> None:
    world = a_world()
    world.step(Received("client/x", Call(5, method, encode_value(request), credit=10)))
    answers = world.received("client/x")
    if method == "api":
        if answers and isinstance(answers[-1], Reply):
            assert answers[-1].code is Code.OK and decode_value(answers[-1].body, ApiResponse).status >= 200
        else:
            assert request.subresource == "proxy"
    again = World(disk=dict(world.disk))
    assert again.list("pods").body == world.list("pods").body


@settings(max_examples=60, deadline=None)
@given(number=st.integers(-(1 << 31), 1 << 31), amount=st.integers(-(1 << 31), 1 << 31))
def test_nobody_is_hurt_by_credit_or_ends_of_streams_that_are_not(number: int, amount: int) -> None:
    world = World()
    for happened in (
        Received("client/x", StreamCredit(number, amount)),
        Received("client/x", StreamCancel(number)),
        Received("client/x", Reply(number)),
        Received("client/x", StreamEvent(number, 1, 1, 1, "x", b"")),
        TimerFired("nobody's"),
        WorkDone("x", None),
        PeerConnected("x"),
    ):
        world.step(happened)
    assert world.list("pods").status == 200
