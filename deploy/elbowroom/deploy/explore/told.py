"""A failed run in at most 40 lines: what went wrong, and the turns of the story around it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from elbowroom.history.records import Violation
from elbowroom.sim.world import BEGINNING

LINES_MAX = 40
_WIDE = 170
_TURNS = (
    *("fault.begin", "fault.end", "kl.judge", "kl.alloc", "kl.actuated", "kl.resized", "kl.resize.failed", "kl.reject", "pod.end"),
    *(
        "ckpt.loaded",
        "rt.started",
        "rt.create",
        "rt.exit",
        "rt.update.begin",
        "rt.update.end",
        "sch.plan",
        "sch.delete",
        "sch.bind",
    ),
    *("api.ok", "api.info"),
)
_HIDDEN = frozenset(
    ("run", "seed", "proc", "node", "inc", "seq", "mono_ns", "wall", "kind", "oracle_inputs", "uid", "allocatable", "op")
)


def told(history: Sequence[Mapping[str, Any]], failures: Sequence[Violation]) -> tuple[str, ...]:
    """The evidence of the first failure, marked, and the turns before it; of a story without an end, the last turns."""
    evidence = {(r["proc"], r.get("inc"), r["seq"]) for r in failures[0].evidence if "seq" in r} if failures else set[Any]()
    uids = {r["uid"] for r in failures[0].evidence if r.get("uid")} if failures else set[str]()
    lines: list[tuple[bool, str]] = []
    for record in history:
        shown = (record["proc"], record["inc"], record["seq"]) in evidence
        if shown or (record["kind"] in _TURNS and _concerns(record, uids)):
            lines.append((shown, _line(record, shown)))
    last = max((at for at, (shown, _) in enumerate(lines) if shown), default=len(lines) - 1)
    kept = list(_kept(lines[: last + 1]))
    return tuple(kept[-LINES_MAX:])


def _concerns(record: Mapping[str, Any], uids: set[str]) -> bool:
    return not uids or record["kind"].startswith("fault.") or record.get("uid") in uids or "uid" not in record


def _kept(lines: Sequence[tuple[bool, str]]) -> Iterator[str]:
    """All evidence, and as many of the last turns as there is place for."""
    place = LINES_MAX - sum(shown for shown, _ in lines) - 1
    others = [at for at, (shown, _) in enumerate(lines) if not shown]
    dropped = set(others[: max(0, len(others) - place)])
    if dropped:
        yield f"... {len(dropped)} turns before"
    for at, (_, line) in enumerate(lines):
        if at not in dropped:
            yield line


def _line(record: Mapping[str, Any], shown: bool) -> str:
    facts = " ".join(f"{name}={_short(value)}" for name, value in record.items() if name not in _HIDDEN and value not in ("", None))
    at = (record["mono_ns"] - BEGINNING) / 1e9
    return f"{'>' if shown else ' '} {at:10.4f} {record['proc']:16} {record['kind']} {facts}"[:_WIDE]


def _short(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{name}:{_short(one)}" for name, one in value.items() if one not in ("", None, {}, [])) + "}"
    return str(value)
