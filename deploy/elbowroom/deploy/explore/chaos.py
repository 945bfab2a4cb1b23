"""A chaos scenario, told in the simulated world: the same file, plan of faults and users as on real processes.

There everything comes from the seed, so what fails can be replayed and made smaller. Seconds of the file are virtual ones.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from elbowroom.api.gates import Profile
from elbowroom.deploy import config
from elbowroom.deploy.chaos import scenario as files
from elbowroom.deploy.chaos import workload
from elbowroom.deploy.chaos.plan import Drawn, draw
from elbowroom.deploy.chaos.settling import allocatable_of, unsettled
from elbowroom.deploy.errors import UserError
from elbowroom.deploy.explore.actors import Actors
from elbowroom.deploy.explore.cluster import SimulatedCluster
from elbowroom.deploy.explore.trouble import STRANGE, Trouble
from elbowroom.rpc import create
from elbowroom.rpc.requests import listing
from elbowroom.sim.client import Client

PREFIX = "chaos/"
"""Before the name of a built-in scenario, where a story is called so, too."""
WITHIN = 120.0
"""Virtual seconds for what is there from the start to run, and for users to be answered at the end."""


@dataclass(frozen=True, slots=True)
class Chaos:
    """A scenario with the faults that a seed draws. ``parts`` are the faults."""

    body: files.Body
    seed: int
    duration: float
    parts: tuple[Drawn, ...]
    whole: bool = True
    """No fault is left out, so enough must happen."""

    @property
    def profile(self) -> Profile:
        return config.Cluster(spec=self.body.cluster).profile()

    @property
    def configs(self) -> dict[str, dict[str, object]]:
        kept: dict[str, object] = {"history_max": self.body.history_kept, "compaction_seconds": self.body.compaction}
        return {"apiserver": kept, "scheduler": {"config": self.body.cluster.scheduler.config}}

    def keeping(self, parts: Sequence[Drawn]) -> "Chaos":
        return replace(self, parts=tuple(parts), whole=False)

    def tell(self, cluster: SimulatedCluster, *, undisturbed: bool) -> int:
        """The number is that of the acknowledged writes."""
        _populate(cluster, self.body)
        world = cluster.world
        actors = Actors(world)
        trouble = Trouble(world, actors)
        for who, doing in workload.users(self.body, self.seed):
            actors.begin(Client(world, f"client/user-{who}"), doing)
        for drawn in self.parts:
            world.after(drawn.at, lambda drawn=drawn: trouble.begin(drawn))  # type: ignore[misc]
        world.run_for(self.duration)
        world.calm()
        actors.stop()
        cluster.until("all are answered", lambda: actors.have_stopped, WITHIN)
        trouble.count()
        allocatable = allocatable_of(cluster.ask(listing("nodes"))["items"])
        cluster.until("every machine lives and every pod is well", lambda: _is_well(cluster, allocatable), self.body.settle)
        writes = sum(times for status, times in actors.answered.items() if 200 <= status < 300)
        if self.whole and undisturbed:
            self._enough(cluster, trouble, writes)
        return writes

    def _enough(self, cluster: SimulatedCluster, trouble: Trouble, writes: int) -> None:
        """Or the run proves nothing; of a shorter run than the file's, less is expected."""
        expect, share = self.body.expect, min(1.0, self.duration / self.body.duration)
        happened = Counter(record["kind"] for record in cluster.world.history)
        for what, found, wanted in (
            ("writes were acknowledged", writes, expect.writes),
            ("allocations were made", happened["kl.alloc"], expect.allocations),
            ("pods were deleted to make room", happened["sch.delete"], expect.victims),
        ):
            assert found >= int(wanted * share), f"only {found} {what}; {int(wanted * share)} are expected"
        for kind in sorted({drawn.fault.kind for drawn in self.parts}):
            assert trouble.fired[kind] + trouble.missed[kind], f"no fault {kind} came"


def chaos(name: str, duration: float | None, profile: str | None = None) -> "_Plans":
    """The scenario of that name or file as stories, under that profile or its own; ``UserError`` if it is none, or none for the
    simulated world."""
    wanted = files.load(name.removeprefix(PREFIX)).under(profile)
    for fault in wanted.spec.faults:
        if fault.kind in STRANGE:
            why = f"the simulated world has no {STRANGE[fault.kind]}"
            raise UserError(f"{name}: the fault {fault.kind} cannot be explored ({why}); see 'elbowroom chaos run'")
    return _Plans(wanted.spec, duration or wanted.spec.duration)


@dataclass(frozen=True, slots=True)
class _Plans:
    """Makes the story of a seed."""

    body: files.Body
    duration: float

    def __call__(self, seed: int, profile: Profile, *, hostile: bool) -> Chaos:
        """What profile it is, the scenario says. Without ``hostile`` nothing goes wrong but what was armed from outside."""
        drawn = tuple(draw(self.body, seed, self.duration)) if hostile else ()
        return Chaos(self.body, seed, self.duration, drawn)


def _populate(cluster: SimulatedCluster, body: files.Body) -> None:
    for manifest in config.Cluster(spec=body.cluster).manifests():
        cluster.add_node_of(_with_allocatable(manifest))
    nodes = [name for group in body.cluster.nodes for name in group.names()]
    for document in workload.priorities(body):
        cluster.ask(create("priorityclasses.scheduling.k8s.io", document))
    for document in workload.pods(body, nodes):
        cluster.ask(create("pods", document, namespace=workload.NAMESPACE))
    for replicas in body.replica_sets:
        cluster.ask(create("replicasets.apps", workload.replica_set(replicas), namespace=workload.NAMESPACE))
        budget = workload.budget(replicas)
        if budget is not None:
            cluster.ask(create("poddisruptionbudgets.policy", budget, namespace=workload.NAMESPACE))
    wanted = workload.pods_wanted(body)

    def all_run() -> bool:
        return sum(pod.status.phase == "Running" for pod in cluster.pods.store.values()) >= wanted

    cluster.until(f"{wanted} pods run", all_run, WITHIN)


def _with_allocatable(manifest: dict[str, object]) -> dict[str, object]:
    status = manifest["status"]
    assert isinstance(status, dict)
    return {**manifest, "status": {"allocatable": status["capacity"], **status}}


def _is_well(cluster: SimulatedCluster, allocatable: Mapping[str, Mapping[str, int]]) -> bool:
    alive = all(cluster.world.alive(name) for name in cluster.world.names())
    return alive and cluster.settled() and not unsettled(cluster.pods.store.values(), allocatable)
