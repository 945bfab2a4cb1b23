"""The image of deploy/Containerfile, run by testcontainers: the same cluster, beside a test, in a container."""

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import docker
import pytest
from testcontainers.core.container import DockerContainer
from testcontainers.core.wait_strategies import LogMessageWaitStrategy

from elbowroom.testing.cluster import Cluster
from elbowroom.testing.containers import IMAGE, PORT, ElbowroomContainer, served_at

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def image() -> str:
    """The image's name; skips where no engine answers, or where the engine has none."""
    name = os.environ.get("ELBOWROOM_IMAGE", IMAGE)
    try:
        with closing(docker.from_env()) as engine:
            engine.images.get(name)
    except docker.errors.ImageNotFound:
        pytest.skip(f"the engine has no image {name}: make image")
    except docker.errors.DockerException as why:
        pytest.skip(f"no engine answers: {why}")
    return name


@pytest.fixture(scope="module")
def container(image: str) -> Iterator[ElbowroomContainer]:
    with ElbowroomContainer(image, up=("--nodes", "1", "--node-cpu", "2"), host_network=True) as started:
        yield started


def test_a_pod_is_resized_by_preemption_in_a_container(container: ElbowroomContainer) -> None:
    with container.workspace("story") as story:
        story.pod("low", cpu="1", priority=1)
        story.pod("high", cpu="500m", priority=2)
        story.resize("high", cpu="1500m")
        story.until_resized("high")
        story.until_gone("pods", "low")
        assert story.victims(of="high") == ["low"]
        story.assert_valid()


def test_a_kubelet_dies_at_a_step_and_comes_back_in_a_container(container: ElbowroomContainer) -> None:
    with container.workspace("death") as story:
        story.pod("a")
        story.kill("kubelet/node-1", at="K4")
        story.resize("a", cpu="300m")
        story.until_resized("a")
        assert story.restarts("kubelet/node-1") == 1


def test_kubectl_uses_the_kubeconfig_of_a_container(container: ElbowroomContainer, tmp_path: Path) -> None:
    listed = Cluster(tmp_path).kubectl("get", "nodes", "-o", "name", "--kubeconfig", str(container.kubeconfig))
    assert listed == "node/node-1\n"


def test_a_published_port_finds_the_server_at_all_addresses(image: str) -> None:
    """In a network of its own, where nobody else reaches it."""
    ready = LogMessageWaitStrategy("nodes Ready after").with_startup_timeout(60).with_poll_interval(0.1)
    command = ["up", "--all-addresses", "--port", str(PORT), "--nodes", "1"]
    with DockerContainer(image, network_mode="none").with_command(command).waiting_for(ready) as alone:
        sockets = alone.exec(["cat", "/proc/net/tcp"]).output or b""
        assert f" 00000000:{PORT:04X} ".encode() in sockets


def test_a_kubeconfig_leads_to_the_published_port() -> None:
    config = {"clusters": [{"name": "c", "cluster": {"server": f"https://127.0.0.1:{PORT}", "certificate-authority-data": "x"}}]}
    moved = served_at(config, "https://localhost:32768")
    assert moved["clusters"][0]["cluster"] == {"server": "https://localhost:32768", "certificate-authority-data": "x"}
    assert config["clusters"][0]["cluster"]["server"].endswith(str(PORT))
