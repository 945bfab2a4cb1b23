"""Trials: tests that are run in a fresh process each, with the code of some functions exchanged.

All processes are forked from one pytest session, the *bench*, which has imported and collected everything and run nothing: a trial
costs its tests and little else. What takes too long is judged by the processor's time, never by the clock's, since the machine may
have a lot of other work; only who waits for what never comes is told by waiting.
"""

import gc
import multiprocessing
import os
import resource
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path

import hypothesis
import pytest
from mutating import LostTarget, Rewrite, exchange

from elbowroom.host.process import die_with_parent

ROOT = Path(__file__).parents[2]
TEST_SECONDS_MIN, TEST_TIMES = 5.0, 20
"""Of the processor: a test that takes longer, and longer than so many times its usual time, is in a loop that the mutant made."""
IDLE_SECONDS = 60.0
"""A process that has done nothing for so long waits for what never comes."""
LOOK_SECONDS = 5.0
MEMORY_MAX = 1 << 30
"""So much address space more than the bench has: some mutants make what has no end."""
TOO_LONG, DIED = "it took too long", "it died"
_OF_ITSELF = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)
"""Signals that a process dies of by its own doing, and not by somebody else's."""
_FORK = multiprocessing.get_context("fork")
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Trial:
    """Run the tests (by their node ids, in that order) with these modules rewritten, until one fails."""

    name: str
    tests: tuple[str, ...]
    rewrites: Mapping[str, Rewrite] = field(default_factory=dict)
    test_seconds: float = 60.0
    """Of the processor, for any one test."""
    stops: bool = True
    """At the first failure."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What became of a trial. ``error`` is empty if its tests were run, or some of them and one failed."""

    trial: Trial
    error: str = ""
    passed: Mapping[str, float] = field(default_factory=dict)
    """The tests, and what each took of the processor."""
    failed: tuple[str, ...] = ()
    seconds: float = 0.0
    """Of the processor, in all."""
    reached: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Which marks (``reached``) each test came past."""

    @property
    def red(self) -> str:
        """What failed: a test, or all of it, since it never came to its end; empty if nothing did."""
        return self.failed[0] if self.failed else self.error if self.error in (TOO_LONG, DIED) else ""


def is_of(test: str, node: str) -> bool:
    """Is the node id that of ``area/test_module.py::test_name``, or one of its parameters?"""
    return node == f"tests/{test}" or node.startswith((f"tests/{test}[", f"tests/{test}::"))


_marks: set[str] = set()


def reached(mark: str) -> None:
    """Code that is watched calls this: it came past the mark."""
    _marks.add(mark)


class Bench:
    """Everything is imported and collected; ``run`` forks."""

    def __init__(self, session: pytest.Session) -> None:
        self._session = session
        self._items = {item.nodeid: item for item in session.items}
        gc.collect()
        gc.freeze()  # what is never touched stays shared

    @property
    def tests(self) -> tuple[str, ...]:
        """All node ids."""
        return tuple(self._items)

    def of(self, tests: Iterable[str]) -> tuple[str, ...]:
        """The node ids of tests or modules, by their names below ``tests``."""
        return tuple(node for test in tests for node in self._items if is_of(test, node))

    def run(self, trials: Iterable[Trial], jobs: int) -> Iterator[Ran]:
        """Make the trials, ``jobs`` at a time; each is told when it is done."""
        waiting = list(trials)[::-1]
        running: list[_Running] = []
        with tempfile.TemporaryDirectory(prefix="teeth") as folder:
            while waiting or running:
                while waiting and len(running) < jobs:
                    running.append(_Running(waiting.pop(), folder, self._child))
                wait([one.answer for one in running], LOOK_SECONDS)
                for one in list(running):
                    ended = one.ended()
                    if ended is not None:
                        running.remove(one)
                        yield ended

    def _child(self, trial: Trial, answer: Connection) -> None:
        listener = _Listener(trial, answer)
        session = self._session
        session.items = [self._items[test] for test in trial.tests]
        session.config.option.maxfail = 1 if trial.stops else 0
        session.config.pluginmanager.register(listener)
        try:
            exchange(ROOT, trial.rewrites)
        except LostTarget as why:
            listener.answer(str(why))
            return
        for item, following in zip(session.items, [*session.items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.shouldfail or session.shouldstop:
                break
        listener.answer()


class _Listener:
    """Collects the outcomes of a trial's tests; one that could not be set up was not run."""

    def __init__(self, trial: Trial, connection: Connection) -> None:
        self._trial, self._connection = trial, connection
        self._passed: dict[str, float] = {}
        self._failed: list[str] = []
        self._reached: dict[str, frozenset[str]] = {}
        self._trouble: list[str] = []
        signal.signal(signal.SIGPROF, self._too_long)

    def answer(self, error: str = "") -> None:
        self._connection.send((error or "; ".join(self._trouble), self._passed, tuple(self._failed), self._reached))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        _marks.clear()
        began = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, self._trial.test_seconds)
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            self._reached[item.nodeid] = frozenset(_marks)
            if item.nodeid in self._passed:
                self._passed[item.nodeid] = time.process_time() - began

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self._passed[report.nodeid] = 0.0
        elif report.when in ("setup", "call") and report.failed:
            self._failed.append(report.nodeid)  # its setup passes where nothing is mutated
        elif report.failed:
            self._trouble.append(f"{report.nodeid}: {report.when} failed: {report.longreprtext[-300:]}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_timeout_set_timer(self, item: pytest.Item, settings: object) -> bool:
        """No clock is asked."""
        return True

    def _too_long(self, number: int, frame: object) -> None:
        self.answer(TOO_LONG)
        os._exit(0)


def _child(trial: Trial, answer: Connection, folder: str, run: Callable[[Trial, Connection], None]) -> None:
    os.setsid()  # what it starts ends with it
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    die_with_parent()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    os.environ["TMPDIR"] = tempfile.tempdir = folder
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY_MAX
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    run(trial, answer)


class _Running:
    def __init__(self, trial: Trial, folder: str, run: Callable[[Trial, Connection], None]) -> None:
        self._trial = trial
        self.answer, theirs = _FORK.Pipe(duplex=False)
        self._folder = tempfile.mkdtemp(dir=folder)
        self._process = _FORK.Process(target=_child, args=(trial, theirs, self._folder, run))
        self._process.start()
        theirs.close()
        self._used = 0.0
        self._idle_since = self._looked = time.monotonic()

    def ended(self) -> Ran | None:
        """How it ended; None while it has not."""
        outcome: tuple[str, Mapping[str, float], tuple[str, ...], Mapping[str, frozenset[str]]]
        if self.answer.poll():
            try:
                outcome = self.answer.recv()
            except EOFError:
                self._process.join()
                code = self._process.exitcode or 0
                outcome = DIED if -code in _OF_ITSELF else f"its process ended with {code}", {}, (), {}
        elif self._waits_in_vain():
            outcome = TOO_LONG, {}, (), {}
        else:
            return None
        self._look()
        assert self._process.pid, "it was started"
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)  # it has said all that it has to say
        self._process.join()
        self.answer.close()
        shutil.rmtree(self._folder, ignore_errors=True)
        error, passed, failed, reached = outcome
        return Ran(self._trial, error, passed, failed, self._used, reached)

    def _waits_in_vain(self) -> bool:
        """Has it slept for long, and not for want of a processor?"""
        now = time.monotonic()
        if now - self._looked < LOOK_SECONDS:
            return False
        self._looked = now
        if self._look():
            self._idle_since = now
        return now - self._idle_since >= IDLE_SECONDS

    def _look(self) -> bool:
        """Did it do something since it was looked at last, or would it if it could?"""
        try:
            words = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return True
        before, self._used = self._used, (int(words[11]) + int(words[12])) / _TICKS
        return words[0] in "RD" or self._used - before > 0.02 * LOOK_SECONDS


class _Session:
    """Takes a session over once it has collected, in place of the loop that runs the tests."""

    def __init__(self, work: Callable[[Bench], None]) -> None:
        self._work = work
        self.ran = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if session.testsfailed:
            return None  # pytest says what could not be collected
        self.ran = True
        self._work(Bench(session))
        return True


def at_bench(modules: Sequence[str], work: Callable[[Bench], None]) -> bool:
    """Collect these modules below ``tests``, and let ``work`` do what it likes with them. False if they cannot be collected."""
    # Examples of mutants are no examples of ours, and nobody reads how small they could be made.
    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
    hypothesis.settings.register_profile("mutants", database=None, derandomize=True, phases=phases, deadline=None)
    hypothesis.settings.load_profile("mutants")
    os.chdir(ROOT)
    session = _Session(work)
    quiet = ["-qq", "-s", "--no-header", "--no-summary", "-p", "no:cacheprovider", "-p", "no:xdist"]
    pytest.main([*quiet, f"--rootdir={ROOT}", *(f"tests/{module}" for module in modules)], [session])
    return session.ran


def unmutated(bench: Bench, tests: Sequence[str], jobs: int, rewrites: Mapping[str, Rewrite] | None = None) -> Iterator[Ran]:
    """The tests (node ids) as they are, or watched by ``rewrites``, each module's in a process of its own."""
    modules = dict.fromkeys(test.partition("::")[0] for test in tests)
    trials = [
        Trial(module, tuple(test for test in tests if test.partition("::")[0] == module), rewrites or {}, 300.0, stops=False)
        for module in modules
    ]
    yield from bench.run(trials, jobs)


def seconds_of(usual: float) -> float:
    """How long a test may take that usually takes so long."""
    return max(TEST_SECONDS_MIN, usual * TEST_TIMES)
