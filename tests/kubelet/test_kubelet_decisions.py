"""The kubelet's pure decisions: tables for rules, Hypothesis for laws."""

import itertools
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elbowroom.api.gates import profile_of
from elbowroom.api.objects import Node, Pod, ResourceRequirements
from elbowroom.api.quantity import format_bytes, format_milli
from elbowroom.api.resources import effective_requests, of, spec_requests
from elbowroom.kubelet import actuation, admission, checkpoint, lifecycle
from elbowroom.kubelet.actuation import NotifySandbox, PodConfig, UpdateContainer, WritePod
from elbowroom.kubelet.admission import Crowd, Neighbour, NoVictims
from elbowroom.kubelet.allocation import (
    Deferred,
    Evict,
    Granted,
    Infeasible,
    Rules,
    desired,
    increases,
    judge,
    requested_operations,
    same,
    summary,
    with_allocation,
)
from elbowroom.kubelet.checkpoint import Checkpoint, CorruptCheckpoint, PodResources
from elbowroom.kubelet.config import ConfigError, KubeletConfig, cpu_set, duration, parse
from elbowroom.kubelet.lifecycle import Ended, RunSandbox, Situation, StartContainer, StopContainer, StopSandbox, Wait
from elbowroom.kubelet.pending import PendingQueue, Rank
from elbowroom.kubelet.status.document import document
from elbowroom.kubelet.status.patches import differs, owned_types, patch
from elbowroom.kubelet.status.shown import Shown
from elbowroom.machine import Instant, Persist, seconds
from elbowroom.wire.cri import ContainerState, ContainerStats, LinuxResources, PodStats, SandboxState

LAB = profile_of("lab")
CONFIG = KubeletConfig(gates=LAB.gates)
MIB = 1 << 20


def a_container(
    name: str = "c", cpu: str = "", memory: str = "", limits: dict[str, str] | None = None, **more: Any
) -> dict[str, Any]:
    requests = {k: v for k, v in (("cpu", cpu), ("memory", memory)) if v}
    return {"name": name, "image": "i", "resources": {"requests": requests, "limits": limits or {}}, **more}


def a_pod(*containers: dict[str, Any], name: str = "p", notes: dict[str, str] | None = None, **spec: Any) -> Pod:
    meta = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "generation": 2, "annotations": notes or {}}
    return msgspec.convert({"metadata": meta, "spec": {"containers": list(containers), **spec}}, Pod)


def a_node(cpu: str = "4", memory: str = "8Gi", pods: str = "110", **more: Any) -> Node:
    return msgspec.convert(
        {
            "metadata": {"name": "n1", "labels": {"zone": "a"}},
            "status": {"allocatable": {"cpu": cpu, "memory": memory, "pods": pods}},
        }
        | more,
        Node,
    )


def a_crowd(*pods: Pod) -> Crowd:
    return Crowd.of(Neighbour(pod, effective_requests(pod)) for pod in pods)


# ---------------------------------------------------------------- checkpoints


def test_the_checksum_is_upstreams() -> None:
    data = b'{"entries":{"pod1":{"ContainerResources":{"container1":{"requests":{"cpu":"1Ki","memory":"1Ki"}}}}}}'
    assert checkpoint.checksum(data) == 1178570812


def test_a_checkpoint_is_written_as_upstream_writes_it() -> None:
    kept = Checkpoint("allocated_pods_state", ("K4", "K5", "K6", "K7"))
    size = ResourceRequirements(requests={"cpu": "500m", "memory": "1Gi"}, limits={"cpu": "1"})
    kept.put("u2", PodResources(containers={"c": size}))
    kept.put("u1", PodResources(containers={"c": ResourceRequirements()}, level=size))
    write = next(effect for effect in kept.save() if isinstance(effect, Persist))
    assert write.labels == ("K4", "K5", "K6", "K7") and write.value is not None
    outer = msgspec.json.decode(write.value)
    both = '{"limits":{"cpu":"1"},"requests":{"cpu":"500m","memory":"1Gi"}}'
    assert outer["data"] == (
        f'{{"entries":{{"u1":{{"ContainerResources":{{"c":{{}}}},"PodLevelResources":{both}}},'
        f'"u2":{{"ContainerResources":{{"c":{both}}},"PodLevelResources":null}}}}}}'
    )
    assert outer["checksum"] == checkpoint.checksum(outer["data"].encode())
    assert kept.save() == []


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"[]",
        b'{"data":"{}","checksum":1}',
        b'{"data":"nonsense","checksum":2166136261}',
        b'{"checksum":1}',
    ],
)
def test_what_was_not_written_is_refused(raw: bytes) -> None:
    with pytest.raises(CorruptCheckpoint, match="could not restore state from checkpoint"):
        checkpoint.decode("allocated_pods_state", raw)


def test_an_older_file_without_pod_level_resources_and_with_unknown_keys_is_read() -> None:
    data = '{"entries":{"u":{"ContainerResources":{"c":{"requests":{"cpu":"1"}}},"Future":1}}}'
    raw = msgspec.json.encode({"data": data, "checksum": checkpoint.checksum(data.encode())})
    assert checkpoint.decode("k", raw)["u"].level is None
    empty = msgspec.json.encode({"data": "{}", "checksum": checkpoint.checksum(b"{}")})
    assert checkpoint.decode("k", empty) == {}


names = st.text("abcxyz-0", min_size=1, max_size=6)
sizes = st.builds(
    lambda cpu, memory: ResourceRequirements(requests={"cpu": format_milli(cpu), "memory": format_bytes(memory)}),
    st.integers(0, 9000),
    st.integers(0, 1 << 40),
)
entries = st.builds(
    lambda c, level: PodResources(containers=c, level=level), st.dictionaries(names, sizes, max_size=3), st.none() | sizes
)


@given(st.lists(st.tuples(names, st.none() | entries), max_size=12))
@settings(max_examples=60, deadline=None)
def test_whatever_was_put_and_forgotten_is_read_back_with_a_right_checksum(changes: list[tuple[str, PodResources | None]]) -> None:
    kept, disk = Checkpoint("k"), dict[str, bytes]()
    for uid, entry in changes:
        if entry is None:
            kept.forget(uid)
        else:
            kept.put(uid, entry)
        for effect in kept.save():
            if isinstance(effect, Persist) and effect.value is not None:
                disk["k"] = effect.value
    assert Checkpoint.loaded("k", disk).entries == kept.entries


# ---------------------------------------------------------------- configuration


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"cpuManagerPolicy": "dynamic"}, "unknown policy"),
        ({"cpuManagerPolicyOptions": {"full-pcpus-only": "true"}}, "None policy: received unsupported options"),
        ({"memoryManagerPolicy": "Static"}, "you should specify the system reserved memory"),
        ({"memoryManagerPolicy": "Static", "reservedMemory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}]}, "Node Allocatable"),
        ({"maxPods": "many"}, "maxPods"),
        ({"memorySwap": {"swapBehavior": "Unlimited"}}, "memorySwap"),
        ({"featureGates": {"InPlacePodVerticalScaling": "yes"}}, "featureGates"),
        ({"reservedSystemCPUs": "3-1"}, "unable to parse"),
        ({"elbowroom": {"preview": "7777"}}, "preview"),
        ({"elbowroom": {"speed": "fast"}}, "unknown field"),
        ({"systemReserved": {"cpu": "lots"}}, "systemReserved"),
    ],
)
def test_what_upstream_refuses_is_refused(config: dict[str, Any], words: str) -> None:
    notes = {"elbowroom.dev/kubelet-config": msgspec.json.encode(config).decode()}
    with pytest.raises(ConfigError, match=words):
        parse(notes, LAB)


@pytest.mark.parametrize("amount", ["8192", "8193", "1e9", "1e99"])
def test_a_node_of_more_cpus_than_any_machine_has_is_on_the_largest_machine(amount: str) -> None:
    assert parse({}, LAB, of({"cpu": amount})).hardware.cpus == 8192


@pytest.mark.parametrize(
    "machine", [{"coresPerNuma": 8193}, {"sockets": 100, "threadsPerCore": 100}, {"coresPerNuma": 4096, "threadsPerCore": 3}]
)
def test_a_machine_that_no_kernel_could_run_is_refused(machine: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match="a machine has at most 8192 CPUs, not "):
        parse({"elbowroom.dev/machine": msgspec.json.encode(machine).decode()}, LAB)


STATIC = {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0,3"}
ALPHA = {"InPlacePodVerticalScalingExclusiveCPUs": True, "CPUManagerPolicyAlphaOptions": True}


@pytest.mark.parametrize(
    ("options", "gates", "preview", "fits"),
    [
        ({"full-pcpus-only": "true"}, {}, "", True),
        ({"full-pcpus-only": "yes"}, {}, "", False),
        ({"foo": "bar"}, {}, "", False),
        ({"align-by-socket": "true"}, {"CPUManagerPolicyAlphaOptions": False}, "", False),
        ({"full-pcpus-only": "true", "distribute-cpus-across-cores": "true"}, ALPHA, "", False),
        ({"scale-delay-time": "5s"}, {"InPlacePodVerticalScalingExclusiveCPUs": False}, "", False),
        ({"scale-delay-time": "500ms"}, ALPHA, "6122A", True),
        ({"scale-delay-time": "11s"}, ALPHA, "6122A", False),
        ({"scale-delay-time": "-1s"}, ALPHA, "6122A", False),
        ({"scale-delay-time": "abc"}, ALPHA, "6122A", False),
        ({"scale-delay-time": "0s"}, {**ALPHA, "InPlacePodVerticalScalingExclusiveCPUs": False}, "6122A", True),
        ({"scale-delay-time": "5s"}, {**ALPHA, "CPUManagerPolicyAlphaOptions": False}, "6122A", False),
    ],
)
def test_cpu_manager_options_are_checked(options: dict[str, str], gates: dict[str, bool], preview: str, fits: bool) -> None:
    config: dict[str, Any] = {**STATIC, "cpuManagerPolicyOptions": options, "featureGates": gates}
    if preview:
        config["elbowroom"] = {"preview": preview}
    notes = {"elbowroom.dev/kubelet-config": msgspec.json.encode(config).decode()}
    if fits:
        assert parse(notes, LAB).static_cpu
    else:
        with pytest.raises(ConfigError):
            parse(notes, LAB)


def test_durations_and_cpu_lists_are_read_as_go_and_linux_do() -> None:
    assert [duration(t) for t in ("3s", "1m30s", "1.5s", "0", "-2ms")] == [3 * 10**9, 90 * 10**9, 1_500_000_000, 0, -2_000_000]
    assert cpu_set("0-2,8") == (0, 1, 2, 8)
    for bad in ("", "s", "3", "3 s", "1h!"):
        with pytest.raises(ConfigError):
            duration(bad)


# ---------------------------------------------------------------- admission


@pytest.mark.parametrize(
    ("pod", "reason", "message"),
    [
        (
            a_pod(a_container(cpu="2500m", memory="9Gi")),
            "OutOfcpu",
            "Node didn't have enough resource: cpu, requested: 2500, used: 2000, capacity: 4000",
        ),
        (
            a_pod(a_container(cpu="1", memory="7Gi")),
            "OutOfmemory",
            "Node didn't have enough resource: memory, requested: 7516192768, used: 2147483648, capacity: 8589934592",
        ),
        (
            a_pod(a_container(), nodeSelector={"zone": "b"}),
            "NodeAffinity",
            "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
        ),
        (
            a_pod(a_container(ports=[{"containerPort": 80, "hostPort": 80}])),
            "NodePorts",
            "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports",
        ),
    ],
)
def test_a_pod_is_refused_in_upstreams_words(pod: Pod, reason: str, message: str) -> None:
    other = a_pod(a_container(cpu="2", memory="2Gi", ports=[{"containerPort": 8080, "hostPort": 80}]), name="other")
    found = admission.refusal(pod, spec_requests(pod), a_crowd(other), a_node())
    assert found is not None and (found.reason, found.message) == (reason, message)


def test_the_number_of_pods_comes_first() -> None:
    pod, other = a_pod(a_container(cpu="9")), a_pod(a_container(), name="other")
    found = admission.refusal(pod, spec_requests(pod), a_crowd(other), a_node(pods="1"))
    assert found is not None and found.message == "Node didn't have enough resource: pods, requested: 1, used: 1, capacity: 1"
    assert [lack.resource for lack in found.lacks] == ["pods", "cpu"]


def test_an_untolerated_noexecute_taint_refuses_and_a_toleration_admits() -> None:
    node = a_node(spec={"taints": [{"key": "k", "value": "v", "effect": "NoExecute"}]})
    for tolerations, refused in (
        ([], True),
        ([{"key": "k", "operator": "Exists"}], False),
        ([{"operator": "Exists"}], False),
        ([{"key": "k", "value": "w"}], True),
        ([{"key": "k", "value": "v", "effect": "NoSchedule"}], True),
    ):
        pod = a_pod(a_container(), tolerations=tolerations)
        assert (admission.refusal(pod, {}, Crowd(), node) is not None) is refused


def test_required_node_affinity_is_asked() -> None:
    def pod(operator: str, values: list[str]) -> Pod:
        terms = [{"matchExpressions": [{"key": "zone", "operator": operator, "values": values}]}]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        return a_pod(a_container(), affinity={"nodeAffinity": required})

    assert admission.affine(pod("In", ["a"]), a_node()) and not admission.affine(pod("NotIn", ["a"]), a_node())
    assert admission.affine(pod("Exists", []), a_node()) and not admission.affine(pod("DoesNotExist", []), a_node())


def critical(cpu: str) -> Pod:
    return a_pod(a_container(cpu=cpu), name="crit", priority=2_000_000_000)


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ([("big", "2", 0), ("small", "1", 0)], ["small"]),
        ([("a", "500m", 0), ("b", "500m", 0), ("c", "2", 0)], ["c"]),
        ([("low", "1", 1), ("lower", "1", 0)], ["lower"]),
        ([("x", "400m", 0), ("y", "700m", 0), ("z", "300m", 0)], ["y", "z"]),
    ],
)
def test_victims_are_the_least_important_as_few_and_as_small_as_will_do(
    others: list[tuple[str, str, int]], expected: list[str]
) -> None:
    pods = [a_pod(a_container(cpu=cpu), name=name, priority=priority) for name, cpu, priority in others]
    lack = admission.Lack("cpu", 2000, 3000, 4000)
    chosen = admission.victims(critical("2"), a_crowd(*pods), [lack])
    assert isinstance(chosen, list) and [p.metadata.name for p in chosen] == expected


def test_nobody_to_push_out_is_told_in_upstreams_words() -> None:
    other = a_pod(a_container(cpu="3"), name="other", priority=2_000_000_000)
    chosen = admission.victims(critical("2"), a_crowd(other), [admission.Lack("cpu", 2000, 3000, 4000)])
    assert isinstance(chosen, NoVictims)
    assert admission.unexpected(chosen).message == (
        "Unexpected error while attempting to recover from admission failure: preemption: error finding a set of pods to preempt: "
        "no set of running pods found to reclaim resources: [(res: cpu, q: 1000), ]"
    )


@given(st.lists(st.tuples(st.integers(1, 30), st.integers(0, 3)), max_size=7), st.integers(1, 120))
@settings(max_examples=150, deadline=None)
def test_no_victim_is_needless_and_their_room_is_enough(others: list[tuple[int, int]], amount: int) -> None:
    pods = [a_pod(a_container(cpu=f"{cpu}"), name=f"p{at}", priority=priority) for at, (cpu, priority) in enumerate(others)]
    chosen = admission.victims(critical("1"), a_crowd(*pods), [admission.Lack("cpu", amount, 0, 0)])
    room = {p.metadata.name: of(p.spec.containers[0].resources.requests)["cpu"] for p in pods}
    if isinstance(chosen, NoVictims):
        assert sum(room.values()) < amount
    else:
        assert sum(room[p.metadata.name] for p in chosen) >= amount
        highest = max(chosen, key=lambda p: p.priority)
        lower = [room[p.metadata.name] for p in pods if p.priority < highest.priority]
        assert sum(lower) < amount, "an important pod goes only if the less important ones are not enough"


# ---------------------------------------------------------------- allocation


@pytest.mark.parametrize(
    ("wanted", "config", "verdict"),
    [
        (a_pod(a_container(cpu="2")), CONFIG, Granted()),
        (
            a_pod(a_container(cpu="3")),
            CONFIG,
            Deferred("OutOfcpu", "Node didn't have enough resource: cpu, requested: 3000, used: 2000, capacity: 4000"),
        ),
        (
            a_pod(a_container(cpu="5", memory="9Gi")),
            CONFIG,
            Infeasible(
                "Node didn't have enough capacity: memory, requested: 9663676416, capacity: 8589934592",
                "insufficient_node_allocatable",
            ),
        ),
        (
            a_pod(a_container(cpu="5")),
            CONFIG,
            Infeasible("Node didn't have enough capacity: cpu, requested: 5000, capacity: 4000", "insufficient_node_allocatable"),
        ),
    ],
)
def test_a_resize_is_judged_by_room(wanted: Pod, config: KubeletConfig, verdict: Any) -> None:
    allocated, other = a_pod(a_container(cpu="1")), a_pod(a_container(cpu="2"), name="other")
    assert judge(wanted, allocated, a_crowd(other), Rules(a_node(), config)) == verdict


def test_in_v137_more_than_the_node_has_is_deferred() -> None:
    rules = Rules(a_node(), CONFIG, infeasible_above_allocatable=False)
    assert isinstance(judge(a_pod(a_container(cpu="5")), a_pod(a_container(cpu="1")), Crowd(), rules), Deferred)


def guaranteed(cpu: str, memory: str) -> Pod:
    return a_pod(a_container(cpu=cpu, memory=memory, limits={"cpu": cpu, "memory": memory}))


def burstable(request: str, limit: str, **more: Any) -> Pod:
    return a_pod(a_container(cpu="100m", memory=request, limits={"memory": limit}, **more))


OFF = {**LAB.gates, "InPlacePodVerticalScalingExclusiveCPUs": False, "InPlacePodLevelResourcesVerticalScaling": False}
RESTART = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]


@pytest.mark.parametrize(
    ("old", "new", "config", "detail"),
    [
        (
            guaranteed("1", "1Gi"),
            guaranteed("2", "1Gi"),
            KubeletConfig(OFF, static_cpu=True),
            "guaranteed_pod_cpu_manager_static_policy",
        ),
        (guaranteed("1", "1Gi"), guaranteed("1", "2Gi"), KubeletConfig(OFF, static_cpu=True), None),
        (guaranteed("1", "1Gi"), guaranteed("2", "1Gi"), KubeletConfig(LAB.gates, static_cpu=True), None),
        (burstable("1Gi", "2Gi"), burstable("1Gi", "3Gi"), KubeletConfig(OFF, static_cpu=True), None),
        (
            guaranteed("1", "1Gi"),
            guaranteed("1", "2Gi"),
            KubeletConfig(OFF, static_memory=True),
            "guaranteed_pod_memory_manager_static_policy",
        ),
        (guaranteed("1", "1Gi"), guaranteed("2", "1Gi"), KubeletConfig(OFF, static_memory=True), None),
        (burstable("1Gi", "2Gi"), burstable("1500Mi", "2Gi"), KubeletConfig(OFF, swap=True), "swap_limitation"),
        (burstable("1Gi", "2Gi"), burstable("1Gi", "3Gi"), KubeletConfig(OFF, swap=True), None),
        (
            burstable("1Gi", "2Gi", resizePolicy=RESTART),
            burstable("1500Mi", "2Gi", resizePolicy=RESTART),
            KubeletConfig(OFF, swap=True),
            None,
        ),
        (burstable("1Gi", "2Gi"), burstable("1500Mi", "2Gi"), KubeletConfig(OFF), None),
        (
            a_pod(a_container(), resources={"requests": {"cpu": "1"}}),
            a_pod(a_container(), resources={"requests": {"cpu": "2"}}),
            KubeletConfig(OFF),
            "plr_feature_gate_off",
        ),
    ],
)
def test_what_a_node_can_never_do_is_infeasible(old: Pod, new: Pod, config: KubeletConfig, detail: str | None) -> None:
    verdict = judge(new, old, Crowd(), Rules(a_node(), config))
    assert (verdict.detail if isinstance(verdict, Infeasible) else None) == detail
    if detail is None:
        assert verdict == Granted()


def test_a_critical_pod_evicts_where_the_kubelet_may() -> None:
    other = a_pod(a_container(cpu="3"), name="other")
    wanted, old = critical("2"), critical("1")
    assert isinstance(judge(wanted, old, a_crowd(other), Rules(a_node(), CONFIG)), Deferred)
    verdict = judge(wanted, old, a_crowd(other), Rules(a_node(), CONFIG, evicts_for_resize=True))
    assert isinstance(verdict, Evict) and [p.metadata.name for p in verdict.victims] == ["other"]


def test_the_allocation_overwrites_the_spec_and_notation_is_no_difference() -> None:
    pod = a_pod(a_container(cpu="1000m"), a_container("y", memory="1Gi"))
    layer = PodResources(
        containers={"c": ResourceRequirements(requests={"cpu": "1"}), "y": ResourceRequirements(requests={"memory": "1024Mi"})}
    )
    assert same(desired(pod, CONFIG), layer) and with_allocation(pod, layer, CONFIG) is pod
    other = PodResources(containers={**(layer.containers or {}), "c": ResourceRequirements(requests={"cpu": "2"})})
    assert spec_requests(with_allocation(pod, other, CONFIG)) == {"cpu": 2000, "memory": 1 << 30}


def test_only_requests_make_a_resize_an_increase() -> None:
    old = a_pod(a_container(cpu="1", limits={"cpu": "1"}))
    assert not increases(a_pod(a_container(cpu="1", limits={"cpu": "2"})), old)
    assert increases(a_pod(a_container(cpu="1100m")), old) and not increases(a_pod(a_container(cpu="900m")), old)
    assert increases(a_pod(a_container(cpu="500m", memory="1Mi")), old)


def test_the_summary_in_events_is_compact_and_lists_init_containers_first() -> None:
    init = [a_container("i", cpu="80m", restartPolicy="Always")]
    pod = a_pod(a_container(cpu="100m", memory="1Gi", limits={"memory": "2Gi"}), initContainers=init)
    assert summary(pod, 3, 'no "room"') == (
        '{"initContainers":[{"name":"i","resources":{"requests":{"cpu":"80m"}}}],"containers":[{"name":"c","resources":'
        '{"limits":{"memory":"2Gi"},"requests":{"cpu":"100m","memory":"1Gi"}}}],"generation":3,"error":"no \\"room\\""}'
    )


def test_requested_operations_compare_with_the_spec_before() -> None:
    old = a_pod(a_container(cpu="1", memory="1Gi", limits={"memory": "2Gi"}))
    new = a_pod(a_container(cpu="500m", memory="1Gi", limits={"cpu": "1", "memory": "3Gi"}))
    assert requested_operations(old, new) == [
        ("cpu", "limits", "add"),
        ("cpu", "requests", "decrease"),
        ("memory", "limits", "increase"),
    ]


# ---------------------------------------------------------------- the queue


ranks = st.builds(
    Rank,
    increases=st.booleans(),
    priority=st.integers(-2, 2),
    guaranteed=st.booleans(),
    waiting_since=st.none() | st.integers(0, 3).map(Instant),
)


@given(st.lists(ranks, max_size=8))
@settings(max_examples=150, deadline=None)
def test_the_queue_is_ordered_by_the_rule_and_pods_of_equal_rank_by_their_push(found: list[Rank]) -> None:
    queue, by_uid = PendingQueue(), {str(at): rank for at, rank in enumerate(found)}
    for uid in by_uid:
        queue.push(uid, by_uid.get)
    order = list(queue)
    keys = [by_uid[uid].key for uid in order]
    assert keys == sorted(keys) and sorted(order, key=int) == list(by_uid)
    for one, other in itertools.pairwise(order):
        assert by_uid[one].key != by_uid[other].key or int(one) < int(other)


def test_a_pod_in_the_queue_keeps_its_place_until_another_is_pushed() -> None:
    ranks = {"a": Rank(True, 0, False, None), "b": Rank(True, 0, False, None)}
    queue = PendingQueue()
    queue.push("a", ranks.get)
    queue.push("b", ranks.get)
    ranks["b"] = Rank(True, 9, False, None)
    queue.push("b", ranks.get)
    assert list(queue) == ["a", "b"]
    ranks["c"] = Rank(False, 0, False, None)
    queue.push("c", ranks.get)
    assert list(queue) == ["c", "b", "a"]
    queue.keep(["a", "c"])
    assert list(queue) == ["c", "a"] and "b" not in queue


def test_vanished_pods_are_dropped_from_the_queue() -> None:
    queue = PendingQueue()
    queue.push("a", lambda uid: Rank(True, 0, False, None))
    queue.push("b", lambda uid: None if uid == "a" else Rank(True, 0, False, None))
    assert list(queue) == ["b"]


# ---------------------------------------------------------------- actuation


@pytest.mark.parametrize(
    ("milli", "shares"),
    [(0, 2), (1, 2), (2, 2), (20, 20), (100, 102), (250, 256), (1000, 1024), (256_000, 262_144), (300_000, 262_144)],
)
def test_shares_of_requests(milli: int, shares: int) -> None:
    assert actuation.shares_of(milli) == shares


@pytest.mark.parametrize(("milli", "quota"), [(0, 0), (5, 1000), (10, 1000), (20, 2000), (1000, 100_000)])
def test_quotas_of_limits(milli: int, quota: int) -> None:
    assert actuation.quota_of(milli) == quota


@given(st.integers(2, 256_000))
@settings(deadline=None)
def test_a_request_survives_its_way_through_shares(milli: int) -> None:
    assert actuation.request_of(actuation.shares_of(milli)) == milli


@given(st.integers(10, 512_000))
@settings(deadline=None)
def test_a_limit_survives_its_way_through_the_quota(milli: int) -> None:
    assert actuation.limit_of(LinuxResources(cpu_quota=actuation.quota_of(milli), cpu_period=100_000)) == milli


def a_sandbox(pod: Pod, config: PodConfig) -> SandboxState:
    names = [c.name for c in [*pod.spec.init_containers, *pod.spec.containers]]
    states = tuple(ContainerState(f"s_{n}_0", "s", n, 0, "i", "running", LinuxResources()) for n in names)
    return SandboxState("s", "u", "p", "ns", True, 0, config.linux(), states)


def plan_of(old: Pod, new: Pod, *, notify_first: bool = False) -> actuation.Plan:
    config = actuation.pod_config(old)
    return actuation.plan(new, desired(old, CONFIG), a_sandbox(old, config), config, notify_first=notify_first)


def shapes(made: actuation.Plan) -> list[Any]:
    found: list[Any] = []
    for operation in made.operations:
        match operation:
            case WritePod():
                part = "limit" if operation.resources.cpu_quota or operation.resources.memory_limit_bytes else "request"
                found.append((f"pod {part} {'up' if operation.grows else 'down'}", operation.resource))
            case UpdateContainer():
                found.append((operation.name, operation.resource))
            case NotifySandbox():
                found.append(("told", operation.resource))
    return found


def full(name: str, cpu: int, memory: int) -> dict[str, Any]:
    amounts = {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}
    return a_container(name, amounts["cpu"], amounts["memory"], amounts)


def test_decreases_come_first_from_the_last_container_and_the_pod_shrinks_last() -> None:
    old = a_pod(full("x", 100, 100), full("y", 100, 100), full("z", 100, 100))
    new = a_pod(full("x", 50, 100), full("y", 200, 100), full("z", 40, 100))
    assert [name for name, _ in shapes(plan_of(old, new)) if name != "told"] == [
        "z",
        "x",
        "y",
        "pod request down",
        "pod limit down",
    ]


def test_memory_is_done_before_cpu_and_a_container_that_needs_both_is_told_twice() -> None:
    old, new = a_pod(full("x", 100, 100)), a_pod(full("x", 200, 200))
    made = plan_of(old, new)
    assert shapes(made) == [
        ("pod limit up", "memory"),
        ("told", "memory"),
        ("x", "memory"),
        ("pod limit up", "cpu"),
        ("told", "cpu"),
        ("pod request up", "cpu"),
        ("told", "cpu"),
        ("x", "cpu"),
    ]
    updates = [o for o in made.operations if isinstance(o, UpdateContainer)]
    assert [(o.amounts.cpu_limit, o.amounts.memory_limit // MIB) for o in updates] == [(100, 200), (200, 200)]
    assert [o.labels for o in updates] == [("K13.1", "K14.1"), ("K13.2", "K14.2")]


def test_init_containers_are_visited_from_the_last() -> None:
    inits = [{**full("i", 10, 10), "restartPolicy": "Always"}, {**full("j", 10, 10), "restartPolicy": "Always"}]
    grown = [{**full("i", 20, 10), "restartPolicy": "Always"}, {**full("j", 20, 10), "restartPolicy": "Always"}]
    old, new = a_pod(full("x", 10, 10), initContainers=inits), a_pod(full("x", 20, 10), initContainers=grown)
    assert [name for name, _ in shapes(plan_of(old, new)) if name in ("i", "j", "x")] == ["j", "i", "x"]


def test_the_runtime_is_told_of_the_pod_first_where_that_may_block() -> None:
    old, new = a_pod(full("x", 100, 100)), a_pod(full("x", 200, 100))
    made = plan_of(old, new, notify_first=True)
    assert [name for name, _ in shapes(made)] == ["told", "pod limit up", "told", "pod request up", "x"]
    told = [(o.resources.cpu_quota, o.resources.cpu_shares) for o in made.operations if isinstance(o, NotifySandbox)]
    assert told == [(20_000, 102), (20_000, 204)]
    undo = [o.undo for o in made.operations if isinstance(o, WritePod)]
    assert [(u.cpu_quota, u.cpu_shares) for u in undo if u is not None] == [(10_000, 102), (20_000, 102)]


def test_a_limit_and_a_request_that_move_apart_are_written_each_in_its_own_turn() -> None:
    old = a_pod(a_container("x", "200m", limits={"cpu": "300m"}))
    new = a_pod(a_container("x", "100m", limits={"cpu": "400m"}))
    assert [name for name, _ in shapes(plan_of(old, new)) if name != "told"] == ["pod limit up", "x", "pod request down"]


LEVELS = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2"}}


def test_the_pods_own_amounts_are_in_force_resource_by_resource() -> None:
    """A resize that fails at cpu has done with memory (RC-186)."""
    old = a_pod(a_container("x"), resources={"requests": {"cpu": "500m", "memory": "512Mi"}})
    new = a_pod(a_container("x"), resources=LEVELS)
    recorded = old.spec.resources
    for operation in plan_of(old, new).operations:
        if isinstance(operation, actuation.RecordLevel):
            recorded = operation.after(recorded)
            if operation.resource == "memory":
                assert msgspec.to_builtins(recorded) == {
                    "requests": {"cpu": "500m", "memory": "1Gi"},
                    "limits": {"memory": "0"},  # as upstream writes where the pod says something of another resource
                }
    assert msgspec.to_builtins(recorded) == {"requests": LEVELS["requests"], "limits": {"cpu": "2", "memory": "0"}}
    sandbox = a_sandbox(new, actuation.pod_config(new))
    layer = PodResources(containers=desired(new, CONFIG).containers, level=recorded)
    assert not actuation.in_progress(new, layer, sandbox), "an explicit zero is no difference"


def test_containers_that_restart_are_not_updated() -> None:
    restarting = {**full("x", 100, 100), "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]}
    old = a_pod(restarting, full("y", 100, 100))
    new = a_pod({**restarting, "resources": full("x", 200, 100)["resources"]}, full("y", 200, 100))
    assert [name for name, _ in shapes(plan_of(old, new)) if name != "told"] == ["pod limit up", "pod request up", "y"]
    config = actuation.pod_config(old)
    assert actuation.to_restart(new, desired(old, CONFIG), a_sandbox(old, config)) == ("x",)


@pytest.mark.parametrize(
    ("old", "new", "usage", "error"),
    [
        (full("x", 10, 200), full("x", 10, 100), {"x": 150}, "both"),
        (full("x", 10, 200), full("x", 10, 100), {"x": 100}, "both"),
        (full("x", 10, 200), full("x", 10, 100), {"x": 99}, ""),
        (full("x", 10, 100), full("x", 10, 200), {"x": 500}, None),
        (
            a_container("x", memory="10Mi"),
            a_container("x", memory="10Mi", limits={"memory": "20Mi"}),
            {"x": 30},
            'attempting to set container "x" memory limit (20971520) below current usage (31457280)',
        ),
        (
            a_container("x", memory="10Mi"),
            a_container("x", memory="10Mi", limits={"memory": "20Mi"}),
            {},
            'missing container "x" memory usage',
        ),
    ],
)
def test_memory_is_never_taken_below_what_is_used(old: Any, new: Any, usage: dict[str, int], error: str | None) -> None:
    made = plan_of(a_pod(old), a_pod(new))
    if error is None:
        assert made.check is None
        return
    assert made.check is not None
    total = sum(usage.values()) * MIB
    stats = PodStats(total, tuple(ContainerStats(name, used * MIB, 0) for name, used in usage.items()))
    if error == "both":
        error = (
            f"[attempting to set pod memory limit (104857600) below current usage ({total}), "
            f'attempting to set container "x" memory limit (104857600) below current usage ({total})]'
        )
    assert made.check.error(stats) == (error and f"cannot decrease memory limits: {error}")


def test_a_container_without_a_limit_has_its_pods() -> None:
    level = {"requests": {"cpu": "500m"}, "limits": {"cpu": "1", "memory": "1Gi"}}
    pod = a_pod(a_container("x"), full("y", 100, 100), resources=level)
    wanted = [actuation.amounts(c.resources, pod.spec.resources).linux() for c in pod.spec.containers]
    assert [(r.cpu_shares, r.cpu_quota, r.memory_limit_bytes // MIB) for r in wanted] == [(2, 100_000, 1024), (102, 10_000, 100)]
    assert actuation.pod_config(pod) == PodConfig(512, 100_000, 1 << 30)


@pytest.mark.parametrize(
    ("pod", "config"),
    [
        (a_pod(a_container()), PodConfig(2)),
        (a_pod(a_container(cpu="1")), PodConfig(1024)),
        (a_pod(full("x", 100, 100), a_container("y", cpu="100m")), PodConfig(204)),
        (a_pod(full("x", 100, 100), full("y", 100, 100)), PodConfig(204, 20_000, 200 * MIB)),
        (a_pod(full("x", 100, 100), initContainers=[a_container("i")]), PodConfig(102)),
    ],
)
def test_the_pods_cgroup_is_limited_only_where_all_containers_are(pod: Pod, config: PodConfig) -> None:
    assert actuation.pod_config(pod) == config


amounts = st.tuples(st.integers(1, 40).map(lambda n: 10 * n), st.integers(1, 40).map(lambda n: 8 * n))
specs = st.lists(amounts, min_size=1, max_size=4)


@given(specs, st.data())
@settings(max_examples=200, deadline=None)
def test_a_plan_ends_at_the_allocation_and_never_lets_a_limit_pass_the_pods(before: list[Any], data: st.DataObject) -> None:
    after = data.draw(st.lists(amounts, min_size=len(before), max_size=len(before)))
    old = a_pod(*(full(f"c{at}", *size) for at, size in enumerate(before)))
    new = a_pod(*(full(f"c{at}", *size) for at, size in enumerate(after)))
    made = plan_of(old, new)
    held = {f"c{at}": actuation.amounts(c.resources, None) for at, c in enumerate(old.spec.containers)}
    pod = actuation.pod_config(old)
    for operation in made.operations:
        match operation:
            case WritePod():
                pod = operation.after
            case UpdateContainer():
                held[operation.name] = operation.amounts
        assert pod.memory is not None and sum(a.memory_limit for a in held.values()) <= pod.memory
        assert pod.quota is not None and sum(actuation.quota_of(a.cpu_limit) for a in held.values()) <= pod.quota
    assert held == {c.name: actuation.amounts(c.resources, None) for c in new.spec.containers}
    assert pod == actuation.pod_config(new)
    updated = [(o.name, o.resource) for o in made.operations if isinstance(o, UpdateContainer)]
    assert len(updated) == len(set(updated))


@given(specs, st.data())
@settings(max_examples=200, deadline=None)
def test_wherever_a_plan_is_broken_off_a_new_one_goes_on_to_the_same_end(before: list[Any], data: st.DataObject) -> None:
    middle, after = (data.draw(st.lists(amounts, min_size=len(before), max_size=len(before))) for _ in range(2))
    old, between, new = (a_pod(*(full(f"c{at}", *size) for at, size in enumerate(sizes))) for sizes in (before, middle, after))
    config, layer = actuation.pod_config(old), desired(old, CONFIG)

    def carry_out(pod: Pod, limit: int | None) -> None:
        nonlocal config, layer
        made = actuation.plan(pod, layer, a_sandbox(pod, config), config, notify_first=False)
        for operation in made.operations[:limit]:
            match operation:
                case WritePod():
                    config = operation.after
                case UpdateContainer():
                    layer = PodResources(containers={**(layer.containers or {}), operation.name: operation.amounts.record()})

    carry_out(between, data.draw(st.integers(0, 12)))
    carry_out(new, None)
    assert config == actuation.pod_config(new) and not actuation.in_progress(new, layer, a_sandbox(new, config))
    assert actuation.plan(new, layer, a_sandbox(new, config), config, notify_first=False) == actuation.Plan()


# ---------------------------------------------------------------- lifecycle

NOW = Instant(100 * 10**9)


def a_state(name: str, state: str, attempt: int = 0, code: int = 0, image: str = "i") -> ContainerState:
    return ContainerState(
        f"s_{name}_{attempt}", "s", name, attempt, image, state, LinuxResources(), exit_code=code, finished_at=NOW
    )


def situated(pod: Pod, *states: ContainerState, ready: bool = True, sandbox: bool = True, **more: Any) -> Situation:
    made = SandboxState("s", "u", "p", "ns", ready, 0, LinuxResources(), states) if sandbox else None
    return Situation(NOW, pod, made, **more)


INIT = a_pod(a_container("x"), initContainers=[a_container("i"), a_container("s", restartPolicy="Always")])
PLAIN = a_pod(a_container("x"), a_container("y"))
NEVER = a_pod(a_container("x"), restartPolicy="Never")


@pytest.mark.parametrize(
    ("situation", "expected"),
    [
        (situated(PLAIN, sandbox=False), "RunSandbox"),
        (situated(PLAIN, sandbox=False, held=True), "Wait"),
        (situated(PLAIN), "Start x/0"),
        (situated(PLAIN, a_state("x", "created")), "Start x/0 created"),
        (situated(PLAIN, a_state("x", "running")), "Start y/0"),
        (situated(PLAIN, a_state("x", "running"), a_state("y", "running")), "Wait"),
        (situated(PLAIN, a_state("x", "running"), a_state("y", "running"), resize=True), "Resize"),
        (situated(PLAIN, a_state("x", "running"), resize=True), "Resize"),
        (situated(PLAIN, a_state("x", "exited"), a_state("y", "running")), "Start x/1"),
        (situated(PLAIN, a_state("x", "exited"), a_state("y", "running"), not_before={"x": Instant(NOW + 5)}), "Wait 5"),
        (situated(PLAIN, a_state("x", "running", image="old"), a_state("y", "running")), "Stop x"),
        (situated(PLAIN, a_state("x", "running"), a_state("y", "running"), restarts=("y",)), "Stop y"),
        (
            situated(
                PLAIN, a_state("x", "running"), a_state("y", "running"), restarts=("y",), stopping={"s_y_0": NOW}, resize=True
            ),
            "Wait",
        ),
        (situated(PLAIN, a_state("x", "running"), ready=False), "RunSandbox"),
        (situated(PLAIN, started_before={"x": 4}), "Start x/5"),
        (situated(INIT), "Start i/0"),
        (situated(INIT, a_state("i", "running")), "Wait"),
        (situated(INIT, a_state("i", "running"), resize=True), "Resize"),
        (situated(INIT, a_state("i", "exited", code=1)), "Start i/1"),
        (situated(INIT, a_state("i", "exited")), "Start s/0"),
        (situated(INIT, a_state("i", "exited"), a_state("s", "running")), "Start x/0"),
        (situated(INIT, a_state("i", "exited"), a_state("s", "exited"), a_state("x", "running")), "Start s/1"),
        (situated(NEVER, a_state("x", "exited", code=1)), "StopSandbox"),
        (situated(NEVER, a_state("x", "exited"), ready=False), "Ended"),
        (situated(NEVER, a_state("x", "running"), ready=True), "Wait"),
    ],
)
def test_the_next_step_of_a_pod(situation: Situation, expected: str) -> None:
    found = lifecycle.next_action(situation)
    match found:
        case StartContainer(container, attempt, created):
            told = f"Start {container.name}/{attempt}" + (" created" if created else "")
        case StopContainer(state, _):
            told = f"Stop {state.name}"
        case Wait(until) if until is not None:
            told = f"Wait {until - NOW}"
        case _:
            told = type(found).__name__
    assert told == expected


def test_a_pod_that_ends_stops_its_containers_then_its_sidecars_then_its_sandbox() -> None:
    pod = a_pod(
        a_container("x"),
        a_container("y"),
        initContainers=[a_container("s", restartPolicy="Always"), a_container("t", restartPolicy="Always")],
    )
    states = {name: "running" for name in ("x", "y", "s", "t")}
    stopping: dict[str, Instant] = {}
    order = []
    for _ in range(20):
        found = lifecycle.next_end(
            situated(pod, *(a_state(n, s) for n, s in states.items()), stopping=dict(stopping)), "Stopping {}"
        )
        if isinstance(found, StopContainer):
            order.append(found.state.name)
            stopping[found.state.container] = NOW
        elif isinstance(found, Wait):
            for container in list(stopping):
                states[container.split("_")[1]] = "exited"
            stopping.clear()
        else:
            break
    assert isinstance(found, StopSandbox) and order == ["x", "y", "t", "s"]
    assert isinstance(lifecycle.next_end(situated(pod, sandbox=False), ""), Ended)
    assert isinstance(lifecycle.next_action(situated(pod, sandbox=False)), RunSandbox)


def test_crash_back_off_doubles_from_10_to_300_seconds_and_another_size_starts_afresh() -> None:
    entry, waits, now = None, [], NOW
    for _ in range(7):
        entry = lifecycle.counted(entry, "k", now)
        waits.append(entry.wait_ns // 10**9)
        now = Instant(now + entry.wait_ns)
    assert waits == [10, 20, 40, 80, 160, 300, 300]
    assert lifecycle.delay_until(entry, "other", a_state("x", "exited")) is None
    assert lifecycle.counted(entry, "other", now).wait_ns == seconds(10)
    assert entry is not None and lifecycle.counted(entry, "k", Instant(entry.counted_at + seconds(601))).wait_ns == seconds(10)


# ---------------------------------------------------------------- status


def shown(pod: Pod, sandbox: SandboxState | None = None, previous: Any = None, **more: Any) -> Shown:
    layers = more.pop("actuated", desired(pod, CONFIG))
    return Shown(NOW, pod, pod, layers, sandbox, previous or {}, NOW, **more)


def running(name: str, resources: LinuxResources) -> SandboxState:
    state = ContainerState(f"s_{name}_0", "s", name, 0, "i", "running", resources, started_at=NOW)
    return SandboxState("s", "u", "p", "ns", True, 0, LinuxResources(), (state,))


@pytest.mark.parametrize(
    ("allocated", "runtime", "expected"),
    [
        (
            {"requests": {"cpu": "1m"}, "limits": {"cpu": "5m"}},
            LinuxResources(2, 1000, 100_000),
            {"requests": {"cpu": "1m"}, "limits": {"cpu": "5m"}},
        ),
        (
            {"requests": {"cpu": "500m"}, "limits": {"cpu": "1"}},
            LinuxResources(204, 20_000, 100_000),
            {"requests": {"cpu": "200m"}, "limits": {"cpu": "200m"}},
        ),
        ({"limits": {"memory": "1Gi"}}, LinuxResources(2, memory_limit_bytes=512 * MIB), {"limits": {"memory": "512Mi"}}),
        ({"requests": {"cpu": "300"}}, LinuxResources(262_144), {"requests": {"cpu": "256"}}),
        ({"requests": {"memory": "1Gi"}}, LinuxResources(2), {"requests": {"memory": "1Gi"}}),
        ({}, LinuxResources(2), {}),
        (
            {"requests": {"cpu": "1", "nvidia.com/gpu": "1"}},
            LinuxResources(1024),
            {"requests": {"cpu": "1", "nvidia.com/gpu": "1"}},
        ),
    ],
)
def test_actual_resources_are_the_allocation_overlaid_by_the_runtime(
    allocated: Any, runtime: LinuxResources, expected: Any
) -> None:
    pod = a_pod({"name": "c", "image": "i", "resources": allocated})
    assert document(shown(pod, running("c", runtime)))["containerStatuses"][0]["resources"] == expected


def test_a_memory_request_is_shown_as_it_was_actuated() -> None:
    pod = a_pod(a_container(memory="2Gi"))
    layers = PodResources(containers={"c": ResourceRequirements(requests={"memory": "1Gi"})})
    doc = document(shown(pod, running("c", LinuxResources(2)), actuated=layers))
    assert doc["containerStatuses"][0]["resources"]["requests"]["memory"] == "1Gi"
    assert doc["containerStatuses"][0]["allocatedResources"]["memory"] == "2Gi"


def test_a_value_that_the_runtime_does_not_tell_stays_as_it_was_told() -> None:
    pod = a_pod(a_container(limits={"memory": "2Gi"}))
    told = {"name": "c", "containerID": "elbowroom://s_c_0", "state": {"running": {}}, "resources": {"limits": {"memory": "1Gi"}}}
    doc = document(shown(pod, running("c", LinuxResources(2)), {"containerStatuses": [told]}))
    assert doc["containerStatuses"][0]["resources"]["limits"]["memory"] == "1Gi"
    other = {**told, "containerID": "elbowroom://s_c_9"}
    doc = document(shown(pod, running("c", LinuxResources(2)), {"containerStatuses": [other]}))
    assert doc["containerStatuses"][0]["resources"]["limits"]["memory"] == "2Gi"


def test_a_container_that_never_ran_has_no_resources_in_its_status() -> None:
    doc = document(shown(a_pod(a_container(cpu="1"))))
    found = doc["containerStatuses"][0]
    assert found["state"] == {"waiting": {"reason": "ContainerCreating"}} and "resources" not in found
    assert doc["phase"] == "Pending" and doc["resources"] == {"requests": {"cpu": "1"}}


@pytest.mark.parametrize(
    ("policy", "states", "over", "phase"),
    [
        ("Always", [a_state("x", "exited", code=1), a_state("y", "running")], False, "Running"),
        ("Always", [a_state("x", "exited", code=1), a_state("y", "exited")], False, "Running"),
        ("Never", [a_state("x", "exited"), a_state("y", "exited")], True, "Succeeded"),
        ("Never", [a_state("x", "exited", code=1), a_state("y", "exited")], True, "Failed"),
        ("Always", [a_state("x", "running")], False, "Pending"),
        ("Always", [a_state("x", "exited")], True, "Failed"),
    ],
)
def test_the_phase_of_a_pod(policy: str, states: list[ContainerState], over: bool, phase: str) -> None:
    pod = a_pod(a_container("x"), a_container("y"), restartPolicy=policy)
    sandbox = SandboxState("s", "u", "p", "ns", True, 0, LinuxResources(), tuple(states))
    assert document(shown(pod, sandbox, over=over))["phase"] == phase


def test_conditions_keep_their_transition_time_while_their_status_stays() -> None:
    pod = a_pod(a_container())
    before = {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z"}]}
    doc = document(shown(pod, running("c", LinuxResources(2)), before))
    by_type = {c["type"]: c for c in doc["conditions"]}
    assert by_type["Ready"]["lastTransitionTime"] == "2020-01-01T00:00:00Z"
    assert by_type["ContainersReady"]["lastTransitionTime"] == "1970-01-01T00:01:40Z"


OWNED = owned_types(preemption_disabled=True, evicted=False)


def test_timestamps_alone_are_no_difference() -> None:
    pod = a_pod(a_container())
    doc = document(shown(pod, running("c", LinuxResources(2))))
    later = {**doc, "conditions": [{**c, "lastTransitionTime": "2030-01-01T00:00:00Z"} for c in doc["conditions"]]}
    assert not differs(later, doc, OWNED)
    assert differs({**doc, "observedGeneration": 9}, doc, OWNED)


def test_a_patch_removes_the_kubelets_conditions_and_keeps_others() -> None:
    known = {
        "phase": "Running",
        "reason": "Odd",
        "conditions": [
            {"type": "example.com/x", "status": "True"},
            {"type": "PodResizePending", "status": "True", "reason": "Deferred"},
            {"type": "Ready", "status": "False", "reason": "ContainersNotReady"},
        ],
    }
    wanted = {"phase": "Running", "reason": None, "conditions": [{"type": "Ready", "status": "True"}]}
    assert patch("u", wanted, known, OWNED) == {
        "metadata": {"uid": "u"},
        "status": {
            "reason": None,
            "conditions": [{"type": "Ready", "status": "True", "reason": None}, {"$patch": "delete", "type": "PodResizePending"}],
            "$setElementOrder/conditions": [{"type": "example.com/x"}, {"type": "Ready"}],
        },
    }
