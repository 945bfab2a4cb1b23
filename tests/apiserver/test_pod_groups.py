"""Workloads and PodGroups: served where the gate GenericWorkload is on, with upstream's words for what is wrong."""

from typing import Any

import pytest
from apiserver_world import Answer, World
from msgspec.structs import replace

from elbowroom.api.gates import profile_of
from elbowroom.apiserver import discovery
from elbowroom.rpc import MERGE_PATCH, requests

GANG = {"gang": {"minCount": 2}}
GROUPS, WORKLOADS, CLASSES = "podgroups.scheduling.k8s.io", "workloads.scheduling.k8s.io", "priorityclasses.scheduling.k8s.io"


class Groups:
    """An API server with the gate on (or off)."""

    def __init__(self, is_on: bool = True) -> None:
        gates = {"GenericWorkload": is_on}
        self.world = World(gates=gates)

    def create(self, spec: Any, resource: str = GROUPS, name: str = "g") -> Answer:
        request = requests.create(resource, {"metadata": {"name": name}, "spec": spec}, namespace="default")
        return self.world.ask(replace(request, version="v1beta1"))

    def patch(self, spec: Any, resource: str = GROUPS, subresource: str = "") -> Answer:
        body = {"status": spec} if subresource else {"spec": spec}
        request = requests.patch(resource, "g", body, namespace="default", kind=MERGE_PATCH, subresource=subresource)
        return self.world.ask(replace(request, version="v1beta1"))


def test_without_the_gate_there_is_no_such_resource() -> None:
    assert Groups(is_on=False).create({"schedulingPolicy": GANG}).status == 404
    plain, more = discovery.built_in(()), discovery.built_in(("GenericWorkload",))
    assert [each.qualified for each in more if each not in plain] == [GROUPS, WORKLOADS]


def test_a_group_has_a_mode_a_priority_and_no_status_of_its_makers() -> None:
    groups = Groups()
    groups.world.create(CLASSES, {"metadata": {"name": "high"}, "value": 7})
    made = groups.create({"schedulingPolicy": GANG, "priorityClassName": "high"}).body
    assert made["apiVersion"] == "scheduling.k8s.io/v1beta1" and made["kind"] == "PodGroup"
    assert made["spec"] == {
        "schedulingPolicy": GANG,
        "disruptionMode": {"single": {}},
        "priorityClassName": "high",
        "priority": 7,
    }
    condition = {
        "type": "PodGroupInitiallyScheduled",
        "status": "True",
        "reason": "x",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    told = groups.patch({"conditions": [{**condition, "message": ""}]}, subresource="status").body
    assert told["status"]["conditions"][0]["type"] == "PodGroupInitiallyScheduled"
    assert groups.patch({"schedulingPolicy": {"gang": {"minCount": 3}}}).body["status"] == told["status"]


def test_the_priority_is_the_classes() -> None:
    groups = Groups()
    assert groups.create({"schedulingPolicy": GANG}).body["spec"]["priority"] == 0
    assert (
        "no PriorityClass with name none was found"
        in groups.create({"schedulingPolicy": GANG, "priorityClassName": "none"}, name="h").body["message"]
    )
    refused = groups.create({"schedulingPolicy": GANG, "priority": 5}, name="h").body["message"]
    assert (
        "priority set in the pod group (5) must match the priority computed (0) based on the priority class set in the spec"
        in refused
    )


@pytest.mark.parametrize(
    ("spec", "causes"),
    [
        ({}, ['spec.schedulingPolicy: Invalid value: "": must specify one of: `basic`, `gang`']),
        (
            {"schedulingPolicy": {"basic": {}, **GANG}},
            ['spec.schedulingPolicy: Invalid value: "{basic, gang}": must specify exactly one of: `basic`, `gang`'],
        ),
        ({"schedulingPolicy": {"gang": {}}}, ["spec.schedulingPolicy.gang.minCount: Required value"]),
        (
            {"schedulingPolicy": {"gang": {"minCount": -1}}},
            ["spec.schedulingPolicy.gang.minCount: Invalid value: -1: must be greater than or equal to 1"],
        ),
        (
            {"schedulingPolicy": GANG, "disruptionMode": {"single": {}, "all": {}}},
            ['spec.disruptionMode: Invalid value: "{single, all}": must specify exactly one of: `single`, `all`'],
        ),
        (
            {"schedulingPolicy": GANG, "workloadRef": {"workloadName": "w"}},
            ["spec.workloadRef.templateName: Required value"],
        ),
        (
            {"schedulingPolicy": GANG, "preemptionPolicy": "Never", "parentCompositePodGroupName": "p"},
            ["spec.parentCompositePodGroupName: Forbidden", "spec.preemptionPolicy: Forbidden"],
        ),
    ],
)
def test_what_is_wrong_with_a_group(spec: Any, causes: list[str]) -> None:
    refused = Groups().create(spec)
    assert refused.status == 422
    assert [f"{each['field']}: {each['message']}" for each in refused.body["details"]["causes"]] == causes


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"schedulingPolicy": {"gang": {"minCount": 5}}}, ""),
        ({"schedulingPolicy": {"gang": None, "basic": {}}}, "spec.schedulingPolicy.gang: field cannot be cleared once set"),
        ({"disruptionMode": {"single": None, "all": {}}}, "spec.disruptionMode: field is immutable"),
        ({"workloadRef": {"workloadName": "w", "templateName": "t"}}, "spec.workloadRef: field is immutable"),
    ],
)
def test_of_a_group_only_the_number_of_its_gang_may_change(change: Any, cause: str) -> None:
    groups = Groups()
    groups.create({"schedulingPolicy": GANG})
    answer = groups.patch(change)
    assert answer.status == (422 if cause else 200)
    if cause:
        found = [f"{each['field']}: {each['message'].rpartition(': ')[2]}" for each in answer.body["details"]["causes"]]
        assert cause in found
    else:
        assert answer.body["metadata"]["generation"] == 2


def test_a_workload_has_named_templates_which_stay() -> None:
    groups = Groups()
    template = {"name": "t", "schedulingPolicy": GANG}
    assert groups.create({"podGroupTemplates": [template]}, WORKLOADS).status == 201
    refused = groups.patch({"podGroupTemplates": [{**template, "name": "other"}]}, WORKLOADS)
    assert [f"{each['field']}: {each['message']}" for each in refused.body["details"]["causes"]] == [
        "spec.podGroupTemplates[0]: Forbidden: item may not be added",
        "spec.podGroupTemplates: Forbidden: item may not be removed",
    ]
    many = groups.create({"podGroupTemplates": [{**template, "name": f"t{number}"} for number in range(9)]}, WORKLOADS, "h")
    assert many.body["details"]["causes"][0]["message"] == "Too many: 9: must have at most 8 items"
    none = groups.create({}, WORKLOADS, "h")
    text = 'Invalid value: "": must specify one of: `podGroupTemplates`, `compositePodGroupTemplates`'
    assert [each["message"] for each in none.body["details"]["causes"]] == [text]
    twice = groups.create({"podGroupTemplates": [template, template]}, WORKLOADS, "h")
    assert twice.body["details"]["causes"][0]["message"].startswith("Duplicate value")


def test_gates_are_those_of_the_profile() -> None:
    assert not profile_of("lab").on("GenericWorkload") and not profile_of("v1.37").on("GenericWorkload")
