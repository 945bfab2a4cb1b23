"""The workload of a run: objects that are there from the start, and users who resize, create and delete while things go wrong."""

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from random import Random
from typing import Any

import msgspec

from elbowroom.api.objects import Pod
from elbowroom.client import Witness
from elbowroom.deploy.chaos.ground import NAMESPACE, Ground, NotDoneError, pods_path
from elbowroom.deploy.chaos.scenario import Body, Pods, ReplicaSet, Resizer, Template, Visitor
from elbowroom.rpc import create, patch
from elbowroom.rpc.requests import delete
from elbowroom.wire import ApiRequest, ApiResponse

AGAIN = (0, 409, 429, 500, 503, 504)
"""Statuses after which a request is made again; 0 is no answer."""
WAIT_SECONDS = 0.02


@dataclass
class Counts:
    """What the users did. Any thread may add."""

    acknowledged: int = 0
    unanswered: int = 0
    visitors: int = 0
    refused: dict[int, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answered(self, status: int) -> None:
        """A request ended with that status."""
        with self._lock:
            if 200 <= status < 300:
                self.acknowledged += 1
            elif status == 0:
                self.unanswered += 1
            else:
                self.refused[status] = self.refused.get(status, 0) + 1

    def visited(self) -> None:
        with self._lock:
            self.visitors += 1


# ------------------------------------------------------------ what is there from the start


def populate(ground: Ground, body: Body, nodes: list[str]) -> None:
    """Create priorities, pods, replica sets and budgets, and wait until all pods run. ``NotDoneError`` if they do not."""
    for name, value in body.priorities.items():
        document = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
        ground.ask("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", document)
    for name, spec in _pods(body, nodes):
        ground.ask("POST", pods_path(), _pod(name, spec))
    for replicas in body.replica_sets:
        for path, document in _replicas(replicas):
            ground.ask("POST", path, document)
    wanted = sum(pods.count for pods in body.pods) + sum(replicas.replicas for replicas in body.replica_sets)
    ground.until(f"{wanted} pods run", lambda: len([pod for pod in pods_now(ground) if pod.status.phase == "Running"]) >= wanted)


def pods_now(ground: Ground) -> list[Pod]:
    """The pods of chaos' namespace."""
    return msgspec.convert(ground.ask("GET", pods_path())["items"], list[Pod])


def _pods(body: Body, nodes: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    place = 0
    for pods in body.pods:
        for number in range(1, pods.count + 1):
            spec = {**_spec(pods), "nodeSelector": {"kubernetes.io/hostname": nodes[place % len(nodes)]}}
            place += 1
            yield f"{pods.name}-{number}", {"spec": spec, "annotations": _behaviour(pods)}


def _pod(name: str, made: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": name, "annotations": made["annotations"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": made["spec"]}


def _replicas(replicas: ReplicaSet) -> Iterator[tuple[str, dict[str, Any]]]:
    labels = {"app": replicas.name}
    template = {"metadata": {"labels": labels, "annotations": _behaviour(replicas)}, "spec": _spec(replicas)}
    spec = {"replicas": replicas.replicas, "selector": {"matchLabels": labels}, "template": template}
    metadata = {"name": replicas.name}
    yield (
        f"/apis/apps/v1/namespaces/{NAMESPACE}/replicasets",
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": spec},
    )
    if replicas.min_available is not None:
        budget = {"minAvailable": replicas.min_available, "selector": {"matchLabels": labels}}
        yield (
            f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets",
            {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": budget},
        )


def _spec(template: Template) -> dict[str, Any]:
    requests = {"cpu": template.cpu, "memory": template.memory}
    resources = {"requests": requests, **({"limits": requests} if template.guaranteed else {})}
    container = {"name": "c", "image": "registry.k8s.io/pause:3.10", "resources": resources}
    spec: dict[str, Any] = {"terminationGracePeriodSeconds": template.grace, "containers": [container]}
    return {**spec, "priorityClassName": template.priority} if template.priority else spec


def _behaviour(template: Template) -> dict[str, str]:
    wanted = {"c": {"stopSeconds": template.stop_seconds}}
    return {"elbowroom.dev/workload": msgspec.json.encode(wanted).decode()}


# ------------------------------------------------------------ what users do


def users(ground: Ground, body: Body, counts: Counts) -> list[Callable[[], None]]:
    """What each user does until ``ground.over``, to be run in a thread each."""
    works: list[Callable[[], None]] = []
    for place, user in enumerate(body.users):
        if isinstance(user, Resizer):
            names = {name: pods for name, pods in _names(body) if fnmatchcase(name, user.pods)}
            for client in range(user.clients):
                works.append(_Resizing(ground, user, names, f"{place}-{client}", counts).run)
        else:
            for client in range(user.at_once):
                works.append(_Visiting(ground, user, f"{place}-{client}", counts).run)
    return works


def _names(body: Body) -> Iterator[tuple[str, Pods]]:
    for pods in body.pods:
        for number in range(1, pods.count + 1):
            yield f"{pods.name}-{number}", pods


class _Asking:
    """A client of its own with its own chance."""

    def __init__(self, ground: Ground, who: str, counts: Counts) -> None:
        self._ground, self._counts = ground, counts
        self._rng = Random(f"{ground.seed}/{who}")
        self._witness = Witness(ground.kubeconfig, ground.history, f"chaos-{who}", ground.seed)

    def _send(self, request: ApiRequest, allowed: tuple[int, ...] = ()) -> ApiResponse | None:
        """Until it is answered; None when it is time to stop. A refusal that is not ``allowed`` is an error."""
        while not self._ground.over.is_set():
            answer = self._witness.send(request)
            self._counts.answered(answer.status)
            if 200 <= answer.status < 300 or answer.status in allowed:
                return answer
            if answer.status not in AGAIN:
                raise NotDoneError(f"{request.verb} {request.name}: {answer.status} {answer.body[:300]!r}")
            self._ground.over.wait(WAIT_SECONDS)
        return None

    def _pause(self, span: tuple[float, float]) -> None:
        self._ground.over.wait(self._rng.uniform(*span))


class _Resizing(_Asking):
    def __init__(self, ground: Ground, user: Resizer, names: Mapping[str, Template], who: str, counts: Counts) -> None:
        super().__init__(ground, who, counts)
        self._user, self._names = user, names

    def run(self) -> None:
        try:
            while not self._ground.over.is_set():
                requests = {"cpu": self._rng.choice(self._user.cpu), "memory": self._rng.choice(self._user.memory)}
                name = self._rng.choice(list(self._names))
                resources = {"requests": requests, **({"limits": requests} if self._names[name].guaranteed else {})}
                body = {"spec": {"containers": [{"name": "c", "resources": resources}]}}
                # 404 and 422: a pod that lost its node ended, and one that has ended is not resized.
                self._send(patch("pods", name, body, namespace=NAMESPACE, subresource="resize"), allowed=(403, 404, 422))
                self._pause(self._user.pause)
        finally:
            self._witness.close()


class _Visiting(_Asking):
    def __init__(self, ground: Ground, user: Visitor, who: str, counts: Counts) -> None:
        super().__init__(ground, who, counts)
        self._user, self._who = user, who

    def run(self) -> None:
        number = 0
        try:
            while not self._ground.over.is_set():
                number += 1
                name = f"{self._user.name}-{self._who}-{number}"
                made = _pod(name, {"spec": _spec(self._user), "annotations": _behaviour(self._user)})
                # 409: an earlier attempt that was not answered has made it.
                if self._send(create("pods", made, namespace=NAMESPACE), allowed=(409,)) is not None:
                    self._counts.visited()
                self._pause(self._user.stays)
                self._send(delete("pods", name, namespace=NAMESPACE), allowed=(404,))
                self._pause(self._user.pause)
        finally:
            self._witness.close()
