"""Processes as actors of Ray, on as many machines as it has.

Ray chooses the machine, makes the process, and makes it again when it or its machine died (``max_restarts``); the supervisor then
fills it anew. Nothing else goes through Ray: machines speak over tcp, with the cluster's own keys, each process at its raylet's
address. The API server stays on the head node, where its store and this supervisor are; all others are spread, and stay on their
machine for as long as that lives.

An actor whose raylet died may live on, unknown to Ray. It has files, a line to the supervisor and epochs of its own, so whatever it
still says is refused; the supervisor tells it to end as soon as it is heard of.
"""

import asyncio
import importlib.util
import os
import shutil
import signal
import socket
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from elbowroom.deploy.errors import UserError
from elbowroom.host.actor import HostActor, Place
from elbowroom.host.keys import Keys, make_keys
from elbowroom.host.process import ANY
from elbowroom.host.shared import INSIDE, TRUNK
from elbowroom.host.spec import DiskSpec, HostSpec, MachineSpec, encode

HEAD = "node:__internal_head__"
"""The resource that Ray's head node has and no other."""
ON_HEAD = ("apiserver",)
CPUS_MIN = 0.001
"""Of who claims nothing Ray heeds no wish where to go, unless it may go nowhere else."""


def check_installed() -> None:
    """``UserError`` if there is no Ray."""
    if importlib.util.find_spec("ray") is None:
        raise UserError("placement on Ray needs Ray, which is not installed; pip install 'elbowroom[ray]'")


LOOK_SECONDS = 5.0
"""How long somebody at an address may take to be there."""


class Actors:
    """The placement on the Ray cluster at ``address`` ("": that of $RAY_ADDRESS, or one of this machine's own that ends with us).

    ``folder`` is where processes keep their files, on each machine; ``cpus`` is what an actor of nodes claims, for autoscalers.
    """

    is_local = False

    def __init__(self, address: str, folder: Path, cpus: float = 0.0, import_path: Sequence[str] = ()) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        # Here, on the main thread and before there is a loop: the import takes SIGTERM for itself, and the loop takes it back.
        import ray

        self._ray: Any = ray
        self._address, self._folder, self._cpus, self._import_path = address, folder, cpus, import_path
        self.keys: Keys | None = make_keys()
        self._head = ""
        self._actors: dict[str, Any] = {}
        self._places: dict[str, Place] = {}
        self._chosen: dict[str, str] = {}
        """Process -> the machine it is meant for, or is at."""
        self._lived: dict[str, str] = {}
        """Process -> the machine of its last life that did not end in order."""
        self._exits: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
        self._watching: set[asyncio.Task[None]] = set()

    # ------------------------------------------------------------ life

    async def start(self) -> str:
        ray = self._ray
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "error", "configure_logging": True}
        if self._import_path:
            path = os.pathsep.join([*self._import_path, *filter(None, [os.environ.get("PYTHONPATH")])])
            options["runtime_env"] = {"env_vars": {"PYTHONPATH": path}}
        address = self._address or os.environ.get("RAY_ADDRESS", "")
        if not address:
            options["include_dashboard"] = False
        look_for(address)
        try:
            # Not in a thread: Ray's own processes end when the thread that started them does.
            ray.init(address=address or "local", **options)
        except (ConnectionError, ValueError, RuntimeError, TimeoutError) as why:
            raise UserError(f"Ray at {address or 'this machine'} cannot be reached: {why}") from why
        here = ray.get_runtime_context().get_node_id()
        self._head = next((node["NodeID"] for node in ray.nodes() if node["Alive"] and HEAD in node["Resources"]), "")
        if here != self._head:
            raise UserError(
                f"run this on the head node of the Ray cluster ({self._head or 'unknown'}): the API server's store is there"
            )
        return f"tcp://{ray.util.get_node_ip_address()}:*"

    async def stop(self) -> None:
        for task in self._watching:
            task.cancel()
        if self._ray.is_initialized():
            for actor in self._actors.values():
                self._ray.kill(actor)
            self._actors.clear()
            self._ray.shutdown()
        shutil.rmtree(self._folder, ignore_errors=True)
        with suppress(OSError):
            self._folder.parent.rmdir()

    # ------------------------------------------------------------ machines

    def housed(self, spec: MachineSpec, identity: str) -> MachineSpec:
        kind, _, node = spec.name.partition("/")
        if not node:
            return msgspec.structs.replace(spec, bind=f"{ANY}*" if spec.bind else "", dial=dict.fromkeys(spec.dial, TRUNK))
        dial = {peer: f"{INSIDE}//{peer}" if peer.partition("/")[2] == node else TRUNK for peer in spec.dial}
        own = f"{node}/{identity}" if identity else node
        return msgspec.structs.replace(
            spec,
            bind=f"{INSIDE}//{spec.name}" if spec.bind else "",
            dial=dial,
            disk=DiskSpec(spec.disk.kind, f"{own}/{kind}") if spec.disk.path else spec.disk,
            drivers=[
                msgspec.structs.replace(driver, config={**driver.config, "base": own}) if "base" in driver.config else driver
                for driver in spec.drivers
            ],
        )

    def forget(self, spec: MachineSpec) -> None:
        """A Node of the same name has other files, and all go when the actor ends."""

    # ------------------------------------------------------------ processes

    async def spawn(self, spec: HostSpec) -> int:
        actor = self._actors.get(spec.process)
        if actor is None:
            actor = self._actors[spec.process] = self._make(spec.process)
        try:
            # Asked again for as long as Ray is about to make it.
            place = Place(*await self._answer(actor.place.options(max_task_retries=-1).remote()))
        except self._ray.exceptions.RayError as why:
            self._ended(spec.process, why)
            return 0
        moved = self._lived.get(spec.process, place.node) != place.node
        self._lived[spec.process] = self._chosen[spec.process] = place.node
        self._places[spec.process] = place
        here = msgspec.structs.replace(spec, keys=self.keys, interface=place.ip, remote=True, moved=moved)
        home = self._folder / place.node / spec.process.replace("/", "_")
        served = actor.serve.remote(encode(here), str(home))
        watching = asyncio.get_running_loop().create_task(self._watch(spec.process, actor, served))
        self._watching.add(watching)
        watching.add_done_callback(self._watching.discard)
        return place.pid

    def signal(self, process: str, pid: int, number: int) -> bool:
        if number != signal.SIGKILL:
            return False
        actor = self._actors.get(process)
        if actor is not None:
            self._ray.kill(actor, no_restart=False)
        return True

    def place(self, process: str) -> Place | None:
        return self._places.get(process)

    async def exits(self) -> AsyncIterator[tuple[str, str]]:
        while True:
            yield await self._exits.get()

    def _make(self, process: str) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        cpus = self._cpus if process.startswith("nodes-") else 0.0
        pinned = process in ON_HEAD
        strategy: Any = "SPREAD"
        if pinned:
            strategy = NodeAffinitySchedulingStrategy(self._head, soft=False)
        elif not cpus:
            # Ray's own spreading would choose another machine at each restart, and leave behind what the process kept on disk.
            strategy = NodeAffinitySchedulingStrategy(self._least_used(process), soft=True)
        options = {
            "max_restarts": -1,
            "max_task_retries": 0,
            "num_cpus": 0 if pinned else max(cpus, CPUS_MIN),
            "scheduling_strategy": strategy,
        }
        return self._ray.remote(HostActor).options(**options).remote()

    def _least_used(self, process: str) -> str:
        """The machine with the fewest of our processes."""
        alive = sorted(node["NodeID"] for node in self._ray.nodes() if node["Alive"])
        self._chosen.pop(process, None)
        used = Counter(self._chosen.values())
        self._chosen[process] = min(alive, key=lambda node: used[node], default=self._head)
        return self._chosen[process]

    async def _answer(self, reference: Any) -> Any:
        return await asyncio.wrap_future(reference.future())

    async def _watch(self, process: str, actor: Any, served: Any) -> None:
        try:
            await self._answer(served)
        except self._ray.exceptions.RayError as why:
            self._ended(process, why)
            return
        self._ray.kill(actor)
        for known in (self._actors, self._places, self._chosen, self._lived):
            known.pop(process, None)
        self._exits.put_nowait((process, "ended with exit code 0"))

    def _ended(self, process: str, why: Exception) -> None:
        """The actor's process is gone, or what it served is; Ray makes it again, unless the actor is dead for good."""
        errors = self._ray.exceptions
        if isinstance(why, errors.ActorDiedError | errors.ActorUnschedulableError):
            self._actors.pop(process, None)
        self._places.pop(process, None)
        if isinstance(why, errors.RayTaskError):
            how = f"failed: {getattr(why, 'cause', why)!r}"
        else:
            how = "its actor died"
        self._exits.put_nowait((process, how))


def look_for(address: str) -> None:
    """``UserError`` if nobody listens at ``HOST:PORT``: Ray itself would try for minutes. Others (``auto``) are Ray's to judge."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or "/" in host:
        return
    try:
        socket.create_connection((host, int(port)), timeout=LOOK_SECONDS).close()
    except (OSError, OverflowError) as why:
        raise UserError(f"no Ray at {address}: {why}; 'ray start --head' makes one, and says its address") from why
