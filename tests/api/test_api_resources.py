"""What a pod counts for: SC-43 to SC-51, RC-34, RC-160 to RC-165."""

import itertools
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elbowroom.api import resources
from elbowroom.api.objects import Pod

Document = dict[str, Any]


def cores(*amounts: int | None) -> list[Document]:
    """Containers (or statuses) that say so many cores; None says nothing."""
    return [{"requests": {"cpu": str(amount)}} if amount is not None else {} for amount in amounts]


def a_pod(
    wanted: list[Document],
    *,
    allocated: list[Document] | None = None,
    actual: list[Document] | None = None,
    pending: str = "",
    **more: Any,
) -> Pod:
    """A pod whose containers c0, c1, ... want, were allocated and have these resources."""
    containers = [{"name": f"c{index}", "resources": own} for index, own in enumerate(wanted)]
    statuses = [
        {
            "name": f"c{index}",
            **({"allocatedResources": allocated[index]["requests"]} if allocated and allocated[index] else {}),
            **({"resources": actual[index]} if actual and actual[index] else {}),
        }
        for index in range(len(wanted))
    ]
    conditions = [{"type": "PodResizePending", "status": "True", "reason": pending}] if pending else []
    document = {
        "metadata": {"name": "p", "namespace": "ns"},
        "spec": {"containers": containers, **more.get("spec", {})},
        "status": {"containerStatuses": statuses, "conditions": conditions, **more.get("status", {})},
    }
    return msgspec.convert(document, Pod)


def test_containers_that_move_in_opposite_directions_do_not_need_both_peaks() -> None:
    pod = a_pod(cores(2, 1), allocated=cores(1, 2), actual=cores(1, 2))
    assert resources.effective_requests(pod) == {"cpu": 3000}


def test_a_deferred_desire_counts_in_full() -> None:
    pod = a_pod(cores(4), allocated=cores(1), actual=cores(1), pending="Deferred")
    assert resources.is_deferred(pod)
    assert resources.effective_requests(pod) == {"cpu": 4000}


def test_an_infeasible_desire_does_not_count() -> None:
    pod = a_pod(cores(4), allocated=cores(1), actual=cores(2), pending="Infeasible")
    assert resources.is_infeasible(pod)
    assert resources.effective_requests(pod) == {"cpu": 2000}


def test_an_infeasible_container_without_status_counts_as_nothing() -> None:
    pod = a_pod(cores(4, 3), allocated=[cores(1)[0], {}], actual=[cores(1)[0], {}], pending="Infeasible")
    assert resources.effective_requests(pod) == {"cpu": 1000}


def test_the_first_pending_condition_decides_and_its_status_does_not() -> None:
    pod = a_pod(cores(1), status={"conditions": [{"type": "PodResizePending", "status": "False", "reason": "Deferred"}]})
    assert resources.is_deferred(pod)
    two = [{"type": "PodResizePending", "reason": reason} for reason in ("Infeasible", "Deferred")]
    assert not resources.is_deferred(a_pod(cores(1), status={"conditions": two}))


@pytest.mark.parametrize(
    ("allocated", "actual", "sums"),
    [
        (None, None, (1000, 1000)),
        (cores(2), None, (2000, 2000)),
        (None, cores(3), (1000, 3000)),
        (cores(2), cores(3), (2000, 3000)),
    ],
)
def test_actual_falls_back_to_allocated_and_allocated_to_spec(allocated: Any, actual: Any, sums: tuple[int, int]) -> None:
    pod = a_pod(cores(1), allocated=allocated, actual=actual)
    assert (resources.allocated_requests(pod)["cpu"], resources.actual_requests(pod)["cpu"]) == sums


def test_an_init_container_counts_with_the_sidecars_before_it() -> None:
    inits = [
        {"name": "s1", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}},
        {"name": "i", "resources": {"requests": {"cpu": "5"}}},
        {"name": "s2", "restartPolicy": "Always", "resources": {"requests": {"cpu": "2"}}},
    ]
    assert resources.spec_requests(a_pod(cores(1), spec={"initContainers": inits})) == {"cpu": 6000}
    assert resources.spec_requests(a_pod(cores(4), spec={"initContainers": inits})) == {"cpu": 7000}


def test_pod_level_requests_replace_what_they_name_and_overhead_comes_last() -> None:
    level = {"resources": {"requests": {"cpu": "5"}}, "overhead": {"cpu": "100m", "memory": "1Mi"}}
    pod = a_pod([{"requests": {"cpu": "1", "memory": "64Mi"}}], spec=level)
    assert resources.spec_requests(pod) == {"cpu": 5100, "memory": 65 * 2**20}


def test_overhead_in_the_pods_own_status_is_counted_once() -> None:
    status = {"allocatedResources": {"cpu": "1100m"}, "resources": {"requests": {"cpu": "1100m"}}}
    pod = a_pod(cores(1), spec={"overhead": {"cpu": "100m"}}, status=status)
    assert resources.effective_requests(pod) == {"cpu": 1100}


def test_pod_level_status_counts_against_pod_level_requests() -> None:
    status = {"allocatedResources": {"cpu": "3"}, "resources": {"requests": {"cpu": "2"}}}
    pod = a_pod(cores(1), spec={"resources": {"requests": {"cpu": "1"}}}, status=status)
    assert resources.effective_requests(pod) == {"cpu": 3000}
    assert resources.effective_requests(pod, pod_level_status=False) == {"cpu": 1000}


def test_scoring_counts_the_silent_as_small() -> None:
    silent = {"cpu": 100, "memory": 200 * 2**20}
    assert resources.non_zero_requests(a_pod([{}, {}])) == {name: 2 * value for name, value in silent.items()}
    assert resources.non_zero_requests(a_pod([{"requests": {"cpu": "0"}}])) == {"cpu": 0, "memory": silent["memory"]}


def test_limits_take_the_larger_of_spec_and_status() -> None:
    pod = a_pod([{"limits": {"cpu": "1"}}], actual=[{"limits": {"cpu": "2"}}])
    assert resources.effective_limits(pod) == {"cpu": 2000}
    infeasible = a_pod([{"limits": {"cpu": "9"}}], actual=[{"limits": {"cpu": "2"}}], pending="Infeasible")
    assert resources.effective_limits(infeasible) == {"cpu": 2000}


GUARANTEED = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1000m", "memory": "1024Mi"}}


@pytest.mark.parametrize(
    ("containers", "more", "quality"),
    [
        ([{}], {}, "BestEffort"),
        ([{"requests": {"cpu": "0"}}], {}, "BestEffort"),
        ([{"requests": {"ephemeral-storage": "1Gi"}}], {}, "BestEffort"),
        ([GUARANTEED], {}, "Guaranteed"),
        ([GUARANTEED, {}], {}, "Burstable"),
        ([{"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1"}}], {}, "Burstable"),
        ([{"requests": {"cpu": "1"}}], {}, "Burstable"),
        ([GUARANTEED], {"initContainers": [{"name": "i", "resources": {}}]}, "Burstable"),
        ([{}], {"resources": GUARANTEED}, "Guaranteed"),
        ([GUARANTEED], {"resources": {"requests": {"cpu": "2"}}}, "Burstable"),
        ([GUARANTEED], {"resources": {}}, "Guaranteed"),
        ([GUARANTEED], {"resources": {"requests": {}, "limits": {}}}, "Guaranteed"),
        ([GUARANTEED], {"resources": {"limits": {"hugepages-2Mi": "2Mi"}}}, "BestEffort"),
    ],
)
def test_quality_of_service(containers: list[Document], more: Document, quality: str) -> None:
    assert resources.qos_class(a_pod(containers, spec=more)) == quality


def test_vectors() -> None:
    assert resources.lacking({"memory": 5, "cpu": 3, "a/b": 0, "x": 1}, {"cpu": 2, "memory": 4}) == ["cpu", "memory", "x"]
    assert resources.fits({"cpu": 0}, {}) and not resources.fits({"cpu": 1}, {})
    assert resources.subtract({"cpu": 3}, {"cpu": 1, "memory": 2}) == {"cpu": 2, "memory": -2}
    assert resources.resource_list({"cpu": 1500, "memory": 2**30, "pods": 110}) == {"cpu": "1500m", "memory": "1Gi", "pods": "110"}


amounts = st.none() | st.integers(0, 8)


@st.composite
def resized_pods(draw: st.DrawFn) -> tuple[list[int], list[int | None], list[int | None], str]:
    spec = draw(st.lists(st.integers(0, 8), min_size=1, max_size=4))
    same_length = st.lists(amounts, min_size=len(spec), max_size=len(spec))
    return spec, draw(same_length), draw(same_length), draw(st.sampled_from(["", "Deferred", "Infeasible"]))


@given(resized_pods())
def test_effective_is_the_largest_of_the_three_sums(pod: tuple[list[int], list[int | None], list[int | None], str]) -> None:
    spec, allocated, actual, pending = pod

    def known(*choices: int | None) -> int:
        return next((choice for choice in choices if choice is not None), 0)

    fallback: list[int | None] = [None] * len(spec) if pending == "Infeasible" else list(spec)
    sums = [
        sum(known(a, f) for a, f in zip(allocated, fallback, strict=True)),
        sum(known(c, a, f) for c, a, f in zip(actual, allocated, fallback, strict=True)),
    ]
    if pending != "Infeasible":
        sums.append(sum(spec))
    view = a_pod(cores(*spec), allocated=cores(*allocated), actual=cores(*actual), pending=pending)
    assert resources.effective_requests(view).get("cpu", 0) == 1000 * max(sums)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), max_size=5), st.lists(st.integers(0, 5), min_size=1, max_size=3))
def test_the_aggregate_is_the_largest_use_at_any_moment_of_the_pods_life(inits: list[tuple[bool, int]], regular: list[int]) -> None:
    moments = []
    running = 0
    for sidecar, cpu in inits:
        moments.append(running + cpu)
        running += cpu if sidecar else 0
    moments.append(running + sum(regular))
    containers = [
        {"name": f"i{index}", "resources": {"requests": {"cpu": str(cpu)}}, **({"restartPolicy": "Always"} if sidecar else {})}
        for index, (sidecar, cpu) in enumerate(inits)
    ]
    assert resources.spec_requests(a_pod(cores(*regular), spec={"initContainers": containers})) == {"cpu": 1000 * max(moments)}


@given(st.lists(st.dictionaries(st.sampled_from("abc"), st.integers(0, 9)), min_size=2, max_size=4))
def test_sums_and_maxima_do_not_care_for_order(vectors: list[dict[str, int]]) -> None:
    orders = list(itertools.permutations(vectors))
    assert len({tuple(sorted(resources.add(*order).items())) for order in orders}) == 1
    assert len({tuple(sorted(resources.maximum(*order).items())) for order in orders}) == 1


def test_what_is_kept_with_a_spec_is_not_another_specs() -> None:
    one = a_pod(cores(1))
    first = resources.spec_requests(one)
    first["cpu"] = 7
    assert resources.spec_requests(one) == {"cpu": 1000}, "each caller has his own"
    other = msgspec.structs.replace(one, spec=msgspec.structs.replace(one.spec, overhead={"cpu": "1"}))
    assert resources.spec_requests(other) == {"cpu": 2000}
    assert (resources.qos_class(one), resources.qos_class(a_pod(cores(None)))) == ("Burstable", "BestEffort")
