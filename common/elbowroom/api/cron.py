"""Cron schedules: ``*/5 9-17 * * mon-fri`` and ``@hourly``, in UTC.

Five fields: minute, hour, day of month, month, day of week. Where both days are restricted, either will do. No schedule of
seconds, no time zones: those are data of the machine, which decisions here do not read.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS = ((0, 59, ()), (0, 23, ()), (1, 31, ()), (1, 12, _MONTHS), (0, 6, _DAYS))
_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
DAYS_AHEAD = 366 * 5
_SECOND = 1_000_000_000


class CronError(ValueError):
    """No schedule; ``str()`` is upstream's text."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """When something comes again."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool
    any_weekday: bool

    def is_day(self, day: datetime) -> bool:
        """Does it come on that day?"""
        if day.month not in self.months:
            return False
        by_month, by_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return (by_month and by_week) if self.any_day or self.any_weekday else (by_month or by_week)

    def after(self, instant: int) -> int | None:
        """The first time (ns) after ``instant``; None if it does not come within five years."""
        moment = datetime.fromtimestamp(instant // _SECOND, UTC).replace(second=0) + timedelta(minutes=1)
        day = moment.replace(hour=0, minute=0)
        for _ in range(DAYS_AHEAD):
            if self.is_day(day):
                for hour in sorted(self.hours):
                    for minute in sorted(self.minutes):
                        found = day.replace(hour=hour, minute=minute)
                        if found >= moment:
                            return int(found.timestamp()) * _SECOND
            day += timedelta(days=1)
        return None


@lru_cache(maxsize=256)
def parse(text: str) -> Schedule:
    """The schedule that ``text`` means; ``CronError``."""
    if text.startswith(("TZ=", "CRON_TZ=")):
        raise CronError("cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
    if text.startswith("@"):
        known = _DESCRIPTORS.get(text)
        if known is None:
            raise CronError(f"unrecognized descriptor: {text}")
        text = known
    words = text.split()
    if not text:
        raise CronError("empty spec string")
    if len(words) != len(_FIELDS):
        raise CronError(f"expected exactly 5 fields, found {len(words)}: [{' '.join(words)}]")
    minutes, hours, days, months, weekdays = (_values(word, *bounds) for word, bounds in zip(words, _FIELDS, strict=True))
    return Schedule(minutes, hours, days, months, weekdays, words[2][0] in "*?", words[4][0] in "*?")


def _values(word: str, low: int, high: int, names: tuple[str, ...]) -> frozenset[int]:
    found: set[int] = set()
    for part in word.split(","):
        span, has_step, step_text = part.partition("/")
        first, has_end, last = span.partition("-")
        if first in ("*", "?"):
            start, end = low, high
        else:
            start = _number(first, low, names)
            end = _number(last, low, names) if has_end else (high if has_step else start)
        step = 1
        if has_step:
            if not step_text.isdigit():
                raise CronError(f'failed to parse int from {step_text}: strconv.Atoi: parsing "{step_text}": invalid syntax')
            step = int(step_text)
        if start < low:
            raise CronError(f"beginning of range ({start}) below minimum ({low}): {part}")
        if end > high:
            raise CronError(f"end of range ({end}) above maximum ({high}): {part}")
        if start > end:
            raise CronError(f"beginning of range ({start}) beyond end of range ({end}): {part}")
        if step == 0:
            raise CronError(f"step of range should be a positive number: {part}")
        found |= set(range(start, end + 1, step))
    return frozenset(found)


def _number(text: str, low: int, names: tuple[str, ...]) -> int:
    if text.lower() in names:
        return names.index(text.lower()) + low
    if not text.isascii() or not text.isdigit():
        raise CronError(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax')
    return int(text)
