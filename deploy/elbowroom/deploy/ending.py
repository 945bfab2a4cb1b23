"""How a command ends by a signal: as by Ctrl-C, so that whoever has a cluster of its own takes it down.

Python runs signal handlers between any two instructions, also where an exception leads nowhere: in what is called before and
after a fork, by the garbage collector, for a weak reference. What was raised there is raised again a moment later.
"""

import signal
import sys
import threading
from typing import Any, NoReturn

AGAIN_SECONDS = 0.02


def heed_signals() -> None:
    """From now on SIGTERM and SIGHUP end the process by ``SystemExit`` with 128 and their number, unless they are ignored."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _end)
    sys.unraisablehook = _on_lost


def _end(number: int, _: object) -> NoReturn:
    raise SystemExit(128 + number)


def _on_lost(lost: Any) -> None:
    why = lost.exc_value
    if not isinstance(why, SystemExit | KeyboardInterrupt) or threading.current_thread() is not threading.main_thread():
        sys.__unraisablehook__(lost)
        return

    def once_more(number: int, _: object) -> NoReturn:
        raise why

    signal.signal(signal.SIGALRM, once_more)
    signal.setitimer(signal.ITIMER_REAL, AGAIN_SECONDS)
