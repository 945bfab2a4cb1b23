"""The catalogue of steps names those that the services pass, and no others."""

import pytest

from elbowroom.deploy.explore.run import Run, outcome
from elbowroom.machine.steps import is_passed_at_start, is_step


@pytest.mark.parametrize(
    ("kind", "label", "known"),
    [
        ("kubelet", "K4", True),
        ("kubelet", "K10.1", True),
        ("kubelet", "K10", False),
        ("kubelet", "K18", False),
        ("scheduler", "S7.2", True),
        ("scheduler", "S13", False),
        ("apiserver", "A10", True),
        ("apiserver", "A11", False),
        ("runtime", "T2", True),
        ("controllers", "S1", False),
        ("kubelet", "NONSENSE", False),
    ],
)
def test_a_label_is_known_or_not(kind: str, label: str, known: bool) -> None:
    assert is_step(kind, label) is known


@pytest.mark.parametrize(("label", "once"), [("B1", True), ("R4", True), ("A1", False), ("K10.1", False), ("S1", False)])
def test_a_label_is_passed_at_the_start_or_again_and_again(label: str, once: bool) -> None:
    assert is_passed_at_start(label) is once


def test_every_step_of_a_resize_by_preemption_is_in_the_catalogue() -> None:
    passed = {(name.partition("/")[0], label.partition(" ")[0]) for name, label in outcome(Run(1)).world.steps}
    assert len(passed) > 40
    assert not {(kind, label) for kind, label in passed if not is_step(kind, label)}
