"""Files of the Downward API as a container sees them: upstream's renderings."""

from typing import Any

import msgspec
import pytest

from elbowroom.api.objects import Pod
from elbowroom.kubelet.downward import quoted, read

NODE = {"cpu": "4", "memory": "8Gi", "ephemeral-storage": "100Gi"}


def a_pod(*items: dict[str, Any], mounts: Any = None, volumes: Any = None, resources: Any = None) -> Pod:
    container = {
        "name": "c",
        "resources": resources or {},
        "volumeMounts": mounts or [{"name": "v", "mountPath": "/etc/podinfo"}],
    }
    document = {
        "metadata": {
            "name": "web",
            "namespace": "ns",
            "uid": "u1",
            "labels": {"b": "2", "a": "1"},
            "annotations": {"note": 'two\nlines "here" \\ \u00e9 \x00 \u200b'},
        },
        "spec": {
            "containers": [container],
            "initContainers": [{"name": "i", "resources": {"requests": {"cpu": "250m"}}}],
            "volumes": volumes or [{"name": "v", "downwardAPI": {"items": list(items)}}],
        },
    }
    return msgspec.convert(document, Pod)


def content(pod: Pod, path: str = "/etc/podinfo/f", container: str = "c") -> str | None:
    return read(pod, container, path, NODE, lambda name: f"cpus of {name}")


def field(path: str) -> dict[str, Any]:
    return {"path": "f", "fieldRef": {"fieldPath": path}}


def resource(name: str, container: str = "c", divisor: str | None = None) -> dict[str, Any]:
    reference = {"containerName": container, "resource": name, **({"divisor": divisor} if divisor else {})}
    return {"path": "f", "resourceFieldRef": reference}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("metadata.name", "web"),
        ("metadata.namespace", "ns"),
        ("metadata.uid", "u1"),
        ("metadata.labels", 'a="1"\nb="2"'),
        ("metadata.labels['a']", "1"),
        ("metadata.labels['none']", ""),
        ("metadata.annotations", 'note="two\\nlines \\"here\\" \\\\ \u00e9 \\x00 \\u200b"'),
    ],
)
def test_fields(path: str, expected: str) -> None:
    assert content(a_pod(field(path))) == expected


RESOURCES = {"requests": {"cpu": "250m", "memory": "100Mi"}, "limits": {"memory": "150Mi", "hugepages-2Mi": "4Mi"}}


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        (resource("requests.cpu"), "1"),
        (resource("requests.cpu", divisor="1m"), "250"),
        (resource("requests.cpu", divisor="0"), "1"),
        (resource("requests.memory"), str(100 * 2**20)),
        (resource("requests.memory", divisor="1Mi"), "100"),
        (resource("requests.memory", divisor="1M"), "105"),
        (resource("limits.memory", divisor="1Gi"), "1"),
        (resource("limits.cpu"), "4"),
        (resource("limits.cpu", divisor="1m"), "4000"),
        (resource("limits.ephemeral-storage", divisor="1Gi"), "100"),
        (resource("requests.ephemeral-storage"), "0"),
        (resource("limits.hugepages-2Mi", divisor="1Mi"), "4"),
        (resource("requests.cpu", container="i", divisor="1m"), "250"),
        (resource("requests.cpu", container="nobody"), ""),
        (resource("assigned.cpuset"), "cpus of c"),
    ],
)
def test_resources_are_rounded_up_and_lacking_limits_are_the_nodes(reference: dict[str, Any], expected: str) -> None:
    assert content(a_pod(reference, resources=RESOURCES)) == expected


def test_a_file_is_where_its_volume_is_mounted_and_nowhere_else() -> None:
    pod = a_pod({"path": "a/b/../name", "fieldRef": {"fieldPath": "metadata.name"}})
    assert content(pod, "etc/podinfo/a/name") == content(pod, "/etc//podinfo/a/name") == "web"
    for path in ("/etc/podinfo", "/etc/podinfo/a", "/etc/podinfo2/a/name", "/a/name", "/etc/podinfo/../podinfo/a/nam"):
        assert content(pod, path) is None
    assert content(pod, "/etc/podinfo/a/name", container="i") is None
    assert content(pod, "/etc/podinfo/a/name", container="nobody") is None


def test_a_projection_a_sub_path_and_a_mount_within_a_mount() -> None:
    volumes = [
        {"name": "p", "projected": {"sources": [{"secret": {"name": "s"}}, {"downwardAPI": {"items": [field("metadata.uid")]}}]}},
        {"name": "v", "downwardAPI": {"items": [{**field("metadata.name"), "path": "deep/f"}]}},
        {"name": "e", "emptyDir": {}},
    ]
    mounts = [
        {"name": "p", "mountPath": "/all"},
        {"name": "v", "mountPath": "/name", "subPath": "deep/f"},
        {"name": "v", "mountPath": "/dir/", "subPath": "deep"},
        {"name": "e", "mountPath": "/all/hidden"},
    ]
    pod = a_pod(mounts=mounts, volumes=volumes)
    assert content(pod, "/all/f") == "u1"
    assert content(pod, "/name") == content(pod, "/dir/f") == "web"
    assert content(pod, "/all/hidden/f") is None


def test_quotes_are_gos() -> None:
    assert quoted("\U000e0001\x7f\u00a0") == '"\\U000e0001\\x7f\\u00a0"'
