"""Upstream's KubeSchedulerConfiguration: what it changes, and what is refused."""

from typing import Any

import pytest
from scheduler_cluster import Cluster, node, pod

from elbowroom.api.gates import profile_of
from elbowroom.scheduler.config import POINTS_OF, SchedulerConfigError, parse

Document = dict[str, Any]


def profile(**fields: Any) -> Document:
    return {"profiles": [fields]}


def at(point: str, **plugins: Any) -> list[tuple[str, int]]:
    """The plugins at a point if these sets are configured there."""
    return list(parse(profile(plugins=plugins)).profiles[0].at[point])


def names(*wanted: str) -> list[Document]:
    return [{"name": name} for name in wanted]


def test_nothing_configured_is_upstreams_default() -> None:
    (only,) = parse({}).profiles
    assert only.name == "default-scheduler" and only.percentage == 0
    assert dict(only.at["score"]) == {
        "TaintToleration": 3,
        "NodeAffinity": 2,
        "NodeResourcesFit": 1,
        "VolumeBinding": 1,
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
    }
    everywhere = list(POINTS_OF)
    for plugins in only.at.values():
        assert [everywhere.index(name) for name, _ in plugins] == sorted(everywhere.index(name) for name, _ in plugins)


def test_a_plugin_is_disabled_and_weighed_at_one_point() -> None:
    scores = at("score", score={"disabled": names("ImageLocality"), "enabled": [{"name": "NodeAffinity", "weight": 9}]})
    assert scores[0] == ("NodeAffinity", 9)
    assert "ImageLocality" not in dict(scores) and dict(scores)["TaintToleration"] == 3
    assert ("NodeAffinity", 2) in at("filter", score={"enabled": [{"name": "NodeAffinity", "weight": 9}]})


def test_all_plugins_of_a_point_are_disabled_by_a_star() -> None:
    assert at("score", score={"disabled": names("*"), "enabled": names("ImageLocality")}) == [("ImageLocality", 1)]
    assert at("score", score={"disabled": names("*")}) == []


def test_a_plugin_disabled_everywhere_may_be_enabled_at_one_point() -> None:
    plugins = {"multiPoint": {"disabled": names("TaintToleration")}, "filter": {"enabled": names("TaintToleration")}}
    assert at("filter", **plugins)[-1] == ("TaintToleration", 3)
    assert "TaintToleration" not in dict(at("score", **plugins))


def args(plugin: str, **fields: Any) -> Document:
    return profile(pluginConfig=[{"name": plugin, "args": fields}])


CONSTRAINT: Document = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
CONSTRAINTS = "profiles[0].pluginConfig[0].args.defaultConstraints[0]"
ADDED = "profiles[0].pluginConfig[0].args.addedAffinity"


def constraint(**fields: Any) -> Document:
    return args("PodTopologySpread", defaultingType="List", defaultConstraints=[{**CONSTRAINT, **fields}])


def added(**fields: Any) -> Document:
    return args("NodeAffinity", addedAffinity=fields)


def term(operator: str = "Exists", key: str = "disk") -> Document:
    return {"matchExpressions": [{"key": key, "operator": operator}]}


@pytest.mark.parametrize(
    ("document", "finding"),
    [
        ({"colour": 1}, "config: Object contains unknown field `colour`"),
        ({"profiles": [{"schedulerName": 3}]}, "profiles[0].schedulerName: Expected `str`, got `int`"),
        ({"kind": "Pod"}, "kind: must be KubeSchedulerConfiguration"),
        ({"apiVersion": "v1"}, "apiVersion: must be kubescheduler.config.k8s.io/v1"),
        ({"profiles": []}, "profiles: there must be one"),
        ({"profiles": [{}, {}]}, "profiles[1].schedulerName: default-scheduler is there already"),
        (profile(schedulerName=""), "profiles[0].schedulerName: is missing"),
        ({"percentageOfNodesToScore": 101}, "percentageOfNodesToScore: 101 is not between 0 and 100"),
        (profile(percentageOfNodesToScore=-1), "profiles[0].percentageOfNodesToScore: -1 is not between 0 and 100"),
        ({"podInitialBackoffSeconds": 0}, "podInitialBackoffSeconds: must be greater than 0"),
        ({"podMaxBackoffSeconds": 1, "podInitialBackoffSeconds": 2}, "podMaxBackoffSeconds: must be greater than or equal to"),
        (
            profile(plugins={"score": {"enabled": names("Nope")}}),
            "profiles[0].plugins.score.enabled[0]: there is no plugin 'Nope'",
        ),
        (
            profile(plugins={"score": {"enabled": names("NodePorts")}}),
            "profiles[0].plugins.score.enabled[0]: NodePorts takes no part in score",
        ),
        (
            profile(plugins={"filter": {"enabled": names("NodePorts", "NodePorts")}}),
            "profiles[0].plugins.filter.enabled[1]: NodePorts is enabled twice",
        ),
        (
            profile(plugins={"filter": {"disabled": names("Nope")}}),
            "profiles[0].plugins.filter.disabled[0]: there is no plugin 'Nope'",
        ),
        (profile(plugins={"bind": {"disabled": names("*")}}), "profiles[0].plugins.bind: there must be a plugin"),
        (
            profile(plugins={"queueSort": {"disabled": names("PrioritySort")}}),
            "profiles[0].plugins.queueSort: there must be exactly one plugin",
        ),
        (profile(plugins={"filter": {"disabled": names("NodeName")}}), "profiles[0].plugins.filter: NodeName cannot be disabled"),
        (
            profile(plugins={"score": {"enabled": [{"name": "ImageLocality", "weight": -1}]}}),
            "profiles[0].plugins.score.enabled[0]: weight -1 makes no sense",
        ),
        (
            profile(pluginConfig=[{"name": "NodeName"}]),
            "profiles[0].pluginConfig[0].name: NodeName has no arguments here",
        ),
        (
            profile(pluginConfig=[{"name": "DefaultPreemption"}, {"name": "DefaultPreemption"}]),
            "profiles[0].pluginConfig[1]: DefaultPreemption is configured twice",
        ),
        (
            profile(pluginConfig=[{"name": "DefaultPreemption", "args": {"minCandidateNodesPercentage": 101}}]),
            "profiles[0].pluginConfig[0].args.minCandidateNodesPercentage: must be between 0 and 100",
        ),
        (
            profile(
                pluginConfig=[
                    {"name": "DefaultPreemption", "args": {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0}}
                ]
            ),
            "profiles[0].pluginConfig[0].args: both cannot be zero",
        ),
        (
            profile(pluginConfig=[{"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "Best"}}}]),
            "profiles[0].pluginConfig[0].args: Invalid enum value 'Best'",
        ),
        (
            profile(pluginConfig=[{"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "RequestedToCapacityRatio"}}}]),
            "profiles[0].pluginConfig[0].args.scoringStrategy.requestedToCapacityRatio.shape: at least one point",
        ),
        (
            profile(
                pluginConfig=[
                    {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"resources": [{"name": "cpu", "weight": 101}]}}}
                ]
            ),
            "profiles[0].pluginConfig[0].args.scoringStrategy.resources[0].weight: 101 is not between 1 and 100",
        ),
        ({"parallelism": 0}, "parallelism: should be an integer value greater than zero"),
        (args("NodeResourcesFit", kind="PodArgs"), "profiles[0].pluginConfig[0].args.kind: must be NodeResourcesFitArgs"),
        (args("NodeResourcesFit", apiVersion="v1"), "profiles[0].pluginConfig[0].args.apiVersion: must be kubescheduler"),
        (args("NodeResourcesFit", colour=1), "profiles[0].pluginConfig[0].args: Object contains unknown field `colour`"),
        (args("NodeResourcesFit", ignoredResources=["a b"]), "profiles[0].pluginConfig[0].args.ignoredResources[0]: 'a b' is no"),
        (
            args("NodeResourcesFit", ignoredResourceGroups=["example.com", "a/b"]),
            "profiles[0].pluginConfig[0].args.ignoredResourceGroups[1]: resource group name can't contain '/'",
        ),
        (
            args("NodeResourcesFit", scoringStrategy={"requestedToCapacityRatio": {"shape": []}}),
            "profiles[0].pluginConfig[0].args.scoringStrategy.requestedToCapacityRatio: must be nil when type is not",
        ),
        (
            args("NodeResourcesBalancedAllocation", resources=[{"name": "cpu", "weight": 2}]),
            "profiles[0].pluginConfig[0].args.resources[0].weight: must be 1",
        ),
        (
            args("NodeResourcesBalancedAllocation", resources=names("cpu", "cpu")),
            "profiles[0].pluginConfig[0].args.resources[1].name: cpu is there already",
        ),
        (
            args("InterPodAffinity", hardPodAffinityWeight=101),
            "profiles[0].pluginConfig[0].args.hardPodAffinityWeight: not in valid range [0, 100]",
        ),
        (
            args("PodTopologySpread", defaultConstraints=[CONSTRAINT]),
            "profiles[0].pluginConfig[0].args.defaultingType: when .defaultConstraints are not empty",
        ),
        (constraint(maxSkew=0), f"{CONSTRAINTS}.maxSkew: not in valid range (0, inf)"),
        (constraint(topologyKey=""), f"{CONSTRAINTS}.topologyKey: can not be empty"),
        (constraint(topologyKey="a b"), f"{CONSTRAINTS}.topologyKey: 'a b' is no key"),
        (constraint(whenUnsatisfiable="Never"), f"{CONSTRAINTS}.whenUnsatisfiable: must be DoNotSchedule or ScheduleAnyway"),
        (constraint(labelSelector={}), f"{CONSTRAINTS}.labelSelector: constraint must not define a selector"),
        (
            args("PodTopologySpread", defaultingType="List", defaultConstraints=[CONSTRAINT, CONSTRAINT]),
            "profiles[0].pluginConfig[0].args.defaultConstraints[1]: {zone, ScheduleAnyway} is there already",
        ),
        (
            added(requiredDuringSchedulingIgnoredDuringExecution={"nodeSelectorTerms": []}),
            f"{ADDED}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: there must be one",
        ),
        (
            added(preferredDuringSchedulingIgnoredDuringExecution=[{"weight": 1, "preference": term("is")}]),
            f"{ADDED}.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0].operator: is no operator",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_path(document: Document, finding: str) -> None:
    with pytest.raises(SchedulerConfigError) as refused:
        parse(document)
    assert str(refused.value).startswith(finding)


@pytest.mark.parametrize(("first", "second"), [(0, 0), (50, 40)])
def test_the_shape_of_a_ratio_rises(first: int, second: int) -> None:
    shape = [{"utilization": first, "score": 0}, {"utilization": second, "score": 10}]
    strategy = {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": {"shape": shape}}
    with pytest.raises(SchedulerConfigError, match="must be greater than the one before"):
        parse(profile(pluginConfig=[{"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}]))


# ---------------------------------------------------------------- what it does


def a_cluster(**config: Any) -> Cluster:
    return Cluster(profile_of("lab"), config=config)


def packing(name: str) -> Document:
    strategy = {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}
    plugins = {"score": {"disabled": names("*"), "enabled": names("NodeResourcesFit")}}
    return {
        "schedulerName": name,
        "plugins": plugins,
        "pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}],
    }


def test_each_profile_places_its_own_pods_in_its_own_way() -> None:
    cluster = a_cluster(profiles=[{}, packing("packer")]).nodes(node("empty"), node("used"))
    cluster.pods(pod("old", node="used", cpu="2"))
    cluster.pods(
        pod("spread", cpu="1"), pod("packed", cpu="1", schedulerName="packer"), pod("other", cpu="1", schedulerName="no")
    ).settle()
    assert cluster.node_of("spread") == "empty"
    assert cluster.node_of("other") == ""
    cluster.pods(pod("more", cpu="1", schedulerName="packer")).settle()
    assert cluster.node_of("packed") == "used"
    reporters = {
        each["involvedObject"]["name"]: each["reportingComponent"] for each in cluster.events if each["reason"] == "Scheduled"
    }
    assert reporters["spread"] == "default-scheduler" and reporters["packed"] == "packer"


def test_without_its_plugin_a_filter_says_nothing() -> None:
    tainted = node("n1", taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}])
    assert a_cluster().nodes(tainted).pods(pod("a", cpu="1")).settle().node_of("a") == ""
    off = {"profiles": [{"plugins": {"filter": {"disabled": names("TaintToleration")}}}]}
    assert a_cluster(**off).nodes(tainted).pods(pod("a", cpu="1")).settle().node_of("a") == "n1"


def test_without_its_plugin_nobody_is_preempted() -> None:
    off = {"profiles": [{"plugins": {"postFilter": {"disabled": names("DefaultPreemption")}}}]}
    cluster = (
        a_cluster(**off).nodes(node("n1", cpu="1")).pods(pod("low", node="n1", cpu="1"), pod("high", cpu="1", priority=9)).settle()
    )
    assert cluster.deleted() == []
    assert cluster.told("high", "FailedScheduling") == ["0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate"]


def test_the_back_off_is_configured() -> None:
    def tried_again_after(**config: Any) -> float:
        """A pod that is gated out of popping early is tried again once its back-off is over."""
        profile = profile_of("lab", {"SchedulerPopFromBackoffQ": False})
        cluster = Cluster(profile, config=config).nodes(node("n1", cpu="1")).pods(pod("a", cpu="2")).settle()
        began = cluster.now
        cluster.nodes(node("n1", cpu="2"))
        while not cluster.settle().node_of("a"):
            cluster.later(0.5)
        return (cluster.now - began) / 10**9

    assert tried_again_after() <= 2.5
    assert 4 <= tried_again_after(podInitialBackoffSeconds=5, podMaxBackoffSeconds=20) <= 6.5
    assert 2 <= tried_again_after(podInitialBackoffSeconds=3, podMaxBackoffSeconds=3) <= 4.5


def test_what_another_scheduler_looks_after_is_ignored() -> None:
    for fields, expected in (
        ({}, ""),
        ({"ignoredResources": ["example.com/x"]}, "n1"),
        ({"ignoredResourceGroups": ["example.com"]}, "n1"),
    ):
        cluster = a_cluster(**args("NodeResourcesFit", **fields)).nodes(node("n1"))
        cluster.pods(pod("a", requests={"cpu": "1", "example.com/x": "1"})).settle()
        assert cluster.node_of("a") == expected
    cluster = a_cluster(**args("NodeResourcesFit", ignoredResourceGroups=["example.com"])).nodes(node("n1"))
    assert cluster.pods(pod("b", cpu="50")).settle().node_of("b") == "", "cpu is nobody else's"


def test_the_scheduler_may_ask_for_nodes_beside_what_pods_ask_for() -> None:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term()]}}
    cluster = a_cluster(**added(**required)).nodes(node("n1")).pods(pod("a", cpu="1")).settle()
    assert cluster.told("a", "FailedScheduling")[0].startswith(
        "0/1 nodes are available: 1 node(s) didn't match scheduler-enforced node affinity."
    )
    cluster.nodes(node("n1", labels={"disk": "ssd"})).later(3)
    assert cluster.node_of("a") == "n1"
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 9, "preference": term()}]}
    both = a_cluster(**added(**preferred)).nodes(node("n1"), node("n2", labels={"disk": "ssd"}), node("n3"))
    assert both.pods(pod("a", cpu="1")).settle().node_of("a") == "n2"


def test_each_profile_wakes_its_pods_by_its_own_hints() -> None:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term()]}}
    strict = {"schedulerName": "strict", **added(**required)["profiles"][0]}
    cluster = a_cluster(profiles=[strict, {}]).nodes(node("n1"))
    cluster.pods(pod("a", cpu="1", schedulerName="strict", nodeSelector={"zone": "z"})).settle()
    cluster.nodes(node("n1", labels={"zone": "z"})).settle()
    assert cluster.attempts("a") == 1, "it would suit the default profile"
    cluster.nodes(node("n1", labels={"zone": "z", "disk": "ssd"})).settle()
    assert cluster.node_of("a") == "n1"


def test_default_constraints_may_be_a_condition() -> None:
    hard = {**CONSTRAINT, "whenUnsatisfiable": "DoNotSchedule"}
    cluster = a_cluster(**args("PodTopologySpread", defaultingType="List", defaultConstraints=[hard]))
    cluster.nodes(node("a", labels={"zone": "a"}), node("b", labels={"zone": "b"}, cpu="1"))
    cluster.put("services", {"metadata": {"name": "web", "namespace": "default"}, "spec": {"selector": {"app": "x"}}})
    cluster.pods(pod("o", node="a", labels={"app": "x"}), pod("full", node="b", cpu="1")).settle()
    cluster.pods(pod("member", cpu="1", labels={"app": "x"}), pod("stranger", cpu="1")).settle()
    assert (cluster.node_of("member"), cluster.node_of("stranger")) == ("", "a")
    assert "1 node(s) didn't match pod topology spread constraints" in cluster.told("member", "FailedScheduling")[0]


def test_what_pods_that_are_there_wish_for_may_count_for_nothing_and_what_they_must_have_for_more() -> None:
    near = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "kubernetes.io/hostname"}
    kinds = {
        "wish": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 50, "podAffinityTerm": near}]},
        "must": {"requiredDuringSchedulingIgnoredDuringExecution": [near]},
    }

    def placed(kind: str, **fields: Any) -> str:
        only = {"score": {"disabled": names("*"), "enabled": names("InterPodAffinity", "NodeResourcesFit")}}
        config = args("InterPodAffinity", **fields)
        config["profiles"][0]["plugins"] = only
        cluster = a_cluster(**config).nodes(node("n1"), node("n2"))
        cluster.pods(pod("o", node="n1", cpu="1", labels={"app": "x"}, affinity={"podAffinity": kinds[kind]}))
        return cluster.pods(pod("new", cpu="1", labels={"app": "x"})).settle().node_of("new")

    assert placed("wish") == placed("must") == "n1"
    assert placed("wish", ignorePreferredTermsOfExistingPods=True) == "n2"
    assert placed("must", hardPodAffinityWeight=0) == "n2"


def test_balance_may_be_sought_over_other_resources() -> None:
    args_of = args("NodeResourcesBalancedAllocation", resources=names("cpu", "example.com/x"))
    args_of["profiles"][0]["plugins"] = {"score": {"disabled": names("*"), "enabled": names("NodeResourcesBalancedAllocation")}}
    extended: Document = {"extended": {"example.com/x": "4"}}
    cluster = a_cluster(**args_of).nodes(node("even", **extended), node("odd", **extended))
    cluster.pods(pod("o", node="odd", requests={"cpu": "1", "example.com/x": "3"}))
    cluster.pods(pod("new", requests={"cpu": "2", "example.com/x": "1"})).settle()
    assert cluster.node_of("new") == "odd", "where it evens out what is used"
