"""All pods of a cluster as one watch shows them, and when each of them was first seen to be so.

A large cluster tells of thousands of changes a second, so only what is looked at is decoded, and a change wakes only those who wait
for its pod.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

import msgspec

from elbowroom.client import Context
from elbowroom.deploy.bench.http import Connection
from elbowroom.deploy.errors import UserError

ALL_PODS = "/api/v1/pods"


class _Lean(msgspec.Struct, rename="camel"):
    """Read by the names that JSON has; all else is passed over."""


class Meta(_Lean):
    name: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None


class Condition(_Lean):
    type: str = ""
    reason: str = ""


class Requests(_Lean):
    requests: dict[str, str] | None = None


class Container(_Lean):
    resources: Requests | None = None


class Spec(_Lean):
    node_name: str = ""


class Status(_Lean):
    phase: str = ""
    conditions: list[Condition] | None = None
    container_statuses: list[Container] | None = None


class Seen(_Lean):
    """A pod, as far as it is looked at."""

    metadata: Meta = msgspec.field(default_factory=Meta)
    spec: Spec = msgspec.field(default_factory=Spec)
    status: Status = msgspec.field(default_factory=Status)

    @property
    def is_bound(self) -> bool:
        return bool(self.spec.node_name)

    @property
    def is_running(self) -> bool:
        return self.status.phase == "Running"

    @property
    def is_deferred(self) -> bool:
        return any(c.type == "PodResizePending" and c.reason == "Deferred" for c in self.status.conditions or ())

    @property
    def words(self) -> str:
        """Where it stands, for people."""
        leaving = ", to be deleted" if self.metadata.deletion_timestamp else ""
        waiting = ", its resize waits for room" if self.is_deferred else ""
        return f"{self.status.phase or 'no phase'}, {self.spec.node_name or 'no node'}{waiting}{leaving}"

    def actual(self, resource: str) -> str | None:
        """What the first container has of a resource, by its status."""
        statuses = self.status.container_statuses
        resources = statuses[0].resources if statuses else None
        return (resources.requests or {}).get(resource) if resources is not None else None


class _Event(_Lean):
    type: str
    object: Seen


_decoder = msgspec.json.Decoder(_Event)
_document = msgspec.json.Decoder(Seen)
Fact = Callable[[Seen | None], bool]


class Pods:
    """The pods by name (of one namespace), how many are bound, run and wait for room, and who waits for what."""

    def __init__(self) -> None:
        self.now: dict[str, Seen] = {}
        self.bound = self.running = self.deferred = self.changes = 0
        self._waiting: dict[str, list[tuple[Fact, asyncio.Future[float]]]] = {}
        self._failure: BaseException | None = None

    async def until(self, name: str, fact: Fact, patience: float, *, since: float | None = None) -> float:
        """When ``fact`` was first seen to hold of the pod (None: it is gone); ``UserError`` if it does not in time, which begins to
        run ``since`` then (now)."""
        waited = 0.0 if since is None else time.perf_counter() - since
        if fact(self.now.get(name)):
            return time.perf_counter()
        if self._failure is not None:
            raise UserError(f"the watch of the pods broke: {self._failure}")
        future: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(name, []).append((fact, future))
        try:
            return await asyncio.wait_for(future, max(0.0, patience - waited))
        except TimeoutError as why:
            now = self.now.get(name)
            stands = "not there" if now is None else now.words
            others = f"of {len(self.now):,} pods {self.bound:,} are bound, {self.running:,} run, {self.deferred:,} wait for room"
            raise UserError(f"pod {name} did not get there within {patience:.0f} s: it is {stands}; {others}") from why

    async def all_until(self, names: Iterable[str], fact: Fact, patience: float) -> float:
        """When it held of all of them. They are waited for one after the other, so that of thousands only one costs a task."""
        began = last = time.perf_counter()
        for name in names:
            last = max(last, await self.until(name, fact, patience, since=began))
        return last

    def heard(self, kind: str, pod: Seen) -> None:
        name = pod.metadata.name
        before, after = self.now.get(name), None if kind == "DELETED" else pod
        self.changes += 1
        self._count(before, -1)
        self._count(after, 1)
        if after is None:
            self.now.pop(name, None)
        else:
            self.now[name] = after
        if waiting := self._waiting.pop(name, None):
            at = time.perf_counter()
            still = []
            for fact, future in waiting:
                if future.done():
                    continue
                if fact(after):
                    future.set_result(at)
                else:
                    still.append((fact, future))
            if still:
                self._waiting[name] = still

    def _count(self, pod: Seen | None, sign: int) -> None:
        if pod is not None:
            self.bound += sign * pod.is_bound
            self.running += sign * pod.is_running
            self.deferred += sign * pod.is_deferred

    async def read(self, connection: Connection, path: str) -> None:
        """Follow a watch until it ends; whoever waits then is told."""
        try:
            async for line in connection.lines(path):
                event = _decoder.decode(line)
                self.heard(event.type, event.object)
            raise ConnectionError("the API server ended it")
        except Exception as why:
            self._failure = why
            for waiting in self._waiting.values():
                for _, future in waiting:
                    if not future.done():
                        future.set_exception(UserError(f"the watch of the pods broke: {why}"))


@asynccontextmanager
async def watching(context: Context) -> AsyncIterator[Pods]:
    """The pods from now on."""
    asking = await Connection.open(context)
    status, raw = await asking.request("GET", f"{ALL_PODS}?limit=1")
    asking.close()
    if status != 200:
        raise UserError(f"the pods cannot be listed: {status} {raw.decode(errors='replace')[:300]}")
    revision = _document.decode(raw).metadata.resource_version
    connection, pods = await Connection.open(context), Pods()
    reading = asyncio.create_task(pods.read(connection, f"{ALL_PODS}?watch=1&resourceVersion={revision}"))
    try:
        yield pods
    finally:
        reading.cancel()
        connection.close()
