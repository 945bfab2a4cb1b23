"""What tests of any folder may ask for."""

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture
def heeded_signals() -> Iterator[None]:
    """Processes that the test starts heed SIGINT and SIGHUP, even where the tests run in the background: there both may be ignored,
    and who is started ignores what its parent does."""
    ignored = [number for number in (signal.SIGINT, signal.SIGHUP) if signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, lambda *_: None)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)
