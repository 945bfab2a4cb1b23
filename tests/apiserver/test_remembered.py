"""What is remembered, or found by a shorter way, is what the long way finds."""

import copy
import random
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest
from apiserver_world import World, a_pod
from hypothesis import given, settings
from hypothesis import strategies as st

from elbowroom.api.gates import profile_of
from elbowroom.api.quantity import parse
from elbowroom.apiserver import metrics, patches, pod_validation, pod_warnings, rbac, schema, store
from elbowroom.apiserver.admission import chain
from elbowroom.apiserver.admission_base import Attributes
from elbowroom.apiserver.listing import filter_of
from elbowroom.apiserver.patches import PatchError, merge_patch, strategic_patch
from elbowroom.apiserver.pod_defaults import default_pod
from elbowroom.apiserver.pod_validation import is_known_sound, validate_pod
from elbowroom.apiserver.pods import PodStrategy, _plain_update, _qos_of
from elbowroom.apiserver.rbac import Decisions, Rbac
from elbowroom.apiserver.semantics import same
from elbowroom.apiserver.store import Record, Store, StoreReader
from elbowroom.apiserver.strategy import Context
from elbowroom.rpc import create
from elbowroom.wire import ApiRequest

POD = schema.find("", "v1", "Pod")
assert POD is not None
FIELD = POD


def decoded(document: Any) -> dict[str, Any]:
    made = schema.decode(FIELD, document)
    assert made.error is None
    found: dict[str, Any] = made.document
    return found


# ---------------------------------------------------------------- semantic equality


def plainly_same(one: Any, other: Any, *, quantities: bool = False) -> bool:
    """The rule, member by member."""
    if one == other:
        return True
    if isinstance(one, dict) and isinstance(other, dict):
        if quantities:
            return one.keys() == other.keys() and all(parse(one[name]) == parse(other[name]) for name in one)
        kinds = ("requests", "limits", "overhead", "capacity", "allocatable", "hard", "used")
        return all(plainly_same(one.get(name), other.get(name), quantities=name in kinds) for name in {**one, **other})
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(plainly_same, one, other))
    empty: tuple[Any, ...] = (None, "", [], {})
    return one in empty and other in empty


amounts = st.dictionaries(st.sampled_from(["cpu", "memory"]), st.sampled_from(["1", "1000m", "01", "2", "0"]), max_size=2)
leaves = st.one_of(st.none(), st.just(""), st.just(0), st.just(False), st.just("a"), st.integers(0, 2))
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3),
        st.dictionaries(st.sampled_from(["requests", "limits"]), amounts, max_size=2),
    ),
    max_leaves=8,
)


@given(trees, trees)
@settings(max_examples=300, deadline=None)
def test_documents_are_the_same_if_all_their_members_are(one: Any, other: Any) -> None:
    assert same(one, other) is plainly_same(one, other)
    assert same({"a": one, "b": [other]}, {"a": one, "b": [other], "c": None})


# ---------------------------------------------------------------- patches

texts = st.sampled_from(["a", "b", "c", "d"])
values = st.recursive(
    st.one_of(st.none(), st.integers(0, 2), texts),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=6,
)
objects = st.dictionaries(texts, values, max_size=4)


def plainly_merged(document: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """RFC 7386, in place, with nulls dropped from what is added."""

    def bare(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: bare(member) for key, member in value.items() if member is not None}
        return [bare(member) for member in value if member is not None] if isinstance(value, list) else value

    for key, value in patch.items():
        if value is None:
            document.pop(key, None)
        elif isinstance(document.get(key), dict) and isinstance(value, dict):
            plainly_merged(document[key], value)
        else:
            document[key] = bare(value)
    return document


@given(objects, objects)
@settings(deadline=None)
def test_a_merge_patch_leaves_the_document_and_makes_what_the_rfc_says(document: dict[str, Any], patch: dict[str, Any]) -> None:
    before = copy.deepcopy(document)
    merged = merge_patch(document, patch)
    assert document == before
    wanted = plainly_merged(copy.deepcopy(document), patch)
    assert (merged, list(merged)) == (wanted, list(wanted))


pods = st.fixed_dictionaries(
    {},
    optional={
        "metadata": st.dictionaries(st.sampled_from(["labels", "annotations", "nope"]), st.dictionaries(texts, texts, max_size=2)),
        "spec": st.dictionaries(
            st.sampled_from(["nodeName", "tolerations", "containers", "priority", "nope"]),
            st.one_of(st.none(), texts, st.integers(0, 3), st.just([{"name": "a", "resources": {"limits": {"cpu": "1000m"}}}])),
            max_size=3,
        ),
    },
)


@given(pods)
@settings(deadline=None)
def test_what_a_merge_patch_leaves_alone_need_not_be_decoded_again(patch: dict[str, Any]) -> None:
    document = decoded(a_pod(node="n1"))
    merged = merge_patch(document, patch)
    assert schema.decode(FIELD, merged, known=document) == schema.decode(FIELD, copy.deepcopy(merged))


names = st.sampled_from(["a", "b", "c"])
containers = st.lists(st.fixed_dictionaries({"name": names}, optional={"image": names}), max_size=4)
elements = st.fixed_dictionaries(
    {}, optional={"name": names, "image": names, "$patch": st.sampled_from(["delete", "replace", "x"])}
)


@given(containers, st.lists(elements, max_size=2), st.booleans())
@settings(deadline=None)
def test_a_patched_list_is_the_same_with_or_without_weaving(held: list[Any], patch: list[Any], lacks_a_key: bool) -> None:
    document = {"spec": {"containers": held + [{"image": "a"}] * lacks_a_key}}

    def merged() -> Any:
        try:
            return strategic_patch(copy.deepcopy(document), {"spec": {"containers": copy.deepcopy(patch)}}, FIELD)
        except PatchError as why:
            return why.code, why.message

    short = merged()
    with pytest.MonkeyPatch.context() as change:
        change.setattr(patches._Places, "tell_apart", lambda self, count: False)
        assert short == merged()


# ---------------------------------------------------------------- sound specs

BREAKS: list[tuple[tuple[str | int, ...], Any]] = [
    (("containers", 0, "resources", "requests", "cpu"), "-1"),
    (("containers", 0, "resources", "requests", "nope"), "1"),
    (("containers", 0, "resources", "limits"), {"cpu": "1m"}),
    (("containers", 0, "resources", "claims"), [{"name": "gpu"}]),
    (("containers", 0, "resources"), {"limits": {"hugepages-2Mi": "2Mi"}}),
    (("containers", 0, "image"), " padded"),
    (("containers", 0, "name"), "Upper"),
    (("containers", 0, "imagePullPolicy"), "Sometimes"),
    (("containers", 1, "name"), "c"),
    (("initContainers", 0, "resources", "requests", "memory"), "-5Mi"),
    (("initContainers", 0, "resizePolicy"), [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]),
    (("nodeName",), "Not_A_Name"),
    (("nodeName",), "another"),
    (("resources",), {"requests": {"cpu": "1m"}}),
    (("resources",), {"requests": {"cpu": "8"}}),
    (("tolerations",), [{"key": "a", "operator": "Perhaps"}]),
    (("restartPolicy",), "Never"),
    (("volumes",), [{"name": "v"}]),
    (("dnsPolicy",), "None"),
    (("hostname",), "x" * 5000),
    (("ephemeralContainers",), [{"name": "e", "image": "i", "resources": {"requests": {"cpu": "1"}}}]),
]


def a_spec() -> dict[str, Any]:
    spare = {"name": "d", "image": "registry.k8s.io/pause:3.10"}
    first = {"name": "i", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": {"memory": "5Mi"}}}
    pod = a_pod(node="n1")
    pod["spec"]["containers"].append(spare)
    pod["spec"]["initContainers"] = [first]
    document = decoded(pod)
    default_pod(document)
    spec: dict[str, Any] = document["spec"]
    return spec


def broken(path: Sequence[str | int], value: Any) -> dict[str, Any]:
    spec = a_spec()
    inside: Any = spec
    for step in path[:-1]:
        inside = inside[step]
    inside[path[-1]] = copy.deepcopy(value)
    return spec


def test_a_sound_spec_is_known_and_a_resize_of_it_too() -> None:
    spec = a_spec()
    assert validate_pod({"spec": spec}) == []
    assert is_known_sound(spec, None, assigned=False)
    assert is_known_sound(broken(("containers", 0, "resources", "requests", "cpu"), "17m"), spec, assigned=False)
    judged = pod_validation._is_sound.cache_info().misses
    assert is_known_sound(broken(("nodeName",), "elsewhere"), spec, assigned=False)
    assert pod_validation._is_sound.cache_info().misses == judged


@pytest.mark.parametrize(("path", "value"), BREAKS)
@pytest.mark.parametrize("forgiven", [False, True])
def test_what_is_wrong_with_a_spec_is_said_whether_others_like_it_are_known_or_not(
    path: Sequence[str | int], value: Any, forgiven: bool
) -> None:
    stored = a_spec()
    if forgiven:
        stored["initContainers"][0]["resizePolicy"] = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
    validate_pod({"spec": stored})
    spec = broken(path, value)
    wanted = pod_validation._pod_errors(spec, stored, False)
    assert is_known_sound(spec, stored, assigned=False) <= (not wanted)
    for _ in range(2):
        assert validate_pod({"spec": spec}, {"spec": stored}) == wanted


def test_a_spec_that_asks_for_assigned_cpus_is_not_known_for_those_who_may_not() -> None:
    item = {"path": "cpus", "resourceFieldRef": {"containerName": "c", "resource": "assigned.cpuset"}}
    spec = broken(("volumes",), [{"name": "v", "downwardAPI": {"items": [item], "defaultMode": 420}}])
    assert is_known_sound(spec, None, assigned=True)
    assert not is_known_sound(spec, None, assigned=False)
    assert validate_pod({"spec": spec}) != []


@pytest.mark.parametrize(("path", "value"), [*BREAKS, (("restartPolicy",), "Always")])
def test_an_update_that_leaves_a_spec_alone_is_judged_as_any_other(path: Sequence[str | int], value: Any) -> None:
    spec = broken(path, value)
    pod = {"spec": spec}
    shown = PodStrategy().validate_update(None, pod, copy.deepcopy(pod))  # type: ignore[arg-type]
    assert shown == pod_validation._pod_errors(spec, spec, False) + _plain_update(spec, spec)


# ---------------------------------------------------------------- filters


def test_no_document_is_parsed_to_tell_what_names_tell() -> None:
    document = {"metadata": {"name": "a", "namespace": "default"}, "spec": {"nodeName": "n1"}}
    record = Record("pods", "default", "a", 1, msgspec.json.encode(document))
    row = World().machine._registry._rows.built_in["pods"]
    for query, selected in (
        ({}, True),
        ({"fieldSelector": "metadata.name=a"}, True),
        ({"fieldSelector": "metadata.name=a,metadata.namespace!=default"}, False),
    ):
        wanted = filter_of(row, ApiRequest("list", "pods", namespace="default", query=query))
        assert (wanted.matches(record), wanted.selects_all, record._document) == (selected, not query, None)
    for query, selected in (({"fieldSelector": "spec.nodeName=n1"}, True), ({"labelSelector": "a=b"}, False)):
        assert filter_of(row, ApiRequest("list", "pods", query=query)).matches(record) is selected
    assert not filter_of(row, ApiRequest("list", "pods", namespace="other")).matches(record)


# ---------------------------------------------------------------- roles


def rights(world: World, verb: str, what: str, name: str, body: Mapping[str, Any] | None = None) -> None:
    request = ApiRequest(
        verb, what, rbac.GROUP, name=name if verb != "create" else "", namespace="default" if what.startswith("role") else ""
    )
    asked = msgspec.structs.replace(
        request, body=b"" if body is None else msgspec.json.encode({"metadata": {"name": name}, **body})
    )
    assert world.ask(asked).status < 300


def may(world: World, user: str, name: str = "a", groups: tuple[str, ...] = ()) -> int:
    return world.ask(ApiRequest("get", "pods", namespace="default", name=name, user=user, groups=groups), peer="http/1").status


def test_a_right_counts_from_the_moment_it_is_given_and_no_longer_once_it_is_taken() -> None:
    world = World()
    world.create("pods", a_pod("a"), "default")
    world.create("pods", a_pod("b"), "default")
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "resourceNames": ["a"]}
    subject = {"kind": "User", "name": "jane", "apiGroup": rbac.GROUP}
    reference = {"apiGroup": rbac.GROUP, "kind": "Role", "name": "reader"}
    assert [may(world, "jane"), may(world, "jane")] == [403, 403]
    rights(world, "create", "roles", "reader", {"rules": [rule]})
    assert may(world, "jane") == 403
    rights(world, "create", "rolebindings", "jane", {"roleRef": reference, "subjects": [subject]})
    assert [may(world, "jane"), may(world, "jane"), may(world, "jane", "b"), may(world, "john")] == [200, 200, 403, 403]
    rights(world, "update", "roles", "reader", {"rules": [{**rule, "resourceNames": ["b"]}]})
    assert [may(world, "jane"), may(world, "jane", "b")] == [403, 200]
    rights(world, "delete", "rolebindings", "jane")
    assert may(world, "jane", "b") == 403


requests = st.builds(
    ApiRequest,
    st.sampled_from(["get", "list", "delete"]),
    st.sampled_from(["pods", "nodes"]),
    namespace=st.sampled_from(["", "default", "other"]),
    name=st.sampled_from(["", "a", "b"]),
    subresource=st.sampled_from(["", "resize"]),
    user=st.sampled_from(["jane", "john"]),
    groups=st.sampled_from([(), ("dev",)]),
)
roles = st.fixed_dictionaries(
    {
        "apiGroups": st.just([""]),
        "resources": st.lists(st.sampled_from(["pods", "nodes", "pods/resize", "*"]), max_size=2),
        "verbs": st.lists(st.sampled_from(["get", "list", "delete", "*"]), max_size=2),
    },
    optional={"resourceNames": st.just(["a"])},
)
subjects = st.sampled_from([{"kind": "User", "name": "jane"}, {"kind": "Group", "name": "dev"}])


@given(st.lists(st.one_of(requests, st.tuples(st.sampled_from(rbac.KINDS), roles, subjects), st.none()), max_size=30), st.data())
@settings(max_examples=100, deadline=None)
def test_remembered_decisions_are_those_that_roles_and_bindings_give(happened: list[Any], data: st.DataObject) -> None:
    store = Store()
    remembering, plain = Decisions(store, StoreReader(store)), Rbac(StoreReader(store))
    asked: list[ApiRequest] = []
    for one in happened:
        if one is None:
            standing = [record for kind in rbac.KINDS for record in store.objects(kind)]
            if standing:
                gone = data.draw(st.sampled_from(standing))
                store.delete(gone.resource, gone.namespace, gone.name)
        elif isinstance(one, ApiRequest):
            asked.append(one)
        else:
            kind, rule, subject = one
            is_cluster = kind.startswith("cluster")
            reference = {"kind": "ClusterRole" if is_cluster else "Role", "name": "x"}
            content = {"roleRef": reference, "subjects": [subject]} if "bindings" in kind else {"rules": [rule]}
            store.put(kind, "" if is_cluster else "default", "x", {"metadata": {"name": "x"}, **content})
        for request in asked[-4:]:
            assert remembering.decide(request) == plain.decide(request)


def test_no_more_decisions_are_remembered_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rbac, "DECISIONS_MAX", 3)
    store = Store()
    decisions = Decisions(store, StoreReader(store))
    for number in range(10):
        assert not decisions.decide(ApiRequest("get", "pods", name=str(number), user="jane")).allowed
        assert len(decisions._known) <= 3


# ---------------------------------------------------------------- counts


def test_requests_for_what_nobody_serves_are_told_apart_up_to_a_bound() -> None:
    world = World()
    for number in range(metrics.KEYS_MAX + 50):
        assert world.ask(ApiRequest("get", f"nope{number}", name="a")).status == 404
    world.get("namespaces", "default")
    text = world.ask_raw(ApiRequest("get", "metrics", "elbowroom")).body.decode()
    lines = [line for line in text.splitlines() if line.startswith("apiserver_request_total{")]
    assert len(lines) <= metrics.KEYS_MAX + 2
    counted = {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}
    assert sum(counted.values()) == metrics.KEYS_MAX + 51
    assert counted['apiserver_request_total{code="404",group="",resource="",subresource="",verb="OTHER",version=""}'] >= 50
    assert counted['apiserver_request_total{code="200",group="",resource="namespaces",subresource="",verb="GET",version="v1"}'] == 1


# ---------------------------------------------------------------- what is shared, and who is asked

_word = st.sampled_from(["", "a", "10.0.0.1", "10.0.0.2", "True"])
_status_patch = st.fixed_dictionaries(
    {},
    optional={
        "metadata": st.fixed_dictionaries({}, optional={"labels": st.dictionaries(st.just("x"), st.sampled_from(["a", None]))}),
        "spec": st.fixed_dictionaries({}, optional={"nodeName": _word, "containers": st.just([{"name": "main", "image": "b"}])}),
        "status": st.fixed_dictionaries(
            {},
            optional={
                "podIP": _word,
                "podIPs": st.lists(st.fixed_dictionaries({"ip": st.sampled_from(["10.0.0.1", "10.0.0.2"])}), max_size=2),
                "conditions": st.lists(st.fixed_dictionaries({"type": st.sampled_from("AB"), "status": _word}), max_size=2),
            },
        ),
    },
)


@given(st.lists(_status_patch, min_size=1, max_size=4))
@settings(max_examples=30, deadline=None)
def test_a_status_patch_changes_nothing_that_is_stored_but_by_a_write(given_patches: list[Any]) -> None:
    world = World()
    world.create("pods", a_pod("web"), "default")
    stored = world.machine._store
    for patch in given_patches:
        before = stored.get("pods", "default", "web")
        assert before is not None
        was = copy.deepcopy(before.document)
        world.patch("pods", "web", patch, namespace="default", subresource="status")
        assert before.document == was == msgspec.json.decode(before.data)
        after = stored.get("pods", "default", "web")
        assert after is not None
        assert after.document == msgspec.json.decode(after.data)


def test_a_plugin_decides_nothing_about_resources_that_it_does_not_concern() -> None:
    world = World()
    document = {"metadata": {"name": "x", "namespace": "default", "labels": {"node-restriction.kubernetes.io/a": "b"}}, "spec": {}}
    reader = StoreReader(world.machine._store)
    nodes = ("system:nodes", "system:authenticated")
    context = Context(world.now, random.Random(1), profile_of("v1.37", {}), reader, "system:node:n", nodes)
    for plugin in chain(profile_of("v1.37", {})):
        for resource in {"events", "nodes", "pods", "replicasets.apps", *plugin.concerns} - set(plugin.concerns or ("pods",)):
            if not plugin.concerns:
                continue
            for operation, old in (("CREATE", None), ("UPDATE", document), ("DELETE", document)):
                new = copy.deepcopy(document)
                attributes = Attributes(operation, resource, "", "default", "x", new, old)
                assert plugin.admit(context, attributes) is None
                assert plugin.validate(context, attributes) is None
                assert new == document


@pytest.mark.parametrize("selector", ["spec.nodeName=a", "spec.nodeName==a", "spec.nodeName!=a", "spec.nodeName=a,metadata.name=x"])
@pytest.mark.parametrize("namespace", ["", "default", "other"])
def test_a_nodes_pods_are_found_as_any_selectors_are(selector: str, namespace: str) -> None:
    world = World()
    row = world.machine._registry.row_of(ApiRequest("list", "pods"))
    wanted = filter_of(row, ApiRequest("list", "pods", namespace=namespace, query={"fieldSelector": selector}))
    for node in ("", "a", "b"):
        document = {"metadata": {"name": "x"}, "spec": {"nodeName": node} if node else {}}
        record = Record("pods", "default", "x", 1, msgspec.json.encode(document))
        fields = {"spec.nodeName": node, "metadata.name": "x"}
        expected = namespace in ("", "default") and wanted.fields.matches(fields.__getitem__)
        assert wanted.matches(record) is expected


@pytest.mark.parametrize(
    ("spec", "warned"),
    [
        ({"containers": [{"name": "c"}]}, 0),
        ({"containers": [{"name": "c"}], "nodeSelector": {"beta.kubernetes.io/arch": "x"}}, 1),
        ({"containers": [{"name": "c", "resources": {"requests": {"memory": "1500m"}}}]}, 1),
        ({"containers": [{"name": "c"}], "imagePullSecrets": [{"name": "a"}, {"name": "a"}]}, 1),
    ],
)
def test_a_pod_is_warned_of_as_the_one_before_that_was_like_it(
    spec: dict[str, Any], warned: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pod = {"metadata": {"name": "web"}, "spec": spec}
    said = [pod_warnings.warnings_of(pod) for _ in range(2)]
    monkeypatch.setattr(pod_warnings, "REMEMBERED_BYTES_MAX", 0)
    assert said == [pod_warnings.warnings_of(pod)] * 2
    assert len(said[0]) == warned


def test_pods_that_ask_for_the_same_have_the_same_quality_and_others_their_own() -> None:
    def quality(**resources: Any) -> str:
        return _qos_of({"containers": [{"name": "c", "resources": resources}]})

    sure = {"cpu": "1", "memory": "1Gi"}
    for _ in range(2):
        assert quality() == "BestEffort"
        assert quality(requests=sure) == "Burstable"
        assert quality(limits=sure, requests=sure) == "Guaranteed"


def test_binding_a_pod_leaves_its_state_before_as_it_was() -> None:
    world = World()
    world.create("pods", a_pod("web"), "default")
    before = world.machine._store.get("pods", "default", "web")
    assert before is not None
    was = copy.deepcopy(before.document)
    binding = {"metadata": {"name": "web", "annotations": {"a": "b"}}, "target": {"kind": "Node", "name": "n"}}
    assert world.ask(create("pods", binding, namespace="default", name="web", subresource="binding")).status == 201
    assert before.document == was
    assert world.get("pods", "web", namespace="default").body["spec"]["nodeName"] == "n"


def test_pods_stay_parsed_however_many_events_tell_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "PARSED_MAX", 4)
    world = World()
    world.create("pods", a_pod("web"), "default")
    for number in range(6):
        about = {"kind": "Pod", "name": "web", "namespace": "default"}
        made = world.create("events", {"metadata": {"name": f"web.{number}"}, "involvedObject": about, "reason": "Said"}, "default")
        assert made.status == 201
    kept = world.machine._store
    pod, event = kept.get("pods", "default", "web"), kept.get("events", "default", "web.5")
    assert pod is not None and pod._document is not None
    assert event is not None and event._document is None and event.document["reason"] == "Said"
