"""What the policies do about the two costs of preempting for a resize: a second round of victims, and victims nobody needed.

*Double preemption*: the victims take their whole grace period to end. Meanwhile the scheduler looks at the resize again, since
something on the node changed or since it died and came back, and may choose somebody else.

*Additional preemption*: neighbours have pending resizes of their own. A scheduler that counts their desires makes room for these
as well, though their kubelet would grant none of it (the four pods of the design document).

Every story is told in the simulated world; a seed draws what may differ between two runs, the same for each policy.
"""

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from elbowroom.api import resources
from elbowroom.api.gates import RESIZE_PREEMPTION, Profile, profile_of
from elbowroom.api.objects import Pod
from elbowroom.deploy.explore.cluster import SimulatedCluster, is_settled
from elbowroom.deploy.workers import workers
from elbowroom.history.records import History
from elbowroom.history.report import judge
from elbowroom.rpc import create
from elbowroom.sim.world import World

TRACKINGS = ("none", "memory", "nominatedNodeName", "specNodeName")
FITS = ("maxDesired", "kubeletAligned")
BUDGETS = ("bestEffort", "strict")
CRASHES = ("", "S5", "S6.1", "S7.1", "S8.1")
"""Where the scheduler dies: victims chosen, the condition asked for, the deletion asked for, the deletion confirmed."""
LOW, HIGH = 10, 1000
MI = 1 << 20
PATIENCE_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Case:
    """One line of the table: a story, what it is told under, and where the scheduler dies in it (empty: nowhere)."""

    story: str
    tracking: str = "none"
    fit: str = "maxDesired"
    budgets: str = "bestEffort"
    crash: str = ""

    def profile(self) -> Profile:
        base = profile_of("lab", {RESIZE_PREEMPTION: True})
        return replace(base, nomination_tracking=self.tracking, resize_fit=self.fit, pdb_policy=self.budgets)

    @property
    def policy(self) -> str:
        match self.story:
            case "double":
                return self.tracking
            case "additional":
                return self.fit
            case _:
                return self.budgets


CASES = (
    *(Case("double", tracking=tracking, crash=crash) for crash in CRASHES for tracking in TRACKINGS),
    *(Case("additional", fit=fit) for fit in FITS),
    *(Case("budget", budgets=budgets) for budgets in BUDGETS),
)


@dataclass(frozen=True, slots=True)
class Run:
    """How one telling went. ``seconds`` is None if the resize was not in force when the story ended."""

    case: Case
    seed: int
    victims: int
    minimal: int
    """The fewest victims that would have made the room."""
    protected: int
    """How many victims a budget protected."""
    seconds: float | None

    @property
    def needless(self) -> int:
        return max(0, self.victims - self.minimal)


def tell(case: Case, seed: int) -> Run:
    """Tell a story once; AssertionError if it comes to no end, or if its history breaks an invariant."""
    run, world = played(case, seed)
    report = judge(History.of(world.history))
    assert report.held, "; ".join(f"{each.invariant}: {each.message}" for each in report.failures[:3])
    return run


def played(case: Case, seed: int) -> tuple[Run, World]:
    """The same, with the world that it was told in, and no verdict."""
    match case.story:
        case "double":
            return _double(case, seed)
        case "additional":
            return _additional(case, seed)
        case _:
            return _budget(case, seed)


def minimal(lacking: int, sizes: Sequence[int]) -> int:
    """How many pods must go at least so that ``lacking`` becomes free."""
    for count in range(len(sizes) + 1):
        if any(sum(chosen) >= lacking for chosen in combinations(sizes, count)):
            return count
    return len(sizes)


# ---------------------------------------------------------------- the stories


def _double(case: Case, seed: int) -> tuple[Run, World]:
    """A full node of 4Gi: web of 1Gi wants one or two more; its neighbours of 512Mi, which heed no SIGTERM, have to go."""
    draw = random.Random(f"{seed}/double")
    wanted, grace = draw.choice([1, 2]), draw.randint(20, 60)
    together, meanwhile = draw.random() < 0.5, draw.choice(["nothing", "a neighbour shrinks", "a budget comes"])
    cluster = SimulatedCluster(seed, case.profile())
    world = cluster.world
    low = [f"batch-{number}" for number in range(1, 6)]
    _classes(cluster)
    cluster.add_node("node-1", memory="4Gi")
    cluster.add_pod("web", "high", "1Gi", cpu="100m")
    cluster.add_pod("aside", "high", "512Mi", cpu="100m")
    for name in low:
        _add_pod(cluster, name, "512Mi", "200m", grace)
        if not together:
            cluster.until(f"{name} runs", lambda name=name: cluster.running(name))
            world.run_for(1.1)
    cluster.until("all pods run", lambda: cluster.running("web", "aside", *low))
    world.run_for(3.0)
    if case.crash:
        world.kill_at("scheduler", case.crash)
    began = world.now
    cluster.resize("web", memory=f"{1024 + 512 * wanted}Mi")
    cluster.until("a victim is on its way", lambda: any(_going(cluster, name) for name in low))
    world.run_for(2.0)
    staying = [name for name in low if not _going(cluster, name)]
    if meanwhile == "a budget comes":
        going = next(name for name in low if _going(cluster, name))
        _protect(cluster, going)
        world.run_for(1.0)
    if meanwhile != "nothing":
        cluster.resize(staying[0], cpu="150m")
    ended = _in_force(cluster, "web", memory=(1024 + 512 * wanted) * MI)
    return _run(cluster, case, seed, low, minimal(512 * wanted, [512] * len(low)), (ended - began) / 1e9)


def _additional(case: Case, seed: int) -> tuple[Run, World]:
    """The design document's four pods of 50m on a node of 200m; three low ones wait for 200m when the high one asks for 100m."""
    draw = random.Random(f"{seed}/additional")
    cluster = SimulatedCluster(seed, case.profile())
    world = cluster.world
    low = ["pod2", "pod3", "pod4"]
    _classes(cluster)
    cluster.add_node("node-1", cpu="200m")
    cluster.add_pod("pod1", "high", "64Mi", cpu="50m")
    for name in draw.sample(low, len(low)):
        _add_pod(cluster, name, "64Mi", "50m", grace=0)
        world.run_for(draw.choice([0.1, 1.1]))
    cluster.until("all pods run", lambda: cluster.running("pod1", *low))
    for name in draw.sample(low, len(low)):
        cluster.resize(name, cpu="200m")
    cluster.until("the neighbours' resizes wait", lambda: all(_waits(cluster, name) for name in low))
    world.run_for(draw.random())
    began = world.now
    cluster.resize("pod1", cpu="100m")
    ended = _in_force(cluster, "pod1", cpu=100)
    return _run(cluster, case, seed, low, minimal(50, [50] * len(low)), (ended - began) / 1e9)


def _budget(case: Case, seed: int) -> tuple[Run, World]:
    """Two neighbours must go for the resize; a budget that allows nothing covers one of the two that there are."""
    draw = random.Random(f"{seed}/budget")
    cluster = SimulatedCluster(seed, case.profile())
    low = ["free", "guarded"]
    _classes(cluster)
    cluster.add_node("node-1", memory="3Gi")
    cluster.add_pod("web", "high", "1Gi")
    for name in draw.sample(low, len(low)):
        _add_pod(cluster, name, "1Gi", "200m", grace=0)
    cluster.until("all pods run", lambda: cluster.running("web", *low))
    _protect(cluster, "guarded")
    cluster.world.run_for(1.0)
    began = cluster.world.now
    cluster.resize("web", memory="3Gi")
    in_force = cluster.world.run_until(lambda: _has(cluster, "web", memory=3072 * MI), 60.0)
    seconds = (cluster.world.now - began) / 1e9 if in_force else None
    return _run(cluster, case, seed, low, 2, seconds)


# ---------------------------------------------------------------- their props


def _classes(cluster: SimulatedCluster) -> None:
    cluster.add_priority("low", LOW)
    cluster.add_priority("high", HIGH)


def _add_pod(cluster: SimulatedCluster, name: str, memory: str, cpu: str, grace: int) -> None:
    """A pod of low priority that heeds no SIGTERM: it stays for its whole grace period."""
    behaviour = {"c": {"stopSeconds": None}} if grace else {}
    container = {"name": "c", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
    document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {"name": name},
            "annotations": {"elbowroom.dev/workload": json.dumps(behaviour)},
        },
        "spec": {"priorityClassName": "low", "terminationGracePeriodSeconds": grace, "containers": [container]},
    }
    cluster.ask(create("pods", document, namespace="default"))


def _protect(cluster: SimulatedCluster, name: str) -> None:
    """A budget that lets nobody of that name go."""
    document = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": f"guards-{name}", "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"name": name}}},
    }
    cluster.ask(create("poddisruptionbudgets.policy", document, namespace="default"))


def _pod(cluster: SimulatedCluster, name: str) -> Pod | None:
    return cluster.pods.store.get(f"default/{name}")


def _going(cluster: SimulatedCluster, name: str) -> bool:
    pod = _pod(cluster, name)
    return pod is None or pod.is_terminating


def _waits(cluster: SimulatedCluster, name: str) -> bool:
    pod = _pod(cluster, name)
    pending = pod.condition("PodResizePending") if pod is not None else None
    return pending is not None and pending.reason == "Deferred"


def _has(cluster: SimulatedCluster, name: str, **amounts: int) -> bool:
    pod = _pod(cluster, name)
    if pod is None or not is_settled(pod):
        return False
    actual = resources.actual_requests(pod)
    return all(actual.get(resource) == amount for resource, amount in amounts.items())


def _in_force(cluster: SimulatedCluster, name: str, **amounts: int) -> int:
    """Wait until the resize is in force, and tell when that was."""
    cluster.until(f"the resize of {name} is in force", lambda: _has(cluster, name, **amounts), within=PATIENCE_SECONDS)
    return cluster.world.now


def _run(
    cluster: SimulatedCluster, case: Case, seed: int, low: Sequence[str], fewest: int, seconds: float | None
) -> tuple[Run, World]:
    """Let what is on its way come to its end, and count."""
    cluster.world.run_for(90.0)
    gone = [name for name in low if _going(cluster, name)]
    protected = sum(f"guards-{name}" in _budgets(cluster) for name in gone) if case.story == "budget" else 0
    cluster.world.close()
    return Run(case, seed, len(gone), fewest, protected, seconds), cluster.world


def _budgets(cluster: SimulatedCluster) -> set[str]:
    return {
        record["key"].rsplit("/", 1)[-1]
        for record in cluster.world.notes("commit")
        if record["resource"].startswith("poddisruptionbudgets")
    }


# ---------------------------------------------------------------- many runs


@dataclass(frozen=True, slots=True)
class Row:
    """What became of all runs of one case."""

    case: Case
    runs: int
    victims: int
    victims_max: int
    needless: int
    runs_with_needless: int
    protected: int
    unresized: int
    """Runs in which the resize never came into force."""
    seconds_p50: float | None
    seconds_max: float | None

    def as_document(self) -> Mapping[str, Any]:
        return {
            "story": self.case.story,
            "policy": self.case.policy,
            "crash": self.case.crash or None,
            "runs": self.runs,
            "victims": self.victims,
            "victimsMax": self.victims_max,
            "needless": self.needless,
            "runsWithNeedless": self.runs_with_needless,
            "protectedVictims": self.protected,
            "unresized": self.unresized,
            "secondsP50": self.seconds_p50,
            "secondsMax": self.seconds_max,
        }


def row_of(case: Case, runs: Sequence[Run]) -> Row:
    took = sorted(run.seconds for run in runs if run.seconds is not None)
    return Row(
        case,
        len(runs),
        sum(run.victims for run in runs),
        max((run.victims for run in runs), default=0),
        sum(run.needless for run in runs),
        sum(run.needless > 0 for run in runs),
        sum(run.protected for run in runs),
        sum(run.seconds is None for run in runs),
        round(took[len(took) // 2], 3) if took else None,
        round(took[-1], 3) if took else None,
    )


def _told(wanted: tuple[Case, int]) -> Run:
    return tell(*wanted)


def rows(first: int, count: int, jobs: int, cases: Sequence[Case] = CASES) -> Iterator[Row]:
    """The table's rows, each as soon as its runs are made, ``jobs`` side by side."""
    wanted = [(case, seed) for case in cases for seed in range(first, first + count)]
    with workers(jobs) as pool:
        made = pool.map(_told, wanted, chunksize=4)
        for case in cases:
            yield row_of(case, [next(made) for _ in range(count)])
