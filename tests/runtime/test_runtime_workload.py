"""What the annotation says, and what nonsense in it does."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elbowroom.runtime.workload import IDLE_MEMORY, Behaviour, behaviour_of, is_workload

MI = 1024 * 1024


def behaviour(*, is_init: bool = False, **said: object) -> Behaviour:
    return behaviour_of(json.dumps({"c": said}), "c", is_init=is_init)


def test_what_is_not_said_is_pause() -> None:
    assert behaviour_of("", "c", is_init=False) == Behaviour()
    assert behaviour_of('{"other": {"exitCode": 3}}', "c", is_init=False) == Behaviour()


def test_an_init_container_ends_by_itself_unless_told() -> None:
    assert behaviour(is_init=True).exit_after_seconds == 0.0
    assert behaviour(is_init=True, exitAfterSeconds=5).exit_after_seconds == 5.0
    assert behaviour(is_init=True, exitAfterSeconds=None).exit_after_seconds is None


@pytest.mark.parametrize(
    ("said", "limit", "used"),
    [
        ({}, 64 * MI, IDLE_MEMORY),
        ({"memoryUsage": "150Mi"}, 64 * MI, 150 * MI),
        ({"memoryUsage": 5000}, -1, 5000),
        ({"memoryUsage": "50%"}, 64 * MI, 32 * MI),
        ({"memoryUsage": "120%"}, 100 * MI, 120 * MI),
        ({"memoryUsage": "50%"}, -1, IDLE_MEMORY),
        ({"memoryUsage": "a lot"}, 64 * MI, IDLE_MEMORY),
    ],
)
def test_memory_usage(said: dict[str, object], limit: int, used: int) -> None:
    assert behaviour(**said).memory_usage(limit) == used


@pytest.mark.parametrize(
    ("said", "seconds"), [({}, 0.0), ({"stopSeconds": 3}, 3.0), ({"stopSeconds": None}, None), ({"stopSeconds": "2.5"}, 2.5)]
)
def test_stop_seconds_null_ignores_sigterm(said: dict[str, object], seconds: float | None) -> None:
    assert behaviour(**said).stop_seconds == seconds


@pytest.mark.parametrize(("said", "failures"), [({}, 0), ({"resizeError": "always"}, None), ({"resizeError": 2}, 2)])
def test_resize_error_is_always_or_a_count(said: dict[str, object], failures: int | None) -> None:
    assert behaviour(**said).resize_failures == failures


@pytest.mark.parametrize("text", ["{", "[]", '{"c": 3}', "\\", "null"])
def test_malformed_text_is_no_workload_and_changes_nothing(text: str) -> None:
    assert not is_workload(text)
    assert behaviour_of(text, "c", is_init=False) == Behaviour()


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
)
FIELDS = ["memoryUsage", "cpuUsage", "startSeconds", "stopSeconds", "exitAfterSeconds", "exitCode", "resizeSeconds", "resizeError"]


@given(st.dictionaries(st.sampled_from(FIELDS), JSON))
def test_no_value_breaks_the_reading(said: dict[str, object]) -> None:
    found = behaviour(**said)
    assert found.memory_bytes >= 0 and found.cpu_milli >= 0 and 0 <= found.exit_code <= 255
