"""A storm of resizes, told in the simulated world under whatever faults a seed draws, and held against a quiet run of its end.

Where it ends must be decided by the last desires alone (I-09): a second world in which each pod is made as it was last wanted,
and in which nothing goes wrong, ends with the same allocations, the same cgroups and the same status.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from elbowroom.api import resources
from elbowroom.api.gates import Profile
from elbowroom.api.objects import Pod
from elbowroom.deploy.explore.cluster import SimulatedCluster, is_settled, links, peers
from elbowroom.deploy.explore.storm_plan import (
    NODE_CPU,
    NODE_MEMORY,
    Action,
    Allow,
    Behave,
    Forbid,
    FullDisk,
    Plan,
    PodPlan,
    Replace,
    Resize,
    Vector,
    plan,
)
from elbowroom.kubelet.config import RETRY_FIRST_SECONDS
from elbowroom.rpc import create, delete, get, patch
from elbowroom.runtime.pods import SandboxRecord
from elbowroom.sim import nemesis
from elbowroom.wire import ApiRequest, decode_value

FAULTS, FAULTY_SECONDS = (0, 3, 8, 8, 12), 20.0
ARMED = (0, 4, 8, 12)
"""How many faults a hostile storm gets, within how many virtual seconds, and how many that wait for a step (most steps are not
passed in time)."""
SETTLES_SECONDS = 900.0
"""Crash back-off is up to five minutes, and the check of memory waits for ten to fifteen seconds a time."""
AGAIN_MAX = 40
"""So often a pod is made again before the storm is said to go round in circles."""
LIVELY_SECONDS = 5.0
"""By when room that is there is given to who waits for it."""
ALLOCATED, ACTUATED = "allocated_pods_state", "actuated_pods_state"


@dataclass(frozen=True, slots=True)
class Storm:
    """The storm of a seed: its plan, and what goes wrong."""

    seed: int
    plan: Plan
    faults: tuple[nemesis.Fault, ...] = ()

    @property
    def profile(self) -> Profile:
        return self.plan.profile

    @property
    def parts(self) -> tuple[Action | nemesis.Fault, ...]:
        return (*self.plan.actions, *self.faults)

    def keeping(self, parts: Sequence[Action | nemesis.Fault]) -> "Storm":
        actions = tuple(part for part in parts if isinstance(part, Action))
        faults = tuple(part for part in parts if not isinstance(part, Action))
        return replace(self, plan=replace(self.plan, actions=actions), faults=faults)

    def tell(self, cluster: SimulatedCluster, *, undisturbed: bool) -> int:
        """The number is that of the allocated resizes. AssertionError if it does not settle, or not where a quiet run does."""
        made, profile = self.plan, self.profile
        _furnish(cluster, made)
        nemesis.unleash(cluster.world, self.faults)
        for pod in made.pods:
            _make(cluster, pod.document(pod.first, _json(pod.workload)))
        if made.quota is not None:
            hard = {"requests.cpu": f"{made.quota[0]}m", "requests.memory": f"{made.quota[1]}Mi"}
            cluster.ask(create("resourcequotas", _object("v1", "ResourceQuota", "all", {"hard": hard}), namespace="default"))
        if made.limits is not None:
            cluster.ask(create("limitranges", _object("v1", "LimitRange", "all", {"limits": [made.limits]}), namespace="default"))
        for action in made.actions:
            _act(cluster, made, action)
        if made.limits is not None:
            _ask(cluster, delete("limitranges", "all", namespace="default"), 404)
        if made.quota is not None:
            _ask(cluster, delete("resourcequotas", "all", namespace="default"), 404)
        for node in made.nodes:
            _forbid(cluster, node, False)
        if profile.refuses_above_allocatable:
            _allow_all(cluster, made)  # or the last desires would be refused
        _all_declared(cluster, made)
        for pod in made.pods:
            _behave(cluster, pod, {})
            _resize(cluster, pod.name, pod.patch(pod.last))
        _allow_all(cluster, made)
        cluster.world.calm()
        _settle(cluster, made)
        _nothing_waits_that_fits(cluster, profile)
        _settle(cluster, made)
        wanted = _quiet(self.seed, made, profile)
        # A pod's cgroup may come down a moment after its status has said all there is to say.
        cluster.world.run_until(lambda: not _differences(_state(cluster, made), wanted), 60.0)
        differ = _differences(_state(cluster, made), wanted)
        assert not differ, "\n".join(differ)
        if not any(isinstance(action, Allow) for action in made.actions):
            _nobody_is_turned_out(cluster)
        return sum(record["cause"] != "admitted" for record in cluster.world.notes("kl.alloc"))


def storm(seed: int, profile: Profile, *, hostile: bool) -> Storm:
    """The storm of ``seed``."""
    made = plan(seed, hostile=hostile, profile=profile)
    if not hostile:
        return Storm(seed, made)
    rng, who = random.Random(f"{seed}/mix"), peers(made.nodes)
    kinds = rng.sample(nemesis.KINDS, rng.randint(1, len(nemesis.KINDS)))
    faults = nemesis.plan(seed, who, links(made.nodes), duration=FAULTY_SECONDS, count=rng.choice(FAULTS), kinds=kinds)
    armed = nemesis.armed(seed, who, duration=FAULTY_SECONDS / 2, count=rng.choice(ARMED))
    return Storm(seed, made, (*faults, *armed))


def _quiet(seed: int, made: Plan, profile: Profile) -> Mapping[str, Any]:
    """How a run ends in which each pod is as it was last wanted from the beginning."""
    cluster = SimulatedCluster(seed, profile)
    _furnish(cluster, made)
    for pod in made.pods:
        if pod.can_be_met:
            _make(cluster, pod.document(pod.last, ""))
    _settle(cluster, replace(made, pods=tuple(pod for pod in made.pods if pod.can_be_met)))
    return _state(cluster, made)


def _furnish(cluster: SimulatedCluster, made: Plan) -> None:
    """What is there before the pods."""
    for name, value in made.priorities.items():
        cluster.add_priority(name, value)
    for node in made.nodes:
        cluster.add_node(node)
    for group, may_go in made.budgets.items():
        spec = {"maxUnavailable": may_go, "selector": {"matchLabels": {"group": group}}}
        document = _object("policy/v1", "PodDisruptionBudget", group, spec)
        cluster.ask(create("poddisruptionbudgets.policy", document, namespace="default"))


def _object(version: str, kind: str, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": "default"}, "spec": dict(spec)}


# ---------------------------------------------------------------- what is done


def _json(workload: Mapping[str, Any]) -> str:
    return msgspec.json.encode(workload).decode() if workload else ""


def _act(cluster: SimulatedCluster, made: Plan, action: Action) -> None:
    cluster.world.run_for(action.wait)
    match action:
        case Resize(_, at, sizes):
            _resize(cluster, made.pods[at].name, made.pods[at].patch(sizes))
        case Behave(_, at, workload):
            _behave(cluster, made.pods[at], workload)
        case Replace(_, at, sizes):
            pod = made.pods[at]
            _replace(cluster, pod.name, pod.document(sizes, _json(pod.workload)))
        case Forbid(_, node, forbidden):
            _forbid(cluster, node, forbidden)
        case FullDisk(_, peer):
            cluster.world.disk(peer).failing += 1
        case Allow(_, node, amount):
            _allow(cluster, node, amount)


def _allow_all(cluster: SimulatedCluster, made: Plan) -> None:
    for node in made.nodes:
        _allow(cluster, node, (NODE_CPU, NODE_MEMORY))


def _allow(cluster: SimulatedCluster, node: str, amount: Vector) -> None:
    allocatable = {"cpu": f"{amount[0]}m", "memory": f"{amount[1]}Mi"}
    _ask(cluster, patch("nodes", node, {"status": {"allocatable": allocatable}}, subresource="status"))


def _all_declared(cluster: SimulatedCluster, made: Plan) -> None:
    """Wait until each node has said what it can do: before, a resize that needs it is refused, and the last word must be heard."""
    for node in made.nodes:
        cluster.until(
            f"{node} declares its features",
            lambda node=node: bool(cluster.ask(get("nodes", node))["status"].get("declaredFeatures")),
            SETTLES_SECONDS,
        )


def _differences(ended: Mapping[str, Mapping[str, Any]], wanted: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """What of each pod is not as it is in a quiet run."""
    found: list[str] = []
    for name, mine in ended.items():
        differ = [
            f"{what}: {mine[what]}, in a quiet run {value}" for what, value in wanted.get(name, {}).items() if mine[what] != value
        ]
        found += [f"I-09: {name} ended otherwise", *differ] if differ else []
    return found


def _forbid(cluster: SimulatedCluster, node: str, forbidden: bool) -> None:
    wish = {"disableResizePreemption": ["storm"]} if forbidden else None
    _ask(cluster, patch("nodes", node, {"spec": {"podPreemptionPolicy": wish}}))


def _replace(cluster: SimulatedCluster, name: str, document: Mapping[str, Any]) -> None:
    """Delete it, if it is still there, and make it anew once it is gone."""
    old = _ask(cluster, get("pods", name, namespace="default"), 404).get("metadata", {}).get("uid", "")
    if old:
        _ask(cluster, delete("pods", name, namespace="default", options={"preconditions": {"uid": old}}), 404, 409)
    cluster.until(f"{name} is gone", lambda: old not in [pod.uid for pod in cluster.pods.store.values()], SETTLES_SECONDS)
    told = _make(cluster, document)
    _wait_for(cluster, told)


def _make(cluster: SimulatedCluster, document: Mapping[str, Any]) -> dict[str, Any]:
    """403: a quota or a LimitRange does not allow it."""
    return _ask(cluster, create("pods", document, namespace="default"), 403)


def _behave(cluster: SimulatedCluster, pod: PodPlan, workload: Mapping[str, Any]) -> None:
    body = {"metadata": {"annotations": {"elbowroom.dev/workload": _json(workload) or None}}}
    _ask(cluster, patch("pods", pod.name, body, namespace="default"), 404)


def _resize(cluster: SimulatedCluster, name: str, body: Mapping[str, Any]) -> None:
    """Ask for it, and wait until our copy has it (or it was refused, or the pod was preempted)."""
    _wait_for(cluster, _ask(cluster, patch("pods", name, body, namespace="default", subresource="resize"), 403, 404))


def _wait_for(cluster: SimulatedCluster, told: Mapping[str, Any]) -> None:
    """Let our copy catch up with an answer."""
    revision = int(told.get("metadata", {}).get("resourceVersion", 0))
    cluster.until(f"revision {revision} is known", lambda: cluster.pods.revision >= revision, SETTLES_SECONDS)


def _ask(cluster: SimulatedCluster, request: ApiRequest, *allowed: int) -> dict[str, Any]:
    return cluster.ask(request, within=180.0, allowed=allowed)


# ---------------------------------------------------------------- where it ends


def _settle(cluster: SimulatedCluster, made: Plan) -> None:
    """Let it settle. A pod that lost the race for its room (RC-168) or was preempted is made again."""
    for _ in range(AGAIN_MAX):
        cluster.until("everything has settled", lambda: _lost(cluster, made) or _settled(cluster, made), within=SETTLES_SECONDS)
        name = _lost(cluster, made)
        if not name:
            return
        pod = next(pod for pod in made.pods if pod.name == name)
        _replace(cluster, name, pod.document(pod.last, ""))
    raise AssertionError(f"one turns out the other for ever\n{cluster.state()}")


def _lost(cluster: SimulatedCluster, made: Plan) -> str:
    """Somebody who is not there, or has ended."""
    known = {pod.metadata.name: pod for pod in cluster.pods.store.values()}
    return next((pod.name for pod in made.pods if pod.name not in known or known[pod.name].is_terminal), "")


def _settled(cluster: SimulatedCluster, made: Plan) -> bool:
    """One that was made anew and for which there is no room, since another holds what it has, is never bound."""
    if not all(cluster.world.alive(name) for name in cluster.world.names()):
        return False
    return all(
        is_settled(pod) and (_in_force(pod) or (not pod.spec.node_name and _has_no_room(cluster, made, pod)))
        for pod in cluster.pods.store.values()
    )


def _has_no_room(cluster: SimulatedCluster, made: Plan, pod: Pod) -> bool:
    planned = next(one for one in made.pods if one.name == pod.metadata.name)
    others = [p for p in cluster.pods.store.values() if not p.is_terminal and p.spec.node_name == planned.node]
    used = resources.add(*(resources.maximum(resources.allocated_requests(p), resources.spec_requests(p)) for p in others))
    free = resources.subtract({"cpu": NODE_CPU, "memory": NODE_MEMORY << 20}, used)
    return not resources.fits(resources.spec_requests(pod), free)


def _in_force(pod: Pod) -> bool:
    """Does all of it run, and has the runtime what was allocated, limits too, as far as the status tells?"""
    ready = pod.condition("Ready")
    if ready is None or ready.status != "True":
        return False
    if pod.status.observed_generation != pod.metadata.generation:
        return False
    if pod.condition("PodResizePending") is not None:
        return True
    statuses = {s.name: s for s in [*pod.status.container_statuses, *pod.status.init_container_statuses]}
    for container in [*pod.spec.init_containers, *pod.spec.containers]:
        status = statuses.get(container.name)
        if status is None or status.resources is None:
            return False
        told = status.resources
        if resources.of(told.limits) != resources.of(container.resources.limits):
            return False
        if resources.of(told.requests) != resources.of(container.resources.requests):
            return False
    return bool(pod.spec.node_name)


def _nothing_waits_that_fits(cluster: SimulatedCluster, profile: Profile) -> None:
    """I-10: what is Deferred does not fit, by the kubelet's own rule, or is granted within moments."""
    within = LIVELY_SECONDS if profile.pending_pass_at_start else LIVELY_SECONDS + RETRY_FIRST_SECONDS
    cluster.until("nothing waits for what is there", lambda: not _waits_for_what_is_there(cluster), within)


def _waits_for_what_is_there(cluster: SimulatedCluster) -> bool:
    pods = [pod for pod in cluster.pods.store.values() if not pod.is_terminal and pod.spec.node_name]
    for pod in pods:
        if not resources.is_deferred(pod):
            continue
        others = [p for p in pods if p.spec.node_name == pod.spec.node_name and p.uid != pod.uid]
        used = resources.add(*(resources.maximum(resources.allocated_requests(p), resources.actual_requests(p)) for p in others))
        free = resources.subtract({"cpu": NODE_CPU, "memory": NODE_MEMORY << 20}, used)
        if resources.fits(resources.spec_requests(pod), free):
            return True
    return False


def _nobody_is_turned_out(cluster: SimulatedCluster) -> None:
    """RC-91: who was let in stays, whatever others wish for. (Unless the node became smaller and its kubelet began anew.)"""
    admitted: set[str] = set()
    for record in cluster.world.notes("kl.*"):
        if record["kind"] == "kl.alloc":
            admitted.add(record["uid"])
        elif record["kind"] == "kl.reject":
            assert record["uid"] not in admitted, f"{record['pod']} was let in and then rejected: {record['message']}"


def _state(cluster: SimulatedCluster, made: Plan) -> dict[str, Any]:
    """What is allocated, actuated, in cgroups and told of each pod whose last desire is met: one that nothing can meet keeps what
    it had, and others may have to wait for that."""
    found: dict[str, Any] = {}
    for planned in made.pods:
        pod = cluster.pods.store.get(f"default/{planned.name}")
        if pod is None or not planned.can_be_met or resources.is_deferred(pod) or not pod.spec.node_name:
            continue
        found[planned.name] = {
            "phase": pod.status.phase,
            "qos": pod.status.qos_class,
            "allocated": _vector(resources.allocated_requests(pod)),
            "told": _told(pod),
            "layers": {key: _layer(cluster, planned, key, pod.metadata.uid) for key in (ALLOCATED, ACTUATED)},
            "cgroups": _cgroups(cluster, planned.node, pod.metadata.uid),
        }
    return found


def _vector(vector: Mapping[str, int]) -> dict[str, int]:
    return {name: amount for name, amount in sorted(vector.items()) if amount}


def _told(pod: Pod) -> dict[str, Any]:
    statuses = [*pod.status.init_container_statuses, *pod.status.container_statuses]
    told: dict[str, Any] = {
        status.name: (_vector(resources.of(status.resources.requests)), _vector(resources.of(status.resources.limits)))
        for status in statuses
        if status.resources is not None
    }
    if pod.status.resources is not None:
        told[""] = (_vector(resources.of(pod.status.resources.requests)), _vector(resources.of(pod.status.resources.limits)))
    return told


def _layer(cluster: SimulatedCluster, planned: PodPlan, key: str, uid: str) -> dict[str, Any]:
    raw = cluster.world.disk(f"kubelet/{planned.node}").load().get(key)
    entries = msgspec.json.decode(msgspec.json.decode(raw)["data"]).get("entries", {}) if raw is not None else {}
    layer = entries.get(uid, {})
    level = layer.get("PodLevelResources") or {}
    parts = {**(layer.get("ContainerResources") or {}), "": level}
    if key == ACTUATED:  # an init container that has ended is given nothing any more
        parts = {name: one for name, one in parts.items() if name not in [s.name for s in planned.shapes if s.kind == "init"]}
    # An update records the limits that a container inherits from its pod, a creation does not.
    inherited = resources.of(level.get("limits"))
    return {
        name: (_vector(resources.of(one.get("requests"))), _vector(inherited | _vector(resources.of(one.get("limits")))))
        for name, one in sorted(parts.items())
    }


def _cgroups(cluster: SimulatedCluster, node: str, uid: str) -> dict[str, Any]:
    disk = cluster.world.disk(f"runtime/{node}").load()
    records = [decode_value(raw, SandboxRecord) for key, raw in disk.items() if key.startswith("sandbox/")]
    mine = [record for record in records if record.uid == uid]
    groups: dict[str, Any] = {f"pod {at}": record.pod for at, record in enumerate(mine)}
    return groups | {c.name: c.group for record in mine for c in record.containers if c.state == "running"}
