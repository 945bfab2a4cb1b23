"""kr8s, lightkube and an operator made with kopf, each as its own documentation shows it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import kr8s
import lightkube
import pytest
from kr8s.objects import ConfigMap, Deployment, Node, Pod
from lightkube.models.apps_v1 import DeploymentSpec
from lightkube.models.autoscaling_v1 import ScaleSpec
from lightkube.models.core_v1 import Container, PodSpec, PodTemplateSpec, ResourceRequirements
from lightkube.models.meta_v1 import LabelSelector, ObjectMeta
from lightkube.resources import apps_v1, core_v1
from lightkube.types import PatchType

from elbowroom.testing.workspace import Workspace

pytestmark = pytest.mark.filterwarnings("ignore:Kubernetes version .* is not supported")  # kr8s says so of 1.36 and later

IMAGE = "registry.k8s.io/pause:3.10"


def resize_to(cpu: str, memory: str) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu, "memory": memory}}}]}}


# ---------------------------------------------------------------- kr8s


@pytest.fixture
def api(elbowroom: Workspace, elbowroom_kubeconfig: Path) -> Any:
    return kr8s.api(kubeconfig=str(elbowroom_kubeconfig), namespace=elbowroom.namespace)


def test_kr8s_makes_a_pod_waits_for_it_resizes_and_deletes_it(elbowroom: Workspace, api: Any) -> None:
    pod = cast(Any, Pod(elbowroom.manifest("web") | {"metadata": {"name": "web", "namespace": elbowroom.namespace}}, api=api))
    pod.create()
    pod.wait("condition=Ready", timeout=20)
    assert pod.ready() and pod.status.phase == "Running"
    pod.label(app="web")
    pod.annotate(note="well")
    assert [found.name for found in api.get("pods", label_selector={"app": "web"})] == ["web"]
    pod.patch(resize_to("250m", "64Mi"), subresource="resize")  # a merge patch: the list of containers is replaced
    elbowroom.until_resized("web")
    pod.refresh()
    assert pod.status.containerStatuses[0].resources.requests.cpu == "250m"
    assert list(pod.logs()) == []
    pod.delete()
    pod.wait("delete", timeout=20)
    assert not pod.exists()
    with pytest.raises(kr8s.NotFoundError):
        Pod.get("web", api=api)


def test_kr8s_scales_watches_and_looks_around(elbowroom: Workspace, api: Any) -> None:
    template = elbowroom.manifest("", labels={"app": "d"})
    template["metadata"].pop("name")
    deployment = cast(
        Any,
        Deployment(
            {
                "metadata": {"name": "d", "namespace": elbowroom.namespace},
                "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "d"}}, "template": template},
            },
            api=api,
        ),
    )
    deployment.create()
    deployment.scale(2)
    deployment.wait("condition=Available", timeout=20)
    elbowroom.until("two pods are ready", lambda: [p.ready() for p in deployment.pods()] == [True, True])
    for kind, found in api.watch("deployments", field_selector="metadata.name=d"):
        assert (kind, found.name) == ("ADDED", "d")
        break
    config = cast(Any, ConfigMap({"metadata": {"name": "c", "namespace": elbowroom.namespace}, "data": {"a": "1"}}, api=api))
    config.create()
    config.patch({"data": {"b": "2"}})
    assert dict(ConfigMap.get("c", api=api).raw["data"]) == {"a": "1", "b": "2"}
    node = cast(Any, Node.get(elbowroom.node(), api=api))
    node.cordon()
    node.refresh()
    assert node.unschedulable
    assert api.version()["minor"] == "37" and "Pod" in [r["kind"] for r in api.api_resources()]


# ---------------------------------------------------------------- lightkube


def test_lightkube_applies_resizes_scales_and_waits(elbowroom: Workspace, elbowroom_kubeconfig: Path) -> None:
    configured = lightkube.KubeConfig.from_file(elbowroom_kubeconfig)
    client = lightkube.Client(config=configured, namespace=elbowroom.namespace, field_manager="tests")
    resources = ResourceRequirements(requests={"cpu": "100m", "memory": "64Mi"})
    spec = PodSpec(containers=[Container(name="main", image=IMAGE, resources=resources)], terminationGracePeriodSeconds=0)
    client.create(core_v1.Pod(metadata=ObjectMeta(name="web", labels={"app": "web"}), spec=spec))
    client.wait(core_v1.Pod, "web", for_conditions=["Ready"])
    client.patch(core_v1.PodResize, "web", resize_to("250m", "64Mi"))
    elbowroom.until_resized("web")
    assert [pod.metadata.name for pod in client.list(core_v1.Pod, labels={"app": "web"}) if pod.metadata] == ["web"]
    for kind, pod in client.watch(core_v1.Pod, fields={"metadata.name": "web"}):
        assert kind == "ADDED" and pod.status and pod.status.qosClass == "Burstable"
        break
    selector = LabelSelector(matchLabels={"app": "d"})
    template = PodTemplateSpec(metadata=ObjectMeta(labels={"app": "d"}), spec=spec)
    named = ObjectMeta(name="d", namespace=elbowroom.namespace)
    applied = apps_v1.Deployment(metadata=named, spec=DeploymentSpec(replicas=1, selector=selector, template=template))
    client.apply(applied)
    client.replace(apps_v1.DeploymentScale(metadata=named, spec=ScaleSpec(replicas=2)), "d")
    client.wait(apps_v1.Deployment, "d", for_conditions=["Available"])
    changed = client.patch(core_v1.Pod, "web", {"metadata": {"labels": {"a": "b"}}}, patch_type=PatchType.MERGE)
    assert changed.metadata and changed.metadata.labels == {"app": "web", "a": "b"}
    client.delete(core_v1.Pod, "web")
    elbowroom.until_gone("pods", "web")
    with pytest.raises(lightkube.ApiError) as refused:
        client.get(core_v1.Pod, "web")
    assert refused.value.status.code == 404


# ---------------------------------------------------------------- kopf

OPERATOR = """
import kopf

@kopf.on.create("v1", "configmaps", labels={"operated": "yes"})
def created(body, patch, **_):
    patch.metadata.annotations["made"] = body["data"]["colour"]
    kopf.info(body, reason="Painted", message="It has its colour.")
    return {"colour": body["data"]["colour"]}

@kopf.on.field("v1", "configmaps", field="data.colour", labels={"operated": "yes"}, old=kopf.PRESENT, new=kopf.PRESENT)
def repainted(old, new, patch, **_):
    patch.metadata.annotations["repainted"] = f"{old} to {new}"

@kopf.on.delete("v1", "configmaps", labels={"operated": "yes"})
def deleted(name, retry, **_):
    if retry == 0:
        raise kopf.TemporaryError("not yet", delay=0.1)

@kopf.timer("v1", "pods", interval=0.2, labels={"operated": "yes"})
def ticked(patch, annotations, **_):
    patch.metadata.annotations["ticks"] = str(int(annotations.get("ticks", "0")) + 1)
"""


@contextmanager
def operating(folder: Path, kubeconfig: Path, namespace: str) -> Iterator[None]:
    """``kopf run``, as a process."""
    script = folder / "operator.py"
    script.write_text(OPERATOR)
    command = [sys.executable, "-m", "kopf", "run", str(script), "--namespace", namespace, "--standalone"]
    with subprocess.Popen(command, env={**os.environ, "KUBECONFIG": str(kubeconfig)}, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield
            assert process.poll() is None
        finally:
            process.kill()
            _, told = process.communicate()
        wrong = [line for line in told.splitlines() if "[ERROR" in line and "failed temporarily: not yet" not in line]
        assert not wrong, told


def test_a_kopf_operator_handles_creation_change_deletion_and_time(
    elbowroom: Workspace, elbowroom_kubeconfig: Path, tmp_path: Path
) -> None:
    def annotated(name: str) -> bool:
        return name in elbowroom.get("configmaps", "paint")["metadata"].get("annotations", {})

    with operating(tmp_path, elbowroom_kubeconfig, elbowroom.namespace):
        elbowroom.create("configmaps", {"metadata": {"name": "paint", "labels": {"operated": "yes"}}, "data": {"colour": "red"}})
        elbowroom.until("the operator saw the creation", lambda: annotated("made"))
        elbowroom.until_event("paint", "Painted")
        meta = elbowroom.until("it is done", lambda: settled(elbowroom.get("configmaps", "paint")["metadata"]))
        assert meta["annotations"]["made"] == "red" and meta["finalizers"] == ["kopf.zalando.org/KopfFinalizerMarker"]
        elbowroom.patch("configmaps", "paint", {"data": {"colour": "blue"}})
        elbowroom.until("the operator saw the change", lambda: annotated("repainted"))
        assert elbowroom.get("configmaps", "paint")["metadata"]["annotations"]["repainted"] == "red to blue"
        elbowroom.delete("configmaps", "paint")
        elbowroom.until_gone("configmaps", "paint")
        elbowroom.pod("clock", labels={"operated": "yes"})
        elbowroom.until_pod("clock", "ticked twice", lambda pod: int(pod["metadata"]["annotations"].get("ticks", "0")) >= 2)
    elbowroom.patch("pods", "clock", {"metadata": {"finalizers": None}})


def settled(meta: dict[str, Any]) -> dict[str, Any] | None:
    """The metadata once kopf has written down what it handled."""
    return meta if any("last-handled" in key for key in meta.get("annotations", {})) else None
