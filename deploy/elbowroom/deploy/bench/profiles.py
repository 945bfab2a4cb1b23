"""What the processes of a bench's clusters do with their time: stacks that py-spy takes while a figure is taken."""

import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from elbowroom.deploy.errors import UserError

HERTZ = 100
BUSIEST = 15
SUMMARY = "busiest.txt"


@dataclass(frozen=True, slots=True)
class Profiles:
    """A folder of profiles: ``FIGURE-N-PROCESS.folded`` for the Nth cluster of a figure, and ``busiest.txt``.

    A folded file has a line for each stack: functions from the outermost one, and how often it was seen, which is what tools for
    flame graphs read. Only time on a processor, or about to have one, is seen. ``busiest.txt`` tells each one's busiest functions,
    or why there is no profile of a process. Raises UserError where there is no py-spy.
    """

    program: str
    folder: Path

    @classmethod
    def into(cls, folder: Path) -> "Profiles":
        """Make the folder."""
        beside = Path(sys.executable).with_name("py-spy")
        program = str(beside) if beside.exists() else shutil.which("py-spy")
        if program is None:
            raise UserError("--profiles: there is no py-spy; install elbowroom[profiling]")
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as why:
            raise UserError(f"--profiles {folder}: {why.strerror}") from why
        return cls(program, folder)

    @contextmanager
    def of(self, figure: str) -> Iterator[None]:
        """Clusters that are up meanwhile are looked at for that figure."""
        token = _CURRENT.set(Recordings(self, figure))
        try:
            yield
        finally:
            _CURRENT.reset(token)


class Recordings:
    """Those of one figure."""

    def __init__(self, profiles: Profiles, figure: str) -> None:
        self._profiles, self._figure = profiles, figure
        self._clusters = 0

    def begin(self, processes: Mapping[str, int]) -> "Recording":
        """Look at processes (their ids by their names) of one cluster; once it returns it does."""
        self._clusters += 1
        files = {
            name: self._profiles.folder / f"{self._figure}-{self._clusters}-{name.replace('/', '-')}.folded" for name in processes
        }
        return Recording(self._profiles, {files[name]: pid for name, pid in processes.items()})


class Recording:
    """Of one cluster, until ``end``."""

    def __init__(self, profiles: Profiles, pids: Mapping[Path, int]) -> None:
        self._profiles = profiles
        command = [profiles.program, "record", "--format", "raw", "--function", "--rate", str(HERTZ)]
        self._spies = {
            file: subprocess.Popen(
                [*command, "--output", str(file), "--pid", str(pid)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for file, pid in pids.items()
        }
        for spy in self._spies.values():
            assert spy.stdout is not None
            spy.stdout.readline()  # it says that it has begun, or ends

    def end(self) -> None:
        """Write the files. A process that has ended meanwhile has what was seen of it until then."""
        for spy in self._spies.values():
            spy.send_signal(signal.SIGINT)
        words = {file: spy.communicate()[1].strip() for file, spy in self._spies.items()}
        with open(self._profiles.folder / SUMMARY, "a", encoding="utf-8") as summary:
            for file, said in words.items():
                if file.exists():
                    summary.write(busiest(file.stem, file.read_text(encoding="utf-8")) + "\n")
                else:
                    summary.write(f"{file.stem}: there is none; py-spy said: {said or 'nothing'}\n\n")


def recordings() -> Recordings | None:
    """Those of the figure that is taken now, if somebody wants profiles of it."""
    return _CURRENT.get()


def busiest(title: str, folded: str) -> str:
    """The functions of a profile that are seen most: how much of the time they themselves take, and how much with all they call."""
    own: Counter[str] = Counter()
    whole: Counter[str] = Counter()
    for line in folded.splitlines():
        stack, _, count = line.rpartition(" ")
        frames = stack.split(";")
        own[frames[-1]] += int(count)
        whole.update(dict.fromkeys(frames, int(count)))
    seen = sum(own.values())
    rows = [f"{title}: seen {seen} times, {HERTZ} times a second"]
    ordered = sorted(own, key=lambda name: (-own[name], name))
    rows += [f"{100 * own[name] / seen:6.1f} % {100 * whole[name] / seen:6.1f} %  {name}" for name in ordered[:BUSIEST]]
    return "\n".join(rows) + "\n"


_CURRENT: ContextVar[Recordings | None] = ContextVar("recordings", default=None)
