"""A cluster that only these tests know: a small API server, hand-made nodes, and the controllers stepped beside it."""

import copy
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from elbowroom.api.clock import as_time
from elbowroom.controllers.machine import build
from elbowroom.machine import Effect, Instant, Machine, Note, PeerConnected, Received, Send, SetTimer, TimerFired, seconds
from elbowroom.wire import (
    ApiRequest,
    ApiResponse,
    Call,
    Reply,
    StreamBookmark,
    StreamCancel,
    StreamEvent,
    decode_value,
    encode_value,
)

Document = dict[str, Any]
BEGIN = Instant(1_790_000_000_000_000_000)
MERGE_KEYS = {"conditions": "type", "ownerReferences": "uid"}
CLUSTER_SCOPED = ("nodes", "namespaces")


class Refusal(Exception):
    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code, self.reason = code, reason


@dataclass
class Stream:
    id: int
    resource: str
    sequence: int = 0
    revision: int = 0


@dataclass
class Api:
    """The API server: documents, revisions, streams. ``refuse`` may raise a Refusal; requests are kept in ``log``."""

    now: Callable[[], int]
    revision: int = 10
    objects: dict[str, dict[str, Document]] = field(default_factory=dict)
    streams: list[Stream] = field(default_factory=list)
    out: list[Any] = field(default_factory=list)
    log: list[ApiRequest] = field(default_factory=list)
    history: list[tuple[int, str, str, Document]] = field(default_factory=list)
    refuse: Callable[[ApiRequest], None] = lambda request: None
    deaf: set[str] = field(default_factory=set)
    """Resources whose streams are told nothing (and not even that)."""
    uids: Iterator[int] = field(default_factory=lambda: iter(range(1, 10**6)))

    def of(self, resource: str) -> dict[str, Document]:
        return self.objects.setdefault(resource, {})

    # -------------------------------------------------------- writes

    def _write(self, resource: str, key: str, document: Document | None) -> int:
        """A new revision (or none if nothing changed), told to the streams of the resource."""
        old = self.of(resource).get(key)
        if document is not None and old is not None:
            blank = {**document, "metadata": {**document["metadata"], "resourceVersion": ""}}
            if blank == {**old, "metadata": {**old["metadata"], "resourceVersion": ""}}:
                return int(old["metadata"]["resourceVersion"])
        self.revision += 1
        change = "DELETED" if document is None else "ADDED" if old is None else "MODIFIED"
        told = copy.deepcopy(document if document is not None else old)
        assert told is not None
        told["metadata"]["resourceVersion"] = str(self.revision)
        if document is None:
            del self.of(resource)[key]
        else:
            self.of(resource)[key] = told
        self.history.append((self.revision, resource, change, told))
        for stream in self.streams:
            if stream.resource == resource:
                self._tell(stream, change, told, self.revision)
        return self.revision

    def _tell(self, stream: Stream, change: str, document: Document, revision: int) -> None:
        if stream.resource in self.deaf:
            return
        stream.sequence += 1
        raw = msgspec.json.encode(document)
        self.out.append(StreamEvent(stream.id, stream.sequence, revision, stream.revision, change, raw))
        stream.revision = revision

    def create(self, resource: str, document: Document, namespace: str = "") -> Document:
        """Also for tests: make an object."""
        document = copy.deepcopy(document)
        metadata = document.setdefault("metadata", {})
        if namespace:
            metadata.setdefault("namespace", namespace)
        key = _key(metadata)
        if key in self.of(resource):
            raise Refusal(409, "AlreadyExists", f'{resource} "{metadata["name"]}" already exists')
        metadata.setdefault("uid", f"uid-{next(self.uids)}")
        metadata.setdefault("creationTimestamp", as_time(self.now()))
        metadata.setdefault("generation", 1)
        if resource == "pods":
            document.setdefault("status", {}).setdefault("phase", "Pending")
        self._write(resource, key, document)
        return self.of(resource)[key]

    def change(self, resource: str, key: str, patch: Document) -> Document:
        """For tests: a merge patch of the whole object, whoever's it is."""
        old = self.of(resource)[key]
        new = merge(copy.deepcopy(old), patch)
        if new.get("spec") != old.get("spec"):
            new["metadata"]["generation"] = old["metadata"].get("generation", 1) + 1
        if self._ends(resource, key, new) and resource != "pods":
            self._write(resource, key, None)
            return new
        self._write(resource, key, new)
        return self.of(resource)[key]

    def _ends(self, resource: str, key: str, document: Document) -> bool:
        return "deletionTimestamp" in document["metadata"] and not document["metadata"].get("finalizers")

    def delete(self, resource: str, key: str, options: Mapping[str, Any] | None = None) -> int:
        options = options or {}
        document = copy.deepcopy(self.of(resource).get(key))
        if document is None:
            raise Refusal(404, "NotFound", f'{resource} "{key.rpartition("/")[2]}" not found')
        metadata = document["metadata"]
        wanted = options.get("preconditions", {}).get("uid")
        if wanted and wanted != metadata["uid"]:
            raise Refusal(409, "Conflict", "the UID in the precondition does not match")
        finalizers = list(metadata.get("finalizers", []))
        for policy, finalizer in (("Foreground", "foregroundDeletion"), ("Orphan", "orphan")):
            if options.get("propagationPolicy") == policy:
                finalizers.append(finalizer)
        grace = options.get("gracePeriodSeconds", document.get("spec", {}).get("terminationGracePeriodSeconds", 30))
        lasts = resource == "pods" and document.get("spec", {}).get("nodeName") and grace > 0
        lasts = lasts and document["status"]["phase"] not in ("Failed", "Succeeded")
        if not finalizers and not lasts and not (resource == "namespaces" and document.get("spec", {}).get("finalizers")):
            self._write(resource, key, None)
            return self.revision
        if finalizers:
            metadata["finalizers"] = finalizers
        metadata.setdefault("deletionTimestamp", as_time(self.now() + (seconds(grace) if lasts else 0)))
        metadata.setdefault("deletionGracePeriodSeconds", grace if lasts else 0)
        return self._write(resource, key, document)

    # -------------------------------------------------------- requests

    def serve(self, request: ApiRequest) -> ApiResponse:
        self.log.append(request)
        try:
            self.refuse(request)
            body, revision = self._serve(request)
        except Refusal as why:
            status = {"kind": "Status", "reason": why.reason, "message": str(why), "code": why.code}
            return ApiResponse(why.code, msgspec.json.encode(status))
        return ApiResponse(200, msgspec.json.encode(body), revision=revision)

    def _serve(self, request: ApiRequest) -> tuple[Any, int]:
        resource = f"{request.resource}.{request.group}" if request.group else request.resource
        key = f"{request.namespace}/{request.name}" if request.namespace else request.name
        match request.verb:
            case "list":
                if resource in ("secrets", "services"):
                    raise Refusal(404, "NotFound", "the server could not find the requested resource")
                found = [d for d in self.of(resource).values() if d["metadata"].get("namespace") == request.namespace]
                return {"items": found, "metadata": {}}, self.revision
            case "create":
                made = self.create(resource, msgspec.json.decode(request.body), request.namespace)
                return made, int(made["metadata"]["resourceVersion"])
            case "deletecollection":
                for other in [k for k, d in self.of(resource).items() if d["metadata"].get("namespace") == request.namespace]:
                    self.delete(resource, other)
                return {}, self.revision
            case "delete":
                return {}, self.delete(resource, key, msgspec.json.decode(request.body) if request.body else {})
        old = self.of(resource).get(key)
        if old is None:
            raise Refusal(404, "NotFound", f'{resource} "{request.name}" not found')
        if request.verb == "get":
            return old, int(old["metadata"]["resourceVersion"])
        return self._updated(request, resource, key, old)

    def _updated(self, request: ApiRequest, resource: str, key: str, old: Document) -> tuple[Any, int]:
        body = msgspec.json.decode(request.body)
        if request.verb == "update" and request.subresource == "finalize":
            new = merge(copy.deepcopy(old), {"spec": {"finalizers": body["spec"]["finalizers"]}})
            if not new["spec"]["finalizers"] and "deletionTimestamp" in new["metadata"]:
                self._write(resource, key, None)
                return new, self.revision
            return new, self._write(resource, key, new)
        if request.content_type == "application/json-patch+json":
            new = json_patched(copy.deepcopy(old), body)
        else:
            said = body.get("metadata", {})
            for name in ("resourceVersion", "uid"):
                if name in said and said[name] != old["metadata"][name]:
                    raise Refusal(409, "Conflict", f"the object has been modified: {name}")
            strategic = request.content_type == "application/strategic-merge-patch+json"
            new = (strategic_merge if strategic else merge)(copy.deepcopy(old), body)
        if request.subresource == "status":
            new["spec"] = old.get("spec", {})
        elif "status" in old:
            new["status"] = old["status"]
        annotated = resource == "deployments.apps" and new["metadata"].get("annotations") != old["metadata"].get("annotations")
        if request.subresource == "" and (new.get("spec") != old.get("spec") or annotated):
            new["metadata"]["generation"] = old["metadata"].get("generation", 1) + 1
        if self._ends(resource, key, new) and resource != "pods" and resource != "namespaces":
            self._write(resource, key, None)
            return new, self.revision
        return new, self._write(resource, key, new)

    # -------------------------------------------------------- streams

    def watch(self, call: Call) -> None:
        request = decode_value(call.body, ApiRequest)
        resource = f"{request.resource}.{request.group}" if request.group else request.resource
        if resource in self.deaf:
            return
        stream = Stream(call.id, resource)
        self.streams.append(stream)
        if "resourceVersion" in request.query:
            stream.revision = int(request.query["resourceVersion"])
            for revision, changed, change, document in self.history:
                if changed == resource and revision > stream.revision:
                    self._tell(stream, change, document, revision)
            return
        for document in self.of(resource).values():
            self._tell(stream, "ADDED", document, int(document["metadata"]["resourceVersion"]))
        stream.revision = self.revision
        self.out.append(StreamBookmark(stream.id, stream.sequence, self.revision, initial_end=True))

    def mark(self) -> None:
        """The bookmarks of an idle moment."""
        for stream in self.streams:
            if stream.revision < self.revision and stream.resource not in self.deaf:
                stream.revision = self.revision
                self.out.append(StreamBookmark(stream.id, stream.sequence, self.revision))


def _key(metadata: Mapping[str, Any]) -> str:
    return f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else str(metadata["name"])


def merge(target: Any, patch: Any) -> Any:
    """RFC 7396."""
    if not isinstance(patch, dict):
        return patch
    found = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            found.pop(name, None)
        else:
            found[name] = merge(found.get(name), value)
    return found


def strategic_merge(target: Any, patch: Any) -> Any:
    """As much of a strategic merge patch as controllers use."""
    if not isinstance(patch, dict):
        return patch
    found = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            found.pop(name, None)
        elif name in MERGE_KEYS and isinstance(value, list):
            by = MERGE_KEYS[name]
            items = {item[by]: item for item in found.get(name, [])}
            for item in value:
                if item.get("$patch") == "delete":
                    items.pop(item[by], None)
                else:
                    items[item[by]] = strategic_merge(items.get(item[by]), item)
            found[name] = list(items.values())
        else:
            found[name] = strategic_merge(found.get(name), value)
    return found


def json_patched(document: Document, steps: list[Document]) -> Document:
    for step in steps:
        *path, last = [part.replace("~1", "/").replace("~0", "~") for part in step["path"].split("/")[1:]]
        place = document
        for part in path:
            place = place[part]
        if step["op"] == "remove":
            del place[last]
        elif step["op"] == "test" and place[last] != step["value"]:
            raise Refusal(409, "Conflict", "test failed")
        else:
            place[last] = step["value"]
    return document


class Cluster:
    """The controllers and their API server. ``settle`` lets them work until nothing more happens at this instant."""

    def __init__(self, *controllers: str, seed: int = 1) -> None:
        self.now = BEGIN
        self.api = Api(lambda: self.now)
        self.controllers = controllers
        self.timers: dict[str, Instant] = {}
        self.notes: list[Note] = []
        self.lost_replies = 0
        self.lost_requests = 0
        self.slow_streams = False
        """Answers overtake what streams tell."""
        self.machine: Machine
        self.begin(seed)

    def begin(self, seed: int = 1) -> None:
        """A (new) life of the controllers; whatever was in flight is lost."""
        self.timers.clear()
        self.api.out.clear()
        self.api.streams.clear()
        config: dict[str, Any] = {"name": "controllers", "epoch": seed}
        if self.controllers:
            config["controllers"] = list(self.controllers)
        self.machine = build(config, random.Random(seed))
        self._carry(self.machine.start(self.now, {}))

    def _carry(self, effects: Any) -> None:
        for effect in list[Effect](effects):
            match effect:
                case SetTimer(name, None):
                    self.timers.pop(name, None)
                case SetTimer(name, at) if at is not None:
                    self.timers[name] = at
                case Note():
                    self.notes.append(effect)
                case Send("apiserver", Call(method="watch") as call):
                    self.api.watch(call)
                case Send("apiserver", StreamCancel(id=stream)):
                    self.api.streams = [s for s in self.api.streams if s.id != stream]
                case Send("apiserver", Call(method="api") as call):
                    self._serve(call)

    def _serve(self, call: Call) -> None:
        request = decode_value(call.body, ApiRequest)
        writes = request.verb != "list" and request.resource != "events"
        if writes and self.lost_requests:
            self.lost_requests -= 1
            return
        response = self.api.serve(request)
        if writes and self.lost_replies:
            self.lost_replies -= 1
            return
        self.api.out.append(Reply(call.id, body=encode_value(response)))

    def settle(self, limit: int = 2000) -> None:
        for _ in range(limit):
            if not self.api.out:
                self.api.mark()
            if not self.api.out:
                return
            first = 0
            if self.slow_streams:
                first = next((n for n, message in enumerate(self.api.out) if isinstance(message, Reply)), 0)
            self._carry(self.machine.step(self.now, Received("apiserver", self.api.out.pop(first))))
        raise AssertionError("the controllers do not come to rest")

    def wait(self, amount: float) -> None:
        """Let time pass."""
        until = Instant(self.now + seconds(amount))
        self.settle()
        while self.timers and min(self.timers.values()) <= until:
            name = min(self.timers, key=lambda n: (self.timers[n], n))
            self.now = max(self.now, self.timers.pop(name))
            self._carry(self.machine.step(self.now, TimerFired(name)))
            self.settle()
        self.now = until

    def reconnect(self) -> None:
        """The connection to the API server breaks, and all that was in flight and every stream with it."""
        self.api.out.clear()
        self.api.streams.clear()
        self._carry(self.machine.step(self.now, PeerConnected("apiserver")))
        self.settle()

    # -------------------------------------------------------- short words

    def of(self, resource: str) -> list[Document]:
        return list(self.api.of(resource).values())

    def get(self, resource: str, name: str, namespace: str = "ns") -> Document:
        return self.api.of(resource)[f"{namespace}/{name}" if resource not in CLUSTER_SCOPED else name]

    def pods(self, **labels: str) -> list[Document]:
        """Pods that have not ended and are not about to."""
        return [
            p
            for p in self.of("pods")
            if "deletionTimestamp" not in p["metadata"]
            and p["status"]["phase"] not in ("Failed", "Succeeded")
            and labels.items() <= p["metadata"].get("labels", {}).items()
        ]

    def events(self, reason: str) -> list[str]:
        return [e["message"] for e in self.of("events") if e["reason"] == reason]

    def node(self, name: str = "n1", ready: str = "True", **spec: Any) -> Document:
        conditions = [{"type": "Ready", "status": ready, "lastHeartbeatTime": as_time(self.now)}] if ready else []
        node = {"metadata": {"name": name}, "spec": spec, "status": {"conditions": conditions}}
        return self.api.create("nodes", node)

    def renew(self, *names: str) -> None:
        """The nodes renew their leases."""
        for name in names:
            renewed = {"spec": {"renewTime": as_time(self.now).replace("Z", ".000000Z")}}
            if f"kube-node-lease/{name}" in self.api.of("leases.coordination.k8s.io"):
                self.api.change("leases.coordination.k8s.io", f"kube-node-lease/{name}", renewed)
            else:
                self.api.create("leases.coordination.k8s.io", {"metadata": {"name": name}, **renewed}, "kube-node-lease")
        self.settle()

    def pod(
        self, name: str, node: str = "", *, ready: bool | None = None, labels: Mapping[str, str] | None = None, **spec: Any
    ) -> Document:
        status: Document = {"phase": "Running" if ready is not None else "Pending"}
        if ready is not None:
            condition = {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": as_time(self.now)}
            status["conditions"] = [condition]
        spec = {**({"nodeName": node} if node else {}), "containers": [{"name": "c"}], **spec}
        document = {"metadata": {"name": name, "labels": dict(labels or {})}, "spec": spec, "status": status}
        return self.api.create("pods", document, "ns")

    def run_pods(self, node: str = "n1", *, ready: bool = True) -> None:
        """A kubelet's work in one stroke: what is alive runs, what is to end is gone."""
        for key, pod in list(self.api.of("pods").items()):
            if "deletionTimestamp" in pod["metadata"]:
                self.api.delete("pods", key, {"gracePeriodSeconds": 0})
            elif pod["status"]["phase"] == "Pending":
                condition = {
                    "type": "Ready",
                    "status": "True" if ready else "False",
                    "lastTransitionTime": as_time(self.now),
                }
                status = {"phase": "Running", "conditions": [condition]}
                self.api.change("pods", key, {"spec": {"nodeName": node}, "status": status})
        self.settle()
