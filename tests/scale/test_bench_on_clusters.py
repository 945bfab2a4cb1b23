"""The benchmarks that take a cluster, each told to do little: they come to their end, and say what they did."""

import pytest
import uvloop

from elbowroom.deploy.bench import aims, preempting, rates, serving
from elbowroom.deploy.bench.clusters import Other, Running
from elbowroom.deploy.bench.figures import Figure

pytestmark = pytest.mark.processes


def test_each_resize_of_the_preemption_benchmark_takes_the_victims_that_it_needs() -> None:
    alone, storm = preempting.of_size(6, episodes=4, alone=2)
    assert alone.details["episodes"] == storm.details["episodes"] == 2
    assert storm.details["victims needed"] == storm.details["victims taken"] == 6
    assert 0 < alone.value < 60_000 and storm.value > 0


@pytest.mark.parametrize(("nodes", "episodes", "used"), [(5, 200, [1, 2, 3, 4, 5]), (1000, 4, [1, 251, 501, 751])])
def test_the_preemption_benchmark_fills_every_node_and_spreads_its_resizes(nodes: int, episodes: int, used: list[int]) -> None:
    wished = preempting.wishes(nodes, episodes)
    assert [wish.node for wish in wished] == used
    assert {wish.victims for wish in wished} == {1, 2}
    gibibytes: dict[str, int] = {}
    for manifest in preempting.manifests(nodes, wished):
        memory = manifest["spec"]["containers"][0]["resources"]["requests"]["memory"]
        node = manifest["spec"]["nodeName"]
        gibibytes[node] = gibibytes.get(node, 0) + int(memory.removesuffix("Gi"))
    assert gibibytes == {f"node-{number}": preempting.NODE_GI for number in range(1, nodes + 1)}


def test_the_api_benchmarks_come_to_their_end_and_leave_no_pod() -> None:
    async def taken() -> list[Figure]:
        return [
            *await serving.get_pod(cluster, requests=5),
            *await serving.list_pods(cluster, count=20, lists=2),
            *await serving.write_to_watch(cluster, trials=3),
            *await serving.fan_out(cluster, readers=5, trials=3),
            *await serving.many_watchers(cluster, readers=10, rate=50, seconds=0.4),
            *await serving.on_the_bus(cluster, writers=2, seconds=0.2, trials=3),
            *await serving.get_pod(cluster, requests=1),
            *await aims.api(cluster, seconds=0.2, readers=5),
            *await rates.gets(cluster, clients=2, seconds=0.2),
            *await rates.resizes(Other(cluster.kubeconfig), clients=2, seconds=0.2),
            *await rates.resizes(cluster, clients=2, seconds=0.2),
        ]

    with Running(0) as cluster:
        figures = {figure.name: figure for figure in uvloop.run(taken())}
    assert {"get-pod-p50", "list-20", "write-to-watch-p50", "fan-out-5", "watchers-10", "bus-patches"} <= set(figures)
    assert {"aim-http-patches", "aim-bus-patches", "aim-bus-watch", "aim-http-watch", "aim-fan-out"} <= set(figures)
    assert {"get-rate", "patch-rate"} <= set(figures)
    assert all(figures[name].details["API server's CPU us"] > 0 for name in ("get-rate", "patch-rate"))
    assert figures["get-rate"].details["raw server's CPU us"] > 0
    assert all(figure.value > 0 and (figure.limit is None or figure.limit > 0) for figure in figures.values())
    assert figures["watchers-10"].details["missed"] == 0
    assert [figure.name for figure in serving.decoding(times=100)] == ["decode-pod"]


def test_the_aims_are_taken_on_full_nodes_and_each_that_grows_takes_its_victim() -> None:
    taken = {figure.name: figure for figure in aims.resizes(nodes=4, pods_a_node=3, paced=4, stormed=5, growing=4)}
    assert list(taken) == ["aim-resizes", "aim-resize-p50", "aim-resize-p99", "aim-preemption", "aim-preemption-p50"]
    assert all(figure.value > 0 and figure.limit_is == "aim" for figure in taken.values())
    assert taken["aim-preemption"].details["victims taken"] == taken["aim-preemption"].details["victims needed"] == 4
