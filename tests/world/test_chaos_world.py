"""Chaos scenarios in the simulated world: the same file as on real processes, repeatable by its seed."""

from dataclasses import replace
from pathlib import Path

import pytest

from elbowroom.deploy.chaos import scenario
from elbowroom.deploy.errors import UserError
from elbowroom.deploy.explore.run import Ended, Run, make, scenario_of, story_of

SECOND = 1_000_000_000
ALL_KINDS = """\
apiVersion: elbowroom.dev/v1alpha1
kind: Chaos
metadata: {name: everything}
spec:
  about: every fault that the simulated world has
  duration: 3
  cluster:
    nodes: [{count: 2, capacity: {cpu: "4", memory: 4Gi}}]
  pods:
    - {name: web, count: 2, priority: high, cpu: 250m, memory: 512Mi}
  replicaSets:
    - {name: batch, replicas: 2, priority: low, cpu: 250m, memory: 512Mi, minAvailable: 1}
  users:
    - {does: resize, pods: "web-*", clients: 1, memory: [256Mi, 1Gi], pause: [0.1, 0.2]}
    - {does: replace, name: phoenix, priority: low, cpu: 100m, memory: 128Mi, atOnce: 1, stays: [0.1, 0.3]}
    - {does: page, limit: 1}
    - {does: visit, name: guest, priority: low, cpu: 100m, memory: 128Mi, atOnce: 1, stays: [0.2, 0.4]}
  faults:
    - {kind: kill, of: ["*"], every: 1}
    - {kind: kill, of: ["kubelet/*"], at: [K6], hits: 1, every: 2}
    - {kind: powerCut, every: 3}
    - {kind: stop, of: ["*"], every: 3}
    - {kind: cut, between: ["kubelet/*", "*"], every: 3}
    - {kind: partition, between: [scheduler, apiserver], every: 3, span: 0.5}
    - {kind: isolate, of: [scheduler], every: 3}
    - {kind: swizzle, of: [apiserver], every: 3}
    - {kind: disturb, drop: 0.02, delay: 0.1, every: 3}
    - {kind: diskFull, of: ["kubelet/*"], every: 3, span: [0.2, 0.5]}
    - {kind: failedFsync, of: [apiserver], every: 3}
    - {kind: clockStep, of: [scheduler, "kubelet/*"], every: 3}
    - {kind: runtimeErrors, every: 3}
    - {kind: slowRuntime, every: 3}
    - {kind: nodeLoss, every: 3, span: [0.5, 1]}
    - {kind: allocatable, every: 3}
    - {kind: slowReaders, watches: 3, every: 3}
    - {kind: herd, watchers: 3, every: 3}
    - {kind: slow, of: ["*"], every: 3}
    - {kind: usage, every: 3}
    - {kind: rules, every: 3}
    - {kind: kill, of: ["kubelet/*"], at: [R2], hits: 1, every: 3}
  expect: {writes: 5, allocations: 4}
"""


@pytest.fixture
def everything(tmp_path: Path) -> str:
    file = tmp_path / "everything.yaml"
    file.write_text(ALL_KINDS)
    return str(file)


def fine(ended: Ended) -> None:
    assert not ended.failure, "\n".join((f"{ended.run}: {ended.failure}", *ended.story))


def test_a_file_with_every_fault_is_survived_and_repeated(everything: str) -> None:
    run = Run(1, hostile=True, scenario=everything)
    ended = make(run)
    fine(ended)
    assert ended.number >= 5, "users were answered"
    assert ended.faults.keys() >= {"crash", "pause", "cut", "partition", "disturb", "disk full", "clock step"}
    assert make(run).history == ended.history


@pytest.mark.parametrize("name", ["kubelet-half-way", "bad-bus", "node-loss", "rules", "strain"])
def test_a_built_in_scenario_is_survived(name: str) -> None:
    fine(make(Run(1, hostile=True, scenario=name, duration=2.0)))


def test_a_scenario_is_told_under_the_profile_that_is_asked_for() -> None:
    run = Run(1, hostile=True, scenario="rules", duration=1.0)
    assert [story_of(replace(run, profile=name)).profile.name for name in (None, "lab", "v1.37")] == ["lab", "lab", "v1.37"]
    fine(make(replace(run, profile="v1.37")))


def test_a_scenario_with_the_name_of_a_story_is_told_with_its_prefix() -> None:
    assert scenario_of("preemption").counts == "victims"
    assert scenario_of("chaos/preemption").counts == "acknowledged writes"


def test_parts_of_the_plan_can_be_left_out() -> None:
    run = Run(1, hostile=True, scenario="kill-storm", duration=1.0)
    whole = story_of(run)
    kept = story_of(replace(run, kept=(0, 2)))
    assert list(kept.parts) == [whole.parts[0], whole.parts[2]]
    ended = make(replace(run, kept=(0,)))
    fine(ended)
    assert ended.faults == {"crash": 1}


def test_every_built_in_scenario_can_be_explored_but_those_that_need_a_machine_of_their_own() -> None:
    refused = []
    for name in scenario.names():
        try:
            scenario_of(f"chaos/{name}")
        except UserError as why:
            refused.append((name, str(why)))
    assert [name for name, _ in refused] == ["bad-company", "two-schedulers"]
    assert "hostile cannot be explored" in refused[0][1] and "secondScheduler cannot be explored" in refused[1][1]
    assert not any("\n" in why for _, why in refused)


def test_what_is_no_scenario_is_refused_in_one_line() -> None:
    with pytest.raises(UserError, match="no scenario 'nonsense'"):
        scenario_of("nonsense")
