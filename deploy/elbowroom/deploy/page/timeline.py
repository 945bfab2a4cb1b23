"""What a page shows of a history: a timeline of each pod, a lane for each process, the faults, and what was broken.

Pure: a history and its report come in, a picture's parts come out. A page of a large run shows the pods that matter most (named
by a violation first, then those to which most happened) and says how many it leaves out.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from elbowroom.api import quantity
from elbowroom.deploy.page import words
from elbowroom.deploy.page.axis import Axis
from elbowroom.history.records import History, Record, Violation

MOST_PODS = 30
MOST_LANES = 60
MOST_MOMENTS = 6_000
MOST_TOLD = 500

COLOURS = 8
"""How many fills the page has for values; equal amounts have equal fills in all layers of a pod."""


@dataclass(frozen=True, slots=True)
class Span:
    """Something that held from ``begin`` to ``end`` (ns). ``tone`` names its look."""

    begin: int
    end: int
    text: str
    tip: str
    tone: str


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that happened at a moment. ``sign`` is drawn, ``tip`` tells it in words."""

    at: int
    sign: str
    tip: str
    tone: str


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Told:
    """A line of a pod's story."""

    at: int
    proc: str
    sentence: str
    blamed: bool


@dataclass(frozen=True, slots=True)
class PodStory:
    """One pod's life: its layers and conditions as rows, what was decided as marks, and all of it in words."""

    key: str
    uid: str
    node: str
    blamed: bool
    rows: tuple[Row, ...]
    marks: tuple[Mark, ...]
    told: tuple[Told, ...]
    untold: int


@dataclass(frozen=True, slots=True)
class Lane:
    """A process: its incarnations one after the other."""

    proc: str
    lives: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Timeline:
    """All that is drawn. ``pods_omitted`` and ``lanes_omitted`` count what is not."""

    axis: Axis
    pods: tuple[PodStory, ...]
    pods_omitted: int
    lanes: tuple[Lane, ...]
    lanes_omitted: int
    faults: tuple[Span, ...]
    blamed_moments: tuple[int, ...]


SIGNS: Mapping[str, tuple[str, str]] = {
    "kl.judge": ("J", "judge"),
    "kl.resized": ("✓", "good"),
    "kl.resize.failed": ("!", "bad"),
    "rt.create": ("▶", "runtime"),
    "rt.update.end": ("U", "runtime"),
    "rt.exit": ("■", "bad"),
    "sch.plan": ("P", "scheduler"),
    "sch.bind": ("B", "scheduler"),
    "sch.wake": ("W", "scheduler"),
    "sch.park": ("…", "scheduler"),
    "sch.delete": ("✗", "bad"),
}


def timeline(history: History, failures: Iterable[Violation]) -> Timeline | None:
    """The picture of a history, or None where there is nothing in it to draw."""
    if not history.records:
        return None
    evidence = [record for violation in failures for record in violation.evidence]
    drafts = _drafts(history, evidence)
    end = max(record.get("mono_ns", 0) for record in history.records)
    chosen = sorted(drafts.values(), key=lambda draft: (not draft.blamed, -draft.weight, draft.key, draft.uid))
    stories = [draft.story(end) for draft in chosen[:MOST_PODS]]
    lanes = _lanes(history)
    faults = tuple(_faults(history, end))
    blamed = tuple(sorted({record["mono_ns"] for record in evidence if "mono_ns" in record}))
    always = [*blamed, end, min(record.get("mono_ns", end) for record in history.records)]
    always += [moment for fault in faults for moment in (fault.begin, fault.end)]
    always += [moment for lane in lanes[:MOST_LANES] for life in lane.lives for moment in (life.begin, life.end)]
    while len(stories) > 1 and sum(len(list(_moments(story))) for story in stories) > MOST_MOMENTS:
        stories.pop()
    axis = Axis.over([*always, *(moment for story in stories for moment in _moments(story))])
    shown, hidden = tuple(lanes[:MOST_LANES]), len(lanes[MOST_LANES:])
    return Timeline(axis, tuple(stories), len(drafts) - len(stories), shown, hidden, faults, blamed)


def _moments(story: PodStory) -> Iterator[int]:
    for row in story.rows:
        for span in row.spans:
            yield span.begin
    for mark in story.marks:
        yield mark.at


@dataclass(slots=True)
class _Changes:
    """A value over time: each entry holds until the next."""

    entries: list[tuple[int, str, str, str]] = field(default_factory=list)

    def put(self, at: int, text: str, tip: str = "", tone: str = "") -> None:
        if not self.entries and not text:
            return
        if not self.entries or self.entries[-1][1:] != (text, tip, tone):
            self.entries.append((at, text, tip, tone))

    def spans(self, end: int) -> tuple[Span, ...]:
        ends = [*(entry[0] for entry in self.entries[1:]), end][: len(self.entries)]
        return tuple(
            Span(at, until, text, tip or text, tone)
            for (at, text, tip, tone), until in zip(self.entries, ends, strict=True)
            if text
        )


LAYERS = ("desired", "allocated", "actuated", "actual")


class _Draft:
    """A pod's story while the records are read."""

    def __init__(self, key: str, uid: str) -> None:
        self.key, self.uid, self.node = key, uid, ""
        self.blamed = False
        self.weight = 0
        self.gone: int | None = None
        self._layers = {name: _Changes() for name in LAYERS}
        self._pending, self._progress, self._phase = _Changes(), _Changes(), _Changes()
        self._tones: dict[tuple[int, int], str] = {}
        self._marks: list[Mark] = []
        self._told: list[Told] = []
        self._untold = 0

    def take(self, record: Record, blamed: bool) -> None:
        at, kind = record.get("mono_ns", 0), record["kind"]
        self.blamed = self.blamed or blamed
        self.weight += kind != "commit"
        if kind == "commit":
            self._commit(at, record)
        elif kind == "kl.alloc":
            self._layer("allocated", at, record.get("containers") or {})
        elif kind == "kl.actuated":
            self._layer("actuated", at, record.get("containers") or {})
        if kind in SIGNS:
            sign, tone = SIGNS[kind]
            if kind == "kl.judge":
                tone = str(record.get("verdict", "")).lower()
            self._marks.append(Mark(at, sign, words.sentence(record), tone))
        if len(self._told) < MOST_TOLD or blamed:
            self._told.append(Told(at, str(record.get("proc", "")), words.sentence(record), blamed))
        else:
            self._untold += 1

    def _commit(self, at: int, record: Record) -> None:
        if record.get("gone"):
            self.gone = at
            return
        facts = record.get("obj") or {}
        self.node = facts.get("node") or self.node
        if "containers" in facts:
            self._layer("desired", at, facts["containers"])
        figures = facts.get("figures")
        if figures:
            actual = {name: {"requests": said.get("actual")} for name, said in figures.items() if said.get("actual")}
            self._layer("actual", at, actual)
        self._pending.put(at, str(facts.get("pending") or ""), "", str(facts.get("pending") or "").lower())
        working = "PodResizeInProgress" in (facts.get("resize") or {})
        self._progress.put(at, "in progress" if working else "", "PodResizeInProgress", "progress")
        phase = "ending" if facts.get("deleting") else str(facts.get("phase") or "")
        self._phase.put(at, phase, "", f"phase-{phase.lower()}")

    def _layer(self, name: str, at: int, containers: Mapping[str, Any]) -> None:
        if not containers:
            return
        requests = tuple(_sum(containers, "requests", resource) for resource in words.RESOURCES)
        limits = tuple(_sum(containers, "limits", resource) for resource in words.RESOURCES)
        text = " ".join(
            _bound(resource, low, high)
            for resource, low, high in zip(words.RESOURCES, requests, limits if any(limits) else requests, strict=True)
        )
        tone = self._tones.setdefault((requests[0], requests[1]), f"v{len(self._tones) % COLOURS}")
        self._layers[name].put(at, text, f"{name}: {words.containers(containers)}", tone)

    def story(self, end: int) -> PodStory:
        end = self.gone or end
        rows = [Row(name, self._layers[name].spans(end)) for name in LAYERS]
        rows += [
            Row("pending", self._pending.spans(end)),
            Row("progress", self._progress.spans(end)),
            Row("phase", self._phase.spans(end)),
        ]
        marks, told = tuple(self._marks), tuple(self._told)
        return PodStory(self.key, self.uid, self.node, self.blamed, tuple(rows), marks, told, self._untold)


def _sum(containers: Mapping[str, Any], part: str, resource: str) -> int:
    amounts = [(said.get(part) or {}).get(resource) for said in containers.values()]
    return sum(_number(resource, amount) for amount in amounts if amount is not None)


def _number(resource: str, text: str) -> int:
    try:
        return quantity.milli_of(text) if resource == "cpu" else quantity.value_of(text)
    except quantity.QuantityError:
        return 0


def _bound(resource: str, low: int, high: int) -> str:
    if low == high or not high:
        return words.amount(resource, low)
    return f"{words.amount(resource, low)}–{words.amount(resource, high)}"


QUIET = ("watch.", "ckpt.", "list", "ctl.", "bus.", "end", "step", "api.")


def _drafts(history: History, evidence: Iterable[Record]) -> dict[str, _Draft]:
    guilty = {id(record) for record in evidence}
    drafts: dict[str, _Draft] = {}
    for record in history.records:
        uid, kind = record.get("uid"), record["kind"]
        if not uid or kind.startswith(QUIET):
            continue
        if kind == "commit":
            if record.get("resource") != "pods":
                continue
            key = str(record.get("key", "")).partition("/")[2]
        else:
            key = str(record.get("victim" if kind == "sch.delete" else "pod", ""))
        draft = drafts.get(uid)
        if draft is None:
            draft = drafts[uid] = _Draft(key, uid)
        draft.take(record, id(record) in guilty)
    return drafts


def _lanes(history: History) -> list[Lane]:
    lives: dict[str, dict[int, list[Record]]] = defaultdict(dict)
    counts: dict[tuple[str, int], int] = defaultdict(int)
    for record in history.records:
        proc, life = record.get("proc"), record.get("inc", 0)
        if not proc:
            continue
        counts[proc, life] += 1
        known = lives[proc].get(life)
        if known is None:
            lives[proc][life] = [record, record]
        else:
            known[1] = record
    lanes = []
    for proc in sorted(lives):
        spans = []
        for number, (life, (first, last)) in enumerate(sorted(lives[proc].items()), 1):
            ended = last["kind"] == "end"
            how = "ended by itself" if ended else "killed, or still running when the history was read"
            tip = f"{proc}, life {number}: {counts[proc, life]} records; {how}; the last one: {last['kind']}"
            tone = "ended" if ended else "cut"
            spans.append(Span(first.get("mono_ns", 0), last.get("mono_ns", 0), f"life {number}", tip, tone))
        lanes.append(Lane(proc, tuple(spans)))
    return lanes


def _faults(history: History, end: int) -> Iterator[Span]:
    """Faults as spans. One that ends by itself lasts until then, a death until the process lives again."""
    began: list[Record] = []
    until: dict[int, int] = {}
    lives: set[tuple[str, int]] = set()

    def close(at: int, trait: Callable[[Record], Any], value: Any) -> None:
        for place in reversed(range(len(began))):
            if place not in until and trait(began[place]) == value:
                until[place] = at
                return

    for record in history.records:
        at, proc, life = record.get("mono_ns", 0), str(record.get("proc", "")), record.get("inc", 0)
        if (proc, life) not in lives:
            lives.add((proc, life))
            close(at, _subject, proc)
        if record["kind"] == "fault.begin":
            began.append(record)
        elif record["kind"] == "fault.end":
            close(at, _what, _what(record))
    for place, fault in enumerate(began):
        yield Span(fault.get("mono_ns", 0), until.get(place, end), str(fault.get("name")), words.fault(fault), "fault")


def _what(fault: Record) -> tuple[Any, Any]:
    return fault.get("name"), fault.get("args")


def _subject(fault: Record) -> str:
    args = fault.get("args")
    machine = args.get("machine") if isinstance(args, Mapping) else None
    return str(machine or fault.get("proc", ""))
