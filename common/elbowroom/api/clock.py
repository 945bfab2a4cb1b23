"""Instants as the timestamps that Kubernetes writes, and back. No clock is read here."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def as_time(now: int) -> str:
    """``metav1.Time``: RFC 3339 in UTC, whole seconds: ``2026-11-29T17:41:25Z``."""
    return _moment(now).strftime("%Y-%m-%dT%H:%M:%SZ")


def as_micro_time(now: int) -> str:
    """``metav1.MicroTime``: RFC 3339 in UTC with six decimals, as Leases and new-style Events carry."""
    return _moment(now).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_time(text: str) -> int:
    """The instant of an RFC 3339 timestamp in nanoseconds since the epoch; ``ValueError`` if it is none."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000


def _moment(now: int) -> datetime:
    return _EPOCH + timedelta(microseconds=now // 1000)
