"""Memory by NUMA node, the shares of a pod's own CPUs and memory, and the files that remember them."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from elbowroom.api.objects import Pod
from elbowroom.kubelet.managers import partition
from elbowroom.kubelet.managers.cpuset import CPUSet
from elbowroom.kubelet.managers.hints import Hint
from elbowroom.kubelet.managers.manager import Managers
from elbowroom.kubelet.managers.memory import (
    Block,
    MemoryState,
    NodeMemory,
    NoMemory,
    Placed,
    StaticMemory,
    Table,
    decode,
    encode,
)
from elbowroom.kubelet.managers.settings import Settings
from elbowroom.kubelet.managers.state import StateError
from elbowroom.kubelet.managers.static import StaticPolicy, guaranteed_cpus, pod_guaranteed_cpus
from elbowroom.kubelet.managers.topology import Topology
from elbowroom.machine import Note

TWO = StaticMemory({0: {"memory": (10, 2)}, 1: {"memory": (10, 0)}})
FOUR = StaticMemory({node: {"memory": (10, 1), "hugepages-2Mi": (8, 0)} for node in range(4)})
ANYWHERE = Hint(None, False)


def placed(policy: StaticMemory, state: MemoryState, uid: str, size: int, hint: Hint = ANYWHERE) -> MemoryState:
    decided = policy.allocate(state, uid, "c", {"memory": size}, hint, {}, init=())
    assert isinstance(decided, Placed), decided
    return decided.state


def free(state: MemoryState) -> list[int]:
    return [node.memory_map["memory"].free for node in state.machine.values()]


# ---------------------------------------------------------------- giving


def test_memory_comes_from_the_narrowest_place_that_could_hold_it() -> None:
    state = placed(TWO, TWO.initial, "a", 8)
    assert free(state) == [0, 10]
    assert free(placed(TWO, state, "b", 10)) == [0, 0]


def test_a_group_gives_what_one_node_cannot() -> None:
    state = placed(TWO, TWO.initial, "a", 12)
    assert free(state) == [0, 6]
    assert [node.cells for node in state.machine.values()] == [(0, 1), (0, 1)]
    assert TWO.hints(state, {"memory": 5}) == {"memory": [Hint(0b11, False)]}, "a node of a group in use is not used alone"
    assert TWO.hints(state, {"memory": 7}) is None
    assert placed(TWO, TWO.released(state, "a", "c"), "b", 8).machine[0].cells == (0,)


@pytest.mark.parametrize(
    ("size", "hint", "words"),
    [
        (19, ANYWHERE, "failed to get the default NUMA affinity, no NUMA nodes with enough memory is available"),
        (12, ANYWHERE, "failed to get the default NUMA affinity, no NUMA nodes with enough memory is available"),
        (12, Hint(0b01, True), "failed to find NUMA nodes to extend the current topology hint"),
        (1, Hint(0b11, True), "preferred hint violates NUMA node allocation"),
    ],
)
def test_what_cannot_be_given_is_refused_in_upstreams_words(size: int, hint: Hint, words: str) -> None:
    state = placed(TWO, TWO.initial, "a", 1, Hint(0b01, True))
    decided = TWO.allocate(state, "b", "c", {"memory": size}, hint, {}, init=())
    assert decided == NoMemory(f"[memorymanager] {words}")


def test_a_hint_that_is_too_small_is_extended() -> None:
    assert free(placed(TWO, TWO.initial, "a", 12, Hint(0b01, False))) == [0, 6]
    decided = TWO.allocate(
        placed(TWO, TWO.initial, "a", 4, Hint(0b10, True)), "b", "c", {"memory": 9}, Hint(0b10, True), {}, init=()
    )
    assert decided == NoMemory("[memorymanager] failed to find NUMA nodes to extend the current topology hint")


def test_hints_go_by_what_could_ever_be_there() -> None:
    assert TWO.hints(TWO.initial, {"memory": 9}) == {"memory": [Hint(0b10, True), Hint(0b11, False)]}
    assert TWO.hints(TWO.initial, {"memory": 11}) == {"memory": [Hint(0b11, True)]}
    assert TWO.hints(placed(TWO, TWO.initial, "a", 8, Hint(0b10, True)), {"memory": 9}) is None
    assert FOUR.hints(FOUR.initial, {"memory": 1, "hugepages-2Mi": 9}) == {
        name: [Hint(mask, mask.bit_count() == 2) for mask in (3, 5, 9, 6, 10, 12, 7, 11, 13, 14, 15)]
        for name in ("hugepages-2Mi", "memory")
    }


def test_what_is_there_in_another_size_has_no_preference() -> None:
    blocks = (Block((1,), "memory", 5),)
    assert TWO.regenerated(blocks, {"memory": 5}) == {"memory": [Hint(0b10, True)]}
    assert TWO.regenerated(blocks, {"memory": 6}) is None
    assert TWO.regenerated(blocks, {"memory": 5, "hugepages-2Mi": 2}) is None


def test_an_app_container_takes_over_what_an_init_container_leaves() -> None:
    first = TWO.allocate(TWO.initial, "a", "i", {"memory": 6}, ANYWHERE, {}, init=None)
    assert isinstance(first, Placed)
    second = TWO.allocate(first.state, "a", "c", {"memory": 4}, ANYWHERE, first.reusable, init=("i",))
    assert isinstance(second, Placed)
    assert free(second.state) == [2, 10]
    assert second.state.of("a", "i") == (Block((0,), "memory", 2),)
    third = TWO.allocate(second.state, "a", "d", {"memory": 3}, ANYWHERE, second.reusable, init=("i",))
    assert isinstance(third, Placed)
    assert free(third.state) == [1, 10]
    state = third.state
    for container in ("i", "c", "d"):
        state = TWO.released(state, "a", container)
    assert state == TWO.initial


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 25), st.booleans()), max_size=25), st.sampled_from([TWO, FOUR]))
@settings(deadline=None)
def test_no_byte_is_lost_or_given_twice(moves: list[tuple[str, int, bool]], policy: StaticMemory) -> None:
    state = policy.initial
    for uid, size, gives in moves:
        if gives:
            decided = policy.allocate(state, uid, "c", {"memory": size}, ANYWHERE, {}, init=())
            state = decided.state if isinstance(decided, Placed) else state
        else:
            state = policy.released(state, uid, "c")
        held = sum(block.size for entry in state.entries.values() for blocks in entry.values() for block in blocks)
        assert sum(node.memory_map["memory"].reserved for node in state.machine.values()) == held
        for node in state.machine.values():
            table = node.memory_map["memory"]
            assert table.free + table.reserved == table.allocatable
            assert table.free >= 0
        assert policy.checked(decode(encode(state, "Static"), "Static")) == state
    for uid in list(state.entries):
        state = policy.released(state, uid, "c")
    assert state == policy.initial


# ---------------------------------------------------------------- the file

TABLE = Table(2048, 512, 1536, 512, 1024)
KNOWN = MemoryState({0: NodeMemory(0, {"memory": TABLE}, ())}, {"pod": {"container1": (Block((0,), "memory", 512),)}})
RAW = (
    b'{"policyName":"static","machineState":{"0":{"numberOfAssignments":0,"memoryMap":{"memory":{"total":2048,"systemReserved":512,'
    b'"allocatable":1536,"reserved":512,"free":1024}},"cells":[]}},"entries":{"pod":{"container1":[{"numaAffinity":[0],'
    b'"type":"memory","size":512}]}},'
)


def test_the_file_is_upstreams_to_the_checksum() -> None:
    assert encode(KNOWN, "static") == RAW + b'"checksum":4215593881}'
    assert decode(RAW + b'"checksum":4215593881}', "static") == KNOWN
    assert encode(MemoryState(), "None") == b'{"policyName":"None","machineState":{},"checksum":4236770233}'


def test_the_pods_entries_are_in_the_file_and_in_its_checksum() -> None:
    state = MemoryState(KNOWN.machine, KNOWN.entries, {"pod": (Block((0,), "memory", 512),)})
    raw = encode(state, "static")
    assert raw.endswith(
        b'"podEntries":{"pod":{"memoryBlocks":[{"numaAffinity":[0],"type":"memory","size":512}]}},"checksum":1278640530}'
    )
    assert decode(raw, "static") == state


@pytest.mark.parametrize(
    ("raw", "policy", "why"),
    [
        (RAW + b'"checksum":101010}', "static", "checkpoint is corrupted"),
        (RAW + b'"checksum":4215593881}', "None", 'configured policy "None" differs from state checkpoint policy "static"'),
        (b"{", "static", "Input data was truncated"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(raw: bytes, policy: str, why: str) -> None:
    with pytest.raises(StateError) as refused:
        decode(raw, policy)
    assert refused.value.why == why


@pytest.mark.parametrize(
    ("state", "why"),
    [
        (MemoryState({}, KNOWN.entries), "machine state can not be empty when it has memory assignments"),
        (KNOWN, "the expected machine state is different from the real one"),
        (
            MemoryState(TWO.initial.machine, {"p": {"c": (Block((7,), "memory", 1),)}}),
            "(pod: p, container: c) the memory assignment uses the NUMA that does not exist",
        ),
        (
            MemoryState(TWO.initial.machine, {"p": {"c": (Block((0,), "hugepages-1Gi", 1),)}}),
            "(pod: p, container: c) the memory assignment uses memory resource that does not exist",
        ),
    ],
)
def test_a_state_that_this_machine_cannot_have_is_refused(state: MemoryState, why: str) -> None:
    with pytest.raises(StateError) as refused:
        TWO.checked(state)
    assert refused.value.why == f"[memorymanager] {why}"


# ---------------------------------------------------------------- shares of a pod


def a_container(name: str, cpu: str = "", memory: str = "1Gi", *, sidecar: bool = False) -> dict[str, Any]:
    amounts = {"cpu": cpu, "memory": memory}
    made: dict[str, Any] = {"name": name, "resources": {"requests": amounts, "limits": amounts} if cpu else {}}
    return {**made, "restartPolicy": "Always"} if sidecar else made


def a_pod(
    level: str, *containers: dict[str, Any], init: tuple[dict[str, Any], ...] = (), memory: str = "8Gi", uid: str = "u"
) -> Pod:
    amounts = {"cpu": level, "memory": memory}
    spec: dict[str, Any] = {"containers": list(containers), "initContainers": list(init)}
    if level:
        spec["resources"] = {"requests": amounts, "limits": amounts}
    return msgspec.convert({"metadata": {"name": uid, "namespace": "ns", "uid": uid}, "spec": spec}, Pod)


T4 = StaticPolicy(Topology.regular(cores_per_numa=16), CPUSet.of(0))


def test_each_container_gets_its_part_in_the_order_of_the_spec() -> None:
    pod = a_pod(
        "8",
        a_container("a", "2"),
        a_container("b"),
        init=(
            a_container("i1", "6"),
            a_container("s1", "2", sidecar=True),
            a_container("i2"),
            a_container("s2", sidecar=True),
            a_container("i3", "5"),
        ),
    )
    parts = partition.cpu_parts(T4, pod, CPUSet.parse("1-8"))
    assert isinstance(parts, dict)
    assert {name: str(cpus) for name, cpus in parts.items()} == {
        "i1": "1-6",
        "s1": "1-2",
        "i2": "3-8",
        "s2": "5-8",
        "i3": "3-7",
        "a": "3-4",
        "b": "5-8",
    }
    assert partition.cpu_pool_error(pod) == ""


@pytest.mark.parametrize(
    ("pod", "words"),
    [
        (a_pod("4", a_container("a", "3"), a_container("b", "1"), a_container("c")), "leaving no cpus for shared containers"),
        (a_pod("4", a_container("a", "3"), a_container("b", "1")), ""),
        (a_pod("4", a_container("a", "2"), init=(a_container("s", "2", sidecar=True),)), ""),
        (
            a_pod("4", a_container("a", "1"), init=(a_container("s", "4", sidecar=True), a_container("i"))),
            "pod has shared init containers but no cpus available for them",
        ),
        (
            a_pod("4", a_container("a", "1"), init=(a_container("s", "2", sidecar=True), a_container("i", "3"))),
            "largest exclusive init container requests 3 cpus, but only 2 available",
        ),
        (a_pod("4", a_container("a", "4"), init=(a_container("s", sidecar=True),)), "leaving no cpus for shared containers"),
    ],
)
def test_a_shared_pool_must_not_be_empty(pod: Pod, words: str) -> None:
    assert words in partition.cpu_pool_error(pod)
    assert bool(partition.cpu_pool_error(pod)) == bool(words)


@pytest.mark.parametrize(
    ("pod", "words"),
    [
        (
            a_pod("4", a_container("a", "1", "8Gi"), a_container("b")),
            "sum of exclusive container memory requests equals pod budget",
        ),
        (a_pod("4", a_container("a", "1", "7Gi"), a_container("b")), ""),
        (
            a_pod("4", a_container("a", "1"), init=(a_container("s", "1", "8Gi", sidecar=True), a_container("i"))),
            "pod has shared init containers but no memory available for them",
        ),
    ],
)
def test_nor_must_what_is_shared_of_the_memory(pod: Pod, words: str) -> None:
    assert words in partition.memory_pool_error(pod)
    assert bool(partition.memory_pool_error(pod)) == bool(words)


def test_memory_is_shared_out_in_the_same_order() -> None:
    init = (a_container("s", "1", "2Gi", sidecar=True), a_container("i"))
    parts = partition.memory_parts(a_pod("4", a_container("a", "1", "3Gi"), a_container("b"), init=init))
    assert {name: sizes["memory"] >> 30 for name, sizes in parts.items()} == {"s": 2, "i": 6, "a": 3, "b": 3}


@given(
    st.integers(1, 12), st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["app", "init", "sidecar"])), min_size=1, max_size=6)
)
@settings(deadline=None)
def test_parts_lie_within_the_pods_set_and_those_that_run_together_are_disjoint(level: int, wanted: list[tuple[int, str]]) -> None:
    made = [
        (a_container(f"c{at}", str(cpu) if cpu else "", sidecar=kind == "sidecar"), kind) for at, (cpu, kind) in enumerate(wanted)
    ]
    apps = [container for container, kind in made if kind == "app"]
    pod = a_pod(str(level), *apps, init=tuple(container for container, kind in made if kind != "app"))
    if not apps or partition.cpu_pool_error(pod):
        return
    whole = CPUSet((1 << level) - 1 << 1)
    parts = partition.cpu_parts(T4, pod, whole)
    if not isinstance(parts, dict):
        return
    assert all(part <= whole for part in parts.values())
    own = [c for c in pod.spec.containers + [c for c in pod.spec.init_containers if c.is_sidecar]]
    exclusive = [parts[c.name] for c in own if guaranteed_cpus(pod, c, pod_level_managers=True)]
    shared = [parts[c.name] for c in own if not guaranteed_cpus(pod, c, pod_level_managers=True)]
    assert sum(len(part) for part in exclusive) == len(CPUSet(sum(part.bits for part in exclusive)))
    assert all(pool and not pool & part for pool in shared for part in exclusive)


@pytest.mark.parametrize(
    ("pod", "gate", "expected"),
    [
        (a_pod("4", a_container("a")), True, 4),
        (a_pod("2500m", a_container("a")), True, 0),
        (a_pod("", a_container("a", "2"), init=(a_container("i", "3"), a_container("s", "1", sidecar=True))), True, 3),
        (a_pod("", a_container("a", "2"), init=(a_container("s", "2", sidecar=True), a_container("i", "3"))), True, 5),
        (a_pod("", a_container("a", "1500m")), True, 0),
        (a_pod("4", a_container("a", "2"), a_container("b")), False, 2),
    ],
)
def test_a_pods_budget_is_its_own_request_or_what_its_containers_need_at_once(pod: Pod, gate: bool, expected: int) -> None:
    assert pod_guaranteed_cpus(pod, pod_level_managers=gate) == expected


# ---------------------------------------------------------------- all together


def managers(policy: str = "restricted", scope: str = "pod", *, pod_level: bool = True) -> Managers:
    topology = Topology.regular(sockets=2, cores_per_numa=4, threads_per_core=2)
    settings = Settings(topology, StaticPolicy(topology, CPUSet.of(0, 8)), {0: {"memory": 1 << 30}}, policy, scope, pod_level)
    return Managers.loaded(settings, {"cpu": 16_000, "memory": 32 << 30}, {}, CollectorRegistry())


def test_a_refusal_leaves_everything_as_it_was() -> None:
    made = managers()
    before = (made.cpus, made.memory)
    refused = made.admit(a_pod("", a_container("a", "2", "4Gi"), a_container("b", "40", "1Gi")))
    assert refused is not None and refused.reason == "TopologyAffinityError"
    assert (made.cpus, made.memory) == before


@pytest.mark.parametrize(
    ("policy", "objects"), [("restricted", True), ("single-numa-node", True), ("best-effort", False), ("none", False)]
)
def test_a_pods_set_of_another_size_is_an_objection_where_topology_counts(policy: str, objects: bool) -> None:
    made = managers(policy)
    assert made.admit(a_pod("4", a_container("a"))) is None
    before = made.cpus
    assert (made.objection(a_pod("6", a_container("a"))) is not None) == objects
    assert made.objection(a_pod("4", a_container("a"))) is None
    assert made.cpus == before


def test_a_pod_without_pod_level_resources_is_placed_on_one_hint_in_the_pod_scope() -> None:
    made = managers("single-numa-node")
    assert made.admit(a_pod("", a_container("a", "3", "1Gi"), a_container("b", "3", "1Gi"))) is None
    assert {name: str(cpus) for name, cpus in made.cpus.entries["u"].items()} == {"a": "1-2,9", "b": "3,10-11"}
    refused = made.admit(a_pod("", a_container("a", "3", "1Gi"), a_container("b", "6", "1Gi"), uid="v"))
    assert refused is not None and refused.message == "Resources cannot be allocated with Topology locality"


def test_releasing_gives_all_of_it_back() -> None:
    made = managers()
    before = (made.cpus, made.memory)
    for uid, level in (("a", "4"), ("b", "")):
        assert made.admit(a_pod(level, a_container("x", "2", "1Gi"), a_container("y", "1", "1Gi"), uid=uid)) is None
    assert made.mems("a", "x") == "0"
    made.keep_only(["b"])
    made.release("b")
    assert (made.cpus, made.memory) == before


def test_a_state_is_told_once_after_it_is_durable() -> None:
    made = managers()
    effects = made.save("loaded")
    assert [type(effect).__name__ for effect in effects] == ["Note", "Persist", "Note"] * 2 + ["Note"]
    last = effects[-1]
    assert isinstance(last, Note) and last.name == "kl.cpus"
    assert made.save("again") == []
