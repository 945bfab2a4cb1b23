"""Jobs in the registry: policies, indexes that may fail only so often, and what may change while they are suspended."""

from typing import Any

import pytest
from apiserver_world import World

from elbowroom.rpc import MERGE_PATCH

CODES = {"operator": "In", "values": [1]}
VICTIMS = {"type": "DisruptionTarget"}
POLICY = "spec.podFailurePolicy"
SUCCESS = "spec.successPolicy"
AT_MOST = "must be less than or equal to"
PARTS = "the fragment \"0-1-2\" violates the requirement that an index interval can have at most two parts separated by '-'"


def a_template(**spec: Any) -> dict[str, Any]:
    return {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}], **spec}}


def a_job(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "j"}, "spec": {"template": a_template(), **spec}}


def with_rules(*rules: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return a_job(podFailurePolicy={"rules": list(rules)}, **spec)


def indexed(completions: int = 3, **spec: Any) -> dict[str, Any]:
    return a_job(completionMode="Indexed", completions=completions, **spec)


def enough(**rule: Any) -> dict[str, Any]:
    return indexed(successPolicy={"rules": [rule]})


@pytest.fixture
def world() -> World:
    return World()


def test_a_job_with_a_failure_policy_replaces_pods_that_have_failed_and_seeks_conditions_that_hold(world: World) -> None:
    made = world.create("jobs.batch", with_rules({"action": "Ignore", "onPodConditions": [VICTIMS]}), "default").body
    assert made["spec"]["podReplacementPolicy"] == "Failed"
    assert made["spec"]["podFailurePolicy"]["rules"][0]["onPodConditions"] == [{**VICTIMS, "status": "True"}]


def test_where_each_index_may_fail_so_often_the_job_may_fail_as_often_as_it_likes(world: World) -> None:
    made = world.create("jobs.batch", indexed(backoffLimitPerIndex=1, maxFailedIndexes=2), "default").body
    assert made["spec"]["backoffLimit"] == 2_147_483_647


@pytest.mark.parametrize(
    ("document", "causes"),
    [
        (
            with_rules({"onExitCodes": CODES}),
            [f'{POLICY}.rules[0].action: Required value: valid values: ["Count" "FailIndex" "FailJob" "Ignore"]'],
        ),
        (
            with_rules({"action": "Odd", "onExitCodes": CODES}),
            [f'{POLICY}.rules[0].action: Unsupported value: "Odd": supported values: "Count", "FailIndex", "FailJob", "Ignore"'],
        ),
        (
            with_rules({"action": "FailIndex", "onExitCodes": CODES}),
            [f'{POLICY}.rules[0].action: Invalid value: "FailIndex": requires the backoffLimitPerIndex to be set'],
        ),
        (
            with_rules({"action": "Count"}),
            [f"{POLICY}.rules[0]: Invalid value: specifying one of OnExitCodes and OnPodConditions is required"],
        ),
        (
            with_rules({"action": "Count", "onExitCodes": CODES, "onPodConditions": [VICTIMS]}),
            [f"{POLICY}.rules[0]: Invalid value: specifying both OnExitCodes and OnPodConditions is not supported"],
        ),
        (
            with_rules({"action": "Count", "onExitCodes": {"operator": "In", "values": [3, 0, 3]}}),
            [
                f"{POLICY}.rules[0].onExitCodes.values[1]: Invalid value: 0: must not be 0 for the In operator",
                f"{POLICY}.rules[0].onExitCodes.values[2]: Duplicate value: 3",
                f"{POLICY}.rules[0].onExitCodes.values: Invalid value: [3,0,3]: must be ordered",
            ],
        ),
        (
            with_rules({"action": "Count", "onExitCodes": {"operator": "Near", "values": [], "containerName": "x"}}),
            [
                f'{POLICY}.rules[0].onExitCodes.operator: Unsupported value: "Near": supported values: "In", "NotIn"',
                f'{POLICY}.rules[0].onExitCodes.containerName: Invalid value: "x": must be one of the container or initContainer '
                "names in the pod template",
                f"{POLICY}.rules[0].onExitCodes.values: Invalid value: []: at least one value is required",
            ],
        ),
        (
            with_rules({"action": "Count", "onPodConditions": [{"type": "Ready", "status": "Maybe"}]}),
            [
                f'{POLICY}.rules[0].onPodConditions[0].status: Unsupported value: "Maybe": supported values: '
                '"False", "True", "Unknown"'
            ],
        ),
        (
            with_rules(*[{"action": "Count", "onExitCodes": CODES}] * 21),
            [f"{POLICY}.rules: Too many: 21: must have at most 20 items"],
        ),
        (
            with_rules({"action": "Count", "onExitCodes": CODES}, podReplacementPolicy="TerminatingOrFailed"),
            ['spec.podReplacementPolicy: Unsupported value: "TerminatingOrFailed": supported values: "Failed"'],
        ),
        (
            a_job(podReplacementPolicy="Never"),
            ['spec.podReplacementPolicy: Unsupported value: "Never": supported values: "Failed", "TerminatingOrFailed"'],
        ),
        (
            with_rules({"action": "Count", "onExitCodes": CODES}, template=a_template(restartPolicy="OnFailure")),
            [
                'spec.template.spec.restartPolicy: Invalid value: "OnFailure": only "Never" is supported when podFailurePolicy is '
                "specified"
            ],
        ),
        (a_job(backoffLimitPerIndex=1), ["spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode"]),
        (indexed(maxFailedIndexes=1), ["spec.backoffLimitPerIndex: Required value: when maxFailedIndexes is specified"]),
        (
            indexed(backoffLimitPerIndex=0, maxFailedIndexes=4),
            [f"spec.maxFailedIndexes: Invalid value: 4: {AT_MOST} completions"],
        ),
        (
            indexed(100_001, backoffLimitPerIndex=0, parallelism=10_001),
            [
                "spec.maxFailedIndexes: Required value: must be specified when completions is above 100000",
                f"spec.parallelism: Invalid value: 10001: {AT_MOST} 10000 when completions are above 100000 and used with backoff "
                "limit per index",
            ],
        ),
        (
            a_job(successPolicy={"rules": [{"succeededCount": 1}]}),
            [f'{SUCCESS}: Invalid value: {{"rules":[{{"succeededCount":1}}]}}: requires indexed completion mode'],
        ),
        (
            indexed(successPolicy={"rules": []}),
            [f"{SUCCESS}.rules: Required value: at least one rules must be specified when the successPolicy is specified"],
        ),
        (enough(), [f"{SUCCESS}.rules[0]: Required value: at least one of succeededCount or succeededIndexes must be specified"]),
        (
            enough(succeededCount=4),
            [f"{SUCCESS}.rules[0].succeededCount: Invalid value: 4: {AT_MOST} 3 (the number of specified completions)"],
        ),
        (
            enough(succeededIndexes="0-1", succeededCount=3),
            [
                f"{SUCCESS}.rules[0].succeededCount: Invalid value: 3: {AT_MOST} 2 (the number of indexes in the specified "
                "succeededIndexes field)"
            ],
        ),
        *(
            (
                enough(succeededIndexes=text),
                [f'{SUCCESS}.rules[0].succeededIndexes: Invalid value: "{text}": error parsing succeededIndexes: {why}'],
            )
            for text, why in (
                ("1,0", "non-increasing order, previous: 1, current: 0"),
                ("2-1", "non-increasing order, previous: 2, current: 1"),
                ("3", 'too large index: "3"'),
                ("x", 'cannot convert string to integer for index: "x"'),
                (
                    "0-1-2",
                    PARTS,
                ),
            )
        ),
        (
            {**indexed(12), "metadata": {"name": "j" * 62}},
            [
                f'metadata.name: Invalid value: "{"j" * 62}": will not able to create pod with invalid DNS label: {"j" * 62}-11',
            ],
        ),
        (
            a_job(template={**a_template(), "metadata": {"labels": {"job-name": "mine"}}}),
            ["spec.template.metadata.labels[job-name]: Invalid value: "],
        ),
    ],
)
def test_what_is_refused_of_a_job(world: World, document: dict[str, Any], causes: list[str]) -> None:
    answer = world.create("jobs.batch", document, "default")
    assert answer.status == 422
    found = [f"{cause['field']}: {cause['message']}" for cause in answer.body["details"]["causes"]]
    assert len(found) == len(causes)
    assert all(said.startswith(wanted) for said, wanted in zip(found, causes, strict=True)), found


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("podFailurePolicy", {"rules": []}),
        ("successPolicy", {"rules": [{"succeededCount": 1}]}),
        ("backoffLimitPerIndex", 2),
        ("managedBy", "example.com/me"),
    ],
)
def test_what_an_end_means_is_said_once(world: World, name: str, value: Any) -> None:
    assert world.create("jobs.batch", indexed(), "default").status == 201
    answer = world.patch("jobs.batch", "j", {"spec": {name: value}}, namespace="default", kind=MERGE_PATCH)
    assert answer.status == 422
    assert f"spec.{name}" in [cause["field"] for cause in answer.body["details"]["causes"]]
    assert "field is immutable" in answer.body["message"]


# ---------------------------------------------------------------- a suspended job


def changed(world: World, **spec: Any) -> Any:
    return world.patch("jobs.batch", "j", {"spec": {"template": {"spec": spec}}}, namespace="default", kind=MERGE_PATCH)


def resources(cpu: str, image: str = "i") -> list[dict[str, Any]]:
    return [{"name": "c", "image": image, "resources": {"requests": {"cpu": cpu}}}]


def test_a_suspended_job_may_ask_for_other_resources_and_other_nodes_and_for_nothing_else(world: World) -> None:
    assert world.create("jobs.batch", a_job(suspend=True), "default").status == 201
    assert changed(world, containers=resources("100m")).status == 200
    assert changed(world, nodeSelector={"disk": "fast"}, tolerations=[{"operator": "Exists"}]).status == 200
    wanted = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}]}
    assert changed(world, affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": wanted}}).status == 200
    assert changed(world, affinity=None).status == 200
    refused = changed(world, containers=resources("100m", image="other"))
    assert [cause["field"] for cause in refused.body["details"]["causes"]] == ["spec.template.spec"]


def test_a_job_that_is_not_suspended_keeps_its_template(world: World) -> None:
    assert world.create("jobs.batch", a_job(), "default").status == 201
    refused = changed(world, containers=resources("100m"))
    assert [cause["field"] for cause in refused.body["details"]["causes"]] == ["spec.template"]


def test_a_suspended_job_that_has_pods_keeps_its_template(world: World) -> None:
    assert world.create("jobs.batch", a_job(suspend=True), "default").status == 201
    status = {"status": {"startTime": "2026-11-30T00:00:00Z", "active": 1}}
    assert world.patch("jobs.batch", "j", status, namespace="default", kind=MERGE_PATCH, subresource="status").status == 200
    assert changed(world, containers=resources("100m")).status == 422
