"""Which CPUs are taken, by whom, and what of it is remembered."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elbowroom.kubelet.managers.cpuset import NOBODY, CPUSet, CPUSetError
from elbowroom.kubelet.managers.hints import Hint, merge
from elbowroom.kubelet.managers.options import OptionError, StaticOptions, check_with_machine, static_options
from elbowroom.kubelet.managers.packing import Shortage, take_by_topology
from elbowroom.kubelet.managers.state import CPUState, StateError, decode, encode
from elbowroom.kubelet.managers.static import Granted, Refused, StaticPolicy, reserved_of
from elbowroom.kubelet.managers.topology import Place, Topology

T1 = Topology.regular(cores_per_numa=4, threads_per_core=2)
T2 = Topology.regular(sockets=2, cores_per_numa=4, threads_per_core=2)
T3 = Topology({cpu: Place(cpu // 2, cpu // 6, cpu // 6, cpu // 6) for cpu in range(12)})
T4 = Topology.regular(cores_per_numa=16)
TWO_NUMA_SOCKETS = Topology.regular(sockets=2, numa_nodes_per_socket=2, cores_per_numa=4, threads_per_core=2)
WIDE_NUMA = Topology({cpu: Place(cpu, 0, 0, cpu // 4) for cpu in range(8)})
"""Two sockets in one NUMA node."""
MACHINES = (T1, T2, T3, T4, TWO_NUMA_SOCKETS, WIDE_NUMA)


def cpus(text: str) -> CPUSet:
    return CPUSet.parse(text)


def taken(topology: Topology, reserved: str, count: int, options: StaticOptions | None = None, keep: str = "") -> str:
    found = take_by_topology(topology, topology.all - cpus(reserved), count, options, cpus(keep))
    assert isinstance(found, CPUSet), found
    return str(found)


# ---------------------------------------------------------------- sets


@given(st.sets(st.integers(0, 300)))
@settings(deadline=None)
def test_a_cpuset_survives_its_text(numbers: set[int]) -> None:
    made = CPUSet.from_iterable(numbers)
    assert CPUSet.parse(str(made)) == made
    assert list(made) == sorted(numbers)
    assert len(made) == len(numbers)


@pytest.mark.parametrize("text", ["a", "1-", "-1", "3-1", "1,,2", "1.3", "٣", "99999999"])
def test_a_text_that_is_no_list_of_cpus_is_refused(text: str) -> None:
    with pytest.raises(CPUSetError):
        CPUSet.parse(text)


# ---------------------------------------------------------------- packing


@pytest.mark.parametrize(
    ("topology", "reserved", "count", "expected"),
    [
        (T1, "0,4", 1, "1"),
        (T1, "0,4", 2, "1,5"),
        (T1, "0,4", 3, "1-2,5"),
        (T1, "0,4", 4, "1-2,5-6"),
        (T1, "0", 1, "4"),
        (T1, "0", 2, "1,5"),
        (T1, "0", 3, "1,4-5"),
        (T2, "0,8", 2, "1,9"),
        (T2, "0,8", 4, "1-2,9-10"),
        (T2, "0,8", 6, "1-3,9-11"),
        (T2, "0,8", 8, "4-7,12-15"),
        (T2, "0,8", 10, "1,4-7,9,12-15"),
        (T4, "0", 2, "1-2"),
        (T4, "0", 4, "1-4"),
        (WIDE_NUMA, "0", 4, "4-7"),
        (TWO_NUMA_SOCKETS, "0,16", 8, "4-7,20-23"),
        (TWO_NUMA_SOCKETS, "0,16", 16, "8-15,24-31"),
    ],
)
def test_whole_groups_come_first_and_of_each_kind_the_fullest(topology: Topology, reserved: str, count: int, expected: str) -> None:
    assert taken(topology, reserved, count) == expected


def test_a_request_above_what_is_free_says_how_much_there_is() -> None:
    assert take_by_topology(T1, cpus("1-3"), 4) == Shortage(
        "not enough cpus available to satisfy request: requested=4, available=3"
    )


@pytest.mark.parametrize(
    ("options", "count", "expected"),
    [
        ({"distribute-cpus-across-numa": "true"}, 10, "1-6,9-10,12-13"),
        ({"distribute-cpus-across-numa": "true"}, 4, "4-5,12-13"),
        ({"distribute-cpus-across-numa": "true", "full-pcpus-only": "true"}, 12, "1-6,9-14"),
        ({"distribute-cpus-across-cores": "true"}, 4, "1-3,9"),
        ({"distribute-cpus-across-cores": "true"}, 6, "1-3,9-11"),
    ],
)
def test_the_spreading_options_spread(options: dict[str, str], count: int, expected: str) -> None:
    gates = {"CPUManagerPolicyAlphaOptions": True, "CPUManagerPolicyBetaOptions": True}
    assert taken(T2, "0,8", count, static_options(options, gates)) == expected


EIGHTY = Topology.regular(sockets=2, numa_nodes_per_socket=2, cores_per_numa=10, threads_per_core=2)


@pytest.mark.parametrize(
    ("spread", "count", "expected"),
    [
        (False, 64, "0-31,40-71"),
        (True, 64, "0-7,10-17,20-27,30-37,40-47,50-57,60-67,70-77"),
        (True, 48, "0-7,10-17,20-27,40-47,50-57,60-67"),
        (True, 12, "0-5,40-45"),
        (True, 24, "0-5,10-15,40-45,50-55"),
    ],
)
def test_on_a_large_machine_packed_fills_nodes_and_distributed_shares_them(spread: bool, count: int, expected: str) -> None:
    found = take_by_topology(EIGHTY, EIGHTY.all, count, StaticOptions(distribute_cpus_across_numa=spread))
    assert str(found) == expected


@pytest.mark.parametrize(
    ("available", "count", "expected"),
    [("1-15", 10, "1-2,4-11"), ("0-15", 4, "0-3"), ("1-15", 3, "1-3"), ("2-3,5-7,8-15", 5, "2,8-11"), ("0-15", 16, "0-15")],
)
def test_caches_of_a_machine_without_threads(available: str, count: int, expected: str) -> None:
    machine = Topology.regular(cores_per_numa=16, cores_per_uncore=4)
    found = take_by_topology(machine, cpus(available), count, StaticOptions(prefer_align_cpus_by_uncorecache=True))
    assert str(found) == expected


def test_an_uncore_cache_is_taken_whole_or_the_need_stays_within_one() -> None:
    machine = Topology.regular(cores_per_numa=8, threads_per_core=2, cores_per_uncore=2)
    uncore = StaticOptions(prefer_align_cpus_by_uncorecache=True)
    assert taken(machine, "0,8", 4, uncore) == "2-3,10-11"
    assert taken(machine, "0,8", 2, uncore) == "1,9"
    assert taken(machine, "0,8", 6, uncore) == "1-3,9-11"
    assert taken(machine, "0,8", 3, uncore) == "2-3,10"


@pytest.mark.parametrize(
    ("topology", "reserved", "keep", "count", "expected"),
    [
        (T1, "0,4", "1", 2, "1,5"),
        (T1, "0,4", "2,6", 4, "1-2,5-6"),
        (T1, "0,4", "2", 3, "1-2,6"),
        (T2, "0,8", "1,9", 8, "1-4,9-12"),
        (T4, "0", "3-4", 4, "1-4"),
    ],
)
def test_what_is_kept_stays_and_its_groups_are_completed_first(
    topology: Topology, reserved: str, keep: str, count: int, expected: str
) -> None:
    assert taken(topology, reserved, count, keep=keep) == expected


@st.composite
def requests(draw: st.DrawFn) -> tuple[Topology, CPUSet, int, StaticOptions, CPUSet]:
    topology = draw(st.sampled_from(MACHINES))
    numbers = list(topology.all)
    free = CPUSet.from_iterable(draw(st.sets(st.sampled_from(numbers))))
    keep = CPUSet.from_iterable(draw(st.sets(st.sampled_from(numbers)))) - free
    count = draw(st.integers(len(keep), len(keep) + len(free) + 2))
    numa, cores, uncore = draw(st.sampled_from([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]))
    options = StaticOptions(
        full_pcpus_only=not cores and draw(st.booleans()),
        distribute_cpus_across_numa=bool(numa),
        distribute_cpus_across_cores=bool(cores),
        prefer_align_cpus_by_uncorecache=bool(uncore),
    )
    return topology, free, count, options, keep


@given(requests())
@settings(deadline=None)
def test_exactly_as_many_are_taken_and_only_what_is_kept_or_free(
    request: tuple[Topology, CPUSet, int, StaticOptions, CPUSet],
) -> None:
    topology, free, count, options, keep = request
    found = take_by_topology(topology, free, count, options, keep)
    if count > len(free) + len(keep):
        assert isinstance(found, Shortage)
        return
    assert isinstance(found, CPUSet)
    assert len(found) == count
    assert keep <= found
    assert found <= free | keep


@given(st.sampled_from(MACHINES), st.data())
@settings(deadline=None)
def test_whole_cores_are_taken_when_whole_cores_are_free(topology: Topology, data: st.DataObject) -> None:
    threads = topology.threads_per_core
    cores = data.draw(st.sets(st.sampled_from(list(topology.cores)), min_size=1))
    free = CPUSet(sum(topology.cores[core] for core in cores))
    count = threads * data.draw(st.integers(1, len(cores)))
    found = take_by_topology(topology, free, count)
    assert isinstance(found, CPUSet)
    assert topology.whole_cores(found) == found


# ---------------------------------------------------------------- the policy

Moves = list[tuple[str, int, int]]
MOVES = st.lists(st.tuples(st.sampled_from(["allocate", "release", "resize"]), st.integers(0, 5), st.integers(1, 9)), max_size=30)


@given(st.sampled_from(MACHINES), st.booleans(), MOVES, st.data())
@settings(deadline=None)
def test_sets_are_disjoint_nothing_is_lost_and_what_is_reserved_is_never_given(
    topology: Topology, strict: bool, moves: Moves, data: st.DataObject
) -> None:
    reserved = CPUSet.of(data.draw(st.sampled_from(list(topology.all))))
    policy = StaticPolicy(topology, reserved, StaticOptions(strict_cpu_reservation=strict))
    state, originals = policy.initial, dict[str, CPUSet]()
    for what, who, count in moves:
        uid = f"pod-{who}"
        before = state.of(uid, "c")
        if what == "allocate":
            decided: Granted | Refused = policy.allocate(state, uid, "c", count)
        elif what == "resize" and before is not None and count >= len(originals[uid]):
            decided = policy.resized(state, uid, "c", count, originals[uid])
            if isinstance(decided, Granted):
                assert originals[uid] <= decided.cpus
                assert before <= decided.cpus or decided.cpus <= before
        elif what == "release":
            decided = Granted(policy.released(state, uid, "c"), NOBODY)
        else:
            continue
        if isinstance(decided, Granted):
            state = decided.state
            if what == "allocate":
                originals.setdefault(uid, decided.cpus)
            elif what == "release":
                originals.pop(uid, None)
        given_away = [entry["c"] for entry in state.entries.values()]
        assert all(not one & other for one, other in itertools.combinations(given_away, 2))
        assert not state.assigned & (state.default | reserved)
        assert state.assigned | state.default == policy.initial.default
        restored = decode(encode(state, "static"), "static")
        assert restored == state
        assert not state.default or policy.checked(restored) == state


def test_strictly_reserved_and_all_given_away_is_a_state_that_upstream_does_not_take_back() -> None:
    policy = StaticPolicy(T1, cpus("0,4"), StaticOptions(strict_cpu_reservation=True))
    full = policy.allocate(policy.initial, "uid", "c", 6)
    assert isinstance(full, Granted)
    with pytest.raises(StateError, match="default cpuset cannot be empty"):
        policy.checked(full.state)


@given(st.sampled_from(MACHINES), MOVES)
@settings(deadline=None)
def test_when_everybody_has_gone_the_node_is_as_it_was(topology: Topology, moves: Moves) -> None:
    policy = StaticPolicy(topology, CPUSet.of(0))
    state = policy.initial
    for _, who, count in moves:
        decided = policy.allocate(state, f"pod-{who}", "c", count)
        state = decided.state if isinstance(decided, Granted) else state
    for uid in list(state.entries):
        state = policy.released(state, uid, "c")
    assert state == policy.initial


@given(st.permutations([2, 2, 2, 2]), st.permutations(["a", "b", "c", "d"]))
@settings(deadline=None)
def test_equal_requests_share_the_same_cpus_out_whoever_comes_first(counts: list[int], order: list[str]) -> None:
    policy = StaticPolicy(T2, cpus("0,8"))
    state = policy.initial
    for uid, count in zip(order, counts, strict=True):
        decided = policy.allocate(state, uid, "c", count)
        assert isinstance(decided, Granted)
        state = decided.state
    assert sorted(str(state.entries[uid]["c"]) for uid in order) == ["1,9", "2,10", "3,11", "4,12"]


def test_a_container_that_has_a_set_keeps_it_whatever_it_asks_for() -> None:
    policy = StaticPolicy(T1, cpus("0,4"))
    first = policy.allocate(policy.initial, "uid", "c", 2)
    assert isinstance(first, Granted)
    assert policy.allocate(first.state, "uid", "c", 4) == first


def test_full_cores_only_refuses_parts_of_cores_before_it_looks_at_what_is_there() -> None:
    policy = StaticPolicy(T1, cpus("0"), StaticOptions(full_pcpus_only=True))
    assert policy.allocate(policy.initial, "uid", "c", 3) == Refused(
        "SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2", "SMTAlignmentError"
    )
    assert policy.allocate(policy.initial, "uid", "c", 8) == Refused(
        "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = 6, requested CPUs = 8, CPUs per core = 2",
        "SMTAlignmentError",
    )


def test_an_affinity_comes_first_and_the_rest_from_anywhere() -> None:
    policy = StaticPolicy(T2, cpus("0,8"))
    assert policy.select(policy.available(policy.initial), 2, 0b10) == cpus("4,12")
    assert policy.select(policy.available(policy.initial), 10, 0b01) == cpus("1-5,9-13")


def test_align_by_socket_widens_the_affinity_to_the_socket() -> None:
    policy = StaticPolicy(TWO_NUMA_SOCKETS, cpus("0,16"), StaticOptions(align_by_socket=True))
    wide = policy.select(policy.available(policy.initial), 16, 0b0100)
    assert wide == cpus("8-15,24-31")
    preferred = [h.affinity for h in policy.hints(policy.available(policy.initial), NOBODY, 4) if h.preferred]
    assert preferred == [0b0001, 0b0010, 0b0100, 0b1000, 0b0011, 0b1100]


def test_a_shrink_keeps_the_original_set_and_gives_back_what_growth_added() -> None:
    policy = StaticPolicy(T1, cpus("0,4"))
    first = policy.allocate(policy.initial, "uid", "c", 2)
    assert isinstance(first, Granted)
    grown = policy.resized(first.state, "uid", "c", 6, first.cpus)
    assert isinstance(grown, Granted)
    assert grown.cpus == cpus("1-3,5-7")
    shrunk = policy.resized(grown.state, "uid", "c", 4, first.cpus)
    assert isinstance(shrunk, Granted)
    assert shrunk.cpus == cpus("1-2,5-6")
    assert shrunk.state.default == cpus("0,3-4,7")


@pytest.mark.parametrize(
    ("explicit", "milli", "expected"), [("", 1600, "0,4"), ("", 1000, "0"), ("2-3", 0, "2-3"), ("", 3000, "0-1,4")]
)
def test_a_reservation_by_amount_is_rounded_up_and_packed(explicit: str, milli: int, expected: str) -> None:
    assert reserved_of(T1, cpus(explicit), milli, StaticOptions()) == cpus(expected)


def test_the_static_policy_needs_a_reservation() -> None:
    found = reserved_of(T1, NOBODY, 0, StaticOptions())
    assert found == Refused("[cpumanager] the static policy requires systemreserved.cpu + kubereserved.cpu to be greater than zero")


# ---------------------------------------------------------------- hints


@pytest.mark.parametrize(
    ("available", "reusable", "count", "expected"),
    [
        ("1-7,9-15", "", 4, [Hint(0b01, True), Hint(0b10, True), Hint(0b11, False)]),
        ("3,7,11,15", "", 4, [Hint(0b11, False)]),
        ("1-7,9-15", "", 10, [Hint(0b11, True)]),
        ("4-7,12-15", "1,9", 4, [Hint(0b11, False)]),
        ("2-7,10-15", "1,9", 4, [Hint(0b01, True), Hint(0b11, False)]),
    ],
)
def test_a_hint_is_preferred_by_capacity_not_by_what_is_free(
    available: str, reusable: str, count: int, expected: list[Hint]
) -> None:
    policy = StaticPolicy(T2, cpus("0,8"))
    assert policy.hints(cpus(available), cpus(reusable), count) == expected


@pytest.mark.parametrize(
    ("policy", "providers", "hint", "admitted"),
    [
        ("best-effort", [{"cpu": [Hint(1, True), Hint(2, True), Hint(3, False)]}], Hint(1, True), True),
        ("best-effort", [{"cpu": []}], Hint(3, False), True),
        ("restricted", [{"cpu": []}], Hint(3, False), False),
        ("restricted", [None], Hint(3, True), True),
        ("restricted", [{"cpu": [Hint(3, False)]}], Hint(3, False), False),
        ("single-numa-node", [{"cpu": [Hint(3, True)]}], Hint(None, False), False),
        ("single-numa-node", [{"cpu": [Hint(2, True), Hint(3, False)]}, {"memory": None}], Hint(2, True), True),
        ("single-numa-node", [None], Hint(None, True), True),
        ("restricted", [{"cpu": [Hint(1, True)]}, {"memory": [Hint(2, True), Hint(1, True)]}], Hint(1, True), True),
        ("best-effort", [{"cpu": [Hint(1, True)]}, {"memory": [Hint(3, True)]}], Hint(1, False), True),
    ],
)
def test_hints_are_merged_as_the_policy_says(
    policy: str, providers: list[dict[str, list[Hint]]], hint: Hint, admitted: bool
) -> None:
    merged = merge(policy, (0, 1), providers)
    assert (merged.hint, merged.admitted) == (hint, admitted)


# ---------------------------------------------------------------- options


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"foo": "bar"}, 'unknown CPU Manager Policy option: "foo"'),
        ({"align-by-socket": "true"}, 'CPU Manager Policy Alpha-level Options not enabled, but option "align-by-socket" provided'),
        ({"full-pcpus-only": "yes"}, 'bad value for option "full-pcpus-only": strconv.ParseBool: parsing "yes": invalid syntax'),
        (
            {"prefer-align-cpus-by-uncorecache": "true", "distribute-cpus-across-numa": "true"},
            "static policy options prefer-align-cpus-by-uncorecache and distribute-cpus-across-numa can not be used "
            "at the same time",
        ),
    ],
)
def test_what_upstream_refuses_is_refused_in_its_words(given: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError) as refused:
        static_options(given, {"CPUManagerPolicyBetaOptions": True})
    assert str(refused.value) == message


def test_align_by_socket_fits_neither_single_numa_node_nor_several_sockets_in_a_node() -> None:
    options = StaticOptions(align_by_socket=True)
    check_with_machine(options, T2, "restricted")
    for topology, policy in ((T2, "single-numa-node"), (WIDE_NUMA, "restricted")):
        with pytest.raises(OptionError):
            check_with_machine(options, topology, policy)


# ---------------------------------------------------------------- the file


@pytest.mark.parametrize(
    ("raw", "state"),
    [
        (b'{"policyName":"none","defaultCpuSet":"4-6","checksum":354655845}', CPUState(cpus("4-6"))),
        (
            b'{"policyName":"none","defaultCpuSet":"1-3","entries":{"pod":{"container1":"4-6","container2":"1-3"}},"checksum":3610638499}',
            CPUState(cpus("1-3"), {"pod": {"container1": cpus("4-6"), "container2": cpus("1-3")}}),
        ),
    ],
)
def test_the_file_is_upstreams_to_the_checksum(raw: bytes, state: CPUState) -> None:
    assert decode(raw, "none") == state
    assert encode(state, "none") == raw


def test_pods_sets_and_original_sets_are_beside_what_an_older_kubelet_reads() -> None:
    state = CPUState(cpus("0"), {"u": {"c": cpus("1")}}, {"u": cpus("1-2")}, {"u": {"c": cpus("1")}})
    raw = encode(state, "static")
    assert b'"data":"{\\"original\\":{\\"u\\":{\\"c\\":\\"1\\"}},\\"podEntries\\":{\\"u\\":{\\"cpuSet\\":\\"1-2\\"}}}"' in raw
    assert decode(raw, "static") == state


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"{", "Input data was truncated"),
        (b'{"policyName":"none","defaultCpuSet":"4-6","checksum":1337}', "checkpoint is corrupted"),
        (
            b'{"policyName":"other","defaultCpuSet":"1-3","checksum":1394507217}',
            'configured policy "none" differs from state checkpoint policy "other"',
        ),
        (
            b'{"policyName":"none","defaultCpuSet":"1.3","checksum":3021697696}',
            'could not parse default cpu set "1.3": strconv.Atoi: parsing "1.3": invalid syntax',
        ),
        (
            b'{"policyName":"none","defaultCpuSet":"1-3","entries":{"pod":{"container1":"4-6","container2":"asd"}},"checksum":962272150}',
            'could not parse cpuset "asd" for container "container2" in pod "pod": strconv.Atoi: parsing "asd": invalid syntax',
        ),
        (
            b'{"policyName":"none","defaultCpuSet":"4-6","checksum":354655845,"data":"{}","dataChecksum":1}',
            "checkpoint is corrupted",
        ),
    ],
)
def test_a_file_that_cannot_be_used_says_why(raw: bytes, why: str) -> None:
    with pytest.raises(StateError) as refused:
        decode(raw, "none")
    assert refused.value.why == why


@pytest.mark.parametrize(
    ("state", "strict", "why"),
    [
        (CPUState(cpus("1-7")), False, 'not all reserved cpus: "0,4" are present in defaultCpuSet: "1-7"'),
        (CPUState(cpus("0-7")), True, 'some of strictly reserved cpus: "0,4" are present in defaultCpuSet: "0-7"'),
        (CPUState(cpus("0-6")), False, 'current set of available CPUs "0-7" doesn\'t match with CPUs in state "0-6"'),
        (CPUState(NOBODY, {"u": {"c": cpus("1")}}), False, "default cpuset cannot be empty"),
        (
            CPUState(cpus("0-7"), {"u": {"c": cpus("1")}}),
            False,
            'pod: u, container: c cpuset: "1" overlaps with default cpuset "0-7"',
        ),
    ],
)
def test_a_state_that_this_machine_cannot_have_is_refused(state: CPUState, strict: bool, why: str) -> None:
    policy = StaticPolicy(T1, cpus("0,4"), StaticOptions(strict_cpu_reservation=strict))
    with pytest.raises(StateError) as refused:
        policy.checked(state)
    assert refused.value.why == why
