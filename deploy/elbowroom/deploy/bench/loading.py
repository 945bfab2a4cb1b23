"""Load from several generators, which are processes of their own (``load``)."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import msgspec

from elbowroom.deploy.errors import UserError

PATIENCE_SECONDS = 60.0


class _Told(msgspec.Struct):
    seconds: float
    times: list[float]
    failed: int


@dataclass(frozen=True, slots=True)
class Load:
    """What generators together were answered: how often a second, and after how many milliseconds each time."""

    rate: float
    times: list[float]


def generated(kubeconfig: Path, what: str, pods: list[str], *, seconds: float, processes: int = 2) -> Load:
    """``resize`` or ``get`` the pods, a connection each, from so many processes for so long; ``UserError`` if one is refused."""
    commands = [
        [sys.executable, "-m", "elbowroom.deploy.bench.load", str(kubeconfig), str(seconds), what, *pods[part::processes]]
        for part in range(processes)
    ]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE) for command in commands]
    try:
        told = [msgspec.json.decode(process.communicate(timeout=seconds + PATIENCE_SECONDS)[0], type=_Told) for process in started]
    except (msgspec.MsgspecError, subprocess.TimeoutExpired) as why:
        raise UserError(f"the bench failed: a load generator broke ({why})") from why
    finally:
        for process in started:
            process.kill()
            process.wait()
    times = [1000 * took for one in told for took in one.times]
    failed = sum(one.failed for one in told)
    if failed or not times:
        raise UserError(f"the bench failed: {failed} of {failed + len(times)} requests were refused")
    return Load(len(times) / max(one.seconds for one in told), times)
