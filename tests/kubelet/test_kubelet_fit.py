"""Does it fit? At the very edge, on either side of it, and where nothing is said."""

import msgspec
import pytest

from elbowroom.api.objects import Node, Pod
from elbowroom.api.resources import Resources
from elbowroom.kubelet.admission import Crowd, Lack, Neighbour, lacks
from elbowroom.kubelet.allocation import Deferred, Rules, judge
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
            {"pods": "1"},
            [
                Lack("pods", 1, 1, 1),
                Lack("cpu", 1, 0, 0),
                Lack("memory", GI, 0, 0),
                Lack("ephemeral-storage", 1, 0, 0),
                Lack("example.com/a", 1, 0, 0),
            ],
        ),
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
