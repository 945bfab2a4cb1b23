"""The Downward API's references: which are known, and what is said of those that are not."""

from typing import Any

import pytest
from pods_bench import Bench, Document, Refused

from elbowroom.api.gates import profile_of

IMAGE = "registry.k8s.io/pause:3.10"
SUPPORTED = (
    'supported values: "limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", "requests.ephemeral-storage", '
    '"requests.memory"'
)


def a_pod(items: list[Any] | None = None, env: list[Any] | None = None, projected: bool = False) -> Document:
    source: Document = {"downwardAPI": {"items": items or []}}
    volume = {"projected": {"sources": [source]}} if projected else source
    container = {"name": "c", "image": IMAGE, "env": env or []}
    spec = {"containers": [container], "volumes": [{"name": "v", **volume}] if items else []}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec}


def causes(pod: Document, profile: str = "v1.37") -> list[tuple[str, str]]:
    with pytest.raises(Refused) as caught:
        Bench(profile_of(profile)).create(pod)
    return caught.value.causes


def field(wanted: str, **more: Any) -> Document:
    return {"path": "f", "fieldRef": {"fieldPath": wanted}, **more}


def resource(name: str, container: str = "c", **more: Any) -> Document:
    return {"path": "f", "resourceFieldRef": {"containerName": container, "resource": name, **more}}


@pytest.mark.parametrize("projected", [False, True])
@pytest.mark.parametrize(
    "item",
    [
        field("metadata.name"),
        field("metadata.labels"),
        field("metadata.annotations['a.b/C']"),
        resource("limits.cpu", divisor="1m"),
        resource("requests.memory", divisor="1Mi"),
        resource("limits.hugepages-2Mi"),
        resource("requests.cpu", divisor="0"),
    ],
)
def test_what_a_volume_may_tell(item: Document, projected: bool) -> None:
    assert Bench().create(a_pod([item], projected=projected))


VOLUME = "spec.volumes[0].downwardAPI"


@pytest.mark.parametrize(
    ("item", "at", "message"),
    [
        (
            field("spec.nodeName"),
            ".fieldRef.fieldPath",
            'Unsupported value: "spec.nodeName": supported values: "metadata.annotations"',
        ),
        (field("spec.nonsense"), ".fieldRef.fieldPath", "error converting fieldPath: field label not supported: spec.nonsense"),
        (field("metadata.name['x']"), ".fieldRef.fieldPath", "field label does not support subscript: metadata.name['x']"),
        (field("metadata.labels['b c']"), ".fieldRef", "name part must consist of alphanumeric characters"),
        ({"path": "f", "fieldRef": {"fieldPath": ""}}, ".fieldRef.fieldPath", "Required value"),
        (
            {"path": "f", "fieldRef": {"apiVersion": "v2", "fieldPath": "metadata.name"}},
            ".fieldRef.fieldPath",
            "unsupported pod version: v2",
        ),
        ({"path": "f"}, "", "one of fieldRef and resourceFieldRef is required"),
        (
            {**field("metadata.name"), **resource("limits.cpu")},
            "",
            "fieldRef and resourceFieldRef can not be specified simultaneously",
        ),
        (field("metadata.name", path=""), ".path", "Required value"),
        (field("metadata.name", path="/etc"), ".path", "must be a relative path"),
        (field("metadata.name", path="a/../b"), ".path", "must not contain '..'"),
        (field("metadata.name", path="..a"), ".path", "must not start with '..'"),
        (field("metadata.name", mode=512), ".mode", "must be a number between 0 and 0777 (octal), both inclusive"),
        (resource("limits.cpu", ""), ".resourceFieldRef.containerName", "Required value"),
        (resource(""), ".resourceFieldRef.resource", "Required value"),
        (resource("limits.gpu"), ".resourceFieldRef.resource", f'Unsupported value: "limits.gpu": {SUPPORTED}'),
        (resource("assigned.cpuset"), ".resourceFieldRef.resource", f'Unsupported value: "assigned.cpuset": {SUPPORTED}'),
        (
            resource("limits.cpu", divisor="2"),
            ".resourceFieldRef.divisor",
            'Invalid value: "limits.cpu": only divisor\'s values 1m and 1 are supported with the cpu resource',
        ),
        (
            resource("requests.memory", divisor="3"),
            ".resourceFieldRef.divisor",
            "only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the memory resource",
        ),
    ],
)
def test_what_a_volume_may_not_tell(item: Document, at: str, message: str) -> None:
    found = causes(a_pod([item]))
    assert any(where == VOLUME + at and message in said for where, said in found), found


def test_a_projection_is_judged_at_its_own_path() -> None:
    found = causes(a_pod([resource("limits.gpu")], projected=True))
    assert [where for where, _ in found] == [
        "spec.volumes[0].projected.sources[0].downwardAPI.resourceFieldRef.resource",
        *_mounts(found),
    ]


def _mounts(found: list[tuple[str, str]]) -> list[str]:
    return [where for where, _ in found if "volumeMounts" in where]


def test_an_environment_has_fields_of_its_own_and_needs_no_containers_name() -> None:
    def variable(**source: Any) -> list[Document]:
        return [{"name": "X", "valueFrom": source}]

    assert Bench().create(a_pod(env=variable(fieldRef={"fieldPath": "status.podIP"})))
    assert Bench().create(a_pod(env=variable(resourceFieldRef={"resource": "limits.cpu"})))
    at = "spec.containers[0].env[0].valueFrom"
    (found,) = causes(a_pod(env=variable(fieldRef={"fieldPath": "metadata.labels"})))
    assert found[0] == f"{at}.fieldRef.fieldPath" and 'Unsupported value: "metadata.labels"' in found[1]
    (found,) = causes(a_pod(env=variable(resourceFieldRef={"resource": "assigned.cpuset"})), "lab")
    assert found[0] == f"{at}.resourceFieldRef.resource"


def test_the_lab_lets_a_volume_ask_for_the_assigned_cpus() -> None:
    assert Bench(profile_of("lab")).create(a_pod([resource("assigned.cpuset")]))
    assert Bench(profile_of("v1.37", {"DownwardAPIAssignedResources": True})).create(a_pod([resource("assigned.cpuset")]))
    # A server that knows the field lets it in whatever the gate says.
    assert Bench(profile_of("lab", {"DownwardAPIAssignedResources": False})).create(a_pod([resource("assigned.cpuset")]))


def test_a_stored_pod_that_asks_for_them_can_still_be_changed() -> None:
    bench = Bench(profile_of("lab"))
    bench.create(a_pod([resource("assigned.cpuset")]))
    other = Bench(profile_of("v1.37"), stored=bench.stored)
    pod = other.pod()
    pod["metadata"]["labels"] = {"a": "b"}
    assert other.update(pod)["metadata"]["labels"] == {"a": "b"}
