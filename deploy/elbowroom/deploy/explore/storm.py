"""A storm of resizes, told in the simulated world under whatever faults a seed draws, and held against a quiet run of its end.

Where it ends must be decided by the last desires alone (I-09): a second world in which each pod is made as it was last wanted,
and in which nothing goes wrong, ends with the same allocations, the same cgroups and the same status.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec

from elbowroom.api import resources
from elbowroom.api.gates import Profile
from elbowroom.api.objects import Pod
from elbowroom.deploy.explore.cluster import SimulatedCluster, is_settled
from elbowroom.deploy.explore.outcome import Outcome
from elbowroom.deploy.explore.storm_plan import (
    NODE_CPU,
    NODE_MEMORY,
    Action,
    Allow,
    Behave,
    FullDisk,
    Plan,
    PodPlan,
    Replace,
    Resize,
    Vector,
    plan,
)
from elbowroom.kubelet.config import RETRY_FIRST_SECONDS
from elbowroom.rpc import create, delete, patch
from elbowroom.runtime.pods import SandboxRecord
from elbowroom.sim import nemesis
from elbowroom.wire import ApiRequest, decode_value

FAULTS, FAULTY_SECONDS = 8, 20.0
SETTLES_SECONDS = 900.0
"""Crash back-off is up to five minutes, and the check of memory waits for ten to fifteen seconds a time."""
LIVELY_SECONDS = 5.0
"""By when room that is there is given to who waits for it."""
ALLOCATED, ACTUATED = "allocated_pods_state", "actuated_pods_state"


def storm(seed: int, *, hostile: bool = False, die_before: int = 0, profile: Profile) -> Outcome:
    """The storm of ``seed``; AssertionError if it does not settle, or not where a quiet run does."""
    made = plan(seed, hostile=hostile, profile=profile)
    cluster = SimulatedCluster(seed, profile)
    if die_before:
        cluster.world.die_before(die_before)
    for node in made.nodes:
        cluster.add_node(node)
    if hostile:
        nemesis.unleash(cluster.world, _faults(seed, cluster))
    for pod in made.pods:
        _make(cluster, pod.document(pod.first, _json(pod.workload)))
    for action in made.actions:
        _act(cluster, made, action)
    if profile.refuses_above_allocatable:
        _allow_all(cluster, made)  # or the last desires would be refused
    for pod in made.pods:
        _behave(cluster, pod, {})
        _resize(cluster, pod.name, pod.patch(pod.last))
    _allow_all(cluster, made)
    cluster.world.calm()
    for node in made.nodes:
        for peer in ("kubelet", "runtime"):
            cluster.world.disk(f"{peer}/{node}").failing = 0
    _settle(cluster, made)
    _nothing_waits_that_fits(cluster, profile)
    _settle(cluster, made)
    ended, wanted = _state(cluster, made), _quiet(seed, made, profile)
    for name, mine in ended.items():
        facts = wanted[name]
        differ = [f"{what}: {mine[what]}, in a quiet run {value}" for what, value in facts.items() if mine[what] != value]
        assert not differ, "\n".join((f"{name} ended otherwise (I-09)", *differ))
    resized = sum(record["cause"] != "admitted" for record in cluster.world.notes("kl.alloc"))
    report = cluster.verdict()
    if not any(isinstance(action, Allow) for action in made.actions):
        _nobody_is_turned_out(cluster)
    rescued = [r for r in cluster.world.notes("kl.alloc") if r["cause"] == "periodic_retry"]
    assert hostile or die_before or not rescued, f"only the timer helped: {rescued[0]} (I-11)"
    return Outcome(cluster.world, report, resized)


def _faults(seed: int, cluster: SimulatedCluster) -> list[nemesis.Fault]:
    """No bits are flipped: what still decodes would be another request, and where the storm ends would depend on it."""
    drawn = nemesis.plan(seed, cluster.peers(), cluster.links(), duration=FAULTY_SECONDS, count=FAULTS)
    return [
        replace(fault, disturbance=replace(fault.disturbance, corrupt=0.0)) if isinstance(fault, nemesis.Disturb) else fault
        for fault in drawn
    ]


def _quiet(seed: int, made: Plan, profile: Profile) -> Mapping[str, Any]:
    """How a run ends in which each pod is as it was last wanted from the beginning."""
    cluster = SimulatedCluster(seed, profile)
    for node in made.nodes:
        cluster.add_node(node)
    for pod in made.pods:
        if pod.can_be_met:
            _make(cluster, pod.document(pod.last, ""))
    _settle(cluster, made)
    return _state(cluster, made)


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


def _replace(cluster: SimulatedCluster, name: str, document: Mapping[str, Any]) -> None:
    old = cluster.pod(name).metadata.uid
    _ask(cluster, delete("pods", name, namespace="default", options={"preconditions": {"uid": old}}), 404)
    cluster.until(f"{name} is gone", lambda: old not in [pod.uid for pod in cluster.pods.store.values()], SETTLES_SECONDS)
    _make(cluster, document)
    cluster.until(f"{name} is there", lambda: f"default/{name}" in cluster.pods.store, SETTLES_SECONDS)


def _make(cluster: SimulatedCluster, document: Mapping[str, Any]) -> None:
    cluster.ask(create("pods", document, namespace="default"))


def _behave(cluster: SimulatedCluster, pod: PodPlan, workload: Mapping[str, Any]) -> None:
    body = {"metadata": {"annotations": {"elbowroom.dev/workload": _json(workload) or None}}}
    _ask(cluster, patch("pods", pod.name, body, namespace="default"))


def _resize(cluster: SimulatedCluster, name: str, body: Mapping[str, Any]) -> None:
    """Ask for it, and wait until our copy has it (or it was refused)."""
    told = _ask(cluster, patch("pods", name, body, namespace="default", subresource="resize"), 403).get("metadata", {})
    if told:
        wanted = (told["uid"], told["generation"])
        cluster.until(f"{name} is known to be resized", lambda: _is_known(cluster, name, *wanted), SETTLES_SECONDS)


def _is_known(cluster: SimulatedCluster, name: str, uid: str, generation: int) -> bool:
    pod = cluster.pods.store.get(f"default/{name}")
    return pod is not None and pod.uid == uid and pod.metadata.generation >= generation


def _ask(cluster: SimulatedCluster, request: ApiRequest, *allowed: int) -> dict[str, Any]:
    return cluster.ask(request, within=180.0, allowed=allowed)


# ---------------------------------------------------------------- where it ends


def _settle(cluster: SimulatedCluster, made: Plan) -> None:
    """Let it settle. A new pod that lost the race for its room (RC-168) is made again."""
    while True:
        cluster.until("everything has settled", lambda: _rejected(cluster) or _settled(cluster, made), within=SETTLES_SECONDS)
        name = _rejected(cluster)
        if not name:
            return
        pod = next(pod for pod in made.pods if pod.name == name)
        _replace(cluster, name, pod.document(pod.last, ""))


def _rejected(cluster: SimulatedCluster) -> str:
    return next((pod.metadata.name for pod in cluster.pods.store.values() if pod.is_terminal), "")


def _settled(cluster: SimulatedCluster, made: Plan) -> bool:
    """One that was made anew and then wanted more than any node has is never bound."""
    hopeless = [pod.name for pod in made.pods if not pod.can_be_met]
    bound = [pod for pod in cluster.pods.store.values() if pod.spec.node_name or pod.metadata.name not in hopeless]
    return all(is_settled(pod) and _in_force(pod) for pod in bound)


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
        if pod is None or not planned.can_be_met or resources.is_deferred(pod):
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
