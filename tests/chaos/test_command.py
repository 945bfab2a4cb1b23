"""Words and numbers of the command line of chaos."""

import pytest

from elbowroom.deploy.chaos import command
from elbowroom.deploy.errors import UserError


@pytest.mark.parametrize(("text", "span"), [("90", 90.0), ("90s", 90.0), ("1.5m", 90.0), ("1h", 3600.0)])
def test_a_span_is_a_number_with_a_unit(text: str, span: float) -> None:
    assert command.seconds(text) == span


@pytest.mark.parametrize("text", ["", "s", "-1s", "0", "1d", "1 s", "nan", "1e9"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="no span"):
        command.seconds(text)


def test_the_list_has_a_line_for_each_scenario() -> None:
    lines = command.listing().splitlines()
    assert any(line.startswith("preemption ") for line in lines)
    assert len(lines) >= 10
