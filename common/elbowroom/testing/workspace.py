"""What a test does with a cluster: pods and nodes that are there when the call returns, resizes that end as the test wants, faults,
and questions to the history.

A ``Workspace`` is a namespace of its own in a cluster that many tests share; what it made is gone when it closes. Nothing in it
waits for a time: each ``until_...`` looks until the fact is there, and says how the pods stand if it does not come.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol, TypeVar

import msgspec

from elbowroom.api import resources
from elbowroom.api.objects import Node, Pod
from elbowroom.client import Answer, HttpClient
from elbowroom.history.records import History, Record
from elbowroom.history.report import Report, judge
from elbowroom.testing.cluster import PATIENCE_SECONDS, Document, described, until

MAIN = "main"
"""The container of the pods that a workspace makes."""
IMAGE = "registry.k8s.io/pause:3.10"
TOP_PRIORITY = 1_000_000_000
"""The highest that a user may give: nobody preempts it."""
RESIZE_CONDITIONS = ("PodResizePending", "PodResizeInProgress")
_STRATEGIC = "application/strategic-merge-patch+json"
_COLLECTIONS: Mapping[str, str] = {
    "nodes": "/api/v1/nodes",
    "namespaces": "/api/v1/namespaces",
    "priorityclasses": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "replicasets": "/apis/apps/v1/namespaces/{}/replicasets",
    "deployments": "/apis/apps/v1/namespaces/{}/deployments",
    "poddisruptionbudgets": "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
}

Found = TypeVar("Found")


class Target(Protocol):
    """A cluster that can be broken and judged: one of processes beside the test, or one in a container."""

    @property
    def http(self) -> HttpClient: ...

    def kill(
        self, component: str, *, signal: str = "KILL", at: str | None = None, hits: int = 1, stay_dead: bool = False
    ) -> None: ...

    def restarts(self, component: str) -> int: ...

    def history(self) -> History: ...


class Refused(AssertionError):
    """The API server refused a request: ``status`` is the HTTP status, ``document`` the Status object."""

    def __init__(self, method: str, path: str, answer: Answer) -> None:
        self.status, self.document = answer.status, dict(answer.document)
        super().__init__(f"{method} {path}: {answer.status} {self.document.get('message', '')}")


class Workspace:
    """A namespace of its own in ``cluster``, and what a test wants to do there. A context; used by one thread at a time."""

    def __init__(self, cluster: Target, namespace: str) -> None:
        self.cluster, self.namespace = cluster, namespace
        self._nodes: list[str] = []
        self._held: list[str] = []

    def __enter__(self) -> "Workspace":
        self.create("namespaces", {"metadata": {"name": self.namespace}})
        return self

    def __exit__(self, *why: object) -> None:
        """Wake what was left frozen or dead, and remove what was made; returns when the pods and nodes are gone."""
        while self._held:
            self.cluster.kill(self._held.pop(), signal="CONT")
        self.delete("namespaces", self.namespace)
        with suppress(Refused):
            self.request("DELETE", self.path("pods"), {"gracePeriodSeconds": 0})
        until(f"namespace {self.namespace} is empty", lambda: not self.pods(), state=self.state)
        for node in self._nodes:
            self.delete("nodes", node)
        for node in self._nodes:
            self.until_gone("nodes", node)

    # ------------------------------------------------------------ the API

    def path(self, resource: str, name: str = "", subresource: str = "") -> str:
        """The URL path of a collection (``pods``, ``replicasets``, ...; any core one by its plural), an object or a subresource."""
        collection = _COLLECTIONS.get(resource, f"/api/v1/namespaces/{{}}/{resource}").format(self.namespace)
        return "/".join(part for part in (collection, name, subresource) if part)

    def request(self, method: str, path: str, body: Any = None, *, kind: str = "application/json") -> Document:
        """A request until it is answered, whatever dies meanwhile; ``Refused`` if the answer is an error. A create or a delete that
        is asked for again, since nobody knew what became of it, may find that it was done: ``{}``."""
        is_in_doubt = False

        def answered() -> Answer | None:
            nonlocal is_in_doubt
            try:
                answer = self.cluster.http.request(method, path, body, content_type=kind)
            except OSError:
                is_in_doubt = True
                raise
            is_in_doubt = is_in_doubt or answer.status in (500, 504)
            return None if answer.status in (429, 500, 503, 504) else answer

        answer = until(f"{method} {path} is answered", answered)
        if is_in_doubt and (method, answer.status) in (("POST", 409), ("DELETE", 404)):
            return {}
        if answer.status >= 300:
            raise Refused(method, path, answer)
        return dict(answer.document)

    def create(self, resource: str, manifest: Mapping[str, Any]) -> Document:
        return self.request("POST", self.path(resource), manifest)

    def get(self, resource: str, name: str) -> Document:
        return self.request("GET", self.path(resource, name))

    def patch(self, resource: str, name: str, body: Any, subresource: str = "") -> Document:
        """A strategic merge patch."""
        return self.request("PATCH", self.path(resource, name, subresource), body, kind=_STRATEGIC)

    def delete(self, resource: str, name: str) -> None:
        """Ask for the deletion; what is not there is deleted."""
        try:
            self.request("DELETE", self.path(resource, name))
        except Refused as why:
            if why.status != 404:
                raise

    def pods(self, selector: str = "") -> dict[str, Pod]:
        """The pods by name, as they are now."""
        found = self.request("GET", self.path("pods") + (f"?labelSelector={selector}" if selector else ""))["items"]
        return {pod.metadata.name: pod for pod in msgspec.convert(found, list[Pod])}

    def view(self, name: str) -> Pod:
        """A pod as it is now, typed."""
        return msgspec.convert(self.get("pods", name), Pod)

    def state(self) -> str:
        """The pods as they are now, a line each."""
        return "\n".join(described(pod) for pod in self.pods().values()) or "no pods"

    # ------------------------------------------------------------ what there is

    def node(
        self,
        name: str = "",
        *,
        cpu: str = "4",
        memory: str = "4Gi",
        pods: int = 110,
        kubelet: Mapping[str, Any] | None = None,
        machine: Mapping[str, Any] | None = None,
        labels: Mapping[str, str] | None = None,
        taints: Sequence[Mapping[str, str]] = (),
    ) -> str:
        """The name of a new emulated node that is Ready; no other test's pods are on it, since it is tainted with the namespace
        (which the pods made here tolerate). ``kubelet`` has KubeletConfiguration's fields, ``machine`` the hardware."""
        made = name or f"{self.namespace}-{len(self._nodes) + 1}"
        annotations = {"elbowroom.dev/node": "emulated"}
        for key, settings in (("kubelet-config", kubelet), ("machine", machine)):
            if settings:
                annotations[f"elbowroom.dev/{key}"] = json.dumps(settings)
        own = {"key": _OWNER, "value": self.namespace, "effect": "NoSchedule"}
        self.create(
            "nodes",
            {
                "metadata": {
                    "name": made,
                    "annotations": annotations,
                    "labels": {"kubernetes.io/hostname": made, **(labels or {})},
                },
                "spec": {"taints": [own, *map(dict, taints)]},
                "status": {"capacity": {"cpu": cpu, "memory": memory, "pods": str(pods)}},
            },
        )
        self._nodes.append(made)

        def is_ready() -> bool:
            return _is_true(self.get("nodes", made), "Ready")

        until(f"node {made} is Ready", is_ready)
        return made

    def pod(self, name: str, *, is_ready: bool = True, **what: Any) -> Document:
        """A new pod with one container ``main``, as ``manifest`` describes it; returned once it is Ready, unless ``is_ready`` is
        False."""
        self.create("pods", self.manifest(name, **what))
        return self.until_ready(name) if is_ready else self.get("pods", name)

    def replicas(self, name: str, count: int, **pod: Any) -> Document:
        """A new ReplicaSet with so many pods, all Ready, labelled ``app: name``; the arguments are those of ``manifest``."""
        labels = {"app": name, **pod.pop("labels", {})}
        template = self.manifest("", labels=labels, **pod)
        template["metadata"].pop("name")
        spec = {"replicas": count, "selector": {"matchLabels": {"app": name}}, "template": template}
        self.create("replicasets", {"metadata": {"name": name}, "spec": spec})

        def are_ready() -> Document | None:
            found = self.get("replicasets", name)
            return found if found["status"].get("readyReplicas", 0) == count else None

        return self.until(f"{count} pods of {name} are Ready", are_ready)

    def manifest(
        self,
        name: str,
        *,
        cpu: str = "100m",
        memory: str = "64Mi",
        limits: Mapping[str, str] | None = None,
        guaranteed: bool = False,
        node: str = "",
        priority: int | None = None,
        workload: Mapping[str, Any] | None = None,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        spec: Mapping[str, Any] | None = None,
    ) -> Document:
        """A pod with one container ``main`` that ends at once when it is told to: on ``node`` if one is named (the scheduler puts
        it there), ``guaranteed`` with limits like its requests. ``workload`` says how it behaves (``{"memoryUsage": "40Mi"}``);
        ``spec`` is laid over the pod's."""
        requests = {"cpu": cpu, "memory": memory}
        wanted: Document = {"requests": requests}
        if guaranteed or limits:
            wanted["limits"] = {**(requests if guaranteed else {}), **(limits or {})}
        notes = {**(annotations or {}), **({"elbowroom.dev/workload": json.dumps({MAIN: workload})} if workload else {})}
        whole: Document = {
            "containers": [{"name": MAIN, "image": IMAGE, "resources": wanted}],
            "terminationGracePeriodSeconds": 0,
            "tolerations": [{"key": _OWNER, "operator": "Equal", "value": self.namespace, "effect": "NoSchedule"}],
        }
        if node:
            whole["nodeSelector"] = {"kubernetes.io/hostname": node}
        if priority is not None:
            whole["priorityClassName"] = self.priority_class(priority)
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": dict(labels or {}), "annotations": notes},
            "spec": {**whole, **(spec or {})},
        }

    def priority_class(self, value: int) -> str:
        """The name of a PriorityClass of that value, which is there."""
        name = f"priority-{value}" if value >= 0 else f"priority-minus-{-value}"
        with suppress(Refused):  # another test made it
            self.create("priorityclasses", {"metadata": {"name": name}, "value": value})
        return name

    # ------------------------------------------------------------ resizes

    def resize(self, pod: str, *, cpu: str = "", memory: str = "", container: str = MAIN) -> Document:
        """The answer to a resize of the container's requests and, where it has one, of the limit too, so that the pod's class of
        service stays."""
        now = next(c for c in self.get("pods", pod)["spec"]["containers"] if c["name"] == container)["resources"]
        wanted = {name: text for name, text in (("cpu", cpu), ("memory", memory)) if text}
        limits = {name: text for name, text in wanted.items() if name in now.get("limits", {})}
        asked = {"requests": wanted, **({"limits": limits} if limits else {})}
        return self.patch("pods", pod, {"spec": {"containers": [{"name": container, "resources": asked}]}}, "resize")

    def fill(self, node: str) -> str:
        """The name of a new pod that takes all that is free on the node and that nobody preempts; deleted, it gives the room
        back."""
        mine = msgspec.convert(self.get("nodes", node), Node)
        everywhere = self.request("GET", f"/api/v1/pods?fieldSelector=spec.nodeName={node}")["items"]
        there = [pod for pod in msgspec.convert(everywhere, list[Pod]) if pod.status.phase not in ("Succeeded", "Failed")]
        free = resources.of(mine.status.allocatable)
        for pod in there:
            free = resources.subtract(free, resources.effective_requests(pod))
        name = f"fill-{node}"[:63].rstrip("-.")
        room = resources.resource_list({part: free[part] for part in ("cpu", "memory")})
        self.pod(name, cpu=room["cpu"], memory=room["memory"], node=node, priority=TOP_PRIORITY)
        return name

    def defer(self, pod: str) -> str:
        """Make a resize of the pod wait: its node is filled, and the pod then wants all of it. Returned once it is Deferred, with
        the name of the pod that is in the way; delete that to let it go on."""
        node = self.view(pod).spec.node_name
        obstacle = self.fill(node)
        self.resize(pod, cpu=self._allocatable(node)["cpu"])
        self.until_deferred(pod)
        return obstacle

    def make_infeasible(self, pod: str) -> Document:
        """The pod once its kubelet called a resize beyond the whole node Infeasible (profile ``lab``). With the profile ``v1.37``
        the API server refuses that already: ``Refused``, status 403."""
        node = self.view(pod).spec.node_name
        whole = resources.of(self._allocatable(node))["cpu"]
        self.resize(pod, cpu=resources.resource_list({"cpu": whole + 1000})["cpu"])
        return self.until_infeasible(pod)

    def _allocatable(self, node: str) -> dict[str, str]:
        found: dict[str, str] = self.get("nodes", node)["status"]["allocatable"]
        return found

    # ------------------------------------------------------------ facts

    def until(self, what: str, look: Callable[[], Found | None], within: float = PATIENCE_SECONDS) -> Found:
        """The first answer of ``look`` that is true; AssertionError with ``what`` and the state of the pods if none comes."""
        return until(what, look, within, self.state)

    def until_pod(self, name: str, what: str, fact: Callable[[Document], Any]) -> Document:
        """The pod as it is when ``fact`` holds of its document."""

        def look() -> Document | None:
            found = self.get("pods", name)
            return found if fact(found) else None

        return self.until(f"{name} is {what}", look)

    def until_ready(self, name: str) -> Document:
        return self.until_pod(name, "Ready", lambda pod: _is_true(pod, "Ready"))

    def until_deferred(self, name: str) -> Document:
        return self.until_pod(name, "Deferred", lambda pod: _pending(pod) == "Deferred")

    def until_infeasible(self, name: str) -> Document:
        return self.until_pod(name, "Infeasible", lambda pod: _pending(pod) == "Infeasible")

    def until_resized(self, name: str) -> Document:
        """Until what the pod wants is what it has, its kubelet has seen the last wish, and no resize is under way."""
        return self.until_pod(name, "resized", is_resized)

    def until_gone(self, resource: str, name: str) -> None:
        def is_gone() -> bool:
            try:
                self.get(resource, name)
            except Refused as why:
                return why.status == 404
            return False

        self.until(f"{resource}/{name} is gone", is_gone)

    def until_event(self, name: str, reason: str) -> Document:
        """The first Event of that reason about the object."""
        path = f"{self.path('events')}?fieldSelector=involvedObject.name={name},reason={reason}"
        found = self.until(f"an event {reason} about {name}", lambda: self.request("GET", path)["items"])
        return dict(found[0])

    # ------------------------------------------------------------ faults and judgement

    def kill(self, component: str, *, signal: str = "KILL", at: str | None = None, hits: int = 1, stay_dead: bool = False) -> None:
        """``elbowroom kill``: now, or with ``at`` at a step of the component's work (``K4``). What is left frozen (``STOP``) or
        dead is woken when the workspace closes."""
        if stay_dead or signal == "STOP":
            self._held.append(component)
        elif signal == "CONT" and component in self._held:
            self._held.remove(component)
        self.cluster.kill(component, signal=signal, at=at, hits=hits, stay_dead=stay_dead)

    def restarts(self, component: str) -> int:
        """How often the supervisor has started the component again."""
        return self.cluster.restarts(component)

    def records(self, kind: str) -> list[Record]:
        """The history's records of that kind about objects of this namespace, in order (docs/histories.md lists the kinds)."""
        start = f"{self.namespace}/"
        return [r for r in self.cluster.history().kinds(kind) if any(str(r.get(f, "")).startswith(start) for f in _OBJECTS)]

    def victims(self, of: str = "") -> list[str]:
        """The names of the pods that the scheduler preempted here, in order; with ``of`` only those that went for that pod."""
        told = [r for r in self.records("sch.delete") if not of or r["preemptor"] == f"{self.namespace}/{of}"]
        return list(dict.fromkeys(r["victim"].partition("/")[2] for r in told))

    def report(self) -> Report:
        """The verdict on all that the cluster did so far, this test's doings and others'."""
        return judge(self.cluster.history())

    def assert_valid(self) -> None:
        """AssertionError with the evidence unless the history so far is valid."""
        report = self.report()
        assert report.verdict == "valid", report.text()


_OWNER = "elbowroom.dev/workspace"
_OBJECTS = ("pod", "victim")
_UNFIT = re.compile(r"[^a-z0-9]+")


def namespace_of(test: str, number: int) -> str:
    """A namespace's name for a test: readable, valid and unlike that of any other number."""
    word = _UNFIT.sub("-", test.lower()).strip("-")[:40].strip("-")
    return f"{word or 'test'}-{number}"


def is_resized(pod: Mapping[str, Any]) -> bool:
    """Does the pod's document say that all layers agree and that nothing is under way?"""
    view = msgspec.convert(pod, Pod)
    layers = (resources.allocated_requests(view), resources.actual_requests(view))
    seen = view.status.observed_generation == view.metadata.generation
    return (
        seen and not any(map(view.condition, RESIZE_CONDITIONS)) and all(resources.spec_requests(view) == layer for layer in layers)
    )


def _condition(document: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    return next((c for c in document.get("status", {}).get("conditions", []) if c["type"] == kind), {})


def _is_true(document: Mapping[str, Any], kind: str) -> bool:
    return bool(_condition(document, kind).get("status") == "True")


def _pending(pod: Mapping[str, Any]) -> str:
    return str(_condition(pod, "PodResizePending").get("reason", ""))
