"""What a node may say of itself, in upstream's words."""

from typing import Any

import pytest
from apiserver_world import World, a_node

NO_CIDR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


def findings(answer: Any) -> list[str]:
    assert answer.status == 422, answer.body
    return [f"{cause['field']}: {cause['message']}" for cause in answer.body["details"]["causes"]]


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({"podCIDR": "x"}, [f'spec.podCIDRs[0]: Invalid value: "x": {NO_CIDR}']),
        ({"podCIDR": "010.0.0.0/24"},
         ['spec.podCIDRs[0]: Invalid value: "010.0.0.0/24": must not have leading 0s in IP or prefix length']),
        ({"podCIDR": "10.0.0.1/24"},
         ['spec.podCIDRs[0]: Invalid value: "10.0.0.1/24": must not have bits set beyond the prefix length']),
        ({"podCIDRs": ["10.0.0.0/24", "10.1.0.0/24"]},
         ['spec.podCIDRs: Invalid value: ["10.0.0.0/24","10.1.0.0/24"]: may specify no more than one CIDR for each IP family']),
    ],
)  # fmt: skip
def test_the_subnets_of_a_new_node_are_judged(spec: dict[str, Any], wanted: list[str]) -> None:
    assert findings(World().create("nodes", {**a_node(), "spec": spec})) == wanted


def test_where_the_old_and_the_new_field_differ_the_old_one_counts() -> None:
    spec = {"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.1.0.0/24", "fd00::/64"]}
    assert World().create("nodes", {**a_node(), "spec": spec}).body["spec"]["podCIDRs"] == ["10.0.0.0/24"]


@pytest.mark.parametrize(
    ("status", "wanted"),
    [
        ({"allocatable": {"pods": "1500m"}}, ['status.allocatable.pods: Invalid value: "1500m": must be an integer']),
        ({"allocatable": {"a.b/c": "1500m"}}, ['status.allocatable.a.b/c: Invalid value: "1500m": must be an integer']),
        ({"nodeInfo": {"swap": {"capacity": -1}}},
         ["metadata.nodeSwapStatus.capacity: Invalid value: -1: must be greater than zero"]),
    ],
)  # fmt: skip
def test_what_a_new_node_may_not_say_of_its_status(status: dict[str, Any], wanted: list[str]) -> None:
    assert findings(World().create("nodes", {**a_node(), "status": status})) == wanted
