"""Trials: tests run in a fresh process each, with some modules rewritten.

The processes are forked from one that has imported the libraries and none of elbowroom, so a trial costs its tests and little else.
"""

import importlib
import multiprocessing
import os
import resource
import signal
import sys
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path

import hypothesis
import pytest
from mutating import LostTarget, Rewrite, install

ROOT = Path(__file__).parents[2]
LIBRARIES = ("msgspec", "httptools", "yaml", "zmq", "pydantic", "prometheus_client", "uvloop", "rich", "typer", "cryptography")
TEST_SECONDS = 30
"""Of CPU: no named test takes longer; one that does is caught in a loop that the mutant made, and fails."""
STILL_SECONDS = 600
"""Of the clock, on a machine that may have a lot of other work: a test that takes longer waits for what never comes, and fails."""
MEMORY_MAX = 1 << 30
"""Of a trial's address space: some mutants make what has no end."""
_FORK = multiprocessing.get_context("fork")


@dataclass(frozen=True, slots=True)
class Trial:
    """Run ``tests`` (below ``tests/``) with these modules rewritten; ``stops``: at the first failure."""

    name: str
    tests: tuple[str, ...]
    rewrites: Mapping[str, Rewrite] = field(default_factory=dict)
    stops: bool = False
    seconds: float = 1200.0
    """Of the clock, for all its tests; a single one fails after ``TEST_SECONDS`` of CPU."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What became of a trial. ``error`` is empty if its tests were run."""

    trial: Trial
    error: str = ""
    passed: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    seconds: float = 0.0

    def red(self, test: str) -> bool:
        """Did the test fail, for one of its parameters at least?"""
        return any(_is_of(test, node) for node in self.failed)

    def green(self, test: str) -> bool:
        """Was it run, and passed for all parameters?"""
        return not self.red(test) and any(_is_of(test, node) for node in self.passed)


def _is_of(test: str, node: str) -> bool:
    return node == f"tests/{test}" or node.startswith((f"tests/{test}[", f"tests/{test}::"))


class _Listener:
    """Collects the outcomes; a test that could not be set up or collected was not run."""

    def __init__(self) -> None:
        self.outcomes: dict[str, str] = {}
        self.trouble: list[str] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None, object, object]:
        signal.setitimer(signal.ITIMER_PROF, TEST_SECONDS)
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.trouble.append(f"{report.nodeid} cannot be collected: {report.longreprtext[-600:]}")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            self.outcomes[report.nodeid] = report.outcome
        elif report.failed:
            self.trouble.append(f"{report.nodeid}: {report.when} failed")


def _too_long(number: int, frame: object) -> None:
    raise AssertionError(f"it takes more than {TEST_SECONDS} s of CPU")


def _child(trial: Trial, answer: Connection) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.chdir(ROOT)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX))
    sys.dont_write_bytecode = True
    # Examples of mutants are no examples of ours, and nobody reads how small they could be made.
    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
    hypothesis.settings.register_profile("mutants", database=None, derandomize=True, phases=phases, deadline=None)
    hypothesis.settings.load_profile("mutants")
    install(trial.rewrites)
    signal.signal(signal.SIGPROF, _too_long)
    listener = _Listener()
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", f"--timeout={STILL_SECONDS}", "--timeout-method=signal"]
    code = pytest.main([*options, *(["-x"] if trial.stops else []), *(f"tests/{test}" for test in trial.tests)], [listener])
    missing = [name for name in trial.rewrites if name not in sys.modules]
    error = "; ".join(listener.trouble)
    if missing:
        error = f"the tests do not import {missing}"
    elif not error and code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        error = f"pytest ended with {code}"
    passed = tuple(node for node, outcome in listener.outcomes.items() if outcome == "passed")
    failed = tuple(node for node, outcome in listener.outcomes.items() if outcome == "failed")
    answer.send((error, passed, failed))


def run(trials: Iterable[Trial], jobs: int) -> Iterator[Ran]:
    """Make the trials, ``jobs`` at a time, in any order. One that takes too long is ended."""
    early = [name for name in sys.modules if name.startswith("elbowroom.")]
    assert not early, f"trials must begin without {early[:3]}"
    for library in LIBRARIES:
        importlib.import_module(library)
    waiting = list(trials)[::-1]
    running: dict[int, _Running] = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            started = _Running(waiting.pop())
            running[started.process.sentinel] = started
        first_end = min(one.until for one in running.values())
        wait([one.answer for one in running.values()], max(0.0, first_end - time.monotonic()))
        for sentinel, one in list(running.items()):
            ended = one.ended()
            if ended is not None:
                del running[sentinel]
                yield ended


class _Running:
    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self.answer, theirs = _FORK.Pipe(duplex=False)
        self.process = _FORK.Process(target=_child, args=(trial, theirs))
        self.began = time.monotonic()
        self.until = self.began + trial.seconds
        self.process.start()
        theirs.close()

    def ended(self) -> Ran | None:
        """How it ended; None while it has not."""
        now = time.monotonic()
        if self.answer.poll():
            try:
                error, passed, failed = self.answer.recv()
            except EOFError:
                self.process.join()
                error, passed, failed = f"its process ended with {self.process.exitcode}", (), ()
        elif now >= self.until:
            self.process.kill()
            error, passed, failed = TIMED_OUT, (), ()
        else:
            return None
        self.process.join()
        self.answer.close()
        return Ran(self.trial, error, passed, failed, now - self.began)


TIMED_OUT = "it took too long"


def unmutated(tests: Sequence[str], jobs: int) -> list[Ran]:
    """The same tests with nothing changed, each module's in a process of its own."""
    modules = dict.fromkeys(test.partition("::")[0] for test in tests)
    chosen = {module: tuple(dict.fromkeys(t for t in tests if t.partition("::")[0] == module)) for module in modules}
    return list(run([Trial(f"unmutated {module}", mine) for module, mine in chosen.items()], jobs))


__all__ = ["ROOT", "TIMED_OUT", "LostTarget", "Ran", "Trial", "run", "unmutated"]
