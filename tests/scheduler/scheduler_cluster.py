"""A scheduler on virtual time before a small API server: what its tests stand on.

The server keeps documents, tells watchers of changes and knows bindings, graceful deletion and status patches; no more. Replies can
be held back or changed, so a test can say what a lost or refused call does.
"""

import heapq
import json
import random
from collections.abc import Callable, Sequence
from typing import Any

from elbowroom.api.gates import Profile, profile_of
from elbowroom.machine import Effect, Input, Instant, Note, PeerConnected, Received, Send, SetTimer, Step, TimerFired, seconds
from elbowroom.scheduler.machine import Scheduler, build
from elbowroom.wire import (
    ApiRequest,
    ApiResponse,
    Call,
    Code,
    Reply,
    StreamBookmark,
    StreamCancel,
    StreamEnd,
    StreamEvent,
    decode_value,
    encode_value,
)

Document = dict[str, Any]
START = Instant(seconds(1_780_000_000))
Verdict = ApiResponse | Code | None
"""How a call ends other than by itself: refused with that answer, done but answered with that code (lost), or as it would."""


def pod(
    name: str,
    *,
    node: str = "",
    cpu: str = "",
    memory: str = "",
    priority: int = 0,
    labels: dict[str, str] | None = None,
    allocated: str = "",
    conditions: Sequence[Document] = (),
    started: str = "",
    status: Document | None = None,
    namespace: str = "default",
    requests: dict[str, str] | None = None,
    **spec: Any,
) -> Document:
    """A pod document. ``allocated``: the cpu that its status shows, where that is not what it asks for."""
    wanted = requests or {key: value for key, value in (("cpu", cpu), ("memory", memory)) if value}
    told: Document = {"phase": "Running" if node else "Pending", "conditions": list(conditions), **(status or {})}
    if allocated:
        told["containerStatuses"] = [
            {"name": "c", "allocatedResources": {"cpu": allocated}, "resources": {"requests": {"cpu": allocated}}}
        ]
    if started:
        told["startTime"] = started
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}", "labels": labels or {}, "generation": 1},
        "spec": {
            "containers": [{"name": "c", "image": "pause", "resources": {"requests": wanted}}],
            "priority": priority,
            **({"nodeName": node} if node else {}),
            **spec,
        },
        "status": told,
    }


DEFERRED = {"type": "PodResizePending", "status": "True", "reason": "Deferred"}
INFEASIBLE = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
DISABLED = {"type": "PodResizePreemptionDisabled", "status": "True", "reason": "PreemptionDisabledByNodePolicy"}


def deferred(name: str, node: str, cpu: str, allocated: str, priority: int = 0, **more: Any) -> Document:
    """A running pod whose wish for ``cpu`` its kubelet put off; it has ``allocated``."""
    return pod(name, node=node, cpu=cpu, allocated=allocated, priority=priority, conditions=[DEFERRED], **more)


def node(name: str, cpu: str = "4", memory: str = "8Gi", pods: str = "110", **more: Any) -> Document:
    """A node document; ``labels``, ``taints``, ``unschedulable``, ``disabled`` (the policy's owners), ``extended``, ``declared``
    (features)."""
    spec: Document = {key: more[key] for key in ("taints", "unschedulable") if key in more}
    if "disabled" in more:
        spec["podPreemptionPolicy"] = {"disableResizePreemption": more["disabled"]}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": {"kubernetes.io/hostname": name, **more.get("labels", {})}},
        "spec": spec,
        "status": {
            "allocatable": {"cpu": cpu, "memory": memory, "pods": pods, **more.get("extended", {})},
            "declaredFeatures": more.get("declared", []),
        },
    }


def budget(name: str, selector: dict[str, str], allowed: int, disrupted: Sequence[str] = ()) -> Document:
    return {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {"selector": {"matchLabels": selector}},
        "status": {"disruptionsAllowed": allowed, "disruptedPods": {each: "2099-01-01T00:00:00Z" for each in disrupted}},
    }


WATCHED = ("pods", "nodes", "poddisruptionbudgets", "namespaces", "services", "replicasets", "podgroups")


class Cluster:
    """The scheduler, its API server and their clock. ``settle`` carries on until nothing is left to do."""

    def __init__(self, profile: Profile | str = "lab", seed: int = 1, unserved: Sequence[str] = (), **config: Any) -> None:
        """``unserved``: what the API server has no such kind of."""
        self._unserved = unserved
        self.profile = (
            profile_of(profile, {"InPlacePodVerticalScalingSchedulerPreemption": True}) if isinstance(profile, str) else profile
        )
        self.config = config
        self.seed = seed
        self.now = START
        self.revision = 10
        self.documents: dict[str, dict[str, Document]] = {name: {} for name in WATCHED}
        self.events: list[Document] = []
        self.requests: list[ApiRequest] = []
        self.notes: list[Note] = []
        self.steps: list[str] = []
        self.judge: Callable[[ApiRequest], Verdict] = lambda request: None
        self.hold: Callable[[ApiRequest], bool] = lambda request: False
        """Requests that are not looked at until ``release``."""
        self._held: list[Call] = []
        self._log: dict[str, list[tuple[int, str, Document]]] = {name: [] for name in self.documents}
        self._streams: dict[str, tuple[int, int, int]] = {}
        self._inbox: list[Input] = []
        self._timers: dict[str, Instant] = {}
        self.scheduler = self._begin()

    # ---- the world

    def put(self, resource: str, document: Document) -> None:
        """Create or change an object, as anybody might."""
        meta = document["metadata"]
        key = f"{meta['namespace']}/{meta['name']}" if "namespace" in meta else meta["name"]
        change = "MODIFIED" if key in self.documents[resource] else "ADDED"
        self.revision += 1
        stored = json.loads(json.dumps(document))
        stored["metadata"]["resourceVersion"] = str(self.revision)
        self.documents[resource][key] = stored
        self._tell(resource, change, stored)

    def remove(self, resource: str, key: str) -> None:
        self.revision += 1
        self._tell(resource, "DELETED", self.documents[resource].pop(key))

    def pods(self, *documents: Document) -> "Cluster":
        for document in documents:
            self.put("pods", document)
        return self

    def nodes(self, *documents: Document) -> "Cluster":
        for document in documents:
            self.put("nodes", document)
        return self

    def pod(self, name: str) -> Document:
        return self.documents["pods"][f"default/{name}"]

    def change(self, name: str, changed: Callable[[Document], None], resource: str = "pods") -> None:
        """Change an object of the namespace default (or a node)."""
        key = name if resource == "nodes" else f"default/{name}"
        document = json.loads(json.dumps(self.documents[resource][key]))
        changed(document)
        self.put(resource, document)

    def gone(self, *names: str) -> None:
        """The kubelet has ended these pods."""
        for name in names:
            self.remove("pods", f"default/{name}")

    def settle(self, limit: int = 10_000) -> "Cluster":
        """Hand over messages and the timers that are due, until there are none."""
        for _ in range(limit):
            due = sorted((at, name) for name, at in self._timers.items() if at <= self.now)
            if self._inbox:
                self._carry_out(self.scheduler.step(self.now, self._inbox.pop(0)))
            elif due:
                del self._timers[due[0][1]]
                self._carry_out(self.scheduler.step(self.now, TimerFired(due[0][1])))
            else:
                return self
        raise AssertionError("the scheduler does not come to rest")

    def steps_of_the_machine(self, count: int) -> None:
        """Hand over so many messages and no more."""
        for _ in range(count):
            self._carry_out(self.scheduler.step(self.now, self._inbox.pop(0)))

    def later(self, amount: float) -> "Cluster":
        """Let time pass, stopping at each timer."""
        end = Instant(self.now + seconds(amount))
        self.settle()
        while True:
            upcoming = [at for name, at in self._timers.items() if at <= end]
            if not upcoming:
                break
            heapq.heapify(upcoming)
            self.now = max(self.now, upcoming[0])
            self.settle()
        self.now = end
        return self.settle()

    def restart(self) -> "Cluster":
        """The scheduler dies, with all that it has under way, and another one starts."""
        self._inbox.clear()
        self._timers.clear()
        self._streams.clear()
        self._held.clear()
        self.scheduler = self._begin()
        return self

    def reconnect(self) -> None:
        """The connection to the API server was replaced."""
        self._streams.clear()
        self._inbox.append(PeerConnected("apiserver"))

    def release(self) -> None:
        """Let the API server look at what was held back."""
        held, self._held = self._held, []
        self.hold = lambda request: False
        for call in held:
            self._answer(call)

    def send(self, message: Any, source: str = "apiserver") -> Sequence[Effect]:
        return self.scheduler.step(self.now, Received(source, message))

    # ---- looking

    def node_of(self, name: str) -> str:
        found: str = self.pod(name)["spec"].get("nodeName", "")
        return found

    def condition(self, name: str, kind: str) -> Document:
        found = [each for each in self.pod(name)["status"].get("conditions", []) if each["type"] == kind]
        return found[0] if found else {}

    def told(self, name: str, reason: str) -> list[str]:
        """The messages of a pod's events."""
        return [each["message"] for each in self.events if (each["involvedObject"]["name"], each["reason"]) == (name, reason)]

    def noted(self, name: str) -> list[dict[str, Any]]:
        return [dict(note.fields) for note in self.notes if note.name == name]

    def deleted(self) -> list[str]:
        """The names of the pods that were told to go, in order."""
        return [request.name for request in self.requests if request.verb == "delete"]

    def attempts(self, name: str) -> int:
        return sum(1 for fields in self.noted("sch.pop") if fields["pod"] == f"default/{name}")

    def metrics(self) -> dict[str, float]:
        """The samples of /metrics by their text before the value."""
        effects = self.send(Call(1, "proxy", encode_value({"path": "metrics", "query": {}})), "apiserver")
        (sent,) = effects
        assert isinstance(sent, Send) and isinstance(sent.message, Reply)
        answer = decode_value(sent.message.body, dict)
        lines = answer["body"].decode().splitlines()
        return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}

    # ---- inside

    def _begin(self) -> Scheduler:
        machine = build(
            {"profile": self.profile.as_config(), "epoch": 1, "name": "scheduler", **self.config}, random.Random(self.seed)
        )
        assert isinstance(machine, Scheduler)
        self._carry_out(machine.start(self.now, {}))
        return machine

    def _carry_out(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            match effect:
                case SetTimer(name, at):
                    self._timers.pop(name, None)
                    if at is not None:
                        self._timers[name] = at
                case Send(_, Call() as call):
                    self._answer(call)
                case Send(_, StreamCancel(number)):
                    self._streams = {name: stream for name, stream in self._streams.items() if stream[0] != number}
                case Note():
                    self.notes.append(effect)
                case Step(label):
                    self.steps.append(label)
                case _:
                    pass

    def _answer(self, call: Call) -> None:
        request = decode_value(call.body, ApiRequest)
        if request.verb == "watch":
            self._watch(call.id, request)
            return
        if self.hold(request):
            self._held.append(call)
            return
        self.requests.append(request)
        verdict = self.judge(request)
        if isinstance(verdict, ApiResponse):
            self._inbox.append(Received("apiserver", Reply(call.id, body=encode_value(verdict))))
            return
        response = self._serve(request)
        code = verdict if verdict is not None else Code.OK
        self._inbox.append(Received("apiserver", Reply(call.id, code, encode_value(response))))

    def _serve(self, request: ApiRequest) -> ApiResponse:
        body = json.loads(request.body) if request.body else {}
        key = f"{request.namespace}/{request.name}"
        if request.resource == "events":
            if request.verb == "create":
                self.events.append(body)
            else:
                next(each for each in self.events if each["metadata"]["name"] == request.name).update(body)
            return ApiResponse(201)
        document = json.loads(json.dumps(self.documents[request.resource].get(key)))
        if document is None:
            return _refusal(404, f'pods "{request.name}" not found')
        if request.subresource == "binding":
            if document["spec"].get("nodeName"):
                return _refusal(409, f"pod {request.name} is already assigned to node")
            document["spec"]["nodeName"] = body["target"]["name"]
            document["status"].pop("nominatedNodeName", None)
            self.put(request.resource, document)
        elif request.verb == "patch":
            status = document["status"]
            order = [each["type"] for each in body["status"].pop("$setElementOrder/conditions", [])]
            for condition in body["status"].pop("conditions", []):
                kept = [each for each in status.get("conditions", []) if each["type"] != condition["type"]]
                status["conditions"] = sorted([*kept, condition], key=lambda each: (*order, each["type"]).index(each["type"]))
            status.update(body["status"])
            status = {name: value for name, value in status.items() if value is not None}
            document["status"] = status
            self.put(request.resource, document)
        elif request.verb == "delete":
            if document["spec"].get("nodeName"):
                document["metadata"].setdefault("deletionTimestamp", "2026-05-28T00:00:00Z")
                self.put(request.resource, document)
            else:
                self.remove(request.resource, key)
        return ApiResponse(200)

    def _watch(self, number: int, request: ApiRequest) -> None:
        name = request.resource
        if name in self._unserved:
            self._inbox.append(Received("apiserver", StreamEnd(number, Code.NOT_FOUND, message="there is no such kind")))
            return
        self._streams[name] = (number, 0, self.revision)
        if "sendInitialEvents" in request.query:
            for document in self.documents[name].values():
                self._tell(name, "ADDED", document)
            _, sequence, _ = self._streams[name]
            self._streams[name] = (number, sequence, self.revision)
            self._inbox.append(Received("apiserver", StreamBookmark(number, sequence, self.revision, initial_end=True)))
        else:
            since = int(request.query["resourceVersion"])
            self._streams[name] = (number, 0, since)
            for revision, change, document in [each for each in self._log[name] if each[0] > since]:
                self._forward(name, revision, change, document)

    def _tell(self, resource: str, change: str, document: Document) -> None:
        revision = self.revision if change == "DELETED" else int(document["metadata"]["resourceVersion"])
        if not self._log[resource] or self._log[resource][-1][0] < revision:
            self._log[resource].append((revision, change, document))
        self._forward(resource, revision, change, document)

    def _forward(self, resource: str, revision: int, change: str, document: Document) -> None:
        stream = self._streams.get(resource)
        if stream is None:
            return
        number, sequence, previous = stream
        raw = json.dumps(document).encode()
        self._inbox.append(Received("apiserver", StreamEvent(number, sequence + 1, revision, previous, change, raw)))
        self._streams[resource] = (number, sequence + 1, revision)


def _refusal(status: int, message: str) -> ApiResponse:
    return ApiResponse(status, json.dumps({"kind": "Status", "message": message, "code": status}).encode())
