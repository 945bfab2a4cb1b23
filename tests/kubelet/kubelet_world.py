"""A small world around one kubelet: an API server of dicts, the real runtime, virtual time, and death between any two effects."""

import copy
import heapq
import itertools
import random
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from elbowroom.api.gates import profile_of
from elbowroom.api.objects import Pod
from elbowroom.api.resources import qos_class
from elbowroom.kubelet.machine import build as build_kubelet
from elbowroom.machine import (
    Effect,
    FolderRead,
    Input,
    Instant,
    Machine,
    Note,
    PeerConnected,
    Persist,
    Received,
    Send,
    SetTimer,
    Step,
    TimerFired,
    WatchFolder,
    Work,
    as_time,
    seconds,
)
from elbowroom.runtime.machine import build as build_runtime
from elbowroom.wire import (
    ApiRequest,
    ApiResponse,
    Call,
    Code,
    Message,
    Reply,
    StreamBookmark,
    StreamCancel,
    StreamEvent,
    decode_value,
    encode_value,
)

NODE = "n1"
KUBELET, RUNTIME, API = f"kubelet/{NODE}", f"runtime/{NODE}", "apiserver"
START = Instant(1_796_000_000_000_000_000)
HOP = 300_000
"""Nanoseconds that a message travels."""


def a_container(
    name: str = "c", cpu: str = "", memory: str = "", limits: Mapping[str, str] | None = None, **more: Any
) -> dict[str, Any]:
    requests = {k: v for k, v in (("cpu", cpu), ("memory", memory)) if v}
    resources = {k: dict(v) for k, v in (("requests", requests), ("limits", limits or {})) if v}
    return {"name": name, "image": "pause:3.10", "resources": resources, **more}


def a_pod(name: str, *containers: dict[str, Any], grace: int = 0, workload: Any = None, **spec: Any) -> dict[str, Any]:
    notes = {"elbowroom.dev/workload": msgspec.json.encode(workload).decode()} if workload else {}
    return {
        "metadata": {"name": name, "namespace": "ns", "annotations": notes},
        "spec": {
            "nodeName": NODE,
            "containers": list(containers) or [a_container(cpu="500m", memory="256Mi")],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": grace,
            **spec,
        },
    }


# ---------------------------------------------------------------- the API server


def merge(old: Any, new: Any, field: str = "") -> Any:
    """A strategic merge patch, for the few lists that a kubelet patches."""
    if isinstance(old, dict) and isinstance(new, dict):
        made = dict(old)
        for key, value in new.items():
            if key.startswith("$setElementOrder/"):
                continue
            if value is None:
                made.pop(key, None)
            else:
                made[key] = merge(made.get(key), value, key)
        for key, value in new.items():
            if key.startswith("$setElementOrder/"):
                name = key.partition("/")[2]
                order = [entry["type"] for entry in value]
                made[name] = sorted(made.get(name, []), key=lambda c: order.index(c["type"]) if c["type"] in order else len(order))
        return made
    if field == "conditions":
        found = {c["type"]: c for c in old or []}
        for c in new:
            if c.get("$patch") == "delete":
                found.pop(c["type"], None)
            else:
                found[c["type"]] = merge(found.get(c["type"], {}), c)
        return list(found.values())
    if isinstance(new, dict):
        return merge({}, new)
    return new


class Api:
    """Objects by resource and key; answers calls and feeds watches, in the order of its revisions."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self.objects: dict[str, dict[str, dict[str, Any]]] = {"pods": {}, "nodes": {}, "events": {}, "leases": {}}
        self.revision = 0
        self.watches: dict[int, dict[str, Any]] = {}
        self.log: list[tuple[int, dict[str, Any], str]] = []
        self.patches: list[tuple[str, dict[str, Any]]] = []
        """Status patches of pods, by name."""
        self.writes: list[tuple[str, str, str]] = []
        self.down = False
        self._uids = itertools.count(1)

    # what tests do

    def create(self, resource: str, document: dict[str, Any]) -> dict[str, Any]:
        made = copy.deepcopy(document)
        meta = made["metadata"]
        meta.setdefault("uid", f"uid-{next(self._uids)}")
        meta.setdefault("creationTimestamp", as_time(self._world.now))
        if resource == "pods":
            meta["generation"] = 1
            made.setdefault("status", {"phase": "Pending"})["qosClass"] = qos_class(msgspec.convert(made, Pod))
        return self._put(resource, made, "ADDED")

    def pod(self, name: str) -> dict[str, Any] | None:
        return self.objects["pods"].get(f"ns/{name}")

    def change(self, resource: str, key: str, change: Callable[[dict[str, Any]], None], *, bump: bool = False) -> None:
        made = copy.deepcopy(self.objects[resource][key])
        change(made)
        if bump:
            made["metadata"]["generation"] += 1
        self._put(resource, made, "MODIFIED")

    def resize(self, name: str, container: str = "c", *, requests: Any = None, limits: Any = None, level: Any = None) -> None:
        def apply(pod: dict[str, Any]) -> None:
            for c in [*pod["spec"]["containers"], *pod["spec"].get("initContainers", [])]:
                if c["name"] == container:
                    for part, amounts in (("requests", requests), ("limits", limits)):
                        if amounts:
                            c.setdefault("resources", {}).setdefault(part, {}).update(amounts)
            if level:
                pod["spec"]["resources"] = merge(pod["spec"].get("resources", {}), level)

        self.change("pods", f"ns/{name}", apply, bump=True)

    def delete(self, name: str, grace: int | None = None) -> None:
        pod = self.objects["pods"][f"ns/{name}"]
        grace = pod["spec"]["terminationGracePeriodSeconds"] if grace is None else grace
        if grace == 0:
            self._drop("pods", f"ns/{name}")
            return

        def mark(made: dict[str, Any]) -> None:
            made["metadata"]["deletionTimestamp"] = as_time(Instant(self._world.now + seconds(grace)))
            made["metadata"]["deletionGracePeriodSeconds"] = grace

        self.change("pods", f"ns/{name}", mark, bump=True)

    def events(self, reason: str = "", name: str = "") -> list[dict[str, Any]]:
        found = self.objects["events"].values()
        return [e for e in found if reason in ("", e["reason"]) and name in ("", e["involvedObject"]["name"])]

    # the wire

    def received(self, source: str, message: Message) -> None:
        match message:
            case _ if self.down:
                return
            case Call(method="watch") as call:
                self._watch(source, call)
            case Call(method="api") as call:
                answer = self._answer(decode_value(call.body, ApiRequest))
                self._world.post(API, source, Reply(call.id, Code.OK, encode_value(answer)))
            case StreamCancel(id=number):
                self.watches.pop(number, None)

    def forget_watches(self) -> None:
        self.watches.clear()

    def _answer(self, request: ApiRequest) -> ApiResponse:
        key = f"{request.namespace}/{request.name}" if request.namespace else request.name
        body = msgspec.json.decode(request.body) if request.body else {}
        store = self.objects[request.resource]
        match request.verb:
            case "create":
                key = f"{request.namespace}/{body['metadata']['name']}"
                if key in store:
                    return ApiResponse(409)
                if request.resource == "pods":
                    assert "uid" not in body["metadata"], "the API server gives the uid"
                    return self._ok(self.create("pods", body), 201)
                return self._ok(self._put(request.resource, body, "ADDED"), 201)
            case "patch":
                if key not in store:
                    return ApiResponse(404)
                uid = body.get("metadata", {}).get("uid", store[key]["metadata"].get("uid"))
                if uid != store[key]["metadata"].get("uid"):
                    return ApiResponse(409)
                if request.resource == "pods":
                    assert request.subresource == "status", "a kubelet writes the status alone"
                    self.patches.append((request.name, body["status"]))
                made = merge(store[key], body)
                return self._ok(store[key] if made == store[key] else self._put(request.resource, made, "MODIFIED"))
            case "delete":
                if key not in store:
                    return ApiResponse(404)
                assert body["gracePeriodSeconds"] == 0
                if body["preconditions"]["uid"] != store[key]["metadata"]["uid"]:
                    return ApiResponse(409)
                gone = store[key]
                self._drop(request.resource, key)
                return self._ok(gone)
        raise AssertionError(f"a kubelet does not ask for {request.verb}")

    def _ok(self, document: dict[str, Any], status: int = 200) -> ApiResponse:
        return ApiResponse(status, msgspec.json.encode(document))

    def _put(self, resource: str, document: dict[str, Any], change: str) -> dict[str, Any]:
        self.revision += 1
        meta = document["metadata"]
        meta["resourceVersion"] = str(self.revision)
        key = f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else meta["name"]
        self.objects[resource][key] = document
        self.writes.append((resource, key, change))
        self._tell(resource, document, change)
        return document

    def _drop(self, resource: str, key: str) -> None:
        gone = self.objects[resource].pop(key)
        self.revision += 1
        gone["metadata"]["resourceVersion"] = str(self.revision)
        self.writes.append((resource, key, "DELETED"))
        self._tell(resource, gone, "DELETED")

    def _watch(self, source: str, call: Call) -> None:
        request = decode_value(call.body, ApiRequest)
        watch = {"source": source, "resource": request.resource, "sequence": 0, "revision": self.revision}
        if "sendInitialEvents" in request.query:
            for document in self.objects[request.resource].values():
                self._event(call.id, watch, document, "ADDED")
            watch["revision"] = self.revision
            self._world.post(API, source, StreamBookmark(call.id, watch["sequence"], self.revision, initial_end=True))
        else:
            watch["revision"] = since = int(request.query["resourceVersion"])
            for revision, document, change in self.log:
                if revision > since and document["kind"] == request.resource:
                    self._event(call.id, watch, document["object"], change)
        self.watches[call.id] = watch

    def bookmark(self) -> None:
        """Show every reader that its stream lives."""
        for number, watch in self.watches.items():
            self._world.post(API, watch["source"], StreamBookmark(number, watch["sequence"], watch["revision"]))

    def _tell(self, resource: str, document: dict[str, Any], change: str) -> None:
        self.log.append((self.revision, {"kind": resource, "object": copy.deepcopy(document)}, change))
        for number, watch in self.watches.items():
            if watch["resource"] == resource:
                self._event(number, watch, document, change)

    def _event(self, number: int, watch: dict[str, Any], document: dict[str, Any], change: str) -> None:
        watch["sequence"] += 1
        revision = int(document["metadata"]["resourceVersion"])
        raw = msgspec.json.encode(document)
        message = StreamEvent(number, watch["sequence"], revision, watch["revision"], change, raw)
        watch["revision"] = revision
        self._world.post(API, watch["source"], message)


# ---------------------------------------------------------------- the world


class World:
    """Virtual time, messages in order on each link, machines with their disks."""

    def __init__(
        self,
        *,
        profile: str = "lab",
        gates: Mapping[str, bool] | None = None,
        cpu: str = "4",
        memory: str = "8Gi",
        kubelet: Any = None,
        machine: Any = None,
        node_spec: Any = None,
        cgroup_version: int = 2,
        cgroup_driver: str = "cgroupfs",
        start: bool = True,
    ) -> None:
        self.now = START
        self.boot = "boot-1"
        """Of the machine under the kubelet."""
        self.profile = profile_of(profile, gates)
        self.api = Api(self)
        self.notes: list[tuple[str, Mapping[str, Any]]] = []
        self.calls: list[tuple[str, Any]] = []
        """Calls to the runtime, by method, with their raw bodies."""
        self.effects = 0
        """Effects of the kubelet carried out so far."""
        self.die_at: int | None = None
        self.files: dict[str, bytes | None] = {}
        """What is in the manifest folder."""
        self._watched = ""
        self.refuse: dict[str, tuple[Code, str]] = {}
        """Methods that the runtime refuses."""
        self._disks: dict[str, dict[str, bytes]] = {KUBELET: {}, RUNTIME: {}}
        self._machines: dict[str, Machine] = {}
        self._queue: list[tuple[Instant, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._timers: dict[tuple[str, str], int] = {}
        self._epochs = itertools.count(1)
        self._lives: dict[str, int] = {KUBELET: 0, RUNTIME: 0}
        notes = {}
        if kubelet is not None:
            notes["elbowroom.dev/kubelet-config"] = msgspec.json.encode(kubelet).decode()
        if machine is not None:
            notes["elbowroom.dev/machine"] = msgspec.json.encode(machine).decode()
        amounts = {"cpu": cpu, "memory": memory, "pods": "110"}
        self.api.create(
            "nodes",
            {
                "metadata": {"name": NODE, "annotations": notes, "labels": {}},
                "spec": node_spec or {},
                "status": {"capacity": amounts, "allocatable": dict(amounts)},
            },
        )
        self._hardware = {"cgroup_version": cgroup_version, "cgroup_driver": cgroup_driver}
        self._bookmarks()
        if start:
            self.start_runtime()
            self.start_kubelet()
            self.run(1)

    def _bookmarks(self) -> None:
        if not self.api.down:
            self.api.bookmark()
        self._at(Instant(self.now + seconds(5)), self._bookmarks)

    # lives

    def start_runtime(self) -> None:
        config = {"node": NODE, "name": RUNTIME, "epoch": next(self._epochs), **self._hardware}
        self._begin(RUNTIME, build_runtime(config, random.Random(1)))

    def start_kubelet(self) -> None:
        epoch = next(self._epochs)
        config = {"node": NODE, "name": KUBELET, "epoch": epoch, "profile": self.profile.as_config(), "boot": self.boot}
        self._begin(KUBELET, build_kubelet(config, random.Random(epoch)))

    def _begin(self, name: str, machine: Machine) -> None:
        self._lives[name] += 1
        self._machines[name] = machine
        self._carry_out(name, machine.start(self.now, dict(self._disks[name])))

    def kill_kubelet(self) -> None:
        """Its sockets go with it: nothing on the way to it arrives, what it has sent does."""
        self._machines.pop(KUBELET, None)
        self._watched = ""
        self._lives[KUBELET] += 1
        self._timers = {k: v for k, v in self._timers.items() if k[0] != KUBELET}
        self.api.forget_watches()

    def put_files(self, **files: Any) -> None:
        """Let the manifest folder hold these files, and no others: documents, or texts."""
        self.files = {
            name: text.encode() if isinstance(text, str) else None if text is None else msgspec.json.encode(text)
            for name, text in sorted(files.items())
        }
        self._tell_files()

    def _tell_files(self) -> None:
        life = self._lives[KUBELET]

        def tell() -> None:
            if self._watched and self._lives[KUBELET] == life:
                self._feed(KUBELET, FolderRead(self._watched, dict(self.files)))

        self._at(Instant(self.now + HOP), tell)

    def restart_kubelet(self) -> None:
        self.kill_kubelet()
        self.start_kubelet()

    def restart_runtime(self) -> None:
        """It dies with what is on its way to it, and comes back with its disk; the kubelet's connection is replaced."""
        self._timers = {k: v for k, v in self._timers.items() if k[0] != RUNTIME}
        self.start_runtime()
        self.reconnect(RUNTIME)

    @property
    def kubelet_lives(self) -> bool:
        return KUBELET in self._machines

    def disk(self, key: str) -> Any:
        raw = self._disks[KUBELET].get(key)
        return None if raw is None else msgspec.json.decode(msgspec.json.decode(raw)["data"]).get("entries", {})

    def lose(self, key: str) -> None:
        self._disks[KUBELET].pop(key, None)

    def reconnect(self, peer: str) -> None:
        if peer == API:
            self.api.forget_watches()
        self._feed(KUBELET, PeerConnected(peer))

    # time

    def post(self, source: str, target: str, message: Message) -> None:
        life = self._lives.get(target, 0)

        def deliver() -> None:
            if target == API:
                self.api.received(source, message)
            elif life == self._lives.get(target, 0):
                if target == RUNTIME and isinstance(message, Call):
                    self.calls.append((message.method, message.body))
                    refusal = self.refuse.get(message.method)
                    if refusal is not None:
                        self.post(RUNTIME, source, Reply(message.id, refusal[0], b"", refusal[1]))
                        return
                self._feed(target, Received(source, message))

        self._at(Instant(self.now + HOP), deliver)

    def _at(self, at: Instant, what: Callable[[], None]) -> None:
        heapq.heappush(self._queue, (at, next(self._order), what))

    def _feed(self, name: str, happened: Input) -> None:
        machine = self._machines.get(name)
        if machine is not None:
            self._carry_out(name, machine.step(self.now, happened))

    def _carry_out(self, name: str, effects: Any) -> None:
        for effect in effects:
            if name == KUBELET:
                if self.die_at is not None and self.effects >= self.die_at:
                    self.die_at = None
                    self.kill_kubelet()
                    return
                self.effects += 1
            self._one(name, effect)

    def _one(self, name: str, effect: Effect) -> None:
        match effect:
            case Send(target, message):
                self.post(name, target, message)
            case SetTimer(timer, at):
                key = (name, timer)
                self._timers[key] = self._timers.get(key, 0) + 1
                if at is not None:
                    turn, life = self._timers[key], self._lives[name]

                    def fire() -> None:
                        if self._timers.get(key) == turn and self._lives[name] == life:
                            self._feed(name, TimerFired(timer))

                    self._at(max(at, self.now), fire)
            case Persist(key, value, _):
                if value is None:
                    self._disks[name].pop(key, None)
                else:
                    self._disks[name][key] = value
            case Note(kind, fields):
                msgspec.json.encode(dict(fields))
                self.notes.append((kind, fields))
            case Step(label):
                self.notes.append(("step", {"label": label}))
            case Work(_, WatchFolder(path)):
                self._watched = path
                self._tell_files()
            case Work():
                raise AssertionError("a kubelet has no other work")

    def run(self, duration: float) -> "World":
        """Let so many seconds pass."""
        end = Instant(self.now + seconds(duration))
        while self._queue and self._queue[0][0] <= end:
            at, _, what = heapq.heappop(self._queue)
            self.now = max(at, self.now)
            what()
        self.now = end
        return self

    def until(self, fact: Callable[[], bool], within: float = 30.0) -> "World":
        """Let time pass until the fact holds."""
        end = Instant(self.now + seconds(within))
        while not fact():
            assert self._queue and self._queue[0][0] <= end, "the fact did not come about in time"
            at, _, what = heapq.heappop(self._queue)
            self.now = max(at, self.now)
            what()
        return self

    # views

    def status(self, name: str) -> dict[str, Any]:
        pod = self.api.pod(name)
        assert pod is not None, f"there is no pod {name}"
        found: dict[str, Any] = pod["status"]
        return found

    def condition(self, name: str, kind: str) -> dict[str, Any] | None:
        return next((c for c in self.status(name).get("conditions", []) if c["type"] == kind), None)

    def container(self, name: str, container: str = "c") -> dict[str, Any]:
        statuses = [*self.status(name).get("containerStatuses", []), *(self.status(name).get("initContainerStatuses") or [])]
        unknown: dict[str, Any] = {"state": {}, "restartCount": 0, "resources": {}, "image": ""}
        return next((s for s in statuses if s["name"] == container), unknown)

    def is_settled(self, name: str) -> bool:
        """Nothing about its size is open."""
        pod = self.api.pod(name)
        if pod is None or pod["status"].get("observedGeneration") != pod["metadata"]["generation"]:
            return False
        return self.condition(name, "PodResizePending") is None and self.condition(name, "PodResizeInProgress") is None

    def noted(self, kind: str) -> list[Mapping[str, Any]]:
        return [fields for found, fields in self.notes if found == kind]

    def steps(self) -> list[str]:
        return [str(fields["label"]).partition(" ")[0] for fields in self.noted("step")]

    def metric(self, name: str, **labels: str) -> float:
        """A sample of the kubelet's metrics; labels that are not given are summed over."""
        answers: list[Any] = []
        kubelet = self._machines[KUBELET]
        call = Call(999_999, "proxy", encode_value({"path": "metrics", "query": {}}))
        for effect in kubelet.step(self.now, Received(API, call)):
            if isinstance(effect, Send) and isinstance(effect.message, Reply):
                answers.append(decode_value(effect.message.body, dict))
        assert answers[0]["status"] == 200
        total = 0.0
        for line in answers[0]["body"].decode().splitlines():
            if line.split("{")[0].split(" ")[0] == name and all(f'{k}="{v}"' in line for k, v in labels.items()):
                total += float(line.rpartition(" ")[2])
        return total

    def proxy(self, path: str) -> Any:
        """What the node proxy answers."""
        answers: list[Any] = []
        original = self.api.received

        def listen(source: str, message: Message) -> None:
            if isinstance(message, Reply) and message.id == 888_888:
                answers.append(decode_value(message.body, dict))
            else:
                original(source, message)

        self.api.received = listen  # type: ignore[method-assign]
        self.post(API, KUBELET, Call(888_888, "proxy", encode_value({"path": path, "query": {}})))
        self.until(lambda: bool(answers))
        self.api.received = original  # type: ignore[method-assign]
        return answers[0]
