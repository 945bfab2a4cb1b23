"""Instants as the timestamps that Kubernetes writes, and back. No clock is read here."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = 1_000_000_000


def as_time(now: int) -> str:
    """``metav1.Time``: RFC 3339 in UTC, whole seconds: ``2026-11-29T17:41:25Z``."""
    return _whole(now // _SECOND) + "Z"


def as_micro_time(now: int) -> str:
    """``metav1.MicroTime``: RFC 3339 in UTC with six decimals, as Leases and new-style Events carry."""
    second, rest = divmod(now, _SECOND)
    return f"{_whole(second)}.{rest // 1000:06d}Z"


def parse_time(text: str) -> int:
    """The instant of an RFC 3339 timestamp in nanoseconds since the epoch; ``ValueError`` if it is none."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000


@lru_cache(maxsize=256)
def _whole(second: int) -> str:
    """Of the same few seconds a process speaks a thousand times."""
    return (_EPOCH + timedelta(seconds=second)).strftime("%Y-%m-%dT%H:%M:%S")
