"""The autoscaler against a cluster: what its users see, also when nodes are full and processes die."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from elbowroom.testing.workspace import Workspace

pytestmark = pytest.mark.processes

DOMAIN = "autoscaler.example.com"


@pytest.fixture(scope="module", autouse=True)
def autoscaler(elbowroom_kubeconfig: Path) -> Iterator[None]:
    """It runs as it would in a cluster: as a process of its own."""
    command = [sys.executable, str(Path(__file__).with_name("autoscaler.py")), "--kubeconfig", str(elbowroom_kubeconfig)]
    with subprocess.Popen(command, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}) as process:
        yield
        assert process.poll() is None, "it must not die of anything that happened here"
        process.kill()


def scaled(elbowroom: Workspace, name: str, usage: str, **pod: Any) -> None:
    """A pod that takes part, and uses that much."""
    elbowroom.pod(name, labels={f"{DOMAIN}/scaled": "true"}, annotations={f"{DOMAIN}/usage": usage}, **pod)


def use(elbowroom: Workspace, name: str, usage: str) -> None:
    elbowroom.patch("pods", name, {"metadata": {"annotations": {f"{DOMAIN}/usage": usage}}})


def until_cpu(elbowroom: Workspace, name: str, cpu: str) -> dict[str, Any]:
    """The pod once it has that much, in its spec and in fact."""

    def has(pod: dict[str, Any]) -> bool:
        spec, status = pod["spec"]["containers"][0], pod["status"]["containerStatuses"][0]
        return bool(spec["resources"]["requests"]["cpu"] == status["resources"]["requests"]["cpu"] == cpu)

    return elbowroom.until_pod(name, f"at {cpu}", has)


def test_a_pod_grows_and_shrinks_with_its_use_without_a_restart(elbowroom: Workspace) -> None:
    scaled(elbowroom, "web", usage="80m", cpu="100m")
    use(elbowroom, "web", "500m")
    until_cpu(elbowroom, "web", "600m")
    use(elbowroom, "web", "90m")
    pod = until_cpu(elbowroom, "web", "150m")
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 0


def test_a_pod_that_does_not_fit_waits_and_grows_when_room_comes(elbowroom: Workspace) -> None:
    node = elbowroom.node(cpu="2")
    scaled(elbowroom, "web", usage="80m", cpu="100m", node=node)
    obstacle = elbowroom.fill(node)
    use(elbowroom, "web", "1")
    elbowroom.until_deferred("web")
    elbowroom.delete("pods", obstacle)
    until_cpu(elbowroom, "web", "1200m")
    assert elbowroom.victims() == []


def test_an_important_pod_grows_at_the_expense_of_another(elbowroom: Workspace) -> None:
    node = elbowroom.node(cpu="2")
    scaled(elbowroom, "web", usage="400m", cpu="500m", node=node, priority=1000)
    elbowroom.pod("batch", cpu="1", node=node, priority=0)
    use(elbowroom, "web", "1")
    until_cpu(elbowroom, "web", "1200m")
    elbowroom.until_gone("pods", "batch")
    assert elbowroom.victims(of="web") == ["batch"]
    elbowroom.assert_valid()


def test_what_its_node_can_never_do_is_taken_back(elbowroom: Workspace) -> None:
    node = elbowroom.node(cpu="2")
    scaled(elbowroom, "web", usage="400m", cpu="500m", node=node)
    use(elbowroom, "web", "3")
    told = elbowroom.until_event("web", "ResizeGivenUp")
    assert told["message"].startswith("Staying at 500m of CPU: Node didn't have enough capacity: cpu, requested: 3600")
    pod = elbowroom.until_resized("web")
    assert pod["metadata"]["annotations"][f"{DOMAIN}/ceiling"] == "500m"
    assert pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "500m"


@pytest.mark.parametrize(("component", "step"), [("kubelet", "K4"), ("runtime", None), ("apiserver", None)])
def test_a_pod_grows_whatever_dies_meanwhile(elbowroom: Workspace, component: str, step: str | None) -> None:
    node = elbowroom.node(cpu="2")
    scaled(elbowroom, "web", usage="80m", cpu="100m", node=node)
    victim = component if component == "apiserver" else f"{component}/{node}"
    before = elbowroom.restarts(victim)
    elbowroom.kill(victim, at=step)
    use(elbowroom, "web", "1")
    until_cpu(elbowroom, "web", "1200m")
    assert elbowroom.restarts(victim) == before + 1
