"""The plan of a run: drawn from its seed alone, within its time, some of each kind."""

from hypothesis import given
from hypothesis import strategies as st

from elbowroom.deploy.chaos import scenario
from elbowroom.deploy.chaos.plan import counts, draw

SCENARIOS = st.sampled_from([scenario.load(name).spec for name in scenario.names()])


@given(SCENARIOS, st.integers(), st.floats(1, 120))
def test_faults_lie_within_the_time_and_in_order(body: scenario.Body, seed: int, duration: float) -> None:
    plan = draw(body, seed, duration)
    assert all(0 <= one.at < duration and one.span >= 0 and one.at + one.span <= duration + 1e-6 for one in plan)
    assert [one.at for one in plan] == sorted(one.at for one in plan)
    assert [one.number for one in plan] == list(range(1, len(plan) + 1))


@given(SCENARIOS, st.integers(), st.floats(1, 120))
def test_each_kind_comes_at_least_once(body: scenario.Body, seed: int, duration: float) -> None:
    assert set(counts(draw(body, seed, duration))) == {fault.kind for fault in body.faults}


@given(SCENARIOS, st.integers())
def test_a_seed_is_a_plan_and_another_is_another(body: scenario.Body, seed: int) -> None:
    assert draw(body, seed, 30) == draw(body, seed, 30)
    assert draw(body, seed, 30) != draw(body, seed + 1, 30)


def test_leaving_out_one_kind_does_not_move_the_others() -> None:
    body = scenario.load("preemption").spec
    alone = body.model_copy(update={"faults": body.faults[:1]})
    killed = [(one.at, one.chance) for one in draw(body, 7, 20) if one.fault == body.faults[0]]
    assert killed == [(one.at, one.chance) for one in draw(alone, 7, 20)]
