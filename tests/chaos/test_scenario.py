"""Scenarios: what a file may say, and what a person is told who says something else."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from elbowroom.deploy.chaos import scenario
from elbowroom.deploy.errors import UserError


def written(folder: Path, text: str) -> str:
    file = folder / "mine.yaml"
    file.write_text(text)
    return str(file)


def document(**spec: Any) -> str:
    head = {"apiVersion": "elbowroom.dev/v1alpha1", "kind": "Chaos", "metadata": {"name": "mine"}}
    return yaml.safe_dump({**head, "spec": {"about": "x", **spec}})


@pytest.mark.parametrize("name", scenario.names())
def test_a_built_in_scenario_is_valid_named_after_its_file_and_breaks_something(name: str) -> None:
    loaded = scenario.load(name)
    assert loaded.metadata.name == name
    assert loaded.spec.faults and loaded.spec.users


def test_there_are_scenarios_for_each_kind_of_fault() -> None:
    used = {fault.kind for name in scenario.names() for fault in scenario.load(name).spec.faults}
    known = {
        found["properties"]["kind"]["const"]
        for found in scenario.schema()["$defs"].values()
        if "kind" in found.get("properties", {}) and "every" in found["properties"]
    }
    assert used == known


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"faults": [{"kind": "kill", "of": ["scheduler"], "at": ["K4"]}]}, "none of ['scheduler'] ever passes a step 'K4'"),
        ({"faults": [{"kind": "explode"}]}, "spec.faults[0]: Input tag 'explode'"),
        ({"faults": [{"kind": "stop", "of": ["*"], "span": [3, 1]}]}, "3 is more than 1"),
        ({"faults": [{"kind": "stop", "of": ["*"], "span": [-1, 1]}]}, "a span is not negative"),
        ({"faults": [{"kind": "disturb", "drop": 2}]}, "less than or equal to 1"),
        ({"pods": [{"name": "a", "memory": "lots"}]}, "spec.pods[0].memory: 'lots' is no quantity"),
        ({"pods": [{"name": "a", "priority": "queen"}]}, "no priority 'queen'; there is: high, low"),
        ({"cluster": {"nodes": [{"count": 1, "capacty": {}}]}}, "spec.cluster.nodes[0].capacty: there is no such field"),
        ({"userz": []}, "spec.userz: there is no such field"),
        ({"duration": 0}, "spec.duration: Input should be greater than 0"),
    ],
)
def test_a_mistake_is_named_with_its_place(spec: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as told:
        scenario.load(written(tmp_path, document(**spec)))
    assert message in str(told.value)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "not YAML"),
        ("kind: Cluster", "expected apiVersion elbowroom.dev/v1alpha1 and kind Chaos"),
        ("a: &x [1]\nb: *x", "aliases"),
        ("x" * (1 << 20) + "y", "larger than"),
    ],
)
def test_a_file_that_is_no_scenario_is_refused(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message):
        scenario.load(written(tmp_path, text))


def test_an_unknown_name_is_told_what_there_is() -> None:
    with pytest.raises(UserError, match=r"no scenario 'nonesuch'; there is: .*preemption"):
        scenario.load("nonesuch")


def test_a_file_that_is_not_there_is_told() -> None:
    with pytest.raises(UserError, match=r"nowhere.yaml: No such file"):
        scenario.load("nowhere.yaml")
