"""What wakes a pod that a plugin rejected, plugin by plugin and event by event (SC-11, SC-15 to SC-17, SC-28 to SC-31)."""

from collections.abc import Mapping
from typing import Any

import pytest
from scheduler_cluster import deferred, node, pod
from scheduler_worlds import Nobody, info_of, node_of, plugins_of

from elbowroom.api.gates import profile_of
from elbowroom.scheduler.clusterevents import ASSIGNED_POD, NODE, TARGET_POD, Action, node_events, pod_events
from elbowroom.scheduler.framework import Interest, Plugin

Document = dict[str, Any]
HOST, ZONE = "kubernetes.io/hostname", "zone"
GATED = [{"name": "wait"}]


def term(labels: Mapping[str, str], key: str = ZONE) -> Document:
    return {"labelSelector": {"matchLabels": dict(labels)}, "topologyKey": key}


def affinity(kind: str, *terms: Document) -> Document:
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def in_zone(zone: str, name: str = "n1", **more: Any) -> Document:
    return node(name, labels={"zone": zone}, **more)


def spread(**more: Any) -> Document:
    return {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "x"}},
        **more,
    }


FRIEND = pod("w", affinity=affinity("podAffinity", term({"app": "x"})))
FRIEND_OF_BOTH = pod("w", affinity=affinity("podAffinity", term({"app": "x"}), term({"tier": "y"})))
SHY = pod("w", affinity=affinity("podAntiAffinity", term({"app": "x"})))
PLAIN = pod("w", labels={"app": "x"})
SPREADING = pod("w", labels={"app": "x"}, topologySpreadConstraints=[spread()])
HONOURING = pod("w", labels={"app": "x"}, topologySpreadConstraints=[spread(nodeTaintsPolicy="Honor")])
PORT = [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}]
OTHER_PORT = [{"name": "c", "ports": [{"containerPort": 81, "hostPort": 81}]}]
WAITING = deferred("w", "n1", "2", "1")
TAINT = [{"key": "k", "effect": "NoSchedule"}]
TOLERATED = [{"key": "k", "operator": "Exists"}]
CORDONED = [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]
SSD = pod("w", nodeSelector={"disk": "ssd"})


def x(name: str = "o", on: str = "n1", **more: Any) -> Document:
    return pod(name, node=on, labels={"app": "x"}, **more)


def y(name: str = "o", on: str = "n1", **more: Any) -> Document:
    return pod(name, node=on, labels={"app": "y"}, **more)


PODS: list[tuple[str, str, Document, Action, Document | None, Document | None, bool]] = [
    # plugin, what happens, who waits, action, before, after, is it woken?
    ("NodeResourcesFit", "any pod goes", pod("w", cpu="1"), Action.DELETE, pod("o", node="n1"), None, True),
    ("NodeResourcesFit", "a pod of its own node goes", WAITING, Action.DELETE, pod("o", node="n1"), None, True),
    ("NodeResourcesFit", "a pod of another node goes", WAITING, Action.DELETE, pod("o", node="n2"), None, False),
    (
        "NodeResourcesFit",
        "what it asks for shrinks",
        pod("w", cpu="1"),
        Action.UPDATE_POD_SCALE_DOWN,
        pod("o", node="n1", cpu="2", memory="1Gi"),
        pod("o", node="n1", cpu="1", memory="1Gi"),
        True,
    ),
    (
        "NodeResourcesFit",
        "something else shrinks",
        pod("w", cpu="1"),
        Action.UPDATE_POD_SCALE_DOWN,
        pod("o", node="n1", cpu="2", memory="2Gi"),
        pod("o", node="n1", cpu="2", memory="1Gi"),
        False,
    ),
    (
        "NodeResourcesFit",
        "a pod of another node shrinks",
        WAITING,
        Action.UPDATE_POD_SCALE_DOWN,
        pod("o", node="n2", cpu="2"),
        pod("o", node="n2", cpu="1"),
        False,
    ),
    ("NodePorts", "its port is freed", pod("w", containers=PORT), Action.DELETE, pod("o", node="n1", containers=PORT), None, True),
    (
        "NodePorts",
        "another port is freed",
        pod("w", containers=PORT),
        Action.DELETE,
        pod("o", node="n1", containers=OTHER_PORT),
        None,
        False,
    ),
    ("InterPodAffinity", "a friend comes", FRIEND, Action.ADD, None, x(), True),
    ("InterPodAffinity", "a stranger comes", FRIEND, Action.ADD, None, y(), False),
    ("InterPodAffinity", "a friend of one term comes", FRIEND_OF_BOTH, Action.ADD, None, x(), False),
    (
        "InterPodAffinity",
        "a friend of both terms comes",
        FRIEND_OF_BOTH,
        Action.ADD,
        None,
        pod("o", node="n1", labels={"app": "x", "tier": "y"}),
        True,
    ),
    ("InterPodAffinity", "an enemy comes", SHY, Action.ADD, None, x(), False),
    ("InterPodAffinity", "an enemy goes", SHY, Action.DELETE, x(), None, True),
    ("InterPodAffinity", "a friend goes", FRIEND, Action.DELETE, x(), None, False),
    (
        "InterPodAffinity",
        "who shuns it goes",
        PLAIN,
        Action.DELETE,
        pod("o", node="n1", affinity=affinity("podAntiAffinity", term({"app": "x"}))),
        None,
        True,
    ),
    ("InterPodAffinity", "a stranger becomes a friend", FRIEND, Action.UPDATE_POD_LABEL, y(), x(), True),
    ("InterPodAffinity", "a friend becomes a stranger", FRIEND, Action.UPDATE_POD_LABEL, x(), y(), False),
    ("InterPodAffinity", "an enemy becomes a stranger", SHY, Action.UPDATE_POD_LABEL, x(), y(), True),
    ("InterPodAffinity", "a stranger becomes an enemy", SHY, Action.UPDATE_POD_LABEL, y(), x(), False),
    ("PodTopologySpread", "one of the group comes", SPREADING, Action.ADD, None, x(), True),
    ("PodTopologySpread", "one of no group comes", SPREADING, Action.ADD, None, y(), False),
    ("PodTopologySpread", "one of another namespace comes", SPREADING, Action.ADD, None, x(namespace="far"), False),
    ("PodTopologySpread", "one of the group goes", SPREADING, Action.DELETE, x(), None, True),
    ("PodTopologySpread", "one leaves the group", SPREADING, Action.UPDATE_POD_LABEL, x(), y(), True),
    (
        "PodTopologySpread",
        "one stays in the group",
        SPREADING,
        Action.UPDATE_POD_LABEL,
        x(),
        pod("o", node="n1", labels={"app": "x", "b": "c"}),
        False,
    ),
    ("DefaultPreemption", "a pod goes", WAITING, Action.DELETE, pod("o", node="n1"), None, False),
    ("DeferredPodScheduling", "a neighbour comes", WAITING, Action.ADD, None, pod("o", node="n1", cpu="1"), True),
    ("DeferredPodScheduling", "somebody elsewhere comes", WAITING, Action.ADD, None, pod("o", node="n2", cpu="1"), False),
    (
        "DeferredPodScheduling",
        "a neighbour grows",
        WAITING,
        Action.UPDATE_POD_SCALE_UP,
        pod("o", node="n1", cpu="1"),
        pod("o", node="n1", cpu="2"),
        True,
    ),
    (
        "DeferredPodScheduling",
        "somebody elsewhere grows",
        WAITING,
        Action.UPDATE_POD_SCALE_UP,
        pod("o", node="n2", cpu="1"),
        pod("o", node="n2", cpu="2"),
        False,
    ),
]

ITSELF: list[tuple[str, str, Action, Document, Document, bool]] = [
    (
        "SchedulingGates",
        "its last gate goes",
        Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED,
        pod("w", schedulingGates=GATED),
        pod("w"),
        True,
    ),
    ("NodeResourcesFit", "it asks for less", Action.UPDATE_POD_SCALE_DOWN, pod("w", cpu="2"), pod("w", cpu="1"), True),
    ("NodeResourcesFit", "it asks for more", Action.UPDATE_POD_SCALE_UP, pod("w", cpu="1"), pod("w", cpu="2"), False),
    (
        "NodeResourcesFit",
        "its resize asks for more",
        Action.UPDATE_POD_SCALE_UP,
        WAITING,
        deferred("w", "n1", "3", "1"),
        True,
    ),
    (
        "NodeUnschedulable",
        "it tolerates cordons",
        Action.UPDATE_POD_TOLERATION,
        pod("w"),
        pod("w", tolerations=CORDONED),
        True,
    ),
    (
        "NodeUnschedulable",
        "it tolerates something else",
        Action.UPDATE_POD_TOLERATION,
        pod("w"),
        pod("w", tolerations=TOLERATED),
        False,
    ),
    ("TaintToleration", "it tolerates more", Action.UPDATE_POD_TOLERATION, pod("w"), pod("w", tolerations=TOLERATED), True),
    ("InterPodAffinity", "its labels change", Action.UPDATE_POD_LABEL, pod("w"), pod("w", labels={"a": "b"}), True),
    (
        "PodTopologySpread",
        "it leaves its group",
        Action.UPDATE_POD_LABEL,
        SPREADING,
        {**SPREADING, "metadata": {**SPREADING["metadata"], "labels": {"app": "y"}}},
        True,
    ),
    (
        "PodTopologySpread",
        "it tolerates more where taints count",
        Action.UPDATE_POD_TOLERATION,
        HONOURING,
        {**HONOURING, "spec": {**HONOURING["spec"], "tolerations": TOLERATED}},
        True,
    ),
    (
        "PodTopologySpread",
        "it tolerates more where they do not",
        Action.UPDATE_POD_TOLERATION,
        SPREADING,
        {**SPREADING, "spec": {**SPREADING["spec"], "tolerations": TOLERATED}},
        False,
    ),
]

NODES: list[tuple[str, str, Document, Action, Document | None, Document | None, bool]] = [
    ("NodeResourcesFit", "a node comes that would hold it", pod("w", cpu="4"), Action.ADD, None, node("n1"), True),
    ("NodeResourcesFit", "a node comes that is too small", pod("w", cpu="5"), Action.ADD, None, node("n1"), False),
    (
        "NodeResourcesFit",
        "what it asks for grows",
        pod("w", cpu="1"),
        Action.UPDATE_NODE_ALLOCATABLE,
        node("n1", cpu="1"),
        node("n1", cpu="2"),
        True,
    ),
    (
        "NodeResourcesFit",
        "something else grows",
        pod("w", cpu="1"),
        Action.UPDATE_NODE_ALLOCATABLE,
        node("n1", memory="1Gi"),
        node("n1", memory="2Gi"),
        False,
    ),
    (
        "NodeResourcesFit",
        "its slots become more",
        pod("w"),
        Action.UPDATE_NODE_ALLOCATABLE,
        node("n1", pods="1"),
        node("n1", pods="2"),
        True,
    ),
    (
        "NodeResourcesFit",
        "a node grows and is still too small",
        pod("w", cpu="4"),
        Action.UPDATE_NODE_ALLOCATABLE,
        node("n1", cpu="1"),
        node("n1", cpu="2"),
        False,
    ),
    (
        "NodeResourcesFit",
        "another node grows",
        WAITING,
        Action.UPDATE_NODE_ALLOCATABLE,
        node("n2", cpu="2"),
        node("n2", cpu="4"),
        False,
    ),
    ("NodeResourcesFit", "another node comes", WAITING, Action.ADD, None, node("n2"), False),
    ("NodeName", "any node comes", WAITING, Action.ADD, None, node("n2"), True),
    ("NodePorts", "any node comes", pod("w", containers=PORT), Action.ADD, None, node("n2"), True),
    ("NodeUnschedulable", "an open node comes", pod("w"), Action.ADD, None, node("n1"), True),
    ("NodeUnschedulable", "a cordoned node comes", pod("w"), Action.ADD, None, node("n1", unschedulable=True), False),
    (
        "NodeUnschedulable",
        "a cordon is lifted",
        pod("w"),
        Action.UPDATE_NODE_TAINT,
        node("n1", unschedulable=True),
        node("n1"),
        True,
    ),
    ("TaintToleration", "a tainted node comes", pod("w"), Action.ADD, None, node("n1", taints=TAINT), False),
    ("TaintToleration", "a taint goes", pod("w"), Action.UPDATE_NODE_TAINT, node("n1", taints=TAINT), node("n1"), True),
    (
        "TaintToleration",
        "a taint that it tolerated goes",
        pod("w", tolerations=TOLERATED),
        Action.UPDATE_NODE_TAINT,
        node("n1", taints=TAINT),
        node("n1"),
        False,
    ),
    ("NodeAffinity", "a node that suits comes", SSD, Action.ADD, None, node("n1", labels={"disk": "ssd"}), True),
    ("NodeAffinity", "a node that does not comes", SSD, Action.ADD, None, node("n1"), False),
    (
        "NodeAffinity",
        "a node begins to suit",
        SSD,
        Action.UPDATE_NODE_LABEL,
        node("n1"),
        node("n1", labels={"disk": "ssd"}),
        True,
    ),
    (
        "NodeAffinity",
        "a node suits as before",
        SSD,
        Action.UPDATE_NODE_LABEL,
        node("n1", labels={"disk": "ssd"}),
        node("n1", labels={"disk": "ssd", "a": "b"}),
        False,
    ),
    ("InterPodAffinity", "a node of some domain comes", FRIEND, Action.ADD, None, in_zone("a"), True),
    ("InterPodAffinity", "a node of none comes", FRIEND, Action.ADD, None, node("n1"), False),
    ("InterPodAffinity", "any node comes to a shy pod", SHY, Action.ADD, None, node("n1"), True),
    ("InterPodAffinity", "a node enters a domain", FRIEND, Action.UPDATE_NODE_LABEL, node("n1"), in_zone("a"), True),
    ("InterPodAffinity", "a node leaves the friend's domain", FRIEND, Action.UPDATE_NODE_LABEL, in_zone("a"), node("n1"), False),
    ("InterPodAffinity", "a node leaves the enemy's domain", SHY, Action.UPDATE_NODE_LABEL, in_zone("a"), node("n1"), True),
    ("InterPodAffinity", "a node enters the enemy's domain", SHY, Action.UPDATE_NODE_LABEL, node("n1"), in_zone("a"), False),
    ("PodTopologySpread", "a node of some domain comes", SPREADING, Action.ADD, None, in_zone("a"), True),
    ("PodTopologySpread", "a node of none comes", SPREADING, Action.ADD, None, node("n1"), False),
    ("PodTopologySpread", "a node of some domain goes", SPREADING, Action.DELETE, in_zone("a"), None, True),
    ("PodTopologySpread", "a node moves", SPREADING, Action.UPDATE_NODE_LABEL, in_zone("a"), in_zone("b"), True),
    (
        "PodTopologySpread",
        "another label changes",
        SPREADING,
        Action.UPDATE_NODE_LABEL,
        in_zone("a"),
        node("n1", labels={"zone": "a", "b": "c"}),
        False,
    ),
    (
        "PodTopologySpread",
        "a taint of a domain's node goes",
        SPREADING,
        Action.UPDATE_NODE_TAINT,
        in_zone("a", taints=TAINT),
        in_zone("a"),
        True,
    ),
    (
        "PodTopologySpread",
        "a taint elsewhere goes",
        SPREADING,
        Action.UPDATE_NODE_TAINT,
        node("n1", taints=TAINT),
        node("n1"),
        False,
    ),
    ("DeferredPodScheduling", "its node comes", WAITING, Action.ADD, None, node("n1"), True),
    ("DeferredPodScheduling", "another node comes", WAITING, Action.ADD, None, node("n2"), False),
    ("DeferredPodScheduling", "its node comes closed", WAITING, Action.ADD, None, node("n1", disabled=["me"]), False),
    (
        "DeferredPodScheduling",
        "the policy is lifted",
        WAITING,
        Action.UPDATE_NODE_PREEMPTION_POLICY,
        node("n1", disabled=["me"]),
        node("n1", disabled=[]),
        True,
    ),
    (
        "DeferredPodScheduling",
        "one of two owners withdraws",
        WAITING,
        Action.UPDATE_NODE_PREEMPTION_POLICY,
        node("n1", disabled=["me", "you"]),
        node("n1", disabled=["me"]),
        False,
    ),
    (
        "DeferredPodScheduling",
        "the policy is set",
        WAITING,
        Action.UPDATE_NODE_PREEMPTION_POLICY,
        node("n1"),
        node("n1", disabled=["me"]),
        False,
    ),
    (
        "DeferredPodScheduling",
        "another node's policy is lifted",
        WAITING,
        Action.UPDATE_NODE_PREEMPTION_POLICY,
        node("n2", disabled=["me"]),
        node("n2"),
        False,
    ),
]


def interest_of(plugin: str, resource: str, action: Action) -> Interest | None:
    # v1.37: the one that reads the node's policy itself
    plugins: list[Plugin] = plugins_of(profile_of("v1.37", {"InPlacePodVerticalScalingSchedulerPreemption": True}))
    (wanted,) = [each for each in plugins if each.name == plugin]
    found = [each for each in wanted.interests() if (each.resource, each.action) == (resource, action)]
    assert len(found) <= 1, "one hint for one event"
    return found[0] if found else None


def is_woken(plugin: str, resource: str, action: Action, waiting: Any, old: Any, new: Any) -> bool:
    interest = interest_of(plugin, resource, action)
    return interest is not None and (interest.hint is None or interest.hint(waiting, old, new))


@pytest.mark.parametrize(
    ("plugin", "what", "waiting", "action", "old", "new", "woken"), PODS, ids=lambda v: v if isinstance(v, str) else ""
)
def test_pods(
    plugin: str, what: str, waiting: Document, action: Action, old: Document | None, new: Document | None, woken: bool
) -> None:
    before, after = (info_of(each) if each is not None else None for each in (old, new))
    if before is not None and after is not None:
        assert action in [each.action for each in pod_events(ASSIGNED_POD, before, after)], "the change is no such event"
    assert is_woken(plugin, ASSIGNED_POD, action, info_of(waiting), before, after) is woken


@pytest.mark.parametrize(("plugin", "what", "action", "old", "new", "woken"), ITSELF, ids=lambda v: v if isinstance(v, str) else "")
def test_itself(plugin: str, what: str, action: Action, old: Document, new: Document, woken: bool) -> None:
    before, after = info_of(old), info_of(new)
    assert action in [each.action for each in pod_events(TARGET_POD, before, after)], "the change is no such event"
    assert is_woken(plugin, TARGET_POD, action, after, before, after) is woken


@pytest.mark.parametrize(
    ("plugin", "what", "waiting", "action", "old", "new", "woken"), NODES, ids=lambda v: v if isinstance(v, str) else ""
)
def test_nodes(
    plugin: str, what: str, waiting: Document, action: Action, old: Document | None, new: Document | None, woken: bool
) -> None:
    before, after = (node_of(each) if each is not None else None for each in (old, new))
    if before is not None and after is not None:
        assert action in [each.action for each in node_events(before, after)], "the change is no such event"
    assert is_woken(plugin, NODE, action, info_of(waiting), before, after) is woken


SILENT = (Action.UPDATE_NODE_CONDITION, Action.UPDATE_NODE_ANNOTATION)


def test_conditions_and_annotations_of_nodes_wake_nobody() -> None:
    plugins = plugins_of()
    assert Nobody().node("any") is None
    assert not [each for plugin in plugins for each in plugin.interests() if each.resource == NODE and each.action in SILENT]


@pytest.mark.parametrize(
    ("what", "old", "new", "actions"),
    [
        ("nothing", node("n"), node("n"), []),
        ("allocatable", node("n"), node("n", cpu="5"), [Action.UPDATE_NODE_ALLOCATABLE]),
        ("labels", node("n"), node("n", labels={"a": "b"}), [Action.UPDATE_NODE_LABEL]),
        ("taints", node("n"), node("n", taints=TAINT), [Action.UPDATE_NODE_TAINT]),
        ("uncordoned", node("n", unschedulable=True), node("n"), [Action.UPDATE_NODE_TAINT]),
        ("cordoned", node("n"), node("n", unschedulable=True), []),
        ("policy", node("n", disabled=["a"]), node("n", disabled=["a", "b"]), [Action.UPDATE_NODE_PREEMPTION_POLICY]),
    ],
)
def test_what_the_update_of_a_node_is_called(what: str, old: Document, new: Document, actions: list[Action]) -> None:
    assert [each.action for each in node_events(node_of(old), node_of(new))] == actions


def test_a_condition_is_another_when_its_status_is() -> None:
    def ready(status: str, reason: str) -> Any:
        document = node("n")
        document["status"]["conditions"] = [{"type": "Ready", "status": status, "reason": reason}]
        return node_of(document)

    assert node_events(ready("True", "a"), ready("True", "b")) == []
    assert [each.action for each in node_events(ready("True", "a"), ready("False", "a"))] == [Action.UPDATE_NODE_CONDITION]


def test_a_desire_that_falls_is_no_scale_down_until_the_kubelet_lets_go() -> None:
    running = pod("a", node="n1", cpu="2", allocated="2")
    asked = pod("a", node="n1", cpu="1", allocated="2")
    let_go = pod("a", node="n1", cpu="1", allocated="1")
    actions = [
        [each.action for each in pod_events(ASSIGNED_POD, info_of(old), info_of(new))]
        for old, new in ((running, asked), (asked, let_go), (let_go, asked | {"spec": running["spec"]}))
    ]
    assert actions == [[], [Action.UPDATE_POD_SCALE_DOWN], [Action.UPDATE_POD_SCALE_UP]]
