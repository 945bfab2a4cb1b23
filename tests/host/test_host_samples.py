"""What a process says of itself now and then."""

import resource
from collections.abc import Iterator

import pytest

from elbowroom.host.samples import EVERY_SECONDS, Samples


@pytest.fixture
def files_allowed() -> Iterator[tuple[int, int]]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield before
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_open_files_are_told_beside_what_the_process_began_with_even_if_it_is_allowed_fewer_later(
    files_allowed: tuple[int, int],
) -> None:
    now = 0.0
    samples = Samples(lambda: now)
    soft, hard = files_allowed
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft - 1, hard))
    now = EVERY_SECONDS
    look = samples.begin(0.1)
    assert look is not None
    assert look.facts(now + 0.1)["files_max"] == soft


def test_a_look_is_due_every_five_seconds_and_not_before() -> None:
    now = 0.0
    samples = Samples(lambda: now)
    now = EVERY_SECONDS / 2
    assert samples.begin(0.1) is None
    now = EVERY_SECONDS
    assert samples.begin(0.1) is not None
    assert samples.begin(0.1) is None
