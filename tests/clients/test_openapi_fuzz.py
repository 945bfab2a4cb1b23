"""A short, seeded part of ``make fuzz``."""

import time
from pathlib import Path

import pytest
from openapi_fuzz import Tally, Target, explore, is_fault

from elbowroom.testing.cluster import running

SECONDS = 25


def test_no_request_that_the_openapi_allows_or_forbids_is_answered_with_a_servers_error(tmp_path: Path) -> None:
    tally = Tally()
    with running(tmp_path, "--nodes", "0", "--store", "memory") as cluster:
        explore(Target(cluster.kubeconfig, tmp_path), number=1, examples=2, until=time.monotonic() + SECONDS, tally=tally)
        assert cluster.restarts("apiserver") == 0
    assert tally.findings == []
    assert len(tally.operations) > 20 and {200, 404, 400} <= tally.statuses.keys(), tally.statuses


@pytest.mark.parametrize(
    ("status", "body", "fault"),
    [
        (200, b"ok", False),
        (404, b'{"kind": "Status", "code": 404}', False),
        (404, b'{"kind": "Status", "code": 400}', True),
        (400, b"no", True),
        (400, b"[]", True),
        (500, b'{"kind": "Status", "code": 500, "message": "list index out of range"}', True),
        (500, b'{"kind": "Status", "code": 500, "message": "target.name: Required value"}', False),
    ],
)
def test_what_counts_as_a_fault(status: int, body: bytes, fault: bool) -> None:
    assert is_fault(status, body) is fault
