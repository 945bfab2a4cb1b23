"""Does it fit? At the very edge, on either side of it, and where nothing is said."""

import msgspec
import pytest

from elbowroom.api.objects import Node, Pod
from elbowroom.api.resources import Resources
from elbowroom.kubelet.admission import Crowd, Lack, Neighbour, lacks
from elbowroom.kubelet.allocation import Deferred, Infeasible, Rules, increases, infeasible, judge
from elbowroom.kubelet.config import KubeletConfig

GI = 1 << 30


def a_node(**allocatable: str) -> Node:
    return msgspec.convert({"metadata": {"name": "n1"}, "status": {"allocatable": allocatable}}, Node)


def beside(*counts: Resources) -> Crowd:
    pods = [msgspec.convert({"metadata": {"name": f"p{n}", "uid": f"uid-p{n}"}}, Pod) for n in range(len(counts))]
    return Crowd.of(Neighbour(pod, each) for pod, each in zip(pods, counts, strict=True))


@pytest.mark.parametrize(
    ("request_", "others", "allocatable", "short"),
    [
        ({"cpu": 1000}, [{"cpu": 3000}], {"cpu": "4"}, []),
        ({"cpu": 1001}, [{"cpu": 3000}], {"cpu": "4"}, [Lack("cpu", 1001, 3000, 4000)]),
        ({"cpu": 4000}, [{"memory": GI}], {"cpu": "4"}, []),  # of what nobody has taken, all is there
        ({"cpu": 4000}, [], {"cpu": "4"}, []),
        ({"cpu": 0}, [{"cpu": 5000}], {"cpu": "4"}, []),  # who wants nothing lacks nothing, however full it is
        ({"cpu": 1}, [{"cpu": 4000}], {"cpu": "4"}, [Lack("cpu", 1, 4000, 4000)]),
        ({"memory": 1}, [], {"cpu": "4"}, [Lack("memory", 1, 0, 0)]),  # of what the node does not name there is none
        ({}, [{}], {"pods": "2"}, []),
        ({}, [{}, {}], {"pods": "2"}, [Lack("pods", 1, 2, 2)]),
        ({}, [{}, {}], {}, []),
        (
            {"memory": GI, "example.com/a": 1, "cpu": 1, "ephemeral-storage": 1},
            [{}],
            {"pods": "1", "example.com/a": "0"},
            [
                Lack("pods", 1, 1, 1),
                Lack("cpu", 1, 0, 0),
                Lack("memory", GI, 0, 0),
                Lack("ephemeral-storage", 1, 0, 0),
                Lack("example.com/a", 1, 0, 0),
            ],
        ),
        (
            {"example.com/a": 1, "kubernetes.io/b": 1},
            [],
            {},
            [Lack("kubernetes.io/b", 1, 0, 0)],
        ),  # what no node names is the cluster's
    ],
)
def test_what_is_lacking(request_: Resources, others: list[Resources], allocatable: dict[str, str], short: list[Lack]) -> None:
    assert lacks(request_, beside(*others), a_node(**allocatable)) == short


def test_without_a_pod_the_others_count_what_they_did() -> None:
    crowd = beside({"cpu": 1000}, {"cpu": 200, "memory": 5})
    rest = crowd.without("uid-p0")
    assert [neighbour.pod.metadata.name for neighbour in rest.members] == ["p1"]
    assert rest.used == {"cpu": 200, "memory": 5}
    assert crowd.without("uid-somebody") == crowd


def test_what_would_have_to_go_is_what_is_wanted_less_what_is_free() -> None:
    assert Lack("cpu", 1500, 3000, 4000).amount == 500


def test_a_critical_resize_that_nobody_can_make_room_for_waits() -> None:
    """Where the kubelet evicts for it (RC-78), but its neighbour is as important."""

    def pod(name: str, cpu: str) -> Pod:
        container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
        spec = {"priority": 2_000_000_000, "containers": [container]}
        return msgspec.convert({"metadata": {"name": name, "uid": name}, "spec": spec}, Pod)

    others = Crowd.of([Neighbour(pod("b", "3"), {"cpu": 3000})])
    verdict = judge(pod("a", "2"), pod("a", "1"), others, Rules(a_node(cpu="4"), KubeletConfig({}), evicts_for_resize=True))
    assert isinstance(verdict, Deferred) and verdict.cause == "UnexpectedAdmissionError"


def a_pod(*memory: tuple[str, str], cpu: str = "") -> Pod:
    """A pod whose containers have these memory requests and limits."""
    containers = [
        {
            "name": f"c{n}",
            "resources": {"requests": {"memory": request, **({"cpu": cpu} if cpu else {})}, "limits": {"memory": limit}},
        }
        for n, (request, limit) in enumerate(memory)
    ]
    return msgspec.convert({"metadata": {"name": "a", "uid": "a"}, "spec": {"containers": containers}}, Pod)


def test_all_that_the_node_has_may_be_asked_for_and_not_a_bit_more() -> None:
    small, exact, more = (a_pod(("1Gi", "8Gi"), cpu=cpu) for cpu in ("1", "4", "4001m"))
    rules = Rules(a_node(cpu="4", memory="8Gi"), KubeletConfig({"InPlacePodLevelResourcesVerticalScaling": True}))
    assert infeasible(exact, small, rules) is None
    refused = infeasible(more, small, rules)
    assert isinstance(refused, Infeasible)
    assert refused.message == "Node didn't have enough capacity: cpu, requested: 4001, capacity: 4000"
    tiny = a_pod(("1", "8Gi"), cpu="1m")
    nameless = infeasible(tiny, tiny, Rules(a_node(), rules.config))
    assert isinstance(nameless, Infeasible), "of what the node does not name it has nothing"
    assert nameless.message == "Node didn't have enough capacity: memory, requested: 1, capacity: 0"
    assert infeasible(a_pod(), a_pod(), Rules(a_node(), rules.config)) is None, "who asks for nothing asks not for too much"


def test_one_container_that_may_swap_is_enough() -> None:
    config = KubeletConfig({"InPlacePodLevelResourcesVerticalScaling": True}, swap=True)
    old, new = a_pod(("1Gi", "2Gi"), ("1Gi", "2Gi")), a_pod(("1Gi", "2Gi"), ("1500Mi", "2Gi"))
    refused = infeasible(new, old, Rules(a_node(cpu="4", memory="8Gi"), config))
    assert isinstance(refused, Infeasible) and refused.detail == "swap_limitation"


def test_the_least_that_is_new_is_an_increase() -> None:
    without, least = a_pod(("1Gi", "2Gi")), a_pod(("1Gi", "2Gi"), cpu="1m")
    assert increases(least, without) and not increases(without, least) and not increases(least, least)
