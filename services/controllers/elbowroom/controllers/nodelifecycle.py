"""Node health: who has fallen silent is Unknown, and says so by conditions and taints until it speaks again.

A node speaks by renewing its Lease or by a new heartbeat of its Ready condition. What counts is when that was *seen*, so clocks
need not agree. If this controller itself was away (stopped, or without an API server), silence proves nothing, and everyone's time
begins anew. NoExecute taints, which drive pods out, are given to one node in ten seconds a zone, and to none while no node of any
zone is healthy: then it is more likely we who are cut off.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from elbowroom import rpc
from elbowroom.api.clock import as_time
from elbowroom.api.objects import Lease, Node, NodeCondition, Pod, Taint
from elbowroom.cache import Change
from elbowroom.controllers.kit import NOTHING, Ask, Controller, Outcome, Plan, Told, built, instant, is_ready, refer
from elbowroom.machine import Instant, seconds

MONITOR_PERIOD = seconds(5)
MONITOR_GRACE = seconds(50)
CENSUS_DELAY = seconds(0.2)
ZONES_HOLD = seconds(1)
"""So long what is known of the zones is believed: with thousands of nodes down, each of them asks."""
STARTUP_GRACE = seconds(60)
EVICTION_INTERVAL = seconds(10)
SECONDARY_INTERVAL = seconds(100)
LARGE_CLUSTER = 50
UNHEALTHY_ZONE = 0.55
COMPONENT = "node-controller"

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
_PRESSURE = {
    "MemoryPressure": "node.kubernetes.io/memory-pressure",
    "DiskPressure": "node.kubernetes.io/disk-pressure",
    "NetworkUnavailable": "node.kubernetes.io/network-unavailable",
    "PIDPressure": "node.kubernetes.io/pid-pressure",
}
_JUDGED = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
_MANAGED = frozenset({NOT_READY, UNREACHABLE, UNSCHEDULABLE, *_PRESSURE.values()})


# ---------------------------------------------------------------- decisions


@dataclass(frozen=True, slots=True)
class Health:
    """When a node was last heard, and what it said then."""

    heard_at: Instant
    heartbeat: str | None = None
    renewed: str | None = None


def ready_of(node: Node) -> str:
    """The status of its Ready condition; empty if it has none."""
    condition = node.condition("Ready")
    return condition.status if condition is not None else ""


def heard(health: Health | None, node: Node, lease: Lease | None, now: Instant) -> Health:
    """The health after a look at the node and its lease."""
    condition = node.condition("Ready")
    heartbeat = condition.last_heartbeat_time if condition is not None else None
    renewed = lease.spec.renew_time if lease is not None else None
    if health is None:
        created = Instant(instant(node.metadata.creation_timestamp))
        return Health(created if condition is None and renewed is None and created else now, heartbeat, renewed)
    if heartbeat != health.heartbeat and heartbeat is not None:
        return Health(now, heartbeat, renewed)
    if instant(renewed) > instant(health.renewed):
        return Health(now, heartbeat, renewed)
    return health


def is_silent(health: Health, node: Node, now: Instant) -> bool:
    grace = STARTUP_GRACE if node.condition("Ready") is None else MONITOR_GRACE
    return now > health.heard_at + grace


def unknown_conditions(node: Node, now: Instant) -> list[NodeCondition]:
    """The conditions of a silent node that have to change; none if all say so already."""
    changed: list[NodeCondition] = []
    for kind in _JUDGED:
        old = node.condition(kind)
        if old is None:
            changed.append(
                NodeCondition(
                    type=kind,
                    status="Unknown",
                    reason="NodeStatusNeverUpdated",
                    message="Kubelet never posted node status.",
                    last_heartbeat_time=node.metadata.creation_timestamp,
                    last_transition_time=as_time(now),
                )
            )
        elif old.status != "Unknown":
            changed.append(
                NodeCondition(
                    type=kind,
                    status="Unknown",
                    reason="NodeStatusUnknown",
                    message="Kubelet stopped posting node status.",
                    last_heartbeat_time=old.last_heartbeat_time,
                    last_transition_time=as_time(now),
                )
            )
    return changed


def no_schedule_keys(node: Node) -> list[str]:
    """The keys of the NoSchedule taints that its conditions and ``spec.unschedulable`` call for."""
    keys = []
    match ready_of(node):
        case "False":
            keys.append(NOT_READY)
        case "Unknown":
            keys.append(UNREACHABLE)
    keys += [key for kind, key in _PRESSURE.items() if (c := node.condition(kind)) is not None and c.status == "True"]
    if node.spec.unschedulable:
        keys.append(UNSCHEDULABLE)
    return keys


def no_execute_key(node: Node) -> str | None:
    """The NoExecute taint that its Ready condition calls for."""
    return {"False": NOT_READY, "Unknown": UNREACHABLE}.get(ready_of(node))


def has_no_execute(node: Node) -> bool:
    """Has it one of the two NoExecute taints?"""
    return any(t.effect == "NoExecute" and t.key in (NOT_READY, UNREACHABLE) for t in node.spec.taints)


def wanted_taints(node: Node, *, evict: bool, now: Instant) -> list[Taint]:
    """The node's taints as they should be; ``evict``: it may bear a NoExecute taint. Others' taints stay as they are."""
    wanted = [(key, "NoSchedule") for key in no_schedule_keys(node)]
    key = no_execute_key(node)
    if evict and key is not None:
        wanted.append((key, "NoExecute"))
    kept = [t for t in node.spec.taints if not _is_managed(t) or (t.key, t.effect) in wanted]
    held = {(t.key, t.effect) for t in kept}
    added = [Taint(key=key, effect=effect, time_added=as_time(now)) for key, effect in wanted if (key, effect) not in held]
    return [*kept, *added]


def _is_managed(taint: Taint) -> bool:
    if taint.effect == "NoSchedule":
        return taint.key in _MANAGED
    return taint.effect == "NoExecute" and taint.key in (NOT_READY, UNREACHABLE)


def zone_of(node: Node) -> str:
    labels = node.metadata.labels
    return f"{labels.get('topology.kubernetes.io/region', '')}/{labels.get('topology.kubernetes.io/zone', '')}"


def eviction_intervals(nodes: Iterable[tuple[Node, bool]]) -> Mapping[str, int | None] | None:
    """Zone -> ns between two nodes that get a NoExecute taint (None: none gets one), by the nodes and whether each is up.

    None if no node is up anywhere: then nobody may bear such a taint.
    """
    zones: dict[str, list[bool]] = {}
    for node, is_up in nodes:
        if "node.kubernetes.io/exclude-disruption" not in node.metadata.labels:
            zones.setdefault(zone_of(node), []).append(is_up)
    if not any(any(zone) for zone in zones.values()):
        return None
    return {name: _interval(zone) for name, zone in zones.items()}


def _interval(zone: Sequence[bool]) -> int | None:
    sick = zone.count(False)
    if all(not ready for ready in zone) or sick <= 2 or sick / len(zone) < UNHEALTHY_ZONE:
        return EVICTION_INTERVAL
    return SECONDARY_INTERVAL if len(zone) > LARGE_CLUSTER else None


# ---------------------------------------------------------------- the loop


class NodeLifecycle(Controller):
    """Keys: ``monitor`` (every five seconds), ``census`` (of who came and went), ``node/NAME`` for taints, ``pods/NAME`` for the
    readiness of a node's pods."""

    name = "nodelifecycle"
    reads = ("nodes", "leases.coordination.k8s.io", "pods")

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._health: dict[str, Health] = {}
        self._known: dict[str, str] = {}
        """Name -> uid of the nodes that were told of."""
        self._uncounted: dict[str, None] = {}
        """Who came, went or became another since the last census."""
        self._down: dict[str, None] = {}
        """The nodes whose Ready condition calls for a NoExecute taint."""
        self._zones: tuple[Instant, Mapping[str, int | None] | None] | None = None
        """When it was last found out how often a node of each zone may get one, and the answer."""
        self._looked_at: Instant | None = None
        self._next_eviction: dict[str, Instant] = {}
        self._evicting: set[str] = set()
        self._unready: dict[str, dict[str, None]] = {}
        """Node -> pods whose Ready condition is to be set to False."""

    def begin(self, now: Instant) -> None:
        self.queue.add("census")
        self.queue.add("monitor")
        for name, node in self.shared.nodes.items():
            if has_no_execute(node):
                self._evicting.add(name)

    def reconnected(self, now: Instant) -> None:
        self._health = {name: replace(health, heard_at=now) for name, health in self._health.items()}

    def notice(self, now: Instant, resource: str, change: Change[Any]) -> Iterable[str]:
        if resource == "nodes":
            self._down.pop(change.key, None)
            if change.new is None:
                self._health.pop(change.key, None)
                self._evicting.discard(change.key)
                self._unready.pop(change.key, None)
            else:
                self._hear(change.key, now)
                if no_execute_key(change.new) is not None:
                    self._down[change.key] = None
                yield f"node/{change.key}"
            if change.old is None or change.new is None or change.old.metadata.uid != change.new.metadata.uid:
                self._uncounted[change.key] = None
                self.queue.add_at("census", Instant(now + CENSUS_DELAY))
        elif resource == "leases.coordination.k8s.io" and change.new is not None:
            namespace, _, name = change.key.partition("/")
            if namespace == "kube-node-lease":
                self._hear(name, now)
        elif resource == "pods" and change.new is not None:
            node = change.new.spec.node_name
            if node and (change.old is None or change.old.spec.node_name != node):
                condition = self.shared.nodes[node].condition("Ready") if node in self.shared.nodes else None
                if condition is not None and condition.status != "True":
                    self._unready.setdefault(node, {})[change.key] = None
                    yield f"pods/{node}"

    def _hear(self, name: str, now: Instant) -> None:
        node = self.shared.nodes.get(name)
        if node is not None:
            lease = self.shared.leases.get(f"kube-node-lease/{name}")
            self._health[name] = heard(self._health.get(name), node, lease, now)

    def reconcile(self, now: Instant, key: str) -> Plan:
        kind, _, name = key.partition("/")
        if kind == "monitor":
            return self._monitor(now)
        if kind == "census":
            return Plan(events=tuple(self._census()))
        return self._taint(now, name) if kind == "node" else self._pods(now, name)

    def _monitor(self, now: Instant) -> Plan:
        if self._looked_at is not None and now - self._looked_at > 3 * MONITOR_PERIOD:
            self.reconnected(now)
        self._looked_at, self._zones = now, None
        events: list[Told] = []
        asks: list[Ask] = []
        for name, node in self.shared.nodes.items():
            health = self._health[name]
            if now <= health.heard_at + MONITOR_GRACE:
                continue  # as nearly always
            if is_silent(health, node, now) and (changed := unknown_conditions(node, now)):
                asks.append(_conditions(node, changed, was_ready=ready_of(node) == "True"))
                if ready_of(node) == "True":
                    text = f"Node {name} status is now: NodeNotReady"
                    events.append(Told(refer("Node", node.metadata), "Normal", "NodeNotReady", text, COMPONENT))
        for name in self._down:
            self.queue.add(f"node/{name}")
        return Plan(tuple(asks), tuple(events), Instant(now + MONITOR_PERIOD))

    def _census(self) -> Iterable[Told]:
        uncounted, self._uncounted = self._uncounted, {}
        for name in uncounted:
            node = self.shared.nodes.get(name)
            if node is not None and self._known.get(name) != node.metadata.uid:
                self._known[name] = node.metadata.uid
                text = f"Node {name} event: Registered Node {name} in Controller"
                yield Told(refer("Node", node.metadata), "Normal", "RegisteredNode", text, COMPONENT)
        for name in [name for name in uncounted if name in self._known and name not in self.shared.nodes]:
            about = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": self._known.pop(name)}
            text = f"Node {name} event: Removing Node {name} from Controller"
            yield Told(about, "Normal", "RemovingNode", text, COMPONENT)

    def _taint(self, now: Instant, name: str) -> Plan:
        node = self.shared.nodes.get(name)
        if node is None:
            return NOTHING
        again = self._grant(now, name, node)
        taints = wanted_taints(node, evict=name in self._evicting, now=now)
        if taints == node.spec.taints:
            return Plan(again_at=again)
        body = {
            "metadata": {"resourceVersion": node.metadata.resource_version, "uid": node.metadata.uid},
            "spec": {"taints": [built(t) for t in taints] or None},
        }
        return Plan((Ask(rpc.patch("nodes", name, body, kind=rpc.MERGE_PATCH)),), again_at=again)

    def _grant(self, now: Instant, name: str, node: Node) -> Instant | None:
        """Let the node have a NoExecute taint if it needs one and its zone's turn has come; else when to ask again."""
        if no_execute_key(node) is None:
            self._evicting.discard(name)
            return None
        intervals = self._intervals(now)
        if intervals is None:
            self._evicting.discard(name)
            return None
        interval = intervals.get(zone_of(node), EVICTION_INTERVAL)
        if name in self._evicting or interval is None:
            return None
        next_at = self._next_eviction.get(zone_of(node), now)
        if next_at > now:
            return next_at
        self._next_eviction[zone_of(node)] = Instant(now + interval)
        self._evicting.add(name)
        return None

    def _intervals(self, now: Instant) -> Mapping[str, int | None] | None:
        """``eviction_intervals`` of all nodes, found out after each round of the monitor, and every second where it matters."""
        if self._zones is None or not self._zones[0] <= now < self._zones[0] + ZONES_HOLD:
            # A silent node is down, though the copy may not show what was written about it yet.
            nodes = self.shared.nodes.values()
            everyone = ((n, ready_of(n) == "True" and not is_silent(self._health[n.name], n, now)) for n in nodes)
            self._zones = (now, eviction_intervals(everyone))
        return self._zones[1]

    def _pods(self, now: Instant, node: str) -> Plan:
        asks: list[Ask] = []
        events: list[Told] = []
        for key in self._unready.pop(node, {}):
            pod = self.shared.pods.get(key)
            if pod is None or pod.spec.node_name != node or not is_ready(pod):
                continue
            asks.append(_not_ready(pod, now))
            events.append(Told(refer("Pod", pod.metadata), "Warning", "NodeNotReady", "Node is not ready", COMPONENT))
        return Plan(tuple(asks), tuple(events))

    def answered(self, now: Instant, key: str, ask: Ask, outcome: Outcome) -> Iterable[Told]:
        match ask.tag:
            case ("unknown", name, True) if outcome.ok:
                self._unready[name] = {pod.key: None for pod in self.shared.pods_on(name)}
                self.queue.add(f"pods/{name}")
            case ("unready", name, pod) if not outcome.ok and outcome.status != 404:
                self._unready.setdefault(name, {})[pod] = None
        return ()


def _conditions(node: Node, changed: Sequence[NodeCondition], *, was_ready: bool) -> Ask:
    body = {
        "metadata": {"resourceVersion": node.metadata.resource_version, "uid": node.metadata.uid},
        "status": {"conditions": [built(c) for c in changed]},
    }
    return Ask(rpc.patch("nodes", node.name, body, subresource="status"), ("unknown", node.name, was_ready))


def _not_ready(pod: Pod, now: Instant) -> Ask:
    condition = {"type": "Ready", "status": "False", "lastTransitionTime": as_time(now)}
    body = {"metadata": {"uid": pod.uid}, "status": {"conditions": [condition]}}
    request = rpc.patch("pods", pod.metadata.name, body, namespace=pod.metadata.namespace, subresource="status")
    return Ask(request, ("unready", pod.spec.node_name, pod.key))
