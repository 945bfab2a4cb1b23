"""Signals end a command wherever they meet it."""

import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.usefixtures("heeded_signals")

ELSEWHERE = {
    "while it works": "signal.raise_signal(number)",
    "before a fork": "os.register_at_fork(before=strike); os.fork() or os._exit(0)",
    "after a fork": "os.register_at_fork(after_in_parent=strike); os.fork() or os._exit(0)",
    "in a destructor": "type('Thing', (), {'__del__': strike})()",
}


@pytest.mark.parametrize("where", ELSEWHERE)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, -signal.SIGINT)])
def test_a_signal_ends_the_command(where: str, number: signal.Signals, code: int) -> None:
    lines = [
        "import os, signal",
        "from elbowroom.deploy.ending import heed_signals",
        "heed_signals()",
        f"number = {int(number)}",
        "strike = lambda *_: signal.raise_signal(number)",
        ELSEWHERE[where],
        "while True: signal.pause()",
    ]
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], timeout=20, check=False, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    assert "ignored" not in done.stderr


def test_what_is_ignored_stays_ignored() -> None:
    lines = [
        "import signal",
        "from elbowroom.deploy.ending import heed_signals",
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)",
        "heed_signals()",
        "signal.raise_signal(signal.SIGHUP)",
    ]
    assert subprocess.run([sys.executable, "-c", "\n".join(lines)], timeout=20, check=False).returncode == 0
