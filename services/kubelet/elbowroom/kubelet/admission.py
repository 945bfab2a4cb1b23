"""May a pod be on this node? And whom may a critical pod push out?

The same predicates judge a new pod and a resize (RC-72, RC-73); only what is asked for differs. The first failing one is told, the
resources first: pods, cpu, memory, ephemeral-storage, then the others by name.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec import Struct

from elbowroom.api.objects import LabelSelector, Node, NodeSelectorTerm, Pod, Taint, Toleration
from elbowroom.api.resources import Resources, add, of, qos_class, spec_requests, subtract
from elbowroom.api.selectors import matches
from elbowroom.kubelet.machinestate import MachineState

CRITICAL_PRIORITY = 2_000_000_000
PREEMPTED = "Preempted in order to admit critical pod"
PREEMPTED_CONDITION = "Pod was preempted by Kubelet to accommodate a critical pod."

_ORDER = {"pods": 0, "cpu": 1, "memory": 2, "ephemeral-storage": 3}


class Neighbour(Struct, frozen=True):
    """Another pod of the node, with its allocated resources, and what it counts for."""

    pod: Pod
    counts: Resources


@dataclass(frozen=True, slots=True)
class Crowd:
    """Neighbours, and what they count for together. One without somebody costs nothing to make: a pass makes many."""

    everybody: Mapping[str, Neighbour] = field(default_factory=dict)
    """By uid."""
    used: Resources = field(default_factory=dict)
    absent: str = ""

    @staticmethod
    def of(members: Iterable[Neighbour]) -> "Crowd":
        """All of them; no two have one uid."""
        found = {neighbour.pod.uid: neighbour for neighbour in members}
        return Crowd(found, add(*(neighbour.counts for neighbour in found.values())))

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.everybody) - (self.absent in self.everybody)

    @property
    def members(self) -> list[Neighbour]:
        """Each of them."""
        return [neighbour for uid, neighbour in self.everybody.items() if uid != self.absent]

    def without(self, uid: str) -> "Crowd":
        """The others of the pod with that uid, of a crowd that lacks nobody."""
        mine = self.everybody.get(uid)
        return self if mine is None else Crowd(self.everybody, subtract(self.used, mine.counts), uid)


@dataclass(frozen=True, slots=True)
class Lack:
    """Of one resource there is not enough. cpu in milli, else base units."""

    resource: str
    requested: int
    used: int
    capacity: int

    @property
    def amount(self) -> int:
        """How much would have to go."""
        return self.requested - (self.capacity - self.used)

    @property
    def message(self) -> str:
        """In upstream's words."""
        return (
            f"Node didn't have enough resource: {self.resource}, requested: {self.requested}, "
            f"used: {self.used}, capacity: {self.capacity}"
        )


@dataclass(frozen=True, slots=True)
class Refusal:
    """The pod may not be here. ``lacks`` names all resources of which there is too little, if that is the only reason."""

    reason: str
    message: str
    lacks: tuple[Lack, ...] = ()


def lacks(request: Resources, others: Crowd, node: Node) -> list[Lack]:
    """Every resource of which ``request`` wants more than the node has beside ``others``."""
    allocatable, used, count = of(node.status.allocatable), others.used, others.count
    found = []
    if "pods" in allocatable and count + 1 > allocatable["pods"]:
        found.append(Lack("pods", 1, count, allocatable["pods"]))
    for name in sorted(request, key=lambda name: (_ORDER.get(name, 4), name)):
        if is_extended(name) and name not in allocatable:
            continue  # no node's, but the cluster's
        wanted, taken, capacity = request[name], used.get(name, 0), allocatable.get(name, 0)
        if wanted > 0 and wanted > capacity - taken:
            found.append(Lack(name, wanted, taken, capacity))
    return found


def is_extended(resource: str) -> bool:
    """Is it one that Kubernetes itself knows nothing of?"""
    return "/" in resource and "kubernetes.io/" not in resource and not resource.startswith("requests.")


AT_EASE = MachineState()
SHUTDOWN = Refusal("NodeShutdown", "Pod was rejected as the node is shutting down.")
MEMORY_TAINT = Taint(key="node.kubernetes.io/memory-pressure", effect="NoSchedule")


def nobody_objects(pod: Pod) -> Refusal | None:
    """A node without resource managers."""
    return None


def refusal(
    pod: Pod,
    request: Resources,
    others: Crowd,
    node: Node,
    *,
    restarted: bool = False,
    state: MachineState = AT_EASE,
    managers: Callable[[Pod], Refusal | None] = nobody_objects,
) -> Refusal | None:
    """Why ``pod``, asking for ``request``, may not be on ``node`` beside ``others``; None if it may, in RC-73's order.

    ``restarted``: the pod ran here before the kubelet did; then where it may be is no longer asked (RC-128). ``managers``: the
    resource managers', which upstream asks before the predicates.
    """
    objection = _pressed(pod, state) or managers(pod) or _of_another_system(pod)
    if objection is not None:
        return objection
    found = _unfit(pod, request, others, node, restarted=restarted)
    return SHUTDOWN if found is None and state.shutting_down else found


def _pressed(pod: Pod, state: MachineState) -> Refusal | None:
    """The eviction manager's: critical pods come in whatever befalls; memory pressure keeps out those that ask for nothing."""
    if not state.pressure or is_critical(pod):
        return None
    bold = qos_class(pod) != "BestEffort" or tolerated(MEMORY_TAINT, pod.spec.tolerations)
    if state.pressure == ("MemoryPressure",) and bold:
        return None
    return Refusal("Evicted", f"The node had condition: [{' '.join(state.pressure)}]. ")


OS_LABEL, OS = "kubernetes.io/os", "linux"


def _of_another_system(pod: Pod) -> Refusal | None:
    """Is it meant for other nodes than Linux ones? No preemption would help."""
    if pod.metadata.labels.get(OS_LABEL, OS) != OS:
        words = f"Failed to admit pod as the `{OS_LABEL}` label doesn't match node label"
        return Refusal("PodOSSelectorNodeLabelDoesNotMatch", words)
    if pod.spec.os is not None and pod.spec.os.name != OS:
        return Refusal("PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS")
    return None


def _unfit(pod: Pod, request: Resources, others: Crowd, node: Node, *, restarted: bool) -> Refusal | None:
    short = lacks(request, others, node)
    elsewhere = None if restarted else _misplaced(pod, others, node)
    if short:
        only = tuple(short) if elsewhere is None else ()
        return Refusal(f"OutOf{short[0].resource}", short[0].message, only)
    return elsewhere


def _misplaced(pod: Pod, others: Crowd, node: Node) -> Refusal | None:
    if not affine(pod, node):
        return _predicate("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")
    if _ports_clash(pod, others):
        return _predicate("NodePorts", "node(s) didn't have free ports for the requested pod ports")
    if not is_static(pod) and any(
        taint.effect == "NoExecute" and not tolerated(taint, pod.spec.tolerations) for taint in node.spec.taints
    ):
        return _predicate("TaintToleration", "node(s) had taints that the pod didn't tolerate")
    return None


def _predicate(name: str, why: str) -> Refusal:
    return Refusal(name, f"Predicate {name} failed: {why}")


def affine(pod: Pod, node: Node) -> bool:
    """Does the node have the labels that the pod's selector and required affinity ask for?"""
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in pod.spec.node_selector.items()):
        return False
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    if affinity is None or affinity.required is None:
        return True
    return any(_term_holds(term, labels, node.name) for term in affinity.required.node_selector_terms)


def _term_holds(term: NodeSelectorTerm, labels: Mapping[str, str], name: str) -> bool:
    if not term.match_expressions and not term.match_fields:
        return False
    return matches(LabelSelector(match_expressions=term.match_expressions), labels) and matches(
        LabelSelector(match_expressions=term.match_fields), {"metadata.name": name}
    )


def tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    """Does one of the tolerations match the taint?"""
    return any(
        (not t.effect or t.effect == taint.effect)
        and (not t.key or t.key == taint.key)
        and (t.operator == "Exists" or (t.value == taint.value and bool(t.key)))
        for t in tolerations
    )


def _host_ports(pod: Pod) -> list[tuple[str, int, str]]:
    return [
        (port.protocol, port.host_port, port.host_ip or "0.0.0.0")
        for container in [*pod.spec.containers, *(c for c in pod.spec.init_containers if c.is_sidecar)]
        for port in container.ports
        if port.host_port
    ]


def _ports_clash(pod: Pod, others: Crowd) -> bool:
    wanted = _host_ports(pod)
    if not wanted:
        return False
    taken = [port for neighbour in others.members for port in _host_ports(neighbour.pod)]
    return any(
        protocol == used_protocol and port == used_port and (ip == used_ip or "0.0.0.0" in (ip, used_ip))
        for protocol, port, ip in wanted
        for used_protocol, used_port, used_ip in taken
    )


# ---------------------------------------------------------------- critical pods


def is_static(pod: Pod) -> bool:
    """It comes from the node, not from the API server; or it mirrors such a one."""
    notes = pod.metadata.annotations
    return "kubernetes.io/config.mirror" in notes or notes.get("kubernetes.io/config.source", "api") != "api"


def is_critical(pod: Pod) -> bool:
    """May it push others out of the node (RC-78)?"""
    return is_static(pod) or pod.priority >= CRITICAL_PRIORITY


def preemptable(preemptor: Pod, other: Pod) -> bool:
    """May ``preemptor`` push ``other`` out?"""
    if is_critical(preemptor) and not is_critical(other):
        return True
    mine, its = preemptor.spec.priority, other.spec.priority
    return mine is not None and its is not None and mine > its


@dataclass(frozen=True, slots=True)
class NoVictims:
    """Nobody who may be pushed out has what is missing."""

    message: str


def victims(preemptor: Pod, others: Crowd, short: Sequence[Lack]) -> list[Pod] | NoVictims:
    """Whom to push out so that ``short`` is met: from the least important group up, as few and as small as will do."""
    groups = _groups(preemptor, [neighbour.pod for neighbour in others.members])
    missing = {lack.resource: lack.amount for lack in short}
    remaining = [missing]
    for group in groups:
        remaining.append(_less(remaining[-1], group))
    if remaining[-1]:
        listed = "".join(f"(res: {name}, q: {amount}), " for name, amount in remaining[-1].items())
        return NoVictims(
            "preemption: error finding a set of pods to preempt: no set of running pods found to reclaim resources: "
            + f"[{listed}]"
        )
    chosen: list[Pod] = []
    for at in reversed(range(len(groups))):
        chosen += _nearest(groups[at], _less(remaining[at], chosen))
    return chosen


def unexpected(failed: NoVictims) -> Refusal:
    """The refusal of a critical pod for which nobody can be pushed out."""
    return Refusal(
        "UnexpectedAdmissionError", f"Unexpected error while attempting to recover from admission failure: {failed.message}"
    )


_QOS = {"BestEffort": 1, "Burstable": 2, "Guaranteed": 3}


def _importance(pod: Pod) -> tuple[bool, int, int]:
    return is_critical(pod), pod.priority, _QOS[qos_class(pod)]


def _groups(preemptor: Pod, pods: Iterable[Pod]) -> list[list[Pod]]:
    groups: list[list[Pod]] = []
    last = None
    for pod in sorted((p for p in pods if preemptable(preemptor, p)), key=_importance):
        if _importance(pod) != last:
            groups.append([])
        groups[-1].append(pod)
        last = _importance(pod)
    return groups


def _request(pod: Pod, resource: str) -> int:
    return 1 if resource == "pods" else spec_requests(pod).get(resource, 0)


def _less(missing: Mapping[str, int], pods: Iterable[Pod]) -> dict[str, int]:
    gone = list(pods)
    left = {name: amount - sum(_request(pod, name) for pod in gone) for name, amount in missing.items()}
    return {name: amount for name, amount in left.items() if amount > 0}


def _nearest(group: Sequence[Pod], missing: Mapping[str, int]) -> list[Pod]:
    """Again and again the pod that brings most of what is missing, the smaller one of two that bring as much."""
    candidates, chosen, left = list(group), [], dict(missing)

    def distance(pod: Pod) -> float:
        rests = [(max(0, amount - _request(pod, name)), amount) for name, amount in left.items()]
        return sum((rest / amount) ** 2 for rest, amount in rests)

    while left and candidates:
        best = min(candidates, key=lambda pod: (distance(pod), _request(pod, "memory"), _request(pod, "cpu")))
        candidates.remove(best)
        chosen.append(best)
        left = _less(left, [best])
    return chosen
