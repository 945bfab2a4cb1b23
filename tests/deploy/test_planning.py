"""What is told about nodes that a cluster has from an earlier life."""

from typing import Any

import pytest

from elbowroom.api.objects import Node, NodeStatus, ObjectMeta
from elbowroom.deploy import config
from elbowroom.deploy.launch import node_group
from elbowroom.deploy.planning import kept_nodes


def wanted(count: int, memory: str = "4Gi") -> list[dict[str, Any]]:
    return config.overlay(config.Cluster(), {"nodes": node_group(count, "2", memory)}).manifests()


def found(count: int, memory: str = "4Gi") -> dict[str, Node]:
    names = [f"node-{number}" for number in range(1, count + 1)]
    return {
        name: Node(metadata=ObjectMeta(name=name), status=NodeStatus(capacity={"cpu": "2", "memory": memory})) for name in names
    }


@pytest.mark.parametrize(
    ("asked", "has", "told"),
    [
        (wanted(2), found(2), ""),
        (wanted(2), found(2, "4096Mi"), ""),
        (wanted(3), found(0), ""),
        (wanted(1), found(2), "node-2 is there too"),
        (wanted(1, "2Gi"), found(1), "node-1 has the CPUs and memory of before"),
        (
            wanted(5, "2Gi"),
            found(7),
            "node-1, node-2, node-3 and 2 more have the CPUs and memory of before, node-6, node-7 are there too",
        ),
    ],
)
def test_nodes_of_before_are_told_where_others_were_asked_for(asked: list[dict[str, Any]], has: dict[str, Node], told: str) -> None:
    assert kept_nodes(asked, has) == told
