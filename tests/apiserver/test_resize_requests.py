"""A request to ``pods/resize`` from its body to what is stored: RC-20 to RC-58, in the words of a real server."""

import copy
from typing import Any

import msgspec
import pytest
from apiserver_world import Answer, World, a_node, a_pod

from elbowroom.machine import Note, Persist
from elbowroom.rpc import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, requests
from elbowroom.wire import ApiRequest

BURSTABLE: dict[str, Any] = {"requests": {"cpu": "500m", "memory": "256Mi"}, "limits": {"cpu": "1", "memory": "512Mi"}}
CPU = "/spec/containers/0/resources/requests/cpu"


def a_world(resources: dict[str, Any] | None = None, *, profile: str = "v1.37", **spec: Any) -> World:
    """A node of 4 CPUs and 8Gi, and on it a pod ``v`` with a container ``c``."""
    world = World(profile=profile)
    world.create("nodes", a_node())
    pod = a_pod("v", node="n1", **spec)
    pod["spec"]["containers"][0]["resources"] = copy.deepcopy(BURSTABLE if resources is None else resources)
    assert world.create("pods", pod, "default").status == 201
    return world


def resize(world: World, body: Any, kind: str = STRATEGIC_PATCH, name: str = "v", **query: str) -> Answer:
    request = requests.patch("pods", name, body, namespace="default", subresource="resize", kind=kind)
    return world.ask(msgspec.structs.replace(request, query=query))


def stored(world: World) -> dict[str, Any]:
    return world.get("pods", "v", namespace="default").body


def container(**resources: Any) -> dict[str, Any]:
    """A strategic patch of container ``c``."""
    return {"spec": {"containers": [{"name": "c", "resources": resources}]}}


def put(world: World, change: Any, **query: str) -> Answer:
    """A PUT of the pod as it stands, changed by ``change``."""
    pod = stored(world)
    change(pod)
    request = requests.update("pods", "v", pod, namespace="default", subresource="resize")
    return world.ask(msgspec.structs.replace(request, query=query))


# ---------------------------------------------------------------- refusals, whole

INVALID = 'Pod "v" is invalid: '
FORBIDDEN = "FieldValueForbidden"
WRONG = "FieldValueInvalid"
QOS = (WRONG, "spec", 'Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing')
NO_REQUEST = (FORBIDDEN, "spec.containers[0].resources.requests", "Forbidden: resource requests cannot be removed")
NO_LIMIT = (FORBIDDEN, "spec.containers[0].resources.limits", "Forbidden: resource limits cannot be removed")
ONLY = (FORBIDDEN, "spec", "Forbidden: only cpu and memory resources are mutable")
COUNT = (FORBIDDEN, "spec.containers", "Forbidden: containers may not be added or removed on resize")
RENAMED = (FORBIDDEN, "spec.containers[0].name", "Forbidden: containers may not be renamed or reordered on resize")
EMPTY = ("FieldValueRequired", "spec.containers", "Required value")

REFUSALS: list[tuple[str, Any, list[tuple[str, str, str]]]] = [
    (
        STRATEGIC_PATCH,
        container(requests={"cpu": "2"}),
        [(WRONG, "spec.containers[0].resources.requests", 'Invalid value: "2": must be less than or equal to cpu limit of 1')],
    ),
    (
        STRATEGIC_PATCH,
        container(requests={"cpu": "-1"}),
        [(WRONG, "spec.containers[0].resources.requests[cpu]", 'Invalid value: "-1": must be greater than or equal to 0')],
    ),
    (STRATEGIC_PATCH, container(requests=BURSTABLE["limits"]), [QOS]),
    (STRATEGIC_PATCH, container(limits={"cpu": None}), [NO_LIMIT]),
    (STRATEGIC_PATCH, container(requests=None, limits=None), [QOS, NO_REQUEST, NO_LIMIT]),
    (STRATEGIC_PATCH, container(requests={"ephemeral-storage": "1Gi"}), [ONLY]),
    (
        STRATEGIC_PATCH,
        {"spec": {"containers": [{"name": "c", "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}]}]}},
        [ONLY],
    ),
    (STRATEGIC_PATCH, {"spec": {"containers": [{"name": "d", "image": "x"}]}}, [COUNT]),
    (
        STRATEGIC_PATCH,
        {"spec": {"initContainers": [{"name": "i", "image": "x"}]}},
        [(COUNT[0], "spec.initContainers", COUNT[2].replace("containers", "initContainers"))],
    ),
    (JSON_PATCH, [{"op": "replace", "path": "/spec/containers/0/name", "value": "d"}], [RENAMED]),
    (JSON_PATCH, [{"op": "remove", "path": "/spec/containers/0"}], [EMPTY, QOS, COUNT]),
    (JSON_PATCH, [{"op": "remove", "path": "/spec/containers/0/resources"}], [QOS, NO_REQUEST, NO_LIMIT]),
    (MERGE_PATCH, {"spec": {"containers": [{"name": "c", "resources": {"requests": BURSTABLE["requests"]}}]}}, [NO_LIMIT]),
]


@pytest.mark.parametrize(("kind", "body", "causes"), REFUSALS)
def test_an_invalid_resize_is_refused_with_all_its_errors(kind: str, body: Any, causes: list[tuple[str, str, str]]) -> None:
    world = a_world()
    before = stored(world)
    answer = resize(world, body, kind)
    errors = [f"{field}: {message}" for _, field, message in causes]
    assert answer.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": INVALID + (errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"),
        "reason": "Invalid",
        "details": {
            "name": "v",
            "kind": "Pod",
            "causes": [{"reason": reason, "message": message, "field": field} for reason, field, message in causes],
        },
        "code": 422,
    }
    assert stored(world) == before


ABOVE = "node didn't have enough allocatable resources: "


@pytest.mark.parametrize(
    ("resources", "words"),
    [
        ({"requests": {"cpu": "5"}, "limits": {"cpu": "6"}}, "cpu, requested: 5000, allocatable: 4000"),
        (
            {"requests": {"cpu": "5", "memory": "10Gi"}, "limits": {"cpu": "6", "memory": "12Gi"}},
            "cpu, requested: 5000, allocatable: 4000; memory, requested: 10737418240, allocatable: 8589934592",
        ),
    ],
)
def test_a_resize_beyond_the_node_is_refused_with_its_cause(resources: dict[str, Any], words: str) -> None:
    answer = resize(a_world(), container(**resources))
    assert answer.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f'pods "v" is forbidden: {ABOVE}{words}',
        "reason": "Forbidden",
        "details": {"name": "v", "kind": "pods", "causes": [{"reason": "NodeCapacity"}]},
        "code": 403,
    }


def test_a_limit_beyond_the_node_is_nobodys_business() -> None:
    answer = resize(a_world(), container(limits={"cpu": "9"}))
    assert (answer.status, answer.body["metadata"]["generation"]) == (200, 2)


def test_a_decrease_that_still_exceeds_the_node_is_refused_too() -> None:
    world = a_world({"requests": {"cpu": "6"}}, profile="lab")
    assert resize(world, container(requests={"cpu": "5"})).status == 200
    strict = a_world({"requests": {"cpu": "6"}})
    assert resize(strict, container(requests={"cpu": "5"})).message.endswith("cpu, requested: 5000, allocatable: 4000")


@pytest.mark.parametrize(
    ("kind", "body", "query", "code", "message"),
    [
        (
            STRATEGIC_PATCH,
            container(requests={"cpu": "abc"}),
            {},
            422,
            ' "" is invalid: patch: Invalid value: "map[spec:map[containers:[map[name:c resources:map[requests:map[cpu:abc]]]]]]": '
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        (
            JSON_PATCH,
            [{"op": "test", "path": CPU, "value": "1"}],
            {},
            422,
            "the server rejected our request due to an error in our request",
        ),
        (
            JSON_PATCH,
            [{"op": "replace", "path": "/spec/nowhere/x", "value": "1"}],
            {},
            422,
            "the server rejected our request due to an error in our request",
        ),
        (STRATEGIC_PATCH, b'{"spec":', {}, 400, "unexpected end of JSON input"),
        (
            STRATEGIC_PATCH,
            {"spec": {"nope": 1}},
            {"fieldValidation": "Strict"},
            422,
            ' "" is invalid: patch: Invalid value: "map[spec:map[nope:1]]": strict decoding error: unknown field "spec.nope"',
        ),
        (
            STRATEGIC_PATCH,
            {},
            {"dryRun": "Bad"},
            422,
            'PatchOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Bad"]: supported values: "All"',
        ),
        (
            APPLY_PATCH,
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "v"}},
            {},
            422,
            'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch',
        ),
        ("application/x-nonsense", {}, {}, 415, None),
    ],
)
def test_a_request_that_cannot_be_read_is_refused_in_upstreams_words(
    kind: str, body: Any, query: dict[str, str], code: int, message: str | None
) -> None:
    answer = resize(a_world(), body, kind, **query)
    assert answer.status == code
    assert message is None or answer.message == message


@pytest.mark.parametrize("kind", [STRATEGIC_PATCH, MERGE_PATCH, JSON_PATCH, APPLY_PATCH])
def test_a_pod_that_is_not_there_is_not_made_by_resizing_it(kind: str) -> None:
    body: Any = [] if kind == JSON_PATCH else {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "nope"}}
    answer = resize(a_world(), body, kind, name="nope", **({"fieldManager": "m"} if kind == APPLY_PATCH else {}))
    assert (answer.status, answer.body["reason"]) == (404, "NotFound")
    assert (answer.message, answer.body["details"]) == ('pods "nope" not found', {"name": "nope", "kind": "pods"})


@pytest.mark.parametrize("verb", ["create", "delete", "list", "watch", "deletecollection"])
def test_only_get_patch_and_update_are_served(verb: str) -> None:
    answer = a_world().ask(ApiRequest(verb, "pods", namespace="default", name="v", subresource="resize"))
    assert (answer.status, answer.body["reason"]) == (405, "MethodNotAllowed")


# ---------------------------------------------------------------- what is kept

WAYS: list[tuple[str, Any]] = [
    (STRATEGIC_PATCH, container(requests={"cpu": "800m"})),
    (
        MERGE_PATCH,
        {"spec": {"containers": [{"name": "c", "resources": {**BURSTABLE, "requests": {"cpu": "800m", "memory": "256Mi"}}}]}},
    ),
    (JSON_PATCH, [{"op": "replace", "path": CPU, "value": "800m"}]),
    (APPLY_PATCH, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "v"}, **container(requests={"cpu": "800m"})}),
]


@pytest.mark.parametrize(("kind", "body"), WAYS)
def test_each_way_to_ask_changes_the_same(kind: str, body: Any) -> None:
    world = a_world()
    before = stored(world)
    answer = resize(world, body, kind, **({"fieldManager": "m", "force": "true"} if kind == APPLY_PATCH else {}))
    assert answer.status == 200
    after = stored(world)
    assert answer.body == after
    assert after["spec"]["containers"][0].pop("resources") == {**BURSTABLE, "requests": {"cpu": "800m", "memory": "256Mi"}}
    assert before["spec"]["containers"][0].pop("resources") == BURSTABLE
    assert (after["spec"], after["status"], after["metadata"]["generation"]) == (before["spec"], before["status"], 2)


def test_nothing_but_resources_is_kept_of_a_put() -> None:
    world = a_world()
    before = stored(world)

    def change(pod: dict[str, Any]) -> None:
        pod["metadata"] |= {"labels": {"x": "y"}, "annotations": {"x": "y"}, "finalizers": ["a.b/c"]}
        pod["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "Pod", "name": "o", "uid": "u"}]
        pod["spec"] |= {"nodeName": "n2", "activeDeadlineSeconds": 5, "tolerations": [{"operator": "Exists"}]}
        pod["spec"]["containers"][0] |= {"image": "other", "env": [{"name": "A", "value": "b"}], "command": ["x"]}
        pod["status"] = {"phase": "Failed", "qosClass": "Guaranteed"}

    answer = put(world, change)
    assert answer.status == 200
    for part in (before, answer.body):
        del part["metadata"]["managedFields"], part["metadata"]["resourceVersion"]
    assert answer.body == before


def test_an_image_in_the_same_request_is_ignored_and_the_resize_is_not() -> None:
    body = container(requests={"cpu": "510m"})
    body["spec"]["containers"][0]["image"] = "other"
    after = resize(a_world(), body).body
    kept = after["spec"]["containers"][0]
    assert (kept["image"], kept["resources"]["requests"]["cpu"], after["metadata"]["generation"]) == (
        "registry.k8s.io/pause:3.10",
        "510m",
        2,
    )


@pytest.mark.parametrize("kind", [STRATEGIC_PATCH, MERGE_PATCH])
def test_a_field_that_nobody_knows_is_warned_of_and_ignored(kind: str) -> None:
    answer = resize(a_world(), {"spec": {"nope": 1}}, kind)
    assert (answer.status, answer.warnings) == (200, ('unknown field "spec.nope"',))


def test_a_removed_request_becomes_its_limit() -> None:
    after = resize(a_world(), container(requests={"cpu": None})).body
    assert after["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "256Mi"}


def test_a_put_of_what_was_read_long_ago_is_a_conflict_and_one_without_a_version_is_not() -> None:
    world = a_world()
    old = stored(world)
    resize(world, container(requests={"cpu": "600m"}))
    stale = world.update("pods", "v", old, namespace="default", subresource="resize")
    assert (stale.status, stale.body["reason"], stale.body["details"]) == (409, "Conflict", {"name": "v", "kind": "pods"})
    assert stale.message == (
        'Operation cannot be fulfilled on pods "v": the object has been modified; please apply your changes to the latest version '
        "and try again"
    )
    del old["metadata"]["resourceVersion"]
    blind = world.update("pods", "v", old, namespace="default", subresource="resize")
    assert (blind.status, blind.body["metadata"]["generation"]) == (200, 3)


def test_a_dry_run_is_judged_shown_and_forgotten() -> None:
    world = a_world()
    before = stored(world)
    tried = resize(world, container(requests={"cpu": "600m"}), dryRun="All")
    assert (tried.status, tried.body["metadata"]["generation"]) == (200, 2)
    assert tried.body["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "600m"
    assert resize(world, container(requests={"cpu": "5"}, limits={"cpu": "6"}), dryRun="All").status == 403
    assert resize(world, container(requests={"cpu": "2"}), dryRun="All").status == 422
    assert stored(world) == before


# ---------------------------------------------------------------- who is asked first


def with_bounds(world: World) -> World:
    """A LimitRange of 1500m for a container, and a quota of 2 CPUs, which the pod has half of."""
    bounds = [{"type": "Container", "max": {"cpu": "1500m"}}]
    world.create("limitranges", {"metadata": {"name": "lr"}, "spec": {"limits": bounds}}, "default")
    hard = {"requests.cpu": "1"}
    world.create("resourcequotas", {"metadata": {"name": "rq"}, "spec": {"hard": hard}}, "default")
    status = {"status": {"hard": hard, "used": {"requests.cpu": "500m"}}}
    world.patch("resourcequotas", "rq", status, namespace="default", subresource="status", kind=MERGE_PATCH)
    return world


@pytest.mark.parametrize(
    ("resources", "code", "words"),
    [
        (
            {"requests": {"cpu": "7"}, "limits": {"cpu": "6"}},
            422,
            'Pod "v" is invalid: spec.containers[0].resources.requests: Invalid value: "7": '
            "must be less than or equal to cpu limit of 6",
        ),
        (
            {"requests": {"cpu": "5"}, "limits": {"cpu": "6"}},
            403,
            'pods "v" is forbidden: maximum cpu usage per Container is 1500m, but limit is 6',
        ),
        (
            {"requests": {"cpu": "1200m"}, "limits": {"cpu": "1500m"}},
            403,
            'pods "v" is forbidden: exceeded quota: rq, requested: requests.cpu=700m, used: requests.cpu=500m, '
            "limited: requests.cpu=1",
        ),
        ({"requests": {"cpu": "1"}, "limits": {"cpu": "1500m"}}, 200, ""),
    ],
)
def test_validation_speaks_before_the_limit_range_and_that_before_the_quota(
    resources: dict[str, Any], code: int, words: str
) -> None:
    answer = resize(with_bounds(a_world()), container(**resources))
    assert (answer.status, answer.message) == (code, words)


def test_the_node_is_asked_after_the_limit_range_and_before_the_quota() -> None:
    world = a_world()
    hard = {"requests.cpu": "1"}
    world.create("resourcequotas", {"metadata": {"name": "rq"}, "spec": {"hard": hard}}, "default")
    used = {"status": {"hard": hard, "used": {"requests.cpu": "500m"}}}
    world.patch("resourcequotas", "rq", used, namespace="default", subresource="status", kind=MERGE_PATCH)
    assert "enough allocatable" in resize(world, container(requests={"cpu": "5"}, limits={"cpu": "6"})).message
    lab = a_world(profile="lab")
    lab.create("limitranges", {"metadata": {"name": "lr"}, "spec": {"limits": [{"type": "Pod", "max": {"cpu": "4"}}]}}, "default")
    assert "maximum cpu usage per Pod" in resize(lab, container(requests={"cpu": "5"}, limits={"cpu": "6"})).message


def test_features_that_the_node_lacks_are_told_before_its_room() -> None:
    world = a_world({"requests": {"cpu": "100m"}})
    level = {"spec": {"resources": {"requests": {"cpu": "5"}}}}
    words = "pod update requires features InPlacePodLevelResourcesVerticalScaling which are not available on node"
    assert words in resize(world, level).message
    status = {"status": {"declaredFeatures": ["InPlacePodLevelResourcesVerticalScaling"]}}
    world.patch("nodes", "n1", status, subresource="status", kind=MERGE_PATCH)
    assert "cpu, requested: 5000, allocatable: 4000" in resize(world, level).message


def test_a_limit_ranges_defaults_are_filled_in_on_resize() -> None:
    world = a_world({"requests": {"cpu": "100m"}})
    bounds = [{"type": "Container", "default": {"memory": "256Mi"}, "defaultRequest": {"memory": "128Mi"}}]
    world.create("limitranges", {"metadata": {"name": "lr"}, "spec": {"limits": bounds}}, "default")
    after = resize(world, container(requests={"cpu": "200m"})).body
    assert after["spec"]["containers"][0]["resources"] == {
        "requests": {"cpu": "200m", "memory": "128Mi"},
        "limits": {"memory": "256Mi"},
    }
    assert "annotations" not in after["metadata"]  # the plugin's note is one of the things that a resize cannot change


# ---------------------------------------------------------------- rights


def asked_by(world: World, user: str, verb: str, subresource: str = "resize") -> Answer:
    body = b"{}" if verb == "patch" else b'{"metadata":{"name":"v"}}' if verb == "update" else b""
    return world.ask(
        ApiRequest(
            verb,
            "pods",
            namespace="default",
            name="v",
            subresource=subresource,
            body=body,
            content_type=STRATEGIC_PATCH,
            user=user,
            groups=("system:authenticated",),
        ),
        peer="http/1",
    )


@pytest.mark.parametrize("verb", ["get", "patch", "update"])
def test_who_has_no_right_to_resize_is_told_so(verb: str) -> None:
    answer = asked_by(a_world(), "user", verb)
    words = f'User "user" cannot {verb} resource "pods/resize" in API group "" in the namespace "default"'
    assert (answer.status, answer.message) == (403, f'pods "v" is forbidden: {words}')
    assert answer.body["details"] == {"name": "v", "kind": "pods"}


# ---------------------------------------------------------------- what a resize costs


def test_a_resize_is_one_write_of_one_object() -> None:
    world = a_world()
    resize(world, container(requests={"cpu": "600m"}))  # whoever manages the fields is known from here on
    before = len(world.effects)
    resize(world, container(requests={"cpu": "700m"}))
    made = world.effects[before:]
    assert sum(isinstance(effect, Persist) for effect in made) == 1
    commits = [effect for effect in made if isinstance(effect, Note) and effect.name == "commit"]
    assert [commit.fields["resource"] for commit in commits] == ["pods"]


def test_a_quota_is_charged_in_the_same_commit_and_only_if_it_is_charged_more() -> None:
    world = with_bounds(a_world())
    before = len(world.effects)
    resize(world, container(requests={"cpu": "700m"}))
    made = [effect.key.partition("/")[2].split("/")[0] for effect in world.effects[before:] if isinstance(effect, Persist)]
    assert len(made) == 2
    used = world.get("resourcequotas", "rq", namespace="default").body["status"]["used"]
    assert used == {"requests.cpu": "700m"}
    for body in (container(requests={"cpu": "600m"}), container(limits={"cpu": "1100m"}), container(requests={"cpu": "0.6"})):
        before = len(world.effects)
        assert resize(world, body).status == 200
        assert sum(isinstance(effect, Persist) for effect in world.effects[before:]) <= 1
    assert world.get("resourcequotas", "rq", namespace="default").body["status"]["used"] == {"requests.cpu": "700m"}


@pytest.mark.parametrize(
    "body",
    [
        container(requests={"cpu": "500m"}),
        container(requests={"cpu": "0.5"}),
        container(requests={"memory": "268435456"}),
        {"metadata": {"labels": {"a": "b"}}, "status": {"phase": "Failed"}},
    ],
)
def test_a_resize_to_what_is_there_is_no_new_generation(body: Any) -> None:
    world = a_world()
    answer = resize(world, body)
    assert (answer.status, answer.body["metadata"]["generation"]) == (200, 1)


@pytest.mark.parametrize("body", [container(requests={"cpu": "2"}), container(requests={"cpu": "5"}, limits={"cpu": "6"})])
def test_a_refused_resize_writes_nothing(body: Any) -> None:
    world = a_world()
    before = len(world.effects)
    assert resize(world, body).status in (403, 422)
    assert not any(isinstance(effect, Persist) for effect in world.effects[before:])


# ---------------------------------------------------------------- the pod itself


@pytest.mark.parametrize(("kind", "body"), [way for way in WAYS if way[0] != MERGE_PATCH])
def test_resources_are_not_changed_through_the_pod_itself(kind: str, body: Any) -> None:
    world = a_world()
    query = {"fieldManager": "m", "force": "true"} if kind == APPLY_PATCH else {}
    answer = world.ask(msgspec.structs.replace(requests.patch("pods", "v", body, namespace="default", kind=kind), query=query))
    (cause,) = answer.body["details"]["causes"]
    assert (answer.status, cause["field"], cause["reason"]) == (422, "spec", FORBIDDEN)
    assert answer.message == f'Pod "v" is invalid: spec: {cause["message"]}'
    first, hunk, *lines = cause["message"].splitlines()
    assert first.startswith("Forbidden: pod updates may not change fields other than `spec.containers[*].image`,")
    assert hunk.startswith("@@ -17,7 +17,")
    assert {'-     "cpu": "500m",', '+     "cpu": "800m",'} <= set(lines)


def test_a_merge_patch_of_the_pod_itself_must_repeat_the_image_too() -> None:
    world = a_world()
    kind, body = WAYS[1]
    causes = world.patch("pods", "v", body, namespace="default", kind=kind).body["details"]["causes"]
    assert [cause["field"] for cause in causes][-2:] == ["spec.containers[0].image", "spec"]


def test_an_image_is_changed_through_the_pod_itself() -> None:
    world = a_world()
    answer = world.patch("pods", "v", {"spec": {"containers": [{"name": "c", "image": "x"}]}}, namespace="default")
    assert (answer.status, answer.body["metadata"]["generation"]) == (200, 2)
