"""How much each may ask: one user's flood is that user's own trouble."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elbowroom.apiserver.fairness import BYTES_A_REQUEST, FLOWS_MAX, STRANGERS, SYSTEM, WORKLOAD, Buckets, Level, level_of
from elbowroom.apiserver.identity import ANONYMOUS, Identity

ANN, BOB = (Identity(name, ("system:authenticated",)) for name in ("ann", "bob"))


@pytest.mark.parametrize(
    ("user", "groups", "level"),
    [
        ("root", ("system:masters",), None),
        ("system:node:n1", ("system:nodes", "system:authenticated"), SYSTEM),
        ("system:kube-scheduler", ("system:authenticated",), SYSTEM),
        ("system:kube-controller-manager", ("system:authenticated",), SYSTEM),
        ("ann", ("system:authenticated",), WORKLOAD),
        ("system:serviceaccount:a:b", ("system:serviceaccounts", "system:authenticated"), WORKLOAD),
        ("system:anonymous", ("system:unauthenticated",), STRANGERS),
    ],
)
def test_a_user_has_the_level_of_what_it_is(user: str, groups: tuple[str, ...], level: Level | None) -> None:
    assert level_of(user, groups) is level


def test_who_asks_too_much_waits_and_nobody_else_does() -> None:
    buckets = Buckets()
    passed = sum(buckets.wait(0.0, ANN) == 0.0 for _ in range(1000))
    assert passed == WORKLOAD.burst
    wait = buckets.wait(0.0, ANN)
    assert 0 < wait <= 1 / WORKLOAD.rate
    assert buckets.wait(0.0, BOB) == 0.0
    assert buckets.wait(wait, ANN) == 0.0


def test_strangers_share_one_bucket() -> None:
    buckets = Buckets()
    other = Identity("system:anonymous", ("system:unauthenticated", "x"))
    assert sum(buckets.wait(0.0, who) == 0.0 for who in (ANONYMOUS, other) * 500) == STRANGERS.burst


def test_administrators_never_wait() -> None:
    buckets = Buckets()
    assert not any(buckets.wait(0.0, Identity("root", ("system:masters",))) for _ in range(10_000))


@pytest.mark.parametrize("what", list(BYTES_A_REQUEST))
def test_what_is_large_counts_for_more(what: str) -> None:
    buckets, size = Buckets(), BYTES_A_REQUEST[what]
    buckets.charge(0.0, ANN, int(size * WORKLOAD.burst), what)
    assert buckets.wait(0.0, ANN) > 0.0
    buckets.charge(0.0, BOB, size - 1, what)
    assert sum(buckets.wait(0.0, BOB) == 0.0 for _ in range(1000)) == WORKLOAD.burst


def test_a_crowd_of_users_takes_no_more_room_than_there_is() -> None:
    buckets = Buckets()
    for number in range(FLOWS_MAX + 100):
        buckets.wait(0.0, Identity(f"u{number}", ("system:authenticated",)))
    assert len(buckets._flows) == FLOWS_MAX


@given(st.lists(st.floats(0, 0.05), max_size=300))
def test_no_user_passes_more_often_than_its_level_allows(pauses: list[float]) -> None:
    buckets, now, passed = Buckets(), 0.0, 0
    for pause in pauses:
        now += pause
        passed += sum(buckets.wait(now, ANONYMOUS) == 0.0 for _ in range(3))
        assert passed <= STRANGERS.burst + now * STRANGERS.rate + 1e-6
