"""What a storm of resizes does: drawn from the seed alone, so that the quiet run can be given its last word.

Some pods compete for one or two nodes and are resized again and again: up, down, beyond the node, back. The last desire of each
fits beside all the others' (or, for some, can never be met), so where the storm ends is decided by it and not by the way there.

The seed draws the cluster too: priorities, budgets, a quota, a LimitRange, the scheduler's policies, whether it preempts for
resizes, and which nodes ask it not to. Whoever is preempted is made anew in the end.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from elbowroom.api.gates import RESIZE_PREEMPTION, Profile

NODE_CPU, NODE_MEMORY = 4000, 4096
"""What a node has: milli, MiB."""
CPU = (20, 100, 130, 250, 500, 900, 1000, 1500)
MEMORY = (32, 64, 100, 128, 256, 500, 700)
ALLOCATABLE = ((4000, 4096), (1000, 1024), (2500, 512), (500, 3000))
BEYOND, FARTHER = (64_000, 65_536), (65_000, 66_000)

Vector = tuple[int, int]
"""cpu in milli, memory in MiB."""


@dataclass(frozen=True, slots=True)
class Size:
    """What one container is to have. A limit of None is none."""

    request: Vector
    limit: Vector | None

    def document(self) -> dict[str, Any]:
        found = {"requests": _list(self.request)}
        return found if self.limit is None else {**found, "limits": _list(self.limit)}


def _list(vector: Vector) -> dict[str, str]:
    return {"cpu": f"{vector[0]}m", "memory": f"{vector[1]}Mi"}


@dataclass(frozen=True, slots=True)
class Shape:
    """A container: its name, how it is limited (``none``, ``some``, ``guaranteed``), what restarts it."""

    name: str
    limited: str
    kind: str
    """``regular``, ``sidecar`` or ``init``."""
    restarts: tuple[str, ...]

    def document(self, size: Size) -> dict[str, Any]:
        policies = [{"resourceName": resource, "restartPolicy": "RestartContainer"} for resource in self.restarts]
        found: dict[str, Any] = {"name": self.name, "image": "registry.k8s.io/pause:3.10", "resources": size.document()}
        if policies:
            found["resizePolicy"] = policies
        if self.kind == "sidecar":
            found["restartPolicy"] = "Always"
        return found


@dataclass(frozen=True, slots=True)
class PodPlan:
    """A pod, its sizes at first and at last, and how its containers behave at first."""

    name: str
    node: str
    shapes: tuple[Shape, ...]
    first: tuple[Size, ...]
    last: tuple[Size, ...]
    level: bool
    """It has resources of its own, the sum of its containers' requests and twice that as limits."""
    workload: Mapping[str, Any]
    can_be_met: bool = True
    priority: str = ""
    group: str = ""
    """Whose budget protects it."""

    def resources(self, sizes: tuple[Size, ...]) -> dict[str, Any] | None:
        if not self.level:
            return None
        cpu, memory = (sum(size.request[at] for size in sizes) for at in (0, 1))
        limits = [size.limit for size in sizes if size.limit is not None]
        most = tuple(max([2 * total, *(limit[at] for limit in limits)]) for at, total in ((0, cpu), (1, memory)))
        return {"requests": _list((cpu, memory)), "limits": _list((most[0], most[1]))}

    def document(self, sizes: tuple[Size, ...], workload: str) -> dict[str, Any]:
        made = [(shape.kind == "regular", shape.document(size)) for shape, size in zip(self.shapes, sizes, strict=True)]
        spec: dict[str, Any] = {
            "nodeSelector": {"kubernetes.io/hostname": self.node},
            "terminationGracePeriodSeconds": 2,
            **({"priorityClassName": self.priority} if self.priority else {}),
            "containers": [container for regular, container in made if regular],
            "initContainers": [container for regular, container in made if not regular],
        }
        level = self.resources(sizes)
        if level is not None:
            spec["resources"] = level
        notes = {"elbowroom.dev/workload": workload} if workload else {}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": self.name, "namespace": "default", "annotations": notes, "labels": {"group": self.group}},
            "spec": spec,
        }

    def patch(self, sizes: tuple[Size, ...]) -> dict[str, Any]:
        """The strategic merge patch of a resize."""
        made = [
            (shape.kind == "regular", {"name": shape.name, "resources": size.document()})
            for shape, size in zip(self.shapes, sizes, strict=True)
        ]
        spec: dict[str, Any] = {
            "containers": [container for regular, container in made if regular],
            "initContainers": [container for regular, container in made if not regular],
        }
        if not spec["initContainers"]:
            del spec["initContainers"]
        level = self.resources(sizes)
        if level is not None:
            spec["resources"] = level
        return {"spec": spec}


@dataclass(frozen=True, slots=True)
class Resize:
    """Ask for these sizes, having waited so long."""

    wait: float
    pod: int
    sizes: tuple[Size, ...]


@dataclass(frozen=True, slots=True)
class Behave:
    """Its containers behave otherwise from now on."""

    wait: float
    pod: int
    workload: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Replace:
    """The pod is deleted and made anew under its name, with these sizes."""

    wait: float
    pod: int
    sizes: tuple[Size, ...]


@dataclass(frozen=True, slots=True)
class FullDisk:
    """The next write of that process fails."""

    wait: float
    peer: str


@dataclass(frozen=True, slots=True)
class Allow:
    """The node has so much to give away from now on."""

    wait: float
    node: str
    amount: Vector


@dataclass(frozen=True, slots=True)
class Forbid:
    """The node asks that nobody be preempted there for a resize, or no longer does."""

    wait: float
    node: str
    forbidden: bool


Action = Resize | Behave | Replace | FullDisk | Allow | Forbid


@dataclass(frozen=True, slots=True)
class Plan:
    """A storm. ``priorities`` are classes, ``budgets`` say of a group how many of it may go, and ``quota`` what pods may request
    together, for as long as the storm lasts."""

    nodes: tuple[str, ...]
    pods: tuple[PodPlan, ...]
    actions: tuple[Action, ...]
    profile: Profile
    priorities: Mapping[str, int] = field(default_factory=dict)
    budgets: Mapping[str, int] = field(default_factory=dict)
    quota: Vector | None = None
    limits: Mapping[str, Any] | None = None
    """A LimitRange's entry, in force from when the pods are made until the last wishes are told."""


def plan(seed: int, *, hostile: bool, profile: Profile) -> Plan:
    """The storm of a seed. Only a ``hostile`` one fills disks."""
    rng = random.Random(f"{seed}/storm")
    nodes = tuple(f"node-{number}" for number in range(1, rng.choice((1, 1, 2)) + 1))
    pods = tuple(_pod(rng, f"pod-{number}", rng.choice(nodes), profile) for number in range(rng.randint(2, 5)))
    actions: list[Action] = []
    for _ in range(rng.randint(4, 14)):
        at = rng.randrange(len(pods))
        wait = rng.choice((0.0, 0.0, 0.02, 0.3, 2.0, 12.0))
        what = rng.random()
        if what < 0.72:
            actions.append(Resize(wait, at, _sizes(rng, pods[at].shapes, beyond=rng.random() < 0.15)))
        elif what < 0.88:
            actions.append(Behave(wait, at, _workload(rng, pods[at].shapes)))
        elif what < 0.91:
            actions.append(Allow(wait, rng.choice(nodes), rng.choice(ALLOCATABLE)))
        elif what < 0.95 or not hostile:
            actions.append(Replace(wait, at, _sizes(rng, pods[at].shapes)))
        else:
            actions.append(FullDisk(wait, f"{rng.choice(('kubelet', 'kubelet', 'runtime'))}/{rng.choice(nodes)}"))
    return _with_setting(seed, Plan(nodes, pods, tuple(actions), profile))


PRIORITIES = {"": 0, "minor": 10, "major": 100, "vital": 1000}
GROUPS = ("red", "blue")
LIMITS: tuple[Mapping[str, Any], ...] = (
    {"type": "Container", "min": {"cpu": "100m"}},
    {"type": "Pod", "max": {"cpu": "2600m", "memory": "1200Mi"}},
    {"type": "Container", "min": {"memory": "64Mi"}, "maxLimitRequestRatio": {"memory": "3"}},
    {"type": "Pod", "min": {"cpu": "200m", "memory": "100Mi"}},
)
"""None that fills in a limit (as a container's max does): that would make a pod another one than the quiet run has."""


def _with_setting(seed: int, made: Plan) -> Plan:
    """Whom the scheduler may turn out for whom, and by what policies."""
    rng = random.Random(f"{seed}/setting")
    gates = {**made.profile.gates, RESIZE_PREEMPTION: rng.random() < 0.8}
    profile = replace(
        made.profile,
        gates=gates,
        pdb_policy=rng.choice(("bestEffort", "strict")),
        nomination_tracking=rng.choice(("none", "none", "memory", "nominatedNodeName", "specNodeName")),
        resize_fit=rng.choice(("maxDesired", "maxDesired", "kubeletAligned")),
    )
    named = rng.random() < 0.7
    pods = tuple(
        replace(pod, priority=rng.choice(tuple(PRIORITIES)) if named else "", group=rng.choice(GROUPS)) for pod in made.pods
    )
    budgets = {group: rng.choice((0, 1)) for group in GROUPS if rng.random() < 0.4}
    actions = list(made.actions)
    if profile.resize_preemption and rng.random() < 0.3:
        for forbidden in (True, False):
            actions.insert(rng.randint(0, len(actions)), Forbid(rng.choice((0.0, 0.3)), rng.choice(made.nodes), forbidden))
    quota = rng.choice(((6000, 6000), (4000, 5000))) if rng.random() < 0.25 else None
    priorities = {name: value for name, value in PRIORITIES.items() if name}
    drawn = random.Random(f"{seed}/limits")
    limits = drawn.choice(LIMITS) if drawn.random() < 0.15 else None
    return Plan(made.nodes, pods, tuple(actions), profile, priorities, budgets, quota, limits)


def _pod(rng: random.Random, name: str, node: str, profile: Profile) -> PodPlan:
    guaranteed = rng.random() < 0.25
    shapes = tuple(_shape(rng, at, guaranteed) for at in range(rng.randint(1, 3)))
    if not guaranteed and all(shape.limited == "none" for shape in shapes):
        level = False
    else:
        level = not guaranteed and rng.random() < 0.2
    # Five pods of three containers each fit a node with these at once.
    small = tuple(_size(rng, shape, cpus=CPU[:4], memories=MEMORY[:4]) for shape in shapes)
    met = profile.refuses_above_allocatable or rng.random() < 0.9
    last = small if met else _sizes(rng, shapes, beyond=True)
    first = tuple(_size(rng, shape, cpus=CPU[:4], memories=MEMORY[:4]) for shape in shapes)
    return PodPlan(name, node, shapes, first, last, level, _workload(rng, shapes), met)


def _shape(rng: random.Random, at: int, guaranteed: bool) -> Shape:
    kind = rng.choice(("regular", "regular", "sidecar", "init")) if at else "regular"
    restarts = () if kind == "init" else tuple(r for r in ("cpu", "memory") if rng.random() < 0.15)
    return Shape(f"c{at}", "guaranteed" if guaranteed else rng.choice(("none", "some", "some")), kind, restarts)


def _sizes(rng: random.Random, shapes: tuple[Shape, ...], *, beyond: bool = False) -> tuple[Size, ...]:
    sizes = [_size(rng, shape, cpus=CPU, memories=MEMORY) for shape in shapes]
    if beyond:
        at = rng.randrange(len(shapes))
        sizes[at] = _beyond(shapes[at])
    return tuple(sizes)


def _beyond(shape: Shape) -> Size:
    """More than any node has."""
    return Size(BEYOND, {"none": None, "some": FARTHER, "guaranteed": BEYOND}[shape.limited])


def _size(rng: random.Random, shape: Shape, *, cpus: tuple[int, ...], memories: tuple[int, ...]) -> Size:
    request = (rng.choice(cpus), rng.choice(memories))
    match shape.limited:
        case "none":
            return Size(request, None)
        case "guaranteed":
            return Size(request, request)
        case _:
            # Never equal, or the pod might become Guaranteed.
            return Size(request, (request[0] + rng.choice(cpus), request[1] + rng.choice(memories)))


def _workload(rng: random.Random, shapes: tuple[Shape, ...]) -> dict[str, Any]:
    """Behaviours that make resizes slow, let some fail, or use more memory than some limits allow."""
    found: dict[str, Any] = {}
    for shape in shapes:
        one: dict[str, Any] = {}
        if rng.random() < 0.3:
            one["resizeSeconds"] = rng.choice((0.1, 1, 3))
        if rng.random() < 0.2:
            one["resizeError"] = rng.choice((1, 2, 3, "always"))
        if rng.random() < 0.3:
            one["memoryUsage"] = rng.choice(("20Mi", "90Mi", "200Mi", "50%", "95%"))
        if rng.random() < 0.15:
            one["startSeconds"] = rng.choice((0.2, 2))
        if rng.random() < 0.15:
            one["stopSeconds"] = rng.choice((0.5, None))
        if rng.random() < 0.05:
            one |= {"exitAfterSeconds": rng.choice((0.5, 3)), "exitCode": rng.choice((0, 1))}
        if one:
            found[shape.name] = one
    return found
