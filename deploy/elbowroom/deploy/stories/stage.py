"""What a story plays on: a cluster of its own, reached from outside as any user would, and the facts that it waits for.

Nothing here sleeps for a time: a story waits until a watch shows what it claims, and says what it saw last if that does not
come. (Facts that have no watch, files and the node proxy, are looked at again and again.)
"""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from elbowroom.api import quantity
from elbowroom.client import HttpClient
from elbowroom.deploy import config, control, launch, planning
from elbowroom.deploy.errors import UserError
from elbowroom.deploy.home import Home, root_of_homes
from elbowroom.deploy.show import Progress
from elbowroom.deploy.stories.telling import UnmetError

PATIENCE_SECONDS = 15.0
LOOK_AGAIN_SECONDS = 0.02
NAMESPACE = "default"

T = TypeVar("T")
Document = dict[str, Any]


class Stage:
    """A cluster for one story; a context that brings it up and takes it down."""

    def __init__(self, story: str, profile: str, spec: Mapping[str, Any], *, keep: bool) -> None:
        self._keep, self._wrong = keep, False
        gates = {"InPlacePodVerticalScalingSchedulerPreemption": True}
        self.profile = profile
        self._cluster = config.overlay(config.Cluster(), {"profile": profile, "featureGates": gates, **spec})
        self._root = root_of_homes() if keep else temporary_root()
        self._home = _free_home(f"demo-{story}", self._root)

    def __enter__(self) -> "Stage":
        try:
            with Progress(self._home.name, quiet=True) as show:
                launch.start(planning.plan(self._home, self._cluster), detach=True, show=show)
            self._http = HttpClient(self._home.kubeconfig)
        except (KeyboardInterrupt, SystemExit):
            self._leave()
            raise
        except BaseException:
            self.went_wrong()
            self._leave()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, why: BaseException | None, trace: TracebackType | None) -> None:
        self._http.close()
        self._leave()

    def _leave(self) -> None:
        if self._keep and self._home.is_running():
            print(f"The cluster stays up: export KUBECONFIG={self._home.kubeconfig}")
            print(f"Take it down with: elbowroom down --name {self._home.name}")
            return
        if self._home.is_running():
            launch.down(self._home)
        if self._keep:
            return
        if self._wrong:
            print(f"Logs and histories are kept in {self._home.path}")
        else:
            shutil.rmtree(self._root, ignore_errors=True)

    def went_wrong(self) -> None:
        """Keep what shows why."""
        self._wrong = True

    # ------------------------------------------------------------ the cluster

    @property
    def data(self) -> Path:
        return self._home.default_data

    def status(self) -> Document:
        """What ``elbowroom status -o json`` prints."""
        answer: Document = control.ask(self._home.control(), {"do": "status"})["ok"]
        return answer

    def component(self, name: str) -> Document:
        return next((c for c in self.status()["components"] if c["name"] == name), {})

    def kill(self, component: str, *, at: str | None = None, hits: int = 1, signal: str = "KILL") -> None:
        """``elbowroom kill``."""
        request = {"do": "kill", "component": component, "signal": signal, "at": at, "hits": hits, "stayDead": False}
        control.ask(self._home.control(), request)

    # ------------------------------------------------------------ the API

    def call(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> tuple[int, Document]:
        """One request; its HTTP status and document. A read is repeated while the API server is down."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                answer = self._http.request(method, path, body, content_type=kind)
                return answer.status, answer.document
            except OSError:
                if method != "GET" or time.monotonic() > deadline:
                    raise
                time.sleep(LOOK_AGAIN_SECONDS)

    def try_call(self, method: str, path: str, body: Any, kind: str) -> int | None:
        """One request whose connection may be cut before it is answered: the HTTP status, or None."""
        try:
            return self.call(method, path, body, kind)[0]
        except (UserError, OSError):
            return None

    def ask(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Document:
        """One request that is to succeed."""
        status, document = self.call(method, path, body, kind)
        if status >= 300:
            raise UnmetError(f"{method} {path}: {status} {document.get('message', '')}")
        return document

    def patch(self, resource: str, name: str, body: Any, *, subresource: str = "", kind: str = "strategic-merge-patch") -> Document:
        path = f"{_collection(resource)}/{name}" + (f"/{subresource}" if subresource else "")
        return self.ask("PATCH", path, body, f"application/{kind}+json")

    def create(self, resource: str, manifest: Any) -> Document:
        return self.ask("POST", _collection(resource), manifest)

    def delete(self, resource: str, name: str, *, grace: int | None = None) -> None:
        options = None if grace is None else {"gracePeriodSeconds": grace}
        self.ask("DELETE", f"{_collection(resource)}/{name}", options)

    def pod(self, name: str) -> Document:
        return self.ask("GET", f"{_collection('pods')}/{name}")

    def pods(self) -> list[Document]:
        items: list[Document] = self.ask("GET", _collection("pods"))["items"]
        return items

    def revision(self) -> str:
        """The API server's revision now: events after it are those of what follows."""
        return str(self.ask("GET", _collection("pods") + "?limit=1")["metadata"]["resourceVersion"])

    def cgroups(self, node: str) -> list[Document]:
        """The emulated kernel's cgroups of a node, by the node proxy."""
        _, found = self.call("GET", f"/api/v1/nodes/{node}/proxy/cgroups")
        return found if isinstance(found, list) else []

    def read_file(self, node: str, pod: str, container: str, path: str) -> str:
        """A file as the container sees it, by the node proxy."""
        answer = self._http.get(f"/api/v1/nodes/{node}/proxy/files/{NAMESPACE}/{pod}/{container}{path}")
        if answer.status != 200:
            raise UnmetError(f"{path} in {pod}/{container}: {answer.status} {answer.body.decode(errors='replace').strip()}")
        return answer.body.decode()

    # ------------------------------------------------------------ waiting for facts

    def events(self, resource: str, since: str, what: str) -> Iterator[tuple[str, Document]]:
        """Every change after revision ``since``, in order, for as long as patience lasts; then ``UnmetError`` names ``what``."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        last = "nothing"
        revision = since
        while (left := deadline - time.monotonic()) > 0:
            try:
                for kind, document in self._http.watch(_collection(resource), resource_version=revision, timeout=left):
                    if kind == "ERROR":
                        raise UnmetError(f"the watch for {what} was refused: {document.get('message')}")
                    revision = document["metadata"]["resourceVersion"]
                    if kind != "BOOKMARK":
                        last = f"{kind} {document['metadata']['name']}"
                        yield kind, document
                    if time.monotonic() > deadline:
                        break
            except OSError:  # the API server is down for the moment: the watch goes on where it was
                time.sleep(LOOK_AGAIN_SECONDS)
        raise UnmetError(f"waited {PATIENCE_SECONDS:.0f} s for {what}; the last change seen was {last}")

    def await_pod(self, name: str, fact: Callable[[Document], Any], what: str, *, since: str | None = None) -> Document:
        """The pod as it was when ``fact`` first held: now, or (with ``since``) at any change after that revision."""
        after = since
        if after is None:
            now = self.pod(name)
            if fact(now):
                return now
            after = str(now["metadata"]["resourceVersion"])
        last: Document = {}
        try:
            for kind, pod in self.events("pods", after, f"{name}: {what}"):
                if pod["metadata"]["name"] == name and kind != "DELETED":
                    last = pod
                    if fact(pod):
                        return pod
        except UnmetError as why:
            shown = [f"{c['type']}={c.get('reason') or c['status']}" for c in last.get("status", {}).get("conditions", [])]
            raise UnmetError(f"{why}; {name} was last seen with {', '.join(shown) or 'nothing new'}") from why
        raise AssertionError("events end by raising")

    def await_event(self, name: str, reason: str) -> Document:
        """The Event of that reason about the pod."""
        path = f"{_collection('events')}?fieldSelector=involvedObject.name={name},reason={reason}"
        found = self.until(lambda: self.ask("GET", path)["items"], bool, f"there is an event {reason} about {name}")
        return dict(found[0])

    def await_gone(self, resource: str, name: str, since: str) -> None:
        """Until the object's deletion after revision ``since`` was seen."""
        for kind, document in self.events(resource, since, f"{name} deleted"):
            if kind == "DELETED" and document["metadata"]["name"] == name:
                return

    def until(self, look: Callable[[], T], fact: Callable[[T], bool], what: str) -> T:
        """What ``look`` finds once ``fact`` holds of it, for things that cannot be watched."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            found: T | None = None
            why = ""
            try:
                found = look()
                if fact(found):
                    return found
            except (UserError, UnmetError, OSError) as failure:
                why = f" ({failure})"
            if time.monotonic() > deadline:
                raise UnmetError(f"waited {PATIENCE_SECONDS:.0f} s until {what}; last seen: {found}{why}")
            time.sleep(LOOK_AGAIN_SECONDS)

    def await_later_second(self, timestamp: str) -> None:
        """Until the API server's clock shows a later second: timestamps have whole seconds, and a pod's age is one."""
        pod = _pod("clock", "node-1", "1Mi", "", guaranteed=False, extra={})
        self.until(
            lambda: self.ask("POST", _collection("pods") + "?dryRun=All", pod)["metadata"]["creationTimestamp"],
            lambda now: now > timestamp,
            f"it is later than {timestamp}",
        )

    # ------------------------------------------------------------ props

    def priority_classes(self, **values: int) -> None:
        """PriorityClasses of these names and values."""
        for name, value in values.items():
            body = {"metadata": {"name": name}, "value": value}
            self.create("priorityclasses.scheduling.k8s.io", body)

    def start_pod(
        self, name: str, *, node: str, memory: str, priority: str = "", guaranteed: bool = False, **extra: Any
    ) -> Document:
        """A pod with one container ``main`` that the scheduler places on ``node``; returned once it runs and is Ready."""
        self.create("pods", _pod(name, node, memory, priority, guaranteed=guaranteed, extra=extra))
        return self.await_pod(name, lambda pod: condition(pod, "Ready", status="True"), "Running and Ready")


def _pod(name: str, node: str, memory: str, priority: str, *, guaranteed: bool, extra: Mapping[str, Any]) -> Document:
    resources: Document = {"requests": {"cpu": "100m", "memory": memory}}
    if guaranteed:
        resources["limits"] = dict(resources["requests"])
    spec: Document = {
        "terminationGracePeriodSeconds": 1,
        "nodeSelector": {"kubernetes.io/hostname": node},
        "containers": [{"name": "main", "image": "registry.k8s.io/pause:3.10", "resources": resources}],
    }
    if priority:
        spec["priorityClassName"] = priority
    annotations = {"elbowroom.dev/workload": extra["workload"]} if "workload" in extra else {}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "annotations": annotations}, "spec": spec}


def resize_body(container: str, *, memory: str, limits: bool = False) -> Document:
    """A patch of ``resize`` that gives the container that much memory."""
    resources = {"requests": {"memory": memory}, **({"limits": {"memory": memory}} if limits else {})}
    return {"spec": {"containers": [{"name": container, "resources": resources}]}}


def condition(pod: Mapping[str, Any], kind: str, **fields: str) -> Document:
    """The pod's condition of that type if it has these fields too; an empty one else."""
    for found in pod.get("status", {}).get("conditions", []):
        if found["type"] == kind and all(found.get(field) == value for field, value in fields.items()):
            return dict(found)
    return {}


def container_status(pod: Mapping[str, Any], container: str = "main") -> Document:
    statuses = pod.get("status", {}).get("containerStatuses", [])
    return next((dict(status) for status in statuses if status["name"] == container), {})


def memory(pod: Mapping[str, Any], layer: str = "spec") -> int:
    """Bytes of memory that ``main`` requests in the spec, or has by its status."""
    source = pod["spec"]["containers"][0] if layer == "spec" else container_status(pod)
    return quantity.value_of((source.get("resources") or {}).get("requests", {}).get("memory", "0"))


def is_in_force(pod: Mapping[str, Any], bytes_wanted: int) -> bool:
    """Asked for, carried out and reported, with nothing pending."""
    return (
        memory(pod) == memory(pod, "status") == bytes_wanted
        and not condition(pod, "PodResizePending")
        and not condition(pod, "PodResizeInProgress")
        and pod["status"].get("observedGeneration") == pod["metadata"].get("generation")
    )


def names(pods: list[Document]) -> list[str]:
    return sorted(pod["metadata"]["name"] for pod in pods)


def _collection(resource: str) -> str:
    plural, _, group = resource.partition(".")
    if plural == "nodes":
        return "/api/v1/nodes"
    if group == "scheduling.k8s.io":
        return f"/apis/{group}/v1/{plural}"
    return f"/api/v1/namespaces/{NAMESPACE}/{plural}"


def temporary_root() -> Path:
    """Where the home of a cluster lies that is not kept."""
    return Path(tempfile.mkdtemp(prefix="elbowroom-demo-"))


def _free_home(name: str, root: Path) -> Home:
    """A home that no cluster uses: NAME, or NAME-2 and so on."""
    for number in range(1, 1000):
        home = Home(name if number == 1 else f"{name}-{number}", root)
        if not home.is_running():
            return home
    raise UserError(f"all names from {name} on are taken")
