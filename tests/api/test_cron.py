"""Cron schedules."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elbowroom.api import cron

SECOND = 1_000_000_000


def ns(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * SECOND


@pytest.mark.parametrize(
    ("schedule", "now", "expected"),
    [
        ("* * * * *", "2026-11-29T23:59:30", "2026-11-30T00:00:00"),
        ("*/15 * * * *", "2026-11-29T23:45:00", "2026-11-30T00:00:00"),
        ("5,35 9-17 * * mon-fri", "2026-11-29T10:00:00", "2026-11-30T09:05:00"),
        ("0 0 31 * *", "2026-11-01T00:00:00", "2026-12-31T00:00:00"),
        ("0 0 29 2 *", "2026-01-01T00:00:00", "2028-02-29T00:00:00"),
        ("0 12 13 * fri", "2026-11-29T00:00:00", "2026-12-04T12:00:00"),
        ("30 1/6 * jan ?", "2026-11-29T00:00:00", "2027-01-01T01:30:00"),
        ("@hourly", "2026-11-29T10:00:00", "2026-11-29T11:00:00"),
        ("@weekly", "2026-11-29T00:00:00", "2026-12-06T00:00:00"),
    ],
)
def test_when_a_schedule_comes_next(schedule: str, now: str, expected: str) -> None:
    assert cron.parse(schedule).after(ns(now)) == ns(expected)


def test_a_schedule_that_never_comes() -> None:
    assert cron.parse("0 0 31 2 *").after(ns("2026-01-01T00:00:00")) is None


@pytest.mark.parametrize(
    ("schedule", "why"),
    [
        ("", "empty spec string"),
        ("* * *", "expected exactly 5 fields, found 3: [* * *]"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("x * * * *", 'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax'),
        ("@noon", "unrecognized descriptor: @noon"),
        ("TZ=Europe/Berlin * * * * *", "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"),
    ],
)
def test_what_is_no_schedule(schedule: str, why: str) -> None:
    with pytest.raises(cron.CronError) as caught:
        cron.parse(schedule)
    assert str(caught.value) == why


@given(st.integers(0, 4_000_000_000), st.integers(0, 59), st.integers(0, 23))
def test_the_next_time_is_the_first_that_fits(now: int, minute: int, hour: int) -> None:
    found = cron.parse(f"{minute} {hour} * * *").after(now * SECOND)
    assert found is not None
    assert 0 < found // SECOND - now <= 86_400
    moment = datetime.fromtimestamp(found // SECOND, UTC)
    assert (moment.minute, moment.hour, moment.second) == (minute, hour, 0)
