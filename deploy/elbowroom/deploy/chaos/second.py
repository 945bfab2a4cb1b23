"""A second process of a component that there should be one of, started behind the supervisor's back."""

import subprocess
import sys
import time

import msgspec

from elbowroom.host import process
from elbowroom.host.spec import HostSpec, MachineSpec, decode_spec, encode

END_SECONDS = 5.0


class SecondProcess:
    """``spec``'s machine in a process of its own, which writes into the same ``history``; ``end`` ends it."""

    def __init__(self, spec: MachineSpec, history: str, run: str, seed: int) -> None:
        made = msgspec.structs.replace(spec, config={**spec.config, "epoch": time.time_ns()})
        command = [sys.executable, "-m", "elbowroom.deploy.chaos.second"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        assert self._process.stdin is not None
        self._process.stdin.write(encode(HostSpec(f"second-{spec.name}", [made], history=history, run=run, seed=seed)))
        self._process.stdin.close()

    def end(self) -> None:
        """SIGTERM, and SIGKILL for one that does not heed it."""
        self._process.terminate()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


if __name__ == "__main__":
    process.die_with_parent()
    process.run(decode_spec(sys.stdin.buffer.read()))
