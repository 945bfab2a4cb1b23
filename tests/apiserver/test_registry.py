"""The registry's verbs: names, conflicts, generations, options, subresources, and the words of refusals."""

import copy
from typing import Any

import pytest
from apiserver_world import Answer, World, a_node, a_pod, requests_of

from elbowroom.rpc import JSON_PATCH, MERGE_PATCH, requests
from elbowroom.wire import ApiRequest

CONFIG = {"metadata": {"name": "c"}, "data": {"k": "v"}}


def a_world(**config: Any) -> World:
    world = World(**config)
    assert world.create("nodes", a_node()).status == 201
    return world


def with_query(request: ApiRequest, **query: str) -> ApiRequest:
    import msgspec

    return msgspec.structs.replace(request, query=query)


# ---------------------------------------------------------------- create


def test_a_created_object_gets_its_identity_from_the_server() -> None:
    world = World()
    given = {
        "metadata": {"name": "c", "uid": "mine", "generation": 9, "creationTimestamp": "2001-01-01T00:00:00Z"},
        "data": {"k": "v"},
    }
    made = world.create("configmaps", given, "default").body
    meta = made["metadata"]
    assert list(made) == ["kind", "apiVersion", "metadata", "data"]
    assert meta["uid"] != "mine" and len(meta["uid"]) == 36 and meta["uid"][14] == "4"
    assert meta["creationTimestamp"] == "2027-01-15T08:00:00Z" and "generation" not in meta
    assert meta["namespace"] == "default" and meta["resourceVersion"] == "7"


def test_uids_and_generated_names_come_from_the_seed() -> None:
    def made(seed: int) -> tuple[str, str]:
        meta = World(seed=seed).create("configmaps", {"metadata": {"generateName": "c-"}}, "default").body["metadata"]
        return meta["name"], meta["uid"]

    assert made(1) == made(1) != made(2)


def test_a_generated_name_has_five_characters_and_no_vowels() -> None:
    name = World().create("configmaps", {"metadata": {"generateName": "x" * 70}}, "default").body["metadata"]["name"]
    assert name[:58] == "x" * 58 and len(name) == 63 and set(name[58:]) <= set("bcdfghjklmnpqrstvwxz2456789")


def test_generated_names_avoid_those_taken() -> None:
    world = World()
    names = [
        world.create("configmaps", {"metadata": {"generateName": ""}} | {"metadata": {"generateName": "c-"}}, "default")
        for _ in range(50)
    ]
    assert {answer.status for answer in names} == {201} and len({answer.body["metadata"]["name"] for answer in names}) == 50


CREATE_REFUSALS: list[tuple[str, str, Any, int, str]] = [
    (
        "configmaps",
        "default",
        {"metadata": {"name": "c", "namespace": "other"}},
        400,
        "the namespace of the provided object does not match the namespace sent on the request",
    ),
    ("configmaps", "nope", CONFIG, 404, 'namespaces "nope" not found'),
    (
        "configmaps",
        "default",
        {"metadata": {}},
        422,
        'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required',
    ),
    (
        "configmaps",
        "default",
        {"metadata": {"name": "c", "resourceVersion": "5"}},
        500,
        "resourceVersion should not be set on objects to be created",
    ),
    (
        "configmaps",
        "default",
        {"kind": "Pod", "metadata": {"name": "c"}},
        400,
        'Pod in version "v1" cannot be handled as a ConfigMap: converting (v1.Pod) to (core.ConfigMap): unknown conversion',
    ),
    ("configmaps", "default", b"{", 400, "couldn't get version/kind; json parse error: unexpected end of JSON input"),
    (
        "configmaps",
        "default",
        {"metadata": {"name": "c"}, "data": {"k": 1}},
        400,
        "json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
    ),
    ("namespaces", "", {"metadata": {"name": "UP"}}, 422, "a lowercase RFC 1123 label must consist of"),
    (
        "nodes",
        "",
        {"metadata": {"name": "n", "labels": {"-": "x"}}},
        422,
        'metadata.labels: Invalid value: "-": name part must consist of',
    ),
]


@pytest.mark.parametrize(("resource", "namespace", "body", "code", "words"), CREATE_REFUSALS)
def test_what_cannot_be_created_is_refused_in_upstreams_words(
    resource: str, namespace: str, body: Any, code: int, words: str
) -> None:
    world = World()
    before = len(world.disk)
    answer = world.create(resource, body, namespace)
    assert answer.status == code and words in answer.message
    assert answer.body["kind"] == "Status" and answer.body["code"] == code
    assert len(world.disk) == before


def test_a_name_that_is_taken_is_409() -> None:
    world = World()
    world.create("configmaps", CONFIG, "default")
    answer = world.create("configmaps", CONFIG, "default")
    assert (answer.status, answer.body["reason"], answer.message) == (409, "AlreadyExists", 'configmaps "c" already exists')
    assert answer.body["details"] == {"name": "c", "kind": "configmaps"}


# ---------------------------------------------------------------- update


def test_an_update_of_what_has_changed_meanwhile_is_a_conflict() -> None:
    world = World()
    first = world.create("configmaps", CONFIG, "default").body
    world.update("configmaps", "c", {**first, "data": {"k": "w"}}, namespace="default")
    answer = world.update("configmaps", "c", {**first, "data": {"k": "x"}}, namespace="default")
    assert (answer.status, answer.body["reason"]) == (409, "Conflict")
    assert answer.message == (
        'Operation cannot be fulfilled on configmaps "c": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )
    assert world.get("configmaps", "c", namespace="default").body["data"] == {"k": "w"}


def test_an_update_without_a_version_overwrites_where_the_kind_allows_it() -> None:
    world = World()
    world.create("configmaps", CONFIG, "default")
    assert world.update("configmaps", "c", {**CONFIG, "data": {}}, namespace="default").status == 200
    budget = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1}}
    world.create("poddisruptionbudgets.policy", budget, "default")
    answer = world.update("poddisruptionbudgets.policy", "b", budget, namespace="default")
    assert answer.status == 422 and "metadata.resourceVersion: Invalid value: 0: must be specified for an update" in answer.message


@pytest.mark.parametrize(("said", "status"), [("abc", 201), ("-1", 201), ("0", 201), ("", 201), ("7", 500)])
def test_an_object_that_is_created_is_of_no_revision_and_nonsense_is_none(said: str, status: int) -> None:
    made = World().create("configmaps", {**CONFIG, "metadata": {"name": "c", "resourceVersion": said}}, "default")
    assert made.status == status
    if status == 500:
        assert made.message == "resourceVersion should not be set on objects to be created"


@pytest.mark.parametrize("said", ["abc", "99999999999999999999"])
def test_an_update_from_a_revision_that_is_no_number_is_an_internal_error(said: str) -> None:
    world = World()
    world.create("configmaps", CONFIG, "default")
    changed = {**CONFIG, "metadata": {"name": "c", "resourceVersion": said}}
    assert world.update("configmaps", "c", changed, namespace="default").status == 500


def test_an_update_that_changes_nothing_makes_no_revision_and_no_event() -> None:
    world = World()
    made = world.create("configmaps", CONFIG, "default").body
    watch = world.watch("configmaps", "default", resourceVersion=made["metadata"]["resourceVersion"])
    before = dict(world.disk)
    answer = world.update("configmaps", "c", made, namespace="default")
    assert answer.body == made and world.disk == before and watch.events == []


def test_an_update_cannot_change_identity_or_times() -> None:
    world = World()
    made = world.create("configmaps", CONFIG, "default").body
    wanted = {
        **CONFIG,
        "metadata": {"name": "c", "creationTimestamp": None, "generation": 5, "deletionTimestamp": "2001-01-01T00:00:00Z"},
    }
    assert world.update("configmaps", "c", wanted, namespace="default").body["metadata"] == made["metadata"]
    other = world.update("configmaps", "c", {**CONFIG, "metadata": {"name": "c", "uid": "x"}}, namespace="default")
    assert other.status == 409 and "Precondition failed: UID in precondition: x, UID in object meta: " in other.message


@pytest.mark.parametrize(
    ("meta", "words"),
    [
        ({"name": "d"}, "the name of the object (d) does not match the name on the URL (c)"),
        ({}, "the name of the object (c based on URL) was undeterminable: name must be provided"),
        ({"name": "c", "namespace": "x"}, "the namespace of the provided object does not match the namespace sent on the request"),
    ],
)
def test_the_body_must_name_what_the_url_names(meta: dict[str, str], words: str) -> None:
    world = World()
    world.create("configmaps", CONFIG, "default")
    answer = world.update("configmaps", "c", {"metadata": meta}, namespace="default")
    assert (answer.status, answer.message) == (400, words)


def test_a_missing_object_is_404_with_its_group() -> None:
    answer = World().get("leases.coordination.k8s.io", "l", namespace="default")
    assert (answer.status, answer.message) == (404, 'leases.coordination.k8s.io "l" not found')
    assert answer.body["details"] == {"name": "l", "group": "coordination.k8s.io", "kind": "leases"}


# ---------------------------------------------------------------- patch


def test_a_resize_raises_the_generation_and_a_label_does_not() -> None:
    world = a_world()
    world.create("pods", a_pod(node="n1"), "default")
    resized = world.patch("pods", "a", requests_of("200m"), namespace="default", subresource="resize").body
    assert resized["metadata"]["generation"] == 2
    assert resized["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "200m", "memory": "64Mi"}
    labelled = world.patch("pods", "a", {"metadata": {"labels": {"l": "m"}}}, namespace="default").body
    assert labelled["metadata"]["generation"] == 2 and labelled["metadata"]["labels"] == {"l": "m"}


def test_the_resize_subresource_can_be_read() -> None:
    world = a_world()
    made = world.create("pods", a_pod(), "default").body
    assert world.get("pods", "a", namespace="default", subresource="resize").body == made


def test_a_patch_that_names_another_version_is_a_conflict() -> None:
    world = World()
    world.create("configmaps", CONFIG, "default")
    answer = world.patch("configmaps", "c", {"metadata": {"resourceVersion": "1"}}, namespace="default", kind=MERGE_PATCH)
    assert (answer.status, answer.body["reason"]) == (409, "Conflict")


def test_a_patch_of_the_uid_is_told_twice_as_upstream_does() -> None:
    world = World()
    world.create("configmaps", CONFIG, "default")
    answer = world.patch("configmaps", "c", {"metadata": {"uid": "x"}}, namespace="default", kind=MERGE_PATCH)
    assert answer.message == 'ConfigMap "c" is invalid: metadata.uid: Invalid value: "x": field is immutable'
    assert [cause["field"] for cause in answer.body["details"]["causes"]] == ["metadata.uid", "metadata.uid"]


PATCH_REFUSALS: list[tuple[str, Any, int, str]] = [
    (
        JSON_PATCH,
        [{"op": "test", "path": "/data/k", "value": "w"}],
        422,
        "the server rejected our request due to an error in our request",
    ),
    (JSON_PATCH, b"[", 400, "error decoding patch: unexpected end of JSON input"),
    (requests.STRATEGIC_PATCH, b"{", 400, "unexpected end of JSON input"),
    (
        requests.STRATEGIC_PATCH,
        {"data": [1]},
        422,
        ' "" is invalid: patch: Invalid value: "map[data:[1]]": cannot restore map from slice',
    ),
    (MERGE_PATCH, [], 400, "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"),
    (MERGE_PATCH, {"apiVersion": "v2"}, 422, 'no kind "ConfigMap" is registered for version "v2"'),
    (MERGE_PATCH, {"metadata": {"name": "d"}}, 400, "the name of the object (d) does not match the name on the URL (c)"),
    ("text/plain", {}, 415, "415: Unsupported Media Type"),
]


@pytest.mark.parametrize(("kind", "body", "code", "words"), PATCH_REFUSALS)
def test_a_patch_that_cannot_be_is_refused_in_upstreams_words(kind: str, body: Any, code: int, words: str) -> None:
    world = World()
    world.create("configmaps", CONFIG, "default")
    answer = world.patch("configmaps", "c", body, namespace="default", kind=kind)
    assert answer.status == code and words in answer.message


def test_an_object_that_would_grow_too_large_is_refused() -> None:
    world = World()
    world.create("configmaps", CONFIG, "default")
    for number in range(2):
        answer = world.patch(
            "configmaps",
            "c",
            {"metadata": {"annotations": {}}, "binaryData": {f"b{number}": "A" * 1_000_000}},
            namespace="default",
            kind=MERGE_PATCH,
        )
    assert answer.status in (413, 422) and "k" in world.get("configmaps", "c", namespace="default").body["data"]


# ---------------------------------------------------------------- options


def test_a_dry_run_answers_and_leaves_no_trace() -> None:
    world = World()
    made = world.create("configmaps", CONFIG, "default").body
    before = dict(world.disk)
    create = with_query(requests.create("configmaps", {"metadata": {"name": "d"}}, namespace="default"), dryRun="All")
    patch = with_query(requests.patch("configmaps", "c", {"data": {"k": "w"}}, namespace="default", kind=MERGE_PATCH), dryRun="All")
    remove = with_query(requests.delete("configmaps", "c", namespace="default"), dryRun="All")
    assert world.ask(create).status == 201 and "resourceVersion" not in world.ask(create).body["metadata"]
    patched = world.ask(patch).body
    assert patched["data"] == {"k": "w"} and patched["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    assert world.ask(remove).body["status"] == "Success"
    assert world.disk == before and world.get("configmaps", "c", namespace="default").body == made


@pytest.mark.parametrize(
    ("validation", "status", "warnings"), [("", 201, 1), ("Warn", 201, 1), ("Ignore", 201, 0), ("Strict", 400, 0)]
)
def test_unknown_fields_are_warned_of_ignored_or_refused(validation: str, status: int, warnings: int) -> None:
    create = requests.create("configmaps", {"metadata": {"name": "c"}, "nope": 1}, namespace="default")
    answer = World().ask(with_query(create, fieldValidation=validation))
    assert (answer.status, len(answer.warnings)) == (status, warnings)
    if warnings:
        assert answer.warnings == ('unknown field "nope"',)
    if status == 400:
        assert (
            answer.message
            == 'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "nope"'
        )


def test_a_merge_patchs_unknown_fields_are_told_in_the_order_of_their_keys() -> None:
    world = a_world()
    world.create("pods", a_pod(), "default")
    extra = {"z": 1, "containers": [{"name": "c", "image": "i", "y": 1, "b": 2}], "a": 3}
    answer = world.patch("pods", "a", {"spec": extra}, namespace="default", kind=MERGE_PATCH)
    paths = ("spec.a", "spec.containers[0].b", "spec.containers[0].y", "spec.z")
    assert answer.warnings == tuple(f'unknown field "{path}"' for path in paths)


def a_log(pod: dict[str, Any], **query: str) -> tuple[int, str, bytes]:
    """What ``pods/log`` answers for a pod as it is: code, message, text."""
    world = a_world()
    world.create("nodes", a_node())
    status = pod.pop("status", {})
    assert world.create("pods", pod, "default").status == 201
    if status:
        assert world.patch("pods", "a", {"status": status}, namespace="default", subresource="status").status == 200
    request = ApiRequest("get", "pods", namespace="default", name="a", subresource="log", query=query)
    body = world.ask_raw(request)
    return body.status, Answer(body).message if body.status != 200 else "", body.body if body.status == 200 else b""


def state(last: dict[str, Any] | None = None, **now: dict[str, Any]) -> dict[str, Any]:
    image = {"image": "i", "imageID": "", "ready": False, "restartCount": 0}
    return {"status": {"containerStatuses": [{"name": "c", "state": now, "lastState": last or {}, **image}]}}


TWO = a_pod(initContainers=[{"name": "i", "image": "i"}])
RAN = {"terminated": {"exitCode": 0}}


@pytest.mark.parametrize(
    ("pod", "query", "code", "words"),
    [
        (a_pod(), {}, 200, ""),
        (a_pod(), {"container": "x"}, 400, "container x is not valid for pod a"),
        (TWO, {}, 400, "a container name must be specified for pod a, choose one of: [c] or one of the init containers: [i]"),
        (a_pod(node="n1"), {}, 400, 'container "c" in pod "a" is not available'),
        (a_pod(node="n1") | state(running={}), {}, 200, ""),
        (a_pod(node="n1") | state(terminated={"exitCode": 0}), {}, 200, ""),
        (
            a_pod(node="n1") | state(waiting={"reason": "ContainerCreating"}),
            {},
            400,
            'container "c" in pod "a" is waiting to start: ContainerCreating',
        ),
        (a_pod(node="n1") | state(RAN, waiting={"reason": "CrashLoopBackOff"}), {}, 200, ""),
        (a_pod(node="n1") | state(running={}), {"previous": "true"}, 400, 'previous terminated container "c" in pod "a" not found'),
        (a_pod(node="n1") | state(RAN, running={}), {"previous": "true"}, 200, ""),
    ],
)
def test_a_containers_log_is_empty_once_it_has_run(pod: dict[str, Any], query: dict[str, str], code: int, words: str) -> None:
    assert a_log(copy.deepcopy(pod), **query) == (code, words, b"")


def test_a_templates_pod_spec_is_defaulted_and_checked_as_such() -> None:
    world = a_world()
    container = {"name": "c", "image": "i:1", "resources": {"limits": {"cpu": "1"}}}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}}
    deployment = {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}
    made = world.create("deployments.apps", deployment, "default").body["spec"]["template"]["spec"]
    assert made["containers"][0]["resources"] == {"limits": {"cpu": "1"}} and made["schedulerName"] == "default-scheduler"
    assert "enableServiceLinks" not in made
    container["resources"] = {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}
    assert world.patch("deployments.apps", "d", {"spec": {"template": template}}, namespace="default").message == (
        'Deployment.apps "d" is invalid: spec.template.spec.containers[0].resources.requests: Invalid value: "2": '
        "must be less than or equal to cpu limit of 1"
    )


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (
            {"dryRun": "Some"},
            'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All"',
        ),
        ({"fieldManager": "x" * 129}, "fieldManager: Too long: may not be more than 128 bytes"),
        ({"fieldValidation": "x"}, 'fieldValidation: Unsupported value: "x": supported values: "", "Ignore", "Strict", "Warn"'),
    ],
)
def test_options_are_validated(query: dict[str, str], words: str) -> None:
    answer = World().ask(with_query(requests.create("configmaps", CONFIG, namespace="default"), **query))
    assert answer.status == 422 and words in answer.message


# ---------------------------------------------------------------- status and other subresources


def test_status_is_written_by_its_subresource_alone() -> None:
    world = a_world()
    world.create("pods", a_pod(node="n1"), "default")
    ignored = world.patch("pods", "a", {"status": {"phase": "Running"}}, namespace="default").body
    assert ignored["status"]["phase"] == "Pending"
    wanted = {"status": {"phase": "Running"}, "spec": {"schedulerName": "x"}}
    written = world.patch("pods", "a", wanted, namespace="default", subresource="status").body
    assert (written["status"]["phase"], written["spec"]["schedulerName"], written["metadata"]["generation"]) == (
        "Running",
        "default-scheduler",
        1,
    )


def test_a_patch_of_a_nodes_status_sticks() -> None:
    world = a_world()
    patched = world.patch("nodes", "n1", {"status": {"allocatable": {"cpu": "2"}}}, subresource="status").body
    assert patched["status"]["allocatable"] == {"cpu": "2", "memory": "8Gi", "pods": "110"}
    assert patched["status"]["capacity"]["cpu"] == "4"


def a_binding(node: str = "n1", **meta: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a", **meta}, "target": {"kind": "Node", "name": node}}


def bound(world: World, body: dict[str, Any]) -> Any:
    return world.ask(requests.create("pods", body, namespace="default", name="a", subresource="binding"), "scheduler")


def test_a_binding_assigns_the_pod_and_clears_its_nomination() -> None:
    world = a_world()
    world.create("pods", a_pod(), "default")
    world.patch("pods", "a", {"status": {"nominatedNodeName": "n1"}}, namespace="default", subresource="status", peer="scheduler")
    answer = bound(world, a_binding(annotations={"x": "y"}))
    assert (answer.status, answer.body["status"], answer.body["code"]) == (201, "Success", 201)
    pod = world.get("pods", "a", namespace="default").body
    assert pod["spec"]["nodeName"] == "n1" and "nominatedNodeName" not in pod["status"]
    assert pod["metadata"]["annotations"] == {"x": "y"} and pod["metadata"]["generation"] == 1
    assert [(c["type"], c["status"]) for c in pod["status"]["conditions"]] == [("PodScheduled", "True")]


@pytest.mark.parametrize(
    ("spec", "binding", "code", "words"),
    [
        (
            {"nodeName": "n2"},
            a_binding(),
            409,
            'Operation cannot be fulfilled on pods/binding "a": pod a is already assigned to node "n2"',
        ),
        ({"schedulingGates": [{"name": "a.b/c"}]}, a_binding(), 409, "pod a has non-empty .spec.schedulingGates"),
        ({}, a_binding(uid="x"), 409, "Precondition failed: UID in precondition: x"),
        ({}, a_binding(""), 500, "target.name: Required value"),
        ({}, {"metadata": {"name": "b"}, "target": {"name": "n1"}}, 400, "name in URL does not match name in Binding object"),
    ],
)
def test_a_binding_that_cannot_be_is_refused_in_upstreams_words(spec: Any, binding: Any, code: int, words: str) -> None:
    world = a_world()
    world.create("pods", a_pod(**({"node": spec["nodeName"]} if "nodeName" in spec else spec)), "default")
    answer = bound(world, binding)
    assert answer.status == code and words in answer.message


def test_scale_reads_and_writes_replicas() -> None:
    world = World()
    labels = {"app": "x"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    made = world.create(
        "replicasets.apps",
        {"metadata": {"name": "r"}, "spec": {"selector": {"matchLabels": labels}, "template": template}},
        "default",
    )
    assert made.status == 201 and made.body["spec"]["replicas"] == 1
    scale = world.get("replicasets.apps", "r", namespace="default", subresource="scale").body
    assert (scale["kind"], scale["spec"], scale["status"]) == ("Scale", {"replicas": 1}, {"replicas": 0, "selector": "app=x"})
    scaled = world.patch(
        "replicasets.apps", "r", {"spec": {"replicas": 3}}, namespace="default", subresource="scale", kind=MERGE_PATCH
    )
    assert scaled.body["spec"] == {"replicas": 3}
    stored = world.get("replicasets.apps", "r", namespace="default").body
    assert (stored["spec"]["replicas"], stored["metadata"]["generation"]) == (3, 2)
    refused = world.patch(
        "replicasets.apps", "r", {"spec": {"replicas": -1}}, namespace="default", subresource="scale", kind=MERGE_PATCH
    )
    assert refused.status == 422 and "spec.replicas: Invalid value: -1: must be greater than or equal to 0" in refused.message
    stale = world.update("replicasets.apps", "r", {**scale, "spec": {"replicas": 5}}, namespace="default", subresource="scale")
    assert stale.status == 409


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (ApiRequest("get", "nopes", name="x"), 404),
        (ApiRequest("get", "pods", namespace="default", name="a", subresource="nope"), 404),
        (ApiRequest("create", "pods", namespace="default", name="a", subresource="resize", body=b"{}"), 405),
        (ApiRequest("delete", "pods", namespace="default", name="a", subresource="resize"), 405),
        (ApiRequest("frob", "pods", namespace="default"), 405),
        (ApiRequest("get", "pods", "apps", name="x"), 404),
        (ApiRequest("get", "pods", version="v2", name="x"), 404),
    ],
)
def test_what_is_not_served_is_404_and_verbs_that_are_not_405(request_: ApiRequest, code: int) -> None:
    assert World().ask(request_).status == code


def test_ephemeral_containers_are_added_and_never_taken_away() -> None:
    world = a_world()
    world.create("pods", a_pod(), "default")
    added = {"spec": {"ephemeralContainers": [{"name": "e", "image": "x"}]}}
    pod = world.patch("pods", "a", added, namespace="default", subresource="ephemeralcontainers").body
    assert pod["spec"]["ephemeralContainers"][0]["name"] == "e" and pod["metadata"]["generation"] == 2
    gone = world.patch(
        "pods", "a", {"spec": {"ephemeralContainers": []}}, namespace="default", subresource="ephemeralcontainers", kind=MERGE_PATCH
    )
    assert gone.status == 422 and 'existing ephemeral containers "e" may not be removed' in gone.message


def test_an_ephemeral_container_is_judged_as_any_other_and_more() -> None:
    world = a_world()
    world.create("pods", a_pod(), "default")
    container = {
        "name": "e",
        "image": " x",
        "env": [{"name": "A=B"}],
        "lifecycle": {},
        "volumeMounts": [{"name": "v", "mountPath": "/x", "subPath": "y"}],
    }
    patch = {"spec": {"ephemeralContainers": [container]}}
    answer = world.patch("pods", "a", patch, namespace="default", subresource="ephemeralcontainers")
    barred = "Forbidden: cannot be set for an Ephemeral Container"
    variable = "a valid environment variable name must consist only of printable ASCII characters other than '='"
    assert answer.status == 422
    assert [(cause["field"], cause["message"]) for cause in answer.body["details"]["causes"]] == [
        ("spec.ephemeralContainers[0].env[0].name", f'Invalid value: "A=B": {variable}'),
        ("spec.ephemeralContainers[0].volumeMounts[0].name", 'Not found: "v"'),
        ("spec.ephemeralContainers[0].image", 'Invalid value: " x": must not have leading or trailing whitespace'),
        ("spec.ephemeralContainers[0].lifecycle", barred),
        ("spec.ephemeralContainers[0].volumeMounts[0].subPath", barred),
    ]
