"""A history as a page: what it shows, that it leaves nothing out silently, and that a browser draws it."""

import shutil
import subprocess
from collections.abc import Mapping
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from elbowroom.deploy import page
from elbowroom.deploy.page import words
from elbowroom.deploy.page.axis import Axis
from elbowroom.deploy.page.timeline import MOST_PODS, PodStory, Timeline, timeline
from elbowroom.history.records import History, Record, Violation
from elbowroom.history.report import judge

MS = 1_000_000
CHROMIUM = shutil.which("chromium")


def amounts(cpu: str, memory: str) -> dict[str, Any]:
    return {"main": {"requests": {"cpu": cpu, "memory": memory}, "limits": {"cpu": cpu, "memory": memory}}}


class Told:
    """A history as it is written down: one record after the other."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        self._seq = count(1)

    def add(self, ms: int, proc: str, kind: str, inc: int = 1, **facts: Any) -> dict[str, Any]:
        made = {
            "proc": proc,
            "inc": inc,
            "seq": next(self._seq),
            "mono_ns": ms * MS,
            "wall": ms * MS,
            "node": "n1",
            "kind": kind,
            **facts,
        }
        self.records.append(made)
        return made

    def pod(self, ms: int, name: str, generation: int, memory: str, **facts: Any) -> dict[str, Any]:
        obj = {"generation": generation, "node": "n1", "phase": "Running", "nominated": "", "scheduled": "True", "deleting": False}
        obj |= {"containers": amounts("100m", memory), "qos": "Guaranteed", **facts}
        written: dict[str, Any] = {
            "rev": ms,
            "key": f"pods/default/{name}",
            "resource": "pods",
            "uid": name,
            "verb": "patch",
            "sub": "resize",
        }
        return self.add(ms, "apiserver", "commit", user="admin", base=0, gone=False, old_node="n1", obj=obj, **written)

    def history(self) -> History:
        return History.of(self.records)


def resized() -> Told:
    told = Told()
    told.pod(10, "web", 1, "1Gi", figures={"main": {"actual": {"cpu": "100m", "memory": "1Gi"}}})
    told.pod(20, "web", 2, "2Gi")
    facts: dict[str, Any] = {"pod": "default/web", "uid": "web", "gen": 2}
    judged: dict[str, Any] = {"verdict": "Granted", "wanted": {"memory": 2 << 30}, "used": {}, "allocatable": {}}
    told.add(21, "kubelet/n1", "kl.judge", cause="x", **judged, **facts)
    allocated: dict[str, Any] = {
        "vector": {"cpu": 100, "memory": 2 << 30},
        "containers": amounts("100m", "2Gi"),
        "level": None,
        "allocatable": {},
    }
    told.add(22, "kubelet/n1", "kl.alloc", cause="x", **allocated, **facts)
    told.add(30, "kubelet/n1", "kl.actuated", containers=amounts("100m", "2Gi"), cause="update", **facts)
    told.pod(31, "web", 2, "2Gi", figures={"main": {"actual": {"cpu": "100m", "memory": "2Gi"}}})
    return told


def drawn(history: History, *failures: Violation) -> Timeline:
    picture = timeline(history, failures)
    assert picture is not None
    return picture


def row(story: PodStory, name: str) -> list[tuple[int, int, str]]:
    (spans,) = [row.spans for row in story.rows if row.name == name]
    return [(span.begin // MS, span.end // MS, span.text) for span in spans]


def test_a_resize_runs_down_the_four_layers() -> None:
    (web,) = drawn(resized().history()).pods
    assert row(web, "desired") == [(10, 20, "100m 1Gi"), (20, 31, "100m 2Gi")]
    assert row(web, "allocated") == [(22, 31, "100m 2Gi")]
    assert row(web, "actuated") == [(30, 31, "100m 2Gi")]
    assert row(web, "actual") == [(10, 31, "100m 1Gi"), (31, 31, "100m 2Gi")]


def test_equal_amounts_have_one_colour_in_all_layers_and_others_another() -> None:
    (web,) = drawn(resized().history()).pods
    tones = {(span.text, span.tone) for layer in web.rows[:4] for span in layer.spans}
    assert len(tones) == 2
    assert len({tone for _, tone in tones}) == 2


KILL = {"name": "kill", "args": {"machine": "scheduler"}}
PARTED = {"name": "partition", "args": {"a": "x", "b": "y"}}
OTHERS = {"name": "partition", "args": {"a": "x", "b": "z"}}


@pytest.mark.parametrize(
    ("fault", "after", "until"),
    [
        pytest.param(KILL, ("scheduler", "sch.start", 2, {}), 60, id="a death ends with the next life"),
        pytest.param(PARTED, ("nemesis", "fault.end", 1, PARTED), 60, id="what is healed ends then"),
        pytest.param(PARTED, ("nemesis", "fault.end", 1, OTHERS), 90, id="another one's end is not its own"),
    ],
)
def test_a_fault_lasts(fault: Mapping[str, Any], after: tuple[str, str, int, dict[str, Any]], until: int) -> None:
    told = Told()
    told.add(1, "scheduler", "sch.start")
    told.add(2, "nemesis", "step")
    told.add(50, "nemesis", "fault.begin", **fault)
    proc, kind, life, facts = after
    told.add(60, proc, kind, life, **facts)
    told.add(90, "apiserver", "end")
    (span,) = drawn(told.history()).faults
    assert (span.begin // MS, span.end // MS) == (50, until)


def test_what_a_violation_names_comes_first_and_is_marked() -> None:
    told = resized()
    for ms in range(40, 60):
        told.pod(ms, "busy", ms, f"{ms}Mi")
    guilty = told.add(70, "kubelet/n1", "kl.alloc", pod="default/calm", uid="calm", gen=1, vector={}, containers={}, cause="x")
    history = told.history()
    calm, *_ = drawn(history, Violation("I-01", "too much", (guilty,))).pods
    assert (calm.key, calm.blamed) == ("default/calm", True)
    assert [line.blamed for line in calm.told] == [True]


def test_pods_that_are_not_shown_are_counted() -> None:
    told = Told()
    for number in range(MOST_PODS + 7):
        told.pod(number + 1, f"p{number}", 1, "1Gi")
    picture = drawn(told.history())
    assert (len(picture.pods), picture.pods_omitted) == (MOST_PODS, 7)
    assert "7 pods to which less happened are not shown" in made(told.history())


def made(history: History) -> str:
    return page.html(history, judge(history), "a run")


def test_the_page_needs_nothing_but_itself() -> None:
    text = made(resized().history())
    assert "<script" not in text
    assert "http://" not in text
    assert "https://" not in text
    assert "default-src 'none'" in text


def test_names_from_the_history_are_text_and_never_markup() -> None:
    told = Told()
    told.pod(1, "<script>alert(1)</script>", 1, "1Gi")
    assert "<script" not in made(told.history())


def test_a_violation_shows_its_evidence() -> None:
    told = Told()
    facts: dict[str, Any] = {"pod": "default/web", "uid": "web", "gen": 1, "containers": {}, "cause": "x", "level": None}
    told.add(5, "kubelet/n1", "kl.alloc", vector={"memory": 3 << 30}, allocatable={"memory": 2 << 30}, **facts)
    text = made(told.history())
    assert "violations" in text
    assert "n1 has memory 3221225472 allocated of 2147483648" in text
    assert "the kubelet allocates memory 3Gi" in text


def test_an_empty_history_is_told_so() -> None:
    text = made(History.of([]))
    assert "The history is empty" in text
    assert "Unknown: nothing was written." in text


@given(
    st.dictionaries(st.text(max_size=8), st.integers() | st.text() | st.none() | st.lists(st.integers()), max_size=6),
    st.sampled_from(sorted(words.SENTENCES)),
)
def test_a_record_of_any_shape_has_a_sentence(facts: dict[str, Any], kind: str) -> None:
    record: Record = {**facts, "kind": kind}
    assert words.sentence(record)


@given(
    st.lists(st.integers(0, 10**13), min_size=1, max_size=40),
    st.integers(-(10**13), 2 * 10**13),
    st.integers(-(10**13), 2 * 10**13),
)
def test_the_axis_keeps_the_order_of_all_moments(moments: list[int], one: int, other: int) -> None:
    axis = Axis.over(moments)
    earlier, later = sorted((one, other))
    assert 0 <= axis.x(earlier) <= axis.x(later) <= axis.width
    places = [axis.x(moment) for moment in sorted(set(moments))]
    assert all(before < after for before, after in pairwise(places))


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium is installed (Debian: apt install chromium)")
def test_a_browser_draws_the_layers_and_the_fault(tmp_path: Path) -> None:
    told = resized()
    told.add(25, "nemesis", "fault.begin", name="kill", args={"machine": "kubelet/n1"})
    told.add(40, "kubelet/n1", "ckpt.loaded", inc=2, key="k", sha="")
    file = tmp_path / "run.html"
    page.write(told.history(), judge(told.history()), file)
    picture = tmp_path / "run.png"
    assert CHROMIUM is not None
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    command += ["--window-size=1400,1600", f"--screenshot={picture}", file.as_uri()]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    with Image.open(picture) as image:
        colours: set[Any] = {colour for _, colour in image.convert("RGB").getcolors(maxcolors=1 << 24) or []}
    assert {(0xBB, 0xDE, 0xFB), (0xC8, 0xE6, 0xC9)} <= colours, "the two amounts' fills"
    assert (0x2E, 0x7D, 0x32) in colours, "the verdict's"
    assert any(red == 0xFF and abs(green - 0xE9) <= 1 and blue == 0xCC for red, green, blue in colours), "a fault's shade on white"
