"""``proxy/files/NAMESPACE/POD/CONTAINER/PATH``: a file as a running container sees it.

What a container sees of an emulated node is what its kubelet put there: the Downward API volumes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from elbowroom.api.objects import Node
from elbowroom.kubelet import downward
from elbowroom.kubelet.actuation import latest
from elbowroom.kubelet.worker import PodWorker

PREFIX = "files/"


@dataclass(frozen=True, slots=True)
class Found:
    """The answer: an HTTP status and a text."""

    status: int
    text: str


def answer(path: str, workers: Mapping[str, PodWorker], node: Node, assigned: Callable[[str, str], str]) -> Found:
    """``path`` is what comes behind ``files/``; ``workers`` are by NAMESPACE/POD; ``assigned`` gives a container's CPUs, by the
    pod's uid and its name."""
    parts = path.split("/", 3)
    if len(parts) < 4:
        return Found(400, "files/NAMESPACE/POD/CONTAINER/PATH is expected\n")
    namespace, name, container, wanted = parts
    worker = workers.get(f"{namespace}/{name}")
    if worker is None:
        return Found(404, f'pod "{name}" not found\n')
    state = latest(worker.sandbox).get(container)
    if state is None or state.state != "running":
        return Found(404, f'container "{container}" of pod "{name}" is not running\n')

    def cpus(of_container: str) -> str:
        return assigned(worker.uid, of_container)

    content = downward.read(worker.pod, container, wanted, node.status.allocatable, cpus)
    return Found(404, f"/{wanted}: no such file\n") if content is None else Found(200, content)
