"""An event is put to those whom it may help, and to each kind of them once; who is woken is the same as if all were asked."""

from collections.abc import Hashable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scheduler_cluster import START, node, pod
from scheduler_worlds import info_of, node_of

from elbowroom.scheduler.clusterevents import ASSIGNED_POD_DELETE, NODE, NODE_ADD, Action, event
from elbowroom.scheduler.framework import Interest, Plugin
from elbowroom.scheduler.plugins import ScoringStrategy
from elbowroom.scheduler.plugins.nodes import NodePorts, TaintToleration
from elbowroom.scheduler.plugins.resources import Fit
from elbowroom.scheduler.podinfo import PodInfo
from elbowroom.scheduler.queue import SchedulingQueue

GROWN = event(NODE, Action.UPDATE_NODE_ALLOCATABLE)


class Alone(Plugin):
    """Another plugin whose pods each speak for themselves."""

    def __init__(self, plugin: Plugin) -> None:
        self.name = plugin.name
        self._plugin = plugin

    def interests(self) -> Any:
        return self._plugin.interests()


class Counting(Plugin):
    """Waits for the end of pods, tells the waiting ones apart by their label, and counts how often it is asked."""

    name = "Counting"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def waits_for(self, info: PodInfo) -> Hashable | None:
        return info.pod.metadata.labels.get("kind")

    def interests(self) -> list[Interest]:
        return [Interest(ASSIGNED_POD_DELETE.resource, ASSIGNED_POD_DELETE.action, self._hint)]

    def _hint(self, waiting: PodInfo, old: Any, new: Any) -> bool:
        self.asked.append(waiting.key)
        return bool(waiting.pod.metadata.labels.get("kind") == "woken")


def parked(queue: SchedulingQueue, *documents: Any, by: str = "Counting") -> SchedulingQueue:
    for document in documents:
        queue.add(START, info_of(document))
        queue.park(START, queue.pop(START), [by])
    return queue


def test_of_pods_that_are_alike_one_is_asked_for_all() -> None:
    plugin = Counting()
    queue = parked(SchedulingQueue([plugin]), *(pod(f"p{number}", labels={"kind": "asleep"}) for number in range(50)))
    queue = parked(queue, *(pod(f"q{number}", labels={"kind": "woken"}) for number in range(3)))
    queue.move(START, ASSIGNED_POD_DELETE, info_of(pod("gone", node="n1")))
    assert plugin.asked == ["default/p0", "default/q0"]
    assert queue.counts()["backoff"] == 3 and queue.counts()["unschedulable"] == 50


def test_who_cannot_be_compared_is_asked_itself() -> None:
    plugin = Counting()
    queue = parked(SchedulingQueue([plugin]), pod("a"), pod("b"))
    queue.move(START, ASSIGNED_POD_DELETE, info_of(pod("gone", node="n1")))
    assert plugin.asked == ["default/a", "default/b"]


def test_what_happens_on_one_node_is_not_put_to_resizes_of_others() -> None:
    plugin = Counting()
    queue = parked(SchedulingQueue([plugin]), *(pod(f"p{number}", node=f"n{number}") for number in range(20)))
    queue.move(START, ASSIGNED_POD_DELETE, info_of(pod("gone", node="n7")))
    assert plugin.asked == ["default/p7"]


def test_who_changes_while_it_waits_stands_with_others_from_then_on() -> None:
    plugin = Counting()
    queue = parked(SchedulingQueue([plugin]), pod("a", labels={"kind": "asleep"}), pod("b", labels={"kind": "asleep"}))
    queue.update(START, info_of(pod("a", labels={"kind": "woken"})))
    queue.move(START, ASSIGNED_POD_DELETE, info_of(pod("gone", node="n1")))
    assert (queue.where("uid-a"), queue.where("uid-b")) == ("backoff", "unschedulable")


def test_who_leaves_is_asked_no_more() -> None:
    plugin = Counting()
    queue = parked(SchedulingQueue([plugin]), pod("a", labels={"kind": "asleep"}), pod("b", labels={"kind": "asleep"}))
    queue.remove("uid-a", "deleted")
    queue.move(START, ASSIGNED_POD_DELETE, info_of(pod("gone", node="n1")))
    queue.remove("uid-b", "deleted")
    queue.move(START, ASSIGNED_POD_DELETE, info_of(pod("gone", node="n1")))
    assert plugin.asked == ["default/b"]
    assert queue.rejections() == {}


PLUGINS = (Fit(ScoringStrategy()), NodePorts(), TaintToleration())
NAMES = st.lists(st.sampled_from([each.name for each in PLUGINS]), min_size=1, max_size=3)
TOLERATIONS = st.sampled_from([[], [{"key": "k", "operator": "Exists"}]])
WAITING = st.tuples(
    st.sampled_from(["", "1", "3"]), st.sampled_from([0, 80]), TOLERATIONS, st.sampled_from(["", "", "n1", "n2"]), NAMES
)
EVENTS = st.one_of(
    st.tuples(st.just("ended"), st.sampled_from(["n1", "n2"]), st.sampled_from([0, 80])),
    st.tuples(st.just("came"), st.sampled_from(["n1", "n3"]), st.booleans()),
    st.tuples(st.just("grew"), st.sampled_from(["n1", "n2"]), st.sampled_from(["2", "4"])),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(WAITING, max_size=8), st.lists(EVENTS, max_size=4))
def test_the_same_pods_are_woken_as_if_each_were_asked(waiting: list[Any], events: list[Any]) -> None:
    queues = [SchedulingQueue(PLUGINS), SchedulingQueue([Alone(each) for each in PLUGINS])]
    for number, (cpu, port, tolerations, on, rejected) in enumerate(waiting):
        ports = {"containers": [{"name": "c", "ports": [{"hostPort": port}]}]} if port else {}
        document = pod(f"p{number}", cpu=cpu, node=on, tolerations=tolerations, **(ports if not cpu else {}))
        for queue in queues:
            queue.add(START, info_of(document))
            queue.park(START, queue.pop(START), rejected)
    for happened in events:
        for queue in queues:
            match happened:
                case ("ended", on, port):
                    held = {"containers": [{"name": "c", "ports": [{"hostPort": port}]}]} if port else {}
                    queue.move(START, ASSIGNED_POD_DELETE, info_of(pod("gone", node=on, **held)))
                case ("came", name, tainted):
                    taints = [{"key": "k", "effect": "NoSchedule"}] if tainted else []
                    queue.move(START, NODE_ADD, None, node_of(node(name, cpu="2", taints=taints)))
                case ("grew", name, cpu):
                    queue.move(START, GROWN, node_of(node(name, cpu="1")), node_of(node(name, cpu=cpu)))
    places = [[queue.where(f"uid-p{number}") for number in range(len(waiting))] for queue in queues]
    assert places[0] == places[1]


@pytest.mark.parametrize("parked_pods", [10, 2000])
def test_an_event_asks_as_few_however_many_wait(parked_pods: int) -> None:
    asked: list[str] = []
    queue = SchedulingQueue(PLUGINS, hinted=lambda plugin, label, answer: asked.append(plugin))
    parked(queue, *(pod(f"p{number}", cpu="3") for number in range(parked_pods)), by="NodeResourcesFit")
    queue.move(START, GROWN, node_of(node("n1", cpu="1")), node_of(node("n1", cpu="2")))
    assert asked == ["NodeResourcesFit"]
