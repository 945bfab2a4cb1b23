"""Timestamps as Kubernetes writes them."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elbowroom.api.clock import as_micro_time, as_time, parse_time


def test_a_time_has_whole_seconds_and_a_micro_time_six_decimals_both_cut_off() -> None:
    now = 1_764_438_085_999_999_999
    assert as_time(now) == "2025-11-29T17:41:25Z"
    assert as_micro_time(now) == "2025-11-29T17:41:25.999999Z"
    assert as_micro_time(now - 999_999_999) == "2025-11-29T17:41:25.000000Z"


@given(st.datetimes(timezones=st.just(UTC)).filter(lambda moment: 1970 <= moment.year < 2200))
def test_any_instant_is_written_as_the_calendar_has_it(moment: datetime) -> None:
    now = parse_time(moment.isoformat())
    assert as_micro_time(now) == moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    assert as_time(now) == moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    assert parse_time(as_micro_time(now)) == now


def test_a_text_without_a_zone_is_no_timestamp() -> None:
    with pytest.raises(ValueError, match="no time zone"):
        parse_time("2026-11-29T17:41:25")
