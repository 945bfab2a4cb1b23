"""The kernel's answers, as measured on real cgroups."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elbowroom.runtime.cgroups import Cgroup, Hierarchy, Refused, weight_of
from elbowroom.wire.cri import LinuxResources

V1, V2 = Hierarchy(1), Hierarchy(2)
MI = 1024 * 1024


def written(hierarchy: Hierarchy, wanted: LinuxResources, group: Cgroup = Cgroup(), **more: object) -> Cgroup:
    new = hierarchy.write(group, wanted, path="kubepods/podu/c", **more)  # type: ignore[arg-type]
    assert isinstance(new, Cgroup), new
    return new


def refused(hierarchy: Hierarchy, wanted: LinuxResources, group: Cgroup = Cgroup(), **more: object) -> Refused:
    new = hierarchy.write(group, wanted, path="kubepods/podu/c", **more)  # type: ignore[arg-type]
    assert isinstance(new, Refused), new
    return new


@pytest.mark.parametrize(("milli", "weight"), [(2, 1), (409, 16), (512, 20), (1024, 39), (3072, 118), (6144, 235), (262144, 10000)])
def test_shares_become_a_weight(milli: int, weight: int) -> None:
    assert weight_of(milli) == weight


@pytest.mark.parametrize(("shares", "kept"), [(1, 2), (2, 2), (262144, 262144), (262145, 262144)])
def test_shares_are_clamped_without_an_error(shares: int, kept: int) -> None:
    assert written(V1, LinuxResources(cpu_shares=shares)).shares == kept


@pytest.mark.parametrize("hierarchy", [V1, V2])
def test_a_quota_below_a_millisecond_is_invalid(hierarchy: Hierarchy) -> None:
    assert refused(hierarchy, LinuxResources(cpu_quota=999)).errno == "EINVAL"
    assert written(hierarchy, LinuxResources(cpu_quota=1000)).quota == 1000


def test_the_refusal_names_the_file() -> None:
    assert refused(V1, LinuxResources(cpu_quota=500)).message == (
        'failed to write "500": write /sys/fs/cgroup/cpu,cpuacct/kubepods/podu/c/cpu.cfs_quota_us: invalid argument'
    )
    assert refused(V2, LinuxResources(cpu_quota=500)).message == (
        'failed to write "500 100000": write /sys/fs/cgroup/kubepods/podu/c/cpu.max: invalid argument'
    )


def test_on_v1_a_quota_stays_between_parent_and_children() -> None:
    parent, child = Cgroup(quota=100_000), Cgroup(quota=80_000)
    assert refused(V1, LinuxResources(cpu_quota=100_001), parent=parent).errno == "EINVAL"
    assert written(V1, LinuxResources(cpu_quota=100_000), parent=parent).quota == 100_000
    assert refused(V1, LinuxResources(cpu_quota=79_999), parent, children=[child]).errno == "EINVAL"
    assert written(V1, LinuxResources(cpu_quota=80_000), parent, children=[child]).quota == 80_000
    assert written(V1, LinuxResources(cpu_quota=-1), child, parent=parent).quota == -1


def test_on_v2_a_quota_may_exceed_its_parents() -> None:
    assert written(V2, LinuxResources(cpu_quota=200_000), parent=Cgroup(quota=100_000)).quota == 200_000


def test_on_v1_memory_below_usage_is_busy() -> None:
    group = Cgroup(memory=400 * MI)
    assert refused(V1, LinuxResources(memory_limit_bytes=100 * MI), group, usage=150 * MI) == Refused(
        "EBUSY",
        'failed to write "104857600": write /sys/fs/cgroup/memory/kubepods/podu/c/memory.limit_in_bytes: device or resource busy',
    )
    assert written(V1, LinuxResources(memory_limit_bytes=150 * MI), group, usage=150 * MI).memory == 150 * MI


def test_on_v2_memory_below_usage_is_taken() -> None:
    assert written(V2, LinuxResources(memory_limit_bytes=100 * MI), Cgroup(memory=400 * MI), usage=150 * MI).memory == 100 * MI


def test_memory_is_kept_in_pages() -> None:
    assert written(V2, LinuxResources(memory_limit_bytes=100_000_000)).memory == 99_999_744


def swaps(text: str) -> LinuxResources:
    return LinuxResources(memory_swap_max=text)


def test_on_v2_the_file_says_what_may_be_swapped_out() -> None:
    assert written(V2, swaps("100000000")).swap == 99_999_744
    assert written(V2, swaps("max")).swap == -1
    assert written(V2, LinuxResources(memory_limit_bytes=MI), Cgroup(swap=4096)).swap == 4096
    assert (
        refused(V2, swaps("lots")).message
        == 'failed to write "lots": write /sys/fs/cgroup/kubepods/podu/c/memory.swap.max: invalid argument'
    )
    assert written(V1, swaps("100000000")).swap == 0


def test_on_v1_it_is_what_both_together_exceed_memory_by() -> None:
    both = LinuxResources(memory_limit_bytes=100 * MI, memory_swap_limit_bytes=150 * MI)
    assert written(V1, both).swap == 50 * MI
    assert written(V1, LinuxResources(memory_limit_bytes=200 * MI, memory_swap_limit_bytes=200 * MI), written(V1, both)).swap == 0
    assert written(V2, both).swap == 0


@pytest.mark.parametrize(("quota", "kept"), [(1500, 2000), (2000, 2000), (12345, 13000), (-1, -1)])
def test_systemd_keeps_whole_percents_of_a_cpu(quota: int, kept: int) -> None:
    assert written(Hierarchy(2, "systemd"), LinuxResources(cpu_quota=quota)).quota == kept
    assert written(V2, LinuxResources(cpu_quota=quota)).quota == quota


VALUES = st.builds(
    LinuxResources,
    cpu_shares=st.integers(0, 300_000),
    cpu_quota=st.integers(-1, 400_000),
    cpu_period=st.sampled_from([0, 100_000]),
    memory_limit_bytes=st.integers(-1, 2**40),
    cpuset_cpus=st.sampled_from(["", "0-3", "1"]),
    oom_score_adj=st.sampled_from([0, 3, -997]),
    memory_swap_limit_bytes=st.integers(0, 2**40),
    memory_swap_max=st.sampled_from(["", "0", "8192", "max"]),
)


@given(VALUES, VALUES, st.sampled_from([1, 2]), st.sampled_from(["cgroupfs", "systemd"]))
def test_writing_the_same_again_changes_nothing(first: LinuxResources, second: LinuxResources, version: int, driver: str) -> None:
    hierarchy = Hierarchy(version, driver)
    for wanted in (first, second):
        once = hierarchy.write(Cgroup(), wanted, path="p")
        if isinstance(once, Cgroup):
            assert hierarchy.write(once, wanted, path="p") == once
            assert hierarchy.write(once, LinuxResources(), path="p") == once
    assert first.updated(second).updated(second) == first.updated(second)
