"""What each plugin says of a pod and a node: upstream's tables in small."""

from typing import Any

import pytest
from scheduler_cluster import deferred, node, pod
from scheduler_worlds import info_of, plugins_of, refusal, scores, snapshot_of, world_of

from elbowroom.scheduler.cycle import feasible_to_find
from elbowroom.scheduler.framework import Code, Framework
from elbowroom.scheduler.plugins import ScoringStrategy
from elbowroom.scheduler.plugins.resources import Fit

U, UU = Code.UNSCHEDULABLE, Code.UNRESOLVABLE
HOST = "kubernetes.io/hostname"
DELAY = "InPlacePodVerticalScalingExclusiveCPUsScaleDownDelay"


def anti(key: str, operator: str = "Exists", values: Any = None, topology: str = HOST) -> dict[str, Any]:
    expression = {"key": key, "operator": operator, **({"values": values} if values else {})}
    term = {"labelSelector": {"matchExpressions": [expression]}, "topologyKey": topology}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def near(key: str, topology: str = "zone") -> dict[str, Any]:
    return {"podAffinity": anti(key, topology=topology)["podAntiAffinity"]}


def wants_node(*expressions: dict[str, Any], fields: Any = None) -> dict[str, Any]:
    term = {"matchExpressions": list(expressions), **({"matchFields": fields} if fields else {})}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def tolerates(**fields: str) -> list[dict[str, str]]:
    return [fields]


TAINTED = node("n1", taints=[{"key": "foo", "value": "bar", "effect": "NoSchedule"}])
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "x"}}}
ports = [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}]
other_ports = [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80, "hostIP": "10.0.0.1"}]}]

FILTERS: list[tuple[str, dict[str, Any], dict[str, Any], list[dict[str, Any]], tuple[Code, tuple[str, ...]] | None]] = [
    (
        "equality fits",
        pod("a", cpu="50m", memory="10Mi"),
        node("n1", "100m", "200Mi"),
        [pod("o", node="n1", cpu="50m", memory="190Mi")],
        None,
    ),
    (
        "a pod that needs a feature goes where it is declared",
        pod("a", scaleDownGracePeriodSeconds=5),
        node("n1", declared=[DELAY]),
        [],
        None,
    ),
    (
        "and nowhere else",
        pod("a", scaleDownGracePeriodSeconds=0),
        node("n1", declared=["InPlacePodLevelResourcesVerticalScaling"]),
        [],
        (UU, ("node(s) didn't match Pod's required features",)),
    ),
    (
        "every resource that falls short is named",
        pod("a", cpu="10m", memory="10Mi"),
        node("n1", "100m", "200Mi"),
        [pod("o", node="n1", cpu="100m", memory="200Mi")],
        (U, ("Insufficient cpu", "Insufficient memory")),
    ),
    (
        "more than the whole node is beyond help",
        pod("a", requests={"example.com/x": "10"}),
        node("n1", extended={"example.com/x": "5"}),
        [],
        (UU, ("Insufficient example.com/x",)),
    ),
    ("no slot", pod("a"), node("n1", pods="1"), [pod("o", node="n1")], (U, ("Too many pods",))),
    ("a huge request never fits", pod("a", memory="100E"), node("n1"), [], (UU, ("Insufficient memory",))),
    ("cordoned", pod("a"), node("n1", unschedulable=True), [], (UU, ("node(s) were unschedulable",))),
    (
        "a cordon is tolerated",
        pod("a", tolerations=tolerates(key="node.kubernetes.io/unschedulable", operator="Exists")),
        node("n1", unschedulable=True),
        [],
        None,
    ),
    ("tainted", pod("a"), TAINTED, [], (UU, ("node(s) had untolerated taint(s)",))),
    (
        "another effect is tolerated",
        pod("a", tolerations=tolerates(key="foo", operator="Equal", value="bar", effect="PreferNoSchedule")),
        TAINTED,
        [],
        (UU, ("node(s) had untolerated taint(s)",)),
    ),
    ("no effect tolerates all", pod("a", tolerations=tolerates(key="foo", value="bar")), TAINTED, [], None),
    ("no key tolerates all", pod("a", tolerations=tolerates(operator="Exists")), TAINTED, [], None),
    (
        "another value",
        pod("a", tolerations=tolerates(key="foo", value="baz")),
        TAINTED,
        [],
        (UU, ("node(s) had untolerated taint(s)",)),
    ),
    (
        "nodeSelector",
        pod("a", nodeSelector={"disk": "ssd"}),
        node("n1"),
        [],
        (UU, ("node(s) didn't match Pod's node affinity/selector",)),
    ),
    (
        "Gt",
        pod("a", affinity=wants_node({"key": "gen", "operator": "Gt", "values": ["3"]})),
        node("n1", labels={"gen": "4"}),
        [],
        None,
    ),
    (
        "Gt with words",
        pod("a", affinity=wants_node({"key": "gen", "operator": "Gt", "values": ["3"]})),
        node("n1", labels={"gen": "four"}),
        [],
        (UU, ("node(s) didn't match Pod's node affinity/selector",)),
    ),
    (
        "a term without expressions matches nothing",
        pod("a", affinity=wants_node()),
        node("n1"),
        [],
        (UU, ("node(s) didn't match Pod's node affinity/selector",)),
    ),
    (
        "a port in use",
        pod("a", containers=ports),
        node("n1"),
        [pod("o", node="n1", containers=other_ports)],
        (U, ("node(s) didn't have free ports for the requested pod ports",)),
    ),
    (
        "own anti-affinity",
        pod("a", affinity=anti("shy")),
        node("n1"),
        [pod("o", node="n1", labels={"shy": "y"})],
        (U, ("node(s) didn't match pod anti-affinity rules",)),
    ),
    (
        "another pod's anti-affinity",
        pod("a", labels={"shy": "y"}),
        node("n1"),
        [pod("o", node="n1", affinity=anti("shy"))],
        (U, ("node(s) didn't satisfy existing pods anti-affinity rules",)),
    ),
    (
        "anti-affinity of another namespace",
        pod("a", labels={"shy": "y"}),
        node("n1"),
        [pod("o", node="n1", affinity=anti("shy"), namespace="elsewhere")],
        None,
    ),
    (
        "nobody to be near to",
        pod("a", affinity=near("friend")),
        node("n1", labels={"zone": "z"}),
        [],
        (UU, ("node(s) didn't match pod affinity rules",)),
    ),
    (
        "the first of its own group",
        pod("a", labels={"friend": "y"}, affinity=near("friend")),
        node("n1", labels={"zone": "z"}),
        [],
        None,
    ),
    (
        "a friend",
        pod("a", affinity=near("friend")),
        node("n1", labels={"zone": "z"}),
        [pod("o", node="n1", labels={"friend": "y"})],
        None,
    ),
    (
        "no such domain",
        pod("a", labels={"friend": "y"}, affinity=near("friend")),
        node("n1"),
        [],
        (UU, ("node(s) didn't match pod affinity rules",)),
    ),
    (
        "no label to spread by",
        pod("a", labels={"app": "x"}, topologySpreadConstraints=[SPREAD]),
        node("n1"),
        [],
        (UU, ("node(s) didn't match pod topology spread constraints (missing required label)",)),
    ),
    (
        "a resize of more than the node",
        deferred("a", "n1", "200m", "50m"),
        node("n1", "100m"),
        [],
        (UU, ("Insufficient cpu",)),
    ),
]


@pytest.mark.parametrize(("why", "incoming", "host", "others", "expected"), FILTERS, ids=[each[0] for each in FILTERS])
def test_filters(why: str, incoming: dict[str, Any], host: dict[str, Any], others: list[dict[str, Any]], expected: Any) -> None:
    there = [incoming, *others] if "nodeName" in incoming["spec"] else others
    status = refusal(incoming, [host], there)
    assert (None if status is None else (status.code, status.reasons)) == expected


def test_spread_counts_domains_with_the_label_only_and_no_ending_pods() -> None:
    nodes = [
        node(f"n{n}", labels=labels)
        for n, labels in enumerate([{"zone": "a"}, {"zon": "a"}, {"zone": "b"}, {"zone": "b"}], start=1)
    ]
    pods = [pod(f"o{n}", node=f"n{n}", labels={"app": "x"}) for n in range(1, 5)]
    new = pod("new", labels={"app": "x"}, topologySpreadConstraints=[SPREAD])
    verdicts = [refusal(new, nodes, pods, on=f"n{n}") for n in range(1, 5)]
    assert [status is None for status in verdicts] == [True, False, False, False]
    pods[0]["metadata"]["deletionTimestamp"] = pods[3]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert refusal(new, nodes, pods, on="n3") is not None
    assert refusal(new, nodes, [pods[0]], on="n3") is None


def test_too_few_domains_make_the_minimum_zero() -> None:
    nodes = [node("n1", labels={"zone": "a"})]
    pods = [pod("o", node="n1", labels={"app": "x"})]
    new = pod("new", labels={"app": "x"}, topologySpreadConstraints=[SPREAD])
    assert refusal(new, nodes, pods) is None
    new["spec"]["topologySpreadConstraints"] = [{**SPREAD, "minDomains": 2}]
    assert refusal(new, nodes, pods) is not None


def test_a_namespace_selector_reaches_other_namespaces() -> None:
    term = anti("shy")
    term["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]["namespaceSelector"] = {
        "matchLabels": {"team": "a"}
    }
    others = [pod("o", node="n1", labels={"shy": "y"}, namespace="elsewhere")]
    new = pod("a", affinity=term)
    assert refusal(new, [node("n1")], others, namespaces={"elsewhere": {"team": "b"}}) is None
    assert refusal(new, [node("n1")], others, namespaces={"elsewhere": {"team": "a"}}) is not None


def test_names_in_match_fields_leave_the_other_nodes_unasked() -> None:
    import random

    from elbowroom.scheduler.cycle import Cycle, Unschedulable

    wanted = wants_node(fields=[{"key": "metadata.name", "operator": "In", "values": ["n1"]}])
    world = world_of([node("n1", unschedulable=True), node("n2"), node("n3")])
    decision = Cycle(Framework.of(plugins_of()), random.Random(0)).attempt(info_of(pod("a", affinity=wanted)), world)
    assert isinstance(decision, Unschedulable)
    assert decision.diagnosis.message() == (
        "0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    )


def test_a_resize_asks_only_the_plugins_that_look_at_resizes() -> None:
    hostile = node("n1", "300m", unschedulable=True, taints=[{"key": "k", "effect": "NoExecute"}])
    picky = deferred("a", "n1", "300m", "100m", nodeSelector={"no": "such"}, affinity=anti("shy"), labels={"shy": "y"})
    assert refusal(picky, [hostile], [picky, pod("o", node="n1", labels={"shy": "y"})]) is None


def test_the_whole_node_must_hold_every_desire_for_a_resize_to_fit() -> None:
    grower = deferred("grower", "n1", "200m", "100m", requests={"cpu": "200m", "memory": "1Gi"})
    hungry = pod("hungry", node="n1", memory="8Gi")
    status = refusal(grower, [node("n1")], [grower, hungry])
    assert status is not None and status.reasons == ("Insufficient memory",)
    cpu_only = deferred("grower", "n1", "200m", "100m")
    assert refusal(cpu_only, [node("n1")], [cpu_only, hungry]) is None


SCORES = [
    (
        "NodeResourcesFit",
        pod("a", cpu="1", memory="2Gi"),
        [node("n1"), node("n2")],
        [pod("o", node="n1", cpu="2", memory="4Gi")],
        [25, 75],
    ),
    (
        "NodeResourcesFit",
        pod("a", containers=[{"name": n, "resources": {"requests": {"cpu": "50m"}}} for n in "xy"]),
        [node("n1", "2", "256Mi"), node("n2", "1", "8Gi")],
        [],
        [47, 92],
    ),
    (
        "NodeResourcesBalancedAllocation",
        pod("a", memory="1000Mi"),
        [node("n1", "200m", "1000Mi"), node("n2", "200m", "1000Mi")],
        [pod("o", node="n1", cpu="200m")],
        [100, 50],
    ),
    ("NodeResourcesBalancedAllocation", pod("a"), [node("n1")], [], None),
    ("TaintToleration", pod("a"), [node("n1"), node("n2")], [], None),
    (
        "TaintToleration",
        pod("a", tolerations=tolerates(key="foo", value="bar", effect="PreferNoSchedule")),
        [
            node(f"n{n}", taints=[{"key": "foo", "value": value, "effect": "PreferNoSchedule"}])
            for n, value in enumerate(("bar", "baz"))
        ],
        [],
        [100, 0],
    ),
    (
        "NodeAffinity",
        pod(
            "a",
            affinity={
                "nodeAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 4, "preference": {"matchExpressions": [{"key": "x", "operator": "Exists"}]}},
                        {"weight": 1, "preference": {"matchExpressions": [{"key": "y", "operator": "Exists"}]}},
                    ]
                }
            },
        ),
        [node("n1", labels={"x": ""}), node("n2", labels={"y": ""}), node("n3")],
        [],
        [100, 25, 0],
    ),
    (
        "InterPodAffinity",
        pod(
            "a",
            affinity={
                "podAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 5, "podAffinityTerm": {"labelSelector": {"matchLabels": {"f": "y"}}, "topologyKey": HOST}}
                    ]
                }
            },
        ),
        [node("n1"), node("n2")],
        [pod("o", node="n2", labels={"f": "y"})],
        [0, 100],
    ),
    (
        "PodTopologySpread",
        pod(
            "a",
            labels={"app": "x"},
            topologySpreadConstraints=[{**SPREAD, "topologyKey": HOST, "whenUnsatisfiable": "ScheduleAnyway"}],
        ),
        [node("n1"), node("n2")],
        [pod(f"o{n}", node="n1", labels={"app": "x"}) for n in range(3)],
        [0, 100],
    ),
]


@pytest.mark.parametrize(("plugin", "incoming", "nodes", "pods", "expected"), SCORES)
def test_scores(plugin: str, incoming: dict[str, Any], nodes: Any, pods: Any, expected: Any) -> None:
    assert scores(plugin, incoming, nodes, pods) == expected


def test_images_attract_pods() -> None:
    with_image = node("n2")
    with_image["status"]["images"] = [{"names": ["pause:latest"], "sizeBytes": 900 * 1024 * 1024}]
    found = scores("ImageLocality", pod("a"), [node("n1"), with_image])
    assert found is not None and found[0] == 0 and found[1] > 40
    assert scores("ImageLocality", pod("a"), [node("n1")]) is None


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (ScoringStrategy("MostAllocated"), [75, 25]),
        (ScoringStrategy("RequestedToCapacityRatio", {"cpu": 1}, ((0, 0), (100, 10))), [75, 25]),
        (ScoringStrategy("RequestedToCapacityRatio", {"cpu": 1, "memory": 3}, ((0, 10), (50, 0))), [0, 50]),
    ],
)
def test_the_other_scoring_strategies(strategy: ScoringStrategy, expected: list[int]) -> None:
    snapshot = snapshot_of([node("n1"), node("n2")], [pod("o", node="n1", cpu="2", memory="4Gi")])
    scorer = Fit(strategy).pre_score(info_of(pod("a", cpu="1", memory="2Gi")), snapshot.nodes, snapshot)
    assert scorer is not None
    assert [scorer.score(each) for each in snapshot.nodes] == expected


@pytest.mark.parametrize(
    ("nodes", "percentage", "expected"),
    [(99, 0, 99), (100, 0, 100), (1000, 0, 420), (6000, 0, 300), (1000, 100, 1000), (1000, 30, 300)],
)
def test_how_many_feasible_nodes_are_enough(nodes: int, percentage: int, expected: int) -> None:
    assert feasible_to_find(nodes, percentage) == expected
